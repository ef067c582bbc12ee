// The bound on the cost of a tenant's patterns, at its document owner: refused subscriptions, changes that give cost
// back, and the account after a start.

import t, { type Test } from 'tap'
import { systemClock } from '../../../src/clock.js'
import { ShardMap } from '../../../src/domain/scope.js'
import type { Subscription } from '../../../src/domain/subscriptions/subscription.js'
import type { ShardReply, SubscriptionRequest } from '../../../src/messages/messages.js'
import type { Clock } from '../../../src/ports.js'
import { PatternAccounts } from '../../../src/shard/documents/pattern-accounts.js'
import type { LocalShards } from '../../../src/shard/shards.js'
import { FakeClock } from '../../support/fake-clock.js'
import { localShards } from '../../support/local-shards.js'
import { MemoryStore } from '../../support/memory-store.js'
import { subscription } from '../../support/subscriptions.js'

const shardMap = new ShardMap({ shards: 16, spread: 4 })
const idOf = (n: number): string => n.toString(16).padStart(24, '0')
const costly = (n: number): string => `[ab]*a[ab]{400}${String.fromCharCode(0x100 + n)}?$`

const made = (n: number, idPattern = costly(n), tenant = 't'): Subscription => ({
  ...subscription(
    JSON.stringify({ subject: { entities: [{ idPattern }] }, notification: { http: { url: 'http://h' } } }),
  ),
  id: idOf(n),
  tenant,
})

async function opened(store = new MemoryStore(), clock: Clock = systemClock): Promise<LocalShards> {
  const shards = await localShards(store, shardMap, clock)
  return shards
}

const ask = (shards: LocalShards, request: SubscriptionRequest): Promise<ShardReply> =>
  new Promise(resolve => shards.ask(shardMap.register, request, resolve))
const create = (shards: LocalShards, one: Subscription) =>
  ask(shards, { kind: 'createSubscription', subscription: one })
const remove = (shards: LocalShards, n: number) => ask(shards, { kind: 'removeSubscription', tenant: 't', id: idOf(n) })
const change = (shards: LocalShards, n: number, value: Record<string, unknown>) =>
  ask(shards, {
    kind: 'changeSubscription',
    tenant: 't',
    id: idOf(n),
    servicePath: '/#',
    payload: { value: value as Record<string, string>, duplicates: [], deep: false },
  })

const isRefused = (t: Test, reply: ShardReply): unknown =>
  t.match(reply, { kind: 'refused', refusal: { kind: 'Forbidden', code: 'patternsTooCostly' } })
const isDone = (t: Test, reply: ShardReply, why?: string): unknown => t.strictSame(reply, { kind: 'done' }, why ?? '')

/** Creates subscriptions until one is refused; returns the number of that one. */
async function fill(t: Test, shards: LocalShards): Promise<number> {
  for (let n = 1; n < 50; n++) {
    const reply = await create(shards, made(n))
    if (reply.kind === 'done') continue
    isRefused(t, reply)
    return n
  }
  throw new Error('none is refused')
}

t.test('a subscription whose patterns cost too much with those that are there is refused', async t => {
  const shards = await opened()
  const refused = await fill(t, shards)
  t.ok(refused > 2, `${refused}`)
  isDone(t, await create(shards, made(100, '^Room.*')), 'what costs nothing is taken')
  isDone(t, await create(shards, made(101, costly(1))), 'a text that is there costs nothing more')
  isDone(t, await create(shards, made(102, costly(60), 'u')), 'another tenant has its own account')
  isRefused(t, await change(shards, 100, { subject: { entities: [{ idPattern: costly(70) }] } }))
  isDone(t, await change(shards, 1, { description: 'still there' }), 'what makes nothing worse is taken')
})

t.test('a removal, a switch-off and a cheaper pattern give back', async t => {
  const shards = await opened()
  const refused = await fill(t, shards)
  isDone(t, await remove(shards, 1))
  isDone(t, await create(shards, made(refused)))
  isRefused(t, await create(shards, made(refused + 1)))
  isDone(t, await change(shards, 2, { status: 'inactive' }))
  isDone(t, await create(shards, made(refused + 1)))
  isRefused(t, await change(shards, 2, { status: 'active' }))
  isDone(t, await change(shards, refused, { subject: { entities: [{ idPattern: '.*' }] } }))
  isDone(t, await change(shards, 2, { status: 'active' }))
})

t.test('stored subscriptions count, once they have been decoded', async t => {
  const store = new MemoryStore()
  const before = await opened(store)
  const refused = await fill(t, before)
  await before.drain()
  const clock = new FakeClock()
  const after = await opened(store, clock)
  await ask(after, { kind: 'listSubscriptions', tenant: 't', servicePath: undefined, offset: 0, limit: 100 })
  clock.advance(1_000)
  isRefused(t, await create(after, made(refused)))
})

t.test('stored subscriptions above the bound are kept, and may change to ones that cost no more', async t => {
  const shards = await opened()
  const accounts = new PatternAccounts(shards.parts.subscriptions, systemClock, 1_000)
  for (const n of [1, 2]) await create(shards, made(n))
  isRefused(t, { kind: 'refused', refusal: accounts.refusalFor(made(3))! })
  t.equal(accounts.refusalFor({ ...made(1), description: 'new' }), undefined)
  t.equal(accounts.refusalFor(made(1, '.*')), undefined)
})
