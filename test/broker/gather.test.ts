// Gathering over three owners, of which some are away or slow: the answer, and the writes that are made. A merged page
// equals the page cut from all sorted keys, wherever it begins.

import t from 'tap'
import { mergedPage } from '../../src/broker/gather.js'
import type { BatchAction, BatchUpdate } from '../../src/domain/entities/batch.js'
import type { WantedAttribute } from '../../src/domain/entities/entity.js'
import { operatorOf } from '../../src/domain/entities/operators.js'
import type { Json } from '../../src/domain/json.js'
import { compareSortValues, type OrderKey } from '../../src/domain/queries/order.js'
import { type Refusal, refusalText } from '../../src/domain/refusal.js'
import { ShardMap } from '../../src/domain/scope.js'
import type { ListKeys, ListRequest } from '../../src/messages/messages.js'
import { FakeClock } from '../support/fake-clock.js'
import fc from '../support/properties.js'
import { meaning, orderOf } from '../support/selections.js'
import { type Step, World } from '../support/worlds.js'

const shardMap = new ShardMap({ shards: 16, spread: 16 })
const owners = 3

const ownerOf = (id: string): number => shardMap.shardOf('t', '/', id) % owners

/** Ids of entities of one owner. */
function idsOf(owner: number, count: number): string[] {
  const ids: string[] = []
  for (let n = 0; ids.length < count; n++) if (ownerOf(`E${n}`) === owner) ids.push(`E${n}`)
  return ids
}

const [near, far, away] = [idsOf(0, 10), idsOf(1, 10), idsOf(2, 10)]
const alternating = near.flatMap((id, index) => [id, far[index]!, away[index]!])

const wanted = (value: Json): WantedAttribute => ({
  type: 'Number',
  value,
  operator: operatorOf(value),
  metadata: undefined,
})

const entity = (id: string, n: Json) => ({ id, type: 'T', attributes: new Map([['n', wanted(n)]]) })
const create = (id: string, n: Json = 0): Step => ({ do: 'create', path: '/', entity: entity(id, n), upsert: false })
const change = (id: string, n: Json): Step => ({
  do: 'change',
  kind: 'append',
  path: '/',
  entity: entity(id, n),
  typed: true,
})
const remove = (id: string): Step => ({ do: 'remove', path: '/', id, type: 'T' })
const retrieve = (id: string): Step => ({ do: 'retrieve', paths: ['/'], id, type: undefined })
const batch = (action: BatchAction, ids: readonly string[], n: Json = 0): BatchUpdate => ({
  action,
  items: ids.map(id => ({ ...entity(id, n), names: [] })),
})
const update = (action: BatchAction, ids: readonly string[], n?: Json): Step => ({
  do: 'batch',
  path: '/',
  batch: batch(action, ids, n),
})

const list = (given: Partial<ListRequest> = {}): Step => ({
  do: 'list',
  request: {
    kind: 'list',
    tenant: 't',
    paths: ['/#'],
    selection: meaning(),
    order: [],
    offset: 0,
    limit: 20,
    ...given,
  },
})

/** A broker over three owners, with these entities; the value of each is its index. */
async function worldWith(ids: readonly string[]): Promise<World> {
  const world = await World.of(owners, shardMap, new FakeClock())
  for (const [n, id] of ids.entries()) world.ask(create(id, n))
  await world.rest()
  return world
}

/** The ids and values of a page, and the total. */
function pageOf(answer: string | undefined): unknown {
  const { entities, total } = JSON.parse(answer as string)
  const named = (entities as [string, number, number, string][]).map(([, , , json]) => {
    const { id, n } = JSON.parse(json)
    return [id, n.value]
  })
  return { total, entities: named }
}

const expected = (total: number, ...entities: [string, number][]) => ({ total, entities })
const failure = (answer: string | undefined): Refusal => JSON.parse(answer as string)

const further = { offset: 2, limit: 3 }

t.test('a later page is fetched from the owners of its entities', async t => {
  const world = await worldWith(alternating.slice(0, 9))
  const [, , c, d, e] = alternating as [string, string, string, string, string]
  t.strictSame(pageOf(await world.end(list(further))), expected(9, [c, 2], [d, 3], [e, 4]))
  const reversed = { offset: 4, limit: 2, order: orderOf('!n') }
  t.strictSame(pageOf(await world.end(list(reversed))), expected(9, [e, 4], [d, 3]))
})

t.test('an entity that goes while its page is put together is missing on it', async t => {
  const world = await worldWith(alternating.slice(0, 9))
  const [, , c, d, e] = alternating as [string, string, string, string, string]
  const answers = world.ask(list(further))
  for (let owner = 0; owner < owners; owner++) world.shards.set(owner, 'slow')
  await world.rest()
  t.strictSame(answers, [], 'the keys are there, the entities are waited for')
  const go = world.shards.hold()
  await world.end(remove(d))
  go()
  await world.rest()
  t.strictSame(pageOf(answers[0]), expected(9, [c, 2], [e, 4]))
})

t.test('an entity that changes while its page is put together is shown as it is then', async t => {
  const world = await worldWith(alternating.slice(0, 9))
  const [, , c, d, e] = alternating as [string, string, string, string, string]
  const answers = world.ask(list(further))
  for (let owner = 0; owner < owners; owner++) world.shards.set(owner, 'slow')
  await world.rest()
  const go = world.shards.hold()
  await world.end(change(d, 77))
  go()
  await world.rest()
  t.strictSame(pageOf(answers[0]), expected(9, [c, 2], [d, 77], [e, 4]))
})

t.test('an entity that goes and comes again while its page is put together is another one', async t => {
  const world = await worldWith(alternating.slice(0, 9))
  const [, , c, d, e] = alternating as [string, string, string, string, string]
  const answers = world.ask(list(further))
  for (let owner = 0; owner < owners; owner++) world.shards.set(owner, 'slow')
  await world.rest()
  const go = world.shards.hold()
  await world.end(remove(d))
  await world.end(create(d, 5))
  go()
  await world.rest()
  t.strictSame(pageOf(answers[0]), expected(9, [c, 2], [e, 4]))
})

t.test('a list waits for a slow owner', async t => {
  const world = await worldWith(alternating.slice(0, 3))
  world.shards.set(1, 'slow')
  const answers = world.ask(list())
  await world.rest()
  t.strictSame(answers, [])
  world.shards.hold()()
  await world.rest()
  t.match(pageOf(answers[0]), { total: 3 })
})

for (const condition of ['unreachable', 'lost'] as const) {
  t.test(`lists, types and reads over all paths are to be repeated when an owner is ${condition}`, async t => {
    const world = await worldWith(alternating)
    world.shards.set(2, condition)
    const steps: Step[] = [
      list(),
      list({ limit: 0 }),
      list(further),
      { do: 'types', paths: ['/#'], type: undefined },
      { do: 'retrieve', paths: ['/#'], id: near[0]!, type: undefined },
    ]
    for (const step of steps) t.match(failure(await world.end(step)), { kind: 'Unavailable' }, JSON.stringify(step))
  })

  t.test(`an owner that becomes ${condition} between the keys and the entities of a page`, async t => {
    const world = await worldWith(alternating)
    const answers = world.ask(list(further))
    world.shards.set(2, condition)
    await world.rest()
    t.match(failure(answers[0]), { kind: 'Unavailable' })
  })

  t.test(`entities of other owners are read and written while one is ${condition}`, async t => {
    const world = await worldWith(alternating)
    world.shards.set(2, condition)
    for (const [id] of [near, far]) {
      t.equal(await world.end(change(id!, 5)), '"done"')
      t.match(JSON.parse(await world.end(retrieve(id!))), ['/'])
      t.match(
        pageOf(await world.end(list({ paths: ['/'], selection: meaning({ ids: [id!] }) }))),
        expected(1, [id!, 5]),
      )
    }
    t.match(failure(await world.end(change(away[0]!, 5))), { kind: 'Unavailable' })
    t.match(failure(await world.end(retrieve(away[0]!))), { kind: 'Unavailable' })
  })

  t.test(`a batch with an owner that is ${condition} names the unknown items, and the rest is done`, async t => {
    const world = await worldWith(alternating)
    world.shards.set(2, condition)
    const answer = failure(await world.end(update('append', alternating.slice(0, 6), 5)))
    t.equal(answer.kind, 'Unavailable')
    const reason = condition === 'lost' ? 'owner 2 is silent' : 'owner 2 is away'
    const named = away.slice(0, 2).map(id => `${id}/T`)
    t.equal(
      refusalText(answer),
      `the outcome is unknown for 2 of 6 entities (${named.join(', ')}): ${reason}; the others were done`,
    )
    world.shards.set(2, 'well')
    const total = (n: number) =>
      list({ order: orderOf('!n'), selection: meaning({ ids: alternating.slice(n, n + 1) }) })
    for (const [n, id] of alternating.slice(0, 6).entries())
      t.match(pageOf(await world.end(total(n))), expected(1, [id, n % 3 < 2 || condition === 'lost' ? 5 : n]), id)
  })

  t.test(`a batch reports the other refusals when one owner is ${condition}`, async t => {
    const world = await worldWith(near.slice(0, 1))
    world.shards.set(2, condition)
    const refusal = failure(await world.end(update('update', [near[0]!, far[0]!, away[0]!])))
    t.match(refusalText(refusal), `of the others, not all were done: do not exist: ${far[0]}/T - [entity itself]`)
  })

  t.test(`a batch is unknown as a whole when all its owners are ${condition}`, async t => {
    const world = await worldWith([])
    world.shards.set(2, condition)
    const answer = failure(await world.end(update('append', away)))
    t.match(answer, { kind: 'Unavailable', others: 'none' })
    t.match(refusalText(answer), /for 10 of 10 entities/)
    t.notMatch(refusalText(answer), /others/)
  })

  t.test(`a notification of which one owner is ${condition} is not acknowledged`, async t => {
    const world = await worldWith([])
    world.shards.set(2, condition)
    const notify: Step = { do: 'notify', path: '/', batch: batch('append', alternating.slice(0, 3)) }
    t.match(failure(await world.end(notify)), { kind: 'Unavailable' })
    world.shards.set(2, 'well')
    t.match(pageOf(await world.end(list())), { total: condition === 'lost' ? 3 : 2 })
  })
}

t.test('a long list of unknown items in a batch is cut', async t => {
  const world = await worldWith([])
  world.shards.set(2, 'lost')
  const refusal = failure(await world.end(update('append', idsOf(2, 12))))
  t.match(refusalText(refusal), `${idsOf(2, 10).at(-1)}/T and 2 more)`)
})

t.test('an entity that occurs several times in a batch of several owners and steps sees its earlier items', async t => {
  const world = await worldWith([])
  const ids = [near[0]!, far[0]!, away[0]!, near[1]!, far[1]!]
  for (const id of ids) await world.end(create(id, 0))
  const many = Array.from({ length: 400 }, (_, n) => ids[n % ids.length]!)
  t.equal(await world.end(update('append', many, { $inc: 1 })), '"done"')
  t.strictSame(pageOf(await world.end(list())), expected(5, ...ids.map((id): [string, number] => [id, 80])))
})

t.test('items of a batch are taken in their order by the owner that has them', async t => {
  const world = await worldWith([])
  const [here, there] = [near[0]!, far[0]!]
  t.equal(await world.end(update('appendStrict', [here, there])), '"done"')
  const again = failure(await world.end(update('appendStrict', [away[0]!, there, here])))
  t.match(again, { kind: 'PartialUpdate' })
  t.match(refusalText(again), `already exist: ${there}/T - [ n ], ${here}/T - [ n ]`)
})

interface Key {
  readonly part: number
  readonly created: number
  readonly shard: number
  readonly values: readonly Json[]
}

const columnsOf = (keys: readonly Key[]): ListKeys => ({
  created: Float64Array.from(keys, ({ created }) => created),
  shards: Uint16Array.from(keys, ({ shard }) => shard),
  rangeOf: new Uint32Array(keys.length),
  ranges: [['/', 'T']],
  values: keys.map(({ values }) => values),
})

const comparing =
  (order: readonly OrderKey[]) =>
  (a: Key, b: Key): number =>
    compareSortValues(order, a.values, b.values) || a.created - b.created || a.shard - b.shard

const value = fc.constantFrom<Json>(null, 0, 1, 1.5, 'a', 'b', true, [], {})

/** Keys of one part each, many created at the same time by different owners; a shard is always of the same part. */
const keys = (parts: number, width: number) =>
  fc
    .uniqueArray(fc.record({ created: fc.nat(40), shard: fc.nat(15) }), {
      maxLength: 200,
      size: 'max',
      selector: ({ created, shard }) => `${created} ${shard}`,
    })
    .chain(all =>
      fc
        .array(fc.array(value, { minLength: width, maxLength: width }), {
          minLength: all.length,
          maxLength: all.length,
        })
        .map(values => all.map((key, n): Key => ({ ...key, part: key.shard % parts, values: values[n]! }))),
    )

const orders = fc.constantFrom('', 'a', '!a', 'a,!b').map(orderOf)
const numbers = fc.oneof(fc.nat(220), fc.constantFrom(0, Number.MAX_SAFE_INTEGER))

const lists = fc
  .tuple(orders, fc.integer({ min: 1, max: 5 }))
  .chain(([order, parts]) =>
    fc.record({ order: fc.constant(order), parts: fc.constant(parts), all: keys(parts, order.length) }),
  )

t.test('a page is cut from the keys of all parts in order', async t => {
  let begun = 0
  fc.assert(
    fc.property(lists, numbers, fc.constantFrom(1, 7, 1000), ({ order, parts, all }, offset, limit) => {
      const sorted = all.toSorted(comparing(order))
      const given = Array.from({ length: parts }, (_, part) =>
        sorted.filter(key => key.part === part).slice(0, offset + limit),
      )
      const page = mergedPage(given.map(columnsOf), order, offset, limit)
      const picked = page.map(({ part, at }) => given[part]![at]!)
      if (offset > 0 && picked.length > 0) begun++
      return JSON.stringify(picked) === JSON.stringify(sorted.slice(offset, offset + limit))
    }),
    { numRuns: 1000 },
  )
  t.ok(begun > 100, `${begun} pages further on`)
})
