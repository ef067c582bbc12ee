// Whether a subscription that an event matches triggers, and the rule that holds it back.
import t from 'tap'
import type { Event } from '../../../src/domain/subscriptions/event.js'
import {
  noProgress,
  type Subscription,
  type SubscriptionProgress,
} from '../../../src/domain/subscriptions/subscription.js'
import {
  changedAttrs,
  decideTrigger,
  isNotificationLoop,
  matches,
} from '../../../src/domain/subscriptions/triggering.js'
import { eventAfter, room, updatedMs } from '../../support/events.js'
import { subscription } from '../../support/subscriptions.js'

interface Wish {
  readonly entities?: string
  readonly condition?: string
  readonly notification?: string
  readonly rest?: string
  readonly path?: string
}

/** A subscription whose parts are given as JSON without the braces. */
const wish = ({
  entities = '{"idPattern":".*"}',
  condition,
  notification = '',
  rest = '',
  path = '/#',
}: Wish): Subscription =>
  subscription(
    `{"subject":{"entities":[${entities}]${condition === undefined ? '' : `,"condition":{${condition}}`}},
      "notification":{"http":{"url":"http://h"}${notification && `,${notification}`}}${rest && `,${rest}`}}`,
    path,
  )

const stored = '{"temperature":{"value":20},"humidity":{"value":5,"metadata":{"unit":{"value":"%"}}}}'
const warmer = (): Event => eventAfter(room(stored), 'PATCH', '{"temperature":21}')

const fires = (
  subscription: Subscription,
  event: Event,
  progress: SubscriptionProgress = noProgress,
  nowMs = updatedMs,
) => decideTrigger(subscription, progress, event, nowMs)

// Watched entities (docs/interface/entities.md#changes, docs/interface/subscriptions.md#service-path-rule)

const entityCases: readonly (readonly [entities: string, matches: boolean])[] = [
  ['{"id":"R1"}', true],
  ['{"id":"R1","type":"Room"}', true],
  ['{"id":"R1","type":"Hall"}', false],
  ['{"id":"R2"},{"id":"R1"}', true],
  ['{"id":"r1"}', false],
  ['{"idPattern":"1"}', true],
  ['{"idPattern":"^1"}', false],
  ['{"idPattern":"^R[0-9]$","typePattern":"oo"}', true],
  ['{"idPattern":".*","typePattern":"^oo"}', false],
  ['{"idPattern":".*","type":"Room"}', true],
  ['{"idPattern":"(R|X)1"}', true],
]

t.test('an entity is watched when any element means its id and its type', async t => {
  for (const [entities, wanted] of entityCases) t.equal(matches(wish({ entities }), warmer()), wanted, entities)
})

const pathCases: readonly (readonly [watched: string, path: string, matches: boolean])[] = [
  ['/#', '/', true],
  ['/#', '/a/b', true],
  ['/', '/', true],
  ['/', '/a', false],
  ['/a/b', '/a/b', true],
  ['/a/b', '/a', false],
  ['/a/b/#', '/a/b', true],
  ['/a/b/#', '/a/b/c', true],
  ['/a/b/#', '/a/b2', false],
]

t.test('a subscription watches its path, or with a wildcard all paths below it', async t => {
  for (const [watched, path, wanted] of pathCases)
    t.equal(
      matches(wish({ path: watched }), eventAfter(room('{}'), 'POST', '{"a":1}', path)),
      wanted,
      `${watched} ${path}`,
    )
})

t.test('an inactive subscription matches nothing', async t => {
  t.notOk(matches(wish({ rest: '"status":"inactive"' }), warmer()))
  t.ok(matches(wish({ rest: '"status":"oneshot"' }), warmer()))
})

// Rules that hold back, in the order of docs/interface/subscriptions.md#triggering

t.test('a subscription that has been spent, by its one shot or by failures, does not trigger', async t => {
  const once = wish({ rest: '"status":"oneshot"' })
  t.equal(fires(once, warmer()), 'fires')
  t.equal(fires(once, warmer(), { ...noProgress, spentRevision: once.statusRevision }), 'status')
})

t.test('a subscription triggers until the instant at which it expires', async t => {
  const dated = wish({ rest: '"expires":"2024-05-01T00:00:05.000Z"' })
  t.equal(fires(dated, warmer(), noProgress, Date.UTC(2024, 4, 1, 0, 0, 5)), 'fires')
  t.equal(fires(dated, warmer(), noProgress, Date.UTC(2024, 4, 1, 0, 0, 5, 1)), 'expires')
})

t.test('a notification too soon after the last one is dropped, to the millisecond', async t => {
  const slow = wish({ rest: '"throttling":5' })
  const progress = { ...noProgress, lastNotificationMs: updatedMs }
  t.equal(fires(slow, warmer()), 'fires')
  t.equal(fires(slow, warmer(), progress, updatedMs + 4999), 'throttling')
  t.equal(fires(slow, warmer(), progress, updatedMs + 5000), 'fires')
})

t.test('of several reasons the first in the order of the rules is returned', async t => {
  const all = wish({
    condition:
      '"expression":{"q":"temperature>90","mq":"temperature.unit==x","georel":"near;maxDistance:1","geometry":"point","coords":"1,2"}',
    notification: '"attrs":["none"],"onlyChangedAttrs":true',
    rest: '"throttling":5,"expires":"2024-01-01"',
  })
  const spent = { ...noProgress, spentRevision: all.statusRevision, lastNotificationMs: updatedMs }
  t.equal(fires(all, warmer(), spent), 'status')
  t.equal(fires(all, warmer(), { ...spent, spentRevision: 0 }), 'expires')
  const { expiresMs: _, ...rest } = all
  const lasting = { ...rest, expiresMs: undefined }
  t.equal(fires(lasting, warmer(), { ...spent, spentRevision: 0 }), 'onlyChangedAttrs')
  const whole = { ...lasting, notification: { ...all.notification, onlyChangedAttrs: false } }
  t.equal(fires(whole, warmer(), { ...spent, spentRevision: 0 }), 'throttling')
  t.equal(fires(whole, warmer()), 'mq')
})

// Expressions (docs/interface/subscriptions.md#expressions)

const expressionCases: readonly (readonly [expression: string, request: string, body: string, verdict: string])[] = [
  ['"q":"temperature>20"', 'PATCH', '{"temperature":21}', 'fires'],
  ['"q":"temperature<21"', 'PATCH', '{"temperature":21}', 'q'],
  ['"q":"humidity==5"', 'PATCH', '{"temperature":21}', 'fires'],
  ['"q":"temperature"', 'DELETE temperature', '', 'q'],
  ['"q":"!temperature"', 'DELETE temperature', '', 'fires'],
  ['"q":"dateModified==2024-05-01T00:00:05Z"', 'PATCH', '{"temperature":21}', 'fires'],
  ['"q":"dateCreated==2024-05-01"', 'PATCH', '{"temperature":21}', 'fires'],
  ['"q":"servicePath==/"', 'PATCH', '{"temperature":21}', 'fires'],
  ['"q":"dateExpires"', 'PATCH', '{"temperature":21}', 'q'],
  ['"mq":"humidity.unit==%"', 'PATCH', '{"temperature":21}', 'fires'],
  ['"mq":"temperature.unit"', 'PATCH', '{"temperature":21}', 'mq'],
  ['"mq":"temperature.dateModified==2024-05-01T00:00:05Z"', 'PATCH', '{"temperature":21}', 'fires'],
  ['"mq":"temperature.previousValue==20"', 'PATCH', '{"temperature":21}', 'fires'],
  ['"mq":"temperature.previousValue==21"', 'PATCH', '{"temperature":21}', 'mq'],
  ['"mq":"temperature.previousValue==20"', 'PATCH forcedUpdate', '{"temperature":20}', 'fires'],
  ['"mq":"humidity.previousValue"', 'PATCH', '{"temperature":21}', 'mq'],
  ['"mq":"!humidity.previousValue"', 'PATCH', '{"temperature":21}', 'fires'],
  ['"mq":"temperature.actionType==update"', 'PATCH', '{"temperature":21}', 'fires'],
  ['"mq":"co2.actionType==append"', 'POST', '{"co2":400}', 'fires'],
  ['"mq":"co2.previousValue"', 'POST', '{"co2":400}', 'mq'],
  ['"mq":"humidity.unit==%;temperature.actionType==update"', 'PATCH', '{"temperature":21}', 'fires'],
  ['"mq":"humidity.actionType"', 'PATCH', '{"temperature":21}', 'mq'],
]

t.test('an expression is asked of the entity as the request left it', async t => {
  for (const [expression, request, body, verdict] of expressionCases) {
    const wished = wish({ condition: `"expression":{${expression}}` })
    const event = eventAfter(room(stored), request, body)
    t.equal(matches(wished, event) ? fires(wished, event) : 'q', verdict, `${expression} ${request} ${body}`)
  }
})

t.test('metadata of an event have precedence over stored metadata of that name', async t => {
  const before = room('{"a":{"value":1,"metadata":{"previousValue":{"value":77},"actionType":{"value":"x"}}}}')
  const event = eventAfter(before, 'PATCH', '{"a":2}')
  t.equal(fires(wish({ condition: '"expression":{"mq":"a.previousValue==1;a.actionType==update"}' }), event), 'fires')
  t.equal(fires(wish({ condition: '"expression":{"mq":"a.previousValue==77"}' }), event), 'mq')
})

t.test('a previous date is compared as a date', async t => {
  const event = eventAfter(room('{"when":{"type":"DateTime","value":"2024-01-01"}}'), 'DELETE when')
  t.equal(fires(wish({ condition: '"expression":{"mq":"when.previousValue==2024-01-01"}' }), event), 'mq', 'deleted')
  const before = room('{"when":{"type":"DateTime","value":"2024-01-01"}}')
  const moved = eventAfter(before, 'PATCH', '{"when":{"type":"DateTime","value":"2024-01-02"}}')
  t.equal(fires(wish({ condition: '"expression":{"mq":"when.previousValue<2024-01-02"}' }), moved), 'fires')
})

const near = '"georel":"near;maxDistance:1000","geometry":"point","coords":"41.4,2.2"'
const at = (latitude: number) => `{"place":{"type":"geo:point","value":"${latitude}, 2.2"}}`

t.test('a geographical expression is asked of the location after the update, each time anew', async t => {
  const inside = wish({ condition: `"expression":{${near}}` })
  t.equal(fires(inside, eventAfter(room(at(10)), 'PATCH', at(41.4))), 'fires')
  t.equal(fires(inside, eventAfter(room(at(41.4)), 'PATCH', at(41.401))), 'fires', 'within before, and still')
  t.equal(fires(inside, eventAfter(room(at(41.4)), 'PATCH', at(10))), 'geo')
  t.equal(fires(inside, eventAfter(room('{"a":1}'), 'PATCH', '{"a":2}')), 'geo', 'no location')
  t.equal(fires(inside, eventAfter(room(at(41.4)), 'DELETE place')), 'geo', 'the location has gone')
})

t.test('of a deleted entity the last state is asked, its location too', async t => {
  const condition = `"alterationTypes":["entityDelete"],"expression":{"q":"place",${near}}`
  t.equal(fires(wish({ condition }), eventAfter(room(at(41.4)), 'DELETE')), 'fires')
  t.equal(fires(wish({ condition }), eventAfter(room(at(10)), 'DELETE')), 'geo')
})

// onlyChangedAttrs (docs/interface/notifications.md#only-changed-attributes)

const listCases: readonly (readonly [lists: string, request: string, body: string, names: string])[] = [
  ['"attrs":[]', 'PATCH', '{"temperature":21}', 'temperature'],
  ['"attrs":[]', 'PATCH', '{"temperature":20,"humidity":6}', 'temperature humidity'],
  ['"attrs":["humidity","temperature"]', 'PATCH', '{"temperature":21}', 'temperature'],
  ['"attrs":["humidity"]', 'PATCH', '{"temperature":21}', ''],
  ['"attrs":["humidity","alterationType"]', 'PATCH', '{"temperature":21}', 'alterationType'],
  ['"attrs":["dateModified","dateCreated"]', 'PATCH', '{"temperature":21}', 'dateModified dateCreated'],
  ['"attrs":["servicePath","dateExpires"]', 'PATCH', '{"temperature":21}', ''],
  ['"attrs":["*","alterationType"]', 'PATCH', '{"temperature":21}', 'temperature alterationType'],
  ['"attrs":["*","temperature"]', 'PATCH', '{"temperature":21}', 'temperature'],
  ['"exceptAttrs":["temperature"]', 'PATCH', '{"temperature":21}', ''],
  ['"exceptAttrs":["humidity"]', 'PATCH', '{"temperature":21}', 'temperature'],
  ['"attrs":["temperature"]', 'DELETE temperature', '', 'temperature'],
  ['"attrs":["humidity"]', 'PUT', '{"temperature":21}', ''],
  ['"attrs":[]', 'DELETE', '', ''],
  ['"attrs":["temperature"]', 'DELETE', '', ''],
  ['"attrs":["alterationType"]', 'DELETE', '', 'alterationType'],
  ['"attrs":[]', 'POST', '{"dateExpires":{"type":"DateTime","value":"2030-01-01"}}', ''],
  ['"attrs":["dateExpires"]', 'POST', '{"dateExpires":{"type":"DateTime","value":"2030-01-01"}}', 'dateExpires'],
]

t.test('with onlyChangedAttrs the names are those of the request, and without any nothing is sent', async t => {
  for (const [lists, request, body, names] of listCases) {
    const one = wish({ notification: `${lists},"onlyChangedAttrs":true` })
    const event = eventAfter(room(stored), request, body)
    t.equal(changedAttrs(one.notification, event).join(' '), names, `${lists} ${request} ${body}`)
    t.equal(fires(one, event), names === '' ? 'onlyChangedAttrs' : 'fires', `${lists} ${request} ${body}`)
  }
})

t.test('an update that came back in a circle of custom notifications is known by its correlator', async t => {
  t.ok(isNotificationLoop('root', 'root'))
  t.notOk(isNotificationLoop('other', 'root'), 'another request')
  t.notOk(isNotificationLoop('root', undefined), 'a new entity')
  t.notOk(isNotificationLoop('', ''), 'no correlator')
})
