// The places of entities in the order of creation: the type index, path by path and type by type, merged.
//
// Each path and type is a stream in order of creation. The merge takes the earliest place of all streams, by creation
// and then shard: that order is total, and stable while entities come and go. A stream begins in memory
// (first-pages.ts) and continues in the store. Index rows are read in portions, and after each the event loop gets its
// turn, so a deep offset does not delay other requests.
//
// Small ranges are one stream together if they are more than the first-page cache holds (small-ranges.ts).

import type { EntityPosition } from '../../messages/messages.js'
import type { Clock, Cursor, StoreReader } from '../../ports.js'
import { parseTypeKey, type TypePosition, typeKey, typeRange } from '../layout.js'
import type { Owned } from '../replicate/ownership.js'
import { Heap } from '../turn/heap.js'
import { type CountedRange, comparePlaces, type EntityPlace, type PlaceRange } from './entity-place.js'
import { firstOfSmallRanges } from './small-ranges.js'

export interface Head {
  readonly places: readonly EntityPlace[]
  /** The position after which the rest begins; undefined: there is no more. */
  readonly rest: TypePosition | undefined
}

/** A request for the first places of a range, after a position. */
export interface FirstPageScan {
  readonly tenant: string
  readonly range: PlaceRange
  readonly after: TypePosition | undefined
  readonly count: number
}

/** Gives the first places of a range. */
export interface FirstPageSource {
  /** The number of first pages that it keeps. */
  readonly pagesMax: number
  head(tenant: string, range: CountedRange): Promise<Head>
}

/** Index rows per step: some 0.3 ms. */
const rowsPerStep = 128

/** The first places after a position, `count` at most; fewer only at the end. `owned`: the shards that count. */
export async function readPlaces(
  store: StoreReader,
  { tenant, range, after, count }: FirstPageScan,
  owned?: Owned,
): Promise<EntityPlace[]> {
  const rest = new Rest(store, tenant, range, after, owned)
  const places: EntityPlace[] = []
  try {
    while (places.length < count) {
      const more = await rest.next(count - places.length)
      if (more.length === 0) break
      places.push(...more)
    }
    return places
  } finally {
    await rest.close()
  }
}

/** The places of entities at positions, undefined where the entity was deleted. The type index has the ids. */
export function locate(
  store: StoreReader,
  tenant: string,
  positions: readonly EntityPosition[],
): (EntityPlace | undefined)[] {
  const ids = store.getMany(
    positions.map(({ path, type, created, shard }) => typeKey(tenant, path, type, created, shard)),
  )
  return positions.map(({ created, shard, path, type }, index) => {
    const id = ids[index]?.toString()
    return id === undefined ? undefined : { created, shard, path, type, id }
  })
}

export interface PlaceSources {
  readonly store: StoreReader
  readonly firstPages: FirstPageSource
  readonly clock: Clock
  readonly owned?: Owned
}

/**
 * A range of at most so many entities is small. To open its cursor costs more than to read its rows with those of
 * others.
 */
const smallRangeMax = 64
/** Places that one pass keeps at most, some 20 MB. Lists that need more open each range. */
export const placesOfPassMax = 100_000

/**
 * The first places of several paths and types, in order of creation, as they were at the first look; only of owned
 * shards. The caller reads or skips `placesMax` of them at most.
 */
export class Places {
  private readonly opened: Stream[] = []
  /** Streams that have a next place; undefined before the first look. */
  private merged: Heap<PlaceStream> | undefined
  /** Rows read since the event loop had its turn. */
  private sinceBreath = 0

  constructor(
    private readonly from: PlaceSources,
    private readonly tenant: string,
    private readonly ranges: readonly CountedRange[],
    private readonly placesMax: number,
  ) {}

  /** The next places, `placesMax` at most; fewer only at the end. */
  async next(placesMax: number): Promise<EntityPlace[]> {
    const places: EntityPlace[] = []
    await this.each(placesMax, place => places.push(place))
    return places
  }

  async skip(count: number): Promise<void> {
    await this.each(count, () => {})
  }

  /** Passes the next places to `take` one by one, `placesMax` at most; fewer only at the end. */
  async each(placesMax: number, take: (place: EntityPlace) => void): Promise<void> {
    this.merged ??= await this.open()
    for (let taken = 0; taken < placesMax; taken++) {
      const stream = this.merged.top
      if (!stream) return
      take(stream.place as EntityPlace)
      if (++this.sinceBreath >= rowsPerStep) await this.breathe()
      if (stream.advance() || (await stream.read(placesMax - taken))) this.merged.replaceTop(stream)
      else this.merged.pop()
    }
  }

  async close(): Promise<void> {
    for (const stream of this.opened) await stream.close()
  }

  private async open(): Promise<Heap<PlaceStream>> {
    const merged = new Heap<PlaceStream>(byPlace)
    const small = this.ranges.filter(isSmall)
    const isPass = small.length > this.from.firstPages.pagesMax && this.placesIn(small) <= placesOfPassMax
    if (isPass) await this.openTogether(small, merged)
    for (const range of this.ranges) if (!isPass || !isSmall(range)) await this.openOne(range, merged)
    return merged
  }

  /** How many places of some ranges the caller can need. */
  private placesIn(ranges: readonly CountedRange[]): number {
    return Math.min(
      this.placesMax,
      ranges.reduce((sum, { count }) => sum + count, 0),
    )
  }

  private async openTogether(ranges: readonly CountedRange[], merged: Heap<PlaceStream>): Promise<void> {
    const { store, clock, owned } = this.from
    const pass = { tenant: this.tenant, ranges, placesMax: this.placesMax }
    const stream = new KnownPlaces(await firstOfSmallRanges(store, clock, pass, owned))
    if (stream.place) merged.push(stream)
  }

  private async openOne(range: CountedRange, merged: Heap<PlaceStream>): Promise<void> {
    const stream = new Stream(this.from, this.tenant, range)
    // Most streams have only a first page, which need not be closed.
    const isThere = await stream.open()
    if (stream.hasRest) this.opened.push(stream)
    if (isThere) merged.push(stream)
    this.sinceBreath += rowsPerOpening
    if (this.sinceBreath >= rowsPerStep) await this.breathe()
  }

  private async breathe(): Promise<void> {
    this.sinceBreath = 0
    await new Promise<void>(resolve => this.from.clock.endOfTick(resolve))
  }
}

/** Opening a stream may read from the store, which takes as long as reading some rows. */
const rowsPerOpening = 8

const isSmall = ({ count }: CountedRange): boolean => count <= smallRangeMax

const byPlace = ({ place: a }: PlaceStream, { place: b }: PlaceStream): number =>
  comparePlaces(a as EntityPlace, b as EntityPlace)

/** Places in the order of creation. */
interface PlaceStream {
  /** The next place; undefined at the end. */
  readonly place: EntityPlace | undefined
  /** Moves to the next place; false when places have to be read first. */
  advance(): boolean
  /** Reads places, about as many as are wanted; false at the end. */
  read(wanted: number): Promise<boolean>
}

/** Places that were all read before. */
class KnownPlaces implements PlaceStream {
  private at = 0

  constructor(private readonly places: readonly EntityPlace[]) {}

  get place(): EntityPlace | undefined {
    return this.places[this.at]
  }

  advance(): boolean {
    return ++this.at < this.places.length
  }

  read(): Promise<boolean> {
    return Promise.resolve(false)
  }
}

class Stream implements PlaceStream {
  /** The next place; undefined before `open` and at the end. */
  place: EntityPlace | undefined
  private readonly openHead: () => Promise<Head>
  private readonly openRest: (after: TypePosition) => Rest
  private rest: Rest | undefined
  private places: readonly EntityPlace[] = []
  private at = 0

  constructor({ store, firstPages, owned }: PlaceSources, tenant: string, range: CountedRange) {
    this.openHead = () => firstPages.head(tenant, range)
    this.openRest = after => new Rest(store, tenant, range, after, owned)
  }

  /** Begins; false when there is no place. */
  async open(): Promise<boolean> {
    const head = await this.openHead()
    this.places = head.places
    this.rest = head.rest && this.openRest(head.rest)
    return this.look() || this.read(rowsPerStep)
  }

  /** Whether a cursor has to be closed, now or later. */
  get hasRest(): boolean {
    return this.rest !== undefined
  }

  advance(): boolean {
    this.at++
    return this.look()
  }

  async read(wanted: number): Promise<boolean> {
    if (!this.rest) return false
    this.places = await this.rest.next(Math.min(Math.max(wanted, 1), rowsPerStep))
    this.at = 0
    return this.look()
  }

  async close(): Promise<void> {
    await this.rest?.close()
  }

  private look(): boolean {
    this.place = this.places[this.at]
    return this.place !== undefined
  }
}

/** The places of one path and type in the store, after a position or from the beginning, in owned shards. */
class Rest {
  private readonly range: PlaceRange
  private readonly open: () => Cursor
  private cursor: Cursor | undefined

  constructor(
    store: StoreReader,
    tenant: string,
    { path, type }: PlaceRange,
    after: TypePosition | undefined,
    private readonly owned: Owned,
  ) {
    this.range = { path, type }
    this.open = () => store.cursor(typeRange(tenant, path, type, after))
  }

  /** Some of the next places; none only at the end. */
  async next(placesMax: number): Promise<EntityPlace[]> {
    this.cursor ??= this.open()
    for (;;) {
      const rows = await this.cursor.next(placesMax)
      const places = rows.map(({ key, value }) => {
        const { created, shard } = parseTypeKey(key)
        return { created, shard, ...this.range, id: value.toString() }
      })
      const { owned } = this
      if (!owned || rows.length === 0) return places
      const ours = places.filter(({ shard }) => owned[shard] === 1)
      if (ours.length > 0) return ours
    }
  }

  async close(): Promise<void> {
    await this.cursor?.close()
  }
}
