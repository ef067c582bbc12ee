// The caller of shards: what comes back becomes a result, and the answers of several owners become one.

import t from 'tap'
import type { ReadTarget } from '../../src/broker/entities.js'
import { type Listed, ShardClient } from '../../src/broker/shard-client.js'
import type { Entity } from '../../src/domain/entity.js'
import { type Result, refusals } from '../../src/domain/refusal.js'
import { ShardMap } from '../../src/domain/scope.js'
import { encodeImage, imageCreated } from '../../src/image.js'
import type {
  FindRequest,
  Found,
  ListRequest,
  ShardReply,
  ShardRequest,
  Shards,
  WriteRequest,
} from '../../src/messages.js'
import { meaning } from '../support/selections.js'

/** Shards that keep what they are asked until the test answers. */
class FakeShards implements Shards {
  readonly asked: {
    readonly shard: number
    readonly request: ShardRequest
    readonly reply: (reply: ShardReply) => void
  }[] = []
  private readonly all: readonly number[]

  constructor(...owners: number[]) {
    this.all = owners
  }

  ask(shard: number, request: ShardRequest, onReply: (reply: ShardReply) => void): void {
    this.asked.push({ shard, request, reply: onReply })
  }

  owners(): readonly number[] {
    return this.all
  }

  /** A shard belongs to the owner that stands at its remainder. */
  ownerOf(shard: number): number {
    return shard % this.all.length
  }
}

const shardMap = new ShardMap({ shards: 256, spread: 16 })
const place: ReadTarget = { tenant: 't', paths: ['/a'], id: 'E', type: undefined }
const write: WriteRequest = {
  kind: 'deleteEntity',
  target: { tenant: 't', path: '/a', id: 'E', type: undefined },
  origin: { correlatorRoot: '' },
}
const list: ListRequest = {
  kind: 'list',
  tenant: 't',
  paths: ['/#'],
  selection: meaning(),
  order: [],
  offset: 0,
  limit: 20,
}
const find: FindRequest = { ...place, kind: 'find' }

/** What a client with these owners has answered, as a list that grows. */
function setting(...owners: number[]) {
  const shards = new FakeShards(...owners)
  return { shards, client: new ShardClient(shards, shardMap), results: [] as Result<unknown>[] }
}

/** An entity whose place in the order of creation is `created`. */
function found(created: number): Found {
  const entity: Entity = { id: `E${created}`, type: 'T', attributes: new Map(), created, modifiedMs: 1 }
  return { path: '/', image: encodeImage(entity, '') }
}

const listed = (total: number, ...created: number[]): ShardReply => ({
  kind: 'listed',
  entities: created.map(found),
  total,
})

const order = (result: Result<unknown> | undefined): number[] =>
  result?.ok ? (result.value as Listed).entities.map(({ image }) => imageCreated(image)) : []

t.test('a write asks the shard of its target', async t => {
  const { shards, client } = setting(0)
  client.write(write, () => {})
  t.strictSame(
    shards.asked.map(({ shard, request }) => [shard, request]),
    [[shardMap.shardOf('t', '/a', 'E'), write]],
  )
})

t.test('a write that is done is a success', async t => {
  const { shards, client, results } = setting(0)
  client.write(write, result => results.push(result))
  t.strictSame(results, [])
  shards.asked[0]!.reply({ kind: 'done' })
  t.strictSame(results, [{ ok: true, value: undefined }])
})

t.test('a refusal stays what it is', async t => {
  const { shards, client, results } = setting(0)
  client.write(write, result => results.push(result))
  shards.asked[0]!.reply({ kind: 'refused', refusal: refusals.entityNotFound })
  t.strictSame(results, [{ ok: false, refusal: refusals.entityNotFound }])
})

t.test('busy becomes Unavailable', async t => {
  const { shards, client, results } = setting(0)
  client.write(write, result => results.push(result))
  shards.asked[0]!.reply({ kind: 'busy' })
  t.match(results, [{ ok: false, refusal: { kind: 'Unavailable' } }])
})

t.test('a failure becomes InternalServerError with its reason', async t => {
  const { shards, client, results } = setting(0)
  client.write(write, result => results.push(result))
  shards.asked[0]!.reply({ kind: 'failed', reason: 'disk full' })
  t.strictSame(results, [{ ok: false, refusal: { kind: 'InternalServerError', description: 'disk full' } }])
})

t.test('a reply that does not fit its request is a bug', async t => {
  const { shards, client } = setting(0)
  client.write(write, () => {})
  t.throws(() => shards.asked[0]!.reply(listed(0)), /does not fit/)
})

t.test('an id under one path is asked of its shard alone', async t => {
  const { shards, client } = setting(3, 7)
  client.find(find, () => {})
  t.strictSame(
    shards.asked.map(({ shard }) => shard),
    [shardMap.shardOf('t', '/a', 'E')],
  )
})

for (const paths of [['/a/#'], ['/a', '/b']]) {
  t.test(`an id under ${paths.join(' and ')} is asked of every owner`, async t => {
    const { shards, client } = setting(3, 7)
    client.find({ ...find, paths }, () => {})
    t.strictSame(
      shards.asked.map(({ shard }) => shard),
      [3, 7],
    )
  })
}

t.test('what several owners found is put together', async t => {
  const { shards, client, results } = setting(3, 7)
  client.find({ ...find, paths: ['/#'] }, result => results.push(result))
  const [first, second] = [found(1), found(2)]
  shards.asked[1]!.reply({ kind: 'found', entities: [second] })
  t.strictSame(results, [], 'one is missing')
  shards.asked[0]!.reply({ kind: 'found', entities: [first] })
  t.strictSame(results, [{ ok: true, value: [first, second] }])
})

t.test('a list of one owner is passed on as it is', async t => {
  const { shards, client, results } = setting(3)
  const page = { ...list, offset: 5, limit: 2 }
  client.list(page, result => results.push(result))
  t.strictSame(shards.asked[0]!.request, page)
  shards.asked[0]!.reply(listed(9, 6, 7))
  t.match(results, [{ ok: true, value: { total: 9 } }])
  t.strictSame(order(results[0]), [6, 7])
})

t.test('a page of several owners is cut from what each gives from the beginning on', async t => {
  const { shards, client, results } = setting(3, 7)
  client.list({ ...list, offset: 2, limit: 3 }, result => results.push(result))
  t.match(
    shards.asked.map(({ request }) => request),
    [
      { offset: 0, limit: 5 },
      { offset: 0, limit: 5 },
    ],
  )
  shards.asked[0]!.reply(listed(4, 1, 4, 5, 8))
  shards.asked[1]!.reply(listed(3, 2, 3, 6))
  t.strictSame(order(results[0]), [3, 4, 5], 'in order of creation')
  t.match(results, [{ value: { total: 7 } }])
})

t.test('a page without entities asks the owners for none', async t => {
  const { shards, client, results } = setting(3, 7)
  client.list({ ...list, offset: 2, limit: 0 }, result => results.push(result))
  t.match(
    shards.asked.map(({ request }) => request),
    [{ limit: 0 }, { limit: 0 }],
  )
  shards.asked[0]!.reply(listed(4))
  shards.asked[1]!.reply(listed(3))
  t.strictSame(results, [{ ok: true, value: { entities: [], total: 7 } }])
})

t.test('the first owner that refuses decides, once', async t => {
  const { shards, client, results } = setting(3, 7, 9)
  client.list(list, result => results.push(result))
  shards.asked[2]!.reply({ kind: 'busy' })
  shards.asked[0]!.reply({ kind: 'failed', reason: 'disk full' })
  shards.asked[1]!.reply(listed(0))
  t.match(results, [{ ok: false, refusal: { kind: 'Unavailable' } }])
  t.equal(results.length, 1)
})
