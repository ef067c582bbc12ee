// Where entities stand in the order of creation: the type index, path by path and type by type, merged.
//
// Each path and type is a stream in order of creation; the merge takes the earliest of their heads (created, then shard: total, and
// stable while entities come and go). Index rows are read in portions, and after each portion the event loop gets its turn, so that a
// deep offset delays nobody: a list of a million rows is thousands of short steps.

import type { Clock, Cursor, Row, Store } from '../ports.js'
import { parseTypeKey, typeRange } from './layout.js'

/** The place of one entity in the order of creation, and where to find it. */
export interface Place {
  readonly created: number
  readonly shard: number
  readonly path: string
  readonly type: string
  readonly id: string
}

/** One path and type. */
export interface PlaceRange {
  readonly path: string
  readonly type: string
}

/** Index rows per step: some 0.3 ms. */
const rowsPerStep = 128

/** The places of several paths and types, in order of creation, as they stood when each was first looked at. */
export class Places {
  private readonly clock: Clock
  private readonly streams: readonly Stream[]
  /** Streams with a place to give; undefined before the first look. */
  private heads: Stream[] | undefined
  /** Rows read since the event loop had its turn. */
  private sinceBreath = 0

  constructor(store: Store, clock: Clock, tenant: string, ranges: readonly PlaceRange[]) {
    this.clock = clock
    this.streams = ranges.map(range => new Stream(store, tenant, range))
  }

  /** The next places, `placesMax` at most; fewer only at the end. */
  async next(placesMax: number): Promise<Place[]> {
    const places: Place[] = []
    await this.walk(placesMax, place => places.push(place))
    return places
  }

  /** Passes over the next places. */
  async skip(count: number): Promise<void> {
    await this.walk(count, () => {})
  }

  async close(): Promise<void> {
    for (const stream of this.streams) await stream.close()
  }

  private async walk(placesMax: number, take: (place: Place) => void): Promise<void> {
    for (let taken = 0; taken < placesMax; taken++) {
      this.heads ??= await this.open(placesMax)
      const stream = earliest(this.heads)
      if (!stream) return
      take(stream.head as Place)
      await this.breathe(1)
      if (stream.advance()) continue
      if (!(await stream.read(placesMax - taken))) this.heads = this.heads.filter(other => other !== stream)
    }
  }

  private async open(wanted: number): Promise<Stream[]> {
    const heads: Stream[] = []
    for (const stream of this.streams) {
      if (await stream.read(wanted)) heads.push(stream)
      await this.breathe(rowsPerSeek)
    }
    return heads
  }

  /** Lets the event loop have its turn when enough has been read since the last time. */
  private async breathe(rows: number): Promise<void> {
    this.sinceBreath += rows
    if (this.sinceBreath < rowsPerStep) return
    this.sinceBreath = 0
    await new Promise<void>(resolve => this.clock.endOfTick(resolve))
  }
}

/** Opening a stream is a seek, which takes as long as reading some rows. */
const rowsPerSeek = 8

function earliest(streams: readonly Stream[]): Stream | undefined {
  let first = streams[0]
  for (let i = 1; i < streams.length; i++) {
    const a = streams[i]!.head as Place
    const b = first!.head as Place
    if (a.created < b.created || (a.created === b.created && a.shard < b.shard)) first = streams[i]
  }
  return first
}

/** The places of one path and type. */
class Stream {
  /** The place that comes next; undefined before `read` and at the end. */
  head: Place | undefined
  private readonly open: () => Cursor
  private readonly range: PlaceRange
  private cursor: Cursor | undefined
  private rows: readonly Row[] = []
  private at = 0

  constructor(store: Store, tenant: string, range: PlaceRange) {
    this.range = range
    this.open = () => store.cursor(typeRange(tenant, range.path, range.type))
  }

  /** Goes on to the next place; false when rows have to be read first. */
  advance(): boolean {
    this.at++
    return this.look()
  }

  /** Reads rows, about as many as are wanted; false at the end. */
  async read(wanted: number): Promise<boolean> {
    this.cursor ??= this.open()
    this.rows = await this.cursor.next(Math.min(Math.max(wanted, 1), rowsPerStep))
    this.at = 0
    return this.look()
  }

  async close(): Promise<void> {
    await this.cursor?.close()
  }

  private look(): boolean {
    const row = this.rows[this.at]
    this.head = row && { ...parseTypeKey(row.key), ...this.range, id: row.value.toString() }
    return row !== undefined
  }
}
