// Several owners have the same subscriptions, through every failure of any of them. All owners have an acknowledged
// change. Of a change without acknowledgement, all have it soon, or none.

import assert from 'node:assert/strict'
import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { ShardMap } from '../../../src/domain/scope.js'
import { encodeSubscription } from '../../../src/domain/subscriptions/subscription-json.js'
import type { ShardReply, SubscriptionRequest, SubscriptionWrite } from '../../../src/messages/messages.js'
import { allDocuments } from '../../../src/shard/documents/document-layout.js'
import { stampKey } from '../../../src/shard/layout.js'
import { positionKey } from '../../../src/shard/replicate/replicated-layout.js'
import { commit, rowsOf } from '../../storage/store-contract.js'
import { FakeClock } from '../../support/fake-clock.js'
import { ManyShards } from '../../support/many-shards.js'
import type { MemoryStore } from '../../support/memory-store.js'
import { Random } from '../../support/random.js'
import { subscription } from '../../support/subscriptions.js'

const shardMap = new ShardMap({ shards: 16, spread: 4 })
const owners = 3
const plain = subscription('{"subject":{"entities":[{"id":"E"}]},"notification":{"http":{"url":"http://h"}}}')

const tenants = ['', 'a', 'b'] as const

type SubscriptionRead = Extract<SubscriptionRequest, { readonly kind: 'findSubscription' }>

const patienceTurns = 100

const idOf = (n: number): string => n.toString(16).padStart(24, '0')
const create = (tenant: string, n: number, description = 'old'): SubscriptionWrite => ({
  kind: 'createSubscription',
  subscription: { ...plain, id: idOf(n), tenant, description },
})
const change = (tenant: string, n: number, description: string): SubscriptionWrite => ({
  kind: 'changeSubscription',
  tenant,
  id: idOf(n),
  servicePath: '/#',
  payload: { value: { description }, duplicates: [], deep: false },
})
const find = (tenant: string, n: number): SubscriptionRead => ({ kind: 'findSubscription', tenant, id: idOf(n) })
const idIn = (request: SubscriptionWrite | SubscriptionRead): string =>
  request.kind === 'createSubscription' ? request.subscription.id : request.id
const remove = (tenant: string, n: number): SubscriptionWrite => ({ kind: 'removeSubscription', tenant, id: idOf(n) })

class Setting {
  readonly clock: FakeClock
  readonly shards: ManyShards

  private constructor(clock: FakeClock, shards: ManyShards) {
    this.clock = clock
    this.shards = shards
  }

  static async of(): Promise<Setting> {
    const clock = new FakeClock()
    return new Setting(clock, await ManyShards.of(owners, shardMap, clock))
  }

  /** Runs everything until a promise is settled. */
  async settled<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false
    const end = (): void => {
      isSettled = true
    }
    promise.then(end, end)
    for (let turns = 1; !isSettled; turns++) {
      await this.turn()
      // Work that still waits by then waits for time to pass.
      if (turns % patienceTurns === 0) this.clock.advance(500)
    }
    return promise
  }

  async turn(): Promise<void> {
    this.clock.tick()
    await turnOfTheLoop()
  }

  /** Runs everything that does not wait for time. */
  async rest(): Promise<void> {
    for (let turns = 0; turns < 50; turns++) await this.turn()
  }

  asked(request: SubscriptionWrite | SubscriptionRead): Promise<ShardReply> {
    return new Promise(resolve => this.shards.ask(shardMap.register, request, resolve))
  }

  ask(request: SubscriptionWrite | SubscriptionRead): Promise<ShardReply> {
    return this.settled(this.asked(request))
  }

  /** The subscriptions in an owner's memory, as texts by tenant and id. */
  knownTo(owner: number): ReadonlyMap<string, string> {
    const all = [...this.shards.one(owner).parts.subscriptions.all()]
    return new Map(all.map(one => [`${one.tenant}/${one.id}`, encodeSubscription(one)]).sort() as [string, string][])
  }

  descriptions(tenant: string, n: number): (string | undefined)[] {
    return Array.from(
      { length: owners },
      (_, owner) => this.shards.one(owner).parts.subscriptions.of(tenant)?.get(idOf(n))?.description,
    )
  }
}

async function opened(): Promise<Setting> {
  const setting = await Setting.of()
  await setting.settled(setting.shards.open())
  return setting
}

const tenantA = 'a'

t.test('a change is acknowledged when all owners have it', async t => {
  const setting = await opened()
  for (const tenant of tenants) {
    t.strictSame(await setting.ask(create(tenant, 1)), { kind: 'done' })
    t.strictSame(setting.descriptions(tenant, 1), ['old', 'old', 'old'])
    t.strictSame(await setting.ask(change(tenant, 1, 'new')), { kind: 'done' })
    t.strictSame(setting.descriptions(tenant, 1), ['new', 'new', 'new'])
    t.strictSame(await setting.ask(remove(tenant, 1)), { kind: 'done' })
    t.strictSame(setting.descriptions(tenant, 1), [undefined, undefined, undefined])
  }
})

t.test('while an owner is known to be away nothing is changed, and the caller gets that refusal', async t => {
  const setting = await opened()
  await setting.ask(create(tenantA, 1))
  setting.shards.set(2, 'unreachable')
  for (const request of [create(tenantA, 2), change(tenantA, 1, 'new'), remove(tenantA, 1)])
    t.match(await setting.ask(request), { kind: 'unreachable' })
  t.strictSame(setting.descriptions(tenantA, 1), ['old', 'old', 'old'])
  t.strictSame(setting.descriptions(tenantA, 2), [undefined, undefined, undefined])
  setting.shards.set(2, 'well')
  t.strictSame(await setting.ask(change(tenantA, 1, 'new')), { kind: 'done' })
})

t.test('a change without all confirmations is not acknowledged, and is sent again automatically', async t => {
  const setting = await opened()
  setting.shards.set(2, 'lost')
  t.match(await setting.ask(create(tenantA, 1)), { kind: 'lost' })
  t.match(await setting.ask(create(tenantA, 2)), { kind: 'unreachable' }, 'and the next one is not even begun')
  setting.shards.set(2, 'unreachable')
  setting.clock.advance(1000)
  await setting.rest()
  setting.shards.set(2, 'well')
  await setting.rest()
  t.strictSame(setting.descriptions(tenantA, 1), ['old', 'old', 'old'])
  t.strictSame(await setting.ask(remove(tenantA, 1)), { kind: 'done' })
})

t.test('a change waits for the slowest', async t => {
  const setting = await opened()
  setting.shards.set(2, 'slow')
  const asked = setting.asked(create(tenantA, 1))
  await setting.rest()
  t.strictSame(setting.descriptions(tenantA, 1), ['old', 'old', undefined])
  setting.shards.hold()()
  t.strictSame(await setting.settled(asked), { kind: 'done' })
  t.strictSame(setting.descriptions(tenantA, 1), ['old', 'old', 'old'])
})

t.test('a reader sees a change when all owners have it', async t => {
  const setting = await opened()
  await setting.ask(create(tenantA, 1))
  setting.shards.set(2, 'slow')
  const replies: string[] = []
  const asked = [create(tenantA, 2), find(tenantA, 2), find(tenantA, 1)].map(async request => {
    const reply = await setting.asked(request)
    replies.push(reply.kind === 'subscriptions' ? `${idIn(request)} is found ${reply.total} times` : reply.kind)
  })
  await setting.rest()
  t.strictSame(replies, [`${idOf(1)} is found 1 times`], 'a document without a change does not wait')
  t.strictSame(setting.descriptions(tenantA, 2), ['old', 'old', undefined])
  setting.shards.hold()()
  await setting.settled(Promise.all(asked))
  t.strictSame(replies.slice(1), ['done', `${idOf(2)} is found 1 times`])
})

t.test('a reader gets no change that an owner may lack, and gets it once that one is back', async t => {
  const setting = await opened()
  setting.shards.set(2, 'lost')
  t.match(await setting.ask(create(tenantA, 1)), { kind: 'lost' })
  setting.shards.set(2, 'unreachable')
  t.match(await setting.ask(find(tenantA, 1)), { kind: 'unreachable' })
  t.match(await setting.ask(find(tenantA, 2)), { kind: 'subscriptions', total: 0 })
  setting.shards.recover(2)
  setting.clock.advance(1000)
  await setting.rest()
  t.match(await setting.ask(find(tenantA, 1)), { kind: 'subscriptions', total: 1 })
})

t.test('an owner that did not answer gets a change again after a while, without a report that it is back', async t => {
  const setting = await opened()
  setting.shards.set(2, 'lost')
  await setting.ask(create(tenantA, 1))
  setting.shards.recover(2)
  setting.clock.advance(1000)
  await setting.rest()
  t.strictSame(await setting.ask(change(tenantA, 1, 'new')), { kind: 'done' })
})

t.test('an owner that begins anew gets the changes that it missed, removals included', async t => {
  const setting = await opened()
  for (const n of [1, 2, 3]) await setting.ask(create(tenantA, n))
  setting.shards.set(2, 'slow')
  const missed = [change(tenantA, 1, 'new'), remove(tenantA, 3)].map(request => setting.asked(request))
  await setting.rest()
  t.strictSame(setting.descriptions(tenantA, 1), ['new', 'new', 'old'])
  await setting.settled(setting.shards.restart(2))
  t.strictSame(setting.descriptions(tenantA, 1), ['new', 'new', 'new'])
  t.strictSame(setting.descriptions(tenantA, 3), [undefined, undefined, undefined])
  for (const reply of await setting.settled(Promise.all(missed))) t.match(reply, { kind: 'lost' })
})

t.test('a keeper that ends before it has sent a removal sends it when it is back', async t => {
  const setting = await opened()
  for (const n of [1, 2]) await setting.ask(create(tenantA, n))
  for (const owner of [1, 2]) setting.shards.set(owner, 'slow')
  setting.asked(remove(tenantA, 2))
  await setting.rest()
  t.strictSame(setting.descriptions(tenantA, 2), [undefined, 'old', 'old'])
  setting.shards.hold()
  await setting.settled(setting.shards.restart(0))
  await setting.rest()
  t.strictSame(setting.descriptions(tenantA, 2), [undefined, undefined, undefined])
  for (const owner of [0, 1, 2])
    t.equal((await setting.settled(rowsIn(setting, owner))).length, 1, 'and no row is left of it')
  t.strictSame(await setting.ask(create(tenantA, 2)), { kind: 'done' })
})

t.test('a copy that missed a removal gets it from a keeper that has begun anew since', async t => {
  const setting = await opened()
  await setting.ask(create(tenantA, 1))
  setting.shards.set(2, 'slow')
  setting.asked(remove(tenantA, 1))
  await setting.rest()
  t.strictSame(setting.descriptions(tenantA, 1), [undefined, undefined, 'old'])
  for (let starts = 0; starts < 2; starts++) await setting.settled(setting.shards.restart(0))
  await setting.settled(setting.shards.restart(2))
  await setting.rest()
  t.strictSame(setting.descriptions(tenantA, 1), [undefined, undefined, undefined])
})

t.test('a keeper that has lost its last moments has the others forget them', async t => {
  const setting = await opened()
  await setting.ask(create(tenantA, 1))
  const before = await copyOf(storeOf(setting, 0))
  setting.clock.advance(5)
  await setting.ask(create(tenantA, 2))
  t.strictSame(setting.descriptions(tenantA, 2), ['old', 'old', 'old'])
  await setting.settled(setting.shards.restart(0, store => restore(store, before)))
  await setting.rest()
  t.strictSame(setting.descriptions(tenantA, 2), [undefined, undefined, undefined])
  t.strictSame(setting.descriptions(tenantA, 1), ['old', 'old', 'old'])
  t.strictSame(await setting.ask(create(tenantA, 3)), { kind: 'done' })
})

t.test('a start with much to learn takes it in several pieces', async t => {
  const setting = await opened()
  const large = 'x'.repeat(1000)
  await setting.settled(Promise.all(Array.from({ length: 3000 }, (_, n) => setting.asked(create(tenantA, n, large)))))
  await setting.settled(setting.shards.restart(2, store => restore(store, [])))
  await setting.rest()
  t.equal(setting.knownTo(2).size, 3000)
  t.strictSame([...setting.knownTo(2)], [...setting.knownTo(0)])
})

t.test('all owners have every acknowledged change, and in the end all have the same', async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  for (let round = 0; round < 30; round++) await wild(t, random)
})

/** Changes while owners come and go; each reply is checked when it comes. */
async function wild(t: Test, random: Random): Promise<void> {
  const setting = await opened()
  /** The last acknowledged state of each, and the states that may have replaced it. */
  const states = new Map<string, { sure: string | undefined; perhaps: (string | undefined)[] }>()
  const busy = new Set<string>()
  const seen = { done: 0, others: 0 }
  let restarting: number | undefined
  const pending: Promise<void>[] = []
  const step = (count: number): void => {
    const tenant = random.pick(tenants)
    const n = random.between(1, 6)
    const key = `${tenant}/${n}`
    if (busy.has(key)) return
    busy.add(key)
    const state = states.get(key) ?? { sure: undefined, perhaps: [] }
    states.set(key, state)
    const text = String(count)
    const { request, after } = random.pick<{ request: SubscriptionWrite; after: string | undefined }>([
      { request: create(tenant, n, text), after: text },
      { request: change(tenant, n, text), after: text },
      { request: remove(tenant, n), after: undefined },
    ])
    pending.push(
      setting.asked(request).then(reply => {
        busy.delete(key)
        if (reply.kind !== 'done') seen.others++
        if (reply.kind === 'lost') state.perhaps.push(after)
        if (reply.kind !== 'done') return
        seen.done++
        state.sure = after
        state.perhaps = []
        // An owner that has just been killed may not have read its rows yet.
        const known = setting.descriptions(tenant, n).filter((_, owner) => owner !== restarting)
        assert.ok(
          known.every(one => one === after),
          `acknowledged: ${after}, known: ${known}, SEED=${random.seed}`,
        )
      }),
    )
  }
  for (let count = 0; count < 150; count++) {
    const owner = random.between(0, owners - 1)
    const draw = random.fraction()
    if (draw < 0.03) {
      restarting = owner
      await setting.settled(setting.shards.restart(owner))
      restarting = undefined
    } else if (draw < 0.1) setting.shards.set(owner, random.pick(['unreachable', 'lost', 'slow']))
    else if (draw < 0.25) {
      setting.shards.hold()()
      for (let one = 0; one < owners; one++) setting.shards.set(one, 'well')
    } else step(count)
    for (let turns = random.between(0, 3); turns > 0; turns--) await setting.turn()
  }
  setting.shards.hold()()
  for (let owner = 0; owner < owners; owner++) setting.shards.set(owner, 'well')
  await setting.settled(Promise.all(pending))
  setting.clock.advance(2000)
  await setting.rest()
  for (const owner of [1, 2])
    if (JSON.stringify([...setting.knownTo(owner)]) !== JSON.stringify([...setting.knownTo(0)]))
      return void t.strictSame([...setting.knownTo(owner)], [...setting.knownTo(0)], `SEED=${random.seed}`)
  for (const [key, { sure, perhaps }] of states) {
    const [tenant, n] = key.split('/') as [string, string]
    const [now] = setting.descriptions(tenant, Number(n))
    if (![sure, ...perhaps].includes(now)) t.fail(`${key} is ${now}, not ${sure} nor ${perhaps}, SEED=${random.seed}`)
  }
  t.ok(seen.done > 0, `${seen.done} acknowledged, ${seen.others} not`)
  for (let owner = 0; owner < owners; owner++) {
    const rows = await setting.settled(rowsIn(setting, owner))
    t.equal(rows.length, setting.knownTo(0).size, `no row is left of what was removed, SEED=${random.seed}`)
  }
}

const storeOf = (setting: Setting, owner: number): MemoryStore => setting.shards.storeOf(owner)

async function rowsIn(setting: Setting, owner: number) {
  await setting.shards.one(owner).drain()
  return rowsOf(storeOf(setting, owner), allDocuments('subscription'))
}

/** Subscriptions, stamp and position of a store. */
async function copyOf(store: MemoryStore) {
  const notes = [stampKey(), positionKey(shardMap.register)].flatMap(key => {
    const value = store.get(key)
    return value ? [{ key, value }] : []
  })
  return [...(await rowsOf(store, allDocuments('subscription'))), ...notes]
}

async function restore(store: MemoryStore, rows: Awaited<ReturnType<typeof copyOf>>): Promise<void> {
  const now = await copyOf(store)
  await commit(store, batch => {
    for (const { key } of now) batch.del(key)
    for (const { key, value } of rows) batch.put(key, value)
  })
}
