// Shards that move between hosts during requests: together the hosts answer as one owner of all shards, and every host
// has the same rows.

import assert from 'node:assert/strict'
import t, { type Test } from 'tap'
import type { Listed } from '../../../src/broker/replies.js'
import { ShardClient } from '../../../src/broker/shard-client.js'
import { HybridClock } from '../../../src/clock.js'
import type { Result } from '../../../src/domain/refusal.js'
import { encodedId } from '../../../src/encoded-entity.js'
import type { FoundEntity, ListRequest, ShardReply, TypeSummary, WriteRequest } from '../../../src/messages/messages.js'
import { Expiry } from '../../../src/shard/expiry.js'
import type { LocalShards } from '../../../src/shard/shards.js'
import { compareIndexes } from '../../support/compare-indexes.js'
import { FakeClock } from '../../support/fake-clock.js'
import { localShards } from '../../support/local-shards.js'
import { MemoryStore } from '../../support/memory-store.js'
import { create, tenant, until } from '../../support/notifying.js'
import { Random } from '../../support/random.js'
import { entitiesIn, RandomRequests, shownResult, summariesIn } from '../../support/random-requests.js'
import { allShards, Cluster, shardCount, shardMap } from '../../support/replicated-hosts.js'
import { selectionOf } from '../../support/selections.js'

/** The cluster, and one owner of everything that gets the same requests. */
class Pair {
  readonly cluster: Cluster
  readonly requests: RandomRequests
  private readonly single: LocalShards
  private readonly clients: readonly [ShardClient, ShardClient]
  private readonly expiry: Expiry
  private readonly clock: FakeClock

  private constructor(cluster: Cluster, random: Random, store: MemoryStore, single: LocalShards) {
    const { clock } = cluster
    this.cluster = cluster
    this.clock = clock
    this.requests = new RandomRequests(random, { ids: 8, nowMs: () => clock.wallMs() })
    this.single = single
    this.clients = [new ShardClient(this.single, shardMap), new ShardClient(cluster, shardMap)]
    const logger = { error() {} }
    this.expiry = new Expiry({ store, shards: single, clock, logger, intervalMs: 1000, mark: single.parts.expiryMark })
  }

  static async of(cluster: Cluster, random: Random): Promise<Pair> {
    const store = new MemoryStore()
    const { clock } = cluster
    const opened = localShards(store, shardMap, clock, { stamps: new HybridClock(clock) })
    return new Pair(cluster, random, store, await cluster.waitFor(opened))
  }

  /** Sends a request to both, and checks that they answer alike. */
  async alike<T>(
    ask: (client: ShardClient, onResult: (result: Result<T>) => void) => void,
    show: (value: T) => unknown,
  ): Promise<void> {
    const both = this.clients.map(
      client => new Promise<unknown>(resolve => ask(client, result => resolve(shownResult(result, show)))),
    )
    const [one, several] = await this.cluster.waitFor(Promise.all(both))
    assert.deepEqual(several, one)
  }

  /** Makes some writes at the same time. */
  async write(countMax: number, creates: boolean): Promise<void> {
    await this.writeAll(this.requests.writes(countMax, creates))
  }

  async writeAll(writes: readonly WriteRequest[]): Promise<void> {
    await Promise.all(
      writes.map(write =>
        this.alike(
          (client, onResult) => client.write(structuredClone(write), onResult),
          () => 'done',
        ),
      ),
    )
  }

  /** Reads a page of a list, types, and an id. */
  async read(): Promise<void> {
    const [list, types, find] = [this.requests.list(), this.requests.types(), this.requests.find()]
    await this.alike<Listed>(
      (client, onResult) => client.list(list, onResult),
      ({ entities, total }) => [total, ...entitiesIn(entities)],
    )
    await this.alike<readonly TypeSummary[]>((client, onResult) => client.types(types, onResult), summariesIn)
    await this.alike<readonly FoundEntity[]>(
      (client, onResult) => client.find(find, onResult),
      found => entitiesIn(found).map(String).sort(),
    )
  }

  /** Advances the time, and removes expired entities. */
  async expire(): Promise<void> {
    this.clock.advance(60_000)
    const runs = this.cluster.hosts.map(host => host.expiry.run())
    await this.cluster.waitFor(Promise.all([this.expiry.run(), ...runs]))
  }

  /** Compares the numbers of entities that the owners report. */
  async assertCounts(): Promise<void> {
    await this.cluster.rest()
    const counts = this.cluster.hosts.map(host => host.local.parts.entityCount.total)
    assert.equal(
      counts.reduce<number>((sum, count) => sum + (count ?? Number.NaN), 0),
      this.single.parts.entityCount.total,
    )
  }
}

t.test(
  'while shards move, replies to any requests are those of one owner, and all hosts have the same rows',
  async t => {
    const random = Random.fromEnvironment()
    t.comment(`SEED=${random.seed}`)
    const cluster = await Cluster.of(t, new FakeClock(), 3)
    const pair = await Pair.of(cluster, random)
    for (let round = 0; round < 120; round++) {
      const what = random.between(0, 9)
      if (what <= 4) await pair.write(12, true)
      else if (what <= 7) {
        // Writes in flight must find their shard.
        const writing = pair.write(12, false)
        await cluster.move(random.between(0, shardCount - 1), random.between(0, 2))
        await writing
      } else if (what === 8) await pair.expire()
      else await cluster.followAll()
      await pair.read()
      if (round % 20 === 19) {
        await pair.assertCounts()
        await cluster.assertEqual()
      }
    }
    for (const { store } of cluster.hosts) t.strictSame(await compareIndexes(store, 'by shard'), [])
    t.ok(new Set(cluster.places).size > 1, 'several hosts own something')
  },
)

t.test(
  'while hosts take shards over, replies to any requests are those of one owner, and all hosts have the same rows',
  async t => {
    const random = Random.fromEnvironment()
    t.comment(`SEED=${random.seed}`)
    const cluster = await Cluster.of(t, new FakeClock(), 3)
    cluster.asksLostAgain = true
    const pair = await Pair.of(cluster, random)
    for (let round = 0; round < 200; round++) {
      const what = random.between(0, 9)
      if (what <= 3) await pair.write(12, true)
      else if (what <= 8) {
        const writes = pair.requests.writes(12, false)
        const { tenant, path, id } = random.pick(writes as [WriteRequest, ...WriteRequest[]]).target
        const writing = pair.writeAll(writes)
        await cluster.depose(shardMap.shardOf(tenant, path, id), random.between(0, 2), async () => {
          // Some writes are in flight, and some are staged behind them.
          if (random.fraction() < 0.5) await cluster.rest()
        })
        await writing
      } else await pair.expire()
      await pair.read()
      if (round % 20 === 19) {
        await pair.assertCounts()
        await cluster.assertEqual()
      }
    }
    for (const { store, local, failures } of cluster.hosts) {
      t.strictSame(await compareIndexes(store, 'by shard'), [])
      t.strictSame(failures, [])
      t.equal(local.parts.commit.failed, undefined)
    }
    t.ok(new Set(cluster.places).size > 1, 'several hosts own something')
  },
)

t.test('a request to a shard of another owner has not happened', async t => {
  const cluster = await Cluster.of(t, new FakeClock(), 2)
  const { requests } = await Pair.of(cluster, new Random(1))
  const [write] = requests.writes(1, true)
  const { tenant, path, id } = write!.target
  const shard = shardMap.shardOf(tenant, path, id)
  const replies: unknown[] = []
  for (const request of [write!, requests.list(), { kind: 'batch', items: [write!] } as const])
    cluster.host(1).local.ask(shard, request, reply => replies.push(reply))
  t.strictSame(replies, [{ kind: 'moved' }, { kind: 'moved' }, { kind: 'moved' }])
  await cluster.move(shard, 1)
  const other = allShards.find(one => one !== shard)!
  cluster.host(0).local.ask(other, { kind: 'batch', items: [write!] }, reply => replies.push(reply))
  await cluster.rest()
  t.strictSame(replies.at(-1), { kind: 'batch', replies: [{ kind: 'moved' }] }, 'item by item')
})

/** Each shard of their path has more entities than are read one by one, so lists by content need a view, or a scan. */
const many = 1200

const listOf = (more: Partial<ListRequest>): ListRequest => ({
  kind: 'list',
  tenant,
  paths: ['/#'],
  selection: selectionOf({}),
  order: [],
  offset: 0,
  limit: many,
  ...more,
})

async function clusterOfMany(t: Test): Promise<Cluster> {
  const cluster = await Cluster.of(t, new FakeClock(), 2)
  const items = Array.from({ length: many }, (_, n) => create(`E${n}`, { n }))
  const reply = await cluster.waitFor(new Promise(resolve => cluster.ask(0, { kind: 'batch', items }, resolve)))
  t.match(reply, { kind: 'batch', replies: items.map(() => ({ kind: 'done' })) })
  return cluster
}

t.test('views and scans show owned entities, and nothing else', async t => {
  const cluster = await clusterOfMany(t)
  await cluster.followAll()
  /** The entities that each host finds by itself. */
  const found = async (request: ListRequest): Promise<readonly (readonly string[])[]> => {
    const replies = cluster.hosts.map(
      host =>
        new Promise<readonly string[]>(resolve => {
          const shard = allShards.find(one => host.ownership.owns(one))
          if (shard === undefined) return resolve([])
          host.local.ask(shard, request, reply => {
            assert(reply.kind === 'listed')
            assert.equal(reply.total, reply.entities.length)
            resolve(reply.entities.map(({ encoded }) => encodedId(encoded)).sort())
          })
        }),
    )
    return cluster.waitFor(Promise.all(replies))
  }
  const byView = listOf({ selection: selectionOf({ q: 'n>=0' }) })
  // A view does not know metadata.
  const byScan = listOf({ selection: selectionOf({ q: 'n>=0', mq: '!n.unit' }) })
  for (const shard of [undefined, ...shardMap.shardsOf(tenant, '/'), 0]) {
    if (shard !== undefined) await cluster.move(shard, 1 - cluster.places[shard]!)
    const all = await found(listOf({}))
    t.equal(all.flat().length, many)
    t.strictSame(await found(byView), all)
    t.strictSame(await found(byScan), all)
  }
})

t.test('a list during which shards come or go is not returned', async t => {
  const cluster = await clusterOfMany(t)
  const host = cluster.host(0)
  const replies: ShardReply[] = []
  host.local.ask(0, listOf({}), reply => replies.push(reply))
  await cluster.waitFor(host.seal(3))
  await until(cluster.clock, () => replies.length > 0)
  t.strictSame(replies, [{ kind: 'moved' }])
})
