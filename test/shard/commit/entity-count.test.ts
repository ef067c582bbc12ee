// How many entities there are: what was there, and what has changed since, whichever comes first.

import t from 'tap'
import type { Store } from '../../../src/ports.js'
import { Directory } from '../../../src/shard/commit/directory.js'
import { EntityCount } from '../../../src/shard/commit/entity-count.js'
import { MemoryStore } from '../../support/memory-store.js'

function flush(store: Store, directory: Directory): Promise<void> {
  const batch = store.batch()
  directory.flush(batch)
  return new Promise((resolve, reject) => store.commit(batch, error => (error ? reject(error) : resolve())))
}

/** A store with two entities of one tenant and one of another. */
async function filled(): Promise<MemoryStore> {
  const store = new MemoryStore()
  const writer = new Directory(store)
  writer.count('a', '/', 'A', 1)
  writer.count('a', '/x', 'A', 1)
  writer.count('b', '/', 'A', 1)
  await flush(store, writer)
  return store
}

t.test('before the store is read the count is not known', async t => {
  const count = new EntityCount(new Directory(await filled()))
  t.equal(count.total, undefined)
})

t.test('what the store has and what changes while it is read are counted once each', async t => {
  const store = await filled()
  const directory = new Directory(store)
  const count = new EntityCount(directory)
  count.begin(store)
  directory.count('c', '/', 'A', 1)
  directory.count('c', '/', 'A', 1)
  directory.count('a', '/', 'A', -1)
  await flush(store, directory)
  while (count.total === undefined) await new Promise(resolve => setImmediate(resolve))
  t.equal(count.total, 4)
  directory.count('a', '/x', 'A', -1)
  t.equal(count.total, 3)
  await count.stop()
})

t.test('stopped, it needs the store no longer', async t => {
  const store = await filled()
  const count = new EntityCount(new Directory(store))
  count.begin(store)
  await count.stop()
  await store.close()
  t.pass('and nothing is read after that')
})
