// Notifications: the message around the contents (headers are read as on the wire), and custom notifications, as
// tables; and the properties that hold for all templates and values.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: a macro looks like that

import t from 'tap'
import type { Json, JsonObject } from '../../../src/domain/json.js'
import type { HttpMessage, NotificationInput, NotificationOptions } from '../../../src/domain/subscriptions/message.js'
import {
  attributes,
  httpCases,
  patchCases,
  patchSettings,
  refusalCases,
  syntaxCases,
  valueCases,
} from '../../cases/custom-notifications.js'
import { asHttp, asMqtt, bodyOf, options, room, roomOf, sent, sink } from '../../support/notification-inputs.js'
import fc from '../../support/properties.js'

const headersOf = (
  facts: Partial<NotificationInput> = {},
  notification = {},
  changes: Partial<NotificationOptions> = {},
) => asHttp(sent(notification, facts, changes)).headers.map(([name, value]) => `${name}: ${value}`)

t.test('a regular notification is a POST to the URL with the standard headers in their order', async t => {
  t.match(sent({ http: { url: sink, timeout: 700 } }, { authToken: 'tok' }), {
    transport: 'http',
    method: 'POST',
    url: sink,
    timeoutMs: 700,
    headers: [
      ['User-Agent', 'ctxbroker/1.0'],
      ['Ctx-Service', 'acme'],
      ['Ctx-ServicePath', '/b1'],
      ['X-Auth-Token', 'tok'],
      ['Accept', 'application/json'],
      ['Content-Type', 'application/json; charset=utf-8'],
      ['Ctx-Correlator', '0f0e; cbnotif=1'],
      ['Ctx-Notification-Id', 'n-1'],
      ['Ngsiv2-AttrsFormat', 'normalized'],
    ],
  })
})

t.test('the default tenant has no header, and neither has a request without token', async t => {
  const names = headersOf({ tenant: '', path: '/' }).map(line => line.split(':')[0])
  t.strictSame(
    names,
    'User-Agent Ctx-ServicePath Accept Content-Type Ctx-Correlator Ctx-Notification-Id Ngsiv2-AttrsFormat'.split(' '),
  )
})

t.test('an empty token is none', async t => {
  t.notOk(headersOf({ authToken: '' }).some(line => line.startsWith('X-Auth-Token')))
})

for (const attrsFormat of ['normalized', 'simplifiedNormalized', 'keyValues', 'simplifiedKeyValues', 'values'])
  t.test(`the header names the requested format: ${attrsFormat}`, async t => {
    t.equal(headersOf({}, { attrsFormat }).at(-1), `Ngsiv2-AttrsFormat: ${attrsFormat}`)
  })

t.test('no header names the legacy format', async t => {
  t.notOk(headersOf({}, { attrsFormat: 'legacy' }).some(line => line.startsWith('Ngsiv2-AttrsFormat')))
  t.notOk(headersOf({}, { attrsFormat: 'legacy', httpCustom: { url: sink } }).some(line => line.startsWith('Ngsiv2')))
})

/** The headers that mark a deletion. */
const markOf = (notification = {}, changes: Partial<NotificationOptions> = {}) =>
  headersOf({ alteration: 'entityDelete' }, notification, changes).filter(line => /^[a-z]*-alteration:/i.test(line))

t.test('a deletion that is propagated is marked, and nothing else is', async t => {
  const propagateDeletes = true
  t.strictSame(markOf({ propagateDeletes }), ['Ctx-Alteration: entityDelete'])
  t.strictSame(markOf({ propagateDeletes }, { vocabulary: 'Fiware' }), ['Fiware-Alteration: entityDelete'])
  t.strictSame(markOf(), [])
  t.strictSame(markOf({ propagateDeletes: false }), [])
  for (const alteration of ['entityCreate', 'entityChange', 'entityUpdate'] as const)
    t.notOk(
      headersOf({ alteration }, { propagateDeletes }).some(line => line.includes('Alteration')),
      alteration,
    )
})

t.test('the mark is a header like others to a custom notification, and to MQTT it is a macro', async t => {
  const custom = (headers: object) => ({ httpCustom: { url: sink, headers, payload: 'x' }, propagateDeletes: true })
  t.strictSame(markOf(custom({ 'X-Zone': 'a' })), ['Ctx-Alteration: entityDelete'])
  t.strictSame(markOf(custom({ 'fiware-alteration': 'gone' })), ['Ctx-Alteration: gone'])
  t.strictSame(markOf(custom({ 'ctx-alteration': '' })), [])
  const topic = { url: 'mqtt://broker.example', topic: 't/${alterationType}', payload: '${id} ${alterationType}' }
  const message = sent({ mqttCustom: topic, propagateDeletes: true }, { alteration: 'entityDelete' })
  t.match(message, { topic: 't/entityDelete', body: 'R1 entityDelete' })
})

t.test('a correlator that has suffixes gets another one', async t => {
  const lines = headersOf({ correlator: '0f0e; cbnotif=1', number: 2 })
  t.ok(lines.includes('Ctx-Correlator: 0f0e; cbnotif=1; cbnotif=2'))
})

t.test('the other vocabulary names our own headers, in custom notifications too', async t => {
  const fiware = { vocabulary: 'Fiware' } as const
  const regular = headersOf({}, {}, fiware)
  for (const line of ['Fiware-Service: acme', 'Fiware-ServicePath: /b1', 'Fiware-Correlator: 0f0e; cbnotif=1'])
    t.ok(regular.includes(line), line)
  t.notOk(regular.some(line => line.startsWith('Ctx-')))
  const headers = { 'ctx-service': 's2', 'fiware-servicepath': '', 'Ctx-Correlator': 'x', 'fiware-correlator': 'x' }
  const custom = headersOf({}, { httpCustom: { url: sink, headers, payload: 'x' } }, fiware)
  t.ok(custom.includes('Fiware-Service: s2'))
  t.ok(custom.includes('Fiware-Correlator: 0f0e; cbnotif=1'))
  t.notOk(custom.some(line => /^(ctx-|fiware-servicepath)/i.test(line)))
})

for (const facts of [{ correlator: 'a\r\nX: y' }, { authToken: 'a\0' }, { notificationId: 'a\n' }])
  t.test(`a regular notification with ${JSON.stringify(facts)} is not sent`, async t => {
    t.match(sent({}, facts), { level: 'warn', failure: undefined })
  })

const mqtt = { url: 'mqtt://broker.example:1884', topic: 'a/${id}', qos: 2, retain: true, user: 'u', passwd: 'p' }

t.test('a regular MQTT message has the contents of the HTTP notification, under its literal topic', async t => {
  const literal = { ...mqtt, topic: 'a/b' }
  t.strictSame(sent({ mqtt: literal, attrsFormat: 'keyValues' }), {
    transport: 'mqtt',
    url: 'mqtt://broker.example:1884',
    topic: 'a/b',
    body: asHttp(sent({ attrsFormat: 'keyValues' })).body,
    qos: 2,
    retain: true,
    login: { user: 'u', passwd: 'p' },
  })
  t.match(sent({ mqtt }), { topic: 'a/${id}' })
})

t.test('a value of a header that is no line is refused', async t => {
  for (const control of ['\0', '\r\n', '\x1f', '\x7f', '\x80', '\x85', '\x9f'])
    t.match(sent({}, { correlator: `a${control}b` }), { level: 'warn' }, JSON.stringify(control))
  for (const text of [' ', '~', '\xa0', 'é'])
    t.match(sent({}, { correlator: `a${text}b` }), { transport: 'http' }, text)
})

t.test('a topic with control characters is refused', async t => {
  t.match(sent({ mqtt: { ...mqtt, topic: 'a\0b' } }), { level: 'warn' })
})

const disabled = { disableCustomNotifications: true }

t.test('where custom notifications are disabled, httpCustom is a regular POST to its literal URL', async t => {
  const httpCustom = {
    url: `${sink}/\${id}`,
    method: 'PUT',
    timeout: 5,
    qs: { a: '1' },
    headers: { accept: 'x', 'x-y': 'z' },
    payload: '${id}',
  }
  t.strictSame(sent({ httpCustom }, {}, disabled), sent({ http: { url: `${sink}/\${id}`, timeout: 5 } }, {}, options))
})

t.test('where custom notifications are disabled, a URL that is only a template is malformed', async t => {
  t.match(sent({ httpCustom: { url: '${url}' } }, {}, disabled), { level: 'error' })
})

t.test('where custom notifications are disabled, mqttCustom is mqtt', async t => {
  t.strictSame(sent({ mqttCustom: { ...mqtt, payload: '${id}' } }, {}, disabled), sent({ mqtt }))
})

const entity = room(attributes)
const authToken = 'tok'
const covered = { covered: true, attrs: ['covered', '*'] }

const sentHttp = (httpCustom: JsonObject, notification: JsonObject = {}): ReturnType<typeof sent> =>
  sent({ ...notification, httpCustom: { url: sink, ...httpCustom } }, { entity, authToken })

for (const [template, text, whole, part] of valueCases) {
  t.test(`${template} in texts`, async t => {
    const custom = { payload: `-${template}-`, qs: { q: `-${template}-` }, headers: { x: `-${template}-` } }
    const message = asHttp(sentHttp(custom, covered))
    t.equal(message.body, `-${text}-`)
    t.equal(message.url, `${sink}?q=-${text}-`)
    t.strictSame(message.headers.at(-1), ['x', `-${text}-`])
    const mqttCustom = { url: 'mqtt://broker.example', topic: `t${template}`, payload: 'x' }
    t.equal(asMqtt(sent({ ...covered, mqttCustom }, { entity, authToken })).topic, `t${text}`)
  })

  t.test(`${template} in JSON`, async t => {
    t.strictSame(JSON.parse(bodyOf(sentHttp({ json: [template, `-${template}-`] }, covered))), [whole, `-${part}-`])
    const ngsi = { text: { value: [template, `-${template}-`] } }
    const body = bodyOf(
      sentHttp({ ngsi }, { ...covered, attrs: ['text', 'covered'], attrsFormat: 'simplifiedKeyValues' }),
    )
    t.strictSame(JSON.parse(body).text, [whole, `-${part}-`])
  })
}

for (const [template, text, json] of syntaxCases)
  t.test(`macros of ${template}`, async t => {
    const message = sentHttp({ payload: template })
    t.equal('transport' in message ? bodyOf(message) : undefined, text)
    t.strictSame(JSON.parse(bodyOf(sentHttp({ json: [template] }))), [json])
  })

/** Headers that every notification has. */
const everywhere = new Map([
  ['User-Agent', 'ctxbroker/1.0'],
  ['Ctx-Service', 'acme'],
  ['Ctx-ServicePath', '/b1'],
  ['X-Auth-Token', 'tok'],
  ['Accept', 'application/json'],
  ['Ctx-Correlator', '0f0e; cbnotif=1'],
  ['Ctx-Notification-Id', 'n-1'],
])

/** Headers in the form of the table. */
function headerLines({ headers }: HttpMessage): string[] {
  const names = headers.map(([name]) => name)
  const missing = [...everywhere.keys()].filter(name => !names.includes(name)).map(name => `- ${name}`)
  const present = headers.filter(([name, value]) => everywhere.get(name) !== value)
  return [...present.map(([name, value]) => `${name}: ${value}`), ...missing]
}

for (const { rule, httpCustom, notification, method, url, body, headers } of httpCases)
  t.test(rule, async t => {
    const message = asHttp(sent({ ...notification, httpCustom }, { entity, authToken }))
    if (method !== undefined) t.equal(message.method, method)
    if (url !== undefined) t.equal(message.url, url)
    if (body !== undefined) t.equal(message.body ?? '(none)', body)
    if (headers !== undefined) t.strictSame(headerLines(message), headers)
  })

for (const { rule, ngsi, notification = patchSettings, sent: expected, format } of patchCases)
  t.test(rule, async t => {
    const message = asHttp(sentHttp({ ngsi }, notification))
    const isSimplified = String(notification.attrsFormat).startsWith('simplified')
    const whole = `{"subscriptionId":"65f0c2a1b4d3e2f1a0c9b8d7","data":[${expected}]}`
    t.equal(message.body, isSimplified ? expected : whole)
    if (format !== undefined) t.strictSame(message.headers.at(-1), ['Ngsiv2-AttrsFormat', format])
  })

for (const { rule, notification, values, text, level } of refusalCases)
  t.test(`not sent: ${rule}`, async t => {
    const message = sent(notification, { entity: roomOf(values ?? {}) })
    t.match(message, { level, text, failure: undefined })
  })

t.test('the log of a malformed URL does not show the values of macros', async t => {
  const message = sent({ httpCustom: { url: 'x://h/${authToken}', qs: { t: '${authToken}' } } }, { authToken: 'hush' })
  t.match(message, {
    text: "Runtime Error (not sending notification: malformed URL: 'x://h/${authToken}')",
  })
})

t.test('texts that macros make too long are a failure', async t => {
  for (const body of [
    { payload: '${a}${a}' },
    { json: ['${a}', '${a}'] },
    { ngsi: { b: { value: ['${a}', '${a}'] } } },
  ])
    for (const notification of [
      { httpCustom: { url: sink, ...body } },
      { mqttCustom: { url: 'mqtt://broker.example', topic: 't', ...body } },
    ]) {
      const facts = { entity: roomOf({ a: 'x'.repeat(600) }) }
      t.ok('transport' in sent(notification, facts, { filledLengthMax: 2_000 }))
      t.match(sent(notification, facts, { filledLengthMax: 1_000 }), {
        level: 'error',
        failure: 'total outgoing message size is too big',
      })
    }
})

t.test('the worked example of the specification', async t => {
  const httpCustom = {
    url: 'http://sink.example:9000/v1/${type}/${id}',
    method: 'PUT',
    qs: { tenant: '${service}', p: '${pressure}' },
    headers: { 'x-auth-token': '', 'x-zone': '${zone}', 'if-match': '%22*%22' },
    json: { t: '${temperature}', label: 'T is ${temperature}', pos: '${where}', p: '${pressure}' },
  }
  const facts = { entity: roomOf({ temperature: 21.5, where: { floor: 2 }, zone: 'north' }), authToken: 'secret' }
  t.strictSame(sent({ httpCustom }, facts), {
    transport: 'http',
    method: 'PUT',
    url: 'http://sink.example:9000/v1/Room/R1?tenant=acme',
    headers: [
      ['User-Agent', 'ctxbroker/1.0'],
      ['Ctx-Service', 'acme'],
      ['Ctx-ServicePath', '/b1'],
      ['Accept', 'application/json'],
      ['Content-Type', 'application/json; charset=utf-8'],
      ['Ctx-Correlator', '0f0e; cbnotif=1'],
      ['Ctx-Notification-Id', 'n-1'],
      ['Ngsiv2-AttrsFormat', 'custom'],
      ['if-match', '"*"'],
      ['x-zone', 'north'],
    ],
    body: '{"t":21.5,"label":"T is 21.5","pos":{"floor":2},"p":null}',
    timeoutMs: 0,
  })
})

t.test('attributes override service, servicePath and authToken, id and type cannot be overridden', async t => {
  const facts = { entity: roomOf({ service: 'S', servicePath: 'P', authToken: 'A', id: 'I', type: 'T' }) }
  const json = ['${service}', '${servicePath}', '${authToken}', '${id}', '${type}']
  t.equal(bodyOf(sent({ httpCustom: { url: sink, json } }, facts)), '["S","P","A","R1","Room"]')
})

t.test('service of the default tenant and authToken of a request without one are empty', async t => {
  const json = ['${service}', '${authToken}', '-${service}${authToken}-']
  t.equal(bodyOf(sent({ httpCustom: { url: sink, json } }, { tenant: '' })), '["","","--"]')
})

t.test('macros do not depend on the attributes that are listed', async t => {
  t.equal(bodyOf(sentHttp({ payload: '${text} ${dateCreated}' }, { attrs: ['whole'] })), 'ab 2024-05-01T08:00:00.000Z')
})

t.test('a custom MQTT message has the contents of the same HTTP notification', async t => {
  for (const body of [
    {},
    { payload: 'n %22${number}%22' },
    { payload: null },
    { json: ['${text}'] },
    { ngsi: { id: 'x' } },
  ]) {
    const mqttCustom = {
      url: 'mqtt://broker.example',
      topic: 't/${id}',
      qos: 1,
      retain: true,
      user: 'u',
      passwd: 'p',
      ...body,
    }
    t.strictSame(sent({ mqttCustom }, { entity, authToken }), {
      transport: 'mqtt',
      url: 'mqtt://broker.example',
      topic: 't/R1',
      body: asHttp(sentHttp(body)).body,
      qos: 1,
      retain: true,
      login: { user: 'u', passwd: 'p' },
    })
  }
})

// Any templates and values

/** Texts that often break out of the place they are put into. */
const nasty = fc.string({
  unit: fc.oneof(
    fc.constantFrom(
      '\r',
      '\n',
      '\0',
      '\t',
      '\x7f',
      '\x85',
      '"',
      '\\',
      '%',
      '0',
      'd',
      'a',
      '%0d',
      '%0a',
      '%0',
      '${',
      '}',
    ),
    fc.constantFrom('${a}', '${b}', '${c}', '${o}', ':', ' ', '/', '#', '+', 'é', '😀', '\ud800', 'x'),
  ),
})
const value = fc.oneof(nasty, fc.jsonValue() as fc.Arbitrary<Json>)
const values = fc.record({ a: value, b: value, c: value, o: fc.dictionary(nasty, value) })
/** Texts without the characters that a subscription may not have. */
const template = nasty.map(text => text.replace(/[<>"'=;()]/g, ''))
const runs = { numRuns: 2_000 }

t.test('a body of json or ngsi is JSON', async t => {
  const isJson = fc.property(values, fc.array(template), (values, items) => {
    const facts = { entity: roomOf(values) }
    JSON.parse(bodyOf(sent({ httpCustom: { url: sink, json: { items, deep: [{ items }] } } }, facts)))
    const ngsi = { id: 'x${a}', type: '${b}', t: { value: items } }
    for (const attrsFormat of ['normalized', 'simplifiedKeyValues', 'simplifiedNormalized'])
      JSON.parse(bodyOf(sent({ attrsFormat, httpCustom: { url: sink, ngsi } }, facts)))
  })
  t.doesNotThrow(() => fc.assert(isJson, runs))
})

t.test('no control character gets into a header, an address or a topic', async t => {
  let refusedCount = 0
  let sentCount = 0
  const isFree = fc.property(values, template, template, template, (values, first, second, third) => {
    const facts = { entity: roomOf(values) }
    const http = {
      url: `http://h/${first}\${a}`,
      headers: { [`x${second}`]: third, 'content-type': first },
      qs: { q: second },
    }
    const messages = [
      sent({ httpCustom: { ...http, payload: 'x' } }, facts),
      sent({ httpCustom: { url: sink, headers: { x: third }, payload: 'x' } }, facts),
      sent({ mqttCustom: { url: 'mqtt://h', topic: `t/${first.replace(/[+#]/g, '')}` } }, facts),
    ]
    for (const message of messages) {
      if (!('transport' in message)) {
        refusedCount++
        continue
      }
      sentCount++
      const texts = message.transport === 'http' ? [message.url, ...message.headers.flat()] : [message.topic]
      if (texts.some(text => /\p{Cc}/u.test(text))) throw new Error(JSON.stringify(message))
    }
  })
  t.doesNotThrow(() => fc.assert(isFree, runs))
  t.ok(refusedCount > 100 && sentCount > 100, `${refusedCount} refused, ${sentCount} sent`)
})
