// Counts by tenant, service path and something in it: of entities by type (the directory proper: which paths and types a tenant has on
// this node), and of attributes by type, name and attribute type (what GET /v2/types tells). One class keeps both, in rows of their own.
//
// What is in memory is what is on disk: changes wait until their commit is written (`flush`), so a count never tells of something
// that may yet be lost. A tenant's part is read when it is first needed, hence start-up does not depend on what is stored. A pair of
// path and type whose count fell to zero leaves.
//
// In a node of a cluster each shard has counts of its own (replicated/owned-counts.ts).

import type { Range, RowSink, Store } from '../ports.js'
import { decodeNumber, encodeNumber } from './keys.js'
import {
  attributeCountKey,
  attributeCountRange,
  type DirectoryKey,
  directoryKey,
  directoryRange,
  parseAttributeCountKey,
  parseDirectoryKey,
} from './layout.js'
import { nested } from './nested.js'

/** Counts by type, for each path. */
export type Paths = ReadonlyMap<string, ReadonlyMap<string, number>>

/** Where counts are kept. */
export interface CountRows {
  key(tenant: string, path: string, type: string): Buffer
  range(tenant: string): Range
  parse(key: Buffer): DirectoryKey
}

/** Entities by type. */
export const entityCounts: CountRows = { key: directoryKey, range: directoryRange, parse: parseDirectoryKey }

/** Attributes by type, name and attribute type (layout.ts, `attributeOfType`). */
export const attributeCounts: CountRows = {
  key: attributeCountKey,
  range: attributeCountRange,
  parse: parseAttributeCountKey,
}

/** Counts of all tenants, as turns change them and lists need them. */
export interface PathCounts {
  /** Notes that a staged record of a shard makes or removes one. */
  count(tenant: string, path: string, type: string, difference: 1 | -1, shard: number): void
  /** Adds the counts that have changed to the batch that is about to be written. */
  flush(batch: RowSink): void
  /** The tenant's paths with their counts, if they are in memory; else undefined, and `load` brings them. */
  paths(tenant: string): Paths | undefined
  /** The tenant's paths, read from the store if need be. */
  load(tenant: string): Promise<Paths>
  /** Whether the batch flushed last took away the last one of a path and type: until it is durable, what is gone may come back. */
  readonly emptied: boolean
}

/** Told of each count that changes in memory. */
export type OnCount = (tenant: string, path: string, type: string, difference: number) => void

interface Tenant {
  readonly paths: Map<string, Map<string, number>>
  /** Whether all of the tenant is in memory, not only what has changed. */
  complete: boolean
  loading: Promise<Paths> | undefined
  /** Whether counts were flushed here: while their commit is in flight the store may still show older ones. */
  changed: boolean
}

/** A count that the batch being flushed changes. */
interface Changed {
  readonly tenant: string
  readonly path: string
  readonly type: string
  readonly difference: number
  readonly key: Buffer
  /** undefined: not known yet. */
  before: number | undefined
}

const rowsPerRead = 1000
const noPaths: Paths = new Map()

export class Directory implements PathCounts {
  private readonly store: Store
  private readonly rows: CountRows
  private readonly onCount: OnCount | undefined
  private readonly tenants = new Map<string, Tenant>()
  /** Differences that belong to the batch being filled, by tenant, path and type. */
  private staged = new Map<string, Map<string, Map<string, number>>>()
  /** Whether the batch flushed last took away the last entity of a path and type: until it is durable, what is gone may come back. */
  emptied = false
  /** How many more there are than at the start, staged ones included. */
  difference = 0

  constructor(store: Store, rows = entityCounts, onCount?: OnCount) {
    this.store = store
    this.rows = rows
    this.onCount = onCount
  }

  /** Notes that a staged record makes or removes one. */
  count(tenant: string, path: string, type: string, difference: 1 | -1): void {
    const types = nested(nested(this.staged, tenant), path)
    types.set(type, (types.get(type) ?? 0) + difference)
    this.difference += difference
  }

  /** Adds the counts that have changed to the batch that is about to be written. */
  flush(batch: RowSink): void {
    this.emptied = false
    if (this.staged.size === 0) return
    const changes: Changed[] = []
    for (const [tenant, paths] of this.staged)
      for (const [path, types] of paths)
        for (const [type, difference] of types)
          if (difference !== 0) {
            const key = this.rows.key(tenant, path, type)
            changes.push({ tenant, path, type, difference, key, before: this.remembered(tenant, path, type) })
          }
    this.readUnknown(changes)
    for (const change of changes) this.write(batch, change)
    this.staged = new Map()
  }

  /** Reads all counts at once that are not in memory: an entity may have thousands of attributes that no entity before had. */
  private readUnknown(changes: readonly Changed[]): void {
    const unknown = changes.filter(({ before }) => before === undefined)
    if (unknown.length === 0) return
    const values = this.store.getMany(unknown.map(({ key }) => key))
    for (const [index, change] of unknown.entries()) {
      const value = values[index]
      change.before = value ? decodeNumber(value) : 0
    }
  }

  private write(batch: RowSink, { tenant, path, type, difference, key, before }: Changed): void {
    const total = (before ?? 0) + difference
    const entry = this.tenant(tenant)
    entry.changed = true
    this.remember(entry, path, type, total)
    if (total > 0) batch.put(key, encodeNumber(total))
    else batch.del(key)
    if (total === 0) this.emptied = true
    this.onCount?.(tenant, path, type, difference)
  }

  /** The tenant's paths with their counts, if they are in memory; else undefined, and `load` brings them. */
  paths(tenant: string): Paths | undefined {
    const known = this.tenants.get(tenant)
    return known?.complete ? known.paths : undefined
  }

  /** As `paths`, but for a tenant of which nothing is remembered it gives none: right after `load`, when that has found none. */
  loaded(tenant: string): Paths | undefined {
    return this.tenants.has(tenant) ? this.paths(tenant) : noPaths
  }

  /** The tenant's paths, read from the store if need be. A tenant that has none is not remembered: anybody may ask for any name. */
  load(tenant: string): Promise<Paths> {
    const entry = this.tenant(tenant)
    if (entry.complete) return Promise.resolve(entry.paths)
    entry.loading ??= this.read(tenant, entry).finally(() => {
      entry.loading = undefined
      if (entry.paths.size === 0 && !entry.changed) this.tenants.delete(tenant)
    })
    return entry.loading
  }

  private async read(tenant: string, entry: Tenant): Promise<Paths> {
    const cursor = this.store.cursor(this.rows.range(tenant))
    try {
      for (;;) {
        const rows = await cursor.next(rowsPerRead)
        for (const { key, value } of rows) {
          const { path, type } = this.rows.parse(key)
          // What changed while we read is newer than what the cursor sees.
          if (entry.paths.get(path)?.get(type) === undefined) this.remember(entry, path, type, decodeNumber(value))
        }
        if (rows.length === 0) break
      }
    } finally {
      await cursor.close()
    }
    entry.complete = true
    for (const path of [...entry.paths.keys()]) this.forgetEmpty(entry, path)
    return entry.paths
  }

  /** A count that is in memory; undefined: the store has to be asked. */
  private remembered(tenant: string, path: string, type: string): number | undefined {
    const entry = this.tenant(tenant)
    return entry.paths.get(path)?.get(type) ?? (entry.complete ? 0 : undefined)
  }

  private remember(entry: Tenant, path: string, type: string, total: number): void {
    let types = entry.paths.get(path)
    if (!types) {
      types = new Map()
      entry.paths.set(path, types)
    }
    types.set(type, total)
    // While the tenant is being read a zero must stay, or the cursor's older count would come back.
    if (total === 0 && entry.complete) this.forgetEmpty(entry, path)
  }

  private forgetEmpty(entry: Tenant, path: string): void {
    const types = entry.paths.get(path)
    if (!types) return
    for (const [type, total] of types) if (total === 0) types.delete(type)
    if (types.size === 0) entry.paths.delete(path)
  }

  private tenant(name: string): Tenant {
    let entry = this.tenants.get(name)
    if (!entry) {
      entry = { paths: new Map(), complete: false, loading: undefined, changed: false }
      this.tenants.set(name, entry)
    }
    return entry
  }
}
