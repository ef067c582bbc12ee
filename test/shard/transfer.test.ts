// Rows on their way into a store of another division: where a transfer continues, which rows it repairs, and which it
// refuses to lose.

import t, { type Test } from 'tap'
import { keeper, ShardMap, workerOf } from '../../src/domain/scope.js'
import { noProgress } from '../../src/domain/subscriptions/subscription.js'
import { encodeEntity } from '../../src/encoded-entity.js'
import type { Range, Row, Store } from '../../src/ports.js'
import { lastStamp } from '../../src/shard/commit/commit-log.js'
import {
  allDocuments,
  allProgress,
  documentKey,
  encodeDocumentRow,
  parseDocumentKey,
  progressKey,
} from '../../src/shard/documents/document-layout.js'
import { encodeNumber } from '../../src/shard/keys.js'
import { allEntities, copiedKey, entityKey, parseEntityKey, stampKey } from '../../src/shard/layout.js'
import {
  allLetters,
  allOutbox,
  encodeLetterRow,
  letterKey,
  outboxKey,
  parseLetterKey,
  parseOutboxKey,
} from '../../src/shard/notify/notification-layout.js'
import { decodeProgress, encodeProgress } from '../../src/shard/notify/progress-book.js'
import { parsePathKey, pathRange, positionKey } from '../../src/shard/replicate/replicated-layout.js'
import { countEntities, findForeignRow, type Transfer, transfer } from '../../src/shard/transfer.js'
import { commit, rowsOf } from '../storage/store-contract.js'
import { compareIndexes } from '../support/compare-indexes.js'
import { entityOf } from '../support/entities.js'
import { MemoryStore } from '../support/memory-store.js'

const shardMap = new ShardMap({ shards: 8, spread: 8 })
const all = [0, 1, 2, 3, 4, 5, 6, 7]
const tenant = 't'
const stamp = 4711

/** A store with primary rows and a stamp. A transfer only reads it, so it needs no indexes. */
async function sourceOf(entities: number): Promise<Store> {
  const store = new MemoryStore()
  await commit(store, batch => {
    for (let n = 0; n < entities; n++) {
      const id = `E${n}`
      const entity = entityOf(id, 'T', n, { temp: n })
      batch.put(entityKey(shardMap.shardOf(tenant, '/a', id), tenant, '/a', id), encodeEntity(entity, ''))
    }
    batch.put(stampKey(), encodeNumber(stamp))
  })
  return store
}

/** Fills a target from one store; by default the target is alone. */
function into(target: Store, source: Store, rest: Partial<Transfer> = {}): Promise<void> {
  const limits = { batchRowsMax: 10, batchBytesMax: 1_000_000 }
  const alone = { worker: 0, workers: 1, isNode: false, sources: [source], shards: all.length }
  return transfer({ target, ...alone, limits, onBatch: () => {}, ...rest })
}

/** The parts of three workers. */
const parts = [0, 1, 2].map(worker => ({ worker, workers: 3 }))
const shardsOf = ({ worker, workers }: (typeof parts)[number]): readonly number[] =>
  all.filter(shard => workerOf(shard, workers) === worker)

/** A transfer of entities that is stopped after some batches of ten. */
async function begun(t: Test, source: Store, batches: number): Promise<Store> {
  const target = new MemoryStore()
  const stop = new AbortController()
  let seen = 0
  const onBatch = () => ++seen === batches && stop.abort(new Error('stop'))
  await t.rejects(into(target, source, { onBatch, signal: stop.signal }), { message: 'stop' })
  return target
}

const primary = (store: Store): Promise<Row[]> => rowsOf(store, allEntities())

t.test('a store gets the rows of its shards and no others, as they are, and all that they call for', async t => {
  const source = await sourceOf(100)
  const target = new MemoryStore()
  await into(target, source, { worker: 1, workers: 3 })
  const own = (await primary(source)).filter(({ key }) => parseEntityKey(key).shard % 3 === 1)
  t.ok(own.length > 0 && own.length < 100)
  t.strictSame(await primary(target), own)
  t.strictSame(await compareIndexes(target), [])
  t.equal(lastStamp(target), stamp)
})

t.test('each batch is within its limits, and reported with the number of its entities', async t => {
  const source = await sourceOf(100)
  const rowBytes = (await primary(source)).map(({ key, value }) => key.length + value.length)
  const pages = async (limits: Transfer['limits']) => {
    const batches: number[] = []
    await into(new MemoryStore(), source, { limits, onBatch: entities => batches.push(entities) })
    t.equal(
      batches.reduce((sum, one) => sum + one, 0),
      100,
    )
    return Math.max(...batches)
  }
  t.equal(await pages({ batchRowsMax: 7, batchBytesMax: 1_000_000 }), 7)
  const fewBytes = 3 * Math.min(...rowBytes)
  t.ok((await pages({ batchRowsMax: 1000, batchBytesMax: fewBytes })) <= 3)
})

t.test('a transfer that was stopped goes on behind the last row it has', async t => {
  const source = await sourceOf(100)
  const target = await begun(t, source, 4)
  t.equal(await countEntities(target), 40)
  t.ok(target.get(copiedKey())?.equals((await primary(target)).at(-1)!.key))
  const asked: number[] = []
  await into(target, source, { onBatch: entities => asked.push(entities) })
  t.equal(
    asked.reduce((sum, one) => sum + one, 0),
    60,
  )
  t.strictSame(await primary(target), await primary(source))
  t.strictSame(await compareIndexes(target), [], 'and its counts are right')
  t.equal(target.get(copiedKey()), undefined, 'and nothing remains to tell how far it is')
})

t.test('an unfinished store has no stamp, so it is not taken for a finished one', async t => {
  t.equal((await begun(t, await sourceOf(100), 1)).get(stampKey()), undefined)
})

t.test('a finished store is left alone', async t => {
  const target = new MemoryStore()
  await into(target, await sourceOf(10))
  await into(target, await sourceOf(20), { onBatch: () => t.fail('copied') })
  t.equal((await primary(target)).length, 10)
})

t.test('a source without entities makes a finished store', async t => {
  const target = new MemoryStore()
  await into(target, new MemoryStore())
  t.ok(target.get(stampKey()))
})

t.test('a commit that fails ends the transfer with its reason', async t => {
  const target = new MemoryStore()
  target.breakDown(new Error('disk full'))
  await t.rejects(into(target, await sourceOf(10)), { message: /disk full/ })
})

// Subscriptions

const tenants = ['', 'a', 'b', 'c', 'd', 'e', 'f', 'g']
const kinds = ['subscription', 'registration'] as const
const keyOf = (of: string, n: number, kind: (typeof kinds)[number] = 'subscription'): Buffer =>
  documentKey(kind, { register: shardMap.register, tenant: of, id: String(n).padStart(24, '0') })

/**
 * Entities, two dead letters in each shard, and ten subscriptions and registrations of each tenant. All rows but the
 * entities contain `said`, which shows their store.
 */
async function withSubscriptions(entities: number, said: string): Promise<Store> {
  const store = await sourceOf(entities)
  await commit(store, batch => {
    for (const shard of all)
      for (const stamp of [1, 2])
        batch.put(letterKey({ shard, tenant, subscription: 's', stamp }), encodeLetterRow('{}', Buffer.from(said)))
    for (const of of tenants)
      for (const kind of kinds)
        for (let n = 0; n < 10; n++) batch.put(keyOf(of, n, kind), encodeDocumentRow(`${of}${n}, says ${said}`))
  })
  return store
}

t.test('every store gets all subscriptions and registrations, as the store of the keeper has them', async t => {
  const sources = [await withSubscriptions(30, 'one'), await withSubscriptions(30, 'the other')]
  for (const part of parts) {
    const shards = shardsOf(part)
    const target = new MemoryStore()
    await into(target, sources[0]!, { ...part, sources })
    for (const kind of kinds) {
      const rows = await rowsOf(target, allDocuments(kind))
      t.equal(rows.length, 80)
      for (const { key, value } of rows)
        if (!value.equals(sources[keeper]!.get(key)!)) t.fail('a row is of the wrong store')
    }
    t.strictSame(await compareIndexes(target), [], 'and they are in the way of nothing else')
    t.equal(await findForeignRow(target, shard => shards.includes(shard)), undefined)
  }
})

t.test('a store gets the dead letters of its shards and no others, as they are', async t => {
  const sources = [await withSubscriptions(30, 'one'), await withSubscriptions(30, 'the other')]
  for (const part of parts) {
    const shards = shardsOf(part)
    const target = new MemoryStore()
    await into(target, sources[0]!, { ...part, sources })
    const rows = await rowsOf(target, allLetters())
    t.strictSame(
      rows.map(({ key }) => parseLetterKey(key).shard),
      shards.flatMap(shard => [shard, shard]),
    )
    for (const { key, value } of rows) t.ok(value.equals(sources[parseLetterKey(key).shard % 2]!.get(key)!))
  }
})

t.test('a transfer that was stopped among dead letters and subscriptions goes on there', async t => {
  const source = await withSubscriptions(20, 'one')
  for (const batches of [1, 2, 3, 6, 9, 17]) {
    const target = await begun(t, source, batches)
    let entities = 0
    await into(target, source, {
      onBatch: count => {
        entities += count
      },
    })
    t.equal(entities, Math.max(0, 20 - 10 * batches))
    for (const kind of kinds)
      t.strictSame(await rowsOf(target, allDocuments(kind)), await rowsOf(source, allDocuments(kind)))
    t.strictSame(await rowsOf(target, allLetters()), await rowsOf(source, allLetters()))
    t.strictSame(await primary(target), await primary(source))
  }
})

// Notifications

/** Adds two pending rows of each shard, and a part of the progress of each tenant's first subscription. */
async function withNotifications(store: Store, at: number): Promise<Store> {
  await commit(store, batch => {
    for (const shard of all)
      for (const pendingStamp of [1, 2])
        batch.put(outboxKey({ shard, stamp: pendingStamp }), Buffer.from(`of store ${at}`))
    for (const of of tenants) {
      const key = progressKey({ register: shardMap.register, tenant: of, id: '1' })
      const progress = { ...noProgress, timesSent: 10 ** at, lastNotificationMs: 5 + at, spentRevision: at }
      batch.put(key, encodeProgress(progress, at === 1 ? ['granted'] : []))
    }
  })
  return store
}

t.test('a store gets the pending notifications of its shards and no others, unchanged', async t => {
  const sources = [await withNotifications(await sourceOf(3), 0), await withNotifications(await sourceOf(3), 1)]
  for (const part of parts) {
    const shards = shardsOf(part)
    const target = new MemoryStore()
    await into(target, sources[0]!, { ...part, sources })
    const rows = await rowsOf(target, allOutbox())
    t.strictSame(
      rows.map(({ key }) => parseOutboxKey(key)),
      shards.flatMap(shard => [1, 2].map(pendingStamp => ({ shard, stamp: pendingStamp }))),
    )
    for (const { key, value } of rows) t.equal(value.toString(), `of store ${parseOutboxKey(key).shard % 2}`)
    t.equal(await findForeignRow(target, shard => shards.includes(shard)), undefined)
  }
})

t.test('the progress of notifications is merged at the keeper, from all stores, and nowhere else', async t => {
  const sources = [await withNotifications(await sourceOf(3), 0), await withNotifications(await sourceOf(3), 1)]
  const seen: string[] = []
  for (const part of parts) {
    const shards = shardsOf(part)
    const target = new MemoryStore()
    await into(target, sources[0]!, { ...part, sources })
    for (const { key, value } of await rowsOf(target, allProgress())) {
      t.ok(shards.includes(0))
      seen.push(parseDocumentKey(key).tenant)
      t.strictSame(decodeProgress(value), {
        progress: { ...noProgress, timesSent: 11, lastNotificationMs: 6, spentRevision: 1 },
        grants: ['granted'],
        marks: [],
      })
    }
  }
  t.strictSame(seen.sort(), [...tenants].sort())
})

t.test('a transfer that was stopped among pending notifications continues there, and counts nothing twice', async t => {
  const source = await withNotifications(await sourceOf(5), 0)
  for (const batches of [1, 2]) {
    const target = await begun(t, source, batches)
    await into(target, source)
    t.strictSame(await rowsOf(target, allOutbox()), await rowsOf(source, allOutbox()))
    const progress = (await rowsOf(target, allProgress())).map(({ value }) => decodeProgress(value).progress.timesSent)
    t.strictSame(
      progress,
      tenants.map(() => 1),
    )
  }
})

// Rows that would be lost

const evens = (shard: number) => shard % 2 === 0
const row = (key: Buffer) => ({ key, value: Buffer.from('x') })

async function strangerAmong(...rows: readonly Row[]): Promise<string | undefined> {
  const store = new MemoryStore()
  await commit(store, batch => {
    for (const { key, value } of rows) batch.put(key, value)
  })
  return findForeignRow(store, evens)
}

t.test('a store that is whole has no stranger', async t => {
  const target = new MemoryStore()
  await into(target, await sourceOf(100), { worker: 0, workers: 2 })
  t.equal(await findForeignRow(target, evens), undefined)
  t.equal(await findForeignRow(new MemoryStore(), evens), undefined)
})

t.test('a row of an unknown kind is a stranger, in every place', async t => {
  for (const key of ['\0', '0', 'a', 'd', 'n', 'Zone', 'zone', '\xff\xff'].map(text => Buffer.from(text, 'latin1'))) {
    const found = await strangerAmong(row(entityKey(2, 't', '/', 'a')), row(stampKey()), row(key))
    t.equal(found, `a row of a kind that this version does not know, key ${JSON.stringify(key.toString('latin1'))}`)
  }
})

t.test('of several stores each knows all service paths, one that is alone none', async t => {
  const source = await sourceOf(20)
  const indexed = new MemoryStore()
  await into(indexed, source)
  const pathsIn = async (workers: number) => {
    const target = new MemoryStore()
    await into(target, indexed, { workers })
    return (await rowsOf(target, pathRange(all.length))).map(({ key }) => parsePathKey(key))
  }
  t.strictSame(await pathsIn(8), [{ tenant, path: '/a' }])
  t.strictSame(await pathsIn(1), [])
})

t.test(
  'the store of a node has counts of each shard and the service paths; out of it come those of all together',
  async t => {
    const source = new MemoryStore()
    await into(source, await withNotifications(await withSubscriptions(100, 'one'), 0))
    const node = new MemoryStore()
    await into(node, source, { isNode: true })
    t.strictSame(await compareIndexes(node, 'by shard'), [])
    t.strictSame(
      (await rowsOf(node, pathRange(all.length))).map(({ key }) => parsePathKey(key)),
      [{ tenant, path: '/a' }],
    )
    await commit(node, batch => {
      for (const shard of [...all, shardMap.register]) batch.put(positionKey(shard), Buffer.alloc(16))
    })
    t.equal(await findForeignRow(node, shard => all.includes(shard)), undefined, 'positions are no strangers')
    const single = new MemoryStore()
    await into(single, node)
    t.strictSame(await compareIndexes(single), [])
    for (const target of [node, single]) {
      t.strictSame(await primary(target), await primary(source))
      for (const range of [allLetters(), allOutbox(), ...kinds.map(allDocuments)])
        t.strictSame(await rowsOf(target, range), await rowsOf(source, range))
    }
    t.strictSame(
      await rowsOf(single, { gte: Buffer.from('M'), lt: Buffer.from('N') }),
      await rowsOf(source, { gte: Buffer.from('M'), lt: Buffer.from('N') }),
    )
    t.strictSame(await rowsOf(single, pathRange(all.length)), [])
  },
)

t.test('a transfer into the store of a node goes on where it was stopped, at every batch', async t => {
  const source = await withNotifications(await withSubscriptions(40, 'one'), 0)
  const whole = new MemoryStore()
  await into(whole, source, { isNode: true })
  const everything: Range = { gte: Buffer.alloc(1), lt: Buffer.alloc(64, 0xff) }
  for (let batches = 1; ; batches++) {
    const target = new MemoryStore()
    const stop = new AbortController()
    let seen = 0
    const onBatch = () => ++seen === batches && stop.abort(new Error('stop'))
    const options = { isNode: true }
    const isWhole = await into(target, source, { ...options, onBatch, signal: stop.signal }).then(
      () => true,
      () => false,
    )
    await into(target, source, options)
    t.strictSame(await rowsOf(target, everything), await rowsOf(whole, everything))
    if (isWhole) return t.ok(batches > 20, `${batches} batches`)
  }
})

t.test('a note that this version does not know is a stranger', async t => {
  const found = await strangerAmong(row(Buffer.from('Mahead\0')), row(stampKey()))
  t.equal(found, 'a note that this version does not know, key "Mahead\\u0000"')
})

t.test('an entity of a shard that the store does not own is a stranger', async t => {
  const found = await strangerAmong(
    row(entityKey(0, 't', '/', 'a')),
    row(entityKey(0, 't', '/', 'b')),
    row(entityKey(3, 't', '/', 'a')),
  )
  t.match(found, /^an entity of shard 3, which belongs into another store, key "E\\u0000\\u0003t/)
})

t.test('so is a dead letter of one, and those of shards that it owns are none', async t => {
  const letters = [2, 4, 5].map(shard => row(letterKey({ shard, tenant: 't', subscription: 's', stamp: 1 })))
  t.equal(await strangerAmong(...letters.slice(0, 2)), undefined)
  t.match(await strangerAmong(...letters), /^a dead letter of shard 5, which belongs into another store, key "L/)
})

t.test('so is a pending notification of a shard that it does not own', async t => {
  const outboxRows = [2, 4, 5].map(shard => row(outboxKey({ shard, stamp: 1 })))
  t.equal(await strangerAmong(...outboxRows.slice(0, 2)), undefined)
  t.match(
    await strangerAmong(...outboxRows),
    /^a pending notification of shard 5, which belongs into another store, key "O/,
  )
})
