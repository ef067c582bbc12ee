// Reading the bodies of POST and PATCH on subscriptions. The refusals, their texts and their order are in
// test/cases/subscription-refusals.ts.
import t, { type Test } from 'tap'
import { selectionPatternsMax } from '../../../src/domain/limits.js'
import { type Result, refusalText } from '../../../src/domain/refusal.js'
import * as cases from '../../cases/subscription-refusals.js'
import { Mutator } from '../../support/mutator.js'
import { Random } from '../../support/random.js'
import { randomBody } from '../../support/random-subscription.js'
import { afterPatch, patched, posted, subscription } from '../../support/subscriptions.js'

const S = '{"entities":[{"id":"E"}]}'
const N = '{"http":{"url":"http://h"}}'
const plain = `{"subject":${S},"notification":${N}}`
const existing = subscription(plain)

/** The text of the refusal, with its kind when that is not BadRequest; `accepted` when there is no refusal. */
function answer(result: Result<unknown>): string {
  if (result.ok) return 'accepted'
  const { kind } = result.refusal
  const text = refusalText(result.refusal)
  return kind === 'BadRequest' ? text : `${kind} ${text}`
}

/** Checks each row of a table against POST and PATCH; `place` puts the JSON of the row into a body. */
function refuses(t: Test, table: readonly cases.Refused[], place: (json: string) => string): void {
  for (const [what, json, description] of table) {
    const body = place(json)
    t.equal(answer(posted(body)), description, `POST: ${what}`)
    t.equal(answer(patched(existing, body)), description, `PATCH: ${what}`)
  }
}

const inSubject = (json: string) => `{"subject":${json},"notification":${N}}`
const inCondition = (json: string) => inSubject(`{"entities":[{"id":"E"}],"condition":{${json}}}`)
const inNotification = (json: string) => `{"subject":${S},"notification":${json}}`
const besideHttp = (json: string) => inNotification(`{"http":{"url":"http://h"},${json}}`)
const besideUrl = (json: string) => inNotification(`{"httpCustom":{"url":"http://h",${json}}}`)

t.test('a POST needs a subject and a notification', async t => {
  for (const [what, body, description] of cases.incomplete) t.equal(answer(posted(body)), description, what)
})

t.test('a body is an object with something in it', async t => {
  refuses(t, cases.bodies, body => body)
})

t.test('simple fields are refused in the words of the interface', async t => {
  refuses(t, cases.simpleFields, json => `{"subject":${S},"notification":${N},${json}}`)
})

t.test('subjects are refused in the words of the interface', async t => {
  refuses(t, cases.subjects, inSubject)
  refuses(t, cases.entities, json => inSubject(`{"entities":[${json}]}`))
  refuses(t, cases.entities, json => inSubject(`{"entities":[{"idPattern":".*"},${json}]}`))
})

t.test('lists of names are refused in the same words in every place', async t => {
  const places: readonly (readonly [field: string, place: (json: string) => string])[] = [
    ['attrs', inCondition],
    ['alterationTypes', inCondition],
    ['attrs', besideHttp],
    ['exceptAttrs', besideHttp],
    ['metadata', besideHttp],
  ]
  for (const [field, place] of places) {
    const table = cases.lists.map(
      ([what, json, text]) => [`${field}: ${what}`, json, text.replace('F', field)] as const,
    )
    refuses(t, table, json => place(`"${field}":${json}`))
  }
})

t.test('conditions are refused in the words of the interface', async t => {
  refuses(t, cases.conditions, inCondition)
  refuses(t, cases.expressions, json => inCondition(`"expression":{${json}}`))
})

t.test('notifications are refused in the words of the interface', async t => {
  refuses(t, cases.notifications, inNotification)
  refuses(t, cases.notificationFields, besideHttp)
})

t.test('HTTP transports are refused in the words of the interface', async t => {
  refuses(t, cases.httpTransports, json => inNotification(`{"http":${json}}`))
  refuses(t, cases.httpCustomTransports, json => inNotification(`{"httpCustom":${json}}`))
  refuses(t, cases.httpCustomFields, besideUrl)
})

t.test('MQTT transports are refused in the words of the interface', async t => {
  for (const kind of ['mqtt', 'mqttCustom']) {
    refuses(t, [['no object', '"x"', `${kind} notification is not an object`]], json =>
      inNotification(`{"${kind}":${json}}`),
    )
    refuses(t, cases.mqttFields, json => {
      const fields = json.replace('T', '"topic":"t"').replace('U', '"url":"mqtt://h"')
      return inNotification(`{"${kind}":{${fields}}}`)
    })
  }
})

t.test('custom bodies are refused in the same words for HTTP and MQTT', async t => {
  refuses(t, cases.customBodies, besideUrl)
  refuses(t, cases.customBodies, json => inNotification(`{"mqttCustom":{"url":"mqtt://h","topic":"t",${json}}}`))
})

t.test('each transport refuses an invalid URL', async t => {
  const urls = (description: string) =>
    cases.wrongUrls.map((url): cases.Refused => [url, `"url":"${url}"`, description])
  refuses(t, urls('Invalid URL parsing notification url'), json => inNotification(`{"http":{${json}}}`))
  refuses(t, urls('invalid custom /url/'), json => inNotification(`{"httpCustom":{${json}}}`))
  refuses(t, urls('invalid mqtt /url/'), json => inNotification(`{"mqtt":{${json},"topic":"t"}}`))
})

t.test('of several mistakes the refusal names the first one', async t => {
  refuses(t, cases.severalMistakes, body => body.replace(':S', `:${S}`).replace(':N', `:${N}`))
})

t.test('a duplicate key is refused', async t => {
  refuses(t, cases.twiceTheSame, body => body.replace(':S', `:${S}`))
})

t.test('the regular expressions of a subject are limited together', async t => {
  const entities = (count: number, pattern: (at: number) => string) =>
    inSubject(`{"entities":[${Array.from({ length: count }, (_, at) => `{"idPattern":"${pattern(at)}"}`)}]}`)
  t.equal(answer(posted(entities(selectionPatternsMax, at => `^e${at}$`))), 'accepted')
  const tooMany = entities(selectionPatternsMax + 1, at => `^e${at}$`)
  t.match(answer(posted(tooMany)), /^number of regular expressions for ids and types: /)
  t.match(answer(posted(entities(5, at => `[ab]{500}${at}`))), /^steps of all regular expressions for ids and types: /)
})

t.test('members without an effect are kept as absent ones', async t => {
  const body = '{"url":"http://h","payload":""}'
  const { throttlingSeconds, notification } = subscription(
    `{"subject":${S},"notification":{"httpCustom":${body}},"throttling":-3}`,
  )
  t.equal(throttlingSeconds, 0)
  t.match(notification.transport, { kind: 'httpCustom', method: undefined, qs: [], headers: [], body: undefined })
  const patch = subscription(besideUrl('"ngsi":{"id":"","type":""}')).notification.transport
  t.match(patch, { body: { patch: { id: undefined, type: undefined, attributes: [] } } })
})

const full = `{"description":"d","expires":"2050-01-01T00:00:00Z","throttling":5,"status":"inactive",
  "subject":{"entities":[{"id":"E"}],"condition":{"attrs":["A"],"expression":{"q":"A>1"},"alterationTypes":["entityDelete"],"notifyOnMetadataChange":false}},
  "notification":{"httpCustom":{"url":"http://h","timeout":7,"method":"PUT","qs":{"a":"b"},"headers":{"c":"d"},"json":[]},
    "attrs":["A"],"metadata":["m"],"attrsFormat":"values","maxFailsLimit":2,"onlyChangedAttrs":true,"covered":true}}`

t.test('a PATCH keeps members that it does not mention', async t => {
  const before = subscription(full, '/a')
  t.strictSame(afterPatch(before, '{"foo":1}', '/a'), before)
})

t.test('a PATCH always moves the subscription to the path of its request', async t => {
  const before = subscription(full, '/a')
  t.equal(afterPatch(before, '{"foo":1}', '/b').servicePath, '/b')
})

t.test('a PATCH of the subject replaces all of it but the flag of metadata, which goes with a condition', async t => {
  const before = subscription(full)
  const without = afterPatch(before, '{"subject":{"entities":[{"id":"F"}]}}')
  const { expression, ...condition } = without.condition
  t.strictSame(without.entities, [{ id: 'F' }])
  t.strictSame(condition, { attrs: [], alterationTypes: [], notifyOnMetadataChange: false })
  t.strictSame(expression.source, {})
  t.strictSame(without.notification, before.notification)
  const anew = afterPatch(before, '{"subject":{"entities":[{"id":"E"}],"condition":{"attrs":["A"]}}}')
  t.equal(anew.condition.notifyOnMetadataChange, true)
})

t.test('a PATCH of the notification replaces all of it but two flags', async t => {
  const { notification, ...rest } = afterPatch(subscription(full), `{"notification":${N}}`)
  const { notification: before, ...restBefore } = subscription(full)
  t.strictSame(notification, {
    transport: { kind: 'http', url: 'http://h', timeoutMs: 0 },
    attrs: [],
    exceptAttrs: [],
    metadata: [],
    attrsFormat: 'normalized',
    maxFailsLimit: undefined,
    onlyChangedAttrs: before.onlyChangedAttrs,
    covered: before.covered,
  })
  t.strictSame(rest, restBefore)
})

t.test('a PATCH with flags changes them', async t => {
  const off = `{"notification":{"http":{"url":"http://h"},"onlyChangedAttrs":false,"covered":false}}`
  t.match(afterPatch(subscription(full), off).notification, { onlyChangedAttrs: false, covered: false })
})

t.test('a PATCH of the notification propagates deletions only if it has that member', async t => {
  const before = subscription(besideHttp('"propagateDeletes":true'))
  t.equal(before.notification.propagateDeletes, true)
  t.equal(afterPatch(before, '{"throttling":5}').notification.propagateDeletes, true)
  for (const notification of [N, '{"http":{"url":"http://h"},"propagateDeletes":false}'])
    t.notOk('propagateDeletes' in afterPatch(before, `{"notification":${notification}}`).notification)
  const off = subscription(besideHttp('"attrs":["A"]'))
  t.equal(afterPatch(off, besideHttp('"propagateDeletes":true')).notification.propagateDeletes, true)
})

t.test('a PATCH has a list of exceptions follow a list of attributes and the other way round', async t => {
  const withAttrs = subscription(besideHttp('"attrs":["A"]'))
  const withExceptions = afterPatch(withAttrs, besideHttp('"exceptAttrs":["B"]'))
  t.match(withExceptions.notification, { attrs: [], exceptAttrs: ['B'] })
  t.match(afterPatch(withExceptions, besideHttp('"attrs":["A"]')).notification, { attrs: ['A'], exceptAttrs: [] })
})

t.test('a PATCH removes members that it gives as empty', async t => {
  const after = afterPatch(subscription(full), '{"description":"","expires":"","throttling":0}')
  t.strictSame([after.description, after.expiresMs, after.throttlingSeconds], ['', undefined, 0])
})

t.test('covered is judged by the lists of the same body', async t => {
  const text = 'covered true cannot be used if notification attributes list is empty'
  t.equal(answer(patched(subscription(full), besideHttp('"covered":true'))), text)
})

t.test('each setting of the status is a revision of its own, and nothing else is', async t => {
  const before = subscription(plain)
  t.equal(before.statusRevision, 1)
  const other = afterPatch(before, `{"throttling":1,"subject":${S},"notification":${N}}`)
  t.equal(other.statusRevision, 1)
  t.equal(afterPatch(afterPatch(other, '{"status":"active"}'), '{"status":"active"}').statusRevision, 3)
})

t.test('every body of a client is a subscription or is refused', async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  const texts = Array.from({ length: 50 }, () => randomBody(random))
  const words = [
    '"http"',
    '"mqtt"',
    '"ngsi"',
    '"json"',
    '"payload"',
    '"attrs"',
    '"id"',
    'null',
    '[]',
    '{}',
    '1',
    '-1',
    '""',
    '${',
    ',',
    ':',
  ]
  const nests = [
    ['[', ']'],
    ['{"a":', '}'],
  ] as const
  const mutator = new Mutator(random, { texts, words, nests, lengthMax: 10_000 })
  let refusals = 0
  for (let left = 5_000; left > 0; left--) {
    const body = mutator.next()
    for (const result of [posted(body), patched(existing, body)]) {
      if (result.ok) continue
      refusals++
      if (result.refusal.kind !== 'BadRequest' && result.refusal.kind !== 'ParseError') t.fail(body)
    }
  }
  t.ok(refusals > 1_000 && refusals < 10_000, `${refusals} refusals`)
})
