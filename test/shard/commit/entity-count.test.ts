// The number of entities: those in the store, and later changes, in either order of arrival.

import t from 'tap'
import type { Store } from '../../../src/ports.js'
import { Counts } from '../../../src/shard/commit/counts.js'
import { EntityCount } from '../../../src/shard/commit/entity-count.js'
import { entityCounts } from '../../../src/shard/layout.js'
import { commit } from '../../storage/store-contract.js'
import { MemoryStore } from '../../support/memory-store.js'

const everyShard = (): boolean => true

const flush = async (store: Store, counts: Counts): Promise<void> => {
  await commit(store, batch => counts.flush(batch, everyShard))
  counts.settle(everyShard)
}

/** A store with two entities of one tenant and one of another, in two shards. */
async function filled(owned?: Uint8Array): Promise<MemoryStore> {
  const store = new MemoryStore()
  const writer = new Counts(store, entityCounts, owned)
  writer.count('a', '/', 'A', 1, 0)
  writer.count('a', '/x', 'A', 1, 1)
  writer.count('b', '/', 'A', 1, 1)
  await flush(store, writer)
  return store
}

async function untilKnown(count: EntityCount): Promise<number> {
  while (count.total === undefined) await new Promise(resolve => setImmediate(resolve))
  return count.total
}

t.test('before the store is read the count is not known', async t => {
  const count = new EntityCount(new Counts(await filled(), entityCounts))
  t.equal(count.total, undefined)
  await count.stop()
})

t.test('the entities of the store and the changes while it is read are counted once each', async t => {
  const store = await filled()
  const counts = new Counts(store, entityCounts)
  const count = new EntityCount(counts)
  counts.count('c', '/', 'A', 1, 0)
  counts.count('c', '/', 'A', 1, 1)
  counts.count('a', '/', 'A', -1, 0)
  await flush(store, counts)
  t.equal(await untilKnown(count), 4)
  counts.count('a', '/x', 'A', -1, 1)
  t.equal(count.total, 4, 'a staged change does not count yet')
  await flush(store, counts)
  t.equal(count.total, 3)
  await count.stop()
})

t.test('a change that is flushed and not yet written when reading begins is counted once', async t => {
  const store = await filled()
  const counts = new Counts(store, entityCounts)
  counts.count('a', '/', 'A', 1, 0)
  counts.flush(store.batch(), everyShard)
  const count = new EntityCount(counts)
  t.equal(await untilKnown(count), 4)
  await count.stop()
})

t.test('only shards that are this owner’s own are counted, and they are read again when they change', async t => {
  const owned = Uint8Array.of(1, 0)
  const counts = new Counts(await filled(Uint8Array.of(1, 1)), entityCounts, owned)
  const count = new EntityCount(counts)
  t.equal(await untilKnown(count), 1)
  owned[1] = 1
  counts.forget()
  count.begin()
  t.equal(count.total, undefined)
  t.equal(await untilKnown(count), 3)
  await count.stop()
})

t.test('stopped, it needs the store no longer', async t => {
  const store = await filled()
  const count = new EntityCount(new Counts(store, entityCounts))
  await count.stop()
  await store.close()
  t.pass('and nothing is read after that')
})
