// The latest state of each entity that a watch has shown, and its lines as a table.
//
// Memory is bounded: so many rows, columns, and characters of a cell. An entity beyond the rows is not kept; the table
// says so until it begins anew, since a place that becomes free belongs to no entity that is known.
//
// Pure. Not here: when the table is drawn (display.ts).

import { isArray, isObject, type Json, type JsonObject } from '../domain/json.js'
import type { WatchedEvent } from './resuming.js'
import { clipped, padded, visible, widthOf } from './terminal-text.js'

/** Entities that are kept. */
export const tableRowsMax = 5_000
/** Attributes that are kept, of all entities together. */
export const tableColumnsMax = 32
/** Characters of a kept value. */
export const cellLengthMax = 100
/** Columns of the terminal that a value may take. */
export const cellWidthMax = 40

interface TableRow {
  readonly id: string
  readonly type: string
  readonly path: string
  /** Texts by the names of attributes. */
  readonly cells: ReadonlyMap<string, string>
}

/** The room for a table, in characters and lines. */
export interface TableRoom {
  readonly columns: number
  readonly rows: number
}

export class LatestStates {
  /** In the order in which the entities came. */
  private readonly rows = new Map<string, TableRow>()
  /** The number of rows that have an attribute, by its name, in the order in which the names came. */
  private readonly columns = new Map<string, number>()
  private pathsBelowRoot = 0
  /** There were entities without a place. */
  private isRowsCut = false
  private areColumnsCut = false

  /** Entities that are kept. */
  get size(): number {
    return this.rows.size
  }

  /** Forgets everything: it may be wrong from now on. */
  clear(): void {
    this.rows.clear()
    this.columns.clear()
    this.pathsBelowRoot = 0
    this.isRowsCut = false
    this.areColumnsCut = false
  }

  apply({ kind, members }: WatchedEvent): void {
    if (kind === 'gap') return this.clear()
    if (kind === 'entityLeave') return this.remove(members, members.servicePath)
    if (!isArray(members.data)) return
    for (const entity of members.data) {
      if (!isObject(entity)) continue
      if (kind === 'entityDelete') this.remove(entity, members.servicePath)
      else this.put(entity, members.servicePath)
    }
  }

  private put(entity: JsonObject, path: Json | undefined): void {
    const { id: _id, type: _type, servicePath: _path, ...attributes } = entity
    const place = placeOf(entity, path)
    const key = keyOf(place)
    const before = this.rows.get(key)
    if (!before && this.rows.size >= tableRowsMax) {
      this.isRowsCut = true
      return
    }
    const row = { ...place, cells: this.cellsOf(attributes) }
    this.rows.set(key, row)
    // In this order: a column that goes would come back as the last one.
    this.count(row)
    if (before) this.uncount(before)
  }

  private remove(entity: JsonObject, path: Json | undefined): void {
    const key = keyOf(placeOf(entity, path))
    const row = this.rows.get(key)
    if (!row) return
    this.rows.delete(key)
    this.uncount(row)
  }

  private cellsOf(attributes: JsonObject): Map<string, string> {
    const cells = new Map<string, string>()
    for (const [name, value] of Object.entries(attributes)) {
      if (this.columns.has(name) || this.columns.size < tableColumnsMax) {
        if (!this.columns.has(name)) this.columns.set(name, 0)
        cells.set(name, cellOf(value))
      } else this.areColumnsCut = true
    }
    return cells
  }

  private count(row: TableRow): void {
    for (const name of row.cells.keys()) this.columns.set(name, (this.columns.get(name) ?? 0) + 1)
    if (row.path !== '/') this.pathsBelowRoot++
  }

  private uncount(row: TableRow): void {
    for (const name of row.cells.keys()) {
      const left = (this.columns.get(name) ?? 1) - 1
      if (left > 0) this.columns.set(name, left)
      else this.columns.delete(name)
    }
    if (row.path !== '/') this.pathsBelowRoot--
  }

  /** The table within this room; its last line counts what is not shown. */
  lines({ columns, rows }: TableRoom): string[] {
    const all = [...this.rows.values()]
    const isCut = all.length > rows - 1 || this.isRowsCut
    const shown = all.slice(0, Math.max(0, rows - (isCut ? 2 : 1)))
    const heads = ['ID', 'TYPE', ...(this.pathsBelowRoot > 0 ? ['PATH'] : [])]
    const names = [...this.columns.keys()]
    const table = [
      [...heads, ...names.map(name => clipped(visible(name), cellWidthMax))],
      ...shown.map(({ id, type, path, cells }) =>
        [id, type, ...(heads.length > 2 ? [path] : []), ...names.map(name => cells.get(name) ?? '')].map(text =>
          clipped(text, cellWidthMax),
        ),
      ),
    ]
    const widths = table[0]!.map((_, at) => Math.max(...table.map(row => widthOf(row[at] as string))))
    const fitting = fittingColumns(widths, columns, heads.length, this.areColumnsCut)
    const hidden = widths.length - fitting
    const note = hidden > 0 || this.areColumnsCut ? between + more(hidden, this.areColumnsCut) : ''
    const lines = table.map((row, at) => {
      const cells = row.slice(0, fitting).map((cell, column) => padded(cell, widths[column] as number))
      return clipped(`${cells.join(between)}${at === 0 ? note : ''}`.trimEnd(), columns)
    })
    if (isCut) lines.push(more(all.length - shown.length, this.isRowsCut))
    return lines
  }
}

const between = '  '

/** `… 3 more`; with a plus sign if there are others, which were not counted. */
const more = (count: number, areOthers: boolean): string =>
  count === 0 ? '… more' : `… ${count}${areOthers ? '+' : ''} more`

/**
 * How many columns fit, and beside them the note about the others. The first ones, which name the entity, always stay.
 */
function fittingColumns(widths: readonly number[], columns: number, least: number, areOthers: boolean): number {
  const sum = (count: number): number =>
    widths.slice(0, count).reduce((all, one) => all + one, 0) + between.length * (count - 1)
  for (let count = widths.length; count > least; count--) {
    const hidden = widths.length - count
    const note = hidden > 0 || areOthers ? between.length + more(hidden, areOthers).length : 0
    if (sum(count) + note <= columns) return count
  }
  return Math.min(least, widths.length)
}

const keyOf = ({ id, type, path }: Pick<TableRow, 'id' | 'type' | 'path'>): string => JSON.stringify([path, type, id])

/**
 * The identity of an entity, in the form in which it is shown. An attribute shows the path where the entity has none.
 */
function placeOf(
  { id, type, servicePath }: JsonObject,
  path: Json | undefined,
): Pick<TableRow, 'id' | 'type' | 'path'> {
  return { id: textOf(id), type: textOf(type), path: textOf(servicePath ?? path ?? '/') }
}

const textOf = (json: Json | undefined): string => (typeof json === 'string' ? visible(json) : '')

/** A value in the simplified form, as a text without control characters. */
function cellOf(value: Json): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  // Twice as much, so that a character of two units is not cut in the part that is kept.
  return clipped(visible(text.slice(0, 2 * cellLengthMax)), cellLengthMax)
}
