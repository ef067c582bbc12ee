// Hosts that follow: from the log, from a snapshot that was read during changes, and after a death between the log and
// the store.

import assert from 'node:assert/strict'
import t, { type Test } from 'tap'
import type { ShardReply, ShardRequest, WriteRequest } from '../../../src/messages/messages.js'
import { lastStamp } from '../../../src/shard/commit/commit-log.js'
import { encodeNumber, prefix } from '../../../src/shard/keys.js'
import { entityCounts } from '../../../src/shard/layout.js'
import { OperationWriter } from '../../../src/shard/replicate/row-operations.js'
import { ampleRoom } from '../../../src/shard/turn/room.js'
import { openRocksStore } from '../../../src/storage/rocks-store.js'
import { commit, temporaryDirectory } from '../../storage/store-contract.js'
import { compareIndexes } from '../../support/compare-indexes.js'
import { FakeClock } from '../../support/fake-clock.js'
import { create, idOf, tenant, update, watching } from '../../support/notifying.js'
import { PretendedRoom } from '../../support/pretended-room.js'
import { Random } from '../../support/random.js'
import { RandomRequests } from '../../support/random-requests.js'
import { allShards, Cluster, Host, register, shardCount, shardMap } from '../../support/replicated-hosts.js'

/** Another host, with an empty store, that gets no requests and follows nothing by itself. */
async function another(t: Test, cluster: Cluster, room = ampleRoom): Promise<Host> {
  const store = await openRocksStore(temporaryDirectory(t), { durability: 'os', memoryBytes: 8 * 1024 * 1024 })
  const { clock, log } = cluster
  const host = await Host.open(store, { clock, log, number: 99, cluster, room })
  t.teardown(async () => {
    host.local.parts.notifications.end()
    await host.store.close()
  })
  return host
}

const shardOf = ({ target: { tenant, path, id } }: WriteRequest): number => shardMap.shardOf(tenant, path, id)

const requestsOf = (cluster: Cluster, random: Random, ids = 30): RandomRequests =>
  new RandomRequests(random, { ids, nowMs: () => cluster.clock.wallMs() })

function end(cluster: Cluster, request: ShardRequest, shard = register): Promise<ShardReply> {
  return cluster.waitFor(new Promise(resolve => cluster.ask(shard, request, resolve)))
}

async function write(cluster: Cluster, requests: RandomRequests): Promise<void> {
  await Promise.all(requests.writes(20, true).map(one => end(cluster, one, shardOf(one))))
}

/** The rows of all shards, as text. */
async function contentOf(host: Host): Promise<readonly string[]> {
  const rows = await Promise.all(allShards.map(shard => host.rows(shard)))
  return rows.flat().map(({ key, value }) => `${key.toString('latin1')} = ${value.toString('latin1')}`)
}

async function assertSame(cluster: Cluster, a: Host, b: Host): Promise<void> {
  assert.deepEqual(await cluster.waitFor(contentOf(b)), await cluster.waitFor(contentOf(a)))
}

t.test('a host that has only followed has the rows of the deciding host, and its indexes equal a rebuild', async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  const cluster = await Cluster.of(t, new FakeClock(), 1)
  const host = await another(t, cluster)
  const requests = requestsOf(cluster, random)
  await end(cluster, { kind: 'createSubscription', subscription: watching(1) })
  for (let round = 0; round < 15; round++) {
    await write(cluster, requests)
    if (round % 3 === 0) await cluster.waitFor(host.follow())
  }
  await cluster.rest(200)
  await cluster.waitFor(host.follow())
  await assertSame(cluster, cluster.host(0), host)
  t.strictSame(await cluster.waitFor(compareIndexes(host.store, 'by shard')), [])
  for (const shard of allShards)
    t.strictSame(
      host.shardHost.position(shard),
      cluster.host(0).shardHost.position(shard),
      'it stands where who decided does',
    )
  t.ok(host.local.parts.subscriptions.of(tenant)?.get(idOf(1)), 'it knows the subscription')
})

t.test('a record that is damaged, or is about another shard, is not applied', async t => {
  const cluster = await Cluster.of(t, new FakeClock(), 1)
  const host = await another(t, cluster)
  await end(cluster, create('E'), shardMap.shardOf(tenant, '/', 'E'))
  const shard = shardMap.shardOf(tenant, '/', 'E')
  const { log } = cluster
  const [{ payload, position }] = log.behind(shard, undefined) as [{ payload: Buffer; position: never }]
  await t.rejects(host.apply(shard, [{ payload }, { payload: payload.subarray(0, 20) }], position), /cannot be read/)
  await t.rejects(host.apply((shard + 1) % shardCount, [{ payload }], position), /row of another shard/)
  t.equal(host.shardHost.position(shard), undefined)
  t.strictSame(await cluster.waitFor(contentOf(host)), [])
})

t.test('a record or a page with a row of another version is refused, and the existing rows stay', async t => {
  const cluster = await Cluster.of(t, new FakeClock(), 1)
  const host = await another(t, cluster)
  const shard = shardMap.shardOf(tenant, '/', 'E')
  await end(cluster, create('E'), shard)
  await cluster.waitFor(host.follow([shard]))
  const before = await cluster.waitFor(contentOf(host))
  const { value, key } = (await host.rows(shard)).find(row => row.key[0] === prefix.entity)!
  value[0] = 9
  const writer = new OperationWriter()
  writer.put(key, value)
  const bytes = writer.end(1)
  const unreadable = { code: 'unreadable', message: /^a stored entity has version 9, .* \(the row with key "E/ }
  const { position } = cluster.log.behind(shard, undefined)[0]!
  await t.rejects(host.apply(shard, [{ payload: bytes }], position), unreadable)
  const install = (onDone: (failure?: Error) => void): void => host.shardHost.install(shard, bytes, true, onDone)
  await t.rejects(
    cluster.waitFor(
      new Promise<void>((resolve, reject) => install(failure => (failure ? reject(failure) : resolve()))),
    ),
    unreadable,
  )
  t.strictSame(await cluster.waitFor(contentOf(host)), before)
})

interface Pages {
  readonly from: Host
  readonly to: Host
  readonly shard: number
  readonly bytesMax: number
  /** Called after each page. */
  readonly between: () => Promise<void>
}

/** Transfers a snapshot, and then the log since its beginning. */
async function bring(cluster: Cluster, { from, to, shard, bytesMax, between }: Pages): Promise<void> {
  const position = from.shardHost.position(shard)
  let after: Buffer | undefined
  do {
    const page = await cluster.waitFor(
      new Promise<{ rows: Buffer; next: Buffer | undefined }>((resolve, reject) =>
        from.shardHost.snapshot(shard, after, bytesMax, page => (page instanceof Error ? reject(page) : resolve(page))),
      ),
    )
    await cluster.waitFor(
      new Promise<void>((resolve, reject) =>
        to.shardHost.install(shard, page.rows, after === undefined, failure => (failure ? reject(failure) : resolve())),
      ),
    )
    assert.equal(to.shardHost.position(shard), undefined, 'it has a part only')
    after = page.next
    await between()
  } while (after)
  if (position) await cluster.waitFor(to.apply(shard, [], position))
  await cluster.waitFor(to.follow([shard]))
}

t.test('a snapshot that is read while everything changes, with the log behind it, leads to the same rows', async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  const cluster = await Cluster.of(t, new FakeClock(), 1)
  const requests = requestsOf(cluster, random)
  const from = cluster.host(0)
  const to = await another(t, cluster)
  for (let n = 1; n <= 5; n++) await end(cluster, { kind: 'createSubscription', subscription: watching(n) })
  for (let round = 0; round < 10; round++) await write(cluster, requests)
  let n = 5
  let pages = 0
  const between = async (): Promise<void> => {
    // Pending notifications grow, but more slowly than they are read.
    if (++pages % 6 > 0) return
    await write(cluster, requests)
    await end(cluster, { kind: 'removeSubscription', tenant, id: idOf(random.between(1, n)) })
    await end(cluster, { kind: 'createSubscription', subscription: watching(++n) })
  }
  for (const shard of allShards) await bring(cluster, { from, to, shard, bytesMax: 700, between })
  t.ok(pages > 2 * allShards.length, `${pages} pages`)
  await cluster.rest(200)
  await cluster.waitFor(to.follow())
  await assertSame(cluster, from, to)
  t.strictSame(await cluster.waitFor(compareIndexes(to.store, 'by shard')), [])
  const known = (host: Host): string[] => [...host.local.parts.subscriptions.all()].map(({ id }) => id)
  t.strictSame(known(to), known(from), 'memory knows what the store does')
})

t.test('a snapshot replaces the existing rows, and a shard that is dropped has gone', async t => {
  const cluster = await Cluster.of(t, new FakeClock(), 1)
  const requests = requestsOf(cluster, new Random(7))
  const to = await another(t, cluster)
  await end(cluster, { kind: 'createSubscription', subscription: watching(1) })
  for (let round = 0; round < 5; round++) await write(cluster, requests)
  await cluster.waitFor(to.follow())
  await end(cluster, { kind: 'removeSubscription', tenant, id: idOf(1) })
  for (let round = 0; round < 5; round++) await write(cluster, requests)
  const between = async (): Promise<void> => {}
  for (const shard of allShards) await bring(cluster, { from: cluster.host(0), to, shard, bytesMax: 100_000, between })
  await assertSame(cluster, cluster.host(0), to)
  t.equal(to.local.parts.subscriptions.size, 0, 'a subscription that is not in it is forgotten')
  for (const shard of allShards)
    await cluster.waitFor(
      new Promise<void>((resolve, reject) =>
        to.shardHost.drop(shard, failure => (failure ? reject(failure) : resolve())),
      ),
    )
  t.strictSame(await cluster.waitFor(contentOf(to)), [])
  t.strictSame(allShards.map(shard => to.shardHost.position(shard)).filter(Boolean), [])
})

t.test('counts that a death has left of a shard without entities go with the next snapshot', async t => {
  const cluster = await Cluster.of(t, new FakeClock(), 1)
  const to = await another(t, cluster)
  await cluster.waitFor(
    commit(to.store, batch => {
      for (const shard of [0, 1]) batch.put(entityCounts.key('t', '/gone', 'T', shard), encodeNumber(1))
    }),
  )
  const between = async (): Promise<void> => {}
  for (const shard of allShards) await bring(cluster, { from: cluster.host(0), to, shard, bytesMax: 1000, between })
  t.strictSame(await cluster.waitFor(compareIndexes(to.store, 'by shard')), [])
})

t.test('a host that dies between the log and the store follows the log from the position of its store', async t => {
  const cluster = await Cluster.of(t, new FakeClock(), 1)
  const directory = temporaryDirectory(t)
  const open = () => openRocksStore(directory, { durability: 'os', memoryBytes: 8 * 1024 * 1024 })
  const { clock, log } = cluster
  const requests = requestsOf(cluster, new Random(8))
  const first = await Host.open(await open(), { clock, log, number: 1, cluster })
  cluster.hosts.push(first)
  for (const shard of allShards) await cluster.move(shard, 1)
  await write(cluster, requests)
  await cluster.rest(200)
  const written = allShards.map(shard => first.shardHost.position(shard))
  const stamp = lastStamp(first.store)
  // Appends from now on stay in flight.
  first.replication.isHeld = true
  const replies: ShardReply[] = []
  for (const one of requests.writes(20, true)) first.local.ask(shardOf(one), one, reply => replies.push(reply))
  clock.tick()
  t.ok(first.replication.held.length > 0, 'the log has it')
  first.local.parts.notifications.end()
  await first.store.close()
  t.notOk(
    replies.some(({ kind }) => kind === 'done'),
    'nobody was told that anything is done',
  )
  cluster.hosts.pop()
  const again = await Host.open(await open(), { clock, log, number: 1, cluster })
  t.teardown(async () => {
    again.local.parts.notifications.end()
    await again.store.close()
  })
  t.strictSame(
    allShards.map(shard => again.shardHost.position(shard)),
    written,
    'its positions are those of its rows',
  )
  t.ok(stamp > 0 && lastStamp(again.store) === stamp, 'and it knows the last stamp')
  const behind = allShards.filter(shard => log.behind(shard, again.shardHost.position(shard)).length > 0)
  t.ok(behind.length > 0, 'the log has more than the store')
  const host = cluster.host(0)
  for (const one of [again, host]) await cluster.waitFor(one.follow())
  await assertSame(cluster, host, again)
  for (const shard of allShards) {
    await cluster.waitFor(again.activate(shard))
    t.strictSame(again.shardHost.position(shard), log.last(shard))
  }
})

t.test('a follower goes on while an append takes its time, and syncs in between', async t => {
  const cluster = await Cluster.of(t, new FakeClock(), 2)
  const [a, b] = [cluster.host(0), cluster.host(1)]
  const shard = shardMap.shardOf(tenant, '/', 'E')
  await cluster.move(shard, 1)
  const [other, held] = ['F', 'G', 'H', 'I']
    .map(id => [id, shardMap.shardOf(tenant, '/', id)] as const)
    .find(([, one]) => one !== shard)!
  await end(cluster, create('E'), shard)
  a.replication.isHeld = true
  const replies: ShardReply[] = []
  a.local.ask(held, create(other), reply => replies.push(reply))
  await end(cluster, update('E', { n: 2 }), shard)
  await cluster.waitFor(a.follow([shard]))
  t.strictSame(a.shardHost.position(shard), b.shardHost.position(shard))
  await cluster.waitFor(
    new Promise<void>((resolve, reject) => a.shardHost.sync(failure => (failure ? reject(failure) : resolve()))),
  )
  t.strictSame(replies, [])
  a.replication.release()
  await cluster.rest()
  t.strictSame(replies, [{ kind: 'done' }])
  await cluster.assertEqual()
})

t.test('a host that may not append any more ends', async t => {
  const cluster = await Cluster.of(t, new FakeClock(), 1)
  const host = cluster.host(0)
  host.replication.append = (_parts, onDone) => setImmediate(() => onDone(new Error('another owner')))
  const reply = await end(cluster, create('E'), shardMap.shardOf(tenant, '/', 'E'))
  t.strictSame(reply, { kind: 'failed', reason: 'another owner' })
  t.match(host.failures, [{ message: 'another owner' }])
  t.strictSame(await cluster.waitFor(contentOf(host)), [], 'the store has nothing of it')
})

t.test('on a disk where room is scarce a copy waits and goes on, but the register is followed', async t => {
  const cluster = await Cluster.of(t, new FakeClock(), 1)
  const room = new PretendedRoom()
  const host = await another(t, cluster, room)
  room.become('scarce')
  await end(cluster, { kind: 'createSubscription', subscription: watching(1) })
  const shard = shardMap.shardOf(tenant, '/', 'E')
  await end(cluster, create('E'), shard)
  await cluster.waitFor(host.follow([register]))
  t.ok(host.local.parts.subscriptions.of(tenant)?.get(idOf(1)), 'it knows the subscription')
  t.equal(host.shardHost.waitsForRoom, false)
  const following = host.follow([shard])
  await cluster.rest(200)
  t.equal(host.shardHost.waitsForRoom, true)
  t.equal(host.shardHost.position(shard), undefined)
  room.become('short')
  await cluster.waitFor(following)
  t.equal(host.shardHost.waitsForRoom, false)
  t.same(host.shardHost.position(shard), cluster.host(0).shardHost.position(shard))
})
