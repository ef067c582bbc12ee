// Geographical queries against locations: the tables, and a slow model that is exact on small grids.

import t, { type Test } from 'tap'
import { type Attribute, type Entity, noMetadata } from '../../../src/domain/entities/entity.js'
import type { Json } from '../../../src/domain/json.js'
import { locationOf, matchesGeo } from '../../../src/domain/places/geo.js'
import { boundsOf, type GeoQuery, parseGeoQuery } from '../../../src/domain/places/geo-query.js'
import type { Geometry, Position } from '../../../src/domain/places/location.js'
import { boundsOfGeometry, overlap } from '../../../src/domain/places/plane.js'
import { isSimpleRing } from '../../../src/domain/places/ring.js'
import { cases, casesAtTheEdge, type GeoCase, type Location, locations, locationsAtTheEdge } from '../../cases/geo.js'
import fc from '../../support/properties.js'
import { wkt } from '../../support/wkt.js'

function ask(georel: string, geometry: string, coords: string): GeoQuery {
  const parsed = parseGeoQuery({ georel, geometry, coords }, 'url')
  if (!parsed.ok || !parsed.value) throw new Error(`${georel} ${geometry} ${coords}: ${JSON.stringify(parsed)}`)
  return parsed.value
}

function check(t: Test, stored: readonly Location[], asked: readonly GeoCase[]): void {
  for (const { georel, geometry, coords, matches, allBut } of asked) {
    const query = ask(georel, geometry, coords)
    const names = new Set(matches.split(' '))
    const expected = stored.map(([name]) => name).filter(name => names.has(name) !== (allBut ?? false))
    const found = stored.filter(([, text]) => matchesGeo(query, wkt(text))).map(([name]) => name)
    t.strictSame(found, expected, `${georel} ${geometry} ${coords}`)
  }
}

t.test('the matches of the table', async t => check(t, locations, cases))

t.test('the matches at the antimeridian and the poles', async t => check(t, locationsAtTheEdge, casesAtTheEdge))

t.test('an altitude does not keep a point from being equal', async t => {
  t.ok(matchesGeo(ask('equals', 'point', '1,2'), { type: 'Point', coordinates: [2, 1, 300] }))
})

// The location of an entity

const attribute = (type: string, value: Json, metadata = noMetadata): Attribute => ({
  type,
  value,
  metadata,
  createdMs: 0,
  modifiedMs: 0,
})

const entity = (attributes: Record<string, Attribute>): Entity => ({
  id: 'urn:lamp:1',
  type: 'Lamp',
  attributes: new Map(Object.entries(attributes)),
  created: 0,
  modifiedMs: 0,
})

const ignored = new Map([['ignoreType', { type: 'Boolean', value: true }]])

t.test('the location of an entity is its one location attribute', async t => {
  const found = locationOf(
    entity({
      name: attribute('Text', '3, 4'),
      none: attribute('geo:json', null),
      other: attribute('geo:point', '5, 6', ignored),
      place: attribute('geo:point', '1, 2'),
    }),
  )
  t.strictSame(found, { type: 'Point', coordinates: [2, 1] })
})

t.test('a stored location that cannot be read is none', async t => {
  for (const value of ['x', 5, {}, { type: 'Point' }, [['a']], { type: 'FeatureCollection', features: [null] }])
    for (const type of ['geo:json', 'geo:point', 'geo:line', 'geo:box', 'geo:polygon'])
      t.equal(locationOf(entity({ place: attribute(type, value) })), undefined, `${type} ${JSON.stringify(value)}`)
  t.equal(locationOf(entity({})), undefined)
})

// The model. It takes the corners of all edges of both shapes, and the points where edges cross. These points, the
// points halfway between any two of them and the centres of any three reach every corner, edge and face into which the
// edges cut the plane. A shape has each of these as a whole or not at all. Coordinates are whole numbers over a common
// one, so that nothing is rounded.

type Spot = readonly [x: number, y: number, over: number]
type Shape = { readonly points: Position[]; readonly lines: Position[][]; readonly areas: Position[][][] }

const sideOf = ([ax, ay]: Position, [bx, by]: Position, [x, y, over]: Spot): number =>
  (bx - ax) * (y - ay * over) - (by - ay) * (x - ax * over)

const between = (a: number, b: number, n: number): boolean => Math.min(a, b) <= n && n <= Math.max(a, b)

const isOnEdge = (a: Position, b: Position, spot: Spot): boolean => {
  const [x, y, over] = spot
  return sideOf(a, b, spot) === 0 && between(a[0] * over, b[0] * over, x) && between(a[1] * over, b[1] * over, y)
}

const edgesOf = (line: readonly Position[]): [Position, Position][] =>
  line.slice(1).map((to, at): [Position, Position] => [line[at]!, to])

const isOnLine = (line: readonly Position[], spot: Spot): boolean =>
  edgesOf(line).some(([a, b]) => isOnEdge(a, b, spot))

/** Whether the ring winds around the spot. */
const winds = (ring: readonly Position[], spot: Spot): boolean => {
  let winding = 0
  for (const [a, b] of edgesOf(ring)) {
    const [, y, over] = spot
    if (a[1] * over <= y && b[1] * over > y && sideOf(a, b, spot) > 0) winding++
    if (a[1] * over > y && b[1] * over <= y && sideOf(a, b, spot) < 0) winding--
  }
  return winding !== 0
}

const holds = (shape: Shape, spot: Spot): boolean =>
  shape.points.some(point => isOnEdge(point, point, spot)) ||
  shape.lines.some(line => isOnLine(line, spot)) ||
  shape.areas.some(
    ([outer, ...inner]) =>
      [outer!, ...inner].some(ring => isOnLine(ring, spot)) ||
      (winds(outer!, spot) && !inner.some(ring => winds(ring, spot))),
  )

function shapeOf(geometry: Geometry): Shape {
  const none = { points: [], lines: [], areas: [] }
  const coordinates = geometry.coordinates as never
  switch (geometry.type) {
    case 'Point':
      return { ...none, points: [coordinates] }
    case 'MultiPoint':
      return { ...none, points: coordinates }
    case 'LineString':
      return { ...none, lines: [coordinates] }
    case 'MultiLineString':
      return { ...none, lines: coordinates }
    case 'Polygon':
      return { ...none, areas: [coordinates] }
    case 'MultiPolygon':
      return { ...none, areas: coordinates }
  }
}

function spotsOf(shapes: readonly Shape[]): Spot[] {
  const lines = shapes.flatMap(shape => [...shape.lines, ...shape.areas.flat()])
  const edges = lines.flatMap(edgesOf)
  const corners = new Map<string, Spot>()
  const add = (spot: Spot): unknown => corners.set(`${spot[0] / spot[2]} ${spot[1] / spot[2]}`, spot)
  for (const point of [...shapes.flatMap(shape => shape.points), ...lines.flat()]) add([point[0], point[1], 1])
  for (const [a, b] of edges)
    for (const [c, d] of edges) {
      const from = sideOf(c, d, [a[0], a[1], 1])
      const to = sideOf(c, d, [b[0], b[1], 1])
      const over = Math.abs(from - to)
      if (over === 0) continue
      const sign = Math.sign(from - to)
      const spot: Spot = [sign * (from * b[0] - to * a[0]), sign * (from * b[1] - to * a[1]), over]
      if (isOnEdge(a, b, spot)) add(spot)
    }
  const found = [...corners.values()]
  const spots = [...found]
  for (const [i, [ax, ay, aw]] of found.entries())
    for (const [j, [bx, by, bw]] of found.slice(0, i).entries()) {
      spots.push([ax * bw + bx * aw, ay * bw + by * aw, 2 * aw * bw])
      for (const [cx, cy, cw] of found.slice(0, j))
        spots.push([
          ax * bw * cw + bx * aw * cw + cx * aw * bw,
          ay * bw * cw + by * aw * cw + cy * aw * bw,
          3 * aw * bw * cw,
        ])
    }
  return spots
}

const gridMax = 4
const position = fc.tuple(fc.nat(gridMax), fc.nat(gridMax)) as fc.Arbitrary<Position>
const line = fc.array(position, { minLength: 2, maxLength: 4 })
const ring = fc
  .uniqueArray(position, { minLength: 3, maxLength: 6, selector: String })
  .map(corners => [...corners, corners[0]!])
  .filter(isSimpleRing)
const rings = fc.oneof({ weight: 3, arbitrary: ring.map(outer => [outer]) }, fc.tuple(ring, ring))

const geometry = fc.oneof(
  position.map((coordinates): Geometry => ({ type: 'Point', coordinates })),
  fc
    .array(position, { minLength: 1, maxLength: 3 })
    .map((coordinates): Geometry => ({ type: 'MultiPoint', coordinates })),
  line.map((coordinates): Geometry => ({ type: 'LineString', coordinates })),
  fc
    .array(line, { minLength: 1, maxLength: 2 })
    .map((coordinates): Geometry => ({ type: 'MultiLineString', coordinates })),
  rings.map((coordinates): Geometry => ({ type: 'Polygon', coordinates })),
  fc
    .array(rings, { minLength: 1, maxLength: 2 })
    .map((coordinates): Geometry => ({ type: 'MultiPolygon', coordinates })),
)

const asCoords = (positions: readonly Position[]): string => positions.map(([x, y]) => `${y},${x}`).join(';')
const point: fc.Arbitrary<[word: string, coords: string]> = position.map(one => ['point', asCoords([one])])
const path: fc.Arbitrary<[word: string, coords: string]> = line.map(one => ['line', asCoords(one)])
const area: fc.Arbitrary<[word: string, coords: string]> = ring.map(one => ['polygon', asCoords(one)])
const box: fc.Arbitrary<[word: string, coords: string]> = fc
  .tuple(position, position)
  .filter(([a, b]) => a[0] !== b[0] && a[1] !== b[1])
  .map(corners => ['box', asCoords(corners)])

t.test('intersects and disjoint agree with the model', async () => {
  fc.assert(
    fc.property(fc.oneof(point, path, area, box), geometry, ([word, coords], stored) => {
      const query = ask('intersects', word, coords)
      const shapes = [shapeOf(query.shape), shapeOf(stored)] as const
      const expected = spotsOf(shapes).some(spot => holds(shapes[0], spot) && holds(shapes[1], spot))
      return matchesGeo(query, stored) === expected && matchesGeo(ask('disjoint', word, coords), stored) === !expected
    }),
    { numRuns: 1500 },
  )
})

t.test('coveredBy agrees with the model, and covered shapes intersect', async () => {
  fc.assert(
    fc.property(fc.oneof(area, box), geometry, ([word, coords], stored) => {
      const query = ask('coveredBy', word, coords)
      const shapes = [shapeOf(query.shape), shapeOf(stored)] as const
      const expected = spotsOf(shapes).every(spot => holds(shapes[0], spot) || !holds(shapes[1], spot))
      return (
        matchesGeo(query, stored) === expected && (!expected || matchesGeo(ask('intersects', word, coords), stored))
      )
    }),
    { numRuns: 1500 },
  )
})

t.test('a line or ring within a ring is covered, on grids where most are', async () => {
  // Parts of the ring itself, and lines between its corners.
  const within = ring.chain(outer =>
    fc.tuple(fc.constant(outer), fc.array(fc.constantFrom(...outer), { minLength: 2, maxLength: 4 })),
  )
  fc.assert(
    fc.property(within, ([outer, coordinates]) => {
      const query = ask('coveredBy', 'polygon', asCoords(outer))
      const shapes = [shapeOf(query.shape), shapeOf({ type: 'LineString', coordinates })] as const
      const expected = spotsOf(shapes).every(spot => holds(shapes[0], spot) || !holds(shapes[1], spot))
      return matchesGeo(query, { type: 'LineString', coordinates }) === expected
    }),
    { numRuns: 1500 },
  )
})

t.test('every shape intersects itself, is covered by itself and equals itself', async () => {
  fc.assert(
    fc.property(fc.oneof(point, path, area, box), ([word, coords]) => {
      const { shape } = ask('equals', word, coords)
      const georels = ['equals', 'intersects', ...(shape.type === 'Polygon' ? ['coveredBy'] : [])]
      return georels.every(georel => matchesGeo(ask(georel, word, coords), shape))
    }),
  )
})

t.test('two shapes intersect in either order', async () => {
  const shape = fc.oneof(point, path, area, box)
  fc.assert(
    fc.property(shape, shape, ([word, coords], [otherWord, otherCoords]) => {
      const [first, second] = [ask('intersects', word, coords), ask('intersects', otherWord, otherCoords)]
      return matchesGeo(first, second.shape) === matchesGeo(second, first.shape)
    }),
    { numRuns: 1000 },
  )
})

t.test('shapes of many edges are judged as their pieces are', async () => {
  // A star of up to 200 corners around 0,0: every point of a ray is inside up to the border.
  const star = fc.array(fc.integer({ min: 1, max: 80 }), { minLength: 8, maxLength: 200 })
  const polar = (radius: number, angle: number): Position => [radius * Math.cos(angle), radius * Math.sin(angle)]
  fc.assert(
    fc.property(star, fc.nat(), fc.double({ min: 0, max: 0.999, noNaN: true }), (radii, pick, share) => {
      const angleOf = (at: number): number => (2 * Math.PI * at) / radii.length
      const corners = radii.map((radius, at) => polar(radius, angleOf(at)))
      const coords = asCoords([...corners, corners[0]!])
      const at = pick % radii.length
      const inner = polar(radii[at]! * share, angleOf(at))
      const outer = polar(radii[at]! * 1.001, angleOf(at))
      const query = ask('coveredBy', 'polygon', coords)
      return (
        matchesGeo(query, { type: 'LineString', coordinates: [[0, 0], inner] }) &&
        matchesGeo(query, { type: 'LineString', coordinates: [[0, 0], corners[at]!] }) &&
        !matchesGeo(query, { type: 'LineString', coordinates: [[0, 0], outer] }) &&
        !matchesGeo(query, { type: 'Point', coordinates: outer }) &&
        matchesGeo(ask('intersects', 'line', asCoords([outer, inner])), query.shape)
      )
    }),
  )
})

t.test('the bounds of a query hold every match', async () => {
  fc.assert(
    fc.property(
      fc.constantFrom('coveredBy', 'intersects', 'equals'),
      fc.oneof(area, box),
      geometry,
      (georel, [word, coords], stored) => {
        const query = ask(georel, word, coords)
        return !matchesGeo(query, stored) || overlap(boundsOf(query)!, boundsOfGeometry(stored))
      },
    ),
  )
})
