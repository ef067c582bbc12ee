// Requests and replies of every kind go through bytes and back unchanged.

import assert from 'node:assert/strict'
import t from 'tap'
import { AccessCondition } from '../../src/domain/access/condition.js'
import type { PrincipalSource } from '../../src/domain/access/principal.js'
import { isDateType, type WantedAttribute } from '../../src/domain/entities/entity.js'
import { operatorOf } from '../../src/domain/entities/operators.js'
import type { Json } from '../../src/domain/json.js'
import { type Refusal, refusals } from '../../src/domain/refusal.js'
import type { FilterSource } from '../../src/domain/streams/change-filter.js'
import { type Expression, noProgress } from '../../src/domain/subscriptions/subscription.js'
import { encodeEntity } from '../../src/encoded-entity.js'
import type {
  EncodedEntities,
  ListKeys,
  ShardReply,
  ShardRequest,
  WriteReply,
  WriteRequest,
} from '../../src/messages/messages.js'
import { emptyTally } from '../../src/observe/service-metrics.js'
import { decodeReply, decodeRequest, encodeReply, encodeRequest } from '../../src/wire/wire.js'
import fc from '../support/properties.js'
import { Random } from '../support/random.js'
import { randomBody } from '../support/random-subscription.js'
import { allRefusals } from '../support/refusals.js'
import { registrations } from '../support/registrations.js'
import { selectionOf } from '../support/selections.js'
import { subscription } from '../support/subscriptions.js'

const texts = fc.string({ unit: 'binary', maxLength: 12 })
const names = fc.oneof(texts, fc.constantFrom('__proto__', 'constructor', '0', '17', 'dateExpires'))
const maybe = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(arbitrary, { nil: undefined })
const bytes = fc.uint8Array({ maxLength: 40 }).map(all => Buffer.from(all))
const backupOutcomes = fc.record({
  succeeded: fc.boolean(),
  endedMs: fc.nat(),
  durationMs: fc.nat(),
  bytes: fc.nat(),
})
const tenantDeletions = fc.array(fc.record({ tenant: names, stamp: fc.maxSafeNat() }))
const tenantSizes = fc.record({
  tenant: names,
  entities: fc.nat(),
  bytes: fc.maxSafeNat(),
  subscriptions: fc.nat(),
  registrations: fc.nat(),
  changedMs: maybe(fc.nat()),
  deletion: maybe(fc.maxSafeNat()),
})
const positions = fc.record({ epoch: fc.maxSafeNat(), sequence: fc.maxSafeNat() })

/** Values as a parser gives them: no `-0`. Operators are frequent. */
const values: fc.Arbitrary<Json> = fc
  .oneof(
    fc.jsonValue({ stringUnit: 'binary', maxDepth: 3 }),
    fc.constantFrom({ $inc: 1 }, { $set: { a: 1 }, $unset: { b: 1 } }, { $push: { $each: [1] } }, { a: 1, $inc: 2 }),
  )
  .map(value => JSON.parse(JSON.stringify(value)) as Json)

const attributes: fc.Arbitrary<WantedAttribute> = fc
  .record({
    type: fc.oneof(texts, fc.constantFrom('DateTime', 'ISO8601', 'Number')),
    value: values,
    metadata: maybe(
      fc
        .array(fc.tuple(names, fc.record({ type: texts, value: values })), { maxLength: 3 })
        .map(pairs => new Map(pairs)),
    ),
  })
  .map(wanted => ({ ...wanted, operator: isDateType(wanted.type) ? undefined : operatorOf(wanted.value) }))

const several = fc.array(fc.tuple(names, attributes), { maxLength: 4 }).map(pairs => new Map(pairs))
const target = fc.record({ tenant: texts, path: texts, id: texts, type: maybe(texts) })
const origin = fc.record({
  correlatorRoot: texts,
  correlator: maybe(texts),
  authToken: maybe(texts),
  isCustomNotification: maybe(fc.constant(true)),
  isPatchedNotification: maybe(fc.constant(true)),
  isPaced: maybe(fc.constant(true)),
  numbering: maybe(fc.record({ next: fc.nat(), step: fc.nat() })),
})
const options = fc.record({ overrideMetadata: fc.boolean(), forcedUpdate: fc.boolean() })
const paths = fc.array(texts, { maxLength: 3 })

const kind = <K extends string>(...kinds: K[]): fc.Arbitrary<K> => fc.constantFrom(...kinds)

type Requests = { readonly [K in ShardRequest['kind']]: fc.Arbitrary<ShardRequest> }
const onAttributes = (which: 'append' | 'appendStrict' | 'update' | 'replace') =>
  fc.record({
    kind: kind(which),
    target,
    origin,
    attributes: several,
    options,
    stamp: maybe(fc.maxSafeNat()),
    createAs: maybe(texts),
  })

const writes = {
  create: fc.record({
    kind: kind('create'),
    target,
    origin,
    entity: fc.record({ id: texts, type: texts, attributes: several }),
    upsert: fc.boolean(),
    options,
  }),
  append: onAttributes('append'),
  appendStrict: onAttributes('appendStrict'),
  update: onAttributes('update'),
  replace: onAttributes('replace'),
  updateAttribute: fc.record({
    kind: kind('updateAttribute'),
    target,
    origin,
    name: names,
    attribute: attributes,
    options,
  }),
  updateValue: fc.record({
    kind: kind('updateValue'),
    target,
    origin,
    name: names,
    value: values,
    forcedUpdate: fc.boolean(),
  }),
  deleteAttribute: fc.record({ kind: kind('deleteAttribute'), target, origin, name: names }),
  deleteAttributes: fc.record({ kind: kind('deleteAttributes'), target, origin, names: fc.array(names) }),
  deleteEntity: fc.record({ kind: kind('deleteEntity'), target, origin, stamp: maybe(fc.maxSafeNat()) }),
  expire: fc.record({ kind: kind('expire'), target, origin, nowMs: fc.maxSafeNat() }),
} satisfies { readonly [K in WriteRequest['kind']]: fc.Arbitrary<WriteRequest> }

const entityPosition = fc.record({
  created: fc.maxSafeNat(),
  shard: fc.nat(0xffff),
  path: texts,
  type: texts,
})

const subscriptions = fc.nat(0xffffffff).map(seed => subscription(randomBody(new Random(seed))))
const progress = fc
  .record({
    timesSent: fc.nat(),
    lastNotificationMs: maybe(fc.maxSafeNat()),
    lastSuccessMs: maybe(fc.maxSafeNat()),
    lastSuccessCode: maybe(fc.nat(599)),
    lastFailureMs: maybe(fc.maxSafeNat()),
    lastFailureReason: texts,
    failsCounter: fc.nat(),
    spentRevision: fc.nat(),
  })
  .map(some => ({ ...noProgress, ...some }))

const deliveryRecord = fc.record({
  atMs: fc.maxSafeNat(),
  id: texts,
  type: texts,
  path: texts,
  notificationId: texts,
  attempt: fc.nat(9),
  outcome: fc.constantFrom('delivered', 'failed', 'dead', 'dropped', 'simulated'),
  code: maybe(fc.nat(599)),
  reason: texts,
})

const streamPositions = fc.record({ ring: texts, position: fc.nat() })
const filterSources = fc.record({
  tenant: names,
  servicePath: texts,
  entities: fc.array(
    fc.record({ id: maybe(texts), idPattern: maybe(texts), type: maybe(texts), typePattern: maybe(texts) }),
    {
      maxLength: 3,
    },
  ),
  attrs: fc.array(texts),
  expression: fc.record({ q: maybe(texts), mq: maybe(texts), georel: maybe(texts) }),
  alterationTypes: fc.array(fc.constantFrom('entityCreate' as const, 'entityDelete' as const)),
  leaves: fc.boolean(),
})

const requests = {
  ...writes,
  createSubscription: fc.record({ kind: kind('createSubscription'), subscription: subscriptions }),
  changeSubscription: fc.record({
    kind: kind('changeSubscription'),
    tenant: texts,
    id: texts,
    servicePath: texts,
    payload: fc.record({ value: values, duplicates: fc.constant([['a', 0, 'b']]), deep: fc.boolean() }),
  }),
  removeSubscription: fc.record({ kind: kind('removeSubscription'), tenant: texts, id: texts }),
  findSubscription: fc.record({ kind: kind('findSubscription'), tenant: texts, id: texts }),
  listSubscriptions: fc.record({
    kind: kind('listSubscriptions'),
    tenant: texts,
    servicePath: maybe(texts),
    offset: fc.maxSafeNat(),
    limit: fc.nat(1000),
  }),
  createRegistration: fc.record({ kind: kind('createRegistration'), registration: registrations }),
  changeRegistration: fc.record({
    kind: kind('changeRegistration'),
    tenant: texts,
    id: texts,
    payload: fc.record({ value: values, duplicates: fc.constant([['a', 0, 'b']]), deep: fc.boolean() }),
  }),
  removeRegistration: fc.record({ kind: kind('removeRegistration'), tenant: texts, id: texts }),
  findRegistration: fc.record({ kind: kind('findRegistration'), tenant: texts, id: texts }),
  listRegistrations: fc.record({
    kind: kind('listRegistrations'),
    tenant: texts,
    servicePath: maybe(texts),
    offset: fc.maxSafeNat(),
    limit: fc.nat(1000),
  }),
  progress: fc.record({ kind: kind('progress'), tenant: texts, ids: fc.array(texts) }),
  deliveries: fc.record({ kind: kind('deliveries'), tenant: texts, id: texts, limit: fc.nat(1000) }),
  retryDeliveries: fc.record({ kind: kind('retryDeliveries'), tenant: texts, id: texts }),
  admin: fc.record({
    kind: kind('admin'),
    order: fc.oneof(
      fc.record({ what: kind('metrics') }),
      fc.record({ what: fc.constantFrom('statistics', 'cache', 'services'), isReset: fc.boolean() }),
      fc.record({ what: kind('forwarding'), registrations: fc.array(texts) }),
      fc.record({
        what: kind('log'),
        change: fc.record({ level: kind('WARN', 'DEBUG'), traces: fc.array(fc.nat(255)) }, { requiredKeys: [] }),
      }),
    ),
  }),
  follow: fc.record({
    kind: kind('follow'),
    epoch: fc.maxSafeNat(),
    before: maybe(positions),
    form: kind('changes', 'page'),
    after: fc.maxSafeNat(),
    upTo: fc.maxSafeNat(),
    rows: bytes,
    isFirst: maybe(fc.boolean()),
    next: maybe(bytes),
  }),
  claim: fc.record({ kind: kind('claim'), tenant: texts, id: texts, notification: texts }),
  news: fc.record({
    kind: kind('news'),
    tenant: texts,
    id: texts,
    news: fc.oneof(
      fc.record({ kind: kind('success'), code: maybe(fc.nat()) }),
      fc.record({ kind: kind('failure'), reason: texts }),
    ),
  }),
  handIn: fc.record({
    kind: kind('handIn'),
    parts: fc.array(fc.record({ tenant: texts, id: texts, progress }), { maxLength: 3 }),
    mark: maybe(fc.record({ source: texts, number: fc.nat() })),
  }),
  batch: fc
    .tuple(origin, fc.array(fc.oneof(...Object.values<fc.Arbitrary<WriteRequest>>(writes)), { maxLength: 4 }))
    .map(([only, items]) => ({ kind: 'batch', items: items.map(item => ({ ...item, origin: only })) })),
  announce: fc.record({ kind: kind('announce'), tenant: texts, path: texts }),
  unused: fc.record({ kind: kind('unused'), tenants: fc.array(texts) }),
  fetch: fc.record({
    kind: kind('fetch'),
    tenant: texts,
    places: fc.array(entityPosition, { maxLength: 4 }),
    bytesMax: maybe(fc.nat()),
  }),
  types: fc.record({ kind: kind('types'), tenant: texts, paths, type: maybe(texts) }),
  find: fc.record({ kind: kind('find'), tenant: texts, paths, id: texts, type: maybe(texts) }),
  list: fc.record({
    kind: kind('list'),
    tenant: texts,
    paths,
    selection: fc
      .record({
        selectors: fc.array(fc.record({ ids: maybe(fc.array(texts)), types: maybe(fc.array(texts)) })),
        q: fc.constantFrom(undefined, 'a>1', "b=='x y';!c"),
        mq: fc.constantFrom(undefined, 'a.b==2'),
      })
      .map(source => selectionOf(source)),
    order: fc.array(fc.record({ name: texts, descending: fc.boolean() })),
    offset: fc.nat(),
    limit: fc.maxSafeNat(),
    part: fc.constantFrom(undefined, 'keys', 'entities'),
    bytesMax: maybe(fc.nat()),
  }),
  tenants: fc.record({
    kind: kind('tenants'),
    step: fc.oneof(
      fc.record({ what: fc.constantFrom('names' as const, 'deletions' as const) }),
      fc.record({ what: kind('sizes'), tenants: fc.array(names) }),
      fc.record({ what: kind('delete'), tenant: names }),
      fc.record({ what: kind('purged'), deletions: tenantDeletions }),
    ),
  }),
  stream: fc.record({
    kind: kind('stream'),
    step: fc.oneof(
      fc.record({
        what: kind('poll'),
        holder: texts,
        after: maybe(streamPositions),
        fromRevision: fc.nat(),
        revision: fc.nat(),
        add: fc.array(fc.record({ number: fc.nat(), source: filterSources }), { maxLength: 3 }),
        remove: fc.array(fc.nat()),
        waitMs: fc.nat(),
      }),
      fc.record({
        what: kind('replay'),
        source: filterSources,
        ring: texts,
        sinceTick: fc.maxSafeNat(),
        after: fc.nat(),
        upTo: fc.nat(),
      }),
    ),
  }),
  backup: fc.record({
    kind: kind('backup'),
    step: fc.oneof(
      fc.record({ what: kind('begin'), session: texts }),
      fc.record({ what: kind('page'), session: texts }),
      fc.record({ what: kind('end'), session: texts, outcome: backupOutcomes }),
    ),
  }),
} satisfies Requests

const encoded = fc
  .record({ id: texts, type: texts, created: fc.maxSafeNat(), modifiedMs: fc.maxSafeNat() })
  .map(some => encodeEntity({ ...some, attributes: new Map() }, 'root'))
const sentChanges = fc.record({
  shard: fc.nat(),
  stamp: fc.maxSafeNat(),
  tick: fc.maxSafeNat(),
  tenant: names,
  path: texts,
  class: fc.constantFrom('create' as const, 'change' as const, 'update' as const, 'delete' as const),
  changed: fc.array(texts),
  named: fc.array(texts),
  correlator: texts,
  found: fc.array(fc.nat()),
  left: fc.array(fc.nat()),
  encoded,
})
const found = fc.array(fc.record({ path: texts, encoded }))

const keys: fc.Arbitrary<ListKeys> = fc
  .record({
    ranges: fc.array(fc.tuple(texts, texts), { minLength: 1, maxLength: 3 }),
    all: fc.array(
      fc.tuple(fc.double({ noNaN: true }), fc.nat(0xffff), fc.nat(0xffff), fc.array(values, { maxLength: 3 })),
      { maxLength: 5 },
    ),
    isOrdered: fc.boolean(),
  })
  .map(({ ranges, all, isOrdered }) => ({
    created: Float64Array.from(all, ([created]) => created),
    shards: Uint16Array.from(all, ([, shard]) => shard),
    rangeOf: Uint32Array.from(all, ([, , range]) => range % ranges.length),
    ranges,
    values: isOrdered ? all.map(([, , , values]) => values) : [],
  }))

const missingAttributes: fc.Arbitrary<Refusal> = fc
  .tuple(kind('PartialUpdate', 'Unprocessable'), texts, fc.array(texts))
  .map(facts => refusals.attributesMissing(...facts))
const anyRefusal: fc.Arbitrary<Refusal> = fc.oneof(fc.constantFrom<Refusal[]>(...allRefusals), missingAttributes)

const writeReplies = {
  done: fc.constant({ kind: 'done' }),
  // fc.record would make a type of each refusal: too many for the compiler.
  refused: anyRefusal.map(refusal => ({ kind: 'refused' as const, refusal })),
  busy: fc.constant({ kind: 'busy' }),
  moved: fc.constant({ kind: 'moved' }),
  failed: fc.record({ kind: kind('failed'), reason: texts }),
  lost: fc.record({ kind: kind('lost'), reason: texts }),
} satisfies { readonly [K in WriteReply['kind']]: fc.Arbitrary<WriteReply> }

const seconds = fc.nat().map(milliseconds => milliseconds / 1000)
const timings = fc.record({ jsonV2Parse: seconds, mongoWriteWait: seconds, total: seconds })

const replies = {
  ...writeReplies,
  found: fc.record({ kind: kind('found'), entities: found }),
  types: fc.record({
    kind: kind('types'),
    types: fc.array(fc.record({ type: texts, count: fc.nat(), attributes: fc.array(fc.tuple(texts, texts)) })),
  }),
  unused: fc.record({ kind: kind('unused'), tenants: fc.array(texts) }),
  listed: fc.record({ kind: kind('listed'), entities: found, total: fc.nat() }),
  part: keys.chain(columns =>
    fc.record({
      kind: kind('part'),
      keys: fc.constant(columns),
      encodedEntities: maybe(fc.array(encoded, { maxLength: columns.created.length })),
      total: fc.nat(),
    }),
  ),
  fetched: fc.record({ kind: kind('fetched'), encodedEntities: fc.array(maybe(encoded)) }),
  batch: fc.record({
    kind: kind('batch'),
    replies: fc.array(fc.oneof(...Object.values<fc.Arbitrary<WriteReply>>(writeReplies))),
  }),
  subscriptions: fc.record({
    kind: kind('subscriptions'),
    subscriptions: fc.array(fc.record({ subscription: subscriptions, progress }), { maxLength: 3 }),
    total: fc.nat(),
  }),
  registrations: fc.record({
    kind: kind('registrations'),
    registrations: fc.array(registrations, { maxLength: 3 }),
    total: fc.nat(),
  }),
  progress: fc.record({ kind: kind('progress'), parts: fc.array(progress, { maxLength: 3 }) }),
  claimed: fc.record({ kind: kind('claimed'), isGranted: fc.boolean(), quietUntilMs: maybe(fc.nat()) }),
  admin: fc.record({
    kind: kind('admin'),
    content: fc.oneof(
      fc.constant(null),
      fc.record({
        ids: texts,
        refresh: fc.nat(),
        inserts: fc.nat(),
        removes: fc.nat(),
        updates: fc.nat(),
        items: fc.nat(),
      }),
      fc.record({
        uptimeS: fc.nat(),
        intervalS: fc.nat(),
        counters: maybe(
          fc.record({
            jsonRequests: fc.nat(),
            textRequests: fc.nat(),
            noPayloadRequests: fc.nat(),
            requests: fc.dictionary(names, fc.dictionary(names, fc.nat())),
            missedVerb: fc.nat(),
            invalidRequests: fc.nat(),
            notificationsSent: fc.nat(),
            deprecatedFeatures: fc.record({
              ngsiv1Requests: fc.nat(),
              ngsiv1Forwarding: fc.nat(),
              ngsiv1NotifFormat: fc.nat(),
              geoFormat: fc.nat(),
            }),
          }),
        ),
        hasSemWait: fc.boolean(),
        timing: maybe(fc.record({ accumulated: timings, last: timings })),
        notifQueue: maybe(
          fc.record({
            in: fc.nat(),
            out: fc.nat(),
            reject: fc.nat(),
            sentOk: fc.nat(),
            sentError: fc.nat(),
            timeInQueue: seconds,
            size: fc.nat(),
          }),
        ),
        simulatedNotifications: fc.nat(),
      }),
      fc.array(
        fc.record({
          name: names,
          type: fc.constantFrom('counter' as const, 'gauge' as const, 'histogram' as const),
          help: texts,
          aggregator: fc.constantFrom('sum' as const, 'max' as const, 'min' as const),
          values: fc.array(fc.record({ labels: fc.dictionary(names, texts), value: fc.nat() }), { maxLength: 3 }),
        }),
        { maxLength: 3 },
      ),
      fc.array(texts.map(path => emptyTally('default-service', path))),
    ),
  }),
  deliveries: fc.record({
    kind: kind('deliveries'),
    deliveries: fc.array(deliveryRecord, { maxLength: 3 }),
    deadLetters: fc.array(deliveryRecord, { maxLength: 3 }),
    deadCount: fc.nat(),
  }),
  large: fc.record({ kind: kind('large') }),
  retried: fc.record({ kind: kind('retried'), count: fc.nat() }),
  followed: fc.record({ kind: kind('followed'), position: maybe(positions) }),
  tenants: fc.record({
    kind: kind('tenants'),
    content: fc.oneof(
      fc.record({ what: fc.constantFrom('names' as const, 'purged' as const), tenants: fc.array(names) }),
      fc.record({ what: kind('sizes'), sizes: fc.array(tenantSizes) }),
      fc.record({ what: kind('deletions'), deletions: tenantDeletions }),
    ),
  }),
  stream: fc.record({
    kind: kind('stream'),
    content: fc.oneof(
      fc.record({ what: fc.constantFrom('unknown' as const, 'superseded' as const) }),
      fc.record({
        what: kind('changes'),
        at: streamPositions,
        tick: fc.maxSafeNat(),
        lost: fc.boolean(),
        refused: fc.array(fc.record({ number: fc.nat(), steps: maybe(fc.nat()) }), { maxLength: 2 }),
        changes: fc.array(sentChanges, { maxLength: 3 }),
      }),
      fc.record({
        what: kind('replayed'),
        position: fc.nat(),
        isLast: fc.boolean(),
        changes: fc.array(sentChanges, { maxLength: 3 }),
      }),
      fc.record({
        what: kind('gap'),
        reason: fc.constantFrom('too old' as const, 'restarted' as const, 'owner lost' as const),
        sinceMs: fc.maxSafeNat(),
      }),
    ),
  }),
  backup: fc.record({
    kind: kind('backup'),
    content: fc.oneof(
      fc.record({
        what: kind('begun'),
        shards: fc.array(fc.nat()),
        isKeeper: fc.boolean(),
        stamp: fc.maxSafeNat(),
        positions: fc.array(fc.record({ shard: fc.nat(), epoch: fc.nat(), sequence: fc.nat() })),
      }),
      fc.record({
        what: kind('page'),
        rows: fc.nat(),
        rowBytes: fc.nat(),
        bytes: fc.uint8Array().map(bytes => Buffer.from(bytes)),
        isLast: fc.boolean(),
      }),
      fc.record({ what: fc.constantFrom('busy', 'unknown', 'ended') }),
    ),
  }),
  unreachable: fc.record({ kind: kind('unreachable'), reason: texts }),
} satisfies { readonly [K in ShardReply['kind']]: fc.Arbitrary<ShardReply> }

const isEncodedEntities = (value: unknown): value is EncodedEntities =>
  typeof value === 'object' && value !== null && 'at' in value

/**
 * The value without undefined members, because a reader cannot distinguish them from absent ones. Maps become lists,
 * with their order.
 */
function present(value: unknown): unknown {
  if (value instanceof Map) return [...value].map(present)
  if (Buffer.isBuffer(value)) return value.toString('hex')
  if (ArrayBuffer.isView(value)) return value
  if (Array.isArray(value)) return value.map(present)
  if (isEncodedEntities(value)) return Array.from({ length: value.length }, (_, index) => present(value.at(index)))
  if (typeof value !== 'object' || value === null) return value
  // A stored expression is compiled only when it is used.
  if ('source' in value && 'geo' in value) {
    const { source, q, mq, geo } = value as Expression
    return [source, q, mq, geo].map(present)
  }
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return Object.fromEntries(members.map(([name, member]) => [name, present(member)]))
}

for (const [name, arbitrary] of Object.entries(requests) as [string, fc.Arbitrary<ShardRequest>][]) {
  t.test(`a request of kind ${name} comes out of its bytes as it went in`, async () => {
    fc.assert(
      fc.property(arbitrary, request => {
        assert.deepEqual(present(decodeRequest(encodeRequest(request))), present(request))
      }),
    )
  })
}

for (const [name, arbitrary] of Object.entries(replies) as [string, fc.Arbitrary<ShardReply>][]) {
  t.test(`a reply of kind ${name} comes out of its bytes as it went in`, async () => {
    fc.assert(
      fc.property(arbitrary, reply => {
        assert.deepEqual(present(decodeReply(encodeReply(reply))), present(reply))
      }),
    )
  })
}

t.test('a read by id under more paths than a packed one has room for goes through its bytes', async t => {
  for (const count of [0xfffc, 0xfffd]) {
    const paths = Array.from({ length: count }, (_, n) => `/${n}`)
    const request = { kind: 'find', tenant: 'ténant', paths, id: 'E', type: undefined } as const
    t.strictSame(present(decodeRequest(encodeRequest(request))), present(request))
  }
})

t.test('bytes that are cut off are no request', async t => {
  const whole = encodeRequest({ kind: 'find', tenant: 'tenant', paths: ['/p'], id: 'E', type: 'T' })
  for (const length of [1, 3, 7, 19]) t.throws(() => decodeRequest(whole.subarray(0, length)), `${length} bytes`)
})

t.test('a read with a grant has a form of its own, and passes as no other', async t => {
  const clauses = [{ paths: ['/a/#'], types: ['Lamp'], ids: ['L1', { pattern: '^L' }], attributes: ['*', '!cost'] }]
  const grant = new AccessCondition(clauses)
  const reads: readonly ShardRequest[] = [
    { kind: 'find', tenant: 't', paths: ['/#'], id: 'L1', type: undefined, grant },
    { kind: 'types', tenant: 't', paths: ['/#'], type: undefined, grant },
    { kind: 'list', tenant: 't', paths: ['/#'], selection: selectionOf({}), order: [], offset: 0, limit: 20, grant },
  ]
  for (const read of reads) {
    const bytes = encodeRequest(read)
    t.equal(bytes[0], 0x87, 'a build that does not know grants does not understand it')
    const back = decodeRequest(bytes) as { readonly grant?: AccessCondition }
    t.strictSame(back.grant?.clauses, clauses)
    const plain = Buffer.from(bytes)
    plain[0] = 0x85
    t.throws(() => decodeRequest(plain), /is not known/, 'a grant in the form without')
    const without = encodeRequest({ ...read, grant: undefined } as ShardRequest)
    const granted = Buffer.concat([Buffer.from([0x87]), without.subarray(1)])
    t.throws(() => decodeRequest(granted), 'the form without a grant')
  }
  const [find] = reads
  const json = JSON.parse(encodeRequest(find!).toString('utf8', 1)) as object
  const clause = clauses[0]
  for (const wrong of [
    [],
    {},
    [{ ...clause, paths: [] }],
    [{ ...clause, types: [] }],
    [{ ...clause, ids: [{}] }],
    [{}],
  ])
    t.throws(() => decodeRequest(Buffer.from(`\x87${JSON.stringify({ ...json, grant: wrong })}`, 'latin1')))
})

t.test('a write with limits has that form as well, alone and in a batch', async t => {
  const clauses = [{ paths: ['/#'], types: ['Lamp'], ids: undefined, attributes: ['*'] }]
  const limits = [new AccessCondition(clauses)]
  const origin = { correlatorRoot: 'c' }
  const target = { tenant: 't', path: '/', id: 'L1', type: undefined }
  const plain: WriteRequest = { kind: 'deleteEntity', target, origin }
  const limited: WriteRequest = { kind: 'deleteEntity', target: { ...target, limits }, origin }
  const options = { overrideMetadata: false, forcedUpdate: false }
  const changed = { kind: 'append', target: { ...target, limits }, attributes: new Map(), options, origin } as const
  const limitsIn = (write: WriteRequest) => write.target.limits?.map(condition => condition.clauses)
  for (const write of [limited, changed]) {
    const bytes = encodeRequest(write)
    t.equal(bytes[0], 0x87)
    t.match(limitsIn(decodeRequest(bytes) as WriteRequest), [clauses])
    bytes[0] = 0x85
    t.throws(() => decodeRequest(bytes), /is not known/)
  }
  const batch = encodeRequest({ kind: 'batch', items: [plain, limited] })
  t.equal(batch[0], 0x87)
  const back = decodeRequest(batch) as { readonly items: readonly WriteRequest[] }
  t.match(back.items.map(limitsIn), [undefined, [clauses]])
  batch[0] = 0x85
  t.throws(() => decodeRequest(batch), /is not known/)
  t.equal(encodeRequest({ kind: 'batch', items: [plain] })[0], 0x85)
})

t.test('a list of documents for one reader has the form of requests with a grant', async t => {
  const readers: readonly PrincipalSource[] = [
    { proof: 'key', name: 'k' },
    { proof: 'certificate', name: 'CN=c' },
    { proof: 'none', name: 'anonymous' },
    { proof: 'token', issuer: 'i', name: 'n', claimed: ['r'], tenants: ['t'] },
  ]
  for (const kind of ['listSubscriptions', 'listRegistrations'] as const)
    for (const reader of readers) {
      const request = { kind, tenant: 't', servicePath: undefined, offset: 0, limit: 20, reader }
      const bytes = encodeRequest(request)
      t.equal(bytes[0], 0x87, 'a build that does not know readers does not understand it')
      t.match(decodeRequest(bytes), { kind, reader })
      const plain = Buffer.concat([Buffer.from([0x80]), bytes.subarray(1)])
      t.throws(() => decodeRequest(plain), 'a reader in the form without')
      const without = encodeRequest({ ...request, reader: undefined })
      t.throws(() => decodeRequest(Buffer.concat([bytes.subarray(0, 1), without.subarray(1)])), 'no reader')
    }
})

t.test('a filter of a stream with a grant crosses in the form of requests with a grant', async t => {
  const grant = [{ paths: ['/#'], types: ['Lamp'], ids: undefined, attributes: ['*', '!cost'] }]
  const source: FilterSource = {
    tenant: 't',
    servicePath: '/#',
    entities: [{ idPattern: '.*' }],
    attrs: [],
    expression: {},
    alterationTypes: ['entityChange'],
    leaves: false,
  }
  const poll = (...sources: FilterSource[]): ShardRequest => {
    const add = sources.map((one, number) => ({ number, source: one }))
    const step = { holder: 'h', after: undefined, fromRevision: 0, revision: 1, add, remove: [], waitMs: 5 }
    return { kind: 'stream', step: { what: 'poll', ...step } }
  }
  const replay = (one: FilterSource): ShardRequest => ({
    kind: 'stream',
    step: { what: 'replay', source: one, ring: 'r', sinceTick: 1, after: 0, upTo: 2 },
  })
  const granted = { ...source, grant }
  for (const request of [poll(granted), poll(source, granted), replay(granted)]) {
    const bytes = encodeRequest(request)
    t.equal(bytes[0], 0x87, 'a build that does not know grants of streams does not understand it')
    t.match(JSON.stringify(decodeRequest(bytes)), /"!cost"/)
    const plain = Buffer.concat([encodeRequest(poll(source)).subarray(0, 1), bytes.subarray(1)])
    t.throws(() => decodeRequest(plain), /is not known/, 'a grant in the form without')
  }
  for (const request of [poll(source), poll(), replay(source)]) {
    const bytes = encodeRequest(request)
    t.not(bytes[0], 0x87)
    t.throws(() => decodeRequest(Buffer.concat([Buffer.from([0x87]), bytes.subarray(1)])), 'no grant')
  }
})
