// The store of a node of a cluster, made from those of a single node: the same content in other shards, and every index as it should be.

import t, { type Test } from 'tap'
import { ShardMap, workerOf } from '../../../src/domain/scope.js'
import { encodeImage, imageCreated } from '../../../src/image.js'
import type { Store } from '../../../src/ports.js'
import { repartition } from '../../../src/process/repartition.js'
import { lastStamp } from '../../../src/shard/commit/commit-log.js'
import { allEntities, decodeRow, entityKey, parseEntityKey } from '../../../src/shard/layout.js'
import { compareIndexes } from '../../../src/shard/rebuild.js'
import { parsePathKey, pathRange } from '../../../src/shard/replicate/replicated-layout.js'
import { seed } from '../../../src/shard/replicate/seed.js'
import { commit, rowsOf } from '../../storage/store-contract.js'
import { tempDir } from '../../support/broker-process.js'
import { directoryAt, openAll, placement, populated } from '../../support/divided.js'
import { entityOf } from '../../support/entities.js'
import { MemoryStore } from '../../support/memory-store.js'
import { Random } from '../../support/random.js'

const random = Random.fromEnvironment()
t.comment(`SEED=${random.seed}`)

const clusterPlacement = { shards: 4, spread: 2 }
const shardMap = new ShardMap(clusterPlacement)
const limits = { batchRowsMax: 20, batchBytesMax: 1024 * 1024 }

async function seeded(sources: readonly Store[], sourceShards = placement.shards) {
  const target = new MemoryStore()
  const batches: number[] = []
  const stamp = Math.max(...sources.map(lastStamp))
  const onBatch = (entities: number): void => void batches.push(entities)
  const result = await seed({ sources, sourceShards, target, shardMap, stamp, limits, onBatch })
  return { target, result, batches }
}

/** Images by scope, id and type order, wherever they lie. */
async function contentOf(stores: readonly Store[]): Promise<ReadonlyMap<string, readonly string[]>> {
  const content = new Map<string, readonly string[]>()
  for (const store of stores)
    for (const { key, value } of await rowsOf(store, allEntities())) {
      const { tenant, path, id } = parseEntityKey(key)
      content.set(
        JSON.stringify([tenant, path, id]),
        decodeRow(value).map(image => image.toString('latin1')),
      )
    }
  return content
}

const sorted = <T>(content: ReadonlyMap<string, T>) => [...content].sort(([a], [b]) => (a < b ? -1 : 1))

async function sourcesOf(t: Test, workers: number): Promise<readonly Store[]> {
  const path = tempDir(t)
  await populated(path, random, 1500)
  await repartition(directoryAt(path), workers, { logger: { info: () => {}, warn: () => {} } })
  const stores = await openAll(directoryAt(path))
  t.teardown(async () => {
    for (const store of stores) await store.close()
  })
  return stores
}

for (const workers of [1, 3])
  t.test(`entities of ${workers === 1 ? 'one worker' : `${workers} workers`}`, async t => {
    const sources = await sourcesOf(t, workers)
    const { target, result, batches } = await seeded(sources)
    t.strictSame(sorted(await contentOf([target])), sorted(await contentOf(sources)), 'are all there, as they were')
    t.strictSame(await compareIndexes(target, 'by shard'), [], 'with indexes and counts as they should be')
    const rows = await rowsOf(target, allEntities())
    t.ok(rows.length > 300)
    for (const { key } of rows) {
      const { shard, tenant, path, id } = parseEntityKey(key)
      if (shard !== shardMap.shardOf(tenant, path, id)) t.fail(`${id} is in shard ${shard}`)
    }
    t.equal(
      batches.reduce((sum, entities) => sum + entities, 0),
      result.entities,
    )
    const paths = new Set(rows.map(({ key }) => JSON.stringify(scopeOf(key))))
    const known = (await rowsOf(target, pathRange(clusterPlacement.shards))).map(({ key }) => parsePathKey(key))
    t.strictSame(
      known.map(({ tenant, path }) => JSON.stringify([tenant, path])).sort(),
      [...paths].sort(),
      'and the register knows the paths',
    )
  })

const scopeOf = (key: Buffer): readonly [string, string] => {
  const { tenant, path } = parseEntityKey(key)
  return [tenant, path]
}

t.test('two that were created at one moment, and meet in one shard, are both found', async t => {
  const sourceMap = new ShardMap(placement)
  const sources = [new MemoryStore(), new MemoryStore()]
  const stamp = 1_000_000
  for (const [worker, store] of sources.entries()) {
    const id = Array.from({ length: 100 }, (_, n) => `E${n}`).find(
      id => workerOf(sourceMap.shardOf('', '/', id), sources.length) === worker,
    )!
    const image = encodeImage(entityOf(id, 'T', stamp, { n: 1 }), 'root')
    await commit(store, batch => batch.put(entityKey(sourceMap.shardOf('', '/', id), '', '/', id), image))
  }
  const single = new ShardMap({ shards: 1, spread: 1 })
  const target = new MemoryStore()
  const { stamp: last } = await seed({
    sources,
    sourceShards: placement.shards,
    target,
    shardMap: single,
    stamp,
    limits,
    onBatch: () => {},
  })
  t.strictSame(await compareIndexes(target, 'by shard'), [])
  const created = (await rowsOf(target, allEntities())).map(({ value }) => imageCreated(decodeRow(value)[0]!))
  t.equal(new Set(created).size, 2, 'their stamps are different')
  t.equal(last, Math.max(...created))
})

t.test('a signal stops it between two batches', async t => {
  const sources = await sourcesOf(t, 1)
  const stop = new AbortController()
  const onBatch = (): void => stop.abort(new Error('the operator has stopped it'))
  const given = { sources, sourceShards: placement.shards, target: new MemoryStore(), shardMap, stamp: 1, limits }
  await t.rejects(seed({ ...given, onBatch, signal: stop.signal }), { message: 'the operator has stopped it' })
})
