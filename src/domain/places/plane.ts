// Points, segments, rings and boxes in a plane: tests for touching, crossing and containing.
//
// Longitude and latitude are treated as a plane, and an edge as the straight line between its ends (RFC 7946, 3.1.1).
// Every question is reduced to the side of a line on which a point lies. robust-predicates answers that exactly for the
// given doubles. (Products below 1e-308 vanish: figures smaller than some 1e-150 degrees may count as collinear.)
//
// @turf/boolean-* computes crossings in rounded doubles and misses touching corners. It has boolean-within where the
// interface has coveredBy, lacks several pairs of geometries, and builds arrays of features at every step.
//
// A box contains its border. West is never greater than east: across the antimeridian there are two boxes
// (geo-query.ts). Longitude 180 and -180 are the same meridian, but a box contains only the one that it names.
//
// Not here: the rings of geometries (geo.ts), whether a ring is simple (ring.ts), distances on the sphere
// (distance.ts).

import { orient2d } from 'robust-predicates'
import type { Geometry } from './location.js'
import { isSame, type Position } from './ring.js'

export interface Bounds {
  readonly west: number
  readonly south: number
  readonly east: number
  readonly north: number
}

/** The smallest box around a geometry. */
export function boundsOfGeometry(geometry: Geometry): Bounds {
  switch (geometry.type) {
    case 'Point':
      return boundsOfPositions([geometry.coordinates])
    case 'MultiPoint':
    case 'LineString':
      return boundsOfPositions(geometry.coordinates)
    case 'MultiLineString':
    case 'Polygon':
      return hull(geometry.coordinates.map(line => boundsOfPositions(line)))
    case 'MultiPolygon':
      return hull(geometry.coordinates.flatMap(rings => rings.map(ring => boundsOfPositions(ring))))
  }
}

/** The smallest box around `positions[from]` to `positions[to - 1]`, which are at least one. */
export function boundsOfPositions(positions: readonly Position[], from = 0, to = positions.length): Bounds {
  let [west, south] = positions[from]!
  let [east, north] = [west, south]
  for (let at = from + 1; at < to; at++) {
    const position = positions[at]!
    const longitude = position[0]
    const latitude = position[1]
    if (longitude < west) west = longitude
    else if (longitude > east) east = longitude
    if (latitude < south) south = latitude
    else if (latitude > north) north = latitude
  }
  return { west, south, east, north }
}

/** The smallest box around all boxes, which are at least one. */
export function hull(boxes: readonly Bounds[]): Bounds {
  let { west, south, east, north } = boxes[0]!
  for (const box of boxes) {
    west = Math.min(west, box.west)
    south = Math.min(south, box.south)
    east = Math.max(east, box.east)
    north = Math.max(north, box.north)
  }
  return { west, south, east, north }
}

/** Whether two boxes share a point. */
export function overlap(a: Bounds, b: Bounds): boolean {
  return a.west <= b.east && b.west <= a.east && a.south <= b.north && b.south <= a.north
}

/** Whether the box contains the whole other box. */
export function holds(box: Bounds, other: Bounds): boolean {
  return box.west <= other.west && other.east <= box.east && box.south <= other.south && other.north <= box.north
}

/** Whether the position lies in the box. */
export function isWithin(box: Bounds, position: Position): boolean {
  const longitude = position[0]
  const latitude = position[1]
  return box.west <= longitude && longitude <= box.east && box.south <= latitude && latitude <= box.north
}

/**
 * A line that is tested often, with a box around every sixteen edges. So long shapes cost a sixteenth.
 *
 *   positions   p0 p1 ... p15 p16 p17 ... p31 p32 ...       an edge leads from each position to the next
 *   runs        [--- edges 0-15 ---][- edges 16-31 -]
 */
export interface Chain {
  readonly positions: readonly Position[]
  readonly bounds: Bounds
  readonly runs: readonly Bounds[]
}

const runEdges = 16

/** A single position becomes an edge of length 0. */
export function chainOf(positions: readonly Position[]): Chain {
  const line = positions.length === 1 ? [positions[0]!, positions[0]!] : positions
  const runs: Bounds[] = []
  for (let from = 0; from + 1 < line.length; from += runEdges)
    runs.push(boundsOfPositions(line, from, Math.min(from + runEdges + 1, line.length)))
  return { positions: line, bounds: boundsOfPositions(line), runs }
}

/** The chain of a simple ring in the form for `coversSegment`: counter-clockwise, without repeated positions. */
export function ringChainOf(ring: readonly Position[]): Chain {
  const kept = ring.filter((position, at) => at === 0 || !isSame(position, ring[at - 1]!))
  return chainOf(isCounterClockwise(kept) ? kept : kept.reverse())
}

/** The ring turns in its westernmost corner (of several the southernmost) in the same direction as the whole ring. */
function isCounterClockwise(ring: readonly Position[]): boolean {
  const size = ring.length - 1
  let corner = 0
  for (let at = 1; at < size; at++) {
    const [x, y] = ring[at]!
    if (x < ring[corner]![0] || (x === ring[corner]![0] && y < ring[corner]![1])) corner = at
  }
  return side(ring[(corner + size - 1) % size]!, ring[corner]!, ring[corner + 1]!) > 0
}

/** Positive when `c` is to the left of the line from `a` to `b`, negative to the right, 0 on the line. Exact. */
function side(a: Position, b: Position, c: Position): number {
  // The library's latitude grows downwards.
  return -orient2d(a[0], a[1], b[0], b[1], c[0], c[1])
}

/** Whether two segments share a point. Either may have length 0. */
function segmentsMeet(a: Position, b: Position, c: Position, d: Position): boolean {
  if (!boxesMeet(a, b, c, d)) return false
  const [sideC, sideD] = [side(a, b, c), side(a, b, d)]
  if ((sideC > 0 && sideD > 0) || (sideC < 0 && sideD < 0)) return false
  const [sideA, sideB] = [side(c, d, a), side(c, d, b)]
  // If they are on one line, they meet because their boxes do.
  return !((sideA > 0 && sideB > 0) || (sideA < 0 && sideB < 0))
}

function boxesMeet(a: Position, b: Position, c: Position, d: Position): boolean {
  return (
    Math.max(a[0], b[0]) >= Math.min(c[0], d[0]) &&
    Math.max(c[0], d[0]) >= Math.min(a[0], b[0]) &&
    Math.max(a[1], b[1]) >= Math.min(c[1], d[1]) &&
    Math.max(c[1], d[1]) >= Math.min(a[1], b[1])
  )
}

/** Whether the segment shares a point with the chain. */
export function meetsSegment({ positions, runs }: Chain, a: Position, b: Position): boolean {
  for (let run = 0; run < runs.length; run++) {
    if (!runMeets(runs[run]!, a, b)) continue
    const end = endOfRun(positions, run)
    for (let at = run * runEdges; at < end; at++)
      if (segmentsMeet(a, b, positions[at]!, positions[at + 1]!)) return true
  }
  return false
}

function endOfRun(positions: readonly Position[], run: number): number {
  return Math.min((run + 1) * runEdges, positions.length - 1)
}

function runMeets(box: Bounds, a: Position, b: Position): boolean {
  return (
    Math.max(a[0], b[0]) >= box.west &&
    Math.min(a[0], b[0]) <= box.east &&
    Math.max(a[1], b[1]) >= box.south &&
    Math.min(a[1], b[1]) <= box.north
  )
}

/** 1 when the position is inside the ring, 0 on it, -1 outside. */
export function sideOfRing(ring: readonly Position[], position: Position): number {
  return sideOf(crossings(ring, 0, ring.length - 1, position[0], position[1]))
}

/** The same for a ring that is a chain. */
// [hot] Entities against the shape of a query.
export function sideOfChain({ positions, runs }: Chain, position: Position): number {
  const [x, y] = position
  let count = 0
  for (let run = 0; run < runs.length; run++) {
    const box = runs[run]!
    if (box.south > y || box.north < y || box.east < x) continue
    const found = crossings(positions, run * runEdges, endOfRun(positions, run), x, y)
    if (found < 0) return 0
    count += found
  }
  return sideOf(count)
}

function sideOf(count: number): number {
  return count < 0 ? 0 : count % 2 === 1 ? 1 : -1
}

/** How many of the edges a ray due east from a point crosses; -1 when the point lies on one of them. */
function crossings(line: readonly Position[], from: number, to: number, x: number, y: number): number {
  let count = 0
  for (let at = from; at < to; at++) {
    const a = line[at]!
    const b = line[at + 1]!
    const ax = a[0]
    const ay = a[1]
    const bx = b[0]
    const by = b[1]
    if ((ay > y && by > y) || (ay < y && by < y) || (ax < x && bx < x)) continue
    if (ay === y && by === y) {
      if ((ax <= x && x <= bx) || (bx <= x && x <= ax)) return -1
      continue
    }
    // A corner at this latitude belongs to the edge below it, so a ray through it counts once or twice.
    const crosses = ay > y !== by > y
    if (ax > x && bx > x) {
      if (crosses) count++
      continue
    }
    const turn = -orient2d(ax, ay, bx, by, x, y)
    if (turn === 0) return -1
    if (crosses && turn > 0 === by > ay) count++
  }
  return count
}

/**
 * Whether a segment that begins inside the ring or on it stays there. The ring comes from `ringChainOf`.
 *
 * A segment leaves a ring across an edge, or at a point where it begins on the ring or meets a corner. At such a point
 * only its direction decides. So no crossing is ever computed, and the answer is exact.
 */
export function coversSegment(ring: Chain, a: Position, b: Position): boolean {
  if (isSame(a, b)) return true
  const { positions, runs } = ring
  for (let run = 0; run < runs.length; run++) {
    if (!runMeets(runs[run]!, a, b)) continue
    const end = endOfRun(positions, run)
    for (let at = run * runEdges; at < end; at++) if (leavesAt(positions, at, a, b)) return false
  }
  return true
}

/** Whether the segment leaves the ring across the edge at `at`, from inside, or at the corner where the edge begins. */
function leavesAt(ring: readonly Position[], at: number, a: Position, b: Position): boolean {
  const c = ring[at]!
  const d = ring[at + 1]!
  if (!boxesMeet(a, b, c, d)) return false
  const sideC = side(a, b, c)
  const sideD = side(a, b, d)
  // The corner is on the segment: it is on its line and in its box. The end of the segment does not matter.
  if (sideC === 0 && boxesMeet(a, b, c, c))
    return !isSame(b, c) && !looksInside(ring[at === 0 ? ring.length - 2 : at - 1]!, c, d, b)
  const sideA = side(c, d, a)
  if (sideA === 0) return boxesMeet(a, a, c, d) && !isSame(a, d) && side(c, d, b) < 0
  return areOpposite(sideC, sideD) && areOpposite(sideA, side(c, d, b))
}

function areOpposite(sideA: number, sideB: number): boolean {
  return (sideA > 0 && sideB < 0) || (sideA < 0 && sideB > 0)
}

/** Whether the direction from a corner to `to` points into the ring or along it. */
function looksInside(before: Position, corner: Position, after: Position, to: Position): boolean {
  const turn = side(before, corner, after)
  const leftOfBefore = side(before, corner, to) >= 0
  if (turn === 0) return leftOfBefore
  const leftOfAfter = side(corner, after, to) >= 0
  return turn > 0 ? leftOfBefore && leftOfAfter : leftOfBefore || leftOfAfter
}
