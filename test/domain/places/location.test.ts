// Locations: GeoJSON and the legacy forms. Columns of the tables: the sent value, and the geometry or the text of the
// refusal.

import t from 'tap'
import type { Json } from '../../../src/domain/json.js'
import { checkLocation, type Geometry, isLocationType, renderedLocation } from '../../../src/domain/places/location.js'
import { refusalText } from '../../../src/domain/refusal.js'
import { positions } from '../../support/positions.js'
import fc from '../../support/properties.js'

const check = (type: string, value: Json): Geometry | undefined | string => {
  const result = checkLocation(type, value, '')
  if (result.ok) return result.value
  t.equal(result.refusal.kind, 'BadRequest')
  return refusalText(result.refusal).replace('error parsing location attribute: ', '… ')
}

const square = positions('0 0, 2 0, 2 2, 0 2, 0 0')
const hole = positions('0.5 0.5, 1 0.5, 1 1, 0.5 0.5')
const bowTie = positions('0 0, 1 1, 1 0, 0 1, 0 0')
const point = { type: 'Point', coordinates: [2.2, 41.4] }
const feature = { type: 'Feature', properties: { name: 'x' }, geometry: point }

const geometries: Json[] = [
  point,
  { type: 'Point', coordinates: [2.2, 41.4, 100] },
  { type: 'Point', coordinates: [-180, 90] },
  { type: 'MultiPoint', coordinates: positions('0 0, 0 0') },
  { type: 'LineString', coordinates: positions('0 0, 1 1') },
  { type: 'MultiLineString', coordinates: [positions('0 0, 1 1'), positions('1 1, 2 2, 0 0')] },
  { type: 'Polygon', coordinates: [square] },
  { type: 'Polygon', coordinates: [square, hole] },
  { type: 'MultiPolygon', coordinates: [[square], [square, hole]] },
]

t.test('the six kinds of geometry are accepted as they are', async t => {
  for (const geometry of geometries) t.strictSame(check('geo:json', geometry), geometry, JSON.stringify(geometry))
})

t.test('members that no rule looks at are accepted and left out of the geometry', async t => {
  t.strictSame(check('geo:json', { bbox: [0, 0, 1, 1], ...point }), point)
})

const wrong: Json[] = [
  {},
  { type: 'Point' },
  { coordinates: [0, 0] },
  { type: 'point', coordinates: [0, 0] },
  { type: 'Circle', coordinates: [0, 0] },
  { type: 'constructor', coordinates: [0, 0] },
  { type: 'Point', coordinates: [0] },
  { type: 'Point', coordinates: ['0', '0'] },
  { type: 'Point', coordinates: [0, 0, '0'] },
  { type: 'Point', coordinates: [0, Number.POSITIVE_INFINITY] },
  { type: 'Point', coordinates: [180.1, 0] },
  { type: 'Point', coordinates: [0, -90.1] },
  { type: 'Point', coordinates: [[0, 0]] },
  { type: 'Point', coordinates: { 0: 0, 1: 0 } },
  { type: 'MultiPoint', coordinates: [] },
  { type: 'MultiPoint', coordinates: [0, 0] },
  { type: 'LineString', coordinates: [[0, 0]] },
  { type: 'MultiLineString', coordinates: [[[0, 0]]] },
  { type: 'Polygon', coordinates: [] },
  { type: 'Polygon', coordinates: square },
  { type: 'Polygon', coordinates: [square.slice(0, 4)] },
  { type: 'Polygon', coordinates: [positions('0 0, 1 1, 0 0')] },
  { type: 'Polygon', coordinates: [bowTie] },
  { type: 'Polygon', coordinates: [square, bowTie] },
  { type: 'MultiPolygon', coordinates: [[square], [bowTie]] },
  { type: 'GeometryCollection', geometries: [point] },
  { type: 'Feature', geometry: feature },
  { type: 'Feature', geometry: { type: 'Point', coordinates: [0] } },
  { type: 'Feature', geometry: { type: 'GeometryCollection', geometries: [] } },
  { type: 'FeatureCollection', features: [point] },
  { type: 'FeatureCollection', features: [null] },
]

t.test('an object that is not valid GeoJSON is refused', async t => {
  for (const value of wrong) t.equal(check('geo:json', value), 'Wrong GeoJson', JSON.stringify(value))
})

t.test('geo:json needs an object', async t => {
  for (const value of ['a', 1, true, [], [0, 0]])
    t.equal(check('geo:json', value), 'geo:json needs an object or null as value', JSON.stringify(value))
})

t.test('null is no location, for every type', async t => {
  for (const type of ['geo:json', 'geo:point', 'geo:line', 'geo:box', 'geo:polygon', 'Text'])
    t.equal(check(type, null), undefined, type)
})

t.test('a feature means its geometry', async t => {
  t.strictSame(check('geo:json', feature), point)
  t.strictSame(check('geo:json', { type: 'FeatureCollection', features: [feature] }), point)
})

const featureErrors: [value: Json, text: string][] = [
  [{ type: 'Feature' }, '… geometry in Feature not found'],
  [{ type: 'Feature', geometry: null }, '… geometry in Feature is not an object'],
  [{ type: 'Feature', geometry: [0, 0] }, '… geometry in Feature is not an object'],
  [{ type: 'FeatureCollection' }, '… features field not found in FeatureCollection'],
  [{ type: 'FeatureCollection', features: {} }, '… features in FeatureCollection is not an array'],
  [{ type: 'FeatureCollection', features: [] }, '… features in FeatureCollection has 0 items'],
  [{ type: 'FeatureCollection', features: [feature, feature] }, '… features in FeatureCollection has more than 1 item'],
  [{ type: 'FeatureCollection', features: [{ type: 'Feature' }] }, '… geometry in Feature not found'],
]

t.test('problems of features have their own texts', async t => {
  for (const [value, text] of featureErrors) t.equal(check('geo:json', value), text, JSON.stringify(value))
})

t.test('the text names whether a new or an existing attribute failed', async t => {
  t.match(checkLocation('geo:json', { type: 'Feature' }, ' for new attribute'), {
    refusal: { code: 'featureWithoutGeometry', prefix: ' for new attribute' },
  })
  t.match(checkLocation('geo:line', 1, ' for existing attribute'), {
    refusal: { code: 'legacyLocationNotArray', prefix: ' for existing attribute' },
  })
})

const legacy: [type: string, value: Json, geometry: Json][] = [
  ['geo:point', '41.4, 2.2', { type: 'Point', coordinates: [2.2, 41.4] }],
  ['geo:point', ' \t-41.4e0 ,+2 ', { type: 'Point', coordinates: [2, -41.4] }],
  ['geo:point', '.5,90e-1', { type: 'Point', coordinates: [9, 0.5] }],
  ['geo:line', ['1, 2', '3, 4'], { type: 'LineString', coordinates: positions('2 1, 4 3') }],
  ['geo:box', ['40, 2', '41, 1'], { type: 'Polygon', coordinates: [positions('1 40, 2 40, 2 41, 1 41, 1 40')] }],
  ['geo:polygon', ['0,0', '0,1', '2,0', '0,0'], { type: 'Polygon', coordinates: [positions('0 0, 1 0, 0 2, 0 0')] }],
]

t.test('legacy forms give latitude first', async t => {
  for (const [type, value, geometry] of legacy) t.strictSame(check(type, value), geometry, `${type} ${value}`)
})

const format = (value: string): string => `… geo coordinates format error [see Orion user manual]: ${value}`
const notArray = '… geo:line, geo:box and geo:polygon needs array of strings as value'
const notString = '… geo:line, geo:box and geo:polygon needs array of strings but some element is not a string'

const legacyErrors: [type: string, value: Json, text: string][] = [
  ...[
    '',
    '41.4',
    '41.4,',
    ',2.2',
    '41.4;2.2',
    '1,2,3',
    'a,b',
    '1 2,3',
    '0x1,2',
    '91,0',
    '0,181',
    '1e999,0',
    '1,2\n',
  ].map((value): [string, Json, string] => ['geo:point', value, format(value)]),
  ['geo:point', 5, format('5')],
  ['geo:point', ['1,2'], format('["1,2"]')],
  ['geo:line', '1,2', notArray],
  ['geo:box', { a: 1 }, notArray],
  ['geo:polygon', 1, notArray],
  ['geo:line', ['1,2', 3], notString],
  ['geo:line', ['1,2'], '… geo:line uses at least 2 coordinates'],
  ['geo:line', ['1,2', '3;4'], format('3;4')],
  ['geo:box', ['1,2'], '… geo:box uses exactly 2 coordinates'],
  ['geo:box', ['1,2', '3,4', '5,6'], '… geo:box uses exactly 2 coordinates'],
  ['geo:box', ['1,2', '1,4'], '… geo:box coordinates are not defining an actual box'],
  ['geo:box', ['1,2', '3,2'], '… geo:box coordinates are not defining an actual box'],
  ['geo:polygon', ['0,0', '0,1', '0,0'], '… geo:polygon uses at least 4 coordinates'],
  ['geo:polygon', ['0,0', '0,1', '2,0', '0,0.1'], '… geo:polygon first and last coordinates must match'],
  ['geo:polygon', ['0,0', '1,1', '1,0', '0,1', '0,0'], 'Wrong GeoJson'],
]

t.test('problems of legacy forms have their own texts', async t => {
  for (const [type, value, text] of legacyErrors) t.equal(check(type, value), text, `${type} ${JSON.stringify(value)}`)
})

t.test('five types are locations', async t => {
  for (const type of ['geo:json', 'geo:point', 'geo:line', 'geo:box', 'geo:polygon']) t.ok(isLocationType(type), type)
  for (const type of ['', 'geo', 'geo:circle', 'GEO:JSON', 'constructor']) t.notOk(isLocationType(type), type)
})

t.test('a feature is rendered as its geometry, anything else as it is', async t => {
  t.equal(renderedLocation(feature), point)
  t.equal(renderedLocation({ type: 'FeatureCollection', features: [feature] }), point)
  for (const value of [
    null,
    'a',
    point,
    { type: 'Feature' },
    { type: 'FeatureCollection', features: [feature, feature] },
  ])
    t.equal(renderedLocation(value), value)
})

t.test('any position in range can be sent in both ways', async () => {
  const latitude = fc.double({ min: -90, max: 90, noNaN: true })
  const longitude = fc.double({ min: -180, max: 180, noNaN: true })
  fc.assert(
    fc.property(latitude, longitude, (lat, lon) => {
      const asLegacy = check('geo:point', `${lat}, ${lon}`) as Geometry
      const asGeoJson = check('geo:json', { type: 'Point', coordinates: [lon, lat] }) as Geometry
      const [x, y] = asLegacy.coordinates as [number, number]
      const [u, v] = asGeoJson.coordinates as [number, number]
      return x === lon && y === lat && u === lon && v === lat
    }),
  )
})
