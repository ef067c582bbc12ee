// Counts by tenant, service path and something in it: of entities by type (the directory proper: which paths and types a tenant has on
// this node), and of attributes by type, name and attribute type (what GET /v2/types tells). One class keeps both, in rows of their own.
//
// What is in memory is what is on disk: changes wait until their commit is written (`flush`), so a count never tells of something
// that may yet be lost. A tenant's part is read when it is first needed, hence start-up does not depend on what is stored. A pair of
// path and type whose count fell to zero leaves, and a tenant of which nothing is left.
//
// Of what is left the directory keeps so many pairs in memory (`pairsMax`); tenants that were not used lately are read again when they are
// needed. A tenant can be forgotten when no commit in flight is about it: what the store shows is then all there is. One commit is in flight at
// a time, so that is so for all tenants of the batch before when the next batch is flushed.
//
// In a node of a cluster each shard has counts of its own (shard/replicate/owned-counts.ts).

import { ownText } from '../../domain/recent.js'
import type { Range, RowSink, Store } from '../../ports.js'
import { decodeNumber, encodeNumber } from '../keys.js'
import {
  attributeCountKey,
  attributeCountRange,
  type DirectoryKey,
  directoryKey,
  directoryRange,
  parseAttributeCountKey,
  parseDirectoryKey,
} from '../layout.js'
import { nested } from '../nested.js'

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
  /** Pairs of path and type in `paths`. */
  pairs: number
  /** Whether all of the tenant is in memory, not only what has changed. */
  complete: boolean
  loading: Promise<Paths> | undefined
  /** Whether counts were flushed here whose commit may be in flight: the store may still show older ones. */
  changed: boolean
  /** Second chance: used since the directory was last full. */
  used: boolean
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
/** Pairs of path and type, of all tenants, that are kept in memory: some 100 bytes each. */
export const pairsKept = 100_000
/** Tenants looked at for one commit when there are too many pairs. */
export const looksMax = 1000

const rowsPerRead = 1000
const noPaths: Paths = new Map()

export class Directory implements PathCounts {
  private readonly store: Store
  private readonly rows: CountRows
  private readonly onCount: OnCount | undefined
  private readonly pairsMax: number
  private readonly tenants = new Map<string, Tenant>()
  /** Pairs of all tenants. */
  private pairs = 0
  /** Tenants of the batch flushed last, and its counts that fell to zero. */
  private flushed: string[] = []
  private zeros: DirectoryKey[] = []
  /** Differences that belong to the batch being filled, by tenant, path and type. */
  private staged = new Map<string, Map<string, Map<string, number>>>()
  /** Whether the batch flushed last took away the last entity of a path and type: until it is durable, what is gone may come back. */
  emptied = false
  /** How many more there are than at the start, staged ones included. */
  difference = 0

  constructor(store: Store, rows = entityCounts, onCount?: OnCount, pairsMax = pairsKept) {
    this.store = store
    this.rows = rows
    this.onCount = onCount
    this.pairsMax = pairsMax
  }

  /** What is in memory. */
  get size(): { readonly tenants: number; readonly pairs: number } {
    return { tenants: this.tenants.size, pairs: this.pairs }
  }

  /** Notes that a staged record makes or removes one. */
  count(tenant: string, path: string, type: string, difference: 1 | -1): void {
    const types = nested(nested(this.staged, tenant), path)
    types.set(type, (types.get(type) ?? 0) + difference)
    this.difference += difference
  }

  /**
   * Adds the counts that have changed to the batch that is about to be written. The batch before is durable. `mayForget`: whether tenants may be
   * forgotten that are not empty.
   */
  flush(batch: RowSink, mayForget = true): void {
    this.emptied = false
    this.settle()
    if (mayForget && this.pairs > this.pairsMax) this.forgetSome()
    if (this.staged.size === 0) return
    const changes: Changed[] = []
    for (const [tenant, paths] of this.staged) {
      this.flushed.push(tenant)
      for (const [path, types] of paths)
        for (const [type, difference] of types)
          if (difference !== 0) {
            const key = this.rows.key(tenant, path, type)
            changes.push({ tenant, path, type, difference, key, before: this.remembered(tenant, path, type) })
          }
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

  /** The commit of the batch flushed last has ended: its zeros need not be remembered any more. */
  private settle(): void {
    if (this.flushed.length === 0) return
    for (const { tenant, path, type } of this.zeros) {
      const entry = this.tenants.get(tenant)
      // A reader may have begun before the commit, and see what was there then.
      if (entry && !entry.loading && entry.paths.get(path)?.get(type) === 0) this.drop(entry, path, type)
    }
    for (const tenant of this.flushed) {
      const entry = this.tenants.get(tenant)
      if (!entry) continue
      entry.changed = false
      if (entry.paths.size === 0 && !entry.loading) this.tenants.delete(tenant)
    }
    this.flushed = []
    this.zeros = []
  }

  /** Forgets tenants that were not used lately, a quarter of what there is at most. */
  private forgetSome(): void {
    const enough = this.pairsMax * 0.75
    let looks = Math.min(this.tenants.size, looksMax)
    for (const [tenant, entry] of this.tenants) {
      if (this.pairs <= enough || looks-- === 0) return
      this.tenants.delete(tenant)
      if (entry.used || entry.changed || entry.loading) {
        entry.used = false
        this.tenants.set(tenant, entry)
      } else this.pairs -= entry.pairs
    }
  }

  private write(batch: RowSink, { tenant, path, type, difference, key, before }: Changed): void {
    const total = (before ?? 0) + difference
    const entry = this.tenant(tenant)
    entry.changed = true
    entry.used = true
    this.remember(entry, path, type, total)
    if (total > 0) batch.put(key, encodeNumber(total))
    else batch.del(key)
    if (total === 0) {
      this.emptied = true
      this.zeros.push({ tenant, path, type })
    }
    this.onCount?.(tenant, path, type, difference)
  }

  /** The tenant's paths with their counts, if they are in memory; else undefined, and `load` brings them. */
  paths(tenant: string): Paths | undefined {
    const known = this.tenants.get(tenant)
    if (!known?.complete) return undefined
    known.used = true
    return known.paths
  }

  /** As `paths`, but for a tenant of which nothing is remembered it gives none: right after `load`, when that has found none. */
  loaded(tenant: string): Paths | undefined {
    return this.tenants.has(tenant) ? this.paths(tenant) : noPaths
  }

  /** The tenant's paths, read from the store if need be. A tenant that has none is not remembered: anybody may ask for any name. */
  load(tenant: string): Promise<Paths> {
    const entry = this.tenant(tenant)
    entry.used = true
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
    for (const [path, types] of [...entry.paths])
      for (const [type, total] of types) if (total === 0) this.drop(entry, path, type)
    return entry.paths
  }

  /** A count that is in memory; undefined: the store has to be asked. */
  private remembered(tenant: string, path: string, type: string): number | undefined {
    const entry = this.tenant(tenant)
    return entry.paths.get(path)?.get(type) ?? (entry.complete ? 0 : undefined)
  }

  private remember(entry: Tenant, path: string, type: string, total: number): void {
    // While the tenant is being read a zero must stay, or the cursor's older count would come back.
    if (total === 0 && entry.complete) return this.drop(entry, path, type)
    let types = entry.paths.get(path)
    if (!types) {
      types = new Map()
      entry.paths.set(ownText(path), types)
    }
    if (types.has(type)) types.set(type, total)
    else {
      types.set(ownText(type), total)
      entry.pairs++
      this.pairs++
    }
  }

  private drop(entry: Tenant, path: string, type: string): void {
    const types = entry.paths.get(path)
    if (!types?.delete(type)) return
    entry.pairs--
    this.pairs--
    if (types.size === 0) entry.paths.delete(path)
  }

  private tenant(name: string): Tenant {
    let entry = this.tenants.get(name)
    if (!entry) {
      entry = { paths: new Map(), pairs: 0, complete: false, loading: undefined, changed: false, used: true }
      this.tenants.set(ownText(name), entry)
    }
    return entry
  }
}
