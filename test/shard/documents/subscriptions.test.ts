// Subscriptions of one owner: in memory, in its store, and at its followers.

import t from 'tap'
import { systemClock } from '../../../src/clock.js'
import { ShardMap } from '../../../src/domain/scope.js'
import { noProgress, type Subscription } from '../../../src/domain/subscriptions/subscription.js'
import { encodeSubscription } from '../../../src/domain/subscriptions/subscription-json.js'
import type { ShardReply, SubscriptionRequest } from '../../../src/messages/messages.js'
import type { Store } from '../../../src/ports.js'
import { allDocuments, documentKey, encodeDocumentRow } from '../../../src/shard/documents/document-layout.js'
import { Documents } from '../../../src/shard/documents/documents.js'
import { subscriptionForm } from '../../../src/shard/documents/forms.js'
import { type ShardParts, shardLimitsDefault } from '../../../src/shard/open-shards.js'
import type { LocalShards } from '../../../src/shard/shards.js'
import { rowsOf } from '../../storage/store-contract.js'
import { localShards } from '../../support/local-shards.js'
import { MemoryStore } from '../../support/memory-store.js'
import { subscription } from '../../support/subscriptions.js'

const shardMap = new ShardMap({ shards: 16, spread: 4 })
const body = '{"subject":{"entities":[{"id":"E"}]},"notification":{"http":{"url":"http://h"}}}'

const idOf = (n: number): string => n.toString(16).padStart(24, '0')
const made = (n: number, more: Partial<Subscription> = {}): Subscription => ({
  ...subscription(body),
  id: idOf(n),
  tenant: 't',
  description: `number ${n}`,
  ...more,
})

async function opened(store: Store = new MemoryStore(), parts: Partial<ShardParts> = {}): Promise<LocalShards> {
  const shards = await localShards(store, shardMap, systemClock, parts)
  return shards
}

const ask = (shards: LocalShards, request: SubscriptionRequest): Promise<ShardReply> =>
  new Promise(resolve => shards.ask(shardMap.register, request, resolve))
const create = (shards: LocalShards, n: number, more?: Partial<Subscription>) =>
  ask(shards, { kind: 'createSubscription', subscription: made(n, more) })
const remove = (shards: LocalShards, n: number) => ask(shards, { kind: 'removeSubscription', tenant: 't', id: idOf(n) })
const change = (shards: LocalShards, n: number, value: Record<string, string>) =>
  ask(shards, {
    kind: 'changeSubscription',
    tenant: 't',
    id: idOf(n),
    servicePath: '/b',
    payload: { value, duplicates: [], deep: false },
  })

async function listed(shards: LocalShards, more: { servicePath?: string; offset?: number; limit?: number } = {}) {
  const { servicePath, offset = 0, limit = 20 } = more
  const reply = await ask(shards, { kind: 'listSubscriptions', tenant: 't', servicePath, offset, limit })
  if (reply.kind !== 'subscriptions') throw new Error(reply.kind)
  return { ids: reply.subscriptions.map(one => Number.parseInt(one.subscription.id, 16)), total: reply.total }
}

t.test('acknowledged subscriptions are there after a start, unchanged', async t => {
  const store = new MemoryStore()
  const before = await opened(store)
  for (const n of [1, 2, 3]) t.strictSame(await create(before, n), { kind: 'done' })
  t.strictSame(await change(before, 2, { description: 'new' }), { kind: 'done' })
  t.strictSame(await remove(before, 3), { kind: 'done' })
  const after = await opened(store)
  const wanted = [made(1), made(2, { description: 'new', servicePath: '/b' })]
  t.strictSame([...after.parts.subscriptions.all()].map(encodeSubscription), wanted.map(encodeSubscription))
  t.strictSame([after.parts.subscriptions.size, before.parts.subscriptions.size], [2, 2])
})

t.test('a single owner keeps no row of a removed subscription', async t => {
  const store = new MemoryStore()
  const shards = await opened(store)
  await create(shards, 1)
  await remove(shards, 1)
  t.strictSame(await rowsOf(store, allDocuments('subscription')), [])
  t.equal(shards.parts.subscriptions.of('t'), undefined)
})

t.test('a list is in the order of ids, for any order of creation, and a page of it', async t => {
  const shards = await opened()
  for (const n of [5, 1, 4, 2, 3]) await create(shards, n)
  t.strictSame(await listed(shards), { ids: [1, 2, 3, 4, 5], total: 5 })
  t.strictSame(await listed(shards, { offset: 1, limit: 2 }), { ids: [2, 3], total: 5 })
  t.strictSame(await listed(shards, { offset: 9 }), { ids: [], total: 5 })
  t.strictSame(await listed(shards, { limit: 0 }), { ids: [], total: 5 })
})

t.test('a list by path has those that watch exactly this, and counts them', async t => {
  const shards = await opened()
  for (const [at, servicePath] of ['/a', '/a/#', '/#', '/a', '/a/b'].entries())
    await create(shards, at, { servicePath })
  t.strictSame(await listed(shards, { servicePath: '/a', limit: 1 }), { ids: [0], total: 2 })
  t.strictSame(await listed(shards, { servicePath: '/a/#' }), { ids: [1], total: 1 })
  t.strictSame(await listed(shards, { servicePath: '/#' }), { ids: [2], total: 1 })
  t.strictSame(await listed(shards, { servicePath: '/c' }), { ids: [], total: 0 })
})

t.test('tenants do not see each other', async t => {
  const shards = await opened()
  await create(shards, 1)
  await create(shards, 2, { tenant: 'u' })
  t.strictSame(await listed(shards), { ids: [1], total: 1 })
  const other = { kind: 'removeSubscription', tenant: 't', id: idOf(2) } as const
  t.match(await ask(shards, other), { kind: 'refused', refusal: { kind: 'NotFound' } })
})

t.test('a change sees the changes staged before it, and a refused one has no effect', async t => {
  const shards = await opened()
  const [first, second, third] = await Promise.all([create(shards, 1), remove(shards, 1), remove(shards, 1)])
  t.strictSame([first, second], [{ kind: 'done' }, { kind: 'done' }])
  t.match(third, { kind: 'refused', refusal: { kind: 'NotFound' } })
  await create(shards, 2)
  t.match(await change(shards, 2, { status: 'expired' }), { kind: 'refused', refusal: { kind: 'BadRequest' } })
  t.strictSame(shards.parts.subscriptions.of('t')?.get(idOf(2)), made(2))
})

t.test('there are no more subscriptions than the limit, of all tenants together', async t => {
  const shards = await opened(new MemoryStore(), { limits: { ...shardLimitsDefault, subscriptionsMax: 2 } })
  await create(shards, 1)
  await create(shards, 2, { tenant: 'u' })
  t.match(await create(shards, 3), {
    kind: 'refused',
    refusal: { code: 'subscriptionsTooMany', max: 2 },
  })
  await remove(shards, 1)
  t.strictSame(await create(shards, 3), { kind: 'done' })
})

t.test('a subscription that is too large to be sent to other owners is refused, also after a change', async t => {
  const shards = await opened()
  const large = 'x'.repeat(9_000_000)
  t.match(await create(shards, 1, { description: large }), {
    kind: 'refused',
    refusal: { kind: 'RequestEntityTooLarge' },
  })
  await create(shards, 1)
  const value = { notification: { httpCustom: { url: 'http://h', payload: large } } }
  const request = { kind: 'changeSubscription', tenant: 't', id: idOf(1), servicePath: '/#' } as const
  t.match(await ask(shards, { ...request, payload: { value, duplicates: [], deep: false } }), {
    refusal: { kind: 'RequestEntityTooLarge' },
  })
  t.strictSame(shards.parts.subscriptions.of('t')?.get(idOf(1)), made(1))
})

t.test('changes beyond those that may wait are refused with a hint to come again', async t => {
  const shards = await opened(new MemoryStore(), { limits: { ...shardLimitsDefault, mailboxLengthMax: 2 } })
  const replies = await Promise.all([1, 2, 3].map(n => create(shards, n)))
  t.strictSame(
    replies.map(({ kind }) => kind),
    ['done', 'done', 'busy'],
  )
  t.strictSame(await create(shards, 3), { kind: 'done' })
})

t.test('when the store fails, nothing is acknowledged, and staged changes are not shown', async t => {
  const store = new MemoryStore()
  const shards = await opened(store)
  store.breakDown(new Error('disk full'))
  const [created, seen] = await Promise.all([create(shards, 1), listed(shards).catch((error: Error) => error.message)])
  t.match(created, { kind: 'failed' })
  t.equal(seen, 'failed')
})

t.test('a follower gets all subscriptions, and all their changes', async t => {
  const store = new MemoryStore()
  await create(await opened(store), 1)
  const shards = await localShards(store, shardMap, systemClock)
  const log: string[] = []
  shards.parts.subscriptions.follow(tenant => {
    log.push(`has ${tenant}`)
    return {
      add: ({ id, description }) => log.push(`add ${Number.parseInt(id, 16)} ${description}`),
      remove: id => log.push(`remove ${Number.parseInt(id, 16)}`),
      recall: id => log.push(`recall ${Number.parseInt(id, 16)}`),
      read: ({ id, description }) => log.push(`read ${Number.parseInt(id, 16)} ${description}`),
    }
  })
  await create(shards, 2)
  await change(shards, 1, { description: 'new' })
  await remove(shards, 2)
  await remove(shards, 1)
  await remove(shards, 1)
  await create(shards, 3)
  t.strictSame(log, [
    'has t',
    'recall 1',
    'add 2 number 2',
    'read 1 number 1',
    'add 1 new',
    'remove 2',
    'remove 1',
    'has t',
    'add 3 number 3',
  ])
})

t.test('stored subscriptions are decoded once, at their first use', async t => {
  const store = new MemoryStore()
  const before = await opened(store)
  for (const n of [1, 2, 3]) await create(before, n)
  let decoded = 0
  const form: typeof subscriptionForm = {
    ...subscriptionForm,
    decoder() {
      const decode = subscriptionForm.decoder()
      return text => {
        decoded++
        return decode(text)
      }
    },
  }
  const documents = await Documents.read(form, store, before.parts.commit, shardMap)
  const known = documents.of('t')!
  t.strictSame([documents.size, known.size, known.has(idOf(2)), known.has(idOf(4)), decoded], [3, 3, true, false, 0])
  t.strictSame(known.progressOf(idOf(2)), noProgress)
  t.equal(known.get(idOf(2))?.description, 'number 2')
  t.equal(known.get(idOf(2)), known.get(idOf(2)))
  t.equal(decoded, 1)
  known.set(made(3, { description: 'new' }))
  known.delete(idOf(1))
  t.strictSame(
    [...documents.all()].map(({ description }) => description),
    ['number 2', 'new'],
  )
  t.equal(decoded, 1, 'what nobody asks for is not')
})

t.test('rows of an older release are decoded at start, which reports whether they can be', async t => {
  const store = new MemoryStore()
  const shards = await opened(store)
  const write = async (text: string) => {
    const batch = store.batch()
    const key = documentKey('subscription', { register: shardMap.register, tenant: 't', id: idOf(1) })
    batch.put(key, encodeDocumentRow(text))
    await new Promise<void>((resolve, reject) => store.commit(batch, error => (error ? reject(error) : resolve())))
  }
  const { condition, ...head } = made(1)
  await write(JSON.stringify({ version: 1, ...head, condition: { ...condition, expression: {} } }))
  const first = await Documents.read(subscriptionForm, store, shards.parts.commit, shardMap)
  const events: string[] = []
  first.follow(() => ({ add: ({ id }) => events.push(id), remove: () => {} }))
  t.strictSame(events, [idOf(1)])
  await write(encodeSubscription(made(1)).replace('"version":2', '"version":3'))
  const later = Documents.read(subscriptionForm, store, shards.parts.commit, shardMap)
  await t.rejects(later, /version 3, and this release reads version 2/)
})

t.test('progress is kept beside a subscription: a change leaves it, a removal takes it away', async t => {
  const shards = await opened()
  const progress = { ...noProgress, timesSent: 3 }
  const progressOf = async () => ask(shards, { kind: 'progress', tenant: 't', ids: [idOf(1), idOf(9)] })
  await create(shards, 1)
  shards.parts.subscriptions.of('t')?.note(idOf(1), progress)
  await change(shards, 1, { description: 'new' })
  t.strictSame(await progressOf(), { kind: 'progress', parts: [progress, noProgress] })
  t.match(await ask(shards, { kind: 'findSubscription', tenant: 't', id: idOf(1) }), { subscriptions: [{ progress }] })
  await remove(shards, 1)
  t.strictSame(await progressOf(), { kind: 'progress', parts: [noProgress, noProgress] })
})
