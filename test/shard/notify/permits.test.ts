// Several owners and one document owner: a subscription that depends on its own past triggers once over all of them,
// also when the document owner or an asking owner is lost.

import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import t from 'tap'
import type { JsonObject } from '../../../src/domain/json.js'
import { keeper } from '../../../src/domain/scope.js'
import { mergeProgress } from '../../../src/domain/subscriptions/subscription-status.js'
import type { ShardReply, ShardRequest, WriteRequest } from '../../../src/messages/messages.js'
import type { DeliveryOutcome, PendingNotification } from '../../../src/ports.js'
import { allOutbox } from '../../../src/shard/notify/notification-layout.js'
import { replayLimitsDefault } from '../../../src/shard/notify/replays.js'
import type { ShardParts } from '../../../src/shard/open-shards.js'
import { rowsOf } from '../../storage/store-contract.js'
import { FakeClock } from '../../support/fake-clock.js'
import { ManyShards } from '../../support/many-shards.js'
import {
  create,
  dead,
  delivered,
  failed,
  idOf,
  RecordingDeliverer,
  shardMap,
  shardOf,
  tenant,
  until,
  watching,
} from '../../support/notifying.js'

const owners = 3
const documentOwner: number = keeper
const [other, third] = [0, 1, 2].filter(owner => owner !== documentOwner) as [number, number]

/** Ids of entities of one owner, as many as a test may need. */
const entitiesOf = (owner: number): string[] =>
  Array.from({ length: 200 }, (_, n) => `E${n}`).filter(id => shardMap.shardOf(tenant, '/', id) % owners === owner)

class Peers {
  readonly clock: FakeClock
  readonly despatches = Array.from({ length: owners }, () => new RecordingDeliverer())
  readonly shards: ManyShards

  private constructor(clock: FakeClock, shards: ManyShards) {
    this.clock = clock
    this.shards = shards
  }

  static with(...wishes: Parameters<typeof watching>[1][]): Promise<Peers> {
    return Peers.of({}, ...wishes)
  }

  static async of(parts: Partial<ShardParts>, ...wishes: Parameters<typeof watching>[1][]): Promise<Peers> {
    const clock = new FakeClock()
    const peers = new Peers(clock, await ManyShards.of(owners, shardMap, clock, parts))
    await peers.settled(peers.shards.open())
    for (let owner = 0; owner < owners; owner++) await peers.begin(owner)
    for (const [at, wish] of wishes.entries())
      await peers.end({ kind: 'createSubscription', subscription: watching(at + 1, wish) })
    return peers
  }

  private begin(owner: number): Promise<void> {
    return this.shards.one(owner).parts.notifications.begin(this.despatches[owner]!, this.shards)
  }

  /** Kills an owner, and starts another one with its store. */
  async restart(owner: number): Promise<void> {
    this.shards.one(owner).parts.notifications.end()
    await this.settled(this.shards.restart(owner))
    this.despatches[owner]!.next()
    await this.begin(owner)
  }

  async settled(promise: Promise<unknown>): Promise<void> {
    let isSettled = false
    const end = (): void => {
      isSettled = true
    }
    promise.then(end, end)
    await until(this.clock, () => isSettled)
    await promise
  }

  async end(request: ShardRequest): Promise<ShardReply> {
    const replies: ShardReply[] = []
    this.shards.ask(shardOf(request), request, reply => replies.push(reply))
    await until(this.clock, () => replies.length > 0)
    return replies[0]!
  }

  async rest(ms = 0): Promise<void> {
    this.clock.advance(ms)
    for (let turns = 0; turns < 20; turns++) {
      this.clock.tick()
      await turnOfTheLoop()
    }
  }

  /** Notifications that all owners have passed on since the last call. */
  async handed(): Promise<PendingNotification[]> {
    await this.rest()
    return this.despatches.flatMap(despatch => despatch.next())
  }

  /** Ids of the entities in notifications after some changes. */
  async notifiedOf(...requests: WriteRequest[]): Promise<(string | undefined)[]> {
    for (const request of requests) await this.end(request)
    return (await this.handed()).map(due => due.input()?.entity.id)
  }

  progress() {
    const parts = this.despatches.map((_, owner) =>
      this.shards.one(owner).parts.subscriptions.of(tenant)!.progressOf(idOf(1)),
    )
    return { parts, all: mergeProgress(parts) }
  }
}

const oneOf = (owner: number, at = 0): WriteRequest => create(entitiesOf(owner)[at]!)
const ofAll = (at: number): WriteRequest[] => [0, 1, 2].map(owner => oneOf(owner, at))
const patch = (value: JsonObject): ShardRequest => ({
  kind: 'changeSubscription',
  tenant,
  id: idOf(1),
  servicePath: '/#',
  payload: { value, duplicates: [], deep: false },
})
const ids = (dues: readonly PendingNotification[]): string[] => dues.map(({ id }) => id)
const end = (dues: readonly PendingNotification[], outcome: DeliveryOutcome): void => {
  for (const due of dues) due.onOutcome(outcome)
}

t.test('a subscription that depends on nothing triggers at any change, and no permit is requested', async t => {
  const peers = await Peers.with({})
  peers.shards.set(documentOwner, 'unreachable')
  await peers.end(oneOf(other))
  t.equal((await peers.handed()).length, 1)
  peers.shards.set(documentOwner, 'well')
  t.equal((await peers.notifiedOf(...ofAll(1))).length, 3)
})

t.test('a throttled one triggers once over all owners', async t => {
  const peers = await Peers.with({ throttling: 5 })
  t.equal((await peers.notifiedOf(...ofAll(0))).length, 1)
  t.equal((await peers.notifiedOf(...ofAll(1))).length, 0)
  await peers.rest(5000)
  t.equal((await peers.notifiedOf(...ofAll(2))).length, 1)
  t.match(peers.progress().all, { timesSent: 2 })
})

t.test('of a throttled one nothing is kept nor asked until its time is over, or it is changed', async t => {
  const peers = await Peers.with({ throttling: 5 })
  t.equal((await peers.notifiedOf(oneOf(other, 0))).length, 1)
  peers.shards.set(documentOwner, 'unreachable')
  await peers.end(oneOf(other, 1))
  await peers.rest(4999)
  await peers.end(oneOf(other, 2))
  t.equal((await rowsOf(peers.shards.storeOf(other), allOutbox())).length, 1, 'that of the first one')
  peers.shards.set(documentOwner, 'well')
  await peers.rest(1)
  t.equal((await peers.notifiedOf(oneOf(other, 3))).length, 1)
  await peers.end(patch({ throttling: 0 }))
  t.equal((await peers.notifiedOf(oneOf(other, 4))).length, 1)
})

t.test('a one-shot triggers once over all owners, also for changes at the same time', async t => {
  const peers = await Peers.with({ status: 'oneshot' })
  for (const request of ofAll(0)) peers.shards.ask(shardOf(request), request, () => {})
  t.equal((await peers.handed()).length, 1)
  t.equal((await peers.notifiedOf(...ofAll(1))).length, 0)
  t.match(peers.progress().all, { timesSent: 1, spentRevision: 1 })
})

t.test('a refused notification is not pending any more', async t => {
  const peers = await Peers.with({ status: 'oneshot' })
  await peers.notifiedOf(oneOf(other))
  await peers.end(oneOf(other, 1))
  await peers.rest()
  await peers.rest(100)
  const rows = await rowsOf(peers.shards.storeOf(other), allOutbox())
  t.equal(rows.length, 1, 'that of the first one')
})

t.test(
  'failures of all owners switch off together, and the reports are in the counters of the document owner',
  async t => {
    const peers = await Peers.with({ notification: { maxFailsLimit: 2 } })
    for (const owner of [documentOwner, other, third]) {
      await peers.end(oneOf(owner))
      const [due, ...others] = await peers.handed()
      t.equal(others.length, 0)
      due!.onOutcome(failed(1))
      due!.onOutcome(dead())
      await peers.rest()
    }
    const { parts, all } = peers.progress()
    t.match(all, { timesSent: 3, failsCounter: 3, lastFailureReason: 'refused' })
    t.match(parts[documentOwner], { timesSent: 3, failsCounter: 3 })
    t.match([parts[other], parts[third]], [{ timesSent: 0 }, { timesSent: 0 }])
    t.equal((await peers.notifiedOf(...ofAll(1))).length, 0)
  },
)

t.test('one success anywhere clears the failures of all', async t => {
  const peers = await Peers.with({ notification: { maxFailsLimit: 1 } })
  await peers.end(oneOf(other))
  end(await peers.handed(), dead(1))
  await peers.end(oneOf(third))
  end(await peers.handed(), delivered)
  await peers.end(oneOf(other, 1))
  end(await peers.handed(), dead(1))
  await peers.rest()
  t.match(peers.progress().all, { failsCounter: 1, lastSuccessCode: 204 })
  t.equal((await peers.notifiedOf(oneOf(third, 1))).length, 1)
})

t.test(
  'the same notification has the same answer, also after a start of the document owner, and counts once',
  async t => {
    const peers = await Peers.with({ throttling: 5 })
    const claim = (notification: string): ShardRequest => ({ kind: 'claim', tenant, id: idOf(1), notification })
    const answers = async () => {
      const replies: ShardReply[] = []
      for (const name of ['a', 'b', 'a']) replies.push(await peers.end(claim(name)))
      return replies.map(reply => reply.kind === 'claimed' && reply.isGranted)
    }
    t.strictSame(await answers(), [true, false, true])
    await peers.restart(documentOwner)
    t.strictSame(await answers(), [true, false, true])
    t.match(peers.progress().all, { timesSent: 1 })
    t.match(await peers.end({ kind: 'claim', tenant, id: idOf(9), notification: 'a' }), { isGranted: false })
  },
)

t.test('a permit that cannot be made durable is not granted', async t => {
  const peers = await Peers.with({ throttling: 5 })
  peers.shards.storeOf(documentOwner).breakDown(new Error('disk full'))
  const reply = await peers.end({ kind: 'claim', tenant, id: idOf(1), notification: 'a' })
  t.match(reply, { kind: 'failed', reason: /disk full/ })
})

for (const condition of ['unreachable', 'lost'] as const)
  t.test(`while the document owner is ${condition} its decisions wait, and come when it is back`, async t => {
    const peers = await Peers.with({ throttling: 3600 })
    peers.shards.set(documentOwner, condition)
    t.strictSame(await peers.end(oneOf(other)), { kind: 'done' }, 'the change itself does not wait')
    t.equal((await peers.handed()).length, 0)
    await peers.rest(2500)
    t.equal((await peers.handed()).length, 0)
    peers.shards.recover(documentOwner)
    await peers.rest(1000)
    t.equal((await peers.handed()).length, 1)
    t.match(peers.progress().all, { timesSent: 1 })
  })

t.test('an owner that dies before it has sent asks again, gets the same permit, and nothing is lost', async t => {
  const peers = await Peers.with({ status: 'oneshot' })
  await peers.end(oneOf(other))
  const before = ids(await peers.handed())
  await peers.restart(other)
  t.strictSame(ids(await peers.handed()), before)
  await peers.restart(documentOwner)
  await peers.restart(other)
  const again = await peers.handed()
  t.strictSame(ids(again), before)
  end(again, delivered)
  await peers.rest(100)
  await peers.restart(other)
  t.equal((await peers.handed()).length, 0)
  t.match(peers.progress().all, { timesSent: 1 })
})

t.test('a subscription that was switched off stays so in writing when it is patched, and triggers nowhere', async t => {
  const peers = await Peers.with({ status: 'oneshot' })
  await peers.notifiedOf(oneOf(other))
  t.strictSame(await peers.end(patch({ description: 'new' })), { kind: 'done' })
  for (let owner = 0; owner < owners; owner++)
    t.equal(peers.shards.one(owner).parts.subscriptions.of(tenant)?.get(idOf(1))?.status, 'inactive')
  t.equal((await peers.notifiedOf(...ofAll(1))).length, 0)
  await peers.end(patch({ status: 'active' }))
  t.equal((await peers.notifiedOf(...ofAll(2))).length, 3)
})

t.test('no permit is requested any more when an owner has ended', async t => {
  const peers = await Peers.with({ throttling: 5 })
  peers.shards.set(documentOwner, 'unreachable')
  await peers.end(oneOf(other))
  await peers.rest()
  peers.shards.one(other).parts.notifications.end()
  await peers.rest(1000)
  t.equal(peers.clock.waiting, 0)
})

t.test('a subscription that is throttled later knows the earlier notifications of all owners', async t => {
  for (const [first, then] of [
    [other, documentOwner],
    [third, other],
    [documentOwner, third],
  ] as const) {
    const peers = await Peers.with({})
    t.same(await peers.notifiedOf(oneOf(first)), [entitiesOf(first)[0]])
    t.match(await peers.end(patch({ throttling: 60 })), { kind: 'done' })
    t.same(await peers.notifiedOf(oneOf(then, 1)), [], 'it is throttled')
    await peers.rest(60_000)
    t.same(await peers.notifiedOf(oneOf(then, 2)), [entitiesOf(then)[2]])
  }
})

t.test('nothing is decided while an owner may have notified and does not answer, for some seconds', async t => {
  for (const isBack of [true, false]) {
    const peers = await Peers.with({})
    t.same(await peers.notifiedOf(oneOf(third)), [entitiesOf(third)[0]])
    const { shards } = peers
    const ask = shards.ask.bind(shards)
    let isAway = true
    shards.ask = (shard, request, onReply) =>
      request.kind === 'progress' && isAway
        ? onReply({ kind: 'unreachable', reason: 'it is away' })
        : ask(shard, request, onReply)
    t.match(await peers.end(patch({ throttling: 60 })), { kind: 'done' })
    t.same(await peers.notifiedOf(oneOf(documentOwner, 1), oneOf(other, 1)), [], 'both wait')
    isAway = !isBack
    for (let seconds = 0; seconds < 5; seconds++) await peers.rest(1000)
    t.equal((await peers.handed()).length, isBack ? 0 : 1, 'the document owner decides by what it knows')
  }
})

t.test(
  'dead letters of a subscription that its document owner has switched off wait, wherever they are, until it is active again',
  async t => {
    const replays = replayLimitsDefault
    const notifications = { isKept: true, descendantsMax: 1000, flowControl: undefined, replays }
    const peers = await Peers.of({ notifications }, { notification: { maxFailsLimit: 1 } })
    for (const at of [0, 1]) {
      await peers.end(oneOf(other, at))
      for (const due of await peers.handed()) due.onOutcome(dead())
      await peers.rest(200)
    }
    await peers.rest(2 * replays.receiverPauseMsMin)
    t.strictSame(await peers.handed(), [], 'two have failed, which is one too many')
    await peers.end(patch({ status: 'active' }))
    await peers.rest(1_000)
    await peers.rest(1_000)
    const [due, ...more] = await peers.handed()
    t.strictSame([due?.isReplay, due?.input()?.entity.id, more.length], [true, entitiesOf(other)[0], 0])
    due!.onOutcome(delivered)
    await peers.rest(100)
    t.equal((await peers.handed())[0]?.input()?.entity.id, entitiesOf(other)[1])
  },
)
