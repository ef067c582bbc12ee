// Tenants that are deleted by two hosts of a cluster, and by a single owner: which rows go, which stay, which requests
// are accepted, and the effect of shards that move and processes that end meanwhile.

import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { ShardReply, ShardRequest, Shards, TenantsStep, WriteRequest } from '../../../src/messages/messages.js'
import type { LocalShards } from '../../../src/shard/shards.js'
import { encodeMark, markKey } from '../../../src/shard/tenants/deletion-layout.js'
import { tenantDeletionsMax } from '../../../src/shard/tenants/tenant-admin.js'
import { roundMs, TenantDeletions } from '../../../src/shard/tenants/tenant-deletions.js'
import { compareIndexes } from '../../support/compare-indexes.js'
import { FakeClock } from '../../support/fake-clock.js'
import { localShards } from '../../support/local-shards.js'
import { MemoryStore } from '../../support/memory-store.js'
import { create } from '../../support/notifying.js'
import { provided } from '../../support/registrations.js'
import { allShards, Cluster, register, shardMap } from '../../support/replicated-hosts.js'
import { subscription } from '../../support/subscriptions.js'

const logger = { info() {}, warn() {} }
const watching = '{"subject":{"entities":[{"idPattern":".*"}]},"notification":{"http":{"url":"http://r:1"}}}'

/** A client that asks shards while a fake clock stands still. */
class Client {
  constructor(
    private readonly shards: Pick<Shards, 'ask'>,
    readonly clock: FakeClock,
  ) {}

  /** Advances the time until a promise has ended. */
  async drive<T>(promise: Promise<T>): Promise<T> {
    let isOver = false
    const over = (): void => {
      isOver = true
    }
    promise.then(over, over)
    while (!isOver) {
      this.clock.advance(1)
      await turnOfTheLoop()
    }
    return promise
  }

  ask(shard: number, request: ShardRequest): Promise<ShardReply> {
    return this.drive(new Promise(resolve => this.shards.ask(shard, request, resolve)))
  }

  step(shard: number, step: TenantsStep): Promise<ShardReply> {
    return this.ask(shard, { kind: 'tenants', step })
  }

  async kinds(requests: readonly ShardRequest[]): Promise<readonly string[]> {
    const kinds: string[] = []
    for (const request of requests) kinds.push((await this.ask(shardOf(request), request)).kind)
    return kinds
  }

  /** Tenants in deletion, as the keeper knows them. */
  async underWay(): Promise<readonly string[]> {
    const reply = await this.step(register, { what: 'deletions' })
    if (reply.kind !== 'tenants' || reply.content.what !== 'deletions') throw new Error(reply.kind)
    return reply.content.deletions.map(({ tenant }) => tenant)
  }

  /** Entities, subscriptions and registrations of tenants, over owners. */
  async sizes(owners: readonly number[], tenants: readonly string[]): Promise<readonly (readonly number[])[]> {
    const sums = tenants.map(() => [0, 0, 0])
    for (const shard of owners) {
      const reply = await this.step(shard, { what: 'sizes', tenants })
      if (reply.kind !== 'tenants' || reply.content.what !== 'sizes') throw new Error(reply.kind)
      for (const [at, { entities, subscriptions, registrations }] of reply.content.sizes.entries()) {
        sums[at]![0]! += entities
        sums[at]![1] = subscriptions
        sums[at]![2] = registrations
      }
    }
    return sums
  }
}

const shardOf = (request: ShardRequest): number =>
  'target' in request ? shardMap.shardOf(request.target.tenant, request.target.path, request.target.id) : register

const entity = (tenant: string, id: string, path = '/'): WriteRequest => {
  const request = create(id)
  return { ...request, target: { ...request.target, tenant, path } }
}

const entities = (tenant: string, count: number): readonly WriteRequest[] =>
  Array.from({ length: count }, (_, n) => entity(tenant, `E${n}`, n % 2 ? '/' : '/a'))

const documentsOf = (tenant: string): readonly ShardRequest[] => [
  { kind: 'createSubscription', subscription: { ...subscription(watching), tenant } },
  {
    kind: 'createRegistration',
    registration: provided(1, [{ id: 'P', type: 'T' }], ['a'], 'http://p:1', { tenant, servicePath: '/' }),
  },
]

const tasks = (t: Test, cluster: Cluster): readonly TenantDeletions[] =>
  cluster.hosts.map(({ local }) => {
    const task = new TenantDeletions({
      ...{ local: local.parts, shards: cluster, clock: cluster.clock, logger, entitiesPerStep: 4 },
    })
    // A round of its own timer may be in flight.
    t.teardown(() => new Client(cluster, cluster.clock).drive(task.end()))
    return task
  })

async function clustered(t: Test) {
  const clock = new FakeClock()
  const cluster = await Cluster.of(t, clock, 2)
  for (const shard of [1, 3, 5]) await cluster.move(shard, 1)
  const client = new Client(cluster, clock)
  for (const tenant of ['gone', 'stays']) await client.kinds([...entities(tenant, 24), ...documentsOf(tenant)])
  return { clock, cluster, client }
}

t.test('a tenant goes with all it has, at every host, and the others stay', async t => {
  const { cluster, client } = await clustered(t)
  const [first, second] = tasks(t, cluster) as [TenantDeletions, TenantDeletions]
  const names = ['gone', 'stays']
  t.same(await client.sizes(cluster.owners(), names), [
    [24, 1, 1],
    [24, 1, 1],
  ])
  for (const { despatch } of cluster.hosts) despatch.next()
  t.match(await client.step(register, { what: 'delete', tenant: 'gone' }), { kind: 'tenants' })

  const asked: readonly ShardRequest[] = [
    entity('gone', 'new'),
    { kind: 'batch', items: [entity('gone', 'new')] },
    { kind: 'find', tenant: 'gone', paths: ['/#'], id: 'E1', type: undefined },
    { kind: 'types', tenant: 'gone', paths: ['/#'], type: undefined },
    ...documentsOf('gone'),
    { kind: 'listSubscriptions', tenant: 'gone', servicePath: undefined, offset: 0, limit: 1 },
  ]
  const batchShard = shardOf(entity('gone', 'new'))
  for (const request of asked) {
    const reply = await client.ask(request.kind === 'batch' ? batchShard : shardOf(request), request)
    t.match(reply, { kind: 'refused', refusal: { code: 'tenantDeleting', tenant: 'gone' } }, request.kind)
  }
  t.same(await client.kinds([entity('stays', 'new')]), ['done'])

  await client.drive(second.round())
  // Moves a shard with entities that its new owner has not looked for.
  await cluster.move(0, 1)
  await client.drive(first.round())
  t.same(await client.underWay(), ['gone'])
  for (let rounds = 0; rounds < 2; rounds++) {
    await client.drive(second.round())
    await client.drive(first.round())
  }
  t.same(await client.underWay(), [])
  t.same(await client.sizes(cluster.owners(), names), [
    [0, 0, 0],
    [25, 1, 1],
  ])
  await cluster.followAll()
  t.same(await client.kinds([entity('gone', 'E1'), ...documentsOf('gone')]), ['done', 'done', 'done'])
  const notified = cluster.hosts.flatMap(({ despatch }) => despatch.next().map(({ tenant }) => tenant))
  t.equal(notified.filter(tenant => tenant === 'gone').length, 0, 'nobody is notified of what is deleted')
  await cluster.assertEqual(allShards)
})

t.test('an owner whose register is old deletes nothing that the keeper does not want deleted', async t => {
  const { cluster, client } = await clustered(t)
  const [, second] = tasks(t, cluster) as [TenantDeletions, TenantDeletions]
  const { marks } = cluster.host(1).local.parts.tenants.parts
  marks.follow(markKey(register, 'gone'), encodeMark(4711))
  await client.drive(second.round())
  t.same((await client.sizes(cluster.owners(), ['gone']))[0], [24, 1, 1])
})

t.test('the keeper does not end a deletion that another owner does not know yet', async t => {
  const { cluster, client } = await clustered(t)
  const [first, second] = tasks(t, cluster) as [TenantDeletions, TenantDeletions]
  await client.step(register, { what: 'delete', tenant: 'gone' })
  const { marks } = cluster.host(1).local.parts.tenants.parts
  marks.follow(markKey(register, 'gone'), undefined)
  for (let rounds = 0; rounds < 3; rounds++) for (const task of [second, first]) await client.drive(task.round())
  t.same(await client.underWay(), ['gone'])
  await client.drive(marks.reconcile())
  for (const task of [second, first]) await client.drive(task.round())
  t.same(await client.underWay(), [])
})

async function alone(store: MemoryStore, clock: FakeClock): Promise<{ local: LocalShards; client: Client }> {
  const client = new Client({ ask: (...given) => local.ask(...given) }, clock)
  const local: LocalShards = await client.drive(localShards(store, shardMap, clock))
  return { local, client }
}

t.test('a deletion goes on after a restart, and the name is free afterwards', async t => {
  const clock = new FakeClock()
  const store = new MemoryStore()
  const before = await alone(store, clock)
  await before.client.kinds([...entities('gone', 30), ...documentsOf('gone'), ...entities('stays', 3)])
  await before.client.step(register, { what: 'delete', tenant: 'gone' })
  await before.client.drive(before.local.drain())

  const { local, client } = await alone(store, clock)
  t.match(await client.kinds([entity('gone', 'new')]), ['refused'])
  const task = new TenantDeletions({ local: local.parts, shards: local, clock, logger })
  t.teardown(() => client.drive(task.end()))
  // The rounds begin by the task's own timer.
  for (let rounds = 0; local.parts.tenants.parts.marks.size > 0 && rounds < 5_000; rounds++) {
    clock.advance(roundMs / 100)
    await turnOfTheLoop()
  }
  t.same(await client.sizes([0], ['gone', 'stays']), [
    [0, 0, 0],
    [3, 0, 0],
  ])
  t.same(await client.kinds([entity('gone', 'new')]), ['done'])
  await client.drive(local.drain())
  await compareIndexes(store)
})

t.test('an order is repeated without harm, and there are only so many at a time', async t => {
  const clock = new FakeClock()
  const { client } = await alone(new MemoryStore(), clock)
  const order = (n: number) => client.step(register, { what: 'delete', tenant: `t${n}` })
  const [one, again] = [await order(0), await order(0)]
  t.same(again, one)
  for (let n = 1; n < tenantDeletionsMax; n++) t.match(await order(n), { kind: 'tenants' })
  t.match(await order(tenantDeletionsMax), {
    kind: 'refused',
    refusal: { code: 'tenantDeletionsTooMany', max: tenantDeletionsMax },
  })
  t.same(await order(0), one)
})
