// One data directory, another number of workers: the same entities, even if the work was interrupted, refused or begun
// with another number.
//
// Stores are real, and so are kills. SEED repeats a run, but the machine decides where exactly a kill strikes.

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, cpSync, existsSync, readdirSync, readFileSync, rmSync, watch } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { ShardMap } from '../../src/domain/scope.js'
import { encodeEntity } from '../../src/encoded-entity.js'
import type { Store } from '../../src/ports.js'
import { type RepartitionOptions, repartition } from '../../src/process/repartition.js'
import { encodeNumber } from '../../src/shard/keys.js'
import { allShards, entityCounts, entityKey } from '../../src/shard/layout.js'
import { allBundles, allOutbox, outboxKey, parseOutboxKey } from '../../src/shard/notify/notification-layout.js'
import { type DataDirectory, recordStore } from '../../src/storage/data-directory.js'
import { rocksMissing } from '../../src/storage/rocks-store.js'
import { commit, rowsOf } from '../storage/store-contract.js'
import { plainly, tempDir } from '../support/broker-process.js'
import { bundleAll } from '../support/bundled.js'
import { contentsOf, directoryAt, openAll, placement, populated, wrongIn } from '../support/divided.js'
import { entityOf } from '../support/entities.js'
import { Random } from '../support/random.js'

const random = Random.fromEnvironment()
t.comment(`SEED=${random.seed}`)
t.setTimeout(600_000)

const noRocks = (await rocksMissing()) ?? false
const script = fileURLToPath(new URL('../support/repartition-main.js', import.meta.url))

interface Logged {
  readonly info: string[]
  readonly warn: string[]
  /** The calls of `onProgress`. */
  readonly progress: (readonly [done: number, total: number])[]
}

/** Divides the directory at a path; returns it, with the log lines and the progress meanwhile. */
async function divide(path: string, workers: number, options: Partial<RepartitionOptions> = {}) {
  const logged: Logged = { info: [], warn: [], progress: [] }
  const directory = await repartition(directoryAt(path), workers, {
    logger: { info: line => logged.info.push(line), warn: line => logged.warn.push(line) },
    onProgress: (done, total) => logged.progress.push([done, total]),
    limits: { batchRowsMax: 20, batchBytesMax: 1024 * 1024 },
    ...options,
  })
  return { directory, logged }
}

/** Divides, and stops after this number of batches. */
async function divideInPart(t: Test, path: string, workers: number, batches: number): Promise<void> {
  const stop = new AbortController()
  let seen = 0
  const onProgress = () => ++seen === batches && stop.abort(new Error('the operator has stopped it'))
  await t.rejects(divide(path, workers, { signal: stop.signal, onProgress }), {
    message: 'the operator has stopped it',
  })
}

/** The folders of stores, and all other entries. */
function folders(path: string): string[] {
  const many = join(path, 'stores')
  return [...readdirSync(path), ...(existsSync(many) ? readdirSync(many).map(name => `stores/${name}`) : [])].sort()
}

for (const kind of ['rocksdb', 'level'] as const) {
  const skip = kind === 'rocksdb' && noRocks

  t.test(
    `1, 3, 2 and again 1 workers: every row as it was, every index as it should be (${kind})`,
    { skip },
    async t => {
      const path = tempDir(t)
      await populated(path, random, 3000, kind)
      const before = await contentsOf(path)
      for (const workers of [3, 2, 1]) {
        const { directory, logged } = await divide(path, workers)
        t.strictSame(directory, directoryAt(path), `what is given is what stands in the file (${workers} workers)`)
        t.match(directory, { workers, store: kind, id: 'an-id', shards: 16, spread: 4 })
        t.equal(directory.becoming, undefined)
        t.strictSame(await wrongIn(path), [], `nothing is wrong in the stores of ${workers} workers`)
        t.strictSame(await contentsOf(path), before, 'they hold what was there at the beginning')
        t.strictSame(
          folders(path),
          workers === 1 ? ['orrery.json', 'store'] : ['orrery.json', 'stores', `stores/${workers}`],
        )
        t.strictSame(logged.warn, [])
        t.strictSame(logged.progress.at(-1), [before.entities, before.entities])
      }
    },
  )
}

t.test('a directory that has this number of workers already is given at once', async t => {
  const path = tempDir(t)
  await populated(path, random, 10)
  const text = readFileSync(join(path, 'orrery.json'))
  const stores = await openAll(directoryAt(path))
  const { logged } = await divide(path, 1)
  for (const store of stores) await store.close()
  t.strictSame(logged, { info: [], warn: [], progress: [] })
  t.strictSame(readFileSync(join(path, 'orrery.json')), text)
})

t.test('a new directory is settled for its workers, so that each can open its store', async t => {
  const path = tempDir(t)
  const { directory } = await divide(path, 1)
  t.ok(directory.store)
  await divide(path, 4)
  for (const store of await openAll(directoryAt(path))) await store.close()
  t.strictSame((await contentsOf(path)).entities, 0)
})

t.test('more workers than shards are refused', async t => {
  const path = tempDir(t)
  await t.rejects(divide(path, 17), { name: 'DataDirectoryError', message: /has 16 shards: choose at most 16 workers/ })
})

t.test('work that was stopped goes on where it was', async t => {
  const path = tempDir(t)
  await populated(path, random, 2000)
  const before = await contentsOf(path)
  await divideInPart(t, path, 3, 40)
  t.match(directoryAt(path), { workers: 1, becoming: 3 })
  const { logged } = await divide(path, 3)
  // A batch holds 20 rows, and a row one entity at least; 40 batches were there.
  t.ok((logged.progress[0]?.[0] ?? 0) > 40 * 20, `it began with ${logged.progress[0]}`)
  t.match(logged.info, [/divides \d+ entities among 3 workers/, /goes on with \d+ entities/])
  t.strictSame(await wrongIn(path), [])
  t.strictSame(await contentsOf(path), before)
})

t.test('with another number of workers than it was begun with it begins anew', async t => {
  const path = tempDir(t)
  await populated(path, random, 1000)
  const before = await contentsOf(path)
  await divideInPart(t, path, 3, 10)
  await divideInPart(t, path, 4, 10)
  t.match(directoryAt(path), { workers: 1, becoming: 4 })
  t.strictSame(folders(path), ['orrery.json', 'store', 'stores', 'stores/4'])
  const { logged } = await divide(path, 3)
  t.ok((logged.progress[0]?.[0] ?? 0) < 60, `it began with ${logged.progress[0]}`)
  t.strictSame(await wrongIn(path), [])
  t.strictSame(await contentsOf(path), before)
})

t.test('with the old number of workers begun work is given up, and later writes are not lost', async t => {
  const path = tempDir(t)
  await populated(path, random, 1000)
  await divideInPart(t, path, 3, 10)
  const { directory } = await divide(path, 1)
  t.strictSame(folders(path), ['orrery.json', 'store'])
  t.equal(directory.becoming, undefined)
  await populated(path, new Random(random.seed + 1), 500)
  const before = await contentsOf(path)
  await divide(path, 3)
  t.strictSame(await contentsOf(path), before)
})

t.test('until it has ended or was given up, no other process can open a store', async t => {
  const path = tempDir(t)
  await populated(path, random, 500)
  await divideInPart(t, path, 2, 5)
  await t.rejects(contentsOf(path), {
    name: 'DataDirectoryError',
    message: /-workers 2 to finish that, or with -workers 1/,
  })
})

t.test('old stores that a kill has left behind the switch go at the next start', async t => {
  const path = tempDir(t)
  await populated(path, random, 500)
  const before = await contentsOf(path)
  const copy = tempDir(t)
  cpSync(join(path, 'store'), join(copy, 'store'), { recursive: true })
  await divide(path, 2)
  cpSync(join(copy, 'store'), join(path, 'store'), { recursive: true })
  await divide(path, 2)
  t.strictSame(folders(path), ['orrery.json', 'stores', 'stores/2'])
  t.strictSame(await contentsOf(path), before)
})

t.test('new stores that the file does not speak of are not gone on with', async t => {
  const path = tempDir(t)
  await populated(path, random, 500)
  const copy = tempDir(t)
  await divideInPart(t, path, 2, 5)
  cpSync(join(path, 'stores'), copy, { recursive: true })
  await divide(path, 1)
  cpSync(copy, join(path, 'stores'), { recursive: true })
  await populated(path, new Random(random.seed + 1), 300)
  const before = await contentsOf(path)
  await divide(path, 2)
  t.strictSame(await contentsOf(path), before)
  t.strictSame(await wrongIn(path), [])
})

t.test('kill -9 at any moment, again and again, costs nothing but time', { skip: noRocks }, async t => {
  const path = tempDir(t)
  await populated(path, random, 2000)
  const before = await contentsOf(path)
  let kills = 0
  for (const workers of [3, 2, 1]) {
    for (let left = 5; left > 0 && directoryAt(path).workers !== workers; left--) kills += await killed(path, workers)
    await divide(path, workers)
    t.strictSame(await wrongIn(path), [], `nothing is wrong with ${workers} workers after ${kills} kills`)
    t.strictSame(await contentsOf(path), before)
  }
  t.ok(kills > 0, `${kills} kills`)
})

/**
 * Starts the work in a process and kills it after some batches, or when some file has appeared or changed. 0: the work
 * ended before that.
 */
async function killed(path: string, workers: number): Promise<0 | 1> {
  const child = spawn(...plainly([process.execPath, script, path, String(workers)]), {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  const watches = random.fraction() < 0.4
  let left = watches ? random.between(1, 16) : random.pick([random.between(1, 10), random.between(1, 200)])
  const count = () => --left === 0 && child.kill('SIGKILL')
  const watcher = watches ? watch(path, count) : undefined
  // Read in any case, because a full pipe would stop the work.
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    if (!watcher) for (const _ of text.matchAll(/\n/g)) count()
  })
  const [, signal] = (await exited) as [number | null, string | null]
  watcher?.close()
  return signal === 'SIGKILL' ? 1 : 0
}

t.test('stores in use are refused, and nothing is begun', async t => {
  const path = tempDir(t)
  await populated(path, random, 200)
  const { directory } = await divide(path, 3)
  const stores = await openAll(directory)
  for (const store of stores.splice(0, 2)) await store.close()
  await t.rejects(divide(path, 2), {
    name: 'DataDirectoryError',
    message: `data directory ${path} is in use by another process`,
  })
  for (const store of stores) await store.close()
  t.strictSame(directoryAt(path), directory)
  t.strictSame(folders(path), ['orrery.json', 'stores', 'stores/3'])
  await divide(path, 2)
})

t.test('rows that this version does not know are not lost silently: nothing is begun', async t => {
  const path = tempDir(t)
  const directory = await populated(path, random, 200)
  const [store] = (await openAll(directory)) as [Store]
  await commit(store, batch => batch.put(Buffer.from('Zone'), Buffer.from('x')))
  await store.close()
  await t.rejects(divide(path, 2), {
    name: 'DataDirectoryError',
    message: `data directory ${path} holds a row of a kind that this version does not know, key "Zone": it can be used with -workers 1 only, or be divided by the version that wrote it`,
  })
  t.strictSame(directoryAt(path), directory)
  t.strictSame(folders(path), ['orrery.json', 'store'])
})

t.test('pending notifications of several changes in one row go to the shard of each', async t => {
  const path = tempDir(t)
  const directory = await populated(path, random, 200)
  const pending = [3, 4, 7, 8].map(shard => ({ shard, stamp: 10 + shard }))
  const [store] = (await openAll(directory)) as [Store]
  await commit(store, batch => {
    for (const one of pending) batch.put(outboxKey(one), Buffer.from(`of shard ${one.shard}`))
  })
  t.equal(await bundleAll(store), pending.length)
  t.strictSame(await rowsOf(store, allOutbox()), [])
  await store.close()
  const stores = await openAll((await divide(path, 2)).directory)
  for (const [at, store] of stores.entries()) {
    const rows = await rowsOf(store, allOutbox())
    t.strictSame(
      rows.map(({ key }) => parseOutboxKey(key)),
      pending.filter(({ shard }) => shard % 2 === at),
    )
    for (const { key, value } of rows) t.equal(value.toString(), `of shard ${parseOutboxKey(key).shard}`)
    t.strictSame(await rowsOf(store, allBundles()), [])
    await store.close()
  }
})

t.test('counts that were wrong are right afterwards, and a warning is logged', async t => {
  const path = tempDir(t)
  const directory = await populated(path, random, 200)
  const { entities } = await contentsOf(path)
  const [store] = (await openAll(directory)) as [Store]
  await commit(store, batch => batch.put(entityCounts.key('nobody', '/', 'T', allShards), encodeNumber(1)))
  await store.close()
  const { logged } = await divide(path, 2)
  t.match(logged.warn, [`there are ${entities} entities, the old counts said ${entities + 1}`])
  t.strictSame(await wrongIn(path), [])
})

t.test('too little room on the disk is refused before anything is begun', async t => {
  const path = tempDir(t)
  const directory = await populated(path, random, 200)
  await t.rejects(divide(path, 3, { freeBytes: () => 2 * 1024 * 1024 }), {
    name: 'DataDirectoryError',
    message:
      /needs about \d+ MB more on its disk to be divided among 3 workers, and 2 MB are free: make room, or start with -workers 1/,
  })
  t.strictSame(directoryAt(path), directory)
  t.strictSame(folders(path), ['orrery.json', 'store'])
})

/** The reason why there can be no small disk here; false where there can. */
const noDisk = ((): string | false => {
  if (process.platform !== 'linux') return 'tmpfs is of Linux'
  const probe = { run: () => {} }
  const dir = tempDir({ teardown: run => Object.assign(probe, { run }) })
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', dir], { stdio: 'pipe' })
    execFileSync('umount', [dir])
    return false
  } catch (error) {
    return `mount does not work here: ${(error as Error).message.trim()}`
  } finally {
    probe.run()
  }
})()

for (const kind of ['rocksdb', 'level'] as const)
  for (const [when, then] of [
    ['midway', (fill: () => void) => ({ onProgress: (done: number) => done > 500 && fill() })],
    // At that point a warning reports that the counts were wrong, which they are here.
    ['when all is copied', (fill: () => void) => ({ logger: { info: () => {}, warn: fill } })],
  ] as const)
    t.test(
      `a disk that is full ${when} leaves the directory as it was (${kind})`,
      { skip: noDisk || (kind === 'rocksdb' && noRocks) },
      async t => {
        const disk = tempDir(t)
        execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', disk])
        t.teardown(() => execFileSync('umount', ['-l', disk]))
        const path = join(disk, 'data')
        const filler = join(disk, 'filler')
        await populated(path, random, 1000, kind)
        await addLarge(path)
        const before = await contentsOf(path)
        const directory = directoryAt(path)

        const filling = then(() => takeAllRoom(filler))
        await t.rejects(divide(path, 2, filling), {
          name: 'DataDirectoryError',
          message: `data directory ${path} could not be divided among 2 workers, the disk is full: make room and start again, or start with -workers 1`,
        })
        t.strictSame(directoryAt(path), directory)
        t.strictSame(folders(path), ['orrery.json', 'store'])
        rmSync(filler)
        t.strictSame(await contentsOf(path), before, 'it can be used as before')
        await divide(path, 2)
        t.strictSame(await contentsOf(path), before)
        t.strictSame(await wrongIn(path), [])
      },
    )

/**
 * Adds entities that no compression makes small, without counting them: more than fits where a log has reserved its
 * room.
 */
async function addLarge(path: string): Promise<void> {
  const [store] = (await openAll(directoryAt(path))) as [Store]
  const shardMap = new ShardMap(placement)
  for (let n = 0; n < 2000; n += 100)
    await commit(store, batch => {
      for (let id = n; id < n + 100; id++) {
        const text = Array.from({ length: 300 }, () => random.between(0, 2 ** 32).toString(36)).join('')
        const encoded = encodeEntity(entityOf(`large${id}`, 'Large', id, { text }), '')
        batch.put(entityKey(shardMap.shardOf('', '/', `large${id}`), '', '/', `large${id}`), encoded)
      }
    })
  await store.close()
}

/** Writes into a file until nothing fits any more. */
function takeAllRoom(file: string): void {
  for (const size of [1024 * 1024, 4096, 1])
    try {
      for (;;) appendFileSync(file, Buffer.alloc(size, 1))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    }
}

t.test('a directory whose kind of store is known and whose files never came is divided like an empty one', async t => {
  const path = tempDir(t)
  const directory: DataDirectory = recordStore(directoryAt(path), 'level')
  t.notOk(existsSync(join(path, 'store')))
  await divide(path, 3)
  t.match(directoryAt(path), { ...directory, workers: 3 })
})
