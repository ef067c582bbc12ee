// The limits of dead letters: bytes of a subscription and of all, their number and their age; and the order in which
// subscriptions lose them.

import t from 'tap'
import type { DeliveryRecord } from '../../../src/messages/messages.js'
import { deliveryLimitsDefault } from '../../../src/shard/notify/deliveries.js'
import type { Letter } from '../../../src/shard/notify/letter-list.js'
import type { letterLimitsDefault } from '../../../src/shard/notify/letters.js'
import { allLetters, decodeLetterRow } from '../../../src/shard/notify/notification-layout.js'
import { notificationIdOf } from '../../../src/shard/notify/trigger-event.js'
import { rowsOf } from '../../storage/store-contract.js'
import { idOf, NotifyingOwner, watching } from '../../support/notifying.js'

const dayMs = 24 * 60 * 60 * 1000

const dead = (at: number, more: Partial<DeliveryRecord> = {}): DeliveryRecord => ({
  atMs: at,
  id: `E${at}`,
  type: 'T',
  path: '/',
  notificationId: `n${at}`,
  attempt: 5,
  outcome: 'dead',
  code: 503,
  reason: 'answered 503',
  ...more,
})

const ownerWith = (limits: Partial<typeof letterLimitsDefault> = {}, subscriptions = [watching(1), watching(2)]) =>
  NotifyingOwner.with(subscriptions, { deliveryLimits: { ...deliveryLimitsDefault, ...limits } })

type Owner = Awaited<ReturnType<typeof ownerWith>>

function bury(owner: Owner, n: number, requestClock: readonly number[], bytes = 100, tenant = 't'): void {
  const { letters } = owner.shards.parts
  for (const at of requestClock) letters.bury(tenant, idOf(n), dead(at), Buffer.alloc(bytes))
}

/** Times of the letters in the store, by subscription. */
async function stored(owner: Owner): Promise<Record<string, number[]>> {
  await owner.rest(200)
  const found: Record<string, number[]> = {}
  for (const { key, value } of await rowsOf(owner.store, allLetters())) {
    const of = key.toString('latin1').includes(idOf(1)) ? '1' : '2'
    const { atMs } = JSON.parse(decodeLetterRow(value).head) as DeliveryRecord
    found[of] = [...(found[of] ?? []), atMs].sort((a, b) => a - b)
  }
  return found
}

/** An owner that has read its letters. */
async function loaded(begun: Promise<Owner>): Promise<Owner> {
  const owner = await begun
  await new Promise<void>(resolve => owner.shards.parts.letters.whenLoaded(resolve))
  return owner
}

/** Bytes of the row of a letter with a message of this size. */
async function rowBytes(message: number): Promise<number> {
  const owner = await ownerWith()
  bury(owner, 1, [1], message)
  return owner.shards.parts.letters.bytes
}

t.test('beyond the bytes of a subscription its oldest letters go, from the store too', async t => {
  const owner = await ownerWith({ deadLetterBytesMax: 3 * (await rowBytes(100)) })
  bury(owner, 2, [1])
  bury(owner, 1, [1, 2, 3, 4, 5])
  t.strictSame(await stored(owner), { 1: [3, 4, 5], 2: [1] })
  t.match(owner.shards.parts.letters.losses, { subscriptionBytes: 2, bytes: 0, number: 0, age: 0 })
  const after = await loaded(owner.killed())
  t.strictSame([after.shards.parts.letters.size, after.shards.parts.letters.bytes], [4, 4 * (await rowBytes(100))])
})

t.test('beyond a limit of all the subscription that has most loses its oldest letters', async t => {
  const byNumber = await ownerWith({ deadLettersMaxInAll: 4 })
  bury(byNumber, 1, [1])
  bury(byNumber, 2, [2, 3, 4, 5, 6])
  t.strictSame(await stored(byNumber), { 1: [1], 2: [4, 5, 6] })
  t.match(byNumber.shards.parts.letters.losses, { number: 2 })
  const byBytes = await ownerWith({ deadLetterBytesMaxInAll: 10_000 })
  bury(byBytes, 1, [1], 6_000)
  bury(byBytes, 2, [2, 3, 4, 5], 1_000)
  t.strictSame(await stored(byBytes), { 2: [2, 3, 4, 5] })
})

t.test('no tenant loses letters because another one has many', async t => {
  const others = [watching(1), watching(2, {}, 'u'), watching(3, {}, 'u')]
  const owner = await ownerWith({ deadLettersMaxInAll: 5 }, others)
  bury(owner, 1, [1, 2, 3])
  // Each subscription of u has fewer than the one of t, but u has more.
  bury(owner, 2, [4, 5], 100, 'u')
  bury(owner, 3, [6, 7], 100, 'u')
  const { letters } = owner.shards.parts
  t.strictSame(
    [letters.of('t', idOf(1))?.size, letters.of('u', idOf(2))?.size, letters.of('u', idOf(3))?.size],
    [3, 1, 1],
  )
})

t.test('letters that are too old are deleted', async t => {
  const owner = await ownerWith({ deadLetterAgeMsMax: 7 * dayMs })
  bury(owner, 1, [1])
  await owner.rest(3 * dayMs)
  bury(owner, 1, [2])
  t.equal(owner.shards.parts.letters.oldestAgeMs, 3 * dayMs)
  await owner.rest(4 * dayMs - 60_000)
  t.strictSame(await stored(owner), { 1: [1, 2] })
  await owner.rest(120_000)
  t.strictSame(await stored(owner), { 1: [2] })
  t.match(owner.shards.parts.letters.losses, { age: 1 })
})

t.test('a line a minute reports the number of removed letters, and the reason', async t => {
  const owner = await ownerWith({ deadLetterBytesMax: 2 * (await rowBytes(100)) })
  const lines = () => owner.lines.filter(line => line.includes('dead letters'))
  const line = (count: number) =>
    `dead letters were deleted, the last one of subscription ${idOf(1)}: ${count} beyond the bytes of a subscription`
  bury(owner, 1, [1, 2, 3, 4])
  t.strictSame(lines(), [line(1)])
  await owner.rest(60_000)
  bury(owner, 1, [5])
  t.strictSame(lines(), [line(1), line(2)])
})

t.test('letters are in the order of their changes, with any times of their ends, also after a start', async t => {
  const owner = await ownerWith()
  const { letters } = owner.shards.parts
  for (const stamp of [3, 1, 4, 2])
    letters.bury('t', idOf(1), dead(stamp, { notificationId: notificationIdOf(7, stamp, 0) }), Buffer.alloc(9))
  const order = (of: Owner) => [...(of.shards.parts.letters.of('t', idOf(1)) ?? [])].map(({ change }: Letter) => change)
  t.strictSame(order(owner), [1, 2, 3, 4])
  await owner.rest(200)
  t.strictSame(order(await loaded(owner.killed())), [1, 2, 3, 4])
})

t.test('a row that this build cannot read stays a letter', async t => {
  const owner = await ownerWith()
  bury(owner, 1, [1])
  await owner.rest(200)
  const [row] = await rowsOf(owner.store, allLetters())
  const batch = owner.store.batch()
  batch.put(row!.key, Buffer.from([9, 9, 9]))
  await new Promise<void>(resolve => owner.store.commit(batch, () => resolve()))
  const after = await loaded(owner.killed())
  t.strictSame([after.shards.parts.letters.size, after.shards.parts.letters.bytes], [1, 3])
  t.match(await after.end({ kind: 'deliveries', tenant: 't', id: idOf(1), limit: 9 }), {
    kind: 'failed',
    reason: /a dead letter has version 9/,
  })
})

t.test('many letters of a subscription that is deleted go in several turns', async t => {
  const owner = await ownerWith()
  bury(
    owner,
    1,
    Array.from({ length: 5_000 }, (_, at) => at),
  )
  bury(owner, 2, [1])
  await owner.end({ kind: 'removeSubscription', tenant: 't', id: idOf(1) })
  await owner.rest(200)
  t.strictSame(await stored(owner), { 2: [1] })
  t.equal(owner.shards.parts.letters.size, 1)
})
