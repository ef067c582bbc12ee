// Handing in what is known of notifications: once, again if nobody has taken it, and not again if that is unknown.

import t from 'tap'
import { encodeSubscription } from '../../../src/domain/subscriptions/subscription-json.js'
import type { HandInRequest, ShardReply, ShardRequest, Shards } from '../../../src/messages/messages.js'
import { GroupCommit } from '../../../src/shard/commit/commit.js'
import { StoreLog } from '../../../src/shard/commit/commit-log.js'
import { Counts } from '../../../src/shard/commit/counts.js'
import { Documents } from '../../../src/shard/documents/documents.js'
import { subscriptionForm } from '../../../src/shard/documents/forms.js'
import { attributeCounts, entityCounts } from '../../../src/shard/layout.js'
import { HandingIn } from '../../../src/shard/notify/handing-in.js'
import { ProgressBook } from '../../../src/shard/notify/progress-book.js'
import { FakeClock } from '../../support/fake-clock.js'
import { MemoryStore } from '../../support/memory-store.js'
import { idOf, shardMap, tenant, watching } from '../../support/notifying.js'

/** An owner that keeps no rows, and a home that replies what the test wants. */
class Owner {
  readonly clock = new FakeClock()
  readonly asked: HandInRequest[] = []
  private readonly replies: ((reply: ShardReply) => void)[] = []
  private readonly book: ProgressBook
  private readonly subscriptions

  constructor(subscriptions = 1) {
    const store = new MemoryStore()
    const commit = new GroupCommit({
      log: new StoreLog(store, this.clock, () => 1),
      clock: this.clock,
      directory: new Counts(store, entityCounts),
      attributes: new Counts(store, attributeCounts),
      onFailure: () => {},
    })
    this.subscriptions = new Documents(subscriptionForm, store, commit, shardMap)
    this.book = new ProgressBook(this.subscriptions, commit, shardMap, this.clock, { warn: () => {} }, false)
    for (let n = 1; n <= subscriptions; n++) this.subscriptions.adopt(encodeSubscription(watching(n)))
    const home = {
      ask: (_shard: number, request: ShardRequest, onReply: (reply: ShardReply) => void) => {
        this.asked.push(request as HandInRequest)
        this.replies.push(onReply)
      },
    }
    new HandingIn(this.book, commit, shardMap, this.clock).begin(home as unknown as Shards)
  }

  send(n = 1): void {
    this.book.noteSent(watching(n))
  }

  fail(): void {
    this.book.noteNews(tenant, idOf(1), { kind: 'failure', reason: 'refused' })
  }

  becomeHome(): void {
    this.book.enter([])
  }

  receive(): void {
    this.book.noteNews(tenant, idOf(1), { kind: 'success', code: 200 })
  }

  /** A second passes, and the home replies. */
  second(reply?: ShardReply): void {
    this.clock.advance(1000)
    if (reply) this.replies.shift()!(reply)
  }

  get known() {
    return this.subscriptions.of(tenant)!.progressOf(idOf(1))
  }

  /** Notifications handed in with each ask. */
  get handed(): readonly (readonly number[])[] {
    return this.asked.map(({ parts }) => parts.map(({ progress }) => progress.timesSent))
  }
}

const done: ShardReply = { kind: 'done' }

t.test('what is known is handed in every second, and counts no more here when it is taken', async t => {
  const owner = new Owner()
  owner.second()
  t.strictSame(owner.handed, [], 'nothing is not handed in')
  owner.send()
  owner.send()
  owner.second()
  t.equal(owner.known.timesSent, 2, 'until it is taken it counts here')
  owner.send()
  owner.second(done)
  t.equal(owner.known.timesSent, 1)
  owner.second(done)
  t.strictSame(owner.handed, [[2], [1]])
  owner.second()
  t.equal(owner.asked.length, 2)
})

for (const kind of ['moved', 'busy', 'unreachable'] as const)
  t.test(`what was not taken (${kind}) is handed in again`, async t => {
    const owner = new Owner()
    owner.send()
    owner.fail()
    owner.second({ kind, reason: '' })
    t.match(owner.known, { timesSent: 1, failsCounter: 1 })
    owner.second(done)
    t.strictSame(owner.handed, [[1], [1]])
    t.match(owner.known, { timesSent: 0, failsCounter: 0, lastFailureReason: 'refused' })
  })

t.test('what may have been taken is not handed in again', async t => {
  const owner = new Owner()
  owner.send()
  owner.second({ kind: 'lost', reason: '' })
  t.equal(owner.known.timesSent, 0)
  owner.second()
  t.equal(owner.asked.length, 1)
})

t.test('failures that come while others are handed in go on in their row, unless a success came between', async t => {
  for (const [succeeds, fails] of [
    [false, 1],
    [true, 1],
  ] as const) {
    const owner = new Owner()
    owner.fail()
    owner.fail()
    owner.clock.advance(1000)
    t.equal(owner.asked[0]!.parts[0]!.progress.failsCounter, 2)
    if (succeeds) owner.receive()
    owner.fail()
    owner.second(done)
    t.equal(owner.known.failsCounter, fails)
  }
})

t.test('what is being handed in when its owner becomes the home counts once, whoever gets it', async t => {
  for (const [reply, sent] of [
    [done, 1],
    [{ kind: 'moved' }, 3],
  ] as const) {
    const owner = new Owner()
    owner.send()
    owner.send()
    owner.second()
    owner.send()
    owner.becomeHome()
    t.equal(owner.known.timesSent, 1, 'but for what is on its way')
    owner.second(reply)
    t.equal(owner.known.timesSent, sent)
  }
})

t.test('many go in several asks, one after the other', async t => {
  const owner = new Owner(1500)
  for (let n = 1; n <= 1500; n++) owner.send(n)
  owner.second(done)
  t.strictSame(
    owner.handed.map(parts => parts.length),
    [1000, 500],
  )
})
