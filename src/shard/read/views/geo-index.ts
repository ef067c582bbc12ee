// The locations of a table's entities: points in columns and in a grid of cells, everything else by its box.
//
// A cell is 1/64 degree wide and high: 1.7 km from south to north. Cells share buckets, each a chain of rows (`next`,
// `before`), so moving an entity costs the same for any distance. A query that covers few cells walks their chains; one
// that covers many walks all rows, at some nanoseconds each. A point is decided here; of the rest, an entity is read
// when its box may match.

import { matchesGeo } from '../../../domain/places/geo.js'
import type { GeoQuery } from '../../../domain/places/geo-query.js'
import type { Geometry } from '../../../domain/places/location.js'
import { type Bounds, boundsOfGeometry, overlap } from '../../../domain/places/plane.js'
import { grown } from './column.js'
import { doubt, look, no, rowOf, type Verdict, yes } from './verdict.js'

const cellsPerDegree = 64
const bucketsMin = 256
const bucketsMax = 65_536
const end = -1

/** Bytes of a row: two doubles and two links. */
export const placeBytes = 24
/** Bytes of a location that is no point: its box and its entry. */
const boxBytes = 160

/** The parts of an index, as they travel between threads. */
export interface GeoParts {
  /** NaN where there is no point. */
  readonly longitudes: Float64Array
  readonly latitudes: Float64Array
  readonly next: Int32Array
  readonly before: Int32Array
  readonly chainHeads: Int32Array
  /** The boxes of locations that are no points. */
  readonly boxes: Map<number, Bounds>
}

const emptyParts = (capacity: number): GeoParts => ({
  longitudes: new Float64Array(capacity).fill(Number.NaN),
  latitudes: new Float64Array(capacity).fill(Number.NaN),
  next: new Int32Array(capacity),
  before: new Int32Array(capacity),
  chainHeads: new Int32Array(bucketsFor(capacity)).fill(end),
  boxes: new Map(),
})

export class GeoIndex {
  private longitudes: Float64Array
  private latitudes: Float64Array
  private next: Int32Array
  private before: Int32Array
  private chainHeads: Int32Array
  private readonly boxes: Map<number, Bounds>

  constructor(capacity: number, parts: GeoParts = emptyParts(capacity)) {
    this.longitudes = parts.longitudes
    this.latitudes = parts.latitudes
    this.next = parts.next
    this.before = parts.before
    this.chainHeads = parts.chainHeads
    this.boxes = parts.boxes
  }

  get parts(): GeoParts {
    const { longitudes, latitudes, next, before, chainHeads, boxes } = this
    return { longitudes, latitudes, next, before, chainHeads, boxes }
  }

  get bytes(): number {
    return this.longitudes.length * placeBytes + this.chainHeads.length * 4 + this.boxes.size * boxBytes
  }

  // [hot] For every change that a view with places follows.
  set(row: number, geometry: Geometry | undefined): void {
    const isPoint = geometry?.type === 'Point'
    const longitude = isPoint ? geometry.coordinates[0] : Number.NaN
    const latitude = isPoint ? geometry.coordinates[1] : Number.NaN
    if (!Number.isNaN(this.longitudes[row])) {
      if (longitude === this.longitudes[row] && latitude === this.latitudes[row]) return
      this.unlink(row)
    }
    this.longitudes[row] = longitude
    this.latitudes[row] = latitude
    if (isPoint) this.link(row)
    if (geometry && !isPoint) this.boxes.set(row, boundsOfGeometry(geometry))
    else if (this.boxes.size > 0) this.boxes.delete(row)
  }

  grow(capacity: number): void {
    const from = this.longitudes.length
    this.longitudes = grown(this.longitudes, new Float64Array(capacity)).fill(Number.NaN, from)
    this.latitudes = grown(this.latitudes, new Float64Array(capacity)).fill(Number.NaN, from)
    this.next = grown(this.next, new Int32Array(capacity))
    this.before = grown(this.before, new Int32Array(capacity))
    const buckets = bucketsFor(capacity)
    if (buckets > this.chainHeads.length) this.spread(buckets, from)
  }

  /** Puts the points of the first rows into more buckets. Otherwise chains would grow with the table. */
  private spread(buckets: number, rows: number): void {
    this.chainHeads = new Int32Array(buckets).fill(end)
    for (let row = 0; row < rows; row++) if (!Number.isNaN(this.longitudes[row])) this.link(row)
  }

  picked(rows: Uint32Array, capacity: number): GeoIndex {
    const index = new GeoIndex(capacity)
    for (let at = 0; at < rows.length; at++) {
      const row = rows[at]!
      index.longitudes[at] = this.longitudes[row]!
      index.latitudes[at] = this.latitudes[row]!
      if (!Number.isNaN(index.longitudes[at])) index.link(at)
      const box = this.boxes.size > 0 ? this.boxes.get(row) : undefined
      if (box) index.boxes.set(at, box)
    }
    return index
  }

  /** The rows that may match, in order; undefined when walking all rows is as good. */
  candidates(query: GeoQuery, rows: number): Uint32Array | undefined {
    const { boxes } = query
    // A look into a cell costs as much as a look at some rows, and its chain has the rows of other cells, too.
    const rowsPerCell = Math.max(rowsPerCellMin, rows / this.chainHeads.length)
    if (!boxes || boxes.reduce((cells, box) => cells + cellsOf(box), 0) > rows / rowsPerCell) return undefined
    const found: number[] = []
    for (const box of boxes) if (!this.collect(box, found, rows / candidatesShare)) return undefined
    for (const [row, bounds] of this.boxes) if (boxes.some(box => overlap(box, bounds))) found.push(row)
    return Uint32Array.from(found)
      .sort()
      .filter((row, at, sorted) => row !== sorted[at - 1])
  }

  /** Keeps those of the first `size` rows that match, or may; returns how many there are. */
  sift(query: GeoQuery, rows: Uint32Array, size: number): number {
    let count = 0
    for (let at = 0; at < size; at++) {
      const row = rows[at]!
      const verdict = this.judge(query, rowOf(row))
      if (verdict !== no) rows[count++] = verdict === look ? row | doubt : row
    }
    return count
  }

  // [hot] For each row that a geographical query tests.
  private judge(query: GeoQuery, row: number): Verdict {
    const longitude = this.longitudes[row]!
    const { boxes } = query
    if (!Number.isNaN(longitude)) {
      const latitude = this.latitudes[row]!
      if (boxes && !boxes.some(box => isInside(box, longitude, latitude))) return no
      return matchesGeo(query, { type: 'Point', coordinates: [longitude, latitude] }) ? yes : no
    }
    const bounds = this.boxes.size > 0 ? this.boxes.get(row) : undefined
    if (!bounds) return no
    return !boxes || boxes.some(box => overlap(box, bounds)) ? look : no
  }

  /** The point of a row; undefined when its entity has no location, or one that is no point. */
  pointOf(row: number): Extract<Geometry, { type: 'Point' }> | undefined {
    const longitude = this.longitudes[row]!
    return Number.isNaN(longitude) ? undefined : { type: 'Point', coordinates: [longitude, this.latitudes[row]!] }
  }

  /** Adds the points in a box; false when there are more than `foundMax`. */
  private collect(box: Bounds, found: number[], foundMax: number): boolean {
    const { west, south, east, north } = box
    const toX = cellAt(east)
    const toY = cellAt(north)
    for (let x = cellAt(west); x <= toX; x++)
      for (let y = cellAt(south); y <= toY; y++) {
        if (found.length > foundMax) return false
        for (let row = this.chainHeads[this.bucket(x, y)]!; row !== end; row = this.next[row]!) {
          const longitude = this.longitudes[row]!
          const latitude = this.latitudes[row]!
          if (isInside(box, longitude, latitude)) found.push(row)
        }
      }
    return true
  }

  private link(row: number): void {
    const bucket = this.bucket(cellAt(this.longitudes[row]!), cellAt(this.latitudes[row]!))
    const first = this.chainHeads[bucket]!
    this.next[row] = first
    this.before[row] = end
    if (first !== end) this.before[first] = row
    this.chainHeads[bucket] = row
  }

  private unlink(row: number): void {
    const next = this.next[row]!
    const before = this.before[row]!
    if (next !== end) this.before[next] = before
    if (before !== end) this.next[before] = next
    else this.chainHeads[this.bucket(cellAt(this.longitudes[row]!), cellAt(this.latitudes[row]!))] = next
  }

  private bucket(x: number, y: number): number {
    return (Math.imul(x, 0x9e3779b1) ^ Math.imul(y, 0x85ebca77)) & (this.chainHeads.length - 1)
  }
}

const isInside = ({ west, south, east, north }: Bounds, longitude: number, latitude: number): boolean =>
  longitude >= west && longitude <= east && latitude >= south && latitude <= north

const cellAt = (degrees: number): number => Math.floor(degrees * cellsPerDegree)

const cellsOf = ({ west, south, east, north }: Bounds): number =>
  (cellAt(east) - cellAt(west) + 1) * (cellAt(north) - cellAt(south) + 1)

const rowsPerCellMin = 4
/** When more than one row in this many is a candidate, walking all rows is as good. */
const candidatesShare = 8

function bucketsFor(capacity: number): number {
  let buckets = bucketsMin
  while (buckets < bucketsMax && buckets * 4 < capacity) buckets *= 2
  return buckets
}
