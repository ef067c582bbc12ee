// One table of a search: its rows are tested chunk by chunk, and become rows that match or rows whose entity must be
// read.

import { holdsFor } from '../../../domain/queries/query.js'
import type { Path } from '../../../domain/queries/query-parser.js'
import { meansAllIds } from '../../../domain/queries/selection.js'
import type { ListRequest } from '../../../messages/messages.js'
import type { PlaceRange } from '../entity-place.js'
import type { SortValues } from '../matches.js'
import { type Column, kinds, named } from './column.js'
import { isServicePath, sortPaths, statementsOf, type Table } from './table.js'
import { doubt, prepare, rowOf, sift, siftRange, type Test } from './verdict.js'

/** Entities that a search reads at most, some 15 us each. */
export const looksMax = 2000

/** A row of a table. */
export interface ViewRow {
  readonly part: TablePart
  readonly row: number
}

export const compareRows = ({ part: a, row: i }: ViewRow, { part: b, row: j }: ViewRow): number =>
  a.table.created[i]! - b.table.created[j]! || a.table.shards[i]! - b.table.shards[j]!

export class TablePart {
  /** The sort values of entities that were read. */
  readonly known = new Map<number, SortValues>()
  unsure = 0
  private readonly tests: readonly Test[]
  /** Columns of the order. Entities for which they lack the value have to be read. */
  private readonly sorted: readonly Column[]
  /** The rows that may match; undefined: all. */
  private readonly candidates: Uint32Array | undefined
  private readonly lookAtAll: boolean
  private readonly size: number
  private at = 0
  private found: Uint32Array
  private unsureRows: number[] = []
  private count = 0

  constructor(
    private readonly request: ListRequest,
    readonly range: PlaceRange,
    readonly table: Table,
  ) {
    const { selection, order } = request
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

  /** Rows that match, in order. */
  get rows(): Uint32Array {
    return this.found.subarray(0, this.count)
  }

  get isScanned(): boolean {
    return this.at >= this.size
  }

  // [hot] For each row of a view.
  scan(): void {
    const from = this.at
    const to = Math.min(this.size, from + rowsPerChunk)
    this.at = to
    const { tests, candidates } = this
    const { geo } = this.request.selection
    if (candidates) scratch.set(candidates.subarray(from, to))
    else if (tests.length === 0 && !geo) return this.takeAll(from, to)
    let next = 0
    let size = to - from
    if (!candidates) size = tests.length > 0 ? siftRange(tests[next++]!, from, to, scratch) : allRows(from, to)
    for (; next < tests.length; next++) size = sift(tests[next]!, scratch, size)
    if (geo) size = this.table.places!.sift(geo, scratch, size)
    for (const column of this.sorted) doubtWhatIsNotHeld(column, size)
    this.takeOver(size)
  }

  // [hot] For each row of a list that only orders: 3 ns.
  /** Takes rows when there is no test. */
  private takeAll(from: number, to: number): void {
    if (this.lookAtAll || this.sorted.length > 1) {
      const size = allRows(from, to)
      for (const column of this.sorted) doubtWhatIsNotHeld(column, size)
      return this.takeOver(size)
    }
    const { alive } = this.table
    const kind = this.sorted[0]?.kinds
    this.makeRoom(to - from)
    const { found } = this
    let { count } = this
    for (let row = from; row < to; row++) {
      if (alive[row] === 0) continue
      if (kind && kind[row]! >= kinds.hashed) this.doubt(row)
      else found[count++] = row
    }
    this.count = count
  }

  /** Takes the first rows of the scratch: those that match, and those whose entity must be read. */
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

  add(rows: readonly number[]): void {
    for (const row of rows) this.take(row)
    this.rows.sort()
  }

  private doubt(row: number): void {
    if (++this.unsure <= looksMax) this.unsureRows.push(row)
  }

  private take(row: number): void {
    this.makeRoom(1)
    this.found[this.count++] = row
  }

  private makeRoom(rows: number): void {
    const wanted = this.count + rows
    if (wanted <= this.found.length) return
    const longer = new Uint32Array(Math.max(foundMin, this.count * 2, wanted))
    longer.set(this.found)
    this.found = longer
  }
}

const foundMin = 1024

/** Rows tested in one piece: some 0.3 ms, and twenty times that before the code is hot. */
export const rowsPerChunk = 32_768

/** The rows of the present chunk. A chunk is one piece, so all searches share this memory. */
const scratch = new Uint32Array(rowsPerChunk)

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
