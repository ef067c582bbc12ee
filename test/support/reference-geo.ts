// Where an entity lies and whether that fits a geographical query, written from docs/interface/geography.md as plainly
// as possible.
//
// All coordinates that the generators give are multiples of 1/1024 degree, so every product below is exact and a point
// has an exact side. Shapes are points, lines and polygons without holes. Distances are found by halving edges until no
// remaining part can be nearer. Where an answer would depend on less than the error of that, or a plain argument is
// missing, the result is undefined, and no answer counts as wrong.

import { type Entity, type Json, type JsonObject, locationsOf } from './reference-entities.js'

export type Position = readonly [longitude: number, latitude: number]

export interface Place {
  readonly type: 'Point' | 'MultiPoint' | 'LineString' | 'Polygon'
  /** Of a polygon its one ring, closed. */
  readonly positions: readonly Position[]
}

export interface Geo {
  readonly relation: 'near' | 'coveredBy' | 'intersects' | 'disjoint' | 'equals'
  readonly place: Place
  readonly metresMin: number
  readonly metresMax: number
  /** The same, in the form of the request. */
  readonly georel: string
  readonly geometry: string
  readonly coords: string
}

/**
 * Whether the entity fits the query; undefined when no plain argument decides it
 * (docs/interface/geography.md#relations).
 */
export function fitsGeo(geo: Geo, entity: Entity): boolean | undefined {
  const place = placeOf(entity)
  if (!place) return false
  switch (geo.relation) {
    case 'near':
      return isNear(geo, place)
    case 'coveredBy':
      return isCovered(geo.place.positions, place)
    case 'intersects':
      return meet(geo.place, place)
    case 'disjoint':
      return !meet(geo.place, place)
    case 'equals':
      return place.type === geo.place.type && String(place.positions) === String(geo.place.positions)
  }
}

const places = new WeakMap<object, Place>()

/** The place of the entity; undefined when it has no location. */
export function placeOf(entity: Entity): Place | undefined {
  const [location] = locationsOf(entity.attributes)
  if (!location) return undefined
  const known = places.get(location) ?? read(location.type, location.value)
  places.set(location, known)
  return known
}

function read(type: string, value: Json): Place {
  switch (type) {
    case 'geo:point':
      return { type: 'Point', positions: [pair(value)] }
    case 'geo:line':
      return { type: 'LineString', positions: (value as Json[]).map(pair) }
    case 'geo:polygon':
      return { type: 'Polygon', positions: (value as Json[]).map(pair) }
    case 'geo:box':
      return { type: 'Polygon', positions: boxRing(...((value as Json[]).map(pair) as [Position, Position])) }
    default:
      return readGeoJson(value as JsonObject)
  }
}

function readGeoJson(value: JsonObject): Place {
  if (value.type === 'Feature') return readGeoJson(value.geometry as JsonObject)
  const type = value.type as Place['type']
  const coordinates = value.coordinates as unknown
  if (type === 'Point') return { type, positions: [coordinates as Position] }
  return { type, positions: (type === 'Polygon' ? (coordinates as Position[][])[0] : coordinates) as Position[] }
}

/** `latitude, longitude` */
function pair(text: Json): Position {
  const [latitude, longitude] = (text as string).split(',').map(Number)
  return [longitude as number, latitude as number]
}

/**
 * The closed ring of a box between two opposite corners, in the order that `equals` uses
 * (docs/interface/geography.md#relations).
 */
export function boxRing(a: Position, b: Position): readonly Position[] {
  const [west, east] = [Math.min(a[0], b[0]), Math.max(a[0], b[0])]
  const [south, north] = [Math.min(a[1], b[1]), Math.max(a[1], b[1])]
  return [
    [west, south],
    [east, south],
    [east, north],
    [west, north],
    [west, south],
  ]
}

// In the plane

/** Positive when the point lies left of the way from a to b, 0 when on its line. */
export const side = ([ax, ay]: Position, [bx, by]: Position, [x, y]: Position): number =>
  (bx - ax) * (y - ay) - (by - ay) * (x - ax)

const isBetween = (n: number, a: number, b: number): boolean => Math.min(a, b) <= n && n <= Math.max(a, b)

const isOnEdge = (point: Position, a: Position, b: Position): boolean =>
  side(a, b, point) === 0 && isBetween(point[0], a[0], b[0]) && isBetween(point[1], a[1], b[1])

type Edge = readonly [Position, Position]

const edgesOf = ({ type, positions }: Place): Edge[] =>
  type === 'Point' || type === 'MultiPoint' ? [] : positions.slice(1).map((to, at): Edge => [positions[at]!, to])

function edgesMeet([a, b]: Edge, [c, d]: Edge): boolean {
  if (isOnEdge(a, c, d) || isOnEdge(b, c, d) || isOnEdge(c, a, b) || isOnEdge(d, a, b)) return true
  return side(a, b, c) * side(a, b, d) < 0 && side(c, d, a) * side(c, d, b) < 0
}

/** Whether the point is in the polygon or on its border: a ray to the east crosses the ring an odd number of times. */
function isInRing(ring: readonly Position[], point: Position): boolean {
  let inside = false
  for (let at = 1; at < ring.length; at++) {
    const [a, b] = [ring[at - 1]!, ring[at]!]
    if (isOnEdge(point, a, b)) return true
    if (a[1] > point[1] === b[1] > point[1]) continue
    // Upwards the point must be left of the edge, downwards right of it.
    if (side(a, b, point) > 0 === b[1] > a[1]) inside = !inside
  }
  return inside
}

function touches(place: Place, point: Position): boolean {
  switch (place.type) {
    case 'Point':
    case 'MultiPoint':
      return place.positions.some(one => one[0] === point[0] && one[1] === point[1])
    case 'LineString':
      return edgesOf(place).some(([a, b]) => isOnEdge(point, a, b))
    case 'Polygon':
      return isInRing(place.positions, point)
  }
}

/** Two shapes share a point when their edges do, or when one lies inside the other, with all its corners. */
function meet(a: Place, b: Place): boolean {
  if (a.positions.some(position => touches(b, position)) || b.positions.some(position => touches(a, position)))
    return true
  return edgesOf(a).some(edge => edgesOf(b).some(other => edgesMeet(edge, other)))
}

/** A convex ring covers a place whose corners are inside. In another ring, edges between them may lie outside. */
function isCovered(ring: readonly Position[], place: Place): boolean | undefined {
  if (!place.positions.every(position => isInRing(ring, position))) return false
  return edgesOf(place).length === 0 || isConvex(ring) ? true : undefined
}

function isConvex(ring: readonly Position[]): boolean {
  const corners = ring.slice(1)
  const turns = corners.map((corner, at) =>
    Math.sign(side(corner, corners[(at + 1) % corners.length]!, corners[(at + 2) % corners.length]!)),
  )
  return !(turns.includes(1) && turns.includes(-1))
}

// On the globe

const earthRadiusMetres = 6_371_000
const radians = Math.PI / 180

/** Distances nearer to a bound than this are not judged. */
const boundErrorMetres = 0.01

function isNear({ place: { positions }, metresMin, metresMax }: Geo, place: Place): boolean | undefined {
  const [from] = positions as readonly [Position]
  const isWithin = metresMax === Number.POSITIVE_INFINITY || reaches(from, metresMax, place)
  if (!isWithin || metresMin === 0) return isWithin
  const isTooNear = reaches(from, metresMin, place)
  return isTooNear === undefined ? undefined : !isTooNear
}

/** Whether the nearest point of the place is so near: edges are halved until each part is decided. */
function reaches(from: Position, metres: number, place: Place): boolean | undefined {
  if (touches(place, from)) return true
  const open = partsOf(from, place)
  for (let part = open.pop(); part; part = open.pop()) {
    const [left, toLeft, right, toRight] = part
    if (Math.min(toLeft, toRight) <= metres - boundErrorMetres) return true
    const length = lengthMetresMax(left, right)
    if (leastMetres(part, length) > metres + boundErrorMetres) continue
    if (length < boundErrorMetres) return undefined
    open.push(...halves(from, part))
  }
  return false
}

/** The error of the metres of `distanceTo`. */
export const errorOf = (place: Place): number => (edgesOf(place).length === 0 ? 1e-5 : 1)

/** Metres to the nearest point of the place, or more by at most `errorOf`. */
export function distanceTo(from: Position, place: Place): number {
  if (touches(place, from)) return 0
  let nearest = Number.POSITIVE_INFINITY
  const open = partsOf(from, place)
  for (let part = open.pop(); part; part = open.pop()) {
    const [left, toLeft, right, toRight] = part
    nearest = Math.min(nearest, toLeft, toRight)
    const length = lengthMetresMax(left, right)
    if (length > 0 && leastMetres(part, length) < nearest - errorOf(place)) open.push(...halves(from, part))
  }
  return nearest
}

/** A part of an edge: its ends, and how far they are. A point is a part without length. */
type Part = readonly [left: Position, toLeft: number, right: Position, toRight: number]

function partsOf(from: Position, place: Place): Part[] {
  const edges = edgesOf(place)
  const all = edges.length > 0 ? edges : place.positions.map((position): Edge => [position, position])
  return all.map(([a, b]): Part => [a, metresBetween(from, a), b, metresBetween(from, b)])
}

/** A lower bound of the distance to any point of the part. */
const leastMetres = ([, toLeft, , toRight]: Part, length: number): number => (toLeft + toRight - length) / 2

/** An edge is a straight line in longitude and latitude. */
function halves(from: Position, [left, toLeft, right, toRight]: Part): [Part, Part] {
  const middle: Position = [(left[0] + right[0]) / 2, (left[1] + right[1]) / 2]
  const toMiddle = metresBetween(from, middle)
  return [
    [left, toLeft, middle, toMiddle],
    [middle, toMiddle, right, toRight],
  ]
}

/** The haversine formula. */
function metresBetween(a: Position, b: Position): number {
  const latitudes = Math.sin(((b[1] - a[1]) * radians) / 2) ** 2
  const longitudes = Math.sin(((b[0] - a[0]) * radians) / 2) ** 2
  const h = latitudes + Math.cos(a[1] * radians) * Math.cos(b[1] * radians) * longitudes
  return 2 * earthRadiusMetres * Math.asin(Math.sqrt(Math.min(1, h)))
}

/** At least the length of the part: degrees of longitude are longest where the part is nearest to the equator. */
function lengthMetresMax(a: Position, b: Position): number {
  const latitude = a[1] > 0 === b[1] > 0 ? Math.min(Math.abs(a[1]), Math.abs(b[1])) : 0
  const east = (b[0] - a[0]) * Math.cos(latitude * radians)
  return earthRadiusMetres * radians * Math.hypot(east, b[1] - a[1])
}
