// The views of a node: the existing tables, how they are built, and how they follow changes.
//
// A table is built when a list first needs it, by one sweep through the store, and then follows every durable change.
// Changes during the build are kept and applied afterwards, whether the sweep has seen them or not. Building again,
// with another column, does not disturb the present table.
//
// Memory is bounded: the least recently used tables are removed first. A missing view costs time, never an answer.

import type { Entity } from '../../../domain/entities/entity.js'
import type { Clock, Logger } from '../../../ports.js'
import type { ChangeFollower } from '../../commit/change-queue.js'
import type { GroupCommit } from '../../commit/commit.js'
import type { ShardRecord } from '../../turn/apply.js'
import type { CountedRange, PlaceRange } from '../entity-place.js'
import type { Scanner } from '../scans.js'
import { bytesFor, type Cells, cellsOf, type Layout, Table, type TableParts } from './table.js'

/** A change that came while a table was being built; without cells the entity was deleted. */
interface Change {
  readonly isNew: boolean
  readonly created: number
  readonly shard: number
  readonly cells: Cells | undefined
}

interface Building {
  readonly layout: Layout
  readonly bytes: number
  readonly changes: Change[]
  readonly done: Promise<unknown>
}

interface Slot {
  readonly name: string
  table: Table | undefined
  building: Building | undefined
  /** When it was last used, in uses. */
  used: number
}

/** Bytes of a table besides its arrays. */
const tableBytes = 2048
/** The greatest number of tables: to visit all of them takes a millisecond. */
const tablesMax = 4_000
/** Changes kept while a table is built, some 200 bytes each; with more the build is given up. */
const changesMax = 1_000_000
/** How often a build is repeated because the wanted columns have changed meanwhile. */
const attemptsMax = 4
/** Changes between two checks of the memory used. */
const changesPerLook = 4096
/** Columns of a table. Each costs every change of an entity some 50 ns. */
const columnsMax = 64

export class Views implements ChangeFollower {
  private readonly slots = new Map<string, Slot>()
  private uses = 0
  /** Lists that found all the tables they needed, and lists that did not. */
  readonly lookups = { hits: 0, misses: 0 }
  private changes = 0

  constructor(
    private readonly bytesMax: number,
    private readonly scanner: Pick<Scanner, 'build'>,
    private readonly commit: Pick<GroupCommit, 'drain'>,
    private readonly clock: Pick<Clock, 'monoMs'>,
    private readonly logger: Pick<Logger, 'info'>,
  ) {}

  /**
   * Forgets all tables, because this owner has other shards from now on. Builds in progress will not be used either.
   */
  forget(): void {
    this.slots.clear()
  }

  /** The number of tables, those that are being built included. */
  get size(): number {
    return this.slots.size
  }

  get bytes(): number {
    let bytes = 0
    for (const { table } of this.slots.values()) if (table) bytes += table.bytes + tableBytes
    return bytes
  }

  // [hot] For every change.
  wants({ tenant, path, type }: ShardRecord): boolean {
    return this.slots.size > 0 && this.slots.has(slotName(tenant, path, type))
  }

  // [hot] For every change of an entity that is in a view.
  follow(record: ShardRecord, after: Entity | undefined): void {
    const slot = this.slots.get(slotName(record.tenant, record.path, record.type))
    if (!slot) return
    const { path, shard } = record
    const created = after ? after.created : record.before!.created
    if (slot.building)
      this.keep(slot.building, {
        isNew: record.before === undefined,
        created,
        shard,
        cells: after && cellsOf(slot.building.layout, after, path),
      })
    const { table } = slot
    if (!table) return
    if (!after) {
      table.remove(created, shard)
      // Types and paths come and go: an empty table is useless.
      if (table.live > 0) return
      slot.table = undefined
      return this.forgetIfEmpty(slot)
    }
    if (!table.put(created, shard, cellsOf(table.layout, after, path))) {
      slot.table = undefined
      this.forgetIfEmpty(slot)
    }
    if (++this.changes % changesPerLook === 0) this.fit(0)
  }

  /** The tables of the ranges, if all exist and have the columns and places of the layout. */
  tables(tenant: string, ranges: readonly PlaceRange[], layout: Layout): readonly Table[] | undefined {
    const tables: Table[] = []
    const used = ++this.uses
    for (const { path, type } of ranges) {
      const slot = this.slots.get(slotName(tenant, path, type))
      if (!slot?.table || !covers(slot.table, layout)) return undefined
      slot.used = used
      tables.push(slot.table)
    }
    return tables
  }

  /** Builds the missing tables. False when there is no memory for them, or too much has changed meanwhile. */
  async prepare(tenant: string, ranges: readonly CountedRange[], layout: Layout): Promise<boolean> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const missing = ranges.filter(range => !this.tables(tenant, [range], layout))
      if (missing.length === 0) return true
      const under = missing.flatMap(({ path, type }) => this.slots.get(slotName(tenant, path, type))?.building ?? [])
      if (under.length > 0) await Promise.allSettled(under.map(building => building.done))
      else if (!(await this.build(tenant, missing, layout))) return false
    }
    return false
  }

  private async build(tenant: string, ranges: readonly CountedRange[], wanted: Layout): Promise<boolean> {
    const needed = ranges.reduce((bytes, { count }) => bytes + bytesFor(count, wanted) + tableBytes, 0)
    if (needed > this.bytesMax || wanted.columns.length > columnsMax) return false
    const parts = ranges.map(({ path, type, count }) => ({ count, slot: this.slot(tenant, path, type) }))
    const layouts = parts.map(({ slot, count }) => this.joined(slot.table?.layout, wanted, count, needed))
    const fromMs = this.clock.monoMs()
    const scan = { tenant, parts: ranges.map((range, index) => ({ ...range, layout: layouts[index]! })) }
    // Staged changes are not followed, or only in part. So they must be durable when the sweep begins, which then sees
    // all changes that were followed before.
    const done = this.commit.drain().then(() => {
      for (const { changes } of buildings) changes.length = 0
      return this.scanner.build(scan)
    })
    const buildings = parts.map(({ slot, count }, index): Building => {
      const layout = layouts[index]!
      slot.building = { layout, bytes: bytesFor(count, layout) + tableBytes, changes: [], done }
      return slot.building
    })
    this.fit(buildings.reduce((bytes, building) => bytes + building.bytes, 0))
    try {
      const tables = await done
      for (const [index, { slot }] of parts.entries()) this.adopt(slot, buildings[index]!, tables[index]!)
      // Texts and shapes may take more memory than expected: then another attempt would end like this one.
      this.fit(0)
      if (!this.tables(tenant, ranges, wanted)) return false
      this.logBuilt(tables, this.clock.monoMs() - fromMs)
      return true
    } finally {
      for (const [index, { slot }] of parts.entries()) {
        if (slot.building === buildings[index]) slot.building = undefined
        this.forgetIfEmpty(slot)
      }
    }
  }

  private logBuilt(tables: readonly TableParts[], ms: number): void {
    const rows = tables.reduce((sum, table) => sum + table.rows, 0)
    const columns = Math.max(...tables.map(table => table.columns.length))
    const mb = this.bytes / (1024 * 1024)
    this.logger.info(
      `view of ${rows} entities built in ${Math.round(ms)} ms: ${columns} columns; all views take ${mb.toFixed(1)} MB`,
    )
  }

  private adopt(slot: Slot, { changes }: Building, parts: TableParts): void {
    if (changes.length > changesMax) return
    const table = Table.of(parts)
    // Of two entities created meanwhile, the sweep may have seen only the later one. Both come again, in order.
    const first = changes.find(change => change.isNew)
    if (first) table.removeFrom(first.created, first.shard)
    // An entity may have been deleted before the sweep reached it; then a later change removes it.
    const missing = new Set<number>()
    for (const { created, shard, cells } of changes) {
      if (!cells) {
        table.remove(created, shard)
        missing.delete(created)
      } else if (!table.put(created, shard, cells)) missing.add(created)
    }
    if (missing.size > 0) return
    slot.table = table
    slot.used = ++this.uses
  }

  private keep({ changes }: Building, change: Change): void {
    if (changes.length <= changesMax) changes.push(change)
  }

  /** The wanted layout, with the present columns as far as there is room. */
  private joined(present: Layout | undefined, wanted: Layout, count: number, needed: number): Layout {
    if (!present) return wanted
    const names = new Set(wanted.columns.map(column => column.name))
    const columns = [...wanted.columns, ...present.columns.filter(column => !names.has(column.name))]
    const joined = { columns, places: wanted.places || present.places }
    const more = bytesFor(count, joined) - bytesFor(count, wanted)
    return needed + more <= this.bytesMax && columns.length <= columnsMax ? joined : wanted
  }

  /**
   * Removes tables, the least recently used first, until they are few enough and there is room for so many more bytes.
   */
  private fit(bytes: number): void {
    let room = this.bytesMax - bytes - this.bytes
    let tooMany = this.slots.size - tablesMax
    if (room >= 0 && tooMany <= 0) return
    const oldest = [...this.slots.values()].filter(({ table }) => table).sort((a, b) => a.used - b.used)
    for (const slot of oldest) {
      if (room >= 0 && tooMany <= 0) return
      room += slot.table!.bytes + tableBytes
      tooMany--
      slot.table = undefined
      this.forgetIfEmpty(slot)
    }
  }

  private slot(tenant: string, path: string, type: string): Slot {
    const name = slotName(tenant, path, type)
    let slot = this.slots.get(name)
    if (!slot) {
      slot = { name, table: undefined, building: undefined, used: 0 }
      this.slots.set(name, slot)
    }
    return slot
  }

  private forgetIfEmpty(slot: Slot): void {
    const { name, table, building } = slot
    if (!table && !building && this.slots.get(name) === slot) this.slots.delete(name)
  }
}

const slotName = (tenant: string, path: string, type: string): string => `${tenant}\0${path}\0${type}`

/** Whether a table has all columns and places of a layout. */
const covers = (table: Table, { columns, places }: Layout): boolean =>
  (table.places !== undefined || !places) && columns.every(({ name }) => table.column(name) !== undefined)
