// Watchers under a grant: events as they see them, and filters of streams with the grant of their readers.

import t from 'tap'
import { type Grant, grantWithin } from '../../../src/domain/access/grant.js'
import {
  EventViews,
  eventAsSeen,
  grantOfWatcher,
  matchesUnder,
  withGrant,
} from '../../../src/domain/access/watching.js'
import type { JsonObject } from '../../../src/domain/json.js'
import { compileFilter, type FilterSource } from '../../../src/domain/streams/change-filter.js'
import { watchOfMessage } from '../../../src/domain/streams/watch-parser.js'
import { type Event, eventOf } from '../../../src/domain/subscriptions/event.js'
import { parseSubscription } from '../../../src/domain/subscriptions/subscription-parser.js'
import { demand, grantsOf } from '../../support/access.js'
import { eventAfter, room } from '../../support/events.js'

const rule = (parts: JsonObject): JsonObject => ({ actions: ['subscribe', 'stream'], tenants: ['city'], ...parts })
const grant = (...rules: JsonObject[]): Grant => grantWithin(grantsOf(rules.map(rule), 'city')('subscribe'), ['/#'])
const conditionFor = (...rules: JsonObject[]) => {
  const found = grant(...rules)
  if (found.kind !== 'narrowed') throw new Error(found.kind)
  return found.condition
}

const hidesCost = conditionFor({ attributes: ['*', '!cost'] })
const before = room('{"temp": 20, "cost": 5}')

t.test('a change of a hidden attribute alone is no change', async t => {
  const event = eventAsSeen(hidesCost, eventAfter(before, 'PATCH', '{"cost": 6}'))!
  t.equal(event.class, 'update')
  t.strictSame([event.named, event.changedValues, event.alterations], [new Set(), new Set(), []])
  t.strictSame([...event.entity.attributes.keys()], ['temp'])
  t.strictSame([...event.before!.attributes.keys()], ['temp'])
})

t.test('a change of both shows one', async t => {
  const event = eventAsSeen(hidesCost, eventAfter(before, 'PATCH', '{"cost": 6, "temp": 21}'))!
  t.equal(event.class, 'change')
  t.strictSame([...event.named], ['temp'])
})

t.test('an update of a hidden attribute beside an unchanged one is an update', async t => {
  const event = eventAsSeen(hidesCost, eventAfter(before, 'PATCH', '{"cost": 6, "temp": 20}'))!
  t.equal(event.class, 'update')
  t.strictSame([...event.named], ['temp'])
})

t.test('creations and deletions stay what they are', async t => {
  t.equal(eventAsSeen(hidesCost, eventAfter(undefined, 'POST', '{"cost": 6}'))?.class, 'create')
  t.equal(eventAsSeen(hidesCost, eventAfter(before, 'DELETE'))?.class, 'delete')
})

t.test('an event that shows everything is the same object', async t => {
  const event = eventAfter(before, 'PATCH', '{"temp": 21}')
  t.equal(eventAsSeen(conditionFor({ types: ['Room'] }), event), event)
})

t.test('an event of an entity that is not covered is none', async t => {
  const event = eventAfter(before, 'PATCH', '{"temp": 21}')
  t.equal(eventAsSeen(conditionFor({ types: ['Lamp'] }), event), undefined)
  t.equal(eventAsSeen(conditionFor({ paths: ['/a/#'] }), event), undefined)
})

t.test('the view of an event under a condition is made once', async t => {
  const views = new EventViews(eventAfter(before, 'PATCH', '{"temp": 21}'))
  t.equal(views.under(hidesCost), views.under(hidesCost))
  const none = conditionFor({ types: ['Lamp'] })
  t.equal(views.under(none), undefined)
  t.equal(views.under(none), undefined)
  t.equal(views.under(undefined)?.class, 'change')
})

const head = { id: '0'.repeat(24), tenant: 'city', servicePath: '/#' }
const subscription = (condition: JsonObject) =>
  demand(
    parseSubscription(
      {
        value: {
          subject: { entities: [{ idPattern: '.*' }], condition },
          notification: { http: { url: 'http://r/' } },
        },
        duplicates: [],
        deep: false,
      },
      head,
    ),
  )

t.test('a watcher matches what it sees', async t => {
  const any = subscription({ alterationTypes: ['entityChange', 'entityUpdate', 'entityDelete'] })
  const matches = (event: Event) => matchesUnder(hidesCost, any, event)
  t.notOk(matches(eventAfter(before, 'PATCH', '{"cost": 6}')), 'a hidden change')
  t.ok(matches(eventAfter(before, 'PATCH', '{"temp": 21}')))
  t.ok(matches(eventAfter(before, 'DELETE')))
  t.ok(matchesUnder(undefined, any, eventAfter(before, 'PATCH', '{"cost": 6}')), 'without a condition')
  t.notOk(matchesUnder(conditionFor({ types: ['Lamp'] }), any, eventAfter(before, 'DELETE')))
})

t.test('when the file changes, a subscription that would be refused has no grant', async t => {
  const watcher = subscription({ expression: { q: 'cost>5' } })
  const wide = grantOfWatcher(grant({}), 'subscribe', watcher)
  t.match(wide, { ok: true, value: { kind: 'all' } })
  const narrow = grantOfWatcher(grant({ attributes: ['temp'] }), 'subscribe', watcher)
  t.match(narrow, { ok: false, refusal: { code: 'filterNotAllowed', filter: 'q', attribute: 'cost' } })
  const none = grantOfWatcher({ kind: 'denied', reason: 'action' }, 'subscribe', watcher)
  t.match(none, { ok: false, refusal: { code: 'actionNotAllowed', action: 'subscribe', paths: '/#', tenant: 'city' } })
})

const filterOf = (message: JsonObject): FilterSource =>
  demand(watchOfMessage({ tenant: 'city', servicePath: '/#' }, message)).source

t.test('the filter of a stream carries the grant of its readers as plain data', async t => {
  const source = filterOf({ type: 'Room' })
  const narrowed = grant({ paths: ['/a/#'], ids: ['R1', { pattern: '^S' }], attributes: ['*', '!cost'] })
  if (narrowed.kind !== 'narrowed') return void t.fail(narrowed.kind)
  const sent = withGrant(source, narrowed)
  t.strictSame(JSON.parse(JSON.stringify(sent)), {
    ...JSON.parse(JSON.stringify(source)),
    grant: JSON.parse(JSON.stringify(narrowed.condition.clauses)),
  })
  const condition = demand(compileFilter('', JSON.parse(JSON.stringify(sent)))).grant!
  t.ok(condition.covers({ path: '/a/b', type: 'Room', id: 'S9' }))
  t.notOk(condition.covers({ path: '/a/b', type: 'Room', id: 'T9' }))
  t.notOk(condition.covers({ path: '/', type: 'Room', id: 'R1' }))
  const whole = grant({})
  if (whole.kind === 'all') t.equal(demand(compileFilter('', withGrant(source, whole))).grant, undefined)
})

t.test('a stream is refused as a subscription is', async t => {
  const source = filterOf({ type: 'Room', conditionAttrs: ['cost'] })
  const { tenant, servicePath, entities, condition } = demand(compileFilter('', source))
  const part = { tenant, servicePath, entities, condition }
  const refused = grantOfWatcher(grant({ attributes: ['temp'] }), 'stream', part)
  t.match(refused, { ok: false, refusal: { code: 'filterNotAllowed', attribute: 'cost' } })
  const allowed = grantOfWatcher(grant({ attributes: ['temp'] }, { types: ['Room'] }), 'stream', part)
  t.ok(allowed.ok)
})

t.test('the creation of an entity whose attributes are all hidden is seen by streams', async t => {
  const filter = demand(compileFilter('', filterOf({})))
  const event = eventOf({ before: undefined, after: before, alterations: [] }, { tenant: 'city', path: '/' })
  t.ok(matchesUnder(conditionFor({ attributes: ['x'] }), filter, event))
  t.notOk(matchesUnder(conditionFor({ types: ['Lamp'] }), filter, event))
})
