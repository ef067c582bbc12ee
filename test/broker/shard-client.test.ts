// The caller of shards: which shards it asks, and which result it makes of their replies.

import t from 'tap'
import type { Listed, ReadTarget } from '../../src/broker/replies.js'
import { ShardClient, unsteadyReadsMax } from '../../src/broker/shard-client.js'
import { HybridClock } from '../../src/clock.js'
import type { Entity } from '../../src/domain/entities/entity.js'
import { type Result, refusals } from '../../src/domain/refusal.js'
import { ShardMap } from '../../src/domain/scope.js'
import { encodedCreated, encodeEntity } from '../../src/encoded-entity.js'
import type {
  FindRequest,
  FoundEntity,
  ListRequest,
  ShardReply,
  ShardRequest,
  Shards,
  WriteRequest,
} from '../../src/messages/messages.js'
import { FakeClock } from '../support/fake-clock.js'
import { meaning } from '../support/selections.js'

/** Shards that keep their requests until the test answers. */
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

  /** The known paths; undefined: they are not known. */
  known: readonly string[] | undefined

  pathsOf(): readonly string[] | undefined {
    return this.known
  }

  ownerOf(shard: number): number {
    return shard % this.all.length
  }
}

const shardMap = new ShardMap({ shards: 256, spread: 16 })
const place: ReadTarget = { tenant: 't', paths: ['/a'], id: 'E', type: undefined, grant: undefined }
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

/** A client over these owners, and the growing list of its results. */
function setting(...owners: number[]) {
  const shards = new FakeShards(...owners)
  return { shards, client: new ShardClient(shards, shardMap), results: [] as Result<unknown>[] }
}

/** An entity with this `created`, its place in the order of creation. */
function found(created: number): FoundEntity {
  const entity: Entity = { id: `E${created}`, type: 'T', attributes: new Map(), created, modifiedMs: 1 }
  return { path: '/', encoded: encodeEntity(entity, '') }
}

const listed = (total: number, ...created: number[]): ShardReply => ({
  kind: 'listed',
  entities: created.map(found),
  total,
})

const order = (result: Result<unknown> | undefined): number[] =>
  result?.ok ? (result.value as Listed).entities.map(({ encoded }) => encodedCreated(encoded)) : []

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

t.test('a refusal is passed on unchanged', async t => {
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
  t.strictSame(results, [{ ok: false, refusal: refusals.failure('disk full') }])
})

for (const kind of ['unreachable', 'lost'] as const) {
  t.test(`a write that is ${kind} is to be sent again`, async t => {
    const { shards, client, results } = setting(0)
    client.write(write, result => results.push(result))
    shards.asked[0]!.reply({ kind, reason: 'gone' })
    t.match(results, [{ ok: false, refusal: { kind: 'Unavailable', reason: 'gone' } }])
  })

  t.test(`a read that is ${kind} is to be sent again`, async t => {
    const { shards, client, results } = setting(3, 7)
    client.find(find, result => results.push(result))
    client.list(list, result => results.push(result))
    client.types({ kind: 'types', tenant: 't', paths: ['/#'], type: undefined }, result => results.push(result))
    for (const { reply } of shards.asked) reply({ kind, reason: 'gone' })
    const refusal = { kind: 'Unavailable', reason: 'gone' }
    t.match(
      results,
      results.map(() => ({ ok: false, refusal })),
    )
    t.equal(results.length, 3)
  })
}

t.test('the outcome of a lost write is unknown, that of an unreachable one is not', async t => {
  const { shards, client, results } = setting(0)
  client.write(write, result => results.push(result))
  client.write(write, result => results.push(result))
  shards.asked[0]!.reply({ kind: 'lost', reason: '' })
  shards.asked[1]!.reply({ kind: 'unreachable', reason: '' })
  t.match(results, [{ refusal: { code: 'outcomeUnknown' } }, { refusal: { code: 'unreachable' } }])
})

t.test('writes for one of several owners travel together, in order', async t => {
  const { shards, client } = setting(0, 1, 2)
  const requests = ['A', 'B', 'C', 'D', 'E', 'A', 'F', 'G'].map(id => ({ ...write, target: { ...write.target, id } }))
  client.writeAll(requests, () => {})
  const ownerOf = ({ target }: WriteRequest) => shards.ownerOf(shardMap.shardOf('t', '/a', target.id))
  const owners = ownersOf(shards, shardsAsked(shards))
  t.ok(owners.length > 1)
  t.equal(owners.length, shards.asked.length, 'each owner once')
  for (const { shard, request } of shards.asked)
    t.strictSame(request, { kind: 'batch', items: requests.filter(one => ownerOf(one) === shards.ownerOf(shard)) })
})

t.test('each of several writes that travelled together gets its own reply', async t => {
  const { shards, client } = setting(0, 1)
  const requests = ['A', 'B', 'C', 'D', 'E'].map(id => ({ ...write, target: { ...write.target, id } }))
  const replies: ShardReply[] = []
  client.writeAll(requests, (index, reply) => {
    replies[index] = reply
  })
  const [first, second] = shards.asked as [(typeof shards.asked)[number], (typeof shards.asked)[number]]
  const items = first.request.kind === 'batch' ? first.request.items : []
  first.reply({ kind: 'batch', replies: items.map(({ target }) => ({ kind: 'failed', reason: target.id })) })
  second.reply({ kind: 'lost', reason: 'gone' })
  t.ok(items.length > 0 && items.length < requests.length)
  t.strictSame(
    replies,
    requests.map(one =>
      items.includes(one) ? { kind: 'failed', reason: one.target.id } : { kind: 'lost', reason: 'gone' },
    ),
  )
})

t.test('writes get their stamps in the order of the calls, for all owners', async t => {
  const shards = new FakeShards(0, 1, 2)
  const client = new ShardClient(shards, shardMap, new HybridClock(new FakeClock()))
  const requests = Array.from({ length: 20 }, (_, n) => ({ ...write, target: { ...write.target, id: `E${n}` } }))
  client.write(requests[0]!, () => {})
  client.writeAll(requests.slice(1), () => {})
  const asked = shards.asked.flatMap(({ request }) =>
    request.kind === 'batch' ? request.items : [request as WriteRequest],
  )
  const stamps = new Map(asked.map(({ target, stamp }) => [target.id, stamp]))
  const inOrder = requests.map(({ target }) => stamps.get(target.id) as number)
  t.strictSame(
    inOrder,
    [...inOrder].sort((a, b) => a - b),
  )
  t.equal(new Set(inOrder).size, requests.length)
})

t.test(
  'notifications of one request have numbers of their own, over all owners that count, and over steps',
  async t => {
    const { shards, client } = setting(0, 1, 2)
    const numbering = { next: 1, step: 1 }
    const requests = Array.from({ length: 12 }, (_, n) => ({
      ...write,
      target: { ...write.target, id: `E${n}` },
      origin: { correlatorRoot: 'root', numbering },
    }))
    for (const step of [requests.slice(0, 6), requests.slice(6)]) client.writeAll(step, () => {})
    const origins = shards.asked.map(({ request }) => {
      const { items } = request as { items: readonly WriteRequest[] }
      t.equal(new Set(items.map(({ origin }) => origin)).size, 1, 'an owner counts over all items')
      return items[0]!.origin
    })
    t.ok(origins.length > 3)
    // Each owner counts a different number of notifications.
    const numbers = origins.flatMap(({ numbering: own }, at) =>
      Array.from({ length: 1000 + at }, (_, n) => own!.next + n * own!.step),
    )
    t.equal(new Set(numbers).size, numbers.length)
    t.ok(numbers.includes(1) && numbers.every(number => Number.isSafeInteger(number) && number > 0))
    t.ok(origins.every(({ correlatorRoot }) => correlatorRoot === 'root'))
  },
)

t.test('numbers are dense where one owner counts, and a request without them has none anywhere', async t => {
  const one = setting(0)
  const origin = { correlatorRoot: '', numbering: { next: 1, step: 1 } }
  for (let step = 0; step < 2; step++) one.client.writeAll([{ ...write, origin }], () => {})
  for (const { request } of one.shards.asked)
    t.equal((request as { items: readonly WriteRequest[] }).items[0]!.origin, origin)
  t.strictSame(origin.numbering, { next: 1, step: 1 })
  const many = setting(0, 1, 2)
  many.client.writeAll([write, { ...write, target: { ...write.target, id: 'F' } }], () => {})
  for (const { request } of many.shards.asked)
    t.equal((request as { items: readonly WriteRequest[] }).items[0]!.origin, write.origin)
})

t.test('writes for the only owner travel together, without a stamp', async t => {
  const { shards, client } = setting(0)
  client.writeAll([write, write], () => {})
  t.strictSame(
    shards.asked.map(({ shard, request }) => [shard, request]),
    [[0, { kind: 'batch', items: [write, write] }]],
  )
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

t.test('where all paths are known, an id is asked of the owners of those that are meant', async t => {
  const { shards, client } = setting(3, 7)
  shards.known = ['/', '/a', '/a/b', '/c']
  client.find({ ...find, paths: ['/a/#'] }, () => {})
  const expected = new Map<number, string[]>()
  for (const path of ['/a', '/a/b']) {
    const owner = shards.ownerOf(shardMap.shardOf('t', path, 'E'))
    expected.set(owner, [...(expected.get(owner) ?? []), path])
  }
  t.strictSame(
    shards.asked.map(({ shard, request }) => [shards.ownerOf(shard), (request as FindRequest).paths]),
    [...expected],
  )
})

t.test('where no existing path is meant, no shard is asked', async t => {
  const { shards, client } = setting(3, 7)
  shards.known = ['/']
  let found: unknown
  client.find({ ...find, paths: ['/a/#'] }, result => {
    found = result
  })
  t.strictSame(found, { ok: true, value: [] })
  t.strictSame(shards.asked, [])
})

t.test('an id under a path and below is asked of every owner', async t => {
  const { shards, client } = setting(3, 7)
  client.find({ ...find, paths: ['/a/#'] }, () => {})
  t.strictSame(
    shards.asked.map(({ shard }) => shard),
    [3, 7],
  )
})

const shardsAsked = (shards: FakeShards): number[] => shards.asked.map(({ shard }) => shard).sort((a, b) => a - b)
const ownersOf = (shards: FakeShards, all: readonly number[]): number[] =>
  [...new Set(all.map(shard => shards.ownerOf(shard)))].sort((a, b) => a - b)

t.test('entities under exact paths are requested only from the owners that may have them', async t => {
  const many = Array.from({ length: 64 }, (_, owner) => owner)
  const paths = ['/a', '/b']
  const ofPaths = paths.flatMap(path => shardMap.shardsOf('t', path))
  const ofIds = paths.flatMap(path => ['E', 'F'].map(id => shardMap.shardOf('t', path, id)))
  const ofId = paths.map(path => shardMap.shardOf('t', path, 'E'))
  const asks: readonly [readonly number[], (client: ShardClient) => void][] = [
    [ofPaths, client => client.list({ ...list, paths }, () => {})],
    [ofPaths, client => client.types({ kind: 'types', tenant: 't', paths, type: undefined }, () => {})],
    [ofIds, client => client.list({ ...list, paths, selection: meaning({ ids: ['E', 'F'] }) }, () => {})],
    [ofId, client => client.find({ ...find, paths }, () => {})],
  ]
  for (const [expected, ask] of asks) {
    const { shards, client } = setting(...many)
    ask(client)
    const asked = shardsAsked(shards)
    t.ok(asked.length < many.length)
    t.strictSame(ownersOf(shards, asked), ownersOf(shards, expected))
    t.equal(new Set(ownersOf(shards, asked)).size, asked.length, 'each once')
  }
})

t.test('a list of ids that one owner has is passed on as it is', async t => {
  const { shards, client } = setting(3, 7)
  const page = { ...list, paths: ['/a'], selection: meaning({ ids: ['E'] }), offset: 5, limit: 2 }
  client.list(page, () => {})
  t.strictSame(
    shards.asked.map(({ request }) => request),
    [{ ...page, bytesMax: 8 * 1024 * 1024 }],
  )
})

t.test('a request with more ids, or shards, than are counted goes to every owner', async t => {
  const ids = Array.from({ length: 600 }, (_, n) => `E${n}`)
  const { shards, client } = setting(3, 7, 9)
  client.list({ ...list, paths: ['/a'], selection: meaning({ ids }) }, () => {})
  t.strictSame(ownersOf(shards, shardsAsked(shards)), ownersOf(shards, shardMap.shardsOf('t', '/a')))
  const wide = new FakeShards(3, 7, 9)
  const everywhere = new ShardClient(wide, new ShardMap({ shards: 256, spread: 256 }))
  everywhere.list({ ...list, paths: ['/a', '/b', '/c'] }, () => {})
  t.strictSame(shardsAsked(wide), [3, 7, 9])
})

t.test('results of several owners are merged', async t => {
  const { shards, client, results } = setting(3, 7)
  client.find({ ...find, paths: ['/#'] }, result => results.push(result))
  const [first, second] = [found(1), found(2)]
  shards.asked[1]!.reply({ kind: 'found', entities: [second] })
  t.strictSame(results, [], 'one is missing')
  shards.asked[0]!.reply({ kind: 'found', entities: [first] })
  t.strictSame(results, [{ ok: true, value: [first, second] }])
})

t.test('a list whose entities have too many bytes is refused with the size and the remedy', async t => {
  const { shards } = setting(3)
  const room = { open: () => ({ take: () => true, release: () => {} }) }
  const client = new ShardClient(shards, shardMap, undefined, undefined, { answerBytesMax: 1000, room })
  const results: Result<unknown>[] = []
  client.list(list, result => results.push(result))
  t.match(shards.asked[0]!.request, { bytesMax: 1000 })
  shards.asked[0]!.reply({ kind: 'large' })
  t.strictSame(results, [{ ok: false, refusal: refusals.answerTooLarge(1000) }])
})

t.test('a list of one owner is passed on as it is', async t => {
  const { shards, client, results } = setting(3)
  const page = { ...list, offset: 5, limit: 2 }
  client.list(page, result => results.push(result))
  t.match(shards.asked[0]!.request, page)
  shards.asked[0]!.reply(listed(9, 6, 7))
  t.match(results, [{ ok: true, value: { total: 9 } }])
  t.strictSame(order(results[0]), [6, 7])
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

const emptyKeys = {
  created: new Float64Array(),
  shards: new Uint16Array(),
  rangeOf: new Uint32Array(),
  ranges: [],
  values: [],
}

/** A client whose owners change, with its shards and clock. */
function unsteady() {
  const clock = new FakeClock()
  const shards = new FakeShards(0, 1)
  let rests = 0
  let changedMs = clock.monoMs()
  const client = new ShardClient(shards, shardMap, undefined, {
    clock,
    rest: () => rests++,
    stillMs: () => clock.monoMs() - changedMs,
  })
  const results: Result<unknown>[] = []
  const moveAll = (): void => {
    for (const one of shards.asked.splice(0)) one.reply({ kind: 'moved' })
  }
  const read = (): void => client.list(list, result => results.push(result))
  const change = (): void => {
    changedMs = clock.monoMs()
  }
  return { clock, shards, client, results, moveAll, change, read, rests: () => rests }
}

t.test('a list waits while shards move, for some seconds, and then is refused', async t => {
  const { clock, results, moveAll, read, rests } = unsteady()
  read()
  for (let passedMs = 0; passedMs < 400; passedMs += 20) {
    moveAll()
    clock.advance(20)
  }
  t.equal(rests(), 0)
  moveAll()
  t.equal(rests(), 1, 'it asks for a rest when it has waited for long')
  for (let passedMs = 400; passedMs < 8_000; passedMs += 20) {
    moveAll()
    clock.advance(20)
  }
  t.strictSame(results, [])
  for (let passedMs = 0; passedMs < 200; passedMs += 20) {
    moveAll()
    clock.advance(20)
  }
  t.match(results, [{ ok: false, refusal: { code: 'ownerChanging' } }])
})

t.test('a list waits for longer while owners change, and not for ever', async t => {
  const { clock, results, moveAll, change, read } = unsteady()
  const waitUntil = (untilMs: number): void => {
    while (clock.monoMs() < untilMs) {
      moveAll()
      clock.advance(20)
    }
  }
  read()
  waitUntil(5_000)
  change()
  waitUntil(10_980)
  t.strictSame(results, [])
  waitUntil(11_200)
  t.match(results, [{ ok: false, refusal: { code: 'ownerChanging' } }], 'no owner has changed for 6 s')
  const beganMs = clock.monoMs()
  read()
  for (let untilMs = beganMs; untilMs <= beganMs + 16_000; untilMs += 1_000) {
    change()
    waitUntil(untilMs)
  }
  t.equal(results.length, 1)
  change()
  waitUntil(beganMs + 16_200)
  t.equal(results.length, 2)
})

t.test('the number of lists that wait so is limited', async t => {
  const { clock, shards, results, moveAll, read } = unsteady()
  for (let n = 0; n < unsteadyReadsMax; n++) read()
  moveAll()
  t.strictSame(results, [])
  read()
  moveAll()
  t.match(results, [{ ok: false, refusal: { code: 'ownerChanging' } }], 'one more is refused at once')
  clock.advance(20)
  const [first, second] = shards.asked.splice(0, 2)
  const part = { kind: 'part', encodedEntities: [], total: 0, keys: emptyKeys } as const
  for (const one of [first!, second!]) one.reply(part)
  t.equal(results.length, 2, 'one has its answer, and there is room for another one')
  moveAll()
  read()
  moveAll()
  t.equal(results.length, 2)
})
