// Matches: the page equals the one cut from all sorted matches, however few are kept.

import t from 'tap'
import type { Json } from '../../../src/domain/json.js'
import { compareSortValues, type OrderKey } from '../../../src/domain/queries/order.js'
import { ShardMap } from '../../../src/domain/scope.js'
import { encodedId, encodedType } from '../../../src/encoded-entity.js'
import type { ListRequest } from '../../../src/messages/messages.js'
import type { EntityPlace } from '../../../src/shard/read/entity-place.js'
import { encodedEntitiesAt, type Match, Matches, readEncoded, valuesIfMeant } from '../../../src/shard/read/matches.js'
import { entityOf, fill } from '../../support/entities.js'
import { MemoryStore } from '../../support/memory-store.js'
import fc from '../../support/properties.js'
import { Random } from '../../support/random.js'
import { meaning, orderOf, selectionOf } from '../../support/selections.js'

/** Matches beyond the page that are kept for a while. */
const surplusMax = 10_000

const request = (wanted: Partial<ListRequest>): ListRequest => ({
  kind: 'list',
  tenant: 't',
  paths: ['/#'],
  selection: meaning(),
  order: [],
  offset: 0,
  limit: 20,
  ...wanted,
})

const values: readonly [Json | undefined, ...(Json | undefined)[]] = [
  0,
  1,
  2,
  -1,
  'a',
  'b',
  null,
  undefined,
  true,
  [1],
  { k: 1 },
]

/** Matches in no order, as a sweep finds them: no two of one place, many of the same values. */
function someMatches(count: number, order: readonly OrderKey[], random: Random): Match[] {
  const seen = new Set<number>()
  return Array.from({ length: count }, (_, n) => {
    let [created, shard] = [random.between(0, 2 * count), random.between(0, 3)]
    while (seen.has(4 * created + shard)) [created, shard] = [created + 1, 0]
    seen.add(4 * created + shard)
    return {
      place: { created, shard, path: '/', type: 'T', id: `E${n}` },
      values: order.map(() => random.pick(values)),
    }
  })
}

/** The expected page. */
const sorted = (all: readonly Match[], { order, offset, limit }: ListRequest): readonly EntityPlace[] =>
  all
    .toSorted(
      (a, b) =>
        compareSortValues(order, a.values, b.values) ||
        a.place.created - b.place.created ||
        a.place.shard - b.place.shard,
    )
    .slice(offset, offset + limit)
    .map(({ place }) => place)

const orders = fc.constantFrom('', 'a', '!a', 'a,!b', '!b,a,c').map(orderOf)

const agrees = (counts: fc.Arbitrary<number>, offsets: fc.Arbitrary<number>) =>
  fc.property(
    orders,
    counts,
    offsets,
    fc.constantFrom(0, 1, 20, 1000),
    fc.nat(),
    (order, count, offset, limit, seed) => {
      const wanted = request({ order, offset, limit })
      const all = someMatches(count, order, new Random(seed))
      const matches = new Matches(wanted)
      for (const match of all) matches.add(match)
      return matches.total === count && JSON.stringify(matches.page().places) === JSON.stringify(sorted(all, wanted))
    },
  )

t.test('a page is cut from all matches in order', async () => {
  fc.assert(agrees(fc.nat(60), fc.constantFrom(0, 1, 7, 40, 100)), { numRuns: 500 })
})

t.test(
  'a page is cut from all matches in order when most of them were dropped, and at offsets beyond them',
  async () => {
    const counts = fc.integer({ min: surplusMax, max: 2.5 * surplusMax })
    fc.assert(agrees(counts, fc.constantFrom(0, 500, surplusMax - 1, surplusMax + 1500, 3 * surplusMax)), {
      numRuns: 20,
    })
  },
)

t.test('a page that is requested twice is the same', async t => {
  const matches = new Matches(request({ offset: 5, limit: 5 }))
  for (const match of someMatches(30, [], new Random(1))) matches.add(match)
  t.strictSame(matches.page(), matches.page())
})

// The parts of matches

const shardMap = new ShardMap({ shards: 4, spread: 4 })
const placeOf = (id: string, type: string, path: string, created: number): EntityPlace => ({
  created,
  shard: shardMap.shardOf('t', path, id),
  path,
  type,
  id,
})

t.test(
  'the encoded entities at places come in the order of the places, each of its type, and those that have gone are missing',
  async t => {
    const store = new MemoryStore()
    await fill(store, shardMap, 't', [
      { path: '/', entity: entityOf('E', 'A', 1, {}) },
      { path: '/', entity: entityOf('E', 'B', 2, {}) },
      { path: '/a', entity: entityOf('F', 'A', 3, {}) },
    ])
    const places = [
      placeOf('F', 'A', '/a', 3),
      placeOf('gone', 'A', '/', 4),
      placeOf('E', 'B', '/', 2),
      placeOf('E', 'C', '/', 5),
      placeOf('E', 'A', '/', 1),
    ]
    t.strictSame(
      [...encodedEntitiesAt(store, 't', places)].map(({ place }) => place),
      [places[0], places[2], places[4]],
    )
    t.strictSame(
      readEncoded(store, 't', places).map(encoded => encoded && `${encodedId(encoded)} ${encodedType(encoded)}`),
      ['F A', undefined, 'E B', undefined, 'E A'],
    )
  },
)

t.test('an entity whose content is meant has values for the order, another has none', async t => {
  const store = new MemoryStore()
  await fill(store, shardMap, 't', [{ path: '/a', entity: entityOf('E', 'T', 1, { n: 5 }) }])
  const [found] = encodedEntitiesAt(store, 't', [placeOf('E', 'T', '/a', 1)])
  const encoded = found!.encoded
  const order = orderOf('n,servicePath')
  t.strictSame(valuesIfMeant(request({ selection: selectionOf({ q: 'n>4' }), order }), encoded, '/a'), [5, '/a'])
  t.equal(valuesIfMeant(request({ selection: selectionOf({ q: 'n>5' }), order }), encoded, '/a'), undefined)
  t.strictSame(valuesIfMeant(request({ order }), encoded, '/a'), [5, '/a'])
  t.strictSame(valuesIfMeant(request({}), encoded, '/a'), [])
})
