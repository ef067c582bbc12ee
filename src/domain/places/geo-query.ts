// A geographical query: `georel`, `geometry` and `coords` as one value, ready to be tested on many locations.
//
//   georel=near;maxDistance:1000   geometry=point   coords=41.4,2.2        latitude first, unlike GeoJSON
//
// Parsing makes the checks of docs/interface/errors.md#geography, in that order. It also prepares the data that every
// test needs: the shape's line as a chain, and the boxes outside of which nothing matches. The value may be cloned to
// another thread.
//
// Shapes are in a plane of longitude and latitude. A shape across the antimeridian needs two queries: a polygon with
// corners at 170 and -170 spans the rest of the world. For `near` the antimeridian and the poles are ordinary places.

import { coordsLengthMax, shapePositionsMax } from '../limits.js'
import { accepted, type GeoQuerySource, type Refusal, type Result, refusals, refused } from '../refusal.js'
import { earthRadiusMetres } from './distance.js'
import { boxRing, type Geometry, parseCoordinates } from './location.js'
import { type Bounds, type Chain, chainOf, hull, ringChainOf } from './plane.js'
import { isSame, isSimpleRing, type Position } from './ring.js'

export type Relation = 'near' | 'coveredBy' | 'intersects' | 'equals' | 'disjoint'

/**
 * The geometry as GeoJSON. A polygon has one ring, as given; a box begins in the southwest and turns counterclockwise.
 */
export type Shape = Extract<Geometry, { type: 'Point' | 'LineString' | 'Polygon' }>

export interface GeoQuery {
  readonly relation: Relation
  readonly shape: Shape
  /** The shape's line; the ring of a polygon turns counterclockwise. */
  readonly chain: Chain
  /** Of `near`; 0 and Infinity when not given. */
  readonly distanceMetresMin: number
  readonly distanceMetresMax: number
  /** Every match shares a point with one of these; undefined: anything may match. Two at the antimeridian. */
  readonly boxes: readonly Bounds[] | undefined
}

export interface GivenGeoQuery {
  readonly georel?: string | undefined
  readonly geometry?: string | undefined
  readonly coords?: string | undefined
}

/**
 * The query; undefined when no parameter is given, or when a URL has valid `geometry` and `coords` without `georel`
 * (docs/interface/geography.md#queries). Empty texts count as given; requests refuse them before
 * (docs/interface/requests.md#url-parameters, docs/interface/batch.md#query).
 */
export function parseGeoQuery(given: GivenGeoQuery, source: GeoQuerySource): Result<GeoQuery | undefined> {
  const { georel, geometry, coords } = given
  if (georel === undefined && geometry === undefined && coords === undefined) return accepted(undefined)
  if (source === 'payload' && (georel === undefined || geometry === undefined || coords === undefined))
    return refused(refusals.geoPartial)
  if (coords !== undefined && geometry === undefined) return refused(refusals.coordsWithoutGeometry)
  if (geometry !== undefined && coords === undefined) return refused(refusals.geometryWithoutCoords)
  if (geometry === undefined || coords === undefined) return refused(refusals.georelWithoutGeometry)
  const problem = checkGeometry(geometry, source)
  if (problem) return refused(problem)
  if (georel === undefined) {
    const shape = parseShape(geometry as GeometryWord, coords, source)
    return shape.ok ? accepted(undefined) : shape
  }
  const relation = parseGeorel(georel, source)
  if (!relation.ok) return relation
  const wanted = relation.value
  if (wanted.relation === 'near' && geometry !== 'point') return refused(refusals.nearWithoutPoint(source))
  if (wanted.relation === 'coveredBy' && (geometry === 'point' || geometry === 'line'))
    return refused(refusals.geometryOfCoveredBy(source, geometry))
  const found = parseShape(geometry as GeometryWord, coords, source)
  if (!found.ok) return found
  const shape = found.value
  const chain = shape.type === 'Polygon' ? ringChainOf(shape.coordinates[0]!) : chainOf(positionsOf(shape))
  return accepted({ ...wanted, shape, chain, boxes: boxesAround(wanted, chain) })
}

// Geometry

type GeometryWord = 'point' | 'line' | 'polygon' | 'box'

const geometryWords: ReadonlySet<string> = new Set<GeometryWord>(['point', 'line', 'polygon', 'box'])

function checkGeometry(text: string, source: GeoQuerySource): Refusal | undefined {
  const words = text.split(';')
  for (const [at, word] of words.entries()) {
    if (!geometryWords.has(word)) return refusals.geometryWord(source)
    if (at > 0) return refusals.geometryTwice(source)
  }
  return undefined
}

// Relation

type Wanted = Pick<GeoQuery, 'relation' | 'distanceMetresMin' | 'distanceMetresMax'>

const relations: ReadonlySet<string> = new Set<Relation>(['near', 'coveredBy', 'intersects', 'equals', 'disjoint'])

const modifiers = ['maxDistance', 'minDistance'] as const

function parseGeorel(text: string, source: GeoQuerySource): Result<Wanted> {
  let relation: Relation | undefined
  const distances = new Map<string, number>()
  for (const token of text.split(';')) {
    if (relations.has(token)) {
      if (relation !== undefined) return refused(refusals.georelTwice(source))
      relation = token as Relation
      continue
    }
    const modifier = modifiers.find(name => token.startsWith(`${name}:`))
    if (modifier === undefined) return refused(refusals.georelWord(source))
    if (distances.has(modifier)) return refused(refusals.distanceTwice(source, modifier))
    const metres = parseNumber(token.slice(modifier.length + 1))
    if (metres === undefined || metres < 0) return refused(refusals.distanceNumber(source, modifier))
    distances.set(modifier, metres)
  }
  if (relation === undefined) return refused(refusals.georelWord(source))
  const given = modifiers.find(name => distances.has(name))
  if (relation === 'near' && given === undefined) return refused(refusals.nearWithoutDistance(source))
  if (relation !== 'near' && given !== undefined) return refused(refusals.distanceWithoutNear(source, given, relation))
  return accepted({
    relation,
    distanceMetresMin: distances.get('minDistance') ?? 0,
    distanceMetresMax: distances.get('maxDistance') ?? Number.POSITIVE_INFINITY,
  })
}

const decimal = /^[ \t]*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[ \t]*$/

/** Parses a finite decimal number, perhaps with blanks around it. */
function parseNumber(text: string): number | undefined {
  if (!decimal.test(text)) return undefined
  const number = Number(text)
  return Number.isFinite(number) ? number : undefined
}

// Coordinates

function parseShape(geometry: GeometryWord, coords: string, source: GeoQuerySource): Result<Shape> {
  const { length } = coords
  if (length > coordsLengthMax) return refused(refusals.coordsTooLong(source, length, coordsLengthMax))
  const pairs = coords.split(';')
  const count = pairs.length
  if (count > shapePositionsMax) return refused(refusals.positionsTooMany(source, count, shapePositionsMax))
  const positions: Position[] = []
  for (const pair of pairs) {
    const position = parsePair(pair, source)
    if (!position.ok) return position
    positions.push(position.value)
  }
  return shapes[geometry](positions, source)
}

function parsePair(text: string, source: GeoQuerySource): Result<Position> {
  if (text.split(',').length !== 2) return refused(refusals.coordsPair(source))
  const position = parseCoordinates(text)
  return position ? accepted(position) : refused(refusals.coordsRange(source))
}

const polygonPositionsMin = 4

const shapes = {
  point: (positions, source) =>
    positions.length === 1
      ? accepted({ type: 'Point', coordinates: positions[0]! })
      : refused(refusals.coordsCount(source, 'point')),
  line: (positions, source) =>
    positions.length >= 2
      ? accepted({ type: 'LineString', coordinates: positions })
      : refused(refusals.coordsCount(source, 'line')),
  polygon: (positions, source) => {
    if (positions.length < polygonPositionsMin) return refused(refusals.polygonCount(source))
    if (!isSame(positions[0]!, positions.at(-1)!)) return refused(refusals.polygonOpen(source))
    return isSimpleRing(positions)
      ? accepted({ type: 'Polygon', coordinates: [positions] })
      : refused(refusals.polygonCrossed(source))
  },
  box: (positions, source) => {
    if (positions.length !== 2) return refused(refusals.coordsCount(source, 'box'))
    const ring = boxRing(positions[0]!, positions[1]!)
    return ring ? accepted({ type: 'Polygon', coordinates: [ring] }) : refused(refusals.boxFlat(source))
  },
} as const satisfies Record<GeometryWord, (positions: readonly Position[], source: GeoQuerySource) => Result<Shape>>

function positionsOf(shape: Exclude<Shape, { type: 'Polygon' }>): readonly Position[] {
  return shape.type === 'Point' ? [shape.coordinates] : shape.coordinates
}

// Boxes

/** A box around every possible match; undefined: anything may match. At the antimeridian it spans all longitudes. */
export function boundsOf(query: GeoQuery): Bounds | undefined {
  return query.boxes && hull(query.boxes)
}

function boxesAround({ relation, distanceMetresMax }: Wanted, chain: Chain): readonly Bounds[] | undefined {
  if (relation === 'disjoint') return undefined
  return relation === 'near' ? boxesNear(chain.positions[0]!, distanceMetresMax) : [chain.bounds]
}

/** More than the rounding error: some 0.1 mm, and as much per 100 km. */
const slack = (degrees: number): number => 1e-9 + degrees * 1e-9

function boxesNear([longitude, latitude]: Position, metresMax: number): readonly Bounds[] | undefined {
  const angle = metresMax / earthRadiusMetres
  if (angle >= Math.PI) return undefined
  const height = angle * degrees + slack(angle * degrees)
  const south = Math.max(-90, latitude - height)
  const north = Math.min(90, latitude + height)
  // With a pole inside, every meridian is near.
  if (south === -90 || north === 90) return [{ west: -180, south, east: 180, north }]
  // The point where a meridian touches the circle is nearer to the pole than the circle's centre.
  const half = Math.asin(Math.min(1, Math.sin(angle) / Math.cos(latitude / degrees))) * degrees
  const width = half + slack(half)
  const west = longitude - width
  const east = longitude + width
  if (width >= 180) return [{ west: -180, south, east: 180, north }]
  if (west <= -180)
    return [
      { west: -180, south, east, north },
      { west: west + 360, south, east: 180, north },
    ]
  if (east >= 180)
    return [
      { west, south, east: 180, north },
      { west: -180, south, east: east - 360, north },
    ]
  return [{ west, south, east, north }]
}

const degrees = 180 / Math.PI
