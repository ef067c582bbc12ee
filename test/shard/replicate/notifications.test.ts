// Notifications of shards that move: the owner of a shard sends its pending notifications, at least once. Rules that
// depend on the past of a subscription keep working wherever its document owner is.

import assert from 'node:assert/strict'
import t, { type Test } from 'tap'
import { ShardClient } from '../../../src/broker/shard-client.js'
import { noProgress, type SubscriptionProgress } from '../../../src/domain/subscriptions/subscription.js'
import type { ShardReply, ShardRequest } from '../../../src/messages/messages.js'
import type { PendingNotification } from '../../../src/ports.js'
import { replayLimitsDefault } from '../../../src/shard/notify/replays.js'
import { FakeClock } from '../../support/fake-clock.js'
import {
  create,
  dead,
  delivered,
  failed,
  idOf,
  intentsOf,
  tenant,
  until,
  update,
  watching,
} from '../../support/notifying.js'
import { Random } from '../../support/random.js'
import { allShards, Cluster, register, shardCount, shardMap } from '../../support/replicated-hosts.js'

const shardOf = (request: ShardRequest): number =>
  'target' in request ? shardMap.shardOf(tenant, request.target.path, request.target.id) : register

/** Sends a request, and returns the reply. */
async function end(cluster: Cluster, request: ShardRequest): Promise<ShardReply> {
  return cluster.waitFor(new Promise(resolve => cluster.ask(shardOf(request), request, resolve)))
}

async function clusterWith(t: Test, hosts: number, ...subscriptions: Parameters<typeof watching>[]): Promise<Cluster> {
  const cluster = await Cluster.of(t, new FakeClock(), hosts)
  for (const wish of subscriptions) {
    const reply = await end(cluster, { kind: 'createSubscription', subscription: watching(...wish) })
    assert.deepEqual(reply, { kind: 'done' })
  }
  return cluster
}

/** Notifications that a host got since the last call: at least `count`, for rows are read on another thread. */
async function handed(cluster: Cluster, host: number, count = 0): Promise<PendingNotification[]> {
  const { despatch } = cluster.host(host)
  await until(cluster.clock, () => despatch.taken.length >= count)
  await cluster.rest()
  return despatch.next()
}

async function progress(cluster: Cluster, n: number): Promise<SubscriptionProgress> {
  const client = new ShardClient(cluster, shardMap)
  const page = await cluster.waitFor(
    new Promise<SubscriptionProgress>(resolve =>
      client.readSubscriptions({ kind: 'findSubscription', tenant, id: idOf(n) }, result => {
        assert(result.ok && result.value.subscriptions.length === 1)
        resolve(result.value.subscriptions[0]!.progress)
      }),
    ),
  )
  return page
}

const shardOfE = shardMap.shardOf(tenant, '/', 'E')

t.test('pending notifications of a shard are sent by its next owner, in order, and before its own', async t => {
  const cluster = await clusterWith(t, 2, [1])
  await end(cluster, create('E'))
  for (const n of [2, 3]) await end(cluster, update('E', { n }))
  const [first, ...rest] = (await handed(cluster, 0, 3)) as [
    PendingNotification,
    PendingNotification,
    PendingNotification,
  ]
  first.onOutcome(delivered)
  await cluster.move(shardOfE, 1)
  await end(cluster, update('E', { n: 4 }))
  const taken = (await handed(cluster, 1, 3)).map(due => due.input()?.entity.attributes.get('n')?.value)
  t.strictSame(taken, [2, 3, 4], 'but for what was delivered')
  for (const due of rest) t.equal(due.input(), undefined, 'the one before has nothing to send any more')
  await cluster.assertEqual()
})

t.test('the outcome of a try at an earlier owner is ignored', async t => {
  const cluster = await clusterWith(t, 2, [1])
  await end(cluster, create('E'))
  const [due] = (await handed(cluster, 0, 1)) as [PendingNotification]
  await cluster.move(shardOfE, 1)
  for (const outcome of [failed(1), dead(), delivered]) due.onOutcome(outcome)
  await cluster.rest(1000)
  await cluster.assertEqual()
  t.equal((await handed(cluster, 1, 1)).length, 1)
  await cluster.move(shardOfE, 0)
  t.equal((await handed(cluster, 0, 1)).length, 1, 'it is still owed')
  t.strictSame(cluster.host(1).local.parts.notifications.pending, { rows: 0, bytes: 0 })
})

t.test('notifications triggered while a shard is sealed are sent by the next owner', async t => {
  const cluster = await clusterWith(t, 2, [1])
  const host = cluster.host(0)
  const replies: ShardReply[] = []
  host.replication.isHeld = true
  host.local.ask(shardOfE, create('E'), reply => replies.push(reply))
  cluster.clock.tick()
  const sealed = host.seal(shardOfE)
  host.local.ask(shardOfE, update('E', { n: 2 }), reply => replies.push(reply))
  t.strictSame(replies, [{ kind: 'moved' }], 'no turn begins any more')
  host.replication.release()
  await cluster.waitFor(sealed)
  t.strictSame(replies[1], { kind: 'done' }, 'and those that did happen are replied to')
  t.strictSame(host.despatch.next(), [])
  await cluster.followAll()
  await cluster.waitFor(cluster.host(1).activate(shardOfE))
  cluster.places[shardOfE] = 1
  t.strictSame(
    (await handed(cluster, 1, 1)).map(due => intentsOf(due)?.[1]),
    ['E'],
  )
})

t.test('dead letters go with their shard, and are sent again by the next owner', async t => {
  const cluster = await clusterWith(t, 2, [1])
  await end(cluster, create('E'))
  for (const due of await handed(cluster, 0, 1)) due.onOutcome(dead())
  await cluster.rest(200)
  await cluster.move(shardOfE, 1)
  const count = async (host: number): Promise<number> => {
    const { letters } = cluster.host(host).local.parts
    await new Promise<void>(resolve => letters.whenLoaded(resolve))
    return letters.size
  }
  t.strictSame([await count(0), await count(1)], [0, 1])
  t.strictSame(await end(cluster, { kind: 'createSubscription', subscription: watching(2) }), { kind: 'done' })
  const retry: ShardRequest = { kind: 'retryDeliveries', tenant, id: idOf(1) }
  const replies: ShardReply[] = []
  cluster.host(1).local.ask(shardOfE, retry, reply => replies.push(reply))
  await cluster.rest()
  t.strictSame(replies, [{ kind: 'retried', count: 1 }])
  t.equal((await handed(cluster, 1, 1)).length, 1)
  await cluster.assertEqual()
})

t.test('a shard that moves while a letter is in flight is replayed by its next owner alone', async t => {
  const replays = replayLimitsDefault
  const notifications = { isKept: true, descendantsMax: 1000, flowControl: undefined, replays }
  const cluster = await Cluster.of(t, new FakeClock(), 2, { notifications })
  await end(cluster, { kind: 'createSubscription', subscription: watching(1) })
  await end(cluster, create('E'))
  for (const due of await handed(cluster, 0, 1)) due.onOutcome(dead())
  await cluster.rest(200)
  await cluster.rest(2 * replays.receiverPauseMsMin)
  const [before] = await handed(cluster, 0, 1)
  t.strictSame([before?.isReplay, before?.input()?.entity.id], [true, 'E'])
  await cluster.move(shardOfE, 1)
  before!.onOutcome(delivered)
  t.equal(before!.input(), undefined)
  await until(cluster.clock, () => cluster.host(1).local.parts.letters.size === 1)
  await cluster.rest(2 * replays.receiverPauseMsMin)
  const [after] = await handed(cluster, 1, 1)
  t.strictSame([after?.isReplay, after?.input()?.entity.id, after?.id], [true, 'E', before?.id])
  after!.onOutcome(delivered)
  await cluster.rest(200)
  t.equal(cluster.host(1).local.parts.letters.size, 0)
  t.strictSame(await handed(cluster, 0), [])
  await cluster.assertEqual()
})

t.test('the letters of a subscription that is removed go wherever they are', async t => {
  const cluster = await clusterWith(t, 2, [1])
  await end(cluster, create('E'))
  for (const due of await handed(cluster, 0, 1)) due.onOutcome(dead())
  await cluster.rest(200)
  await cluster.move(shardOfE, 1)
  await end(cluster, { kind: 'removeSubscription', tenant, id: idOf(1) })
  await cluster.rest()
  t.equal(cluster.host(1).local.parts.letters.size, 0)
  await cluster.assertEqual()
})

t.test('a one-shot triggers once, for changes at any host and with any document owner', async t => {
  const cluster = await clusterWith(t, 3, [1, { status: 'oneshot' }])
  await cluster.move(shardOfE, 1)
  await end(cluster, create('E'))
  t.equal((await handed(cluster, 1, 1)).length, 1)
  await cluster.move(register, 2)
  await cluster.move(shardOfE, 2)
  await end(cluster, update('E', { n: 2 }))
  await cluster.move(register, 0)
  await end(cluster, update('E', { n: 3 }))
  await cluster.rest(2000)
  const again = await handed(cluster, 2, 1)
  t.strictSame(
    again.map(due => due.input()?.entity.attributes.get('n')?.value),
    [1],
    'the one that it has fired, again',
  )
})

t.test(
  'a throttled subscription is quiet for its time, for changes at any host and with any document owner',
  async t => {
    const cluster = await clusterWith(t, 2, [1, { throttling: 60 }])
    await end(cluster, create('E'))
    for (const due of await handed(cluster, 0, 1)) due.onOutcome(delivered)
    await cluster.rest(1000)
    await cluster.move(register, 1)
    await cluster.move(shardOfE, 1)
    await end(cluster, update('E', { n: 2 }))
    t.strictSame(await handed(cluster, 1), [])
    await cluster.rest(60_000)
    await end(cluster, update('E', { n: 3 }))
    t.equal((await handed(cluster, 1, 1)).length, 1)
  },
)

t.test('the progress that a host knows is flushed to the document owner, and counts once', async t => {
  const cluster = await clusterWith(t, 2, [1])
  await cluster.move(shardOfE, 1)
  await end(cluster, create('E'))
  for (const due of await handed(cluster, 1, 1)) due.onOutcome(delivered)
  t.match(await progress(cluster, 1), { timesSent: 1, lastSuccessCode: 204 }, 'before it is handed in')
  await cluster.rest(1000)
  t.equal(
    cluster.host(1).local.parts.subscriptions.of(tenant)!.progressOf(idOf(1)).timesSent,
    0,
    'it has been handed in',
  )
  t.match(await progress(cluster, 1), { timesSent: 1, lastSuccessCode: 204 })
  await cluster.rest(5000)
  await end(cluster, update('E', { n: 2 }))
  for (const due of await handed(cluster, 1, 1)) due.onOutcome(failed(1))
  await cluster.move(register, 1)
  t.match(await progress(cluster, 1), { timesSent: 2, failsCounter: 1 }, 'the home has come to who knew')
  await cluster.move(register, 0)
  t.strictSame(cluster.host(1).local.parts.subscriptions.of(tenant)!.progressOf(idOf(1)), noProgress)
  t.match(await progress(cluster, 1), { timesSent: 2, failsCounter: 1, lastFailureReason: 'refused' })
  await cluster.assertEqual()
})

t.test('a change of a subscription is replied to when every host has it', async t => {
  const cluster = await clusterWith(t, 3)
  for (const home of [1, 2, 0]) {
    await cluster.move(register, home)
    t.strictSame(await end(cluster, { kind: 'createSubscription', subscription: watching(home + 1) }), { kind: 'done' })
    for (const { local } of cluster.hosts) t.ok(local.parts.subscriptions.of(tenant)?.get(idOf(home + 1)))
    const payload = { value: { description: 'd' }, duplicates: [], deep: false }
    await end(cluster, { kind: 'changeSubscription', tenant, id: idOf(home + 1), servicePath: '/#', payload })
    for (const { local } of cluster.hosts)
      t.equal(local.parts.subscriptions.of(tenant)?.get(idOf(home + 1))?.description, 'd')
  }
  await end(cluster, { kind: 'removeSubscription', tenant, id: idOf(2) })
  for (const { local } of cluster.hosts) t.equal(local.parts.subscriptions.size, 2)
  await cluster.assertEqual()
})

t.test('a path is announced when every host has received it, and stays known', async t => {
  const cluster = await clusterWith(t, 2)
  t.strictSame(await end(cluster, { kind: 'announce', tenant, path: '/a' }), { kind: 'done' })
  await cluster.move(register, 1)
  t.strictSame(await end(cluster, { kind: 'announce', tenant, path: '/b' }), { kind: 'done' })
  const known = () =>
    cluster.hosts.map(
      ({
        local: {
          parts: { role },
        },
      }) => (role.kind === 'node' ? [...(role.paths.few(tenant) ?? ['many'])] : []),
    )
  for (const paths of known()) t.strictSame(paths, ['/a', '/b'])
  for (let n = 0; n < 20; n++) await end(cluster, { kind: 'announce', tenant, path: `/c${n}` })
  for (const paths of known()) t.strictSame(paths, ['many'])
  t.equal((await cluster.host(0).rows(register)).length, 9, 'of which no more is written than that')
  await cluster.assertEqual()
})

t.test('during any moves each pending notification is sent, and counted once', async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  const cluster = await clusterWith(t, 3, [1], [2, { condition: { attrs: ['n'] } }])
  const sent = new Set<string>()
  const ids = ['E', 'F', 'G', 'H', 'I', 'J']
  for (const id of ids) await end(cluster, create(id))
  let updates = ids.length
  const pending: PendingNotification[] = []
  for (let round = 0; round < 80; round++) {
    const replies = Array.from({ length: random.between(0, 4) }, () => {
      updates++
      return end(cluster, update(random.pick(ids as [string]), { n: updates }))
    })
    if (random.between(0, 2) === 0) await cluster.move(random.pick(allShards as [number]), random.between(0, 2))
    for (const reply of await Promise.all(replies)) t.strictSame(reply, { kind: 'done' })
    for (const { despatch } of cluster.hosts) pending.push(...despatch.next())
    for (const due of pending.splice(0, random.between(0, pending.length))) {
      if (!due.input()) continue
      sent.add(due.id)
      due.onOutcome(random.pick([delivered, failed(1), dead()]))
    }
    if (random.between(0, 4) === 0) await cluster.rest(random.pick([100, 1000]))
  }
  for (let shard = 0; shard < shardCount; shard++) await cluster.move(shard, 0)
  await cluster.rest(5000)
  // All notifications that are pending by now have been passed on, or will be when their rows are read.
  const { rows } = cluster.host(0).local.parts.notifications.pending
  t.ok(rows > 0, 'something is still owed')
  const { taken } = cluster.host(0).despatch
  const send = (): number => {
    for (const due of [...pending, ...taken]) if (due.input()) sent.add(due.id)
    return sent.size
  }
  await until(cluster.clock, () => send() >= 2 * updates)
  t.equal(sent.size, 2 * updates, 'each subscription has heard of each change')
  for (const n of [1, 2]) t.equal((await progress(cluster, n)).timesSent, updates)
  await cluster.assertEqual()
})
