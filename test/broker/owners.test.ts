// Several owners answer as one: the same requests to a broker over one owner and to one over three get the same
// answers.
//
// Both have one clock, and it moves between requests. Within one request, a batch for instance, stamps keep the order.

import assert from 'node:assert/strict'
import t from 'tap'
import type { BatchItem, BatchUpdate } from '../../src/domain/entities/batch.js'
import type { WantedEntity } from '../../src/domain/entities/entity.js'
import type { Json } from '../../src/domain/json.js'
import { ShardMap } from '../../src/domain/scope.js'
import type { ListRequest } from '../../src/messages/messages.js'
import type { Placed } from '../support/entities.js'
import { FakeClock } from '../support/fake-clock.js'
import { listRequests, placedEntities } from '../support/list-requests.js'
import fc from '../support/properties.js'
import { selectionOf } from '../support/selections.js'
import { type Step, World } from '../support/worlds.js'

const shardMap = new ShardMap({ shards: 16, spread: 4 })
const owners = 3

/** An entity as a parser returns it, with metadata for `mq`. */
function wanted({ entity }: Placed, n: number): WantedEntity {
  const attributes = [...entity.attributes].map(([name, { type, value }]) => {
    const metadata = new Map(n % 3 === 0 ? [] : [['m', { type: 'Number', value: n % 4 }]])
    return [name, { type, value: JSON.parse(JSON.stringify(value)) as Json, metadata }] as const
  })
  return { id: entity.id, type: entity.type, attributes: new Map(attributes) }
}

const someWanted = placedEntities
  .filter(all => all.length > 0)
  .map(all => all.map((placed, n) => ({ path: placed.path, entity: wanted(placed, n) })))
const oneWanted = someWanted.map(all => all[0]!)

const actions = fc.constantFrom<BatchUpdate['action'][]>(
  'append',
  'append',
  'appendStrict',
  'update',
  'replace',
  'delete',
)

const batches = fc
  .tuple(actions, someWanted, fc.array(fc.boolean(), { minLength: 40, maxLength: 40 }), fc.boolean())
  .map(([action, all, draws, twice]) => {
    const items = all.map(({ entity: { id, type, attributes } }, n): BatchItem => {
      const names = action === 'delete' && draws[n] ? [...attributes.keys()] : []
      return { id, type: draws[39 - n] ? type : undefined, attributes, names }
    })
    return { path: all[0]!.path, batch: { action, items: twice ? [...items, ...items] : items } }
  })

const offsets = fc.constantFrom(0, 0, 1, 5, 40, 250, 700, 2000, Number.MAX_SAFE_INTEGER)
const lists: fc.Arbitrary<ListRequest> = fc
  .tuple(listRequests, fc.constantFrom(undefined, undefined, 'b.m>1', '!b.m', 'a.m==1,2'), offsets)
  .map(([request, mq, offset]) => ({
    ...request,
    offset,
    selection: selectionOf({ ...request.selection.source, mq }),
  }))

const ids = fc.nat(25).map(n => `E${n}`)
const types = fc.constantFrom(undefined, 'A', 'B', 'C')
const somePaths = fc.constantFrom(['/#'], ['/'], ['/a'], ['/a/#'], ['/c', '/a'], ['/none'])
const kinds = fc.constantFrom('append', 'appendStrict', 'update', 'replace')

const retrieved = fc.record({ paths: somePaths, id: ids, type: types })
const summarized = fc.record({ paths: somePaths, type: types })
const removed = fc.record({ path: fc.constantFrom('/', '/a'), id: ids, type: types })
const created = fc.tuple(oneWanted, fc.boolean())
const changed = fc.tuple(oneWanted, kinds, fc.boolean())

const steps: fc.Arbitrary<Step> = fc.oneof(
  { weight: 2, arbitrary: created.map(([on, upsert]): Step => ({ do: 'create', ...on, upsert })) },
  { weight: 2, arbitrary: changed.map(([on, kind, typed]): Step => ({ do: 'change', ...on, kind, typed })) },
  { weight: 1, arbitrary: removed.map((on): Step => ({ do: 'remove', ...on })) },
  { weight: 2, arbitrary: batches.map((on): Step => ({ do: 'batch', ...on })) },
  {
    weight: 1,
    arbitrary: batches.map(
      ({ path, batch: { items } }): Step => ({ do: 'notify', path, batch: { action: 'append', items } }),
    ),
  },
  { weight: 8, arbitrary: lists.map((request): Step => ({ do: 'list', request })) },
  { weight: 2, arbitrary: retrieved.map((on): Step => ({ do: 'retrieve', ...on })) },
  { weight: 1, arbitrary: summarized.map((on): Step => ({ do: 'types', ...on })) },
)

/** Counts of covered cases, so that the test fails when its runs cover too little. */
const shown = { full: 0, further: 0, walked: 0, viewed: 0, several: 0, partly: 0 }

async function agree(stock: readonly { path: string; entity: WantedEntity }[], copies: number, all: readonly Step[]) {
  const clock = new FakeClock()
  const [one, many] = [await World.of(1, shardMap, clock), await World.of(owners, shardMap, clock)]
  for (let copy = 0; copy < copies; copy++)
    for (const { path, entity } of stock) {
      const id = copy === 0 ? entity.id : `${copy}-${entity.id}`
      for (const world of [one, many]) world.ask({ do: 'create', path, entity: { ...entity, id }, upsert: false })
      clock.advance(1)
    }
  await one.rest()
  for (const step of all) {
    clock.advance(1)
    const [expected, actual] = [one.ask(step), many.ask(step)]
    await one.rest()
    assert.equal(expected.length, 1)
    assert.deepEqual(actual, expected, JSON.stringify(step))
    note(step, expected[0]!, stock.length * copies)
  }
}

function note(step: Step, answer: string, stored: number): void {
  if (answer.includes('PartialUpdate')) shown.partly++
  if (step.do !== 'list') return
  const { entities } = JSON.parse(answer)
  if (!entities) return
  if (entities.length > 0 && step.request.offset > 0) shown.further++
  if (entities.length === step.request.limit) shown.full++
  if (entities.length > 1 && step.request.order.length > 0) shown.several++
  if (stored <= 256) shown.walked++
  else shown.viewed++
}

t.test('three owners answer every request as one does', async t => {
  await fc.assert(
    fc.asyncProperty(
      someWanted,
      fc.constantFrom(1, 5, 15, 40),
      fc.array(steps, { minLength: 30, maxLength: 30 }),
      agree,
    ),
    { numRuns: 25, endOnFailure: true },
  )
  t.ok(Math.min(...Object.values(shown)) > 3, JSON.stringify(shown))
})
