// The shown and the stored form of subscriptions. The shown forms of given ones are in
// test/cases/subscription-views.ts.
import { isDeepStrictEqual } from 'node:util'
import t, { type Test } from 'tap'
import {
  type Condition,
  noProgress,
  type SubscriptionProgress,
} from '../../../src/domain/subscriptions/subscription.js'
import {
  decodeProgress,
  decodeSubscription,
  encodeProgress,
  encodeSubscription,
  renderSubscription,
  SubscriptionReader,
} from '../../../src/domain/subscriptions/subscription-json.js'
import * as cases from '../../cases/subscription-views.js'
import { Random } from '../../support/random.js'
import { randomBody } from '../../support/random-subscription.js'
import { afterPatch, subscription, subscriptionId } from '../../support/subscriptions.js'

const nowMs = Date.UTC(2026, 1, 3, 12)

const shown = (body: string, progress = noProgress): string => renderSubscription(subscription(body), progress, nowMs)

const subject = '"subject":{"entities":[{"id":"E"}]}'
const shownSubject = '"subject":{"entities":[{"id":"E"}],"condition":{"attrs":[],"notifyOnMetadataChange":true}}'
const http = '"http":{"url":"http://h"}'
const shownNotification = `"notification":{"attrs":[],"onlyChangedAttrs":false,"attrsFormat":"normalized",${http},"covered":false}`

const withComma = (members: string): string => (members === '' ? '' : `,${members}`)

t.test('the example of the specification is shown literally', async t => {
  const body = `{"throttling":5,"notification":{"attrsFormat":"keyValues","http":{"timeout":2000,"url":"http://sink.example:8080/in"},"attrs":["temperature","humidity"]},
    "subject":{"condition":{"alterationTypes":["entityChange"],"expression":{"q":"temperature<4"},"attrs":["temperature"]},"entities":[{"type":"Room","idPattern":"^room"}]},
    "expires":"2031-01-01","description":"cold rooms"}`
  const answeredMs = Date.UTC(2026, 1, 3, 10, 15, 0, 999)
  const progress = {
    ...noProgress,
    timesSent: 3,
    lastNotificationMs: answeredMs,
    lastSuccessMs: answeredMs,
    lastSuccessCode: 200,
  }
  const expected = `{
    "id": "65f0c2a1b4d3e2f1a0c9b8d7",
    "description": "cold rooms",
    "expires": "2031-01-01T00:00:00.000Z",
    "status": "active",
    "subject": {
      "entities": [ { "idPattern": "^room", "type": "Room" } ],
      "condition": {
        "attrs": [ "temperature" ],
        "expression": { "q": "temperature<4" },
        "alterationTypes": [ "entityChange" ],
        "notifyOnMetadataChange": true
      }
    },
    "notification": {
      "timesSent": 3,
      "lastNotification": "2026-02-03T10:15:00.000Z",
      "attrs": [ "temperature", "humidity" ],
      "onlyChangedAttrs": false,
      "attrsFormat": "keyValues",
      "http": { "url": "http://sink.example:8080/in", "timeout": 2000 },
      "lastSuccess": "2026-02-03T10:15:00.000Z",
      "lastSuccessCode": 200,
      "covered": false
    },
    "throttling": 5
  }`
  t.equal(shown(body, progress), JSON.stringify(JSON.parse(expected)))
})

t.test('simple fields are shown in their order, or left out', async t => {
  for (const [what, json, expected] of cases.shownFields) {
    const [before, after = ''] = expected.split(',"throttling"')
    const throttling = after && `,"throttling"${after}`
    t.equal(
      shown(`{${subject},"notification":{${http}}${withComma(json)}}`),
      `{"id":"${subscriptionId}",${before},${shownSubject},${shownNotification}${throttling}}`,
      what,
    )
  }
})

t.test('subjects are shown in their order', async t => {
  for (const [what, json, expected] of cases.shownSubjects) {
    const whole = `{"id":"${subscriptionId}","status":"active","subject":${expected},${shownNotification}}`
    t.equal(shown(`{"subject":${json},"notification":{${http}}}`), whole, what)
  }
})

t.test('transports are shown in their order, passwords never', async t => {
  for (const [what, json, expected] of cases.shownTransports) {
    const whole = `{"id":"${subscriptionId}","status":"active",${shownSubject},${shownNotification.replace(http, () => expected)}}`
    t.equal(shown(`{${subject},"notification":{${json}}}`), whole, what)
  }
})

t.test('settings of a notification are shown in their order', async t => {
  for (const [what, json, expected] of cases.shownSettings) {
    const notification = `"notification":{${expected.replace('T,', `${http},`)}}`
    const whole = `{"id":"${subscriptionId}","status":"active",${shownSubject},${notification}}`
    t.equal(shown(`{${subject},"notification":{${http}${withComma(json)}}}`), whole, what)
  }
})

const busy: SubscriptionProgress = {
  timesSent: 12,
  lastNotificationMs: 5_999,
  lastSuccessMs: 4_001,
  lastSuccessCode: 404,
  lastFailureMs: 3_000,
  lastFailureReason: 'Timeout was reached',
  failsCounter: 2,
  spentRevision: 0,
}

t.test('counters are shown around the settings, their times in whole seconds', async t => {
  t.match(
    shown(`{${subject},"notification":{${http},"metadata":["m"],"maxFailsLimit":9}}`, busy),
    '"notification":{"timesSent":12,"lastNotification":"1970-01-01T00:00:05.000Z","attrs":[],"onlyChangedAttrs":false,' +
      `"attrsFormat":"normalized",${http},"metadata":["m"],"lastFailure":"1970-01-01T00:00:03.000Z",` +
      '"lastFailureReason":"Timeout was reached","lastSuccess":"1970-01-01T00:00:04.000Z","lastSuccessCode":404,' +
      '"maxFailsLimit":9,"failsCounter":2,"covered":false}',
  )
})

t.test('no code and no reason is shown with MQTT', async t => {
  const text = shown(`{${subject},"notification":{"mqtt":{"url":"mqtt://h","topic":"t"}}}`, busy)
  t.match(text, '"lastFailure":"1970-01-01T00:00:03.000Z","lastSuccess":"1970-01-01T00:00:04.000Z","failsCounter":2')
})

/** Random bodies, of this number, for which a property does not hold. */
function failing(t: Test, count: number, holds: (body: string, random: Random) => boolean): string[] {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  return Array.from({ length: count }, () => randomBody(random)).filter(body => !holds(body, random))
}

t.test('a shown subscription is accepted again, and shown the same', async t => {
  t.strictSame(
    failing(t, 1_000, body => shown(shown(body)) === shown(body)),
    [],
  )
})

t.test('a PATCH with all that is shown of one subscription makes another one like it', async t => {
  const nothing = { description: '', expires: '', throttling: 0 }
  const isLike = (body: string, random: Random) => {
    const patch = JSON.stringify({ ...nothing, ...JSON.parse(shown(body)) })
    const before = subscription(randomBody(random))
    // A mask means the stored secret. Only a subscription with the same transport has that secret.
    const { transport } = subscription(body).notification
    const after = afterPatch(
      hasSecret(body) ? { ...before, notification: { ...before.notification, transport } } : before,
      patch,
    )
    return renderSubscription(after, noProgress, nowMs) === shown(body)
  }
  t.strictSame(failing(t, 1_000, isLike), [])
})

const hasSecret = (body: string): boolean => shown(body).includes('"*****"')

/** A condition with all of its expression, because a stored one is compiled only when it is used. */
const compiled = ({ expression: { source, q, mq, geo }, ...condition }: Condition) => [source, q, mq, geo, condition]

t.test('a subscription is stored without loss, compiled expressions included', async t => {
  const isKept = (body: string) => {
    const before = subscription(body, '/a/#')
    const after = decodeSubscription(encodeSubscription(before))
    return (
      isDeepStrictEqual(compiled(after.condition), compiled(before.condition)) &&
      // Deep equality would distinguish absent members from undefined ones, texts do not.
      encodeSubscription(after) === encodeSubscription(before) &&
      renderSubscription(after, busy, nowMs) === renderSubscription(before, busy, nowMs)
    )
  }
  t.strictSame(failing(t, 1_000, isKept), [])
})

t.test('the stored form keeps the password and where the subscription belongs', async t => {
  const body = `{${subject},"notification":{"mqtt":{"url":"mqtt://h","topic":"t","user":"u","passwd":"secret"}}}`
  const { tenant, servicePath, notification } = decodeSubscription(
    encodeSubscription({ ...subscription(body, '/a'), tenant: 'acme' }),
  )
  t.strictSame([tenant, servicePath], ['acme', '/a'])
  t.match(notification.transport, { login: { user: 'u', passwd: 'secret' } })
})

t.test('the stored form of earlier releases is read', async t => {
  const wanted = subscription(`{${subject},"notification":{${http}}}`)
  const [head, condition, notification] = encodeSubscription(wanted)
    .split('\n')
    .map(line => JSON.parse(line))
  const earlier = JSON.stringify({ ...head, version: 1, condition, notification })
  t.equal(encodeSubscription(decodeSubscription(earlier)), encodeSubscription(wanted))
  t.throws(() => decodeSubscription('{"version":3}'), /has version 3/)
})

t.test('equal parts of subscriptions that are read one after the other are there once', async t => {
  const reader = new SubscriptionReader()
  const [one, another, third] = ['a', 'a', 'b'].map(attribute => {
    const watched = `"subject":{"entities":[{"id":"E"}],"condition":{"attrs":["${attribute}"]}}`
    return reader.read(encodeSubscription(subscription(`{${watched},"notification":{${http}}}`)))
  })
  t.equal(another!.condition, one!.condition)
  t.equal(third!.notification, one!.notification)
  t.strictSame(third!.condition.attrs, ['b'])
})

t.test('a progress is stored without loss', async t => {
  for (const progress of [noProgress, busy]) t.strictSame(decodeProgress(encodeProgress(progress)), progress)
})

t.test('a stored form of another version is not read', async t => {
  const stored = encodeSubscription(subscription(`{${subject},"notification":{${http}}}`))
  t.throws(
    () => decodeSubscription(stored.replace('"version":2', '"version":3')),
    /has version 3, and this release reads version 2/,
  )
  t.throws(() => decodeProgress('{"version":2}'), /has version 2/)
})
