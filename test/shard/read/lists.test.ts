// Lists by any plan: they answer alike, wait for views, and end at their limits.

import assert from 'node:assert/strict'
import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import t from 'tap'
import { sortValues } from '../../../src/domain/queries/order.js'
import { refusals } from '../../../src/domain/refusal.js'
import { ShardMap } from '../../../src/domain/scope.js'
import { encodedId } from '../../../src/encoded-entity.js'
import type {
  EncodedEntities,
  EntityPosition,
  ListKeys,
  ListRequest,
  ReadRequest,
  ShardReply,
  WriteRequest,
} from '../../../src/messages/messages.js'
import type { ShardParts } from '../../../src/shard/open-shards.js'
import type { EntityPlace } from '../../../src/shard/read/entity-place.js'
import type { FirstPageScan } from '../../../src/shard/read/places.js'
import { type BuildScan, type ListScan, type Scanner, StepwiseScanner } from '../../../src/shard/read/scans.js'
import type { TableParts } from '../../../src/shard/read/views/table.js'
import type { LocalShards } from '../../../src/shard/shards.js'
import type { KeyHashes, KeyScan } from '../../../src/shard/turn/key-filter.js'
import { entityOf, fill, type Placed, pageOf, plainPage } from '../../support/entities.js'
import { FakeClock } from '../../support/fake-clock.js'
import { listRequests, placedEntities } from '../../support/list-requests.js'
import { localShards, queriesForTests } from '../../support/local-shards.js'
import { MemoryStore } from '../../support/memory-store.js'
import fc from '../../support/properties.js'
import { orderOf, selectionOf } from '../../support/selections.js'

const shardMap = new ShardMap({ shards: 8, spread: 8 })
const { scanDeadlineMs } = queriesForTests

/** Scans in steps. The test sees their number, and may hold them. */
class HoldableScanner implements Scanner {
  lists = 0
  builds = 0
  /** If set, scans wait for it, and fail if it fails. */
  gate: Promise<void> | undefined
  private readonly inner: Scanner

  constructor(inner: Scanner) {
    this.inner = inner
  }

  async list(scan: ListScan): Promise<ShardReply> {
    this.lists++
    await this.gate
    return this.inner.list(scan)
  }

  async build(scan: BuildScan): Promise<readonly TableParts[]> {
    this.builds++
    await this.gate
    return this.inner.build(scan)
  }

  head(scan: FirstPageScan): Promise<readonly EntityPlace[]> {
    return this.inner.head(scan)
  }

  keys(scan: KeyScan): Promise<KeyHashes> {
    return this.inner.keys(scan)
  }

  close(): Promise<void> {
    return this.inner.close()
  }
}

class Node {
  readonly clock: FakeClock
  readonly scanner: HoldableScanner
  private readonly shards: LocalShards

  private constructor(clock: FakeClock, scanner: HoldableScanner, shards: LocalShards) {
    this.clock = clock
    this.scanner = scanner
    this.shards = shards
  }

  static async with(all: readonly Placed[], queries: Partial<ShardParts['queries']> = {}): Promise<Node> {
    const store = new MemoryStore()
    await fill(store, shardMap, 't', all)
    const clock = new FakeClock()
    const scanner = new HoldableScanner(new StepwiseScanner(store, shardMap, clock))
    const given = { scanner, queries: { ...queriesForTests, ...queries } }
    return new Node(clock, scanner, await localShards(store, shardMap, clock, given))
  }

  ask(request: WriteRequest | ReadRequest): ShardReply[] {
    const replies: ShardReply[] = []
    const { tenant, path, id } = 'target' in request ? request.target : { tenant: request.tenant, path: '/', id: '' }
    this.shards.ask(shardMap.shardOf(tenant, path, id), request, reply => replies.push(reply))
    return replies
  }

  /** Runs steps until the work ends or waits for something else. */
  async rest(): Promise<void> {
    for (let quiet = 0, steps = 0; quiet < 4; quiet++) {
      assert(++steps < 10_000, 'it does not end')
      const { waiting } = this.clock
      this.clock.tick()
      if (this.clock.waiting !== waiting) quiet = 0
      await turnOfTheLoop()
    }
  }

  /** Sends a request, and returns the reply when it has come. */
  async end(request: WriteRequest | ReadRequest): Promise<ShardReply> {
    const replies = this.ask(request)
    await this.rest()
    assert.equal(replies.length, 1)
    return replies[0]!
  }

  /** Scans wait from now on. The returned function releases them, or makes them fail. */
  hold(): (failure?: Error) => void {
    let go: (failure?: Error) => void = () => {}
    this.scanner.gate = new Promise((resolve, reject) => {
      go = failure => (failure ? reject(failure) : resolve())
    })
    return failure => {
      this.scanner.gate = undefined
      go(failure)
    }
  }
}

/** More entities than are read one by one. */
const count = 300
const stock: readonly Placed[] = Array.from({ length: count }, (_, n) => ({
  path: '/',
  entity: entityOf(`E${n}`, 'T', 1000 * 2048 + n, { n }),
}))

const list = (wanted: Partial<ListRequest> = {}): ListRequest => ({
  kind: 'list',
  tenant: 't',
  paths: ['/'],
  selection: selectionOf({ q: 'n>=290' }),
  order: [],
  offset: 0,
  limit: 20,
  ...wanted,
})
const byId = list({ order: orderOf('id') })

const create = (id: string, n: number): WriteRequest => ({
  kind: 'create',
  target: { tenant: 't', path: '/', id, type: 'T' },
  origin: { correlatorRoot: '' },
  entity: { id, type: 'T', attributes: new Map([['n', { type: 'Number', value: n, metadata: undefined }]]) },
  upsert: false,
  options: { overrideMetadata: false, forcedUpdate: false },
})

const remove = (id: string): WriteRequest => ({
  kind: 'deleteEntity',
  target: { tenant: 't', path: '/', id, type: 'T' },
  origin: { correlatorRoot: '' },
})

const refused = (refusal: unknown): unknown => ({ kind: 'refused', refusal })

t.test('lists answered by views, by scans and one by one are those of a plain program', async t => {
  const scanned = { lists: 0, builds: 0, found: 0 }
  const everywhere = list({ paths: ['/#'], selection: selectionOf({ q: 'b' }) })
  const enough = placedEntities.filter(some => some.length > 15)
  const copies = fc.constantFrom(1, 20, 20)
  await fc.assert(
    fc.asyncProperty(
      enough,
      copies,
      fc.array(listRequests, { minLength: 16, maxLength: 16 }),
      async (some, times, requests) => {
        const all = Array.from({ length: times }, (_, copy) =>
          some.map(({ path, entity }) => {
            const [id, created] = [`${copy}-${entity.id}`, entity.created + copy * some.length]
            return { path, entity: { ...entity, id: copy === 0 ? entity.id : id, created } }
          }),
        ).flat()
        const withViews = await Node.with(all)
        const withoutViews = await Node.with(all, { viewBytesMax: 0 })
        for (const request of [...requests, everywhere]) {
          const expected = JSON.stringify(plainPage(request, all))
          for (const node of [withViews, withViews, withoutViews])
            if (JSON.stringify(pageOf(await node.end(request))) !== expected) return false
          scanned.found += expected.length > 3 ? 1 : 0
        }
        scanned.builds += withViews.scanner.builds
        scanned.lists += withoutViews.scanner.lists
        return withoutViews.scanner.builds === 0
      },
    ),
    { numRuns: 12 },
  )
  t.ok(Math.min(...Object.values(scanned)) > 0, JSON.stringify(scanned))
})

/** The entities of a part, as a page names them. */
function namesOf(keys: ListKeys, encodedEntities: EncodedEntities): string[] {
  return Array.from({ length: encodedEntities.length }, (_, at) => {
    const encoded = encodedEntities.at(at)
    const [path, type] = keys.ranges[keys.rangeOf[at]!]!
    return encoded ? `${path} ${encodedId(encoded)} ${type}` : 'gone'
  })
}

/** The values by which a part orders its entities. */
const plainValues = ({ order, selection }: ListRequest, names: readonly string[], all: readonly Placed[]): unknown =>
  order.length === 0
    ? []
    : names.map(name => {
        const placed = all.find(({ path, entity: { id, type } }) => `${path} ${id} ${type}` === name) as Placed
        return sortValues(order, placed.entity, placed.path, selection.geo).map(value => value ?? null)
      })

t.test(
  'the parts of a list equal those of a plain program, by every plan, and its entities can be fetched',
  async t => {
    const counts = { keys: 0, values: 0 }
    const enough = placedEntities.filter(some => some.length > 15)
    await fc.assert(
      fc.asyncProperty(
        enough,
        fc.constantFrom(1, 12),
        fc.array(listRequests, { minLength: 12, maxLength: 12 }),
        async (some, times, requests) => {
          const all = Array.from({ length: times }, (_, copy) =>
            some.map(({ path, entity }) => {
              const created = entity.created + copy * some.length
              return { path, entity: { ...entity, id: copy === 0 ? entity.id : `${copy}-${entity.id}`, created } }
            }),
          ).flat()
          const nodes = [await Node.with(all), await Node.with(all, { viewBytesMax: 0 })]
          for (const { offset, ...given } of requests)
            for (const node of nodes) {
              const request = { ...given, offset: 0, limit: offset + given.limit }
              const [total, ...names] = plainPage(request, all)
              const values = plainValues(request, names, all)
              const whole = await node.end({ ...request, part: 'entities' })
              const keys = await node.end({ ...request, part: 'keys' })
              assert(whole.kind === 'part' && keys.kind === 'part')
              assert.deepEqual([whole.total, keys.total, keys.encodedEntities], [total, total, undefined])
              assert.deepEqual(namesOf(whole.keys, whole.encodedEntities!), names)
              for (const part of [whole, keys]) assert.equal(JSON.stringify(part.keys.values), JSON.stringify(values))
              const fetched = await node.end({ kind: 'fetch', tenant: 't', places: standings(keys.keys) })
              assert(fetched.kind === 'fetched')
              assert.deepEqual(namesOf(keys.keys, fetched.encodedEntities), names)
              await checkLimits(node, request, whole)
              counts.keys += names.length
              counts.values += keys.keys.values.length
            }
        },
      ),
      { numRuns: 10 },
    )
    t.ok(Math.min(...Object.values(counts)) > 100, JSON.stringify(counts))
  },
)

/** The same request with a limit below the bytes of its entities, and with exactly that limit. */
async function checkLimits(node: Node, request: ListRequest, whole: Extract<ShardReply, { kind: 'part' }>) {
  const encodedEntities = Array.from(
    { length: whole.encodedEntities!.length },
    (_, at) => whole.encodedEntities!.at(at)!,
  )
  const bytes = encodedEntities.reduce((sum, encoded) => sum + encoded.length, 0)
  assert.equal((await node.end({ ...request, bytesMax: bytes })).kind, 'listed')
  if (bytes === 0) return
  assert.deepEqual(await node.end({ ...request, bytesMax: bytes - 1 }), { kind: 'large' })
  const part = await node.end({ ...request, part: 'entities', bytesMax: bytes >> 1 })
  assert(part.kind === 'part')
  assert.deepEqual(part.keys, whole.keys)
  const first = Array.from({ length: part.encodedEntities!.length }, (_, at) => part.encodedEntities!.at(at)!)
  assert.deepEqual(first, encodedEntities.slice(0, first.length))
  const size = first.reduce((sum, encoded) => sum + encoded.length, 0)
  assert(size <= bytes >> 1 && size + encodedEntities[first.length]!.length > bytes >> 1, 'as many as fit')
  const fetched = await node.end({ kind: 'fetch', tenant: 't', places: standings(whole.keys), bytesMax: 1 })
  assert.deepEqual(fetched, { kind: 'fetched', encodedEntities: encodedEntities.slice(0, 1) }, 'one at least')
}

const standings = ({ created, shards, rangeOf, ranges }: ListKeys): EntityPosition[] =>
  Array.from(created, (stamp, at) => {
    const [path, type] = ranges[rangeOf[at]!]!
    return { created: stamp, shard: shards[at]!, path, type }
  })

t.test('entities of different shards that were created at one time have the same order in every list', async t => {
  const ids = [...new Map(Array.from({ length: 40 }, (_, n) => [shardOf(`E${n}`), `E${n}`])).values()]
  const node = await Node.with(ids.map(id => ({ path: '/', entity: entityOf(id, 'T', 1000 * 2048, {}) })))
  const selectors = [{}, { ids }, { idPattern: 'E' }].map(one => [one])
  const pages: unknown[] = []
  for (const some of selectors)
    pages.push(pageOf(await node.end(list({ selection: selectionOf({ selectors: some }) }))))
  const byShard = ids.toSorted((a, b) => shardOf(a) - shardOf(b))
  const expected = [8, ...byShard.map(id => `/ ${id} T`)]
  t.notSame(ids, byShard)
  t.strictSame(pages, [expected, expected, expected])
})

const shardOf = (id: string): number => shardMap.shardOf('t', '/', id)

t.test('a fetch waits for the commit whose changes it may show', async t => {
  const node = await Node.with(stock)
  const keys = await node.end(list({ selection: selectionOf({}), limit: 3, part: 'keys' }))
  assert(keys.kind === 'part')
  const [first, second, third] = standings(keys.keys)
  const removal = node.ask(remove('E1'))
  const staged = node.ask({ kind: 'fetch', tenant: 't', places: [third!, second!, first!] })
  await node.rest()
  t.strictSame(removal, [{ kind: 'done' }])
  const named = ([reply]: readonly ShardReply[]) =>
    reply?.kind === 'fetched' ? reply.encodedEntities.map(encoded => encoded && encodedId(encoded)) : reply
  t.strictSame(named(staged), ['E2', 'E1', 'E0'], 'as it is on disk')
  const later = await node.end({ kind: 'fetch', tenant: 't', places: [third!, second!, first!] })
  t.strictSame(named([later]), ['E2', undefined, 'E0'])
})

t.test('few entities are looked into one by one', async t => {
  const node = await Node.with(stock.slice(0, 256), { scanRowsMax: 256 })
  t.match(await node.end(list()), { kind: 'listed', total: 0 })
  t.match(await node.end(byId), { kind: 'listed', total: 0 })
  t.match([node.scanner.lists, node.scanner.builds], [0, 0])
})

t.test('a list whose view is being built waits, and then includes the changes since', async t => {
  const node = await Node.with(stock)
  const go = node.hold()
  const replies = node.ask(list())
  const second = node.ask(list({ limit: 0 }))
  await node.rest()
  t.match(await node.end(create('late', 295)), { kind: 'done' })
  t.strictSame([...replies, ...second], [])
  go()
  await node.rest()
  t.strictSame(
    pageOf(replies[0]),
    plainPage(list(), [...stock, { path: '/', entity: entityOf('late', 'T', 1e15, { n: 295 }) }]),
  )
  t.match(second, [{ kind: 'listed', total: 11 }])
  t.match([node.scanner.builds, node.scanner.lists], [1, 0])
})

t.test('a view that is there answers without a scan', async t => {
  const node = await Node.with(stock)
  await node.end(list())
  t.match(await node.end(list({ selection: selectionOf({ q: 'n<7' }) })), { kind: 'listed', total: 7 })
  t.match(await node.end(list({ selection: selectionOf({ q: 'n<7', selectors: [{ types: ['T'] }] }) })), { total: 7 })
  t.match([node.scanner.builds, node.scanner.lists], [1, 0])
})

t.test('a view puts in order by numbers upwards and downwards, and goes on where a page ends', async t => {
  const node = await Node.with(stock)
  for (const order of ['n', '!n', 'type,!n', '!n,servicePath'])
    for (const selection of [selectionOf({ q: 'n!=3' }), selectionOf({})])
      for (const [offset, limit] of [
        [0, 5],
        [5, 5],
        [295, 10],
      ] as const) {
        const request = list({ selection, order: orderOf(order), offset, limit })
        t.strictSame(pageOf(await node.end(request)), plainPage(request, stock), `${order} ${offset}`)
      }
  t.match([node.scanner.builds, node.scanner.lists], [1, 0])
})

t.test('a removed entity is in no list of a view any more', async t => {
  const node = await Node.with(stock)
  const requests = [list(), list({ selection: selectionOf({}), order: orderOf('!n') })]
  for (const request of requests) await node.end(request)
  t.match(await node.end(remove('E295')), { kind: 'done' })
  const left = stock.filter(({ entity }) => entity.id !== 'E295')
  for (const request of requests) t.strictSame(pageOf(await node.end(request)), plainPage(request, left))
  t.match([node.scanner.builds, node.scanner.lists], [1, 0])
})

t.test('a view that would have to look into too many entities gives way to a scan, with its limit', async t => {
  const lists = Array.from({ length: 2010 }, (_, n) => ({
    path: '/',
    entity: entityOf(`E${n}`, 'T', 1000 * 2048 + n, { n: [n] }),
  }))
  const node = await Node.with(lists, { scanRowsMax: 2010 })
  const request = list({ selection: selectionOf({ q: 'n>=2005' }) })
  for (let times = 1; times <= 2; times++) {
    t.strictSame(pageOf(await node.end(request)), plainPage(request, lists))
    t.match([node.scanner.builds, node.scanner.lists], [1, times])
  }
  await node.end(create('one too many', 1))
  t.strictSame(await node.end(request), refused(refusals.scanTooLarge(2011, 2010)))
})

t.test('without memory for views everything is scanned', async t => {
  const node = await Node.with(stock, { viewBytesMax: 0 })
  for (let times = 1; times <= 3; times++) {
    t.strictSame(pageOf(await node.end(list())), plainPage(list(), stock))
    t.match([node.scanner.builds, node.scanner.lists], [0, times])
  }
})

t.test('an order that views do not know is scanned', async t => {
  const node = await Node.with(stock)
  t.strictSame(pageOf(await node.end(byId)), plainPage(byId, stock))
  t.match([node.scanner.builds, node.scanner.lists], [0, 1])
})

t.test('a list that has to look into more entities than it may is refused, with views and without', async t => {
  for (const viewBytesMax of [queriesForTests.viewBytesMax, 0]) {
    const node = await Node.with(stock, { viewBytesMax, scanRowsMax: count - 1 })
    const tooLarge = refused(refusals.scanTooLarge(count, count - 1))
    t.strictSame(await node.end(list()), tooLarge)
    t.strictSame(await node.end(byId), tooLarge)
    t.match([node.scanner.builds, node.scanner.lists], [0, 0])
    t.match(await node.end(list({ selection: selectionOf({ selectors: [{ ids: ['E1'] }] }) })), { total: 1 })
    t.match(await node.end(list({ selection: selectionOf({}) })), { total: count })
  }
})

t.test('as many entities as a list may look into are looked into', async t => {
  for (const viewBytesMax of [queriesForTests.viewBytesMax, 0]) {
    const node = await Node.with(stock, { viewBytesMax, scanRowsMax: count })
    t.match(await node.end(list()), { kind: 'listed', total: 10 })
    t.match(await node.end(byId), { kind: 'listed', total: 10 })
  }
})

t.test('a view that is there answers however many entities it has', async t => {
  const node = await Node.with(stock, { scanRowsMax: count })
  await node.end(list())
  t.match(await node.end(create('one too many', 295)), { kind: 'done' })
  t.match(await node.end(list()), { kind: 'listed', total: 11 })
  t.strictSame(await node.end(byId), refused(refusals.scanTooLarge(count + 1, count)))
})

t.test('a list whose view takes too long to build is refused, and the view is there for the next', async t => {
  const node = await Node.with(stock)
  const go = node.hold()
  const replies = node.ask(list())
  await node.rest()
  node.clock.advance(scanDeadlineMs - 1)
  await node.rest()
  t.strictSame(replies, [])
  node.clock.advance(1)
  await node.rest()
  t.strictSame(replies, [refused(refusals.scanTooLong(scanDeadlineMs))])
  go()
  await node.rest()
  t.equal(replies.length, 1)
  t.match(await node.end(list()), { kind: 'listed', total: 10 })
  t.match([node.scanner.builds, node.scanner.lists], [1, 0])
})

t.test('a scan that waits too long for its turn is refused', async t => {
  const node = await Node.with(stock, { viewBytesMax: 0 })
  node.hold()
  const replies = node.ask(list())
  await node.rest()
  node.clock.advance(scanDeadlineMs)
  await node.rest()
  t.strictSame(replies, [refused(refusals.scanTooLong(scanDeadlineMs))])
})

t.test('an answer in time leaves no timer behind', async t => {
  const node = await Node.with(stock)
  await node.end(list())
  await node.end(byId)
  t.equal(node.clock.waiting, 0)
})

t.test('when as many lists wait for scans as may, another is turned away, and later it is not', async t => {
  const scansMax = 1000
  const node = await Node.with(stock, { viewBytesMax: 0 })
  const go = node.hold()
  const waiting = Array.from({ length: scansMax }, () => node.ask(list()))
  await node.rest()
  t.strictSame(await node.end(list()), { kind: 'busy' })
  t.match(await node.end(list({ selection: selectionOf({}) })), { kind: 'listed' }, 'who needs no scan is served')
  go(new Error('the thread has died'))
  await node.rest()
  t.ok(waiting.every(([reply]) => reply?.kind === 'failed'))
  t.match(await node.end(list()), { kind: 'listed' })
})

t.test('a view that cannot be built fails the list, and the next one tries again', async t => {
  const node = await Node.with(stock)
  const go = node.hold()
  const replies = node.ask(list())
  await node.rest()
  go(new Error('the thread has died'))
  await node.rest()
  t.strictSame(replies, [{ kind: 'failed', reason: 'the thread has died' }])
  t.match(await node.end(list()), { kind: 'listed', total: 10 })
})

t.test('a scan that fails fails the list', async t => {
  const node = await Node.with(stock, { viewBytesMax: 0 })
  const go = node.hold()
  const replies = node.ask(list())
  await node.rest()
  go(new Error('the thread has died'))
  await node.rest()
  t.strictSame(replies, [{ kind: 'failed', reason: 'the thread has died' }])
})
