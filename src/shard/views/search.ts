// A list answered from views: which rows fit, how many, and which of them are on the page.
//
//   every row of every table -> statements and place, by what the columns know -> rows that fit, and rows to look into
//   -> those are looked into -> the first of all that fit, by creation or by the keys of the order -> places
//
// A search that is short is one piece: it sees all of the node as it was at one moment. A long one lets the event loop have its turn in
// between, and begins anew when rows have moved meanwhile. One that would have to look into many entities gives up: a scan is quicker.

import { distanceTo } from '../../domain/geo.js'
import type { Json } from '../../domain/json.js'
import { compareSortValues, isByDistance, type OrderKey } from '../../domain/order.js'
import { holdsFor, type Path, type Statement } from '../../domain/query.js'
import { meansAllIds, meansIdentity } from '../../domain/selection.js'
import type { ListRequest, Standing } from '../../messages.js'
import type { StoreReader } from '../../ports.js'
import { Heap } from '../heap.js'
import { imagesAt, type Page, type SortValues, valuesIfMeant } from '../matches.js'
import { locate, type Place, type PlaceRange } from '../places.js'
import type { Breathe } from '../sweep.js'
import { type Column, kinds, type NamedPath, named } from './column.js'
import type { Layout, Table } from './table.js'
import { doubt, prepare, rowOf, sift, siftRange, type Test } from './verdict.js'

/** Entities that a search looks into at most, some 15 us each. */
const looksMax = 2000
/** Entities looked into per step. */
const looksPerStep = 64
/** The end of the furthest page by keys; beyond, a scan sorts elsewhere. */
const orderedMax = 10_000
/** Questions to rows between two turns of the event loop: some 5 ms. */
const questionsPerStep = 1_500_000
/** What it costs to ask where a row is, in questions. */
const questionsPerPlace = 20
/** How often a search begins anew because rows have moved. */
const attemptsMax = 3

/** What tables have to hold to answer a list; undefined when none could. */
export function layoutFor({ selection, order }: ListRequest): Layout | undefined {
  if (order.some(key => key.name === 'id') || selection.source.anyAttribute) return undefined
  const asked = statementsOf(selection)
    .map(statement => statement.path)
    .filter(path => !isServicePath(path))
  const columns = new Map<string, NamedPath>()
  for (const path of [...asked, ...sortPaths(order)]) {
    const column = named(path)
    columns.set(column.name, column)
  }
  return { columns: [...columns.values()], places: selection.geo !== undefined }
}

const statementsOf = ({ q, mq }: ListRequest['selection']): readonly Statement[] => [
  ...(q?.statements ?? []),
  ...(mq?.statements ?? []),
]

const isServicePath = (path: Path): boolean => path.builtin === 'servicePath' && path.metadata === undefined

/** What an order sorts by, as far as columns hold it: not the distance. */
const sortPaths = (order: readonly OrderKey[]): readonly Path[] =>
  isByDistance(order) ? [] : order.flatMap(key => pathOfKey(key) ?? [])

/** The column that a key sorts by; undefined for what is the same in all of a table. */
function pathOfKey({ name }: OrderKey): Path | undefined {
  if (name === 'type' || name === 'servicePath') return undefined
  const builtin = name === 'dateCreated' || name === 'dateModified' ? name : undefined
  return { attribute: name, metadata: undefined, steps: [], builtin }
}

/** Answers a list from the tables of its ranges; undefined when a scan has to. */
export async function search(
  request: ListRequest,
  ranges: readonly PlaceRange[],
  tables: readonly Table[],
  store: StoreReader,
  breathe: Breathe,
): Promise<Page<Standing> | undefined> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const once = new Search(request, ranges, tables, store, breathe)
    const outcome = await once.run()
    if (outcome !== 'moved') return outcome
  }
  return undefined
}

class Search {
  private readonly request: ListRequest
  private readonly parts: readonly Part[]
  private readonly store: StoreReader
  private readonly breathe: Breathe
  private readonly moves: number

  constructor(
    request: ListRequest,
    ranges: readonly PlaceRange[],
    tables: readonly Table[],
    store: StoreReader,
    breathe: Breathe,
  ) {
    this.request = request
    this.parts = tables.map((table, index) => new Part(request, ranges[index]!, table))
    this.store = store
    this.breathe = breathe
    this.moves = this.countMoves()
  }

  async run(): Promise<Page<Standing> | undefined | 'moved'> {
    if (!(await this.scan())) return 'moved'
    const looks = this.parts.reduce((sum, part) => sum + part.unsure, 0)
    if (looks > looksMax) return undefined
    if (!(await this.lookInto())) return 'moved'
    const { order, offset, limit } = this.request
    const total = this.parts.reduce((sum, part) => sum + part.rows.length, 0)
    if (limit === 0 || offset >= total) return { total, places: [], values: [] }
    if (order.length === 0)
      return { total, places: mergeByCreation(this.parts, offset, offset + limit).map(standing), values: [] }
    if (Math.min(offset + limit, total) > orderedMax) return undefined
    const first = await this.firstByKeys(offset + limit)
    if (!first) return 'moved'
    const page = first.slice(offset)
    return { total, places: page.map(standing), values: page.map(({ values }) => values) }
  }

  /** Asks every row; false when rows have moved. */
  private async scan(): Promise<boolean> {
    let questions = 0
    for (const part of this.parts)
      while (!part.isScanned) {
        questions += part.scan()
        if (part.unsure > looksMax) return true
        if (questions < questionsPerStep) continue
        questions = 0
        if (!(await this.rest())) return false
      }
    return true
  }

  /** Looks into the entities of which the columns do not know enough; false when rows have moved. */
  private async lookInto(): Promise<boolean> {
    const { request, store } = this
    for (const part of this.parts) {
      if (part.unsure === 0) continue
      const unsure = part.takeUnsure()
      const fitting: number[] = []
      for (let from = 0; from < unsure.length; from += looksPerStep) {
        if (from > 0 && !(await this.rest())) return false
        const rows = unsure.slice(from, from + looksPerStep)
        const located = this.located(rows.map(row => ({ part, row })))
        const meant = located.filter(({ id, type }) => meansIdentity(request.selection, id, type))
        for (const { place, image } of imagesAt(store, request.tenant, meant)) {
          const values = valuesIfMeant(request, image, place.path)
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
    const { order } = this.request
    const inOrder = (a: Sorted, b: Sorted): number => compareSortValues(order, a.values, b.values) || compareRows(a, b)
    // The last of those kept stands at the top: whoever comes before it takes its place.
    const kept = new Heap<Sorted>((a, b) => inOrder(b, a))
    for (const part of this.parts) {
      const sorter = new Sorter(this.request, part)
      for (let from = 0; from < part.rows.length; from += rowsSortedPerStep) {
        if (from > 0 && !(await this.rest())) return undefined
        sorter.sort(part.rows.subarray(from, from + rowsSortedPerStep), count, kept, inOrder)
      }
    }
    return [...kept.all()].sort(inOrder)
  }

  /** Where the entities of rows are; one that has gone meanwhile is left out. */
  private located(rows: readonly Row[]): Located[] {
    const places = locate(this.store, this.request.tenant, rows.map(standing))
    return rows.flatMap(({ row }, index) => {
      const place = places[index]
      return place ? [{ ...place, row }] : []
    })
  }

  /** Lets the event loop have its turn; false when rows have moved meanwhile. */
  private async rest(): Promise<boolean> {
    await this.breathe()
    return this.countMoves() === this.moves
  }

  private countMoves(): number {
    return this.parts.reduce((sum, { table }) => sum + table.moves, 0)
  }
}

/** A row of a table. */
interface Row {
  readonly part: Part
  readonly row: number
}

/** A place, and the row that it was found by. */
interface Located extends Place {
  readonly row: number
}

interface Sorted extends Row {
  readonly values: SortValues
}

/** The order of creation. */
const compareRows = ({ part: a, row: i }: Row, { part: b, row: j }: Row): number =>
  a.table.created[i]! - b.table.created[j]! || a.table.shards[i]! - b.table.shards[j]!

const standing = ({ part: { table, range }, row }: Row): Standing => ({
  created: table.created[row]!,
  shard: table.shards[row]!,
  path: range.path,
  type: range.type,
})

/** Rows from `from` to `to` of all that fit, in order of creation. */
function mergeByCreation(parts: readonly Part[], from: number, to: number): readonly Row[] {
  const [only] = parts
  if (parts.length === 1 && only) return Array.from(only.rows.slice(from, to), row => ({ part: only, row }))
  const heads = new Heap<Row & { readonly at: number }>(compareRows)
  for (const part of parts) if (part.rows.length > 0) heads.push({ part, row: part.rows[0]!, at: 0 })
  const merged: Row[] = []
  for (let count = 0; count < to && heads.top; count++) {
    const { part, row, at } = heads.top
    if (count >= from) merged.push({ part, row })
    if (at + 1 < part.rows.length) heads.replaceTop({ part, row: part.rows[at + 1]!, at: at + 1 })
    else heads.pop()
  }
  return merged
}

/** One table of a search. */
class Part {
  readonly range: PlaceRange
  readonly table: Table
  /** What the entities looked into are ordered by. */
  readonly known = new Map<number, SortValues>()
  /** Rows to look into. */
  unsure = 0
  private readonly request: ListRequest
  private readonly tests: readonly Test[]
  /** Columns of the order: what they do not hold has to be looked up. */
  private readonly sorted: readonly Column[]
  /** Only these rows may fit; undefined: any. */
  private readonly candidates: Uint32Array | undefined
  private readonly lookAtAll: boolean
  private readonly size: number
  private at = 0
  private found: Uint32Array
  private unsureRows: number[] = []
  private count = 0

  constructor(request: ListRequest, range: PlaceRange, table: Table) {
    const { selection, order } = request
    this.request = request
    this.range = range
    this.table = table
    this.lookAtAll = !meansAllIds(selection)
    const columnOf = (path: Path): Column => table.column(named(path).name) as Column
    const statements = statementsOf(selection)
    const constant = statements.filter(({ path }) => isServicePath(path))
    const holds = constant.every(statement => holdsFor(statement, range.path))
    this.tests = statements
      .filter(statement => !constant.includes(statement))
      .map(statement => prepare(statement, columnOf(statement.path)))
    this.sorted = sortPaths(order).map(columnOf)
    const { geo } = selection
    this.candidates = geo && table.places?.candidates(geo, table.rows)
    this.size = holds ? (this.candidates?.length ?? table.rows) : 0
    this.found = new Uint32Array(Math.min(this.size, foundMin))
  }

  /** Rows that fit, in order. */
  get rows(): Uint32Array {
    return this.found.subarray(0, this.count)
  }

  get isScanned(): boolean {
    return this.at >= this.size
  }

  // [hot] For each row of a view.
  /** Asks the next rows; gives how many questions there were. */
  scan(): number {
    const { table, tests, candidates, sorted, request } = this
    const { geo } = request.selection
    const from = this.at
    const to = Math.min(this.size, from + scratch.length)
    this.at = to
    let size: number
    let next = 0
    if (candidates) {
      scratch.set(candidates.subarray(from, to))
      size = to - from
    } else if (tests.length > 0) size = siftRange(tests[next++]!, from, to, scratch)
    else size = allRows(from, to)
    for (; next < tests.length; next++) size = sift(tests[next]!, scratch, size)
    if (geo) size = table.places!.sift(geo, scratch, size)
    for (const column of sorted) doubtWhatIsNotHeld(column, size)
    this.takeOver(size)
    return (to - from) * (1 + tests.length + (geo ? questionsPerPlace : 0))
  }

  /** Takes the first rows of the scratch: those that fit, and those to look into. */
  private takeOver(size: number): void {
    const { alive } = this.table
    for (let at = 0; at < size; at++) {
      const row = scratch[at]!
      const number = rowOf(row)
      if (alive[number] === 0) continue
      if (row !== number || this.lookAtAll) this.doubt(number)
      else this.take(number)
    }
  }

  takeUnsure(): readonly number[] {
    const rows = this.unsureRows
    this.unsureRows = []
    this.unsure = 0
    return rows
  }

  /** Adds rows that fit after all. */
  add(rows: readonly number[]): void {
    for (const row of rows) this.take(row)
    this.rows.sort()
  }

  private doubt(row: number): void {
    if (++this.unsure <= looksMax) this.unsureRows.push(row)
  }

  private take(row: number): void {
    if (this.count === this.found.length) {
      const longer = new Uint32Array(Math.max(foundMin, this.count * 2))
      longer.set(this.found)
      this.found = longer
    }
    this.found[this.count++] = row
  }
}

const foundMin = 1024

/** The rows under question; a scan is one piece, so all searches share it. */
const scratch = new Uint32Array(65_536)

function allRows(from: number, to: number): number {
  for (let row = from; row < to; row++) scratch[row - from] = row
  return to - from
}

function doubtWhatIsNotHeld({ kinds: kind }: Column, size: number): void {
  for (let at = 0; at < size; at++) {
    const row = scratch[at]!
    if (kind[rowOf(row)]! >= kinds.hashed) scratch[at] = row | doubt
  }
}

/** Rows sorted between two turns of the event loop. */
const rowsSortedPerStep = 250_000

/** What the rows of a table are ordered by. */
class Sorter {
  private readonly part: Part
  private readonly keys: readonly ((row: number) => Json | undefined)[]
  private readonly descending: boolean
  /** The first value of a row, as far as it is a number; else NaN. */
  private readonly first: (row: number) => number

  constructor(request: ListRequest, part: Part) {
    const { order } = request
    this.part = part
    if (isByDistance(order)) {
      const distance = distanceIn(request, part)
      this.keys = [distance]
      this.first = row => (part.known.has(row) ? Number.NaN : distance(row))
    } else {
      this.keys = order.map(key => keyOf(part, key))
      this.first = firstIn(part, order[0]!)
    }
    this.descending = order[0]!.descending
  }

  // [hot] For each row that an order looks at. Most rows are no match for those kept already, and a number tells.
  /** Puts rows among the first `count`. */
  sort(rows: Uint32Array, count: number, kept: Heap<Sorted>, inOrder: (a: Sorted, b: Sorted) => number): void {
    const { part, first, descending } = this
    let bound = boundOf(kept, count)
    for (let at = 0; at < rows.length; at++) {
      const row = rows[at]!
      const number = first(row)
      if (descending ? number < bound : number > bound) continue
      const candidate = { part, row, values: part.known.get(row) ?? this.keys.map(key => key(row)) }
      if (kept.size < count) kept.push(candidate)
      else if (inOrder(candidate, kept.top as Sorted) < 0) kept.replaceTop(candidate)
      else continue
      bound = boundOf(kept, count)
    }
  }
}

/** The first value of the last row kept: behind it nobody comes in. NaN, which keeps nobody out, when there is room or it is no number. */
function boundOf(kept: Heap<Sorted>, count: number): number {
  const value = kept.size < count ? undefined : kept.top?.values[0]
  return typeof value === 'number' ? value : Number.NaN
}

function firstIn(part: Part, key: OrderKey): (row: number) => number {
  const column = columnOfKey(part, key)
  if (!column) return () => Number.NaN
  const { kinds: kind, numbers } = column
  return row => (kind[row] === kinds.number ? numbers[row]! : Number.NaN)
}

function keyOf(part: Part, key: OrderKey): (row: number) => Json | undefined {
  const { range } = part
  if (key.name === 'type') return () => range.type
  if (key.name === 'servicePath') return () => range.path
  const column = columnOfKey(part, key) as Column
  return row => valueAt(column, row)
}

function columnOfKey({ table }: Part, key: OrderKey): Column | undefined {
  const path = pathOfKey(key)
  return path && table.column(named(path).name)
}

/** Metres; without a `near` all are equal (order.ts). */
function distanceIn({ selection: { geo } }: ListRequest, { table }: Part): (row: number) => number {
  if (geo?.relation !== 'near') return () => 0
  return row => {
    const point = table.places?.pointOf(row)
    return point ? distanceTo(geo, point) : 0
  }
}

/** What a column holds; an entity of which it holds less has been looked into. */
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
