// The outcomes of notifications are written with the commits of changes, and read again at start.

import t from 'tap'
import { noProgress } from '../../../src/domain/subscriptions/subscription.js'
import { encodeSubscription } from '../../../src/domain/subscriptions/subscription-json.js'
import type { DeliveryOutcome, PendingNotification, Row } from '../../../src/ports.js'
import {
  allProgress,
  documentKey,
  encodeDocumentRow,
  parseDocumentKey,
  progressKey,
} from '../../../src/shard/documents/document-layout.js'
import { decodeProgress, encodeProgress } from '../../../src/shard/notify/progress-book.js'
import { commit, rowsOf } from '../../storage/store-contract.js'
import { HoldingStore } from '../../support/changes.js'
import {
  create,
  dead,
  delivered,
  failed,
  idOf,
  NotifyingOwner,
  shardMap,
  tenant,
  until,
  watching,
} from '../../support/notifying.js'

const rows = ({ store }: NotifyingOwner): Promise<Row[]> => rowsOf(store, allProgress())
const keyOf = (n: number): Buffer => progressKey({ register: shardMap.register, tenant, id: idOf(n) })

/** Numbers of the subscriptions written in each commit of an owner from now on. */
function written(owner: NotifyingOwner): number[] {
  const counts: number[] = []
  const plain = owner.store.commit.bind(owner.store)
  let before: Row[] = []
  owner.store.commit = (batch, onDone) =>
    plain(batch, async error => {
      const now = await rows(owner)
      counts.push(now.filter(({ value }, at) => before[at]?.value.equals(value) !== true).length)
      before = now
      onDone(error)
    })
  return counts
}

async function ended(owner: NotifyingOwner, ...outcomes: DeliveryOutcome[]): Promise<void> {
  for (const [at, due] of ((await owner.handed()) as PendingNotification[]).entries()) due.onOutcome(outcomes[at]!)
}

t.test('that a notification is sent is written in the commit of its change, so that no crash forgets it', async t => {
  const wishes = [watching(1), watching(2, { status: 'oneshot' }), watching(3, { throttling: 60 })]
  const owner = await NotifyingOwner.with(wishes)
  const counts = written(owner)
  await owner.end(create('E'))
  t.strictSame(counts, [3])
  const after = await owner.killed()
  t.equal((await after.handed()).length, 3, 'what is owed is owed still')
  for (const n of [1, 2, 3]) t.strictSame(after.progress(n), owner.progress(n))
  t.match(after.progress(2), { timesSent: 1, spentRevision: 1 })
  await after.end(create('F'))
  t.strictSame(
    (await after.handed()).map(({ subscription }) => subscription),
    [idOf(1)],
  )
})

t.test('outcomes are piggybacked writes, or have a commit of their own after a moment', async t => {
  const owner = await NotifyingOwner.with([watching(1), watching(2)])
  await owner.end(create('E'))
  const counts = written(owner)
  await ended(owner, delivered, failed(1))
  t.strictSame([counts, owner.progress(2).failsCounter], [[], 1])
  await owner.rest(99)
  t.strictSame(counts, [])
  await owner.rest(1)
  t.strictSame(counts, [2], 'all in one')
  const after = await owner.killed()
  for (const n of [1, 2]) t.strictSame(after.progress(n), owner.progress(n))
  t.match(after.progress(1), { lastSuccessCode: 204 })
  t.match(after.progress(2), { lastFailureReason: 'refused' })
})

t.test('draining does not need that moment', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  await owner.end(create('E'))
  await ended(owner, delivered)
  let isDrained = false
  const drained = owner.shards.drain().then(() => {
    isDrained = true
  })
  await until(owner.clock, () => isDrained)
  await drained
  t.match((await owner.killed()).progress(1), { lastSuccessCode: 204 })
  t.strictSame(await owner.rows(), [])
})

t.test('written progress is not written again with every commit', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  await owner.end(create('E'))
  await commit(owner.store, batch => batch.del(keyOf(1)))
  await owner.end(create('F', { n: 1 }, { correlatorRoot: 'fires nothing' }))
  t.strictSame(await rows(owner), [])
})

t.test('it goes in the commit in which the subscription goes, and does not come back', async t => {
  const owner = await NotifyingOwner.with([watching(1), watching(2)])
  await owner.end(create('E'))
  const dues = await owner.handed()
  await owner.end({ kind: 'removeSubscription', tenant, id: idOf(1) })
  const left = async () => (await rows(owner)).map(({ key }) => parseDocumentKey(key).id)
  t.strictSame(await left(), [idOf(2)])
  for (const due of dues) due.onOutcome(delivered)
  await owner.rest(100)
  t.strictSame(await left(), [idOf(2)])
})

t.test('rows of subscriptions that are not there are deleted at start', async t => {
  const store = new HoldingStore()
  await commit(store, batch => {
    for (const n of [1, 2]) batch.put(keyOf(n), encodeProgress({ ...noProgress, timesSent: n }))
  })
  const owner = await NotifyingOwner.over(store)
  await owner.rest(100)
  t.strictSame(await rows(owner), [])
})

t.test('a change of a subscription leaves its progress', async t => {
  const owner = await NotifyingOwner.with([watching(1, { notification: { maxFailsLimit: 1 } })])
  for (const id of ['A', 'B']) {
    await owner.end(create(id))
    await ended(owner, dead(1))
  }
  const value = { status: 'active' }
  const payload = { value, duplicates: [], deep: false }
  await owner.end({ kind: 'changeSubscription', tenant, id: idOf(1), servicePath: '/#', payload })
  t.match(owner.progress(1), { timesSent: 2, failsCounter: 2 })
  await owner.end(create('C'))
  await ended(owner, dead(1))
  t.match(owner.progress(1), { timesSent: 3, failsCounter: 3 }, 'the very next failure')
  await owner.end(create('D'))
  t.equal((await owner.handed()).length, 0)
  t.match(owner.lines, [/failsCounter \(2\)/, /failsCounter \(3\)/])
})

t.test('the latest permits of a subscription are remembered, enough for a start to know those in flight', async t => {
  const owner = await NotifyingOwner.with([watching(1, { notification: { maxFailsLimit: 9 } })])
  const claim = (notification: number) =>
    owner.end({ kind: 'claim', tenant, id: idOf(1), notification: `${notification}` })
  for (let n = 0; n < 100; n++) t.match(await claim(n), { isGranted: true })
  const [row] = await rows(owner)
  t.strictSame(
    decodeProgress(row!.value).grants,
    Array.from({ length: 64 }, (_, at) => `${at + 36}`),
  )
  t.equal(owner.progress(1).timesSent, 100)
})

t.test('a row has all known facts, and no others', async t => {
  const progress = { ...noProgress, timesSent: 3, lastFailureMs: 7, lastFailureReason: 'é"\n', spentRevision: 2 }
  t.strictSame(decodeProgress(encodeProgress(progress)), { progress, grants: [], marks: [] })
  const marks = [
    ['b', 2],
    ['a', 1],
  ] as const
  t.strictSame(decodeProgress(encodeProgress(noProgress, ['a'], marks)), { progress: noProgress, grants: ['a'], marks })
})

t.test('a row of another version ends the start, with its place', async t => {
  const store = new HoldingStore()
  const subscription = encodeSubscription(watching(1))
  await commit(store, batch => {
    batch.put(
      documentKey('subscription', { register: shardMap.register, tenant, id: idOf(1) }),
      encodeDocumentRow(subscription),
    )
    batch.put(keyOf(1), Buffer.from('{"version":2,"timesSent":1}'))
  })
  await t.rejects(NotifyingOwner.over(store), {
    code: 'unreadable',
    message:
      /^the stored progress of a subscription has version 2, and this release reads version 1: .* \(the row with key "P/,
  })
})
