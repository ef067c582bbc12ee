// Registrations at their owners: kept, listed, changed, limited, and sent to other owners together with subscriptions.
//
// The tests of subscriptions cover the rules of both kinds (subscriptions.test, register.test).

import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import t from 'tap'
import { systemClock } from '../../../src/clock.js'
import { encodeRegistration } from '../../../src/domain/providers/registration.js'
import { ShardMap } from '../../../src/domain/scope.js'
import type { FollowRequest, RegistrationRequest, ShardReply, ShardRequest } from '../../../src/messages/messages.js'
import type { Store } from '../../../src/ports.js'
import { allDocuments, documentKey, encodeDocumentRow } from '../../../src/shard/documents/document-layout.js'
import { type ShardParts, shardLimitsDefault } from '../../../src/shard/open-shards.js'
import { positionKey } from '../../../src/shard/replicate/replicated-layout.js'
import { OperationWriter } from '../../../src/shard/replicate/row-operations.js'
import type { LocalShards } from '../../../src/shard/shards.js'
import { commit, rowsOf } from '../../storage/store-contract.js'
import { FakeClock } from '../../support/fake-clock.js'
import { localShards } from '../../support/local-shards.js'
import { ManyShards } from '../../support/many-shards.js'
import { MemoryStore } from '../../support/memory-store.js'
import { provided } from '../../support/registrations.js'
import { subscription } from '../../support/subscriptions.js'

const shardMap = new ShardMap({ shards: 16, spread: 4 })
const idOf = (n: number): string => n.toString(16).padStart(24, '0')
const made = (n: number, more: Parameters<typeof provided>[4] = {}) =>
  provided(n, [{ id: `E${n}` }], [], 'http://h', { tenant: 't', description: `number ${n}`, ...more })

async function opened(store: Store = new MemoryStore(), parts: Partial<ShardParts> = {}): Promise<LocalShards> {
  const shards = await localShards(store, shardMap, systemClock, parts)
  return shards
}

const ask = (shards: LocalShards, request: RegistrationRequest): Promise<ShardReply> =>
  new Promise(resolve => shards.ask(shardMap.register, request, resolve))
const create = (shards: LocalShards, n: number, more?: Parameters<typeof provided>[4]) =>
  ask(shards, { kind: 'createRegistration', registration: made(n, more) })
const remove = (shards: LocalShards, n: number) => ask(shards, { kind: 'removeRegistration', tenant: 't', id: idOf(n) })
const change = (shards: LocalShards, n: number, value: Record<string, string>) =>
  ask(shards, { kind: 'changeRegistration', tenant: 't', id: idOf(n), payload: { value, duplicates: [], deep: false } })

async function listed(shards: LocalShards, more: { servicePath?: string; offset?: number; limit?: number } = {}) {
  const { servicePath, offset = 0, limit = 20 } = more
  const reply = await ask(shards, { kind: 'listRegistrations', tenant: 't', servicePath, offset, limit })
  if (reply.kind !== 'registrations') throw new Error(reply.kind)
  return { ids: reply.registrations.map(one => Number.parseInt(one.id, 16)), total: reply.total }
}

t.test('acknowledged registrations are there after a start, unchanged, expired ones too', async t => {
  const store = new MemoryStore()
  const before = await opened(store)
  for (const n of [1, 2, 3]) t.strictSame(await create(before, n, { expiresMs: 5 }), { kind: 'done' })
  t.strictSame(await change(before, 2, { description: 'new' }), { kind: 'done' })
  t.strictSame(await remove(before, 3), { kind: 'done' })
  const after = await opened(store)
  const wanted = [made(1, { expiresMs: 5 }), made(2, { expiresMs: 5, description: 'new' })]
  t.strictSame([...after.parts.registrations.all()], wanted)
  t.match(await ask(after, { kind: 'findRegistration', tenant: 't', id: idOf(2) }), {
    kind: 'registrations',
    registrations: [wanted[1]!],
    total: 1,
  })
  t.equal((await rowsOf(store, allDocuments('registration'))).length, 2)
  t.strictSame(await rowsOf(store, allDocuments('subscription')), [])
})

t.test('a list is in the order of creation, in pages, of one path or of all', async t => {
  const shards = await opened()
  for (const n of [5, 1, 4, 2, 3]) await create(shards, n, { servicePath: n % 2 ? '/a' : '/' })
  t.strictSame(await listed(shards), { ids: [1, 2, 3, 4, 5], total: 5 })
  t.strictSame(await listed(shards, { offset: 1, limit: 2 }), { ids: [2, 3], total: 5 })
  t.strictSame(await listed(shards, { offset: 9 }), { ids: [], total: 5 })
  t.strictSame(await listed(shards, { servicePath: '/a', limit: 1 }), { ids: [1], total: 3 })
  t.strictSame(await listed(shards, { servicePath: '/#' }), { ids: [], total: 0 })
})

t.test('a refused change has no effect', async t => {
  const shards = await opened(new MemoryStore(), { limits: { ...shardLimitsDefault, registrationsMax: 2 } })
  await create(shards, 1)
  t.match(await change(shards, 1, { status: 'expired' }), { refusal: { code: 'registrationStatus' } })
  t.match(await create(shards, 2, { description: 'x'.repeat(9_000_000) }), {
    refusal: { code: 'registrationTooLarge', bytesMax: 8388608 },
  })
  for (const reply of [await remove(shards, 2), await change(shards, 2, { description: 'x' })])
    t.match(reply, { refusal: { code: 'registrationNotFound' } })
  await create(shards, 2)
  t.match(await create(shards, 3), {
    refusal: { code: 'registrationsTooMany', max: 2 },
  })
  t.strictSame([...shards.parts.registrations.all()], [made(1), made(2)])
})

t.test('creations at the same time all survive', async t => {
  const shards = await opened()
  const all = Array.from({ length: 200 }, (_, n) => n + 1)
  for (const reply of await Promise.all(all.map(n => create(shards, n)))) t.match(reply, { kind: 'done' })
  t.strictSame((await listed(shards, { limit: 1000 })).ids, all)
})

// Several owners

const owners = 3
const tenant = 'u'

async function threeOwners() {
  const clock = new FakeClock()
  const shards = await ManyShards.of(owners, shardMap, clock)
  const settled = async <T>(promise: Promise<T>): Promise<T> => {
    let isSettled = false
    const end = (): void => {
      isSettled = true
    }
    promise.then(end, end)
    while (!isSettled) {
      clock.tick()
      await turnOfTheLoop()
      clock.advance(1)
    }
    return promise
  }
  await settled(shards.open())
  const asked = (request: ShardRequest): Promise<ShardReply> =>
    settled(new Promise(resolve => shards.ask(shardMap.register, request, resolve)))
  const known = () =>
    Array.from({ length: owners }, (_, owner) => {
      const { registrations, subscriptions } = shards.one(owner).parts
      return [registrations.size, subscriptions.size]
    })
  return { shards, settled, asked, known }
}

const one = (n: number): ShardRequest => ({ kind: 'createRegistration', registration: made(n, { tenant }) })
const other = (n: number): ShardRequest => ({
  kind: 'createSubscription',
  subscription: {
    ...subscription('{"subject":{"entities":[{"id":"E"}]},"notification":{"http":{"url":"http://h"}}}'),
    id: idOf(n),
    tenant,
  },
})

t.test(
  'all owners have a registration when it is acknowledged, and one with the id of a subscription is another',
  async t => {
    const { asked, known } = await threeOwners()
    for (const request of [one(1), other(1), one(2), other(3)]) t.strictSame(await asked(request), { kind: 'done' })
    t.strictSame(known(), Array(owners).fill([2, 2]))
    t.strictSame(await asked({ kind: 'removeRegistration', tenant, id: idOf(1) }), { kind: 'done' })
    t.strictSame(known(), Array(owners).fill([1, 2]))
  },
)

t.test('while an owner is away no registration is made', async t => {
  const { shards, asked, known } = await threeOwners()
  shards.set(2, 'unreachable')
  t.match(await asked(one(1)), { kind: 'unreachable' })
  t.strictSame(known(), Array(owners).fill([0, 0]))
})

t.test('an owner that begins anew, or has lost everything, learns both kinds', async t => {
  const { shards, settled, asked, known } = await threeOwners()
  for (const n of [1, 2, 3]) for (const request of [one(n), other(n)]) await asked(request)
  await asked({ kind: 'removeRegistration', tenant, id: idOf(3) })
  await settled(shards.restart(2))
  t.strictSame(known(), Array(owners).fill([2, 3]))
  await settled(shards.restart(2, empty))
  t.strictSame(known(), Array(owners).fill([2, 3]))
})

async function empty(store: MemoryStore): Promise<void> {
  const rows = [
    { key: positionKey(shardMap.register) },
    ...(await rowsOf(store, allDocuments('registration'))),
    ...(await rowsOf(store, allDocuments('subscription'))),
  ]
  await commit(store, batch => {
    for (const { key } of rows) batch.del(key)
  })
}

t.test('a copy acknowledges a registration when it has it durably', async t => {
  const store = new MemoryStore()
  const shards = await opened(store, { share: { kind: 'worker', worker: 1, workers: owners } })
  const key = documentKey('registration', { register: shardMap.register, tenant, id: idOf(1) })
  const writer = new OperationWriter()
  writer.put(key, encodeDocumentRow(encodeRegistration(made(1, { tenant }))))
  const page = {
    epoch: 7,
    before: undefined,
    form: 'page',
    after: 10,
    upTo: 10,
    rows: writer.end(0),
    isFirst: true,
  } as const
  const reply = await new Promise(resolve =>
    shards.ask(0, { kind: 'follow', ...page }, outcome =>
      resolve({ reply: outcome, row: store.get(key) !== undefined }),
    ),
  )
  t.strictSame(reply, { reply: { kind: 'followed', position: { epoch: 7, sequence: 10 } }, row: true })
  t.equal(shards.parts.registrations.size, 1)
})

// A copy at number 10 of epoch 7, which has one registration.
async function aCopy() {
  const shards = await opened(new MemoryStore(), { share: { kind: 'worker', worker: 1, workers: owners } })
  const key = documentKey('registration', { register: shardMap.register, tenant, id: idOf(1) })
  const now = new OperationWriter()
  now.put(key, encodeDocumentRow(encodeRegistration(made(1, { tenant }))))
  const removed = new OperationWriter()
  removed.del(key)
  type FollowPart = Pick<FollowRequest, 'form' | 'after' | 'upTo'> & Partial<FollowRequest>
  const follow = (rows: Buffer, part: FollowPart) =>
    new Promise(resolve => shards.ask(0, { kind: 'follow', epoch: 7, before: undefined, rows, ...part }, resolve))
  await follow(now.end(0), { form: 'page', after: 10, upTo: 10, isFirst: true })
  return { shards, removal: removed.end(0), follow }
}

const atTen = { kind: 'followed', position: { epoch: 7, sequence: 10 } }

t.test('a copy that gets older changes again does not go back to them', async t => {
  const { shards, removal, follow } = await aCopy()
  t.strictSame(await follow(removal, { form: 'changes', after: 5, upTo: 8 }), atTen)
  t.equal(shards.parts.registrations.size, 1)
})

t.test('a copy that has more than its keeper ever had accepts no changes, and reports its position', async t => {
  const { shards, removal, follow } = await aCopy()
  const before = { epoch: 7, sequence: 8 }
  t.strictSame(await follow(removal, { form: 'changes', epoch: 9, before, after: 10, upTo: 11 }), atTen)
  t.equal(shards.parts.registrations.size, 1)
})

t.test('a copy follows a keeper that has begun anew behind all that it had', async t => {
  const { shards, removal, follow } = await aCopy()
  const before = { epoch: 7, sequence: 10 }
  const position = { epoch: 9, sequence: 11 }
  const reply = await follow(removal, { form: 'changes', epoch: 9, before, after: 10, upTo: 11 })
  t.strictSame(reply, { kind: 'followed', position })
  t.equal(shards.parts.registrations.size, 0)
})

t.test('a keeper that has lost everything has the others forget both kinds', async t => {
  const { shards, settled, asked, known } = await threeOwners()
  for (const request of [one(1), other(1)]) await asked(request)
  await settled(
    shards.restart(0, async store => {
      const rows = await rowsOf(store, { gte: Buffer.from([0]), lt: Buffer.from([0xff]) })
      await commit(store, batch => {
        for (const { key } of rows) batch.del(key)
      })
    }),
  )
  t.strictSame(known(), Array(owners).fill([0, 0]))
})
