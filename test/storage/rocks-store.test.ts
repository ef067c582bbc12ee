// The store over RocksDB: the contract, and what only it can get wrong.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { rocksMissing } from '../../src/storage/rocks-missing.js'
import { openRocksStore } from '../../src/storage/rocks-store.js'
import { plainly } from '../support/broker-process.js'
import { commit, rowsOf, storeContract, temporaryDirectory } from './store-contract.js'

const module = new URL('../../src/storage/rocks-store.js', import.meta.url)

const missing = await rocksMissing()
if (missing !== undefined) t.plan(0, missing)
else {
  t.test('RocksDB', async t => rocksTests(t))
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
