// The store over RocksDB: the contract, and the faults that only it could have. And a RocksDB as another thread reads
// it: the same rows, as they were committed, without access to the database itself.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import t, { type Test } from 'tap'
import type { Range, Store } from '../../src/ports.js'
import { openRocksStore, rocksMissing } from '../../src/storage/rocks-store.js'
import { plainly } from '../support/broker-process.js'
import { commit, rowsOf, storeContract, temporaryDirectory } from './store-contract.js'

const module = new URL('../../src/storage/rocks-store.js', import.meta.url)

/** The program of the thread: it reads the requested rows, and returns keys and values as text. */
const source = `
  import { parentPort, workerData } from 'node:worker_threads'
  const { attachRocksStore } = await import(${JSON.stringify(module.href)})
  const store = await attachRocksStore(workerData)
  const text = bytes => bytes === undefined ? null : Buffer.from(bytes).toString()
  let cursor
  parentPort.on('message', async ({ get, getMany, open, next, parts }) => {
    if (get) parentPort.postMessage(text(store.get(Buffer.from(get))))
    else if (getMany) parentPort.postMessage(store.getMany(getMany.map(key => Buffer.from(key))).map(text))
    else if (open) {
      await cursor?.close()
      cursor = store.cursor({ gte: Buffer.from(open[0]), lt: Buffer.from(open[1]) }, parts)
      parentPort.postMessage('open')
    }
    else if (next)
      parentPort.postMessage((await cursor.next(next)).map(({ key, value }) => text(key) + '=' + text(value)))
    else {
      await cursor?.close()
      parentPort.close()
    }
  })
  parentPort.postMessage('ready')`

/** A thread that has a store attached. */
class Attached {
  private readonly worker: Worker

  private constructor(worker: Worker) {
    this.worker = worker
  }

  static async to(t: Test, store: Store): Promise<Attached> {
    const url = new URL(`data:text/javascript,${encodeURIComponent(source)}`)
    const worker = new Worker(url, { workerData: store.shared, execArgv: [] })
    await once(worker, 'message')
    const attached = new Attached(worker)
    t.teardown(() => attached.leave())
    return attached
  }

  async ask(question: object): Promise<unknown> {
    this.worker.postMessage(question)
    const [answer] = await once(this.worker, 'message')
    return answer
  }

  async leave(): Promise<void> {
    if (this.worker.threadId < 0) return
    const left = once(this.worker, 'exit')
    this.worker.postMessage({})
    await left
  }
}

const row = (key: string, value: string) => (batch: { put(key: Buffer, value: Buffer): void }) =>
  batch.put(Buffer.from(key), Buffer.from(value))

const missing = await rocksMissing()
if (missing !== undefined) t.plan(0, missing)
else {
  t.test('RocksDB', async t => rocksTests(t))
  t.test('an attached RocksDB', async t => attachedTests(t))
}

function rocksTests(t: Test): void {
  storeContract(t, {
    // Little memory, so that the tests see logs and tables change.
    open: (directory, durability) => openRocksStore(directory, { durability, memoryBytes: 8 * 1024 * 1024 }),
    onDisk: { module, opener: 'openRocksStore' },
  })

  t.test('the log to be replayed stays small however much is written', async t => {
    const directory = temporaryDirectory(t)
    const store = await openRocksStore(directory, { durability: 'os', memoryBytes: 8 * 1024 * 1024 })
    t.teardown(() => store.close())
    const batch = store.batch()
    for (let i = 0; i < 200; i++) {
      batch.clear()
      await commit(store, batch => batch.put(Buffer.from(`k${i}`), Buffer.alloc(256 * 1024, i)), batch)
    }
    const logs = readdirSync(directory).filter(name => name.endsWith('.log'))
    const logBytes = logs.reduce(
      (sum, name) => sum + (statSync(join(directory, name), { throwIfNoEntry: false })?.size ?? 0),
      0,
    )
    t.ok(logBytes < 12 * 1024 * 1024, `${logBytes} bytes`)
  })

  t.test('the flush leaves no row behind', async t => {
    const store = await openRocksStore(temporaryDirectory(t), { durability: 'sync' })
    t.teardown(() => store.close())
    await commit(store, batch => batch.put(Buffer.from('a'), Buffer.from('1')))
    const rows = await rowsOf(store, { gte: Buffer.alloc(0), lt: Buffer.alloc(64, 0xff) })
    t.same(
      rows.map(row => row.key.toString()),
      ['a'],
    )
  })

  t.test('a process that exits during a flush does not crash', async t => {
    const script = `
    const { openRocksStore } = await import(${JSON.stringify(module.href)})
    const store = await openRocksStore(${JSON.stringify(temporaryDirectory(t))}, { durability: 'sync' })
    const batch = store.batch()
    batch.put(Buffer.from('a'), Buffer.alloc(1024))
    store.commit(batch, () => undefined)
    process.exit(7)`
    const child = spawn(...plainly([process.execPath, '--input-type=module', '-e', script]), { stdio: 'inherit' })
    t.same(await once(child, 'exit'), [7, null])
  })
}

function attachedTests(t: Test): void {
  const opened = async (t: Test): Promise<Store> => {
    const store = await openRocksStore(temporaryDirectory(t), { durability: 'os', memoryBytes: 8 * 1024 * 1024 })
    t.teardown(() => store.close())
    return store
  }

  t.test('it reads committed rows, and a cursor those from the time of its opening', async t => {
    const store = await opened(t)
    for (const key of ['a', 'b', 'c']) await commit(store, row(key, `1${key}`))
    const attached = await Attached.to(t, store)
    t.equal(await attached.ask({ get: 'b' }), '1b')
    t.equal(await attached.ask({ get: 'x' }), null)
    t.strictSame(await attached.ask({ getMany: ['c', 'x', 'a', 'c'] }), ['1c', null, '1a', '1c'])
    await attached.ask({ open: ['a', 'd'] })
    await commit(store, row('b', '2b'))
    await commit(store, row('bb', '2bb'))
    t.equal(await attached.ask({ get: 'b' }), '2b')
    t.strictSame(await attached.ask({ next: 2 }), ['a=1a', 'b=1b'])
    t.strictSame(await attached.ask({ next: 2 }), ['c=1c'])
    t.strictSame(await attached.ask({ next: 2 }), [])
    await attached.ask({ open: ['b', 'c'], parts: 'values' })
    t.strictSame(await attached.ask({ next: 1000 }), ['=2b', '=2bb'], 'keys are left out')
  })

  t.test('when it has left, the store goes on and can be closed and opened again', async t => {
    const directory = temporaryDirectory(t)
    const store = await openRocksStore(directory, { durability: 'sync' })
    const attached = await Attached.to(t, store)
    await commit(store, row('a', '1'))
    t.equal(await attached.ask({ get: 'a' }), '1')
    await attached.leave()
    await commit(store, row('b', '1'))
    await store.close()
    const again = await openRocksStore(directory, { durability: 'sync' })
    t.teardown(() => again.close())
    const all: Range = { gte: Buffer.from('a'), lt: Buffer.from('z') }
    t.equal((await rowsOf(again, all)).length, 2)
  })
}
