// Counts of a node whose shards come and go: the sums over those that are its own, whatever changes while they are read.

import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { Paths } from '../../../src/shard/commit/directory.js'
import { OwnedCounts } from '../../../src/shard/replicate/owned-counts.js'
import { entityCountsOf } from '../../../src/shard/replicate/replicated-layout.js'
import { commit } from '../../storage/store-contract.js'
import { MemoryStore } from '../../support/memory-store.js'

type Step =
  | {
      readonly what: 'count'
      readonly shard: number
      readonly path: string
      readonly type: string
      readonly by: 1 | -1
    }
  | { readonly what: 'flush' }
  | { readonly what: 'load' }
  | { readonly what: 'turn'; readonly shard: number }

const shards = [0, 1, 2] as const
const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    fc.record({
      what: fc.constant('count' as const),
      shard: fc.constantFrom(...shards),
      path: fc.constantFrom('/', '/a'),
      type: fc.constantFrom('A', 'B'),
      by: fc.constantFrom(1 as const, -1 as const),
    }),
    fc.constantFrom<Step>({ what: 'flush' }, { what: 'load' }),
    fc.record({ what: fc.constant('turn' as const), shard: fc.constantFrom(...shards) }),
  ),
  { maxLength: 40 },
)

const plain = (paths: Paths): unknown => new Map([...paths].map(([path, types]) => [path, new Map(types)]))

t.test(
  'whatever is counted, and whichever shards come and go, the sums are those of the shards that are ours',
  async () => {
    await fc.assert(
      fc.asyncProperty(steps, fc.constantFrom(0, 1, 100), async (all, pairsMax) => {
        const store = new MemoryStore()
        const counts = new OwnedCounts(store, entityCountsOf, pairsMax)
        const owned = new Set<number>()
        /** By shard, path and type: what has been flushed, and what is staged. */
        const model = new Map<string, number>()
        let staged = new Map<string, number>()
        const loads: Promise<unknown>[] = []
        const flush = async (): Promise<void> => {
          await commit(store, batch => counts.flush(batch))
          for (const [key, by] of staged) model.set(key, (model.get(key) ?? 0) + by)
          staged = new Map()
        }
        for (const step of all) {
          if (step.what === 'load') loads.push(counts.load('t'))
          else if (step.what === 'flush') await flush()
          else if (step.what === 'turn') {
            await flush()
            if (owned.delete(step.shard)) counts.end(step.shard)
            else {
              owned.add(step.shard)
              counts.begin(step.shard)
            }
          } else if (owned.has(step.shard)) {
            const { shard, path, type, by } = step
            const key = `${shard} ${path} ${type}`
            if ((model.get(key) ?? 0) + (staged.get(key) ?? 0) + by < 0) continue
            counts.count('t', path, type, by, shard)
            staged.set(key, (staged.get(key) ?? 0) + by)
          }
        }
        await flush()
        await Promise.all(loads)
        const expected = new Map<string, Map<string, number>>()
        for (const [key, count] of model) {
          const [shard, path, type] = key.split(' ') as [string, string, string]
          if (count === 0 || !owned.has(Number(shard))) continue
          const types = expected.get(path) ?? new Map<string, number>()
          expected.set(path, types.set(type, (types.get(type) ?? 0) + count))
        }
        assert.deepEqual(plain(await counts.load('t')), expected)
        assert.deepEqual(plain(counts.paths('t')!), expected, 'it is remembered')
      }),
      { numRuns: 300 },
    )
  },
)

t.test('a tenant without anything is remembered, and of many the latest', async t => {
  const counts = new OwnedCounts(new MemoryStore(), entityCountsOf)
  counts.begin(0)
  for (let n = 0; n <= 1000; n++) await counts.load(`t${n}`)
  t.equal(counts.paths('t0'), undefined)
  t.equal(counts.paths('t1')?.size, 0)
  t.equal(counts.paths('t1000')?.size, 0)
})

t.test('tenants that come and go leave nothing but the latest empty ones', async t => {
  const store = new MemoryStore()
  const counts = new OwnedCounts(store, entityCountsOf)
  for (const shard of shards) counts.begin(shard)
  for (let n = 0; n < 3000; n++) {
    counts.count(`t${n}`, '/', 'A', 1, n % 3)
    await commit(store, batch => counts.flush(batch))
    await counts.load(`t${n}`)
    counts.count(`t${n}`, '/', 'A', -1, n % 3)
    await commit(store, batch => counts.flush(batch))
  }
  await commit(store, batch => counts.flush(batch))
  t.strictSame(counts.size, { tenants: 1000, pairs: 0, tenantsOfShards: 0 })
})

t.test('of too many tenants those that were not used are forgotten, and summed again when they are needed', async t => {
  const store = new MemoryStore()
  const counts = new OwnedCounts(store, entityCountsOf, 100)
  for (const shard of shards) counts.begin(shard)
  for (let n = 0; n < 1000; n++) {
    for (const shard of shards) counts.count(`t${n}`, '/', 'A', 1, shard)
    await commit(store, batch => counts.flush(batch))
    await counts.load(`t${n}`)
    counts.paths('t0')
  }
  t.ok(counts.size.pairs <= 101)
  t.ok(counts.size.tenantsOfShards <= 303)
  t.ok(counts.paths('t0'), 'one that is in use stays')
  t.equal(counts.paths('t1'), undefined)
  t.strictSame(plain(await counts.load('t1')), new Map([['/', new Map([['A', 3]])]]))
})
