// An owner flushes the outcomes of notifications to the document owner, and repeats the flush until that one has them.
// Each counts once, however often it arrives.

import t from 'tap'
import { encodeSubscription } from '../../../src/domain/subscriptions/subscription-json.js'
import type { FlushRequest, ShardReply, ShardRequest, Shards } from '../../../src/messages/messages.js'
import { allRowsOf } from '../../../src/rows.js'
import { GroupCommit } from '../../../src/shard/commit/commit.js'
import { StoreLog } from '../../../src/shard/commit/commit-log.js'
import { Counts } from '../../../src/shard/commit/counts.js'
import { allProgress } from '../../../src/shard/documents/document-layout.js'
import { Documents } from '../../../src/shard/documents/documents.js'
import { type Subscriptions, subscriptionForm } from '../../../src/shard/documents/forms.js'
import { attributeCounts, entityCounts } from '../../../src/shard/layout.js'
import { ProgressBook } from '../../../src/shard/notify/progress-book.js'
import { ReportFlush } from '../../../src/shard/notify/report-flush.js'
import { FakeClock } from '../../support/fake-clock.js'
import { MemoryStore } from '../../support/memory-store.js'
import { idOf, shardMap, tenant, until, watching } from '../../support/notifying.js'

/** An owner that keeps no rows, and a document owner whose replies the test chooses. */
class Owner {
  readonly clock: FakeClock
  readonly asked: FlushRequest[] = []
  readonly reportFlush: ReportFlush
  readonly store: MemoryStore
  private readonly replies: ((reply: ShardReply) => void)[] = []
  readonly book: ProgressBook
  private readonly subscriptions: Subscriptions

  static async with(count = 1, store = new MemoryStore(), isDocumentOwner = false): Promise<Owner> {
    const clock = new FakeClock()
    const commit = new GroupCommit({
      log: new StoreLog(store, clock, () => 1),
      clock,
      directory: new Counts(store, entityCounts),
      attributes: new Counts(store, attributeCounts),
      onFailure: () => {},
    })
    const subscriptions = await Documents.read(subscriptionForm, store, commit, shardMap)
    for (let n = 1; n <= count; n++) subscriptions.adopt(encodeSubscription(watching(n)))
    return new Owner(store, clock, commit, subscriptions, isDocumentOwner)
  }

  private constructor(
    store: MemoryStore,
    clock: FakeClock,
    commit: GroupCommit,
    subscriptions: Subscriptions,
    isDocumentOwner: boolean,
  ) {
    this.store = store
    this.clock = clock
    this.subscriptions = subscriptions
    this.book = new ProgressBook(subscriptions, commit, shardMap, clock, { warn: () => {} }, isDocumentOwner)
    const documentOwner = {
      ask: (_shard: number, request: ShardRequest, onReply: (reply: ShardReply) => void) => {
        this.asked.push(request as FlushRequest)
        this.replies.push(onReply)
      },
    }
    this.reportFlush = new ReportFlush(this.book, commit, shardMap, this.clock, 'owner')
    this.reportFlush.begin(documentOwner as unknown as Shards)
  }

  send(n = 1): void {
    this.book.noteSent(watching(n))
  }

  fail(): void {
    this.book.noteReport(tenant, idOf(1), { kind: 'failure', reason: 'refused' })
  }

  receive(): void {
    this.book.noteReport(tenant, idOf(1), { kind: 'success', code: 200 })
  }

  /** Advances the time to the next flush; the document owner replies. */
  pause(reply?: ShardReply): void {
    this.clock.advance(500)
    if (reply) this.reply(reply)
  }

  reply(reply: ShardReply): void {
    this.replies.shift()!(reply)
  }

  get known() {
    return this.subscriptions.of(tenant)!.progressOf(idOf(1))
  }

  /** Notifications flushed with each ask. */
  get flushed(): readonly (readonly number[])[] {
    return this.asked.map(({ parts }) => parts.map(({ progress }) => progress.timesSent))
  }
}

const done: ShardReply = { kind: 'done' }
const lost: ShardReply = { kind: 'lost', reason: '' }

/** The document owner over a store: the first one, or the next after a kill. */
async function documentOwnerOver(store: MemoryStore): Promise<Owner> {
  const documentOwner = await Owner.with(1, store, true)
  await documentOwner.book.load(store)
  return documentOwner
}

/** Passes a request to the document owner; resolves with its reply when that is durable. */
async function asked(documentOwner: Owner, request: FlushRequest): Promise<ShardReply> {
  const replies: ShardReply[] = []
  documentOwner.reportFlush.onFlush(request, reply => replies.push(reply))
  await until(documentOwner.clock, () => replies.length > 0)
  return replies[0]!
}

t.test('known outcomes are flushed twice a second, and count no more here when they are accepted', async t => {
  const owner = await Owner.with()
  owner.pause()
  t.strictSame(owner.flushed, [], 'nothing is not flushed')
  owner.send()
  owner.send()
  owner.pause()
  t.equal(owner.known.timesSent, 2, 'until it is taken it counts here')
  owner.send()
  owner.reply(done)
  t.equal(owner.known.timesSent, 1)
  owner.pause(done)
  t.strictSame(owner.flushed, [[2], [1]])
  owner.pause()
  t.equal(owner.asked.length, 2)
})

for (const kind of ['moved', 'busy', 'unreachable', 'lost', 'failed'] as const)
  t.test(`outcomes that were not accepted, or perhaps not (${kind}), are flushed again under their mark`, async t => {
    const owner = await Owner.with()
    owner.send()
    owner.fail()
    owner.pause({ kind, reason: '' })
    owner.send()
    t.match(owner.known, { timesSent: 2, failsCounter: 1 })
    owner.pause(done)
    t.strictSame(owner.flushed, [[1], [1]])
    t.strictSame(owner.asked[1], owner.asked[0])
    t.match(owner.known, { timesSent: 1, failsCounter: 0, lastFailureReason: 'refused' })
    owner.pause(done)
    t.strictSame(owner.asked[2]!.mark, { source: 'owner', number: 2 })
  })

t.test('a document owner that is killed loses nothing that others flush, and counts nothing twice', async t => {
  for (const isDurable of [true, false]) {
    const owner = await Owner.with()
    const documentOwner = await documentOwnerOver(new MemoryStore())
    owner.send()
    owner.send()
    owner.pause()
    // The document owner is killed before it replies, with the commit or without it.
    if (isDurable) t.strictSame(await asked(documentOwner, owner.asked[0]!), done)
    owner.reply(lost)
    const next = await documentOwnerOver(documentOwner.store)
    owner.pause()
    t.strictSame(await asked(next, owner.asked[1]!), done)
    owner.reply(done)
    t.strictSame([next.known.timesSent, owner.known.timesSent], [2, 0])
    owner.send()
    owner.pause()
    await asked(next, owner.asked[2]!)
    await asked(next, owner.asked[2]!)
    t.equal((await documentOwnerOver(next.store)).known.timesSent, 3)
  }
})

t.test('an owner that is killed loses less than a second of its outcomes', async t => {
  const owner = await Owner.with()
  const replyMs = 400
  let flushed = 0
  for (let ms = 0; ms < 10_000; ms += 100) {
    owner.send()
    owner.clock.advance(100)
    for (const { parts } of owner.asked.splice(0))
      owner.clock.after(replyMs, () => {
        flushed += parts[0]!.progress.timesSent
        owner.reply(done)
      })
    t.ok(ms / 100 + 1 - flushed <= 10, 'ten are sent in a second')
  }
  t.ok(flushed > 80)
})

t.test('a document owner counts outcomes that an owner of an older build flushes without a mark', async t => {
  const documentOwner = await documentOwnerOver(new MemoryStore())
  const owner = await Owner.with()
  owner.send()
  owner.pause()
  const { kind, parts } = owner.asked[0]!
  await asked(documentOwner, { kind, parts })
  t.equal(documentOwner.known.timesSent, 1)
})

t.test('failures that come while others are flushed go on in their row, unless a success came between', async t => {
  for (const [succeeds, fails] of [
    [false, 1],
    [true, 1],
  ] as const) {
    const owner = await Owner.with()
    owner.fail()
    owner.fail()
    owner.pause()
    t.equal(owner.asked[0]!.parts[0]!.progress.failsCounter, 2)
    if (succeeds) owner.receive()
    owner.fail()
    owner.reply(done)
    t.equal(owner.known.failsCounter, fails)
  }
})

t.test(
  'outcomes in flight when their owner becomes the document owner count once, whether an owner had them or not',
  async t => {
    for (const hadIt of [true, false]) {
      const owner = await Owner.with()
      const before = await documentOwnerOver(new MemoryStore())
      owner.send()
      owner.send()
      owner.pause()
      const [request] = owner.asked
      if (hadIt) await asked(before, request!)
      owner.send()
      owner.book.enter(await allRowsOf(before.store, allProgress()))
      t.equal(owner.known.timesSent, hadIt ? 3 : 1, 'but for what is on its way')
      owner.reply({ kind: 'moved' })
      owner.pause()
      t.strictSame(await asked(owner, owner.asked[1]!), done)
      owner.reply(done)
      t.equal(owner.known.timesSent, 3)
    }
  },
)

t.test('many go in several asks, one after the other', async t => {
  const owner = await Owner.with(1500)
  for (let n = 1; n <= 1500; n++) owner.send(n)
  owner.pause(done)
  t.strictSame(
    owner.flushed.map(parts => parts.length),
    [1000, 500],
  )
})
