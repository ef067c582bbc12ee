// Distances: known ones, laws, and edges against a walk along them in small steps.

import t from 'tap'
import { distanceBetween, distanceToLines, earthRadiusMetres } from '../../../src/domain/places/distance.js'
import { distanceTo, matchesGeo } from '../../../src/domain/places/geo.js'
import { boundsOf, type GeoQuery, parseGeoQuery } from '../../../src/domain/places/geo-query.js'
import type { Geometry, Position } from '../../../src/domain/places/location.js'
import { boundsOfGeometry, overlap } from '../../../src/domain/places/plane.js'
import fc from '../../support/properties.js'
import { wkt } from '../../support/wkt.js'

const degree = (Math.PI / 180) * earthRadiusMetres

const near = (georel: string, [longitude, latitude]: Position): GeoQuery => {
  const parsed = parseGeoQuery({ georel, geometry: 'point', coords: `${latitude},${longitude}` }, 'url')
  if (!parsed.ok || !parsed.value) throw new Error(JSON.stringify(parsed))
  return parsed.value
}

const known: readonly [from: Position, location: string, metres: number][] = [
  [[0, 0], 'POINT (0 0)', 0],
  [[0, 0], 'POINT (0 1)', degree],
  [[0, 0], 'POINT (1 0)', degree],
  [[0, 60], 'POINT (180 60)', 60 * degree],
  [[-180, 10], 'POINT (180 10)', 0],
  [[0, 0], 'POINT (180 0)', 180 * degree],
  [[13, 90], 'POINT (-50 89)', degree],
  [[0, 0], 'MULTIPOINT (5 5, 0 2, -3 0)', 2 * degree],
  // Through the place, beside it, beyond its ends.
  [[1, 1], 'LINESTRING (0 0, 3 3)', 0],
  [[0, 0], 'LINESTRING (-3 1, 0 1)', degree],
  [[0, 0], 'LINESTRING (1 -40, 1 40)', degree],
  [[0, 0], 'LINESTRING (2 0, 5 0)', 2 * degree],
  [[0, 0], 'LINESTRING (2 0, 2 0)', 2 * degree],
  [[13, 90], 'LINESTRING (-180 90, 180 90)', 0],
  // Along a parallel, which is no great circle: from the pole all of it is equally far.
  [[0, 90], 'LINESTRING (-170 80, 170 80)', 10 * degree],
  [[0, 80], 'LINESTRING (90 80, 180 80)', Math.acos(Math.sin((80 * Math.PI) / 180) ** 2) * earthRadiusMetres],
  // To both sides of the antimeridian.
  [[179.5, 0], 'LINESTRING (-179.5 -1, -179.5 1)', degree],
  // Within a polygon, on its border, in its hole, on the border of that.
  [[1, 1], 'POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0))', 0],
  [[0, 5], 'POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0))', 0],
  [[5, 0.5], 'POLYGON ((0 -9, 9 -9, 9 9, 0 9, 0 -9), (1 -4, 8 -4, 8 2, 1 2, 1 -4))', 1.5 * degree],
  [[1, 1], 'POLYGON ((0 -9, 9 -9, 9 9, 0 9, 0 -9), (1 -4, 8 -4, 8 2, 1 2, 1 -4))', 0],
  [[0, 0], 'MULTIPOLYGON (((5 5, 6 5, 5 6, 5 5)), ((3 -1, 4 -1, 4 1, 3 1, 3 -1)))', 3 * degree],
  [[0, 0], 'MULTILINESTRING ((5 5, 6 5), (3 -1, 3 1))', 3 * degree],
]

t.test('known distances', async t => {
  for (const [from, location, metres] of known) {
    const found = distanceTo(near('near;minDistance:0', from), wkt(location))
    t.ok(Math.abs(found - metres) < 0.2, `${from} ${location}: ${found}, expected ${metres}`)
  }
})

t.test('a shape that is no point has no distance', async t => {
  const parsed = parseGeoQuery({ georel: 'intersects', geometry: 'line', coords: '0,0;1,1' }, 'url')
  t.equal(parsed.ok && distanceTo(parsed.value!, wkt('POINT (9 9)')), 0)
})

// Places near the poles and the antimeridian are more frequent than by chance.
const longitude = fc.oneof(
  fc.double({ min: -180, max: 180, noNaN: true }),
  fc.double({ min: 179.9, max: 180, noNaN: true }),
  fc.constantFrom(-180, 180, 0, -179.99),
)
const latitude = fc.oneof(
  fc.double({ min: -90, max: 90, noNaN: true }),
  fc.double({ min: 89.9, max: 90, noNaN: true }),
  fc.constantFrom(-90, 90, 0, -89.99),
)
const place = fc.tuple(longitude, latitude) as fc.Arbitrary<Position>

t.test('the way back is as long, and detours are not shorter', async () => {
  fc.assert(
    fc.property(place, place, place, (a, b, c) => {
      const direct = distanceBetween(a, b)
      return direct === distanceBetween(b, a) && direct <= distanceBetween(a, c) + distanceBetween(c, b) + 1
    }),
  )
})

/** The distance found by walking along the edge in steps, and a lower bound for places between two steps. */
function walk(from: Position, a: Position, b: Position): [metres: number, atLeast: number] {
  const steps = 400
  const at = (share: number): Position => [a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share]
  let [low, high, nearest] = [0, 1, Number.POSITIVE_INFINITY]
  let atLeast = 0
  for (let zoom = 0; zoom < 4; zoom++) {
    let best = low
    for (let step = 0; step <= steps; step++) {
      const share = low + ((high - low) * step) / steps
      const metres = distanceBetween(from, at(share))
      if (metres < nearest) [nearest, best] = [metres, share]
    }
    const stride = (high - low) / steps
    if (zoom === 0) atLeast = nearest - (stride / 2) * degree * Math.hypot(b[0] - a[0], b[1] - a[1])
    low = Math.max(0, best - stride)
    high = Math.min(1, best + stride)
  }
  return [nearest, atLeast]
}

t.test('the nearest point of an edge is found by walking along it', async t => {
  const near = fc.double({ min: -0.5, max: 0.5, noNaN: true })
  const close = place.chain(([x, y]) =>
    fc.tuple(near, near, near, near).map(([x1, y1, x2, y2]): [Position, Position, Position] => [
      [x, y],
      [x + x1, y + y1],
      [x + x2, y + y2],
    ]),
  )
  let worst = 0
  fc.assert(
    fc.property(fc.oneof(fc.tuple(place, place, place), close), ([from, a, b]) => {
      const found = distanceToLines(from, [[a, b]])
      const [walked, atLeast] = walk(from, a, b)
      worst = Math.max(worst, found - walked)
      return found <= walked + 1e-3 + walked * 1e-8 && found >= atLeast - 0.2
    }),
    { numRuns: 1000 },
  )
  t.comment(`at most ${worst} m farther than walked`)
})

const geometry: fc.Arbitrary<Geometry> = fc.oneof(
  place.map((coordinates): Geometry => ({ type: 'Point', coordinates })),
  fc.array(place, { minLength: 1, maxLength: 3 }).map((coordinates): Geometry => ({ type: 'MultiPoint', coordinates })),
  fc.array(place, { minLength: 2, maxLength: 4 }).map((coordinates): Geometry => ({ type: 'LineString', coordinates })),
)

t.test('near matches by distance, and its bounds hold every match', async () => {
  const metres = fc.oneof(fc.constant(0), fc.integer({ max: 20_100_000, min: 0 }), fc.integer({ max: 20_000, min: 0 }))
  fc.assert(
    fc.property(place, metres, geometry, (from, max, stored) => {
      const query = near(`near;maxDistance:${max}`, from)
      const bounds = boundsOfGeometry(stored)
      const isNear = distanceTo(query, stored) <= max
      const inBoxes = query.boxes === undefined || query.boxes.some(box => overlap(box, bounds))
      const inBounds = boundsOf(query) === undefined || overlap(boundsOf(query)!, bounds)
      return matchesGeo(query, stored) === isNear && (!isNear || (inBoxes && inBounds))
    }),
    { numRuns: 3000 },
  )
})

t.test('a place at the given distance in any direction is within the bounds', async () => {
  fc.assert(
    fc.property(
      place,
      fc.double({ min: 0, max: 360, noNaN: true }),
      fc.oneof(fc.double({ min: 0, max: 20_015_000, noNaN: true }), fc.double({ min: 0, max: 50_000, noNaN: true })),
      (from, bearing, metres) => {
        const [longitude, latitude] = from.map(n => (n * Math.PI) / 180) as [number, number]
        const angle = metres / earthRadiusMetres
        const course = (bearing * Math.PI) / 180
        const sin = Math.sin(latitude) * Math.cos(angle) + Math.cos(latitude) * Math.sin(angle) * Math.cos(course)
        const y = Math.sin(course) * Math.sin(angle) * Math.cos(latitude)
        const x = Math.cos(angle) - Math.sin(latitude) * sin
        const found = ((longitude + Math.atan2(y, x)) * 180) / Math.PI
        const to: Position = [
          found > 180 ? found - 360 : found < -180 ? found + 360 : found,
          (Math.asin(Math.max(-1, Math.min(1, sin))) * 180) / Math.PI,
        ]
        const max = distanceBetween(from, to)
        return matchesGeo(near(`near;maxDistance:${max}`, from), { type: 'Point', coordinates: to })
      },
    ),
    { numRuns: 3000 },
  )
})
