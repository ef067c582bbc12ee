// A table: the entities of one type in one scope, a row each in order of creation, with columns and places.
//
//   created  shard  alive | temperature  humidity  ... | places
//
// Creation stamps only grow, so rows are added at the end and found by binary search. The row of a deleted entity
// stays, dead, until half of the table is dead; then the live ones move together. The type index has the ids, by stamp
// and shard: only a page needs them.

import type { EntityContent } from '../../../domain/entities/entity.js'
import { locationOf } from '../../../domain/places/geo.js'
import type { Geometry } from '../../../domain/places/location.js'
import { isByDistance, type OrderKey } from '../../../domain/queries/order.js'
import { type Operand, targetOf } from '../../../domain/queries/query.js'
import type { Path, Statement } from '../../../domain/queries/query-parser.js'
import { partitionPoint } from '../../../domain/search.js'
import type { ListRequest } from '../../../messages/messages.js'
import { Column, type ColumnParts, cellBytes, grown, type NamedPath, named } from './column.js'
import { GeoIndex, type GeoParts, placeBytes } from './geo-index.js'

export interface Layout {
  readonly columns: readonly NamedPath[]
  readonly places: boolean
}

export interface Cells {
  readonly targets: readonly Operand[]
  readonly geometry: Geometry | undefined
}

/** The arrays of a table, as they travel between threads. */
export interface TableParts {
  readonly rows: number
  readonly created: Float64Array
  readonly shards: Uint16Array
  readonly alive: Uint8Array
  readonly columns: readonly ColumnParts[]
  readonly places: GeoParts | undefined
}

const rowsMin = 64
const rowBytes = 11

/** Room for more: a quarter. */
const growth = 1.25

/** The number of rows for which a table of so many has room when it was just built. */
const capacityFor = (rows: number): number => Math.max(rowsMin, Math.ceil(rows * growth))

/** Bytes that a table of so many rows takes when it was just built, without texts, shapes and the grid. */
export const bytesFor = (rows: number, { columns, places }: Layout): number =>
  capacityFor(rows) * (rowBytes + columns.length * cellBytes + (places ? placeBytes : 0))

export class Table {
  /** Rows in use, the dead included. */
  rows = 0
  /** Grows whenever rows move: a caller that keeps row numbers over a pause has to begin again. */
  moves = 0
  created: Float64Array
  shards: Uint16Array
  alive: Uint8Array
  places: GeoIndex | undefined
  columns: Column[]
  private dead = 0

  constructor(
    readonly layout: Layout,
    capacity = rowsMin,
  ) {
    this.created = new Float64Array(capacity)
    this.shards = new Uint16Array(capacity)
    this.alive = new Uint8Array(capacity)
    this.columns = layout.columns.map(column => new Column(column, capacity))
    this.places = layout.places ? new GeoIndex(capacity) : undefined
  }

  /** A table of parts, whose memory it takes over. */
  static of(parts: TableParts): Table {
    const columns = parts.columns.map(({ name, path }) => ({ name, path }))
    const table = new Table({ columns, places: parts.places !== undefined }, 0)
    table.rows = parts.rows
    table.created = parts.created
    table.shards = parts.shards
    table.alive = parts.alive
    for (let row = 0; row < parts.rows; row++) if (parts.alive[row] === 0) table.dead++
    table.columns = parts.columns.map(column => new Column(column, 0, column))
    table.places = parts.places && new GeoIndex(0, parts.places)
    return table
  }

  get parts(): TableParts {
    const { rows, created, shards, alive } = this
    const columns = this.columns.map(column => column.parts)
    return { rows, created, shards, alive, columns, places: this.places?.parts }
  }

  get live(): number {
    return this.rows - this.dead
  }

  get bytes(): number {
    const columns = this.columns.reduce((bytes, column) => bytes + column.bytes, 0)
    return this.created.length * rowBytes + columns + (this.places?.bytes ?? 0)
  }

  column(name: string): Column | undefined {
    return this.columns.find(column => column.name === name)
  }

  // [hot] For every change that a view follows.
  /**
   * Puts the present state of an entity. Returns false for a missing entity that is older than the newest: it cannot be
   * added in order of creation.
   */
  put(created: number, shard: number, cells: Cells): boolean {
    let row = this.find(created, shard)
    if (row < 0) {
      if (this.rows > 0 && this.isBefore(created, shard, this.rows - 1)) return false
      row = this.add(created, shard)
    } else if (this.alive[row] === 0) {
      this.alive[row] = 1
      this.dead--
    }
    for (let at = 0; at < this.columns.length; at++) this.columns[at]!.set(row, cells.targets[at])
    this.places?.set(row, cells.geometry)
    return true
  }

  /** Removes an entity, if it is there. */
  remove(created: number, shard: number): void {
    const row = this.find(created, shard)
    if (row < 0 || this.alive[row] === 0) return
    this.alive[row] = 0
    this.dead++
    this.places?.set(row, undefined)
    if (this.dead > deadMin && this.dead * 2 > this.rows) this.keep(this.liveRows())
  }

  /** Removes an entity, if it is there, and all that were created after it. */
  removeFrom(created: number, shard: number): void {
    const from = this.placeOf(created, shard)
    for (let row = from; row < this.rows; row++) {
      if (this.alive[row] === 0) this.dead--
      this.places?.set(row, undefined)
    }
    this.rows = from
    this.moves++
  }

  /** Adds a row to a table that is being built, after the others. `sort` ends the build, and puts all rows in order. */
  append(created: number, shard: number, cells: Cells): void {
    const row = this.add(created, shard)
    for (let at = 0; at < this.columns.length; at++) this.columns[at]!.set(row, cells.targets[at])
    this.places?.set(row, cells.geometry)
  }

  /** Puts the rows in order of creation, in arrays with some room for more. */
  sort(): void {
    const { created, shards } = this
    this.keep(this.liveRows().sort((a, b) => created[a]! - created[b]! || shards[a]! - shards[b]!))
  }

  private liveRows(): Uint32Array {
    const rows = new Uint32Array(this.live)
    let at = 0
    for (let row = 0; row < this.rows; row++) if (this.alive[row] === 1) rows[at++] = row
    return rows
  }

  /** Keeps only the rows named, in that order. */
  private keep(rows: Uint32Array): void {
    const capacity = capacityFor(rows.length)
    const created = new Float64Array(capacity)
    const shards = new Uint16Array(capacity)
    for (let at = 0; at < rows.length; at++) {
      created[at] = this.created[rows[at]!]!
      shards[at] = this.shards[rows[at]!]!
    }
    this.created = created
    this.shards = shards
    this.alive = new Uint8Array(capacity).fill(1, 0, rows.length)
    this.columns = this.columns.map(column => column.picked(rows, capacity))
    this.places = this.places?.picked(rows, capacity)
    this.rows = rows.length
    this.dead = 0
    this.moves++
  }

  private add(created: number, shard: number): number {
    if (this.rows === this.created.length) this.grow(capacityFor(this.rows))
    const row = this.rows++
    this.created[row] = created
    this.shards[row] = shard
    this.alive[row] = 1
    return row
  }

  private grow(capacity: number): void {
    this.created = grown(this.created, new Float64Array(capacity))
    this.shards = grown(this.shards, new Uint16Array(capacity))
    this.alive = grown(this.alive, new Uint8Array(capacity))
    for (const column of this.columns) column.grow(capacity)
    this.places?.grow(capacity)
  }

  /** The row of an entity, or -1. */
  private find(created: number, shard: number): number {
    const row = this.placeOf(created, shard)
    return row < this.rows && this.isAt(created, shard, row) ? row : -1
  }

  /** The number of rows before an entity, whether it is there or not. */
  private placeOf(created: number, shard: number): number {
    const isEarlier = (row: number): boolean => {
      const other = this.created[row]!
      return other < created || (other === created && this.shards[row]! < shard)
    }
    return partitionPoint(isEarlier, 0, this.rows)
  }

  private isAt(created: number, shard: number, row: number): boolean {
    return this.created[row] === created && this.shards[row] === shard
  }

  /** Whether an entity comes before that of a row. */
  private isBefore(created: number, shard: number, row: number): boolean {
    const other = this.created[row]!
    return created < other || (created === other && shard < this.shards[row]!)
  }
}

/** Below this many dead rows nothing moves. */
const deadMin = 1024

/** The cells of an entity in a table of the layout, for its service path. */
export function cellsOf({ columns, places }: Layout, entity: EntityContent, servicePath: string): Cells {
  return {
    targets: columns.map(({ path }) => targetOf(path, entity, servicePath)),
    geometry: places ? locationOf(entity) : undefined,
  }
}

/** The layout that tables need to answer a list; undefined when no table could answer it. */
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

/** All statements of a list. */
export const statementsOf = ({ q, mq }: ListRequest['selection']): readonly Statement[] => [
  ...(q?.statements ?? []),
  ...(mq?.statements ?? []),
]

/** Whether a statement is about the service path, which all entities of a table have in common. */
export const isServicePath = (path: Path): boolean => path.builtin === 'servicePath' && path.metadata === undefined

/** The paths by which an order sorts, as far as columns hold them: not the distance. */
export const sortPaths = (order: readonly OrderKey[]): readonly Path[] =>
  isByDistance(order) ? [] : order.flatMap(key => pathOfKey(key) ?? [])

/** The target by which a key sorts; undefined for values that are the same in all of a table. */
export function pathOfKey({ name }: OrderKey): Path | undefined {
  if (name === 'type' || name === 'servicePath') return undefined
  const builtin = name === 'dateCreated' || name === 'dateModified' ? name : undefined
  return { attribute: name, metadata: undefined, steps: [], builtin }
}
