// Rows of counts that change often, in memory with their keys. In a cluster, a commit of a hundred creations changes
// some sixty of them, mostly the same as the commit before.
//
// There are two generations, as in domain/recent.ts; a row that is looked up or made is in the younger one. When the
// younger one is full, `age` makes it the older one, and forgets the rows of the older one. Between two calls of `age`
// no row is forgotten. Each call is at the beginning of a commit that takes everything staged while nothing is in
// flight. So a row that is staged or in flight is not forgotten, and has one object.
//
// Not here: the use of counts (counts.ts).

import { ownText } from '../../domain/recent.js'
import type { CountRows } from '../layout.js'
import { nested } from '../nested.js'

/** Rows of a generation: some 300 bytes each. */
export const rowsKept = 25_000

type RowsByType = Map<string, Map<number, CountedRow>>
type RowsByTenant = Map<string, Map<string, RowsByType>>

/** A row, its count, and the difference that is staged. */
export class CountedRow {
  readonly tenant: string
  readonly path: string
  readonly type: string
  readonly shard: number
  readonly key: Buffer
  /** The count when its commit in flight is written; undefined: it has to be read from the store. */
  count: number | undefined = undefined
  /** The staged change of the count; it may be 0 in the end. */
  difference = 0
  isStaged = false
  /** Whether a commit in flight removes the last one of its path and type. */
  isEmptied = false

  constructor(rows: CountRows, tenant: string, path: string, type: string, shard: number) {
    this.tenant = ownText(tenant)
    this.path = ownText(path)
    this.type = ownText(type)
    this.shard = shard
    this.key = rows.key(tenant, path, type, shard)
  }
}

export class CountedRows {
  private readonly rows: CountRows
  private readonly generationMax: number
  private younger: RowsByTenant = new Map()
  private older: RowsByTenant = new Map()
  private youngerSize = 0
  private olderSize = 0
  /** Where the row of the last lookup is: nearly always the next one is there, too. */
  private tenant = ''
  private path = ''
  private types: RowsByType | undefined

  constructor(rows: CountRows, generationMax = rowsKept) {
    this.rows = rows
    this.generationMax = generationMax
  }

  get size(): number {
    return this.youngerSize + this.olderSize
  }

  // [hot] For every attribute of every creation.
  /** The row; creates it if it is not in memory. */
  row(tenant: string, path: string, type: string, shard: number): CountedRow {
    const known = tenant === this.tenant && path === this.path ? this.types : undefined
    const types = known ?? this.typesOf(tenant, path)
    return types.get(type)?.get(shard) ?? this.recalled(tenant, path, type, shard)
  }

  private typesOf(tenant: string, path: string): RowsByType {
    const types = this.younger.get(tenant)?.get(path) ?? nested(nested(this.younger, ownText(tenant)), ownText(path))
    this.tenant = tenant
    this.path = path
    this.types = types
    return types
  }

  private recalled(tenant: string, path: string, type: string, shard: number): CountedRow {
    const before = this.older.get(tenant)?.get(path)?.get(type)?.get(shard)
    if (before) this.olderSize -= removed(this.older, before)
    const row = before ?? new CountedRow(this.rows, tenant, path, type, shard)
    this.put(row)
    return row
  }

  /** Adds a row that is not there. */
  private put(row: CountedRow): void {
    nested(this.typesOf(row.tenant, row.path), row.type).set(row.shard, row)
    this.youngerSize++
  }

  /** Whether the younger generation is full. */
  get isFull(): boolean {
    return this.youngerSize > this.generationMax
  }

  /** Forgets rows that were not looked up lately. */
  age(): void {
    this.older = this.younger
    this.olderSize = this.youngerSize
    this.younger = new Map()
    this.youngerSize = 0
    this.types = undefined
  }

  /** Forgets a row. */
  remove(row: CountedRow): void {
    this.youngerSize -= removed(this.younger, row)
    this.olderSize -= removed(this.older, row)
    this.types = undefined
  }

  /** Forgets all rows but those given. */
  keepOnly(rows: Iterable<CountedRow>): void {
    this.younger = new Map()
    this.older = new Map()
    this.youngerSize = 0
    this.olderSize = 0
    for (const row of new Set(rows)) this.put(row)
    this.types = undefined
  }
}

/** Removes a row, and the maps that are empty then. Returns the number of rows removed. */
function removed(from: RowsByTenant, { tenant, path, type, shard }: CountedRow): 0 | 1 {
  const paths = from.get(tenant)
  const types = paths?.get(path)
  const rows = types?.get(type)
  if (!paths || !types || !rows?.delete(shard)) return 0
  if (rows.size === 0) types.delete(type)
  if (types.size === 0) paths.delete(path)
  if (paths.size === 0) from.delete(tenant)
  return 1
}
