// A trigger event and the one read from its row render to the same messages, for every entity, request and
// subscription.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: a macro looks like that

import t from 'tap'
import type { Attribute, Entity } from '../../../src/domain/entities/entity.js'
import type { JsonObject } from '../../../src/domain/json.js'
import type { NamedAttribute } from '../../../src/domain/subscriptions/message.js'
import { messageOf } from '../../../src/domain/subscriptions/notification.js'
import type { AlterationType } from '../../../src/domain/subscriptions/subscription.js'
import { encodeEntity } from '../../../src/encoded-entity.js'
import {
  type DeliveryIntent,
  decodeTriggerEvent,
  encodeTriggerEvent,
  inputOf,
  notificationIdOf,
  type TriggerEvent,
} from '../../../src/shard/notify/trigger-event.js'
import { grantsOf } from '../../support/access.js'
import { room } from '../../support/events.js'
import { options, sink, subscriptionOf } from '../../support/notification-inputs.js'
import { oddEntities } from '../../support/odd-entities.js'
import fc from '../../support/properties.js'
import { Random } from '../../support/random.js'

const builtin = { metadata: ['*', 'previousValue', 'actionType', 'dateCreated', 'dateModified'] }
const everything = { attrs: ['*', 'dateCreated', 'dateModified', 'dateExpires', 'alterationType', 'servicePath'] }
const macros = '${id} ${type} ${service} ${servicePath} ${authToken} ${temp} ${A} ${B} ${k} ${tags} ${notification}'

const notifications: readonly JsonObject[] = [
  ...['normalized', 'simplifiedNormalized', 'keyValues', 'simplifiedKeyValues', 'values', 'legacy'].flatMap(
    attrsFormat => [{ attrsFormat }, { attrsFormat, ...everything, ...builtin }],
  ),
  { onlyChangedAttrs: true, ...builtin },
  { exceptAttrs: ['A', 'temp'], ...builtin },
  { attrs: ['temp', 'last', 'missing'], covered: true, ...builtin },
  { httpCustom: { url: sink, payload: macros, headers: { 'X-Given': '${id}' }, qs: { from: '${type}' } } },
  { httpCustom: { url: sink, json: { whole: '${temp}', part: 'is ${A}', list: ['${last}', '${addr}'] } } },
  { httpCustom: { url: sink, ngsi: { id: 'new:${id}', A: { value: '${B}', type: 'Text' } } }, ...builtin },
  { mqttCustom: { url: 'mqtt://h', topic: 't/${type}', payload: macros } },
  { mqtt: { url: 'mqtt://h', topic: 't' }, ...builtin },
].map((notification): JsonObject => {
  const hasTransport = Object.keys(notification).some(name => name.startsWith('http') || name.startsWith('mqtt'))
  return hasTransport ? notification : { http: { url: sink }, ...notification }
})
const subscriptions = notifications.map(subscriptionOf)

const alterations = ['entityCreate', 'entityChange', 'entityUpdate', 'entityDelete'] as const
const ignoring = new Map([['ignoreType', { type: 'Boolean', value: true }]])
const feature = {
  type: 'Feature',
  properties: { note: 'told nowhere else' },
  geometry: { type: 'Point', coordinates: [-3.7, 40.4] },
}

const intentOf = (index: number, more: Partial<DeliveryIntent> = {}): DeliveryIntent => ({
  id: notificationIdOf(7, 4711, index),
  subscription: subscriptions[index]!.id,
  number: index + 1,
  alteration: 'entityChange',
  needsPermit: false,
  isGranted: false,
  ...more,
})

function eventOf(entity: Entity, more: Partial<TriggerEvent> = {}): TriggerEvent {
  return {
    shard: 7,
    stamp: 4711,
    tenant: 'acme',
    path: '/b1',
    correlator: '0f0e; cbnotif=3',
    authToken: undefined,
    entity,
    encoded: encodeEntity(entity, '0f0e'),
    named: [],
    intents: subscriptions.map((_, index) => intentOf(index)),
    ...more,
  }
}

const again = (event: TriggerEvent, intents?: readonly DeliveryIntent[]): TriggerEvent =>
  decodeTriggerEvent(encodeTriggerEvent(event, intents), event)

/** All messages of an event. */
const messagesOf = (event: TriggerEvent): unknown[] =>
  event.intents.map(intent => messageOf(inputOf(event, intent, subscriptions[indexOf(intent)]!, undefined)!, options))

/** The index in `subscriptions` of an intent's subscription: they all have one id. */
const indexOf = ({ id }: DeliveryIntent): number => Number.parseInt(id.slice(-6), 16)

function namedOf(random: Random, entity: Entity, other: Entity): NamedAttribute[] {
  const values = [...other.attributes.values()]
  const named = [...entity.attributes.keys(), 'missing'].filter(() => random.fraction() < 0.6)
  return named.map((name, at): NamedAttribute => {
    const action = random.pick(['append', 'update', 'delete'])
    const previous = random.fraction() < 0.7 ? values[at % values.length] : undefined
    return previous ? { name, action, previous } : { name, action }
  })
}

t.test('a trigger event from its row renders to the same messages', async t => {
  const random = Random.fromEnvironment()
  t.comment(`seed ${random.seed}`)
  for (const [at, entity] of oddEntities.entries()) {
    const alteration: AlterationType = alterations[at % alterations.length]!
    const event = eventOf(entity, {
      named: namedOf(random, entity, oddEntities[(at + 5) % oddEntities.length]!),
      authToken: random.pick([undefined, '', 'tok "é😀\u2028']),
      correlator: random.pick(['', '0f0e', 'é\u0000"; cbnotif=1; cbnotif=2']),
      tenant: random.pick(['', 'acme']),
      path: random.pick(['/', '/b1', '/ä/b_2']),
      // Half of them are enough, because there are many entities.
      intents: subscriptions
        .map((_, index) => intentOf(index, { alteration, number: 1 + at * 100 + index }))
        .filter((_, index) => (index + at) % 2 === 0),
    })
    const [live, read] = [messagesOf(event), messagesOf(again(event))]
    for (const [index, message] of live.entries())
      if (JSON.stringify(message) !== JSON.stringify(read[index]))
        t.strictSame(read[index], message, `${entity.id.slice(0, 30)}, notification ${index}`)
  }
})

const previousOf = (metadata: Attribute['metadata']): NamedAttribute => ({
  name: 'A',
  action: 'update',
  previous: { type: 'geo:json', value: feature, metadata, createdMs: 1, modifiedMs: 2 },
})

t.test(
  'an earlier location has its old form: the geometry alone, or the whole feature where the type is ignored',
  async t => {
    const [entity] = oddEntities as [Entity]
    const shown = (metadata: Attribute['metadata']): string =>
      JSON.stringify(messagesOf(again(eventOf(entity, { named: [previousOf(metadata)] }))))
    t.match(shown(new Map()), 'previousValue')
    t.notMatch(shown(new Map()), 'é😀\\\\"}')
    t.match(shown(ignoring), 'Feature')
    for (const metadata of [new Map(), ignoring]) {
      const event = eventOf(entity, { named: [previousOf(metadata)] })
      t.equal(shown(metadata), JSON.stringify(messagesOf(event)))
    }
  },
)

t.test('a row names exactly the triggered notifications', async t => {
  const [entity] = oddEntities as [Entity]
  const intents = [
    intentOf(0, { number: 1_000_000_000_001, needsPermit: true }),
    intentOf(1, { subscription: 'f'.repeat(24), alteration: 'entityDelete' }),
  ]
  t.strictSame(again(eventOf(entity, { intents })).intents, intents)
  const { shard, stamp, tenant, path, correlator, authToken } = again(eventOf(entity, { authToken: 'tok' }))
  t.strictSame({ shard, stamp, tenant, path, correlator, authToken }, pick(eventOf(entity, { authToken: 'tok' })))
})

const pick = ({ shard, stamp, tenant, path, correlator, authToken }: TriggerEvent) => ({
  shard,
  stamp,
  tenant,
  path,
  correlator,
  authToken,
})

t.test('one notification alone is a row of its own', async t => {
  const event = eventOf(oddEntities[3]!)
  const { intents } = again(event, [event.intents[2]!])
  t.strictSame(intents, [event.intents[2]])
})

t.test('a row of a version that is not known is not read', async t => {
  const row = encodeTriggerEvent(eventOf(oddEntities[0]!))
  row[0] = 2
  t.throws(() => decodeTriggerEvent(row, { shard: 1, stamp: 1 }), { code: 'unreadable', message: /has version/ })
})

t.test('no two notifications have one id, and ids of a shard sort in the order of triggering', async () => {
  // Neighbours as often as others.
  const near = fc.tuple(fc.nat({ max: 3 }), fc.integer({ min: -3, max: 3 }))
  const stamp = fc.oneof(
    fc.nat({ max: Number.MAX_SAFE_INTEGER }),
    near.map(([half, beside]) => Math.max(half * 2 ** 28 + beside, 0)),
  )
  const shard = fc.oneof(fc.nat({ max: 65_535 }), fc.constant(7))
  const place = fc.tuple(shard, stamp, fc.nat({ max: 2 ** 24 - 1 }))
  fc.assert(
    fc.property(place, place, (one, other) => {
      const [a, b] = [notificationIdOf(...one), notificationIdOf(...other)]
      const order = one[0] - other[0] || one[1] - other[1] || one[2] - other[2]
      return Math.sign(order) === (a < b ? -1 : a > b ? 1 : 0) && a.length === b.length
    }),
    { numRuns: 2000 },
  )
})

t.test('a notification, a dead letter too, is rendered under the present grant of its owner', async t => {
  const entity = room('{"temp": 20, "cost": 5}')
  const cost: NamedAttribute = { name: 'cost', action: 'update', previous: entity.attributes.get('cost') }
  const event = eventOf(entity, { named: [{ name: 'temp', action: 'update' }, cost] })
  const hidesCost: JsonObject = { actions: ['subscribe'], attributes: ['*', '!cost'] }
  const underRules = (...rules: JsonObject[]) => {
    const grant = grantsOf(rules, '')('subscribe')
    const grantOfOwner = () => (grant.kind === 'denied' ? undefined : grant)
    return inputOf(event, event.intents[0]!, subscriptions[0]!, grantOfOwner)
  }
  const input = underRules(hidesCost)!
  t.strictSame([...input.entity.attributes.keys()], ['temp'])
  t.strictSame(input.named, [{ name: 'temp', action: 'update' }])
  t.equal(input.normalizedText, undefined, 'the text of the whole entity is not used')
  t.notMatch(JSON.stringify(messageOf(input, options)), /cost/)
  t.equal(underRules({ actions: ['subscribe'] })?.entity, entity)
  t.equal(underRules({ ...hidesCost, types: ['Meter'] }), undefined, 'the entity is not covered')
  t.equal(underRules({ actions: ['read'] }), undefined)
})
