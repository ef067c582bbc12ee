// The store that a data directory gets, and the refusals.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t from 'tap'
import {
  type DataDirectory,
  openDataDirectory,
  recordBecoming,
  recordWorkers,
  type StoreKind,
} from '../../src/storage/data-directory.js'
import { openStore, type StorePart, settleStore } from '../../src/storage/open-store.js'
import { rocksMissing } from '../../src/storage/rocks-store.js'
import { plainly } from '../support/broker-process.js'

const opened = (path: string): DataDirectory => openDataDirectory(path, { shards: 4, spread: 2 }, () => 'some-id')

const missingHere = await rocksMissing()

/** Opens with warnings collected; `missing` pretends that RocksDB is not available. */
function opening(directory: DataDirectory, options: { store?: StoreKind; missing?: string; part?: StorePart } = {}) {
  const warnings: string[] = []
  const store = openStore(directory, {
    durability: 'os',
    logger: { warn: message => warnings.push(message) },
    store: options.store,
    part: options.part,
    rocksMissing: options.missing === undefined ? undefined : async () => options.missing,
  })
  return { store, warnings }
}

t.test('RocksDB is taken where it is available, without a word', { skip: missingHere ?? false }, async t => {
  const path = t.testdir()
  const { store, warnings } = opening(opened(path))
  t.equal((await store).name, 'rocksdb')
  await (await store).close()
  t.same(warnings, [])
  t.equal(opened(path).store, 'rocksdb')
})

t.test('where RocksDB is not available LevelDB is taken, with one warning', async t => {
  const path = t.testdir()
  const { store, warnings } = opening(opened(path), { missing: 'no binary for this platform' })
  t.equal((await store).name, 'level')
  await (await store).close()
  t.equal(warnings.length, 1)
  t.match(warnings[0], /LevelDB.*no binary for this platform/)
  t.equal(opened(path).store, 'level')
})

t.test('a directory stays with LevelDB when RocksDB becomes available', async t => {
  const path = t.testdir()
  await (await opening(opened(path), { store: 'level' }).store).close()
  const { store, warnings } = opening(opened(path))
  t.equal((await store).name, 'level')
  await (await store).close()
  t.same(warnings, [])
})

t.test(
  'a directory made with RocksDB is refused where RocksDB is not available',
  { skip: missingHere ?? false },
  async t => {
    const path = t.testdir()
    await (await opening(opened(path)).store).close()
    await t.rejects(opening(opened(path), { missing: 'no binary' }).store, {
      name: 'DataDirectoryError',
      message: /was made with the store rocksdb, which is not available here \(no binary\)/,
    })
  },
)

t.test('a directory made with one store is refused to the other', async t => {
  const path = t.testdir()
  await (await opening(opened(path), { store: 'level' }).store).close()
  await t.rejects(opening(opened(path), { store: 'rocksdb' }).store, {
    name: 'DataDirectoryError',
    message: /was made with the store level and cannot be opened with rocksdb/,
  })
})

t.test('of several workers each has a store of its own', async t => {
  const path = t.testdir()
  const fresh = openDataDirectory(path, { shards: 4, spread: 2, workers: 2 }, () => 'some-id')
  const directory = await settleStore(fresh, { store: 'level' })
  t.same(opened(path), directory, 'the choice is recorded before the workers open them')
  const stores = [0, 1].map(worker => opening(directory, { part: { worker, workers: 2 } }).store)
  for (const store of stores) await (await store).close()
  t.same(readdirSync(join(path, 'stores', '2')), ['0', '1'])
  t.notOk(existsSync(join(path, 'store')))
})

t.test(
  'the store of a directory that is for another number of workers is refused, with the way to open it',
  async t => {
    const path = t.testdir()
    const directory = recordWorkers(opened(path), 3)
    await t.rejects(opening(directory, { store: 'level' }).store, {
      name: 'DataDirectoryError',
      message: `data directory ${path} is divided among 3 workers, not 1: start with -workers 3`,
    })
    t.same(readdirSync(path), ['orrery.json'])
  },
)

t.test('the store of a directory that is being divided anew is refused, with both ways out', async t => {
  const path = t.testdir()
  const directory = recordBecoming(opened(path), 2)
  for (const part of [undefined, { worker: 0, workers: 2 }])
    await t.rejects(opening(directory, { store: 'level', ...(part && { part }) }).store, {
      name: 'DataDirectoryError',
      message: `data directory ${path} is being divided among 2 workers: start with -workers 2 to finish that, or with -workers 1 to give it up`,
    })
})

t.test('a directory that was divided anew after it was read is refused, and its new stores are closed', async t => {
  const path = t.testdir()
  const before = await settleStore(opened(path), { store: 'level' })
  recordBecoming(before, 2)
  await t.rejects(opening(before).store, { name: 'DataDirectoryError', message: /changed by another process/ })
  await (await opening(recordBecoming(opened(path), undefined)).store).close()
})

for (const store of ['rocksdb', 'level'] as const) {
  const skip = store === 'rocksdb' && (missingHere ?? false)

  t.test(`a directory in use by another process is refused (${store})`, { skip }, async t => {
    const path = t.testdir()
    const script = `
      const { openStore } = await import(${JSON.stringify(new URL('../../src/storage/open-store.js', import.meta.url).href)})
      const { openDataDirectory } = await import(${JSON.stringify(new URL('../../src/storage/data-directory.js', import.meta.url).href)})
      const directory = openDataDirectory(${JSON.stringify(path)}, { shards: 4, spread: 2 }, () => 'some-id')
      await openStore(directory, { durability: 'os', logger: console, store: '${store}' })
      console.log('open')
      setInterval(() => undefined, 60_000)`
    const child = spawn(...plainly([process.execPath, '--input-type=module', '-e', script]), {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    t.equal((await createInterface(child.stdout)[Symbol.asyncIterator]().next()).value, 'open')
    await t.rejects(opening(opened(path)).store, {
      name: 'DataDirectoryError',
      message: `data directory ${path} is in use by another process`,
    })
    child.kill('SIGKILL')
    await once(child, 'exit')
    await (await opening(opened(path)).store).close()
  })

  t.test(`a store that cannot be opened reports the reason (${store})`, { skip }, async t => {
    const path = t.testdir()
    const directory = opened(path)
    writeFileSync(join(path, 'store'), 'not a folder')
    await t.rejects(opening(directory, { store }).store, {
      name: 'DataDirectoryError',
      message: new RegExp(`data directory ${path} cannot be opened: .+`),
    })
  })
}
