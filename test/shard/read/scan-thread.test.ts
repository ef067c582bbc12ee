// Scans on the reader thread, over a real RocksDB: they answer as scans in steps do. Even if the thread fails or dies,
// all callers get an answer, and the store can be closed.

import assert from 'node:assert/strict'
import t, { type Test } from 'tap'
import { systemClock } from '../../../src/clock.js'
import { ShardMap } from '../../../src/domain/scope.js'
import { encodeEntity } from '../../../src/encoded-entity.js'
import type { ListRequest } from '../../../src/messages/messages.js'
import type { Store } from '../../../src/ports.js'
import { entityKey } from '../../../src/shard/layout.js'
import { ThreadScanner } from '../../../src/shard/read/scan-thread.js'
import { type Scanner, StepwiseScanner } from '../../../src/shard/read/scans.js'
import { named } from '../../../src/shard/read/views/column.js'
import { Table, type TableParts } from '../../../src/shard/read/views/table.js'
import { openRocksStore, rocksMissing } from '../../../src/storage/rocks-store.js'
import { commit, temporaryDirectory } from '../../storage/store-contract.js'
import { attribute, entityOf, fill, type Placed, withAttributes } from '../../support/entities.js'
import { listRequests, placedEntities, rangesOf } from '../../support/list-requests.js'
import fc from '../../support/properties.js'
import { selectionOf } from '../../support/selections.js'
import { statementOf } from '../../support/statements.js'
import { contentOf } from '../../support/tables.js'

const reader = new URL('../../../src/process/reader.js', import.meta.url)
const shardMap = new ShardMap({ shards: 16, spread: 4 })
const deadlineMs = 60_000

/** A file for a thread, from its text. */
const entryOf = (text: string): URL => new URL(`data:text/javascript,${encodeURIComponent(text)}`)

const many: readonly Placed[] = Array.from({ length: 2000 }, (_, n) => ({
  path: n % 3 === 0 ? '/a' : '/',
  entity: withAttributes({ id: `E${n}`, type: 'T', created: 1000 + n }, [
    ['a', attribute(n % 7 === 0 ? `text ${n}` : n)],
    ['at', attribute(`${n / 100}, ${n / 50}`, 'geo:point')],
    ...(n % 100 === 0 ? [['line', attribute(['1, 1', '2, 2'], 'geo:line')] as const] : []),
  ]),
}))

const everything: ListRequest = {
  kind: 'list',
  tenant: 't',
  paths: ['/#'],
  selection: selectionOf({ q: 'a' }),
  order: [],
  offset: 0,
  limit: 20,
}
const whole = ['/', '/a'].map(path => ({ path, type: 'T', count: 10_000 }))
const wholeScan = { request: everything, ranges: whole, deadlineMs }
const wholeBuild = {
  tenant: 't',
  parts: ['/', '/a', '/none'].map(path => ({
    path,
    type: 'T',
    count: 10_000,
    layout: { columns: ['a', '!b'].map(text => named(statementOf(text).path)), places: true },
  })),
}

async function opened(t: Test, all: readonly Placed[] = many): Promise<Store> {
  const store = await openRocksStore(temporaryDirectory(t), { durability: 'os', memoryBytes: 8 * 1024 * 1024 })
  t.teardown(() => store.close())
  await fill(store, shardMap, 't', all)
  return store
}

/** A scanner that is closed before its store is. */
function threadOver(t: Test, store: Store, entry = reader, owned?: Uint8Array): Scanner {
  const scanner = new ThreadScanner(entry, store.shared!, shardMap.placement, owned)
  t.teardown(() => scanner.close())
  return scanner
}

const contents = (tables: readonly TableParts[]): string[][] => tables.map(parts => contentOf(Table.of(parts)))

/** Most tests share a store, in tenants of their own, and a thread: starting one takes longer than all its work. */
function threadTests(t: Test, shared: Store): void {
  const thread = threadOver(t, shared)
  const steps = new StepwiseScanner(shared, shardMap, systemClock)

  t.test('lists are those of a scan in steps', async t => {
    const all = fc.sample(placedEntities, { numRuns: 20, seed: 5 }).reduce((a, b) => (a.length > b.length ? a : b))
    const tenant = 'lists'
    await fill(shared, shardMap, tenant, all)
    let found = 0
    await fc.assert(
      fc.asyncProperty(listRequests, async request => {
        const scan = { request: { ...request, tenant }, ranges: rangesOf(all, 10_000), deadlineMs }
        const [one, other] = await Promise.all([thread.list(scan), steps.list(scan)])
        found += other.kind === 'listed' ? other.entities.length : 0
        return JSON.stringify(one) === JSON.stringify(other)
      }),
      { numRuns: 60 },
    )
    t.ok(found > 0, `${found} found`)
  })

  t.test('tables are those of a scan in steps, and can be worked with', async t => {
    const [built, expected] = await Promise.all([thread.build(wholeBuild), steps.build(wholeBuild)])
    t.strictSame(contents(built), contents(expected))
    t.same(built, expected)
    const table = Table.of(built[0]!)
    const { live } = table
    t.ok(table.put(10_000, 1, { targets: ['new', 1], geometry: undefined }))
    table.remove(1001, table.shards[0]!)
    t.equal(table.live, live)
  })

  t.test('first pages are those of a scan in steps', async t => {
    for (const [created, count] of [
      [undefined, 64],
      [1500, 7],
      [2990, 64],
      [9999, 64],
    ] as const) {
      const after = created === undefined ? undefined : { created, shard: 3 }
      const scan = { tenant: 't', range: { path: '/', type: 'T' }, after, count }
      t.strictSame(await thread.head(scan), await steps.head(scan))
    }
  })

  t.test('entities in shards of other owners are left out, from the time at which they own them', async t => {
    const { shards } = shardMap.placement
    const owned = new Uint8Array(new SharedArrayBuffer(shards)).fill(1)
    const partial = threadOver(t, shared, reader, owned)
    const own = new StepwiseScanner(shared, shardMap, systemClock, owned)
    const head = { tenant: 't', range: { path: '/', type: 'T' }, after: undefined, count: 64 }
    const all = await partial.list(wholeScan)
    t.strictSame(all, await thread.list(wholeScan))
    for (let shard = 0; shard < shards; shard += 2) owned[shard] = 0
    const some = await partial.list(wholeScan)
    assert(all.kind === 'listed' && some.kind === 'listed')
    t.ok(some.total > 0 && some.total < all.total, `${some.total} of ${all.total}`)
    t.strictSame(some, await own.list(wholeScan))
    t.strictSame(contents(await partial.build(wholeBuild)), contents(await own.build(wholeBuild)))
    const places = await partial.head(head)
    t.equal(places.length, 64, 'as many as are wanted')
    t.ok(places.every(({ shard }) => owned[shard] === 1))
    owned.fill(0)
    t.match(await partial.list(wholeScan), { kind: 'listed', total: 0 })
    t.strictSame(await partial.head(head), [])
  })

  t.test('several scans at once get each their own answer, and one that takes too long a refusal', async t => {
    const bounds = [0, 500, 1000, 1999, 5000]
    const totals = await Promise.all(
      bounds.map(async from => {
        const request = { ...everything, selection: selectionOf({ q: `a>=${from}` }) }
        const [reply] = await Promise.all([thread.list({ ...wholeScan, request }), thread.build(wholeBuild)])
        return reply.kind === 'listed' ? reply.total : reply
      }),
    )
    const numbers = Array.from({ length: 2000 }, (_, n) => n).filter(n => n % 7 !== 0)
    t.strictSame(
      totals,
      bounds.map(from => numbers.filter(n => n >= from).length),
    )
    const late = await thread.list({ ...wholeScan, deadlineMs: -1 })
    t.match(late, { kind: 'refused', refusal: { kind: 'Unavailable' } })
  })

  t.test('a scan sees changes that were committed before it', async t => {
    const scan = { ...wholeScan, request: { ...everything, tenant: 'late' } }
    t.match(await thread.list(scan), { total: 0 })
    await fill(shared, shardMap, 'late', [{ path: '/', entity: entityOf('E', 'T', 9000, { a: 1 }) }])
    t.match(await thread.list(scan), { total: 1 })
  })

  t.test('a scan that fails reports the reason, and the thread goes on', async t => {
    const broken = { ...wholeScan, request: { ...everything, tenant: 'broken' } }
    const key = entityKey(shardMap.shardOf('broken', '/', 'E'), 'broken', '/', 'E')
    const encoded = encodeEntity(entityOf('E', 'T', 9000, { a: 1 }), '')
    encoded[0] = 9
    await commit(shared, batch => batch.put(key, encoded))
    const outcomes = await Promise.allSettled([steps.list(broken), thread.list(broken)])
    for (const one of outcomes) t.match(one, { status: 'rejected', reason: { message: /a stored entity has version/ } })
    const head = { tenant: 't', range: { path: '/', type: 'T' }, after: undefined, count: 3 }
    t.match(await thread.head(head), { length: 3 })
  })

  t.test('close ends running scans, for all callers of close, and the store can be closed', async t => {
    const store = await opened(t)
    const thread = threadOver(t, store)
    await thread.list(wholeScan) // it has started
    const ended = Promise.allSettled([thread.list(wholeScan), thread.build(wholeBuild)])
    await Promise.all([thread.close(), thread.close()])
    for (const one of await ended) t.match(one, { status: 'rejected', reason: Error })
    await t.resolves(store.close())
    await t.rejects(thread.list(wholeScan), { message: 'the node is stopping' })
    await t.rejects(thread.build(wholeBuild), { message: 'the node is stopping' })
    await t.resolves(thread.close())
  })

  t.test('close while the thread starts waits for it', async t => {
    const store = await opened(t)
    const thread = threadOver(t, store)
    const ended = Promise.allSettled([thread.list(wholeScan)])
    await thread.close()
    t.match(await ended, [{ status: 'rejected', reason: Error }])
    await t.resolves(store.close())
  })

  t.test('a thread that throws or exits fails its scans, and the next scan starts another', async t => {
    const directory = temporaryDirectory(t)
    const store = await opened(t)
    // The first throws, the second exits at its first request, the third reads.
    const entry = entryOf(`
      import { readdirSync, writeFileSync } from 'node:fs'
      import { parentPort } from 'node:worker_threads'
      const directory = ${JSON.stringify(directory)}
      const threads = readdirSync(directory).length
      writeFileSync(directory + '/' + threads, '')
      if (threads === 0) throw new Error('no thread')
      if (threads === 1) parentPort.on('message', () => process.exit(3))
      else await import(${JSON.stringify(reader.href)})`)
    const thread = threadOver(t, store, entry)
    for (const message of ['no thread', 'the reader thread ended with code 3']) {
      const ended = await Promise.allSettled([thread.list(wholeScan), thread.build(wholeBuild)])
      for (const one of ended) t.match(one, { status: 'rejected', reason: { message } })
    }
    t.match(await thread.list(wholeScan), { kind: 'listed', total: 2000 })
    await thread.close()
    await t.resolves(store.close())
  })

  t.test('close waits for a thread that has thrown until it has left', async t => {
    let hasLeft = false
    process.once('worker', worker =>
      worker.once('exit', () => {
        hasLeft = true
      }),
    )
    const thread = threadOver(t, shared, entryOf("throw new Error('no thread')"))
    await t.rejects(thread.list(wholeScan), { message: 'no thread' })
    await thread.close()
    t.ok(hasLeft)
  })

  t.test('a thread that throws while it ends does not keep the store from being closed', async t => {
    const entry = entryOf(`
      import { parentPort } from 'node:worker_threads'
      parentPort.on('message', ({ kind }) => {
        if (kind === 'end') throw new Error('not in peace')
      })`)
    const thread = threadOver(t, shared, entry)
    const ended = Promise.allSettled([thread.list(wholeScan)])
    await t.resolves(thread.close())
    t.match(await ended, [{ status: 'rejected', reason: { message: 'not in peace' } }])
  })
}

const missing = await rocksMissing()
if (missing !== undefined) t.plan(0, missing)
else {
  t.test('the reader thread', async t => threadTests(t, await opened(t)))
}
