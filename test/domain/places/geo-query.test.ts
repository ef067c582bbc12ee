// Reading geographical queries: refusals and their order, and the properties of a query before it is compared with a
// location.

import t from 'tap'
import { boundsOf, type GeoQuery, type GivenGeoQuery, parseGeoQuery } from '../../../src/domain/places/geo-query.js'
import { type GeoQuerySource, refusalText } from '../../../src/domain/refusal.js'
import { errors } from '../../cases/geo.js'
import { positions } from '../../support/positions.js'
import fc from '../../support/properties.js'

const read = (given: GivenGeoQuery, source: GeoQuerySource = 'url'): GeoQuery | undefined | string => {
  const parsed = parseGeoQuery(given, source)
  if (parsed.ok) return parsed.value
  t.equal(parsed.refusal.kind, 'BadRequest')
  return refusalText(parsed.refusal)
}

t.test('wrong queries are refused, with a prefix for their source', async t => {
  for (const [geometry, georel, coords, text] of errors) {
    const name = `${geometry} ${georel} ${coords.slice(0, 40)}`
    t.equal(read({ geometry, georel, coords }, 'url'), `Invalid query: ${text}`, name)
    t.equal(read({ geometry, georel, coords }, 'payload'), `error parsing geo-query fields: ${text}`, name)
  }
})

const [georel, geometry, coords] = ['intersects', 'point', '1,2']
const noCoords = 'Invalid query: URI param /geometry/ used without /coords/'
const noGeometry = 'Invalid query: URI param /coords/ used without /geometry/'
const noPart = 'partial geo expression: geometry, georel and coords have to be provided together'

const parts: readonly [given: GivenGeoQuery, url: string | undefined, payload: string | undefined][] = [
  [{}, undefined, undefined],
  [{ geometry }, noCoords, noPart],
  [{ geometry, georel }, noCoords, noPart],
  [{ geometry: 'circle' }, noCoords, noPart],
  [{ coords }, noGeometry, noPart],
  [{ coords, georel }, noGeometry, noPart],
  [{ georel }, 'Invalid query: URI param /georel/ used without /geometry/', noPart],
  [{ geometry, coords }, undefined, noPart],
  [{ geometry, coords: 'x' }, 'Invalid query: invalid point in URI param /coords/', noPart],
  [{ geometry: 'line', coords }, 'Invalid query: invalid number of coordinates for /line/', noPart],
]

t.test('the three belong together, and a URL without georel is checked and not asked', async t => {
  for (const [given, url, payload] of parts) {
    t.equal(read(given, 'url'), url, JSON.stringify(given))
    t.equal(read(given, 'payload'), payload, JSON.stringify(given))
  }
})

t.test('coords are latitude first, with blanks around numbers', async t => {
  const query = read({ georel, geometry: 'line', coords: ' 40.418889, -3.691944;.5 ,\t1e1' }, 'payload')
  t.match(query, { shape: { type: 'LineString', coordinates: positions('-3.691944 40.418889, 10 0.5') } })
})

t.test('a box is a ring that begins in the southwest, for all corners', async t => {
  for (const coords of ['40,2;41,1', '41,1;40,2', '40,1;41,2', '41,2;40,1'])
    t.match(read({ georel, geometry: 'box', coords }), {
      shape: { type: 'Polygon', coordinates: [positions('1 40, 2 40, 2 41, 1 41, 1 40')] },
    })
})

t.test('distances are metres, with decimals, in any order', async t => {
  const distances = (georel: string): unknown => {
    const { distanceMetresMin, distanceMetresMax } = read({ georel, geometry, coords }) as GeoQuery
    return [distanceMetresMin, distanceMetresMax]
  }
  t.strictSame(distances('near;maxDistance:12.5'), [0, 12.5])
  t.strictSame(distances('minDistance:1e3;near'), [1000, Number.POSITIVE_INFINITY])
  t.strictSame(distances('minDistance:.5;maxDistance:0;near'), [0.5, 0])
})

t.test('a query is plain data, which another thread may get', async t => {
  const query = read({ georel, geometry: 'polygon', coords: '0,0;0,4;2,0;0,0' }) as GeoQuery
  t.strictSame(structuredClone(query), query)
})

t.test('a query that may match anywhere has no bounds', async t => {
  const unbounded = ['disjoint', 'near;minDistance:5', 'near;maxDistance:20015100']
  for (const georel of unbounded) t.equal(boundsOf(read({ georel, geometry, coords }) as GeoQuery), undefined, georel)
})

const near = (metres: number, coords: string): GeoQuery =>
  read({ georel: `near;maxDistance:${metres}`, geometry, coords }) as GeoQuery

t.test('the surroundings of a place are one box, two at the antimeridian, all around at a pole', async t => {
  const shown = (query: GeoQuery): string[] =>
    query.boxes!.map(box => [box.west, box.south, box.east, box.north].map(n => n.toFixed(2)).join(' '))
  t.strictSame(shown(near(111_195, '0,10')), ['9.00 -1.00 11.00 1.00'])
  t.strictSame(shown(near(111_195, '60,10')), ['8.00 59.00 12.00 61.00'])
  t.strictSame(shown(near(111_195, '0,-179.5')), ['-180.00 -1.00 -178.50 1.00', '179.50 -1.00 180.00 1.00'])
  t.strictSame(shown(near(111_195, '0,180')), ['179.00 -1.00 180.00 1.00', '-180.00 -1.00 -179.00 1.00'])
  t.strictSame(shown(near(111_195, '89.5,10')), ['-180.00 88.50 180.00 90.00'])
  t.strictSame(shown(near(111_195, '-89,10')), ['-180.00 -90.00 180.00 -88.00'])
  t.match(boundsOf(near(111_195, '0,180')), { west: -180, east: 180 })
})

t.test('every text is accepted or refused, and none throws', async () => {
  const words = fc.constantFrom(
    'near',
    'point',
    'maxDistance:',
    'box',
    'polygon',
    'equals',
    ';',
    ',',
    '1',
    '-',
    '.',
    'e',
    ' ',
  )
  const text = fc.option(
    fc.oneof(
      fc.string(),
      fc.array(words).map(parts => parts.join('')),
    ),
    { nil: undefined },
  )
  fc.assert(
    fc.property(text, text, text, fc.constantFrom('url', 'payload'), (georel, geometry, coords, source) => {
      const parsed = parseGeoQuery({ georel, geometry, coords }, source)
      return parsed.ok || refusalText(parsed.refusal).length > 0
    }),
  )
})
