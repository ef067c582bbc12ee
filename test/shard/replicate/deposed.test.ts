// Hosts that lose shards to others in the midst of commits: they continue with the rest, keep nothing of the lost
// shards, and report the loss to all waiting callers.

import t, { type Test } from 'tap'
import type { ShardReply, ShardRequest } from '../../../src/messages/messages.js'
import { compareIndexes } from '../../support/compare-indexes.js'
import { FakeClock } from '../../support/fake-clock.js'
import { create, dead, idOf, intentsOf, tenant, until, update, watching } from '../../support/notifying.js'
import { Cluster, type Host, register, shardMap } from '../../support/replicated-hosts.js'
import { selectionOf } from '../../support/selections.js'

const shardOfId = (id: string): number => shardMap.shardOf(tenant, '/', id)

/** An id in the lost shard, that shard, an id in another one, and a second id in the lost shard. */
const lostId = 'E'
const lostShard = shardOfId(lostId)
const stays = Array.from({ length: 20 }, (_, n) => `S${n}`).find(id => shardOfId(id) !== lostShard)!
const alsoLost = Array.from({ length: 50 }, (_, n) => `L${n}`).find(id => shardOfId(id) === lostShard)!

const lostReply = { kind: 'lost', reason: `shard ${lostShard} was taken over by another` } as const
const done = { kind: 'done' } as const

const ask = (host: Host, request: ShardRequest, shard: number): Promise<ShardReply> =>
  new Promise(resolve => host.local.ask(shard, request, resolve))

const askId = (host: Host, request: ShardRequest & { readonly target: { readonly id: string } }): Promise<ShardReply> =>
  ask(host, request, shardOfId(request.target.id))

const find = (host: Host, id: string): Promise<ShardReply> =>
  ask(host, { kind: 'find', tenant, paths: ['/'], id, type: undefined }, shardOfId(id))

/** Two hosts, the first of which owns all shards. */
async function hostsOf(t: Test): Promise<{ readonly cluster: Cluster; readonly host: Host }> {
  const cluster = await Cluster.of(t, new FakeClock(), 2)
  return { cluster, host: cluster.host(0) }
}

/** Sends all requests into one commit, during which the host loses a shard. */
async function loseDuring<T>(cluster: Cluster, shard: number, asked: () => Promise<T>): Promise<T> {
  let replies: Promise<T> | undefined
  await cluster.depose(shard, 1, async () => {
    replies = asked()
    await cluster.waitFor(replies)
  })
  return replies!
}

t.test('writes of a lost shard have an unknown outcome, all others are done, and the host goes on', async t => {
  const { cluster, host } = await hostsOf(t)
  const batch = { kind: 'batch', items: [create(alsoLost), create(`${stays}b`)] } as const
  const replies = await loseDuring(cluster, lostShard, () =>
    Promise.all([
      askId(host, create(lostId)),
      askId(host, create(stays)),
      ask(host, batch, shardOfId(alsoLost)),
      find(host, lostId),
      find(host, stays),
    ]),
  )
  const [lost, written, ofBatch, foundLost, found] = replies
  t.strictSame([lost, written], [lostReply, done])
  const isLostToo = shardOfId(`${stays}b`) === lostShard
  t.strictSame(ofBatch, { kind: 'batch', replies: [lostReply, isLostToo ? lostReply : done] })
  t.strictSame(foundLost, { kind: 'moved' }, 'nothing is told of what is lost')
  t.match(found, { kind: 'found', entities: [{ path: '/' }] })
  t.strictSame(host.failures, [])
  t.strictSame(await cluster.waitFor(find(host, lostId)), { kind: 'moved' })
  t.match(await cluster.waitFor(find(cluster.host(1), lostId)), { kind: 'found', entities: [] })
  t.strictSame(await cluster.waitFor(askId(cluster.host(1), create(lostId))), done, 'the client may ask again')
  t.strictSame(await cluster.waitFor(askId(host, update(stays, { n: 1 }))), done)
  await cluster.assertEqual()
  for (const { store } of cluster.hosts) t.strictSame(await compareIndexes(store, 'by shard'), [])
  await cluster.move(lostShard, 0)
  t.match(await cluster.waitFor(find(host, lostId)), { kind: 'found', entities: [{ path: '/' }] })
})

t.test('changes staged behind a lost commit are lost as well, and the commits behind it go on', async t => {
  const { cluster, host } = await hostsOf(t)
  host.replication.isHeld = true
  const replies = await loseDuring(cluster, lostShard, async () => {
    const first = [askId(host, create(lostId)), askId(host, create(stays))]
    cluster.clock.tick()
    const next = [askId(host, update(lostId, { n: 1 })), askId(host, update(stays, { n: 1 })), find(host, lostId)]
    for (const end of host.replication.held.splice(0)) end()
    await Promise.all(first)
    const anyPath: ShardRequest = { kind: 'find', tenant, paths: ['/#'], id: lostId, type: undefined }
    const between = ask(host, anyPath, shardOfId(stays))
    host.replication.release()
    return Promise.all([...first, ...next, between])
  })
  t.strictSame(replies.slice(0, 5), [lostReply, done, lostReply, done, { kind: 'moved' }])
  t.notMatch(replies[5], { kind: 'found', entities: [{}] }, 'between the two nothing is found of it')
  t.strictSame(host.failures, [])
  await cluster.assertEqual()
})

t.test('a batch whose parts are in several commits reports the one that was lost', async t => {
  const { cluster, host } = await hostsOf(t)
  // The clock advances by itself, so that there are several slices, with time for commits between them.
  const { clock } = cluster
  const monoMs = clock.monoMs.bind(clock)
  let looks = 0
  clock.monoMs = () => monoMs() + 4 * looks++
  clock.endOfTick = run => void setTimeout(run, 5)
  const ids = [lostId, ...Array.from({ length: 300 }, (_, n) => `B${n}`).filter(id => shardOfId(id) !== lostShard)]
  const items = ids.map(id => create(id))
  const reply = await loseDuring(cluster, lostShard, () => ask(host, { kind: 'batch', items }, lostShard))
  t.strictSame(reply, { kind: 'batch', replies: [lostReply, ...ids.slice(1).map(() => done)] })
  t.ok(host.replication.appended.length > 2, 'several commits have carried it')
})

t.test('lists count nothing of a lost shard', async t => {
  const { cluster, host } = await hostsOf(t)
  const list = (): Promise<ShardReply> =>
    ask(
      host,
      { kind: 'list', tenant, paths: ['/#'], selection: selectionOf({}), order: [], offset: 0, limit: 10 },
      shardOfId(stays),
    )
  await cluster.waitFor(Promise.all([askId(host, create(lostId)), askId(host, create(stays)), list()]))
  const [, , during] = await loseDuring(cluster, lostShard, () =>
    Promise.all([askId(host, create(alsoLost)), askId(host, create(`${stays}b`)), list()]),
  )
  t.strictSame(during, { kind: 'moved' }, 'those that were asked before are for the owners there are now')
  t.match(await cluster.waitFor(list()), { kind: 'listed', total: 2 })
  await cluster.rest()
  t.equal(host.local.parts.entityCount.total, 2)
})

t.test('a notification goes with its change: it is sent if that is durable, and else it was not counted', async t => {
  const { cluster, host } = await hostsOf(t)
  const oneshot = watching(1, { status: 'oneshot' })
  for (const subscription of [oneshot, watching(2)])
    await cluster.waitFor(ask(host, { kind: 'createSubscription', subscription }, register))
  await loseDuring(cluster, lostShard, () => Promise.all([askId(host, create(lostId))]))
  await cluster.rest()
  t.strictSame(host.despatch.next(), [])
  const progressOf = (n: number) => host.local.parts.subscriptions.of(tenant)!.progressOf(idOf(n))
  t.strictSame(
    [1, 2].map(n => progressOf(n).timesSent),
    [0, 0],
  )
  await cluster.waitFor(askId(host, create(stays)))
  await cluster.rest()
  t.strictSame(
    host.despatch.next().map(due => intentsOf(due)?.[1]),
    [stays, stays],
    'the one-shot has not been spent',
  )
})

t.test(
  'permits that a document owner has granted and not written before it lost the register are requested from the next',
  async t => {
    const { cluster, host } = await hostsOf(t)
    const subscription = watching(1, { status: 'oneshot' })
    await cluster.waitFor(ask(host, { kind: 'createSubscription', subscription }, register))
    await loseDuring(cluster, register, () => Promise.all([askId(host, create(stays))]))
    await until(cluster.clock, () => host.despatch.taken.length > 0)
    t.strictSame(
      host.despatch.next().map(due => intentsOf(due)?.[1]),
      [stays],
    )
    t.equal(cluster.host(1).local.parts.subscriptions.of(tenant)!.progressOf(idOf(1)).timesSent, 1)
    await cluster.waitFor(askId(host, update(stays, { n: 1 })))
    await cluster.rest(1_000)
    t.strictSame(
      [host, cluster.host(1)].flatMap(({ despatch }) => despatch.next()),
      [],
      'the one-shot has been spent',
    )
  },
)

t.test(
  'a one-shot triggers once when its document owner loses the register and then the shard of a decided change',
  async t => {
    const { cluster, host } = await hostsOf(t)
    const next = cluster.host(1)
    const subscription = watching(1, { status: 'oneshot' })
    await cluster.waitFor(ask(host, { kind: 'createSubscription', subscription }, register))
    let asked: Promise<ShardReply> | undefined
    await cluster.depose(register, 1, async () => {
      host.replication.isHeld = true
      asked = askId(host, create(stays))
      cluster.clock.tick()
      const taken = cluster.depose(shardOfId(stays), 1)
      await new Promise(setImmediate)
      host.replication.release()
      await taken
    })
    await cluster.waitFor(asked!)
    await until(cluster.clock, () => next.despatch.taken.length > 0)
    t.strictSame(
      next.despatch.next().map(due => intentsOf(due)?.[1]),
      [stays],
      'the next owner finds the row',
    )
    t.equal(next.local.parts.subscriptions.of(tenant)!.progressOf(idOf(1)).timesSent, 1)
    await cluster.waitFor(askId(next, update(stays, { n: 1 })))
    await cluster.rest(1_000)
    t.strictSame(next.despatch.next(), [], 'the one-shot has been spent')
  },
)

t.test('the register is as the store has it when its owner loses it', async t => {
  const { cluster, host } = await hostsOf(t)
  const createOf = (n: number): ShardRequest => ({ kind: 'createSubscription', subscription: watching(n) })
  const remove = { kind: 'removeSubscription', tenant, id: idOf(1) } as const
  await cluster.waitFor(ask(host, createOf(1), register))
  const [created, removed, found, written] = await loseDuring(cluster, register, () =>
    Promise.all([
      ask(host, createOf(2), register),
      ask(host, remove, register),
      ask(host, { kind: 'findSubscription', tenant, id: idOf(2) }, register),
      askId(host, create(stays)),
    ]),
  )
  const lost = { kind: 'lost', reason: `shard ${register} was taken over by another` } as const
  t.strictSame([created, removed, found, written], [lost, lost, { kind: 'moved' }, done])
  t.strictSame(
    [1, 2].map(n => host.local.parts.subscriptions.of(tenant)!.has(idOf(n))),
    [true, false],
  )
  t.strictSame(host.failures, [])
  const again = (request: ShardRequest): Promise<ShardReply> =>
    cluster.waitFor(new Promise(resolve => cluster.ask(register, request, resolve)))
  t.strictSame(await again(createOf(2)), done)
  t.strictSame(await again(remove), done)
  for (const { local } of cluster.hosts)
    t.strictSame(
      [1, 2].map(n => local.parts.subscriptions.of(tenant)!.has(idOf(n))),
      [false, true],
    )
  await cluster.assertEqual()
})

t.test('dead letters of a lost shard are for its next owner', async t => {
  const { cluster, host } = await hostsOf(t)
  await cluster.waitFor(ask(host, { kind: 'createSubscription', subscription: watching(1) }, register))
  await cluster.waitFor(Promise.all([askId(host, create(lostId)), askId(host, create(stays))]))
  await cluster.rest()
  const letters = { kind: 'deliveries', tenant, id: idOf(1), limit: 10 } as const
  const reply = await loseDuring(cluster, lostShard, () => {
    for (const due of host.despatch.next()) due.onOutcome(dead())
    return ask(host, letters, shardOfId(stays))
  })
  t.match(reply, { kind: 'deliveries', deadCount: 1, deadLetters: [{ id: stays }] })
  // The rows of a shard that is taken over are read on another thread.
  await until(cluster.clock, () => cluster.host(1).despatch.taken.length > 0)
  const [due] = cluster.host(1).despatch.next()
  t.equal(due && intentsOf(due)?.[1], lostId, 'it has been given up by nobody')
  await cluster.assertEqual()
})
