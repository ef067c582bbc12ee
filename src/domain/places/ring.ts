// Tests whether a ring of a polygon crosses or touches itself.
//
// A sweep after Shamos and Hoey visits vertices from left to right (from bottom to top at one longitude), and keeps the
// edges over the current vertex in their order from bottom to top. Edges that meet are neighbours in that order first,
// so only neighbours are compared. That takes n log n steps. Comparing all pairs would take n * n for a comb of
// slanting teeth.
//
//   status, bottom to top:   [ edge 4, edge 1, edge 7 ]        an edge i runs from vertex i to vertex i + 1
//
// Longitude and latitude are treated as a plane. The side of an edge on which a vertex lies is exact for the doubles
// given.

import { orient2d } from 'robust-predicates'
import { partitionPoint } from '../search.js'

/** Longitude, latitude, and further numbers (an altitude), which no rule uses. */
export type Position = readonly [longitude: number, latitude: number, ...rest: number[]]

/** Whether two positions are the same; an altitude does not count. */
export const isSame = (a: Position, b: Position): boolean => a[0] === b[0] && a[1] === b[1]

/**
 * Whether a closed ring neither crosses nor touches itself (docs/interface/geography.md#geojson). The last position
 * repeats the first. Repeated positions in a row count once. At least three must remain, and no edge may run back over
 * the previous one.
 */
export function isSimpleRing(positions: readonly Position[]): boolean {
  const ring = new Ring(positions)
  return ring.size >= 3 && !ring.runsBack() && ring.sweep()
}

class Ring {
  /** Vertices, without the closing one. */
  readonly size: number
  private readonly x: Float64Array
  private readonly y: Float64Array
  /** The rank of each vertex in the order of the sweep. */
  private readonly rank: Int32Array
  /** The edges over the current vertex, bottom to top: the first `statusLength` of the array. */
  private readonly status: Int32Array
  private statusLength = 0

  constructor(positions: readonly Position[]) {
    this.x = new Float64Array(positions.length)
    this.y = new Float64Array(positions.length)
    let size = 0
    for (let at = 1; at < positions.length; at++) {
      const [x, y] = positions[at]!
      if (x === positions[at - 1]![0] && y === positions[at - 1]![1]) continue
      this.x[size] = x
      this.y[size] = y
      size += 1
    }
    this.size = size
    this.rank = new Int32Array(size)
    this.status = new Int32Array(size)
  }

  /** Whether some edge leaves its vertex in the direction from which the previous edge came. */
  runsBack(): boolean {
    const { x, y, size } = this
    for (let at = 0; at < size; at++) {
      const before = at === 0 ? size - 1 : at - 1
      const after = at === size - 1 ? 0 : at + 1
      if (this.side(before, at, after) !== 0) continue
      const forward = (x[at]! - x[before]!) * (x[after]! - x[at]!) + (y[at]! - y[before]!) * (y[after]! - y[at]!)
      if (forward < 0) return true
    }
    return false
  }

  /** Whether no two edges meet, except consecutive edges in their common vertex. */
  sweep(): boolean {
    const { x, y, size, rank } = this
    const order = Int32Array.from(x.subarray(0, size), (_, at) => at)
    order.sort((a, b) => x[a]! - x[b]! || y[a]! - y[b]!)
    for (let at = 0; at < size; at++) rank[order[at]!] = at

    for (let at = 0; at < size; at++) {
      const vertex = order[at]!
      const last = order[at - 1]
      if (last !== undefined && x[last] === x[vertex] && y[last] === y[vertex]) return false
      const arriving = vertex === 0 ? size - 1 : vertex - 1
      // Edges that begin here enter before others leave. So an edge that ends at another one's beginning is noticed.
      if (this.left(arriving) === vertex && !this.enter(arriving)) return false
      if (this.left(vertex) === vertex && !this.enter(vertex)) return false
      if (this.right(arriving) === vertex && !this.leave(arriving)) return false
      if (this.right(vertex) === vertex && !this.leave(vertex)) return false
    }
    return true
  }

  private enter(edge: number): boolean {
    const { status } = this
    const at = this.placeOf(edge)
    status.copyWithin(at + 1, at, this.statusLength)
    status[at] = edge
    this.statusLength += 1
    return !this.neighboursMeet(at - 1) && !this.neighboursMeet(at)
  }

  private leave(edge: number): boolean {
    const at = this.placeOf(edge)
    this.status.copyWithin(at, at + 1, this.statusLength)
    this.statusLength -= 1
    return !this.neighboursMeet(at - 1)
  }

  /** How many edges of the status are below an edge, which may be one of them. */
  private placeOf(edge: number): number {
    const { status } = this
    return partitionPoint(at => status[at] !== edge && this.compare(edge, status[at]!) > 0, 0, this.statusLength)
  }

  /**
   * Positive when edge `a` is above edge `b` at the sweep. The edge that began later is compared with the line of the
   * other one. On that line it counts as above, for example when one edge continues another in the same direction.
   */
  private compare(a: number, b: number): number {
    if (this.rank[this.left(a)]! < this.rank[this.left(b)]!) return -this.compare(b, a)
    const left = this.left(b)
    const right = this.right(b)
    return this.side(left, right, this.left(a)) || this.side(left, right, this.right(a)) || 1
  }

  /** Whether the edges at `at` and `at + 1` of the status share a forbidden point. */
  private neighboursMeet(at: number): boolean {
    if (at < 0 || at + 1 >= this.statusLength) return false
    const a = this.status[at]!
    const b = this.status[at + 1]!
    const distance = Math.abs(a - b)
    if (distance === 1 || distance === this.size - 1) return false
    const [a1, a2, b1, b2] = [this.left(a), this.right(a), this.left(b), this.right(b)]
    if (this.side(a1, a2, b1) * this.side(a1, a2, b2) > 0 || this.side(b1, b2, a1) * this.side(b1, b2, a2) > 0)
      return false
    // Neither lies on one side of the other. So they meet, unless both lie on one line with a gap between them.
    const { rank } = this
    return rank[a1]! <= rank[b2]! && rank[b1]! <= rank[a2]!
  }

  private left(edge: number): number {
    const next = edge + 1 === this.size ? 0 : edge + 1
    return this.rank[edge]! < this.rank[next]! ? edge : next
  }

  private right(edge: number): number {
    const next = edge + 1 === this.size ? 0 : edge + 1
    return this.rank[edge]! < this.rank[next]! ? next : edge
  }

  /** 1 when vertex `c` is to the left of the line from `a` to `b`, -1 to the right, 0 on the line. */
  private side(a: number, b: number, c: number): number {
    const { x, y } = this
    // The library's latitude grows downwards.
    return -Math.sign(orient2d(x[a]!, y[a]!, x[b]!, y[b]!, x[c]!, y[c]!))
  }
}
