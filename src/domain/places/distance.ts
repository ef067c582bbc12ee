// Distances on the globe: great circles on a sphere of the mean radius (docs/interface/geography.md#relations).
//
// An edge is the straight line in longitude and latitude, as in plane.ts. Along it the distance from a place has no
// closed minimum, but
//
//   f = 1 - cos(distance) = 2 sin²(Δφ/2) + 2 cos φp cos φ sin²(Δλ/2)
//
// is a sum of three sinusoids in the position s along the edge, so |f''| and |f'''| have small bounds M and M3. With
// these, one point of an edge can show that all of the rest is farther than the best known point, or that f only falls
// or only rises. Most edges need only their ends. Where f is convex, Newton's method finds the minimum. Elsewhere the
// edge is halved.
//
// @turf/point-to-line-distance takes the nearest point of a rhumb or projected line, and is wrong by kilometres for
// long edges and beyond the antimeridian. Here a difference of 360 degrees is no difference, and the poles are ordinary
// places.
import type { Position } from './ring.js'

export const earthRadiusMetres = 6_371_000

const radians = Math.PI / 180

/** Metres between two positions. */
// [hot] Every `near` against points.
export function distanceBetween(a: Position, b: Position): number {
  const sinLatitude = Math.sin(((b[1] - a[1]) / 2) * radians)
  const apart = Math.abs(b[0] - a[0])
  const sinLongitude = Math.sin(((apart > 180 ? 360 - apart : apart) / 2) * radians)
  const cosines = Math.cos(a[1] * radians) * Math.cos(b[1] * radians)
  return metres(2 * (sinLatitude * sinLatitude + cosines * sinLongitude * sinLongitude))
}

/** Metres to the nearest point of lines that have at least one position each. */
export function distanceToLines(from: Position, lines: readonly (readonly Position[])[]): number {
  let nearest = 2
  for (const line of lines) nearest = nearestOf(from, line, nearest)
  return metres(nearest)
}

function metres(f: number): number {
  return 2 * earthRadiusMetres * Math.asin(Math.min(1, Math.sqrt(f / 2)))
}

/** The values at one point of an edge: f and its slopes towards east and north. */
interface Sample {
  readonly longitude: number
  readonly latitude: number
  /** The cosine of the latitude. */
  readonly cos: number
  readonly f: number
  readonly east: number
  readonly north: number
  /** Parts of the second derivative. */
  readonly sines: number
  readonly cosines: number
  readonly mixed: number
}

interface Place {
  readonly longitude: number
  readonly latitude: number
  readonly sin: number
  readonly cos: number
}

/** The lowest f on the line, or `nearest` when that is lower. */
function nearestOf(from: Position, line: readonly Position[], nearest: number): number {
  const latitude = from[1] * radians
  const place = { longitude: from[0] * radians, latitude, sin: Math.sin(latitude), cos: Math.cos(latitude) }
  let low = nearest
  let a = sampleAt(place, line[0]![0] * radians, line[0]![1] * radians)
  if (a.f < low) low = a.f
  for (let at = 1; at < line.length; at++) {
    const b = sampleAt(place, line[at]![0] * radians, line[at]![1] * radians)
    if (b.f < low) low = b.f
    const edge = edgeBetween(place, a, b)
    const slope = slopeOf(edge, a)
    // The whole edge is one step of length 1 from its beginning.
    const isMonotonous = Math.abs(slope) >= edge.bend
    if (!isMonotonous && a.f + Math.min(0, slope) - edge.bend / 2 < low) low = search(place, edge, 0, 1, low)
    a = b
  }
  return low
}

function sampleAt(place: Place, longitude: number, latitude: number): Sample {
  const sin = Math.sin(latitude)
  const cos = Math.cos(latitude)
  const sinHalf = Math.sin((longitude - place.longitude) / 2)
  const cosHalf = Math.cos((longitude - place.longitude) / 2)
  const sinHalfLatitude = Math.sin((latitude - place.latitude) / 2)
  const sinLongitude = 2 * sinHalf * cosHalf
  const cosLongitude = 1 - 2 * sinHalf * sinHalf
  return {
    longitude,
    latitude,
    cos,
    f: 2 * (sinHalfLatitude * sinHalfLatitude + place.cos * cos * sinHalf * sinHalf),
    east: place.cos * cos * sinLongitude,
    north: place.cos * sin * cosLongitude - place.sin * cos,
    sines: place.sin * sin,
    cosines: place.cos * cos * cosLongitude,
    mixed: place.cos * sin * sinLongitude,
  }
}

interface Edge {
  readonly longitude: number
  readonly latitude: number
  /** The length of the edge in both directions. */
  readonly east: number
  readonly north: number
  /** Bounds of |f''| and |f'''|. */
  readonly bend: number
  readonly twist: number
}

function edgeBetween(place: Place, a: Sample, b: Sample): Edge {
  const east = b.longitude - a.longitude
  const north = b.latitude - a.latitude
  const [x, y] = [Math.abs(east), Math.abs(north)]
  const squares = x * x + y * y
  // Half of |x + y|³ + |x - y|³.
  const cubes = x > y ? x * x * x + 3 * x * y * y : y * y * y + 3 * x * x * y
  // Two bounds each. The second one is small near the poles, where an edge of many degrees may be short.
  const cos = a.latitude > 0 !== b.latitude > 0 ? 1 : Math.max(a.cos, b.cos)
  const bends = Math.min(squares, cos * squares + 2 * x * y)
  const twists = Math.min(cubes, y * y * y + 3 * x * x * y + cos * (3 * x * y * y + x * x * x))
  const sin = Math.abs(place.sin)
  return {
    longitude: a.longitude,
    latitude: a.latitude,
    east,
    north,
    bend: sin * y * y + place.cos * bends,
    twist: sin * y * y * y + place.cos * twists,
  }
}

const slopeOf = (edge: Edge, at: Sample): number => edge.east * at.east + edge.north * at.north

const bendOf = ({ east, north }: Edge, at: Sample): number =>
  north * north * (at.sines + at.cosines) + east * east * at.cosines - 2 * east * north * at.mixed

/** The fall of f that may be ignored: a tenth of a millimetre next to the place, less far away. */
const negligible = (f: number): number => 1e-22 + f * 1e-13

/** The lowest f on the part of the edge from `from` to `to`, whose ends are known, or `low` when that is lower. */
function search(place: Place, edge: Edge, from: number, to: number, low: number): number {
  const half = (to - from) / 2
  const middle = from + half
  const at = sampleOn(place, edge, middle)
  const slope = slopeOf(edge, at)
  const known = Math.min(low, at.f)
  const fallMax = Math.abs(slope) * half + (edge.bend * half * half) / 2
  if (at.f - fallMax > known - negligible(known) || Math.abs(slope) >= edge.bend * half) return known
  if (bendOf(edge, at) > edge.twist * half) return descend(place, edge, from, to, known)
  return search(place, edge, middle, to, search(place, edge, from, middle, known))
}

/** The minimum where f is convex: Newton's method, with bisection when a step leads out of the remaining part. */
function descend(place: Place, edge: Edge, from: number, to: number, low: number): number {
  let [left, right] = [from, to]
  let s = (from + to) / 2
  let known = low
  for (let step = 0; step < stepsMax; step++) {
    const at = sampleOn(place, edge, s)
    if (at.f < known) known = at.f
    const slope = slopeOf(edge, at)
    if (slope > 0) right = s
    else left = s
    // f stays above its tangent.
    if (at.f - Math.abs(slope) * (right - left) > known - negligible(known)) return known
    const next = s - slope / bendOf(edge, at)
    s = next > left && next < right ? next : (left + right) / 2
  }
  return known
}

const stepsMax = 60

function sampleOn(place: Place, edge: Edge, s: number): Sample {
  return sampleAt(place, edge.longitude + s * edge.east, edge.latitude + s * edge.north)
}
