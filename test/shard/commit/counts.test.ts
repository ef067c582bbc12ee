// Counts: memory equals the disk, whether a tenant is read before or after its counts change, and also when shards come
// and go meanwhile.

import assert from 'node:assert/strict'
import t from 'tap'
import type { Cursor, Store } from '../../../src/ports.js'
import { Counts, type Paths } from '../../../src/shard/commit/counts.js'
import { decodeNumber } from '../../../src/shard/keys.js'
import { allShards, entityCounts } from '../../../src/shard/layout.js'
import { commit } from '../../storage/store-contract.js'
import { MemoryStore } from '../../support/memory-store.js'
import fc from '../../support/properties.js'

/** Writes the staged counts as a commit does. */
const everyShard = (): boolean => true

const flush = async (store: Store, counts: Counts): Promise<void> => {
  await commit(store, batch => counts.flush(batch, everyShard))
  counts.settle(everyShard)
}

type PlainPaths = Readonly<Record<string, Readonly<Record<string, number>>>>

const plain = (paths: Paths): PlainPaths =>
  Object.fromEntries([...paths].map(([path, types]) => [path, Object.fromEntries(types)]))

/** The counts of a tenant in memory. */
const known = (counts: Counts, tenant: string): PlainPaths | undefined => {
  const paths = counts.paths(tenant)
  return paths && plain(paths)
}

const stored = (store: Store, tenant: string, path: string, type: string, shard: number): number | undefined => {
  const value = store.get(entityCounts.key(tenant, path, type, shard))
  return value && decodeNumber(value)
}

const allOwned = Uint8Array.of(1, 1, 1)

/**
 * A store with three entities of tenant `t`, two of them in shard 0 and one in shard 1, and counts that have not been
 * read yet.
 */
async function filled(): Promise<{ store: MemoryStore; counts: Counts }> {
  const store = new MemoryStore()
  const writer = new Counts(store, entityCounts, allOwned)
  writer.count('t', '/', 'A', 1, 0)
  writer.count('t', '/', 'A', 1, 1)
  writer.count('t', '/a', 'B', 1, 0)
  await flush(store, writer)
  return { store, counts: new Counts(store, entityCounts, allOwned) }
}

t.test('a tenant is not known before it is read', async t => {
  const { counts } = await filled()
  t.equal(counts.paths('t'), undefined)
})

t.test('reading a tenant brings the sums of its counts over all shards', async t => {
  const { counts } = await filled()
  await counts.load('t')
  t.strictSame(known(counts, 't'), { '/': { A: 2 }, '/a': { B: 1 } })
})

t.test('a tenant of which nothing is stored is empty once it is read, and not remembered', async t => {
  const { counts } = await filled()
  t.equal((await counts.load('other')).size, 0)
  t.equal(counts.paths('other'), undefined)
})

t.test('a tenant that a commit in flight empties stays empty, however often it is read meanwhile', async t => {
  const { store, counts } = await filled()
  counts.count('t', '/', 'A', -1, 0)
  counts.count('t', '/', 'A', -1, 1)
  counts.count('t', '/a', 'B', -1, 0)
  counts.flush(store.batch(), everyShard) // and the store does not show it yet
  t.equal((await counts.load('t')).size, 0)
  t.equal((await counts.load('t')).size, 0)
})

t.test(
  'whether a tenant has anything is known of own shards, commits in flight included, and not remembered',
  async t => {
    const { store, counts } = await filled()
    t.equal(await counts.has('t'), true)
    t.equal(counts.paths('t'), undefined)
    t.equal(await counts.has('other'), false)
    t.equal(await new Counts(store, entityCounts, Uint8Array.of(0, 0, 1)).has('t'), false, 'it is of other shards')
    counts.count('t', '/', 'A', -1, 0)
    counts.count('t', '/', 'A', -1, 1)
    counts.count('t', '/a', 'B', -1, 0)
    counts.count('other', '/', 'A', 1, 2)
    counts.flush(store.batch(), everyShard) // and the store does not show it yet
    t.equal(await counts.has('t'), false)
    t.equal(await counts.has('other'), true)
  },
)

t.test('a staged count does not show until it is written', async t => {
  const { store, counts } = await filled()
  await counts.load('t')
  counts.count('t', '/', 'A', 1, 2)
  t.strictSame(known(counts, 't'), { '/': { A: 2 }, '/a': { B: 1 } })
  await flush(store, counts)
  t.strictSame(known(counts, 't'), { '/': { A: 3 }, '/a': { B: 1 } })
})

t.test('a count that changes before its tenant is read goes on from the stored one', async t => {
  const { store, counts } = await filled()
  counts.count('t', '/', 'A', 1, 0)
  await flush(store, counts)
  t.equal(stored(store, 't', '/', 'A', 0), 2)
  t.equal(stored(store, 't', '/', 'A', 1), 1)
})

t.test('a count of zero leaves the store', async t => {
  const { store, counts } = await filled()
  counts.count('t', '/a', 'B', -1, 0)
  await flush(store, counts)
  t.equal(stored(store, 't', '/a', 'B', 0), undefined)
})

t.test('where shards neither come nor go, all share a row', async t => {
  const store = new MemoryStore()
  const counts = new Counts(store, entityCounts)
  for (const shard of [0, 1, 2]) counts.count('t', '/', 'A', 1, shard)
  const batch = store.batch()
  counts.flush(batch, everyShard)
  t.equal(batch.length, 1)
  await new Promise<void>((resolve, reject) => store.commit(batch, error => (error ? reject(error) : resolve())))
  t.equal(stored(store, 't', '/', 'A', allShards), 3)
  t.strictSame(plain(await new Counts(store, entityCounts).load('t')), { '/': { A: 3 } })
})

t.test('the last one of a type in a shard is not the last one of all', async t => {
  const { store, counts } = await filled()
  await counts.load('t')
  counts.count('t', '/', 'A', -1, 0)
  await flush(store, counts)
  t.equal(counts.emptied, false)
  counts.count('t', '/', 'A', -1, 1)
  const flushing = commit(store, batch => counts.flush(batch, everyShard))
  t.equal(counts.emptied, true)
  await flushing
  counts.settle(everyShard)
  t.equal(counts.emptied, false, 'when the commit has ended')
  t.strictSame(known(counts, 't'), { '/a': { B: 1 } })
})

t.test('changes before a tenant is read are not undone by reading it', async t => {
  const { store, counts } = await filled()
  counts.count('t', '/a', 'B', -1, 0)
  counts.count('t', '/', 'A', 1, 1)
  await flush(store, counts)
  await counts.load('t')
  t.strictSame(known(counts, 't'), { '/': { A: 3 } })
})

t.test('changes while a tenant is read are not undone by the rows of the reader', async t => {
  const { store, counts } = await filled()
  const loading = counts.load('t')
  counts.count('t', '/a', 'B', -1, 0)
  counts.count('t', '/', 'A', 1, 1)
  counts.count('t', '/b', 'C', 1, 2)
  const flushing = flush(store, counts)
  await Promise.all([loading, flushing])
  t.strictSame(known(counts, 't'), { '/': { A: 3 }, '/b': { C: 1 } })
})

t.test('an addition and a removal within a batch write the resulting count', async t => {
  const { store, counts } = await filled()
  counts.count('t', '/', 'A', 1, 0)
  counts.count('t', '/', 'A', -1, 0)
  const batch = store.batch()
  counts.flush(batch, everyShard)
  t.equal(batch.length, 1)
  t.equal(counts.difference, 0)
  t.equal(counts.emptied, false)
})

t.test('a tenant is read once, however many ask for it', async t => {
  const { store, counts } = await filled()
  let cursors = 0
  const open = store.cursor.bind(store)
  store.cursor = range => {
    cursors++
    return open(range)
  }
  await Promise.all([counts.load('t'), counts.load('t')])
  await counts.load('t')
  t.equal(cursors, 1)
})

t.test('a tenant that could not be read is read again', async t => {
  const { store, counts } = await filled()
  const open = store.cursor.bind(store)
  const broken: Cursor = { next: () => Promise.reject(new Error('unreadable')), close: async () => {} }
  store.cursor = () => broken
  await t.rejects(counts.load('t'), { message: 'unreadable' })
  store.cursor = open
  await counts.load('t')
  t.strictSame(known(counts, 't'), { '/': { A: 2 }, '/a': { B: 1 } })
})

t.test('a row that was emptied is forgotten when its commit has ended', async t => {
  const store = new MemoryStore()
  const counts = new Counts(store, entityCounts, allOwned)
  for (const tenant of ['t', 'u']) {
    counts.count(tenant, '/', 'A', 1, 0)
    await flush(store, counts)
    counts.count(tenant, '/', 'A', -1, 0)
    await flush(store, counts)
  }
  await counts.load('u')
  counts.count('other', '/', 'A', 1, 0)
  await flush(store, counts)
  t.strictSame(counts.size, { tenants: 0, pairs: 0, rows: 1 })
})

t.test('a pair that has gone is forgotten', async t => {
  const { store, counts } = await filled()
  await counts.load('t')
  counts.count('t', '/a', 'B', -1, 0)
  await flush(store, counts)
  await flush(store, counts)
  t.strictSame(counts.size, { tenants: 1, pairs: 1, rows: 0 })
})

t.test('tenants that come and go leave nothing', async t => {
  const store = new MemoryStore()
  const counts = new Counts(store, entityCounts, allOwned)
  for (let n = 0; n < 3000; n++) {
    counts.count(`t${n}`, '/', 'A', 1, n % 3)
    await flush(store, counts)
    await counts.load(`t${n}`)
    counts.count(`t${n}`, '/', 'A', -1, n % 3)
    await flush(store, counts)
  }
  await flush(store, counts)
  t.strictSame(counts.size, { tenants: 0, pairs: 0, rows: 0 })
})

t.test('of too many tenants those that were not used are forgotten, and read again when they are needed', async t => {
  const store = new MemoryStore()
  const counts = new Counts(store, entityCounts, allOwned, { pairsMax: 100, rowsMax: 100 })
  for (let n = 0; n < 1000; n++) {
    for (const shard of [0, 1, 2]) counts.count(`t${n}`, '/', 'A', 1, shard)
    await flush(store, counts)
    await counts.load(`t${n}`)
    counts.paths('t0')
  }
  t.ok(counts.size.pairs <= 101)
  t.ok(counts.size.rows <= 206, 'two generations, and a batch more in each')
  t.ok(counts.paths('t0'), 'one that is in use stays')
  t.equal(counts.paths('t1'), undefined)
  t.strictSame(plain(await counts.load('t1')), { '/': { A: 3 } })
})

t.test('a row is not forgotten while a commit about it is in flight', async t => {
  const { store } = await filled()
  const counts = new Counts(store, entityCounts, allOwned, { pairsMax: 0, rowsMax: 0 })
  counts.count('t', '/', 'A', 1, 0)
  counts.flush(store.batch(), everyShard) // and the store does not show it yet
  t.strictSame(plain(await counts.load('t')), { '/': { A: 3 }, '/a': { B: 1 } })
})

t.test('a shard that comes back has the counts that others have written meanwhile', async t => {
  const { store } = await filled()
  const owned = Uint8Array.of(1, 1)
  const counts = new Counts(store, entityCounts, owned)
  counts.count('t', '/', 'A', 1, 1)
  await flush(store, counts)
  owned[1] = 0
  counts.forget()
  t.strictSame(plain(await counts.load('t')), { '/': { A: 1 }, '/a': { B: 1 } })
  const other = new Counts(store, entityCounts, allOwned)
  for (let n = 0; n < 5; n++) other.count('t', '/', 'A', 1, 1)
  await flush(store, other)
  owned[1] = 1
  counts.forget()
  t.strictSame(plain(await counts.load('t')), { '/': { A: 8 }, '/a': { B: 1 } })
})

interface Counting {
  readonly what: 'count'
  readonly tenant: string
  readonly shard: number
  readonly path: string
  readonly type: string
  readonly by: 1 | -1
}

type Step = Counting | { readonly what: 'flush' | 'load' } | { readonly what: 'turn'; readonly shard: number }

const shards = [0, 1, 2] as const
const tenants = ['', 't'] as const
const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    {
      arbitrary: fc.record({
        what: fc.constant('count' as const),
        tenant: fc.constantFrom(...tenants),
        shard: fc.constantFrom(...shards),
        path: fc.constantFrom('/', '/a'),
        type: fc.constantFrom('A', 'B'),
        by: fc.constantFrom(1 as const, -1 as const),
      }),
      weight: 4,
    },
    { arbitrary: fc.constantFrom<Step>({ what: 'flush' }, { what: 'load' }), weight: 2 },
    { arbitrary: fc.record({ what: fc.constant('turn' as const), shard: fc.constantFrom(...shards) }), weight: 1 },
  ),
  { maxLength: 40 },
)

/** Counts, and beside them a plain program that counts the same. */
class Compared {
  private readonly store = new MemoryStore()
  private readonly owned = new Uint8Array(shards.length)
  private readonly counts: Counts
  /** By the parts of a row's key, with staged counts. */
  private readonly model = new Map<string, { readonly step: Counting; readonly slot: number; count: number }>()
  private readonly loads: Promise<unknown>[] = []
  private readonly isWhole: boolean

  constructor(limit: number, isWhole: boolean) {
    this.isWhole = isWhole
    if (isWhole) this.owned.fill(1)
    const limits = { pairsMax: limit, rowsMax: limit }
    this.counts = new Counts(this.store, entityCounts, isWhole ? undefined : this.owned, limits)
  }

  async take(step: Step): Promise<void> {
    if (step.what === 'load') this.loads.push(this.counts.load('t'))
    else if (step.what === 'flush') await flush(this.store, this.counts)
    else if (step.what === 'count') this.count(step)
    else if (step.what === 'turn' && !this.isWhole) await this.turn(step.shard)
  }

  private count(step: Counting): void {
    const { tenant, path, type, shard, by } = step
    if (!this.owned[shard]) return
    const slot = this.isWhole ? allShards : shard
    const key = `${tenant} ${path} ${type} ${slot}`
    const count = (this.model.get(key)?.count ?? 0) + by
    if (count < 0) return
    this.counts.count(tenant, path, type, by, shard)
    this.model.set(key, { step, slot, count })
  }

  /** A shard comes or goes: it has no staged counts, and none in flight. */
  private async turn(shard: number): Promise<void> {
    await flush(this.store, this.counts)
    this.owned[shard] = this.owned[shard] ? 0 : 1
    this.counts.forget()
  }

  async assertEqual(): Promise<void> {
    await flush(this.store, this.counts)
    await Promise.all(this.loads)
    const all = [...this.model.values()].filter(({ count }) => count > 0)
    for (const { step, slot, count } of all)
      assert.equal(stored(this.store, step.tenant, step.path, step.type, slot), count)
    const rows = await this.store.cursor(entityCounts.all).next(100)
    assert.equal(rows.length, all.length, 'no other rows')
    for (const tenant of tenants) {
      const sums: Record<string, Record<string, number>> = {}
      for (const { step, count } of all) {
        if (step.tenant !== tenant || !this.owned[step.shard]) continue
        const types = sums[step.path] ?? {}
        sums[step.path] = { ...types, [step.type]: (types[step.type] ?? 0) + count }
      }
      assert.deepEqual(plain(await this.counts.load(tenant)), sums)
      assert.deepEqual(known(this.counts, tenant) ?? {}, sums, 'it is remembered')
    }
  }
}

t.test('after any counts, and any shards that come and go, memory, store and a plain count agree', async () => {
  await fc.assert(
    fc.asyncProperty(steps, fc.constantFrom(0, 1, 2, 100), fc.boolean(), async (all, limit, isWhole) => {
      const compared = new Compared(limit, isWhole)
      for (const step of all) await compared.take(step)
      await compared.assertEqual()
    }),
    { numRuns: 500 },
  )
})
