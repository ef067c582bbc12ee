// A list answered from views: which rows match, how many, and which of them are on the page.
//
//   every row of every table -> statements and place, by the content of columns -> rows that match, and uncertain rows
//   -> entities of uncertain rows are read -> the first of all matches, by creation or by the order -> places
//
// A short search is one piece: it sees all of the node at one moment. A long one gives the event loop its turn in
// between, and begins again when rows have moved. A search that would have to read many entities leaves the list to a
// scan.

import type { Json } from '../../../domain/json.js'
import { distanceTo } from '../../../domain/places/geo.js'
import { compareSortValues, isByDistance, type OrderKey } from '../../../domain/queries/order.js'
import { meansIdentity } from '../../../domain/queries/selection.js'
import type { EntityPosition, ListRequest } from '../../../messages/messages.js'
import type { Clock, StoreReader } from '../../../ports.js'
import { Heap } from '../../turn/heap.js'
import type { EntityPlace, PlaceRange } from '../entity-place.js'
import { encodedEntitiesAt, type MatchPage, type SortValues, valuesIfMeant } from '../matches.js'
import { locate } from '../places.js'
import { type Column, kinds, named } from './column.js'
import { compareRows, looksMax, rowsPerChunk, TablePart, type ViewRow } from './part.js'
import { pathOfKey, type Table } from './table.js'

const looksPerStep = 16
/** The end of the furthest page by keys; for further ones, a scan sorts elsewhere. */
const orderedMax = 10_000
/** How long a search keeps the event loop to itself, and slightly more: a chunk of rows is one piece. */
const stepMs = 4
/** How often a search begins again because rows have moved. */
const attemptsMax = 3

/** Answers a list from the tables of its ranges; undefined when a scan has to. */
export async function search(
  request: ListRequest,
  ranges: readonly PlaceRange[],
  tables: readonly Table[],
  store: StoreReader,
  clock: Turns,
): Promise<MatchPage<EntityPosition> | undefined> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const once = new Search(request, ranges, tables, store, clock)
    const outcome = await once.run()
    if (outcome !== 'moved') return outcome
  }
  return undefined
}

type Turns = Pick<Clock, 'monoMs' | 'endOfTick'>

class Search {
  private readonly parts: readonly TablePart[]
  private readonly moves: number
  /** When the event loop last had its turn. */
  private sinceMs: number

  constructor(
    private readonly request: ListRequest,
    ranges: readonly PlaceRange[],
    tables: readonly Table[],
    private readonly store: StoreReader,
    private readonly clock: Turns,
  ) {
    this.parts = tables.map((table, index) => new TablePart(request, ranges[index]!, table))
    this.sinceMs = clock.monoMs()
    this.moves = this.countMoves()
  }

  async run(): Promise<MatchPage<EntityPosition> | undefined | 'moved'> {
    if (!(await this.scan())) return 'moved'
    const looks = this.parts.reduce((sum, part) => sum + part.unsure, 0)
    if (looks > looksMax) return undefined
    if (!(await this.lookInto())) return 'moved'
    const { order, offset, limit } = this.request
    const total = this.parts.reduce((sum, part) => sum + part.rows.length, 0)
    if (limit === 0 || offset >= total) return { total, places: [], values: [] }
    if (order.length === 0)
      return { total, places: mergeByCreation(this.parts, offset, offset + limit).map(position), values: [] }
    if (Math.min(offset + limit, total) > orderedMax) return undefined
    const first = await this.firstByKeys(offset + limit)
    if (!first) return 'moved'
    const page = first.slice(offset)
    return { total, places: page.map(position), values: page.map(({ values }) => values) }
  }

  /** Tests every row; false when rows have moved. */
  private async scan(): Promise<boolean> {
    for (const part of this.parts)
      while (!part.isScanned) {
        if (!(await this.goOn())) return false
        part.scan()
        if (part.unsure > looksMax) return true
      }
    return true
  }

  /** Reads the entities of uncertain rows; false when rows have moved. */
  private async lookInto(): Promise<boolean> {
    const { request, store } = this
    for (const part of this.parts) {
      if (part.unsure === 0) continue
      const unsure = part.takeUnsure()
      const fitting: number[] = []
      for (let from = 0; from < unsure.length; from += looksPerStep) {
        if (!(await this.goOn())) return false
        const rows = unsure.slice(from, from + looksPerStep)
        const located = this.located(rows.map(row => ({ part, row })))
        const meant: Located[] = []
        for (const place of located) {
          if (this.isTime && !(await this.goOn())) return false
          if (meansIdentity(request.selection, place.id, place.type)) meant.push(place)
        }
        for (const { place, encoded } of encodedEntitiesAt(store, request.tenant, meant)) {
          if (this.isTime && !(await this.goOn())) return false
          const values = valuesIfMeant(request, encoded, place.path)
          if (!values) continue
          part.known.set(place.row, values)
          fitting.push(place.row)
        }
      }
      part.add(fitting)
    }
    return true
  }

  /** The first rows by the keys of the order; undefined when rows have moved. */
  private async firstByKeys(count: number): Promise<readonly Sorted[] | undefined> {
    const first = new First(this.request, count)
    for (const part of this.parts) {
      const sorter = new Sorter(this.request, part)
      for (let from = 0; from < part.rows.length; from += rowsPerChunk) {
        if (!(await this.goOn())) return undefined
        sorter.sort(part.rows.subarray(from, from + rowsPerChunk), first)
      }
    }
    return first.inOrder
  }

  /** The places of the entities of rows. Entities that were deleted meanwhile are left out. */
  private located(rows: readonly ViewRow[]): Located[] {
    const places = locate(this.store, this.request.tenant, rows.map(position))
    return rows.flatMap(({ row }, index) => {
      const place = places[index]
      return place ? [{ ...place, row }] : []
    })
  }

  /** Gives the event loop its turn when the time of a step is over; false when rows have moved meanwhile. */
  private async goOn(): Promise<boolean> {
    if (!this.isTime) return true
    await new Promise<void>(resolve => this.clock.endOfTick(resolve))
    this.sinceMs = this.clock.monoMs()
    return this.countMoves() === this.moves
  }

  private get isTime(): boolean {
    return this.clock.monoMs() - this.sinceMs >= stepMs
  }

  private countMoves(): number {
    return this.parts.reduce((sum, { table }) => sum + table.moves, 0)
  }
}

interface Located extends EntityPlace {
  readonly row: number
}

const position = ({ part: { table, range }, row }: ViewRow): EntityPosition => ({
  created: table.created[row]!,
  shard: table.shards[row]!,
  path: range.path,
  type: range.type,
})

/** Rows from `from` to `to` of all matches, in order of creation. */
function mergeByCreation(parts: readonly TablePart[], from: number, to: number): readonly ViewRow[] {
  const [only] = parts
  if (parts.length === 1 && only) return Array.from(only.rows.slice(from, to), row => ({ part: only, row }))
  const nextRows = new Heap<ViewRow & { readonly at: number }>(compareRows)
  for (const part of parts) if (part.rows.length > 0) nextRows.push({ part, row: part.rows[0]!, at: 0 })
  const merged: ViewRow[] = []
  for (let count = 0; count < to && nextRows.top; count++) {
    const { part, row, at } = nextRows.top
    if (count >= from) merged.push({ part, row })
    if (at + 1 < part.rows.length) nextRows.replaceTop({ part, row: part.rows[at + 1]!, at: at + 1 })
    else nextRows.pop()
  }
  return merged
}

interface Sorted extends ViewRow {
  readonly values: SortValues
}

/**
 * The first rows of all that were offered, by the keys of the order, as many as the page needs. [hot] Most of a million
 * rows come after those kept already. If the first value is a number, two loads show that.
 */
class First {
  private readonly order: readonly OrderKey[]
  /** The last of the kept rows is at the top: a row that comes before it replaces it. */
  private readonly kept: Heap<Sorted>

  constructor(
    { order }: ListRequest,
    private readonly count: number,
  ) {
    this.order = order
    this.kept = new Heap<Sorted>((a, b) => this.compare(b, a))
  }

  /** Keeps a row if it is among the first; returns whether it is. */
  offer(candidate: Sorted): boolean {
    const { kept } = this
    if (kept.size < this.count) kept.push(candidate)
    else if (this.compare(candidate, kept.top as Sorted) < 0) kept.replaceTop(candidate)
    else return false
    return true
  }

  /**
   * The first value of the last row kept: rows with a later value are rejected. NaN rejects none: there is room, or the
   * value is no number.
   */
  get bound(): number {
    const value = this.kept.size < this.count ? undefined : this.kept.top?.values[0]
    return typeof value === 'number' ? value : Number.NaN
  }

  get inOrder(): readonly Sorted[] {
    return [...this.kept.all()].sort((a, b) => this.compare(a, b))
  }

  private compare(a: Sorted, b: Sorted): number {
    return compareSortValues(this.order, a.values, b.values) || compareRows(a, b)
  }
}

class Sorter {
  private readonly keys: readonly ((row: number) => Json | undefined)[]
  private readonly descending: boolean
  /** The column of the first key; undefined when no column holds it. */
  private readonly column: Column | undefined
  private readonly distance: ((row: number) => number) | undefined

  constructor(
    request: ListRequest,
    private readonly part: TablePart,
  ) {
    const { order } = request
    this.descending = order[0]!.descending
    if (isByDistance(order)) {
      this.distance = distanceIn(request, part)
      this.keys = [this.distance]
    } else {
      this.keys = order.map(key => keyOf(part, key))
      this.column = columnOfKey(part, order[0]!)
    }
  }

  sort(rows: Uint32Array, first: First): void {
    const { column, distance, descending } = this
    let { bound } = first
    if (column) {
      const { kinds: kind, numbers } = column
      for (let at = 0; at < rows.length; at++) {
        const row = rows[at]!
        const number = numbers[row]!
        if ((descending ? number < bound : number > bound) && kind[row] === kinds.number) continue
        if (this.offer(row, first)) bound = first.bound
      }
      return
    }
    for (let at = 0; at < rows.length; at++) {
      const row = rows[at]!
      if (distance && !this.part.known.has(row) && distance(row) > bound) continue
      if (this.offer(row, first)) bound = first.bound
    }
  }

  private offer(row: number, first: First): boolean {
    const { part } = this
    return first.offer({ part, row, values: part.known.get(row) ?? this.keys.map(key => key(row)) })
  }
}

function keyOf(part: TablePart, key: OrderKey): (row: number) => Json | undefined {
  const { range } = part
  if (key.name === 'type') return () => range.type
  if (key.name === 'servicePath') return () => range.path
  const column = columnOfKey(part, key) as Column
  return row => valueAt(column, row)
}

function columnOfKey({ table }: TablePart, key: OrderKey): Column | undefined {
  const path = pathOfKey(key)
  return path && table.column(named(path).name)
}

/** Metres; without a `near` all are equal (order.ts). */
function distanceIn({ selection: { geo } }: ListRequest, { table }: TablePart): (row: number) => number {
  if (geo?.relation !== 'near') return () => 0
  return row => {
    const point = table.places?.pointOf(row)
    return point ? distanceTo(geo, point) : 0
  }
}

/** The value in a column. An entity for which the column has less was read. */
function valueAt({ kinds: kind, numbers, texts }: Column, row: number): Json | undefined {
  switch (kind[row]) {
    case kinds.null:
      return null
    case kinds.false:
      return false
    case kinds.true:
      return true
    case kinds.number:
      return numbers[row]!
    case kinds.text:
      return texts[numbers[row]!]!
    default:
      return undefined
  }
}
