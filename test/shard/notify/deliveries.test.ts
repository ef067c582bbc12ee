// The records of sent notifications at one owner: the last tries in memory, dead letters in its store.
//
// Stores are real, except where a store must fail.

import t, { type Test } from 'tap'
import { systemClock } from '../../../src/clock.js'
import { ShardMap } from '../../../src/domain/scope.js'
import type { Subscription } from '../../../src/domain/subscriptions/subscription.js'
import type {
  DeliveryRecord,
  DeliveryReport,
  DeliveryRequest,
  ShardReply,
  SubscriptionRequest,
} from '../../../src/messages/messages.js'
import type { Store } from '../../../src/ports.js'
import { deliveryLimitsDefault } from '../../../src/shard/notify/deliveries.js'
import {
  allLetters,
  decodeLetterRow,
  letterKey,
  parseLetterKey,
} from '../../../src/shard/notify/notification-layout.js'
import type { ShardParts } from '../../../src/shard/open-shards.js'
import type { LocalShards } from '../../../src/shard/shards.js'
import { openDataDirectory } from '../../../src/storage/data-directory.js'
import { openStore } from '../../../src/storage/open-store.js'
import { commit, rowsOf } from '../../storage/store-contract.js'
import { tempDir } from '../../support/broker-process.js'
import { localShards } from '../../support/local-shards.js'
import { MemoryStore } from '../../support/memory-store.js'
import { subscription } from '../../support/subscriptions.js'

const shardMap = new ShardMap({ shards: 16, spread: 16 })
const body = '{"subject":{"entities":[{"id":"E"}]},"notification":{"http":{"url":"http://h"}}}'
const idOf = (n: number): string => n.toString(16).padStart(24, '0')
const made = (n: number, tenant = 't'): Subscription => ({ ...subscription(body), id: idOf(n), tenant })

/** The store of a directory, closed with the test. */
async function realStore(t: Test): Promise<Store> {
  const directory = openDataDirectory(tempDir(t), { shards: 16, spread: 16, workers: 1 }, () => 'none')
  const store = await openStore(directory, { durability: 'os', logger: { warn: () => {} }, part: undefined })
  t.teardown(() => store.close())
  return store
}

interface Setting {
  readonly shards: LocalShards
  /** Messages passed on to be sent again. */
  readonly sent: string[]
}

/** An owner that knows subscriptions 1 and 2 of tenant t. */
async function opened(store: Store, parts: Partial<ShardParts> = {}): Promise<Setting> {
  const sent: string[] = []
  const onRetry = (message: Buffer) => void sent.push(message.toString())
  const shards = await localShards(store, shardMap, systemClock, { onRetry, ...parts })
  for (const n of [1, 2])
    if (!shards.parts.subscriptions.of('t')?.get(idOf(n)))
      await asked(shards, { kind: 'createSubscription', subscription: made(n) })
  return { shards, sent }
}

const asked = (shards: LocalShards, request: DeliveryRequest | SubscriptionRequest): Promise<ShardReply> =>
  new Promise(resolve => shards.ask(0, request, resolve))

async function report(shards: LocalShards, n = 1, limit = 1000, tenant = 't'): Promise<DeliveryReport> {
  const reply = await asked(shards, { kind: 'deliveries', tenant, id: idOf(n), limit })
  if (reply.kind !== 'deliveries') throw new Error(JSON.stringify(reply))
  return reply
}
const retry = (shards: LocalShards, n = 1) => asked(shards, { kind: 'retryDeliveries', tenant: 't', id: idOf(n) })
const remove = (shards: LocalShards, n = 1) => asked(shards, { kind: 'removeSubscription', tenant: 't', id: idOf(n) })

const record = (at: number, more: Partial<DeliveryRecord> = {}): DeliveryRecord => ({
  atMs: at,
  id: `E${at}`,
  type: 'T',
  path: '/a',
  notificationId: `n${at}`,
  attempt: 1,
  outcome: 'delivered',
  code: 200,
  reason: '',
  ...more,
})
const dead = (at: number): DeliveryRecord =>
  record(at, { outcome: 'dead', attempt: 5, code: undefined, reason: 'connection refused' })

const note = ({ shards }: Setting, n: number, ...requestClock: number[]): void => {
  for (const at of requestClock) shards.parts.deliveries.note('t', idOf(n), record(at))
}
const bury = ({ shards }: Setting, n: number, ...requestClock: number[]): void => {
  for (const at of requestClock) shards.parts.letters.bury('t', idOf(n), dead(at), Buffer.from(`row ${at}`))
}
const requestClock = (records: readonly DeliveryRecord[]): number[] => records.map(({ atMs }) => atMs)
const range = (from: number, upTo: number): number[] => Array.from({ length: upTo - from }, (_, at) => from + at)
const present = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

const limits = (more: Partial<typeof deliveryLimitsDefault>) => ({
  deliveryLimits: { ...deliveryLimitsDefault, ...more },
})

t.test('the recorded tries are returned, the latest first, unchanged', async t => {
  const setting = await opened(await realStore(t))
  note(setting, 1, 1, 2)
  setting.shards.parts.deliveries.note(
    't',
    idOf(1),
    record(3, { outcome: 'failed', code: undefined, reason: 'timeout' }),
  )
  note(setting, 2, 9)
  t.strictSame((await report(setting.shards)).deliveries, [
    record(3, { outcome: 'failed', code: undefined, reason: 'timeout' }),
    record(2),
    record(1),
  ])
  t.strictSame(requestClock((await report(setting.shards, 1, 2)).deliveries), [3, 2])
  t.strictSame(requestClock((await report(setting.shards, 1, 0)).deliveries), [])
  t.strictSame(requestClock((await report(setting.shards, 2)).deliveries), [9])
})

t.test('of each subscription the last tries are kept, and nothing of the others is lost for it', async t => {
  const setting = await opened(new MemoryStore())
  note(setting, 2, 1)
  note(setting, 1, ...range(0, 350))
  t.strictSame(requestClock((await report(setting.shards)).deliveries), range(250, 350).reverse())
  t.strictSame(requestClock((await report(setting.shards, 2)).deliveries), [1])
})

t.test('of all subscriptions together the last tries are kept, whosever they are', async t => {
  const setting = await opened(new MemoryStore(), limits({ deliveriesKept: 4, deliveriesKeptInAll: 6 }))
  const recorded = async () => [
    requestClock((await report(setting.shards, 1)).deliveries),
    requestClock((await report(setting.shards, 2)).deliveries),
  ]
  note(setting, 1, 1, 2)
  note(setting, 2, 3)
  note(setting, 1, 4, 5)
  t.strictSame(await recorded(), [[5, 4, 2, 1], [3]])
  note(setting, 1, 6)
  t.strictSame(await recorded(), [[6, 5, 4, 2], [3]], 'beyond its own number')
  note(setting, 2, 7)
  t.strictSame(await recorded(), [
    [6, 5, 4, 2],
    [7, 3],
  ])
  note(setting, 2, 8)
  t.strictSame(
    await recorded(),
    [
      [6, 5, 4],
      [8, 7, 3],
    ],
    'the oldest of all goes, that of the other',
  )
  note(setting, 2, 9, 10)
  t.strictSame(
    await recorded(),
    [
      [6, 5],
      [10, 9, 8, 7],
    ],
    'its own 3 goes, then 4, the oldest of all',
  )
  note(setting, 1, 11, 12, 13, 14)
  t.strictSame(await recorded(), [
    [14, 13, 12, 11],
    [10, 9],
  ])
})

t.test('tries go on after those of a subscription that was removed, and after all of one have gone', async t => {
  const setting = await opened(new MemoryStore(), limits({ deliveriesKept: 4, deliveriesKeptInAll: 3 }))
  const timesOf = async (n: number) => requestClock((await report(setting.shards, n)).deliveries)
  note(setting, 1, 1, 2)
  note(setting, 2, 3)
  await remove(setting.shards, 2)
  note(setting, 1, 4, 5, 6)
  t.strictSame(await timesOf(1), [6, 5, 4])
  await asked(setting.shards, { kind: 'createSubscription', subscription: made(2) })
  bury(setting, 1, 1)
  note(setting, 2, 7, 8, 9)
  t.strictSame([await timesOf(1), await timesOf(2)], [[], [9, 8, 7]])
  note(setting, 1, 10)
  t.strictSame([await timesOf(1), await timesOf(2)], [[10], [9, 8]])
})

t.test('random records of many subscriptions leave the same as a list that is cut at both limits', async t => {
  const setting = await opened(new MemoryStore(), limits({ deliveriesKept: 5, deliveriesKeptInAll: 12 }))
  const { shards } = setting
  for (const n of [3, 4, 5]) await asked(shards, { kind: 'createSubscription', subscription: made(n) })
  let model: { readonly n: number; readonly at: number }[] = []
  // Steps without a common measure produce all orders of the five.
  for (const at of range(0, 400)) {
    const n = 1 + (Math.floor(at * at * 0.37 + at / 7) % 5)
    note(setting, n, at)
    model.push({ n, at })
    const own = model.filter(one => one.n === n)
    if (own.length > 5) model = model.filter(one => one !== own[0])
    model = model.slice(-12)
    const wanted = model.filter(one => one.n === n).map(one => one.at)
    t.strictSame(requestClock((await report(shards, n)).deliveries), wanted.reverse(), `after ${at}`)
  }
})

t.test('nothing is kept for a subscription that is not there, and all goes with one', async t => {
  const setting = await opened(await realStore(t))
  const { shards } = setting
  note(setting, 1, 1)
  bury(setting, 1, 2, 3)
  bury(setting, 2, 4)
  await remove(shards)
  note(setting, 1, 5)
  bury(setting, 1, 6)
  await shards.drain()
  t.match(await report(shards), { deliveries: [], deadLetters: [], deadCount: 0 })
  await asked(shards, { kind: 'createSubscription', subscription: made(1) })
  t.match(await report(shards), { deliveries: [], deadLetters: [], deadCount: 0 }, 'and does not come back')
  t.equal((await report(shards, 2)).deadCount, 1)
  t.equal((await report(shards, 2, 10, 'u')).deadCount, 0, 'tenants have their own')
})

t.test('letters are listed, the latest first, and are there after a start', async t => {
  const store = await realStore(t)
  const before = await opened(store)
  bury(before, 1, ...range(0, 30))
  bury(before, 2, 99)
  const recordsOf = async ({ shards }: Setting) => {
    const { deadLetters, deadCount } = await report(shards, 1, 20)
    return { deadLetters, deadCount }
  }
  const wanted = { deadLetters: range(10, 30).reverse().map(dead), deadCount: 30 }
  t.strictSame(present(await recordsOf(before)), present(wanted))
  const after = await opened(store)
  t.strictSame(present(await recordsOf(after)), present(wanted))
  bury(after, 1, 30)
  t.strictSame(requestClock((await report(after.shards, 1, 2)).deadLetters), [30, 29])
})

t.test('a letter is a row of the shard of its entity', async t => {
  const store = await realStore(t)
  const setting = await opened(store)
  bury(setting, 1, 1, 2, 3)
  await setting.shards.drain()
  const rows = await rowsOf(store, allLetters())
  const found = rows.map(({ key, value }) => ({ ...parseLetterKey(key), ...decodeLetterRow(value) }))
  t.equal(found.length, 3)
  for (const { shard, tenant, subscription, head, message } of found) {
    const { atMs, id } = JSON.parse(head) as DeliveryRecord
    t.strictSame([tenant, subscription, message.toString()], ['t', idOf(1), `row ${atMs}`])
    t.equal(shard, shardMap.shardOf('t', '/a', id))
  }
})

t.test('letters are sent again in the order of time, once, and are gone', async t => {
  const store = await realStore(t)
  const { shards, sent } = await opened(store)
  bury({ shards, sent }, 1, ...range(0, 20))
  bury({ shards, sent }, 2, 99)
  const [first, second] = await Promise.all([retry(shards), retry(shards)])
  t.strictSame(
    [first, second],
    [
      { kind: 'retried', count: 20 },
      { kind: 'retried', count: 0 },
    ],
  )
  t.strictSame(
    sent,
    range(0, 20).map(at => `row ${at}`),
  )
  t.strictSame(await report(shards), { kind: 'deliveries', deliveries: [], deadLetters: [], deadCount: 0 })
  const after = await opened(store)
  t.strictSame(await retry(after.shards), { kind: 'retried', count: 0 })
  t.strictSame(await retry(after.shards, 2), { kind: 'retried', count: 1 })
  t.strictSame(await retry(after.shards, 9), { kind: 'retried', count: 0 }, 'there are none of that subscription')
})

t.test('a letter leaves the store in the same commit that writes its successor', async t => {
  const store = new MemoryStore()
  const commits: string[][] = []
  const parts = { onRetry: (message: Buffer) => void shards.parts.letters.bury('t', idOf(2), dead(1), message) }
  const { shards } = await opened(store, parts)
  shards.parts.letters.bury('t', idOf(1), dead(1), Buffer.from('row 1'))
  await shards.drain()
  const plain = store.commit.bind(store)
  store.commit = (batch, onDone) =>
    plain(batch, async error => {
      commits.push((await rowsOf(store, allLetters())).map(({ key }) => parseLetterKey(key).subscription))
      onDone(error)
    })
  t.strictSame(await retry(shards), { kind: 'retried', count: 1 })
  t.strictSame(commits, [[idOf(2)]])
})

t.test('letters that are too large to be read at once are sent in several commits, all of them', async t => {
  const store = new MemoryStore()
  const { shards, sent } = await opened(store, limits({ readBytesMax: 1000 }))
  for (const at of range(0, 7)) shards.parts.letters.bury('t', idOf(1), dead(at), Buffer.alloc(600, String(at)))
  const listed = await report(shards)
  t.strictSame([requestClock(listed.deadLetters), listed.deadCount], [[6, 5], 7], 'and a list stops there')
  const plain = store.commit.bind(store)
  const sentBefore: number[] = []
  store.commit = (batch, onDone) => {
    sentBefore.push(sent.length)
    plain(batch, onDone)
  }
  t.strictSame(await retry(shards), { kind: 'retried', count: 7 })
  t.strictSame(sentBefore, [2, 4, 6, 7])
  t.strictSame(
    sent.map(text => text[0]),
    ['0', '1', '2', '3', '4', '5', '6'],
  )
})

t.test('letters that are stored while others are sent again stay', async t => {
  const letters = { again: 0 }
  const onRetry = (): void => {
    if (letters.again++ < 10) shards.parts.letters.bury('t', idOf(1), dead(100 + letters.again), Buffer.from('again'))
  }
  const { shards } = await opened(new MemoryStore(), { onRetry })
  for (const at of range(0, 3)) shards.parts.letters.bury('t', idOf(1), dead(at), Buffer.from('x'))
  t.strictSame(await retry(shards), { kind: 'retried', count: 3 })
  t.strictSame(requestClock((await report(shards)).deadLetters), [103, 102, 101])
})

t.test('letters of a subscription that is not there are deleted at start', async t => {
  const store = new MemoryStore()
  await commit(store, batch => {
    for (const n of [1, 7])
      batch.put(letterKey({ shard: 3, tenant: 't', subscription: idOf(n), stamp: n }), Buffer.from('\0\0\0\u0002{}'))
  })
  const bare = await localShards(store, shardMap, systemClock)
  await new Promise<void>(resolve => bare.parts.letters.whenLoaded(resolve))
  await bare.drain()
  t.strictSame(await rowsOf(store, allLetters()), [])
})

t.test('when the store fails, nothing is listed and nothing counts as sent again', async t => {
  const store = new MemoryStore()
  const setting = await opened(store)
  bury(setting, 1, 1)
  await setting.shards.drain()
  store.breakDown(new Error('disk full'))
  bury(setting, 1, 2)
  const replies = await Promise.all([
    asked(setting.shards, { kind: 'deliveries', tenant: 't', id: idOf(1), limit: 9 }),
    retry(setting.shards),
  ])
  for (const reply of replies) t.match(reply, { kind: 'failed', reason: /disk full/ })
})

t.test('letters whose end cannot be made durable do not count as sent again', async t => {
  const store = new MemoryStore()
  const setting = await opened(store)
  bury(setting, 1, 1)
  await setting.shards.drain()
  store.breakDown(new Error('disk full'))
  t.match(await retry(setting.shards), { kind: 'failed', reason: /disk full/ })
})

t.test('a reason that is very long is cut', async t => {
  const { shards } = await opened(new MemoryStore())
  shards.parts.deliveries.note('t', idOf(1), record(1, { reason: 'x'.repeat(10_000) }))
  shards.parts.letters.bury('t', idOf(1), { ...dead(1), reason: 'y'.repeat(10_000) }, Buffer.alloc(0))
  const { deliveries, deadLetters } = await report(shards)
  t.strictSame([deliveries[0]!.reason, deadLetters[0]!.reason], ['x'.repeat(500), 'y'.repeat(500)])
})
