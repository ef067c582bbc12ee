// The directory: what is in memory is what is on disk, whether a tenant was read before or after its counts changed.

import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { Cursor, Store } from '../../../src/ports.js'
import { Directory, entityCounts } from '../../../src/shard/commit/directory.js'
import { decodeNumber } from '../../../src/shard/keys.js'
import { directoryKey, directoryRange } from '../../../src/shard/layout.js'
import { MemoryStore } from '../../support/memory-store.js'

/** Writes the staged counts as a commit does. */
function flush(store: Store, directory: Directory): Promise<void> {
  const batch = store.batch()
  directory.flush(batch)
  return new Promise((resolve, reject) => store.commit(batch, error => (error ? reject(error) : resolve())))
}

const paths = (directory: Directory, tenant: string): Record<string, Record<string, number>> | undefined => {
  const known = directory.paths(tenant)
  return known && Object.fromEntries([...known].map(([path, counts]) => [path, Object.fromEntries(counts)]))
}

const stored = (store: Store, tenant: string, path: string, type: string): number | undefined => {
  const value = store.get(directoryKey(tenant, path, type))
  return value && decodeNumber(value)
}

/** A store with three entities of tenant `t`, and a directory that has not read them yet. */
async function filled(): Promise<{ store: MemoryStore; directory: Directory }> {
  const store = new MemoryStore()
  const writer = new Directory(store)
  writer.count('t', '/', 'A', 1)
  writer.count('t', '/', 'A', 1)
  writer.count('t', '/a', 'B', 1)
  await flush(store, writer)
  return { store, directory: new Directory(store) }
}

t.test('a tenant is not known before it is read', async t => {
  const { directory } = await filled()
  t.equal(directory.paths('t'), undefined)
})

t.test('reading a tenant brings its counts', async t => {
  const { directory } = await filled()
  await directory.load('t')
  t.strictSame(paths(directory, 't'), { '/': { A: 2 }, '/a': { B: 1 } })
})

t.test('a tenant of which nothing is stored is empty once it is read', async t => {
  const { directory } = await filled()
  t.equal((await directory.load('other')).size, 0)
})

t.test('a tenant of which nothing is stored is not remembered', async t => {
  const { directory } = await filled()
  await directory.load('other')
  t.equal(directory.paths('other'), undefined)
})

t.test('a tenant that a commit in flight empties stays empty, however often it is read meanwhile', async t => {
  const { store, directory } = await filled()
  directory.count('t', '/', 'A', -1)
  directory.count('t', '/', 'A', -1)
  directory.count('t', '/a', 'B', -1)
  directory.flush(store.batch()) // and the store does not show it yet
  t.equal((await directory.load('t')).size, 0)
  t.equal((await directory.load('t')).size, 0)
})

t.test('a staged count tells nothing until it is written', async t => {
  const { store, directory } = await filled()
  await directory.load('t')
  directory.count('t', '/', 'A', 1)
  t.strictSame(paths(directory, 't'), { '/': { A: 2 }, '/a': { B: 1 } })
  await flush(store, directory)
  t.strictSame(paths(directory, 't'), { '/': { A: 3 }, '/a': { B: 1 } })
})

t.test('a count that changes before its tenant is read goes on from the stored one', async t => {
  const { store, directory } = await filled()
  directory.count('t', '/', 'A', 1)
  await flush(store, directory)
  t.equal(stored(store, 't', '/', 'A'), 3)
})

t.test('a count of zero leaves the store', async t => {
  const { store, directory } = await filled()
  directory.count('t', '/a', 'B', -1)
  await flush(store, directory)
  t.equal(stored(store, 't', '/a', 'B'), undefined)
})

t.test('what changes before a tenant is read is not taken back by reading it', async t => {
  const { store, directory } = await filled()
  directory.count('t', '/a', 'B', -1)
  directory.count('t', '/', 'A', 1)
  await flush(store, directory)
  await directory.load('t')
  t.strictSame(paths(directory, 't'), { '/': { A: 3 } })
})

t.test('what changes while a tenant is read is not taken back by what the reader saw', async t => {
  const { store, directory } = await filled()
  const loading = directory.load('t')
  directory.count('t', '/a', 'B', -1)
  directory.count('t', '/', 'A', 1)
  directory.count('t', '/b', 'C', 1)
  const flushing = flush(store, directory)
  await Promise.all([loading, flushing])
  t.strictSame(paths(directory, 't'), { '/': { A: 3 }, '/b': { C: 1 } })
})

t.test('one that comes and one that goes within a batch write nothing', async t => {
  const { store, directory } = await filled()
  directory.count('t', '/', 'A', 1)
  directory.count('t', '/', 'A', -1)
  const batch = store.batch()
  directory.flush(batch)
  t.equal(batch.length, 0)
})

t.test('a tenant is read once, however many ask for it', async t => {
  const { store, directory } = await filled()
  let cursors = 0
  const open = store.cursor.bind(store)
  store.cursor = range => {
    cursors++
    return open(range)
  }
  await Promise.all([directory.load('t'), directory.load('t')])
  await directory.load('t')
  t.equal(cursors, 1)
})

t.test('a tenant that could not be read is read again', async t => {
  const { store, directory } = await filled()
  const open = store.cursor.bind(store)
  const broken: Cursor = { next: () => Promise.reject(new Error('unreadable')), close: async () => {} }
  store.cursor = () => broken
  await t.rejects(directory.load('t'), { message: 'unreadable' })
  store.cursor = open
  await directory.load('t')
  t.strictSame(paths(directory, 't'), { '/': { A: 2 }, '/a': { B: 1 } })
})

t.test('a tenant that was emptied is forgotten when its commit has ended', async t => {
  const store = new MemoryStore()
  const directory = new Directory(store)
  for (const tenant of ['t', 'u']) {
    directory.count(tenant, '/', 'A', 1)
    await flush(store, directory)
    directory.count(tenant, '/', 'A', -1)
    await flush(store, directory)
  }
  await directory.load('u')
  directory.count('other', '/', 'A', 1)
  await flush(store, directory)
  t.strictSame(directory.size, { tenants: 1, pairs: 1 })
})

t.test('a pair that has gone is forgotten, whether its tenant was read or not', async t => {
  for (const isRead of [false, true]) {
    const { store, directory } = await filled()
    if (isRead) await directory.load('t')
    directory.count('t', '/a', 'B', -1)
    directory.count('t', '/', 'A', 1)
    await flush(store, directory)
    await flush(store, directory)
    t.strictSame(directory.size, { tenants: 1, pairs: 1 })
  }
})

t.test('of too many tenants those that were not used are forgotten, and read again when they are needed', async t => {
  const store = new MemoryStore()
  const directory = new Directory(store, entityCounts, undefined, 100)
  for (let n = 0; n < 1000; n++) {
    directory.count(`t${n}`, '/', 'A', 1)
    await flush(store, directory)
    await directory.load('t0')
  }
  t.ok(directory.size.pairs <= 101)
  t.ok(directory.paths('t0'), 'one that is in use stays')
  t.equal(directory.paths('t1'), undefined)
  await directory.load('t1')
  t.strictSame(paths(directory, 't1'), { '/': { A: 1 } })
})

t.test('a tenant is not forgotten while a commit about it is in flight', async t => {
  const { store } = await filled()
  const directory = new Directory(store, entityCounts, undefined, 0)
  directory.count('t', '/', 'A', 1)
  directory.flush(store.batch()) // and the store does not show it yet
  t.strictSame((await directory.load('t')).get('/')?.get('A'), 3)
})

t.test('memory, store and a plain count agree whatever happens in which order', async () => {
  const change = fc.record({
    tenant: fc.constantFrom('', 't'),
    path: fc.constantFrom('/', '/a'),
    type: fc.constantFrom('A', 'B'),
    makes: fc.boolean(),
  })
  const steps = fc.array(fc.oneof({ arbitrary: change, weight: 4 }, fc.constantFrom('flush', 'load' as const)), {
    maxLength: 40,
  })
  await fc.assert(
    fc.asyncProperty(steps, fc.constantFrom(0, 1, 2, 100), async (taken, pairsMax) => {
      const store = new MemoryStore()
      const directory = new Directory(store, entityCounts, undefined, pairsMax)
      const model = new Map<string, number>()
      for (const step of taken) {
        if (step === 'flush') await flush(store, directory)
        else if (step === 'load') await directory.load('t')
        else if (typeof step === 'object') {
          const { tenant, path, type } = step
          const key = directoryKey(tenant, path, type).toString('latin1')
          const count = model.get(key) ?? 0
          if (count === 0 && !step.makes) continue
          model.set(key, count + (step.makes ? 1 : -1))
          directory.count(tenant, path, type, step.makes ? 1 : -1)
        }
      }
      await flush(store, directory)
      for (const tenant of ['', 't']) {
        const known = [...(await directory.load(tenant))].flatMap(([path, counts]) =>
          [...counts].map(([type, n]): [string, number] => [directoryKey(tenant, path, type).toString('latin1'), n]),
        )
        const rows = await store.cursor(directoryRange(tenant)).next(100)
        const written = rows.map(({ key, value }): [string, number] => [key.toString('latin1'), decodeNumber(value)])
        const own = written.map(([key]) => key)
        const counted = [...model].filter(([key, n]) => n > 0 && key.startsWith(`D${tenant}\0`))
        assert.deepEqual(new Map(known), new Map(written))
        assert.deepEqual(new Map(counted), new Map(written), own.join())
      }
    }),
  )
})
