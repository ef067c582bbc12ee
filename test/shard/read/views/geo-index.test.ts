// The geographical index: after any additions, moves and removals, it finds the same as a look at each location.

import assert from 'node:assert/strict'
import t from 'tap'
import { matchesGeo } from '../../../../src/domain/places/geo.js'
import { type GeoQuery, parseGeoQuery } from '../../../../src/domain/places/geo-query.js'
import type { Geometry, Position } from '../../../../src/domain/places/location.js'
import { GeoIndex, placeBytes } from '../../../../src/shard/read/views/geo-index.js'
import { rowOf } from '../../../../src/shard/read/views/verdict.js'
import fc from '../../../support/properties.js'
import { wkt } from '../../../support/wkt.js'

function ask(georel: string, geometry: string, coords: string): GeoQuery {
  const parsed = parseGeoQuery({ georel, geometry, coords }, 'url')
  assert(parsed.ok && parsed.value, `${georel} ${geometry} ${coords}: ${JSON.stringify(parsed)}`)
  return parsed.value
}

/** The result of a search: candidates or all rows, then sifted. */
function found(index: GeoIndex, query: GeoQuery, rows: number, candidates?: Uint32Array): number[] {
  const all = candidates ? Uint32Array.from(candidates) : Uint32Array.from({ length: rows }, (_, row) => row)
  return [...all.subarray(0, index.sift(query, all, all.length))]
}

// Three places: half a cell apart around a corner of cells, at the antimeridian, at a pole.

const cell = 1 / 64
const steps = [-1.5, -1, -0.5, 0, 0.5, 1, 2]
const around = (longitude: number, latitude: number): fc.Arbitrary<Position> =>
  fc
    .tuple(fc.constantFrom(...steps), fc.constantFrom(...steps))
    .map(([x, y]) => [wrapped(longitude + x * cell), Math.min(90, latitude + y * cell)])
const wrapped = (longitude: number): number => (longitude > 180 ? longitude - 360 : longitude)
const corner = around(2.25, 41.5)
const seam = around(180, -17)
const position = fc.oneof({ weight: 6, arbitrary: corner }, { weight: 2, arbitrary: seam }, around(10, 90))

const pair = fc.oneof(fc.tuple(corner, corner), fc.tuple(around(10, 90), around(10, 90)))
const box = pair.filter(([a, b]) => a[0] !== b[0] && a[1] !== b[1])
const ringOf = ([[lon1, lat1], [lon2, lat2]]: [Position, Position]): Position[] => [
  [lon1, lat1],
  [lon2, lat1],
  [lon2, lat2],
  [lon1, lat2],
  [lon1, lat1],
]

const point = position.map((coordinates): Geometry => ({ type: 'Point', coordinates }))
const shape: fc.Arbitrary<Geometry> = fc.oneof(
  pair.map((coordinates): Geometry => ({ type: 'LineString', coordinates })),
  pair.map((coordinates): Geometry => ({ type: 'MultiPoint', coordinates })),
  box.map((corners): Geometry => ({ type: 'Polygon', coordinates: [ringOf(corners)] })),
)
const geometry = fc.oneof({ weight: 6, arbitrary: point }, { weight: 1, arbitrary: shape }, fc.constant(undefined))

const asCoords = (positions: readonly Position[]): string => positions.map(([x, y]) => `${y},${x}`).join(';')
const distances = fc.constantFrom(
  'maxDistance:0',
  'maxDistance:1000',
  'maxDistance:2500',
  'minDistance:1500;maxDistance:4000',
)
const query: fc.Arbitrary<GeoQuery> = fc.oneof(
  fc.tuple(distances, position).map(([distance, at]) => ask(`near;${distance}`, 'point', asCoords([at]))),
  fc
    .tuple(fc.constantFrom('coveredBy', 'intersects', 'equals'), box)
    .map(([georel, one]) => ask(georel, 'box', asCoords(one))),
  fc
    .tuple(fc.constantFrom('coveredBy', 'intersects'), box)
    .map(([georel, one]) => ask(georel, 'polygon', asCoords(ringOf(one)))),
  pair.map(one => ask('intersects', 'line', asCoords(one))),
  position.map(one => ask('equals', 'point', asCoords([one]))),
  fc.tuple(box, fc.constantFrom('disjoint')).map(([one, georel]) => ask(georel, 'box', asCoords(one))),
  position.map(one => ask('near;minDistance:1000', 'point', asCoords([one]))),
)

/** Enough rows to make the grid worth its cost, few of them with a location. */
const rowsMax = 600
const step = fc.oneof(
  { weight: 20, arbitrary: fc.record({ row: fc.nat(15), geometry }) },
  { weight: 1, arbitrary: fc.constantFrom('grow' as const, 'copy' as const) },
  { weight: 1, arbitrary: fc.record({ keep: fc.array(fc.nat(15), { minLength: 8, maxLength: 16 }) }) },
)

t.test('points that match are found, shapes that may are doubted, by grid and by walk alike', async t => {
  const seen = { byGrid: 0, byWalk: 0, points: 0, shapes: 0 }
  const agree = fc.property(
    fc.array(step, { maxLength: 60 }),
    fc.array(query, { minLength: 6, maxLength: 6 }),
    (taken, asked) => {
      let index = new GeoIndex(16)
      let capacity = 16
      let model: (Geometry | undefined)[] = []
      for (const one of taken) {
        if (one === 'grow') {
          capacity += 16
          index.grow(capacity)
        } else if (one === 'copy') index = new GeoIndex(0, structuredClone(index.parts))
        else if ('keep' in one) {
          capacity = 32 * (1 + one.keep[0]!)
          index = index.picked(Uint32Array.from(one.keep), capacity)
          model = one.keep.map(row => model[row])
        } else {
          index.set(one.row, one.geometry)
          model[one.row] = one.geometry
        }
      }
      index.grow(Math.max(capacity, rowsMax))
      for (const query of asked) {
        const expected = model.flatMap((one, row) => (one?.type === 'Point' && matchesGeo(query, one) ? [row] : []))
        const needed = model.flatMap((one, row) => (one && one.type !== 'Point' && matchesGeo(query, one) ? [row] : []))
        const walked = found(index, query, rowsMax)
        const candidates = index.candidates(query, rowsMax)
        if (candidates) seen.byGrid++
        else seen.byWalk++
        seen.points += expected.length
        seen.shapes += needed.length
        const sure = walked.filter(row => row === rowOf(row))
        const doubted = new Set(walked.filter(row => row !== rowOf(row)).map(rowOf))
        if (sure.join() !== expected.join()) return false
        if (!needed.every(row => doubted.has(row))) return false
        if (![...doubted].every(row => model[row] && model[row].type !== 'Point')) return false
        if (candidates && found(index, query, rowsMax, candidates).join() !== walked.join()) return false
      }
      return true
    },
  )
  fc.assert(agree, { numRuns: 2000 })
  t.ok(Math.min(...Object.values(seen)) > 100, JSON.stringify(seen))
})

t.test('rows of one cell come and go in any order', async () => {
  const [here, there] = [2.25, 2.5].map((longitude): Geometry => ({ type: 'Point', coordinates: [longitude, 41.5] }))
  const boxes = ['41.4,2.24;41.6,2.26', '41.4,2.49;41.6,2.51'].map(coords => ask('coveredBy', 'box', coords))
  const move = fc.tuple(fc.nat(7), fc.constantFrom(here, here, there, undefined))
  fc.assert(
    fc.property(fc.array(move, { maxLength: 40, size: 'max' }), moves => {
      const index = new GeoIndex(8)
      const model = new Map<number, Geometry | undefined>()
      for (const [row, place] of moves) {
        index.set(row, place)
        model.set(row, place)
      }
      return [here, there].every((place, at) => {
        const expected = [...model].flatMap(([row, one]) => (one === place ? [row] : []))
        return index.candidates(boxes[at]!, 1000)?.join() === expected.sort((a, b) => a - b).join()
      })
    }),
    { numRuns: 500 },
  )
})

t.test('an index that has grown has as many buckets as one that was made for so many', async t => {
  const capacity = 20_000
  const grown = new GeoIndex(16)
  const made = new GeoIndex(capacity)
  const fill = (index: GeoIndex, from: number, to: number): void => {
    for (let row = from; row < to; row++)
      index.set(row, row % 3 === 0 ? undefined : { type: 'Point', coordinates: [(row % 100) / 50, row / 10_000] })
  }
  fill(grown, 0, 16)
  grown.grow(1000)
  fill(grown, 16, 1000)
  grown.grow(capacity)
  fill(grown, 1000, capacity)
  fill(made, 0, capacity)
  t.equal(grown.parts.chainHeads.length, made.parts.chainHeads.length)
  t.equal(grown.bytes, made.bytes)
  for (const coords of ['0,0;0.1,0.1', '0.02,0;0.2,0.5', '1.9,1.9;2,2']) {
    const query = ask('coveredBy', 'box', coords)
    const candidates = made.candidates(query, capacity)
    t.ok(candidates)
    t.strictSame(grown.candidates(query, capacity), candidates)
  }
})

t.test('the grid is walked where many entities are in the way, and given up where too many are', async t => {
  const rows = 4000
  const index = new GeoIndex(rows)
  const place = (row: number): Geometry => ({
    type: 'Point',
    coordinates: [(row % 100) / 1000, Math.floor(row / 100) / 1000],
  })
  for (let row = 0; row < rows; row++) index.set(row, place(row))
  const few = ask('coveredBy', 'box', '0,0;0.0055,0.0055')
  t.equal(index.candidates(few, rows)?.length, 36)
  const tooMany = ask('coveredBy', 'box', '0,0;1,1')
  t.equal(index.candidates(tooMany, rows), undefined)
  t.equal(found(index, tooMany, rows).length, rows)
  const tooWide = ask('coveredBy', 'box', '-10,-10;-5,-5')
  t.equal(index.candidates(tooWide, rows), undefined)
  t.equal(index.candidates(ask('disjoint', 'box', '0,0;1,1'), rows), undefined, 'anything may match')
})

t.test('a row that may match is a candidate once, though two boxes and several cells lead to it', async t => {
  const rows = 6000
  const index = new GeoIndex(rows)
  for (let row = 0; row < 200; row++) index.set(row, { type: 'Point', coordinates: [180 - row / 100_000, 0] })
  index.set(300, { type: 'Point', coordinates: [-180, 0] })
  index.set(200, wkt('LINESTRING (-180 0, 180 0)'))
  const candidates = index.candidates(ask('near;maxDistance:1000', 'point', '0,180'), rows)
  t.ok(candidates)
  t.strictSame(
    [...candidates!],
    [...new Set(candidates)].sort((a, b) => a - b),
  )
  t.ok(candidates!.includes(300) && candidates!.includes(0) && candidates!.includes(200))
})

t.test('points are returned for the order by distance, and nothing else is', async t => {
  const index = new GeoIndex(4)
  index.set(0, { type: 'Point', coordinates: [1, 2, 300] as unknown as Position })
  index.set(1, wkt('LINESTRING (0 0, 1 1)'))
  t.strictSame(index.pointOf(0), { type: 'Point', coordinates: [1, 2] })
  t.equal(index.pointOf(1), undefined)
  t.equal(index.pointOf(2), undefined)
})

t.test('an index that is done with a shape needs no memory for it any more', async t => {
  const index = new GeoIndex(16)
  const empty = index.bytes
  index.set(3, wkt('LINESTRING (0 0, 1 1)'))
  t.ok(index.bytes > empty)
  index.set(3, { type: 'Point', coordinates: [0, 0] })
  t.equal(index.bytes, empty)
  index.grow(32)
  t.equal(index.bytes, empty + 16 * placeBytes)
})
