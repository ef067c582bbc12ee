// The shards of a node, over a store in memory and a clock that stands still: a commit begins when the test ends the
// tick.

import assert from 'node:assert/strict'
import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import t from 'tap'
import type { WantedAttribute } from '../../src/domain/entities/entity.js'
import { operatorOf } from '../../src/domain/entities/operators.js'
import type { Json } from '../../src/domain/json.js'
import { entityRowBytesMax } from '../../src/domain/limits.js'
import { refusals } from '../../src/domain/refusal.js'
import { ShardMap } from '../../src/domain/scope.js'
import { stampOf } from '../../src/domain/stamp.js'
import { decodeEntity } from '../../src/encoded-entity.js'
import type { EntityTarget, ReadRequest, ShardReply, WriteRequest } from '../../src/messages/messages.js'
import { lastStamp } from '../../src/shard/commit/commit-log.js'
import { allEntities, allIndexes } from '../../src/shard/layout.js'
import { shardLimitsDefault } from '../../src/shard/open-shards.js'
import type { LocalShards } from '../../src/shard/shards.js'
import { compareIndexes } from '../support/compare-indexes.js'
import { FakeClock } from '../support/fake-clock.js'
import { localShards } from '../support/local-shards.js'
import { MemoryStore } from '../support/memory-store.js'
import fc from '../support/properties.js'
import { meaning } from '../support/selections.js'

const shardMap = new ShardMap({ shards: 16, spread: 16 })

class Node {
  readonly store: MemoryStore
  readonly clock: FakeClock
  readonly failures: readonly Error[]
  readonly shards: LocalShards

  private constructor(store: MemoryStore, clock: FakeClock, failures: readonly Error[], shards: LocalShards) {
    this.store = store
    this.clock = clock
    this.failures = failures
    this.shards = shards
  }

  static async open(limits = {}, store = new MemoryStore()): Promise<Node> {
    const clock = new FakeClock()
    const failures: Error[] = []
    const shards = await localShards(store, shardMap, clock, {
      limits: { ...shardLimitsDefault, ...limits },
      onFailure: failure => failures.push(failure),
    })
    return new Node(store, clock, failures, shards)
  }

  /** Sends a request, and returns a list that has the reply when it has come. */
  ask(request: WriteRequest | ReadRequest): ShardReply[] {
    const replies: ShardReply[] = []
    const { tenant, path, id } = 'target' in request ? request.target : { tenant: request.tenant, path: '/', id: '' }
    this.shards.ask(shardMap.shardOf(tenant, path, id), request, reply => replies.push(reply))
    return replies
  }

  /** Makes all staged changes durable, and lets all waiting replies leave. */
  async rest(): Promise<void> {
    for (let rounds = 0; rounds < 4; rounds++) {
      this.clock.tick()
      await turnOfTheLoop()
    }
  }

  /** Sends a request, and rests. */
  async end(request: WriteRequest | ReadRequest): Promise<ShardReply | undefined> {
    const replies = this.ask(request)
    await this.rest()
    return replies[0]
  }

  /** The attribute `n` of the only entity with this id, from the store or from memory. */
  async n(id: string, type?: string): Promise<Json | undefined> {
    const reply = await this.end(find(id, type))
    if (reply?.kind !== 'found' || reply.entities.length !== 1) return undefined
    return decodeEntity(reply.entities[0]!.encoded).attributes.get('n')?.value
  }

  /** The types of an id, in the order in which its row has them. */
  async types(id: string): Promise<string[]> {
    const reply = await this.end(find(id))
    return reply?.kind === 'found' ? reply.entities.map(({ encoded }) => decodeEntity(encoded).type) : []
  }

  async rows(): Promise<number> {
    let count = 0
    for (const range of [allEntities(), ...allIndexes()]) count += (await this.store.cursor(range).next(10_000)).length
    return count
  }
}

const done: ShardReply = { kind: 'done' }
const origin = { correlatorRoot: 'root' }
const options = { overrideMetadata: false, forcedUpdate: false }
const target = (id: string, type?: string, path = '/'): EntityTarget => ({ tenant: 't', path, id, type })
const wanted = (value: Json, type = 'Number'): WantedAttribute => ({
  type,
  value,
  operator: type === 'DateTime' ? undefined : operatorOf(value),
  metadata: undefined,
})

function create(id: string, n: Json, { type = 'T', path = '/', upsert = false } = {}): WriteRequest {
  const entity = { id, type, attributes: new Map([['n', wanted(n)]]) }
  return { kind: 'create', target: target(id, type, path), origin, entity, upsert, options }
}

const append = (on: EntityTarget, attributes: Record<string, WantedAttribute>): WriteRequest => ({
  kind: 'append',
  target: on,
  origin,
  attributes: new Map(Object.entries(attributes)),
  options,
})
const increment = (id: string, type?: string): WriteRequest => append(target(id, type), { n: wanted({ $inc: 1 }) })
const remove = (id: string, type?: string): WriteRequest => ({
  kind: 'deleteEntity',
  target: target(id, type),
  origin,
})
const find = (id: string, type?: string, paths = ['/']): ReadRequest => ({
  kind: 'find',
  tenant: 't',
  paths,
  id,
  type,
})

t.test('a creation is done when it is durable, and not before', async t => {
  const node = await Node.open()
  const replies = node.ask(create('E', 1))
  await turnOfTheLoop()
  t.strictSame(replies, [])
  await node.rest()
  t.strictSame(replies, [done])
})

t.test('later turns see a creation that is not durable yet', async t => {
  const node = await Node.open()
  node.ask(create('E', 1))
  const second = node.ask(create('E', 2))
  node.ask(increment('E'))
  await node.rest()
  t.strictSame(second, [{ kind: 'refused', refusal: refusals.entityExists }])
  t.equal(await node.n('E'), 2)
})

t.test('a refusal that depends on changes that are not durable yet waits for them', async t => {
  const node = await Node.open()
  node.ask(create('E', 1))
  const refusal = node.ask(create('E', 1))
  t.strictSame(refusal, [])
  await node.rest()
  t.equal(refusal.length, 1)
})

t.test('a refusal that depends on nothing staged does not wait', async t => {
  const node = await Node.open()
  t.strictSame(node.ask(increment('E')), [{ kind: 'refused', refusal: refusals.entityNotFound }])
})

t.test('a read of staged changes waits until they are durable', async t => {
  const node = await Node.open()
  node.ask(create('E', 1))
  const reply = node.ask(find('E'))
  t.strictSame(reply, [])
  await node.rest()
  t.match(reply, [{ kind: 'found', entities: { length: 1 } }])
})

t.test('a read of staged changes waits also while their commit is in flight', async t => {
  const node = await Node.open()
  node.ask(create('E', 1))
  node.clock.tick()
  t.strictSame(node.ask(find('E')), [])
})

t.test('a read that finds nothing because of a removal waits until the removal is durable', async t => {
  const node = await Node.open()
  await node.end(create('E', 1))
  node.ask(remove('E'))
  const staged = node.ask(find('E'))
  node.clock.tick()
  const inFlight = node.ask(find('E'))
  t.strictSame([staged, inFlight], [[], []])
  await node.rest()
  t.match([staged, inFlight], [[{ entities: { length: 0 } }], [{ entities: { length: 0 } }]])
})

t.test('a read of an entity without changes does not wait', async t => {
  const node = await Node.open()
  await node.end(create('E', 1))
  node.ask(create('F', 1))
  t.match(node.ask(find('E')), [{ kind: 'found', entities: { length: 1 } }])
})

t.test('increments that meet are all counted', async t => {
  const node = await Node.open()
  await node.end(create('E', 0))
  for (let k = 0; k < 100; k++) {
    node.ask(increment('E'))
    if (k % 7 === 0) node.clock.tick()
    if (k % 13 === 0) await turnOfTheLoop()
  }
  await node.rest()
  t.equal(await node.n('E'), 100)
})

t.test('when too many replies wait the shard is busy, and nothing happens', async t => {
  const node = await Node.open({ mailboxLengthMax: 2 })
  node.ask(create('E', 0))
  node.ask(increment('E'))
  t.strictSame(node.ask(increment('E')), [{ kind: 'busy' }])
  await node.rest()
  t.equal(await node.n('E'), 1)
})

t.test('a shard is not busy any more once its replies have left', async t => {
  const node = await Node.open({ mailboxLengthMax: 1 })
  node.ask(create('E', 0))
  t.strictSame(node.ask(increment('E')), [{ kind: 'busy' }])
  await node.rest()
  t.strictSame(await node.end(increment('E')), done)
})

t.test('a reply that need not wait takes no place in the mailbox', async t => {
  const node = await Node.open({ mailboxLengthMax: 1 })
  await node.end(create('E', 0))
  node.ask(create('E', 0))
  t.match(node.ask(create('E', 0)), [{ kind: 'refused' }])
})

t.test('an id of several types is ambiguous without a type', async t => {
  const node = await Node.open()
  await node.end(create('E', 1, { type: 'A' }))
  await node.end(create('E', 2, { type: 'B' }))
  t.strictSame(await node.end(increment('E')), { kind: 'refused', refusal: refusals.entityAmbiguous })
})

t.test('an id of several types is found by each', async t => {
  const node = await Node.open()
  await node.end(create('E', 1, { type: 'A' }))
  await node.end(create('E', 2, { type: 'B' }))
  await node.end(increment('E', 'B'))
  t.strictSame([await node.n('E', 'A'), await node.n('E', 'B'), await node.n('E', 'C')], [1, 3, undefined])
})

t.test('removing one of several types leaves the others', async t => {
  const node = await Node.open()
  for (const [n, type] of ['A', 'B', 'C'].entries()) await node.end(create('E', n, { type, path: '/' }))
  t.strictSame(await node.end(remove('E', 'B')), done)
  t.strictSame([await node.n('E', 'A'), await node.n('E', 'B'), await node.n('E', 'C')], [0, undefined, 2])
  t.strictSame(await compareIndexes(node.store), [])
})

t.test('types keep the order in which they were added, after any changes', async t => {
  const node = await Node.open()
  for (const [n, type] of ['A', 'B', 'C'].entries()) await node.end(create('E', n, { type, path: '/' }))
  await node.end(increment('E', 'B'))
  await node.end(remove('E', 'A'))
  await node.end(create('E', 9, { type: 'A', path: '/' }))
  t.strictSame(await node.types('E'), ['B', 'C', 'A'])
})

t.test('the last of several types needs no type any more', async t => {
  const node = await Node.open()
  await node.end(create('E', 1, { type: 'A' }))
  await node.end(create('E', 2, { type: 'B' }))
  await node.end(remove('E', 'A'))
  t.strictSame(await node.end(increment('E')), done)
  t.equal(await node.n('E'), 3)
})

t.test('an entity that is created and removed before it is durable leaves nothing', async t => {
  const node = await Node.open()
  node.ask(create('E', 1, { path: '/a' }))
  node.ask({ kind: 'deleteEntity', target: target('E', 'T', '/a'), origin })
  await node.rest()
  t.equal(await node.rows(), 0)
})

t.test('an update that changes nothing is done and stages nothing', async t => {
  const node = await Node.open()
  await node.end(create('E', 1))
  t.strictSame(node.ask(append(target('E'), { n: wanted(1) })), [done])
  t.equal(node.clock.waiting, 0)
})

t.test('a forgotten entity is read from the store', async t => {
  const node = await Node.open({ liveActorsMax: 2 })
  for (let k = 0; k < 20; k++) await node.end(create(`E${k}`, k))
  for (let k = 0; k < 20; k++) await node.end(increment(`E${k}`))
  for (let k = 0; k < 20; k++) t.equal(await node.n(`E${k}`), k + 1)
})

t.test('entities that are not durable are never forgotten, in any number', async t => {
  const node = await Node.open({ liveActorsMax: 2 })
  for (let round = 0; round < 3; round++) for (let k = 0; k < 40; k++) node.ask(create(`E${k}`, 0, { upsert: true }))
  for (let k = 0; k < 40; k++) node.ask(increment(`E${k}`))
  node.clock.tick()
  for (let k = 0; k < 40; k++) node.ask(increment(`E${k}`))
  await node.rest()
  for (let k = 0; k < 40; k++) t.equal(await node.n(`E${k}`), 2)
})

t.test('an actor beyond the limit leaves memory: its next read asks the store', async t => {
  const node = await Node.open({ liveActorsMax: 4 })
  for (let k = 0; k < 30; k++) await node.end(create(`E${k}`, k))
  let gets = 0
  const get = node.store.get.bind(node.store)
  node.store.get = key => {
    gets++
    return get(key)
  }
  for (let k = 0; k < 30; k++) await node.end(find(`E${k}`))
  t.ok(gets >= 26, `${gets} reads of the store`)
  gets = 0
  await node.end(find('E29'))
  t.equal(gets, 0, 'the latest is in memory')
})

t.test('an entity that is too large is refused and nothing of it is stored', async t => {
  const node = await Node.open()
  const text = 'x'.repeat(entityRowBytesMax)
  t.match(await node.end(create('E', text)), {
    kind: 'refused',
    refusal: { kind: 'RequestEntityTooLarge' },
  })
  t.equal(await node.rows(), 0)
  t.strictSame(await node.end(create('E', 1)), done, 'the id is free')
})

t.test('the limit of a row counts all types of the id', async t => {
  const node = await Node.open()
  const half = 'x'.repeat(entityRowBytesMax / 2)
  t.strictSame(await node.end(create('E', half, { type: 'A' })), done)
  t.match(await node.end(create('E', half, { type: 'B' })), { kind: 'refused' })
  t.equal(await node.n('E', 'A'), half)
  t.equal(await node.n('E', 'B'), undefined)
})

t.test('an update that makes an entity too large leaves it as it was', async t => {
  const node = await Node.open()
  await node.end(create('E', 1))
  const large = append(target('E'), { n: wanted('x'.repeat(entityRowBytesMax)) })
  t.match(await node.end(large), { kind: 'refused' })
  t.equal(await node.n('E'), 1)
})

t.test('when the store fails waiting callers get the failure, and no request is accepted any more', async t => {
  const node = await Node.open()
  node.store.breakDown(new Error('disk full'))
  const waiting = node.ask(create('E', 1))
  const reading = node.ask(find('E'))
  await node.rest()
  const failed = { kind: 'failed', reason: 'the store could not write: disk full' }
  t.strictSame(
    [waiting, reading, node.ask(create('F', 1)), node.ask(find('F'))],
    [[failed], [failed], [failed], [failed]],
  )
  t.equal(node.failures.length, 1)
})

t.test('everything taken is durable after draining', async t => {
  const node = await Node.open()
  const replies = node.ask(create('E', 1))
  const draining = node.shards.drain()
  node.clock.tick()
  await draining
  t.strictSame(replies, [done])
})

t.test('the items of a batch take their turns in order, and are answered together when all are durable', async t => {
  const node = await Node.open()
  const replies: ShardReply[] = []
  const items = [create('E', 1), create('F', 1), create('E', 2), increment('E'), remove('F'), increment('G')]
  node.shards.ask(0, { kind: 'batch', items }, reply => replies.push(reply))
  await turnOfTheLoop()
  t.strictSame(replies, [])
  await node.rest()
  const exists: ShardReply = { kind: 'refused', refusal: refusals.entityExists }
  const missing: ShardReply = { kind: 'refused', refusal: refusals.entityNotFound }
  t.strictSame(replies, [{ kind: 'batch', replies: [done, done, exists, done, done, missing] }])
  t.equal(await node.n('E'), 2)
  t.equal(await node.n('F'), undefined)
})

t.test('stamps go on from the last one that is on disk', async t => {
  const first = await Node.open()
  first.clock.jumpWall(3_600_000)
  await first.end(create('E', 1))
  const second = await Node.open({}, first.store)
  const last = lastStamp(first.store)
  await second.end(create('F', 1))
  t.ok(lastStamp(first.store) > last)
})

// Random commands against a plain model: a map of entities.

const day = 86_400_000
const startMs = new FakeClock().wallMs()
interface Model {
  n: number | undefined
  dueMs: number | undefined
}
type Command = {
  readonly kind: 'create' | 'upsert' | 'increment' | 'delete' | 'due' | 'undue' | 'expire' | 'tick' | 'rest'
  readonly path: string
  readonly id: string
  readonly type: string | undefined
  readonly n: number
}

const commands: fc.Arbitrary<Command> = fc.record({
  kind: fc.constantFrom('create', 'upsert', 'increment', 'delete', 'due', 'undue', 'expire', 'tick', 'rest'),
  path: fc.constantFrom('/', '/a', '/a/b'),
  id: fc.constantFrom('E', 'F'),
  type: fc.constantFrom('A', 'B', undefined),
  n: fc.integer({ min: 1, max: 9 }),
})

const dueMsOf = ({ n }: Command): number => startMs + n * day

function requestOf(command: Command): WriteRequest {
  const { kind, path, id, type = 'A', n } = command
  const on = target(id, command.type, path)
  switch (kind) {
    case 'create':
    case 'upsert':
      return create(id, n, { type, path, upsert: kind === 'upsert' })
    case 'increment':
      return append(on, { n: wanted({ $inc: n }) })
    case 'due':
      return append(on, { dateExpires: wanted(new Date(dueMsOf(command)).toISOString(), 'DateTime') })
    case 'undue':
      return { kind: 'deleteAttribute', target: on, origin, name: 'dateExpires' }
    case 'expire':
      return { kind: 'expire', target: on, origin, nowMs: dueMsOf(command) }
    default:
      return { kind: 'deleteEntity', target: on, origin }
  }
}

/** The model's reply to a command. The command also changes the model. */
function expected(entities: Map<string, Model>, command: Command): ShardReply {
  const { kind, path, id, type = 'A', n } = command
  const refuse = (refusal: (typeof refusals)['entityNotFound']): ShardReply => ({ kind: 'refused', refusal })
  const keyOf = (type: string) => `${path} ${id} ${type}`
  if (kind === 'create' || kind === 'upsert') {
    const known = entities.get(keyOf(type))
    if (known && kind === 'create') return refuse(refusals.entityExists)
    entities.set(keyOf(type), { n, dueMs: known?.dueMs })
    return done
  }
  const meant = (command.type ? [command.type] : ['A', 'B']).map(keyOf).filter(key => entities.has(key))
  if (meant.length !== 1) return refuse(meant.length === 0 ? refusals.entityNotFound : refusals.entityAmbiguous)
  const [key] = meant as [string]
  const entity = entities.get(key)!
  if (kind === 'increment') entity.n = (entity.n ?? 0) + n
  if (kind === 'due') entity.dueMs = dueMsOf(command)
  if (kind === 'undue' && entity.dueMs === undefined) return refuse(refusals.attributeNotFound)
  if (kind === 'undue') entity.dueMs = undefined
  if (kind === 'delete') entities.delete(key)
  if (kind === 'expire' && entity.dueMs !== undefined && entity.dueMs <= dueMsOf(command)) entities.delete(key)
  return done
}

t.test('replies and entities are those of a map for any requests, and the indexes equal a rebuild', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(commands, { maxLength: 40 }),
      fc.constantFrom(1, 100),
      async (sequence, liveActorsMax) => {
        const node = await Node.open({ liveActorsMax })
        const entities = new Map<string, Model>()
        const all: { readonly command: Command; readonly replies: ShardReply[]; readonly should: ShardReply }[] = []
        for (const command of sequence) {
          if (command.kind === 'tick') node.clock.tick()
          else if (command.kind === 'rest') await node.rest()
          else all.push({ command, replies: node.ask(requestOf(command)), should: expected(entities, command) })
        }
        await node.rest()
        for (const { replies, should } of all) assert.deepEqual(replies, [should])
        assert.deepEqual(await compareIndexes(node.store), [])
        const list: ReadRequest = {
          kind: 'list',
          tenant: 't',
          paths: ['/#'],
          selection: meaning(),
          order: [],
          offset: 0,
          limit: 100,
        }
        const listed = await node.end(list)
        assert(listed?.kind === 'listed')
        const found = listed.entities.map(({ path, encoded }): [string, Model] => {
          const { id, type, attributes } = decodeEntity(encoded)
          const due = attributes.get('dateExpires')?.value as string | undefined
          const n = attributes.get('n')?.value as number | undefined
          return [`${path} ${id} ${type}`, { n, dueMs: due === undefined ? undefined : Date.parse(due) }]
        })
        assert.deepEqual(new Map(found), entities)
        assert.equal(listed.total, entities.size)
      },
    ),
    { numRuns: 150 },
  )
})

t.test('the comparison with a rebuild lists missing, extra and different rows', async t => {
  const node = await Node.open()
  const due = wanted('2030-01-01T00:00:00.000Z', 'DateTime')
  await node.end(create('E', 1, { path: '/a' }))
  await node.end(append(target('E', 'T', '/a'), { dateExpires: due }))
  const [types, ids, expiries, directory] = await Promise.all(
    allIndexes().map(async range => (await node.store.cursor(range).next(1))[0]!),
  )
  const batch = node.store.batch()
  batch.put(types!.key, Buffer.from('other'))
  batch.del(ids!.key)
  batch.put(Buffer.concat([ids!.key.subarray(0, -2), Buffer.from('b\0')]), Buffer.alloc(0))
  batch.del(expiries!.key)
  batch.put(directory!.key, Buffer.from('4000000000000000', 'hex'))
  await new Promise<void>(resolve => node.store.commit(batch, () => resolve()))
  t.match([...(await compareIndexes(node.store))].sort(), [
    /^different: directory {"tenant":"t","path":"\/a","type":"T","shard":\d+} = 2, where it should be 1$/,
    /^different: type index {"tenant":"t","path":"\/a","type":"T","created":\d+,"shard":\d+} = "other", where it should be "E"$/,
    /^extra: id index {"tenant":"t","id":"E","path":"\/b"}/,
    /^missing: expiry index {"expires":"2030-01-01T00:00:00.000Z",.*"id":"E","type":"T","shard":\d+}/,
    /^missing: id index {"tenant":"t","id":"E","path":"\/a"}/,
  ])
})

t.test('an expiry does not raise given stamps of later writes: parts of a batch keep their order', async t => {
  const node = await Node.open()
  const dueMs = node.clock.wallMs() + 1_000
  await node.end(create('E', 1))
  await node.end(append(target('E'), { dateExpires: wanted(new Date(dueMs).toISOString(), 'DateTime') }))
  node.clock.advance(2_000)
  const given = stampOf(node.clock.wallMs())
  node.clock.advance(1)
  await node.end({ kind: 'expire', target: target('E'), origin, nowMs: dueMs })
  await node.end({ ...create('F', 1), stamp: given })
  t.equal(lastStamp(node.store), given)
})
