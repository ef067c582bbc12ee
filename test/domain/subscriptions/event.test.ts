// Requests as events for subscriptions: their class, the names they touch, and the conditions they concern.
import t from 'tap'
import {
  actionTypeOf,
  alterationTypeOf,
  concerns,
  type Event,
  previousOf,
} from '../../../src/domain/subscriptions/event.js'
import type { AlterationType, Condition } from '../../../src/domain/subscriptions/subscription.js'
import { eventAfter, room } from '../../support/events.js'

const condition = (attrs = '', types = '', notifyOnMetadataChange = true): Condition => ({
  attrs: attrs.split(' ').filter(name => name !== ''),
  alterationTypes: types.split(' ').filter(type => type !== '') as AlterationType[],
  notifyOnMetadataChange,
  expression: { source: {}, q: undefined, mq: undefined, geo: undefined },
})

const stored = '{"a":{"value":1},"b":{"value":2,"metadata":{"m":{"value":3}}}}'

/** named | value or type changed | metadata changed */
const shownEvent = ({ class: kind, ...event }: Event): string =>
  [kind, ...[event.named, event.changedValues, event.changedMetadata].map(names => [...names].join(' '))].join(' | ')

/** Requests about an entity with `a` and `b`, and their events. */
const events: readonly (readonly [request: string, body: string, event: string])[] = [
  ['PATCH', '{"a":5}', 'change | a | a | '],
  ['PATCH', '{"a":1}', 'update | a |  | '],
  ['PATCH', '{"a":5,"b":2}', 'change | a b | a | '],
  ['PATCH', '{"a":{"value":1,"type":"T"}}', 'change | a | a | '],
  ['PATCH', '{"b":{"value":2,"metadata":{"m":{"value":4}}}}', 'change | b |  | b'],
  ['PATCH', '{"b":{"value":2,"metadata":{"n":{"value":4}}}}', 'change | b |  | b'],
  ['PATCH overrideMetadata', '{"b":2}', 'change | b |  | b'],
  ['PATCH', '{"b":{"value":9,"metadata":{}}}', 'change | b | b | b'],
  ['PATCH', '{"a":{"type":"Number"},"b":{"value":2}}', 'change | a b | a | '],
  ['PATCH', '{"a":"1"}', 'change | a | a | '],
  ['PATCH', '{"a":{"$inc":0}}', 'change | a | a | '],
  ['PATCH forcedUpdate', '{"a":1}', 'change | a | a | '],
  ['POST', '{"c":1}', 'change | c | c | c'],
  ['POST', '{"a":1,"c":1}', 'change | a c | c | c'],
  ['POST', '{"c":{"$pull":1}}', 'update |  |  | '],
  ['PUT a', '{"value":1}', 'update | a |  | '],
  ['PUT a/value', '7', 'change | a | a | '],
  ['PUT', '{"a":1}', 'change | a | a b | a b'],
  ['PUT', '{"a":1,"b":2,"c":3}', 'change | a b c | a b c | a b c'],
  ['DELETE a', '', 'change | a | a | a'],
  ['DELETE', '', 'delete |  |  | '],
]

t.test('a request is classified, and its names, values and metadata are distinguished', async t => {
  for (const [request, body, event] of events) {
    t.equal(shownEvent(eventAfter(room(stored), request, body)), event, `${request} ${body}`)
  }
})

t.test('a creation names the created attributes', async t => {
  t.equal(shownEvent(eventAfter(undefined, 'POST', '{"a":1,"b":null}')), 'create | a b | a b | a b')
  t.equal(shownEvent(eventAfter(undefined, 'POST', '{}')), 'create |  |  | ')
})

t.test('an event has the entity as it is and as it was', async t => {
  const before = room(stored)
  const update = eventAfter(before, 'PATCH', '{"a":5}')
  t.equal(update.before, before)
  t.equal(update.entity.attributes.get('a')?.value, 5)
  const idle = eventAfter(before, 'PATCH', '{"a":1}')
  t.equal(idle.entity, before)
  const deletion = eventAfter(before, 'DELETE')
  t.equal(deletion.entity, before)
  t.equal(deletion.before, before)
})

// Consequences of docs/interface/subscriptions.md#attribute-rule, in their order

t.test('the creation of an entity without attributes concerns no subscription', async t => {
  t.notOk(concerns(eventAfter(undefined, 'POST', '{}'), condition()))
  t.ok(concerns(eventAfter(undefined, 'POST', '{"a":1}'), condition()))
})

t.test('the deletion of an attribute concerns subscriptions to it', async t => {
  const deletion = eventAfter(room(stored), 'DELETE a')
  t.ok(concerns(deletion, condition('a')))
  t.ok(concerns(deletion, condition()))
  t.notOk(concerns(deletion, condition('b')))
})

t.test('a replacement concerns subscriptions to attributes that it names, though they are equal', async t => {
  t.ok(concerns(eventAfter(room(stored), 'PUT', '{"a":1}'), condition('a')))
})

t.test('a replacement concerns subscriptions to attributes that it removes', async t => {
  const replacement = eventAfter(room(stored), 'PUT', '{"a":1}')
  t.ok(concerns(replacement, condition('b')))
  t.ok(concerns(replacement, condition('b', 'entityUpdate')))
  t.notOk(concerns(replacement, condition('c')))
})

t.test('forcedUpdate concerns subscriptions to attributes that it names', async t => {
  const forced = eventAfter(room(stored), 'PATCH forcedUpdate', '{"a":1}')
  t.ok(concerns(forced, condition('a')))
  t.notOk(concerns(forced, condition('b')))
})

t.test('an update of one attribute concerns entityUpdate on another that it names', async t => {
  const update = eventAfter(room('{"a":1,"b":2,"c":3}'), 'PATCH', '{"a":1,"b":5}')
  t.ok(concerns(update, condition('a', 'entityUpdate')))
  t.notOk(concerns(update, condition('a', 'entityChange')))
  t.notOk(concerns(update, condition('c', 'entityUpdate')))
})

t.test('a change of metadata alone is no change for subscriptions without metadata', async t => {
  const update = eventAfter(room(stored), 'PATCH', '{"b":{"value":2,"metadata":{"m":{"value":4}}}}')
  t.ok(concerns(update, condition('b')))
  t.notOk(concerns(update, condition('b', '', false)))
  t.ok(concerns(update, condition('b', 'entityUpdate', false)))
  t.equal(alterationTypeOf(update, condition('b')), 'entityChange')
  t.equal(alterationTypeOf(update, condition('b', '', false)), 'entityUpdate')
})

// docs/interface/subscriptions.md#alteration-types

/** For each alteration type alone and for none: the events that concern it. */
const classes: readonly (readonly [types: string, create: boolean, change: boolean, update: boolean, gone: boolean])[] =
  [
    ['', true, true, false, false],
    ['entityCreate', true, false, false, false],
    ['entityChange', false, true, false, false],
    ['entityUpdate', false, true, true, false],
    ['entityDelete', false, false, false, true],
    ['entityDelete entityCreate', true, false, false, true],
    ['entityChange entityUpdate', false, true, true, false],
  ]

t.test('an alteration type concerns its class of events, entityUpdate those of changes too', async t => {
  const before = room(stored)
  for (const [types, ...wanted] of classes) {
    const happened = [
      eventAfter(undefined, 'POST', '{"a":1}'),
      eventAfter(before, 'PATCH', '{"a":{"value":5}}'),
      eventAfter(before, 'PATCH', '{"a":{"value":1}}'),
      eventAfter(before, 'DELETE'),
    ]
    const concerned = happened.map(event => concerns(event, condition('', types)))
    t.strictSame(concerned, wanted, types)
  }
})

t.test('the deletion of an entity concerns subscriptions to deletions, with any attributes', async t => {
  t.ok(concerns(eventAfter(room('{}'), 'DELETE'), condition('c', 'entityDelete')))
})

t.test('the deletion of an entity concerns subscriptions that propagate deletions, with any conditions', async t => {
  const deletion = eventAfter(room('{}'), 'DELETE')
  for (const types of ['', 'entityCreate', 'entityUpdate entityChange'])
    t.ok(concerns(deletion, condition('c', types), true), types)
  t.notOk(concerns(eventAfter(room(stored), 'PATCH', '{"a":5}'), condition('c'), true), 'and no change')
})

t.test('an update without change of an unnamed attribute concerns no subscription', async t => {
  const update = eventAfter(room(stored), 'PATCH', '{"a":{"value":1}}')
  t.notOk(concerns(update, condition('b', 'entityUpdate')))
})

t.test('an event has the name of its class, not of the alteration type that the subscription waits for', async t => {
  const before = room(stored)
  const wait = condition('', 'entityUpdate')
  t.equal(alterationTypeOf(eventAfter(undefined, 'POST', '{"a":1}'), wait), 'entityCreate')
  t.equal(alterationTypeOf(eventAfter(before, 'PATCH', '{"a":{"value":5}}'), wait), 'entityChange')
  t.equal(alterationTypeOf(eventAfter(before, 'PATCH', '{"a":{"value":1}}'), wait), 'entityUpdate')
  t.equal(alterationTypeOf(eventAfter(before, 'DELETE'), wait), 'entityDelete')
})

// Builtin metadata (docs/interface/notifications.md#metadata)

t.test('appended and updated attributes are distinguished, and unnamed ones are neither', async t => {
  const before = room(stored)
  const update = eventAfter(before, 'POST', '{"a":1,"c":1}')
  t.strictSame(
    ['a', 'b', 'c'].map(name => actionTypeOf(update, name)),
    ['update', undefined, 'append'],
  )
  t.equal(actionTypeOf(eventAfter(before, 'PUT', '{"a":1}'), 'a'), 'update', 'replaced')
  t.equal(actionTypeOf(eventAfter(undefined, 'POST', '{"a":1}'), 'a'), 'append', 'created')
  t.equal(actionTypeOf(eventAfter(before, 'DELETE a'), 'a'), undefined, 'deleted')
})

t.test('the value before is known of attributes that were named and existed', async t => {
  const before = room(stored)
  const update = eventAfter(before, 'POST', '{"a":{"$inc":4},"c":1}')
  t.strictSame(
    ['a', 'b', 'c'].map(name => previousOf(update, name)?.value),
    [1, undefined, undefined],
  )
  t.equal(previousOf(eventAfter(before, 'PATCH', '{"a":{"value":1}}'), 'a')?.value, 1, 'also when it is equal')
})
