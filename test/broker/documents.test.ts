// Operations on subscriptions over three owners: which owners are asked, and how their replies become one answer.

import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import t from 'tap'
import { documentIds, SubscriptionOperations } from '../../src/broker/documents.js'
import { ShardClient } from '../../src/broker/shard-client.js'
import { HybridClock } from '../../src/clock.js'
import { type Result, refusals, refusalText } from '../../src/domain/refusal.js'
import { keeper, ShardMap } from '../../src/domain/scope.js'
import { noProgress, type SubscriptionProgress } from '../../src/domain/subscriptions/subscription.js'
import type { DeliveryRecord, DeliveryReport } from '../../src/messages/messages.js'
import { FakeClock } from '../support/fake-clock.js'
import { ManyShards } from '../support/many-shards.js'
import { subscription } from '../support/subscriptions.js'

const shardMap = new ShardMap({ shards: 16, spread: 4 })
const tenant = 'b'
const documentOwner: number = keeper
const [other, third] = [0, 1, 2].filter(owner => owner !== documentOwner) as [number, number]
const wanted = {
  ...subscription('{"subject":{"entities":[{"id":"E"}]},"notification":{"http":{"url":"http://h"}}}'),
  tenant,
}

async function setting() {
  const clock = new FakeClock()
  const sent: string[] = []
  const onRetry = (message: Buffer) => void sent.push(message.toString())
  const shards = await ManyShards.of(3, shardMap, clock, { onRetry })
  const settled = async <T>(promise: Promise<T>): Promise<T> => {
    let isSettled = false
    promise.finally(() => {
      isSettled = true
    })
    while (!isSettled) {
      clock.tick()
      await turnOfTheLoop()
    }
    return promise
  }
  await settled(shards.open())
  let drawn = 0
  const chance = { uuid: () => `00000000-0000-4000-8000-${String(drawn++).padStart(12, '0')}` }
  const operations = new SubscriptionOperations(
    new ShardClient(shards, shardMap),
    documentIds(new HybridClock(clock), chance),
  )
  const outcomeOf = <T>(ask: (onResult: (result: Result<T>) => void) => void): Promise<Result<T>> =>
    settled(new Promise<Result<T>>(resolve => ask(resolve)))
  const created = async (): Promise<string> => {
    const result = await outcomeOf<string>(onResult => operations.create(wanted, onResult))
    if (!result.ok) throw new Error(refusalText(result.refusal))
    return result.value
  }
  const note = (owner: number, id: string, progress: Partial<SubscriptionProgress>) =>
    shards
      .one(owner)
      .parts.subscriptions.of(tenant)
      ?.note(id, { ...noProgress, ...progress })
  const list = (more = {}) => ({ tenant, servicePath: undefined, offset: 0, limit: 20, ...more })
  return { shards, operations, outcomeOf, created, note, list, sent }
}

t.test('documents created one after the other have ids in that order, even at the same time', async t => {
  const { created } = await setting()
  const ids = [await created(), await created(), await created()]
  t.strictSame([...ids].sort(), ids)
})

t.test('the progress at all owners is shown as one, alone and in a list', async t => {
  const { operations, outcomeOf, created, note, list } = await setting()
  const [first, second] = [await created(), await created()]
  note(documentOwner, first, { timesSent: 1, lastNotificationMs: 10 })
  note(other, first, { timesSent: 2, lastNotificationMs: 30, lastSuccessMs: 31, lastSuccessCode: 200 })
  note(third, first, {
    timesSent: 4,
    lastNotificationMs: 20,
    failsCounter: 1,
    lastFailureMs: 40,
    lastFailureReason: 'x',
  })
  note(third, second, { timesSent: 5 })
  const all = { timesSent: 7, lastNotificationMs: 30, lastSuccessCode: 200, failsCounter: 1, lastFailureReason: 'x' }
  t.match(await outcomeOf(onResult => operations.retrieve(tenant, first, onResult)), { value: { progress: all } })
  t.match(await outcomeOf(onResult => operations.list(list(), onResult)), {
    value: { subscriptions: [{ progress: all }, { progress: { timesSent: 5 } }], total: 2 },
  })
})

t.test('an empty page is known without the other owners', async t => {
  const { shards, operations, outcomeOf, created, list } = await setting()
  await created()
  shards.set(other, 'unreachable')
  t.match(await outcomeOf(onResult => operations.list(list({ limit: 0 }), onResult)), {
    ok: true,
    value: { subscriptions: [], total: 1 },
  })
})

t.test('a subscription is not shown while another owner is away', async t => {
  const { shards, operations, outcomeOf, created } = await setting()
  const id = await created()
  shards.set(other, 'unreachable')
  t.match(await outcomeOf(onResult => operations.retrieve(tenant, id, onResult)), { refusal: { kind: 'Unavailable' } })
})

t.test('a change that cannot reach all owners is refused, and an unknown outcome is reported as unknown', async t => {
  const { shards, operations, outcomeOf, created } = await setting()
  const id = await created()
  shards.set(other, 'unreachable')
  t.match(await outcomeOf(onResult => operations.remove(tenant, id, onResult)), {
    refusal: { kind: 'Unavailable', code: 'unreachable' },
  })
  shards.set(other, 'well')
  await outcomeOf(onResult => operations.retrieve(tenant, id, onResult))
  shards.set(other, 'lost')
  t.match(await outcomeOf(onResult => operations.remove(tenant, id, onResult)), {
    refusal: { kind: 'Unavailable', code: 'outcomeUnknown' },
  })
})

t.test('a document that no owner has is not found', async t => {
  const { operations, outcomeOf } = await setting()
  const missing = { ok: false, refusal: { kind: 'NotFound' } }
  const id = '65f0c2a1b4d3e2f1a0c9b8d7'
  const payload = { value: { status: 'inactive' }, duplicates: [], deep: false }
  t.match(await outcomeOf(onResult => operations.retrieve(tenant, id, onResult)), missing)
  t.match(await outcomeOf(onResult => operations.remove(tenant, id, onResult)), missing)
  t.match(await outcomeOf(onResult => operations.change({ tenant, id, servicePath: '/', payload }, onResult)), missing)
  t.match(await outcomeOf(onResult => operations.deliveries(tenant, id, 20, onResult)), missing)
  t.match(await outcomeOf(onResult => operations.retryDeliveries(tenant, id, onResult)), missing)
})

const record = (atMs: number, more: Partial<DeliveryRecord> = {}): DeliveryRecord => ({
  atMs,
  id: `E${atMs}`,
  type: 'T',
  path: '/',
  notificationId: `n${atMs}`,
  attempt: 1,
  outcome: 'delivered',
  reason: '',
  ...more,
})

const requestClock = ({ deliveries, deadLetters, deadCount }: DeliveryReport) => ({
  deliveries: deliveries.map(({ atMs }) => atMs),
  deadLetters: deadLetters.map(({ atMs }) => atMs),
  deadCount,
})

/** Three owners that have sent and given up notifications of one subscription in turn, at the times 1 to 9. */
async function withDeliveries() {
  const given = await setting()
  const id = await given.created()
  for (let atMs = 1; atMs <= 9; atMs++) {
    const { deliveries, letters } = given.shards.one(atMs % 3).parts
    deliveries.note(tenant, id, record(atMs))
    letters.bury(tenant, id, record(atMs, { outcome: 'dead' }), Buffer.from(`row ${atMs}`))
  }
  const report = async (limit: number): Promise<unknown> => {
    const result = await given.outcomeOf<DeliveryReport>(onResult =>
      given.operations.deliveries(tenant, id, limit, onResult),
    )
    return result.ok ? requestClock(result.value) : result
  }
  const retried = () => given.outcomeOf<number>(onResult => given.operations.retryDeliveries(tenant, id, onResult))
  return { ...given, report, retried }
}

t.test('deliveries of all owners are one list by time, the latest first, and so are dead letters', async t => {
  const { report } = await withDeliveries()
  const all = [9, 8, 7, 6, 5, 4, 3, 2, 1]
  t.strictSame(await report(20), { deliveries: all, deadLetters: all, deadCount: 9 })
  t.strictSame(await report(4), { deliveries: all.slice(0, 4), deadLetters: all.slice(0, 4), deadCount: 9 })
  t.strictSame(await report(0), { deliveries: [], deadLetters: [], deadCount: 9 })
})

t.test('all owners send their dead letters again, and the reply has the sum', async t => {
  const { report, retried, sent } = await withDeliveries()
  t.strictSame(await retried(), { ok: true, value: 9 })
  t.strictSame(
    [...sent].sort(),
    [...'123456789'].map(n => `row ${n}`),
  )
  t.match(await report(20), { deadLetters: [], deadCount: 0 })
  t.strictSame(await retried(), { ok: true, value: 0 })
})

t.test(
  'while an owner is away both requests are refused, and its dead letters are sent again when it is back',
  async t => {
    const { shards, report, retried, sent } = await withDeliveries()
    shards.set(other, 'unreachable')
    t.match(await report(20), { ok: false, refusal: { kind: 'Unavailable' } })
    t.match(await retried(), { ok: false, refusal: { kind: 'Unavailable' } })
    shards.set(other, 'well')
    await retried()
    t.equal(new Set(sent).size, 9)
    t.equal(sent.length, 9, 'each once')
  },
)

t.test(
  'an owner that falls away between the question for the subscription and the retry is no proof of nothing done',
  async t => {
    const { shards, outcomeOf, operations, created } = await setting()
    const id = await created()
    const { ask } = shards
    shards.ask = (shard, request, onReply) => {
      if (request.kind === 'retryDeliveries' && shards.ownerOf(shard) === other)
        return onReply({ kind: 'unreachable', reason: 'it has gone' })
      ask.call(shards, shard, request, onReply)
    }
    t.strictSame(await outcomeOf(onResult => operations.retryDeliveries(tenant, id, onResult)), {
      ok: false,
      refusal: refusals.unanswered('it has gone'),
    })
  },
)
