// Counts by tenant, service path and a third word. There are counts of entities by type (the paths and types of a
// tenant), and of attributes by type, name and attribute type (for GET /v2/types). One class keeps both, in rows of
// each shard or of all (layout.ts, D and A).
//
// A tenant's sums over this owner's shards are made from one range of rows when they are first needed, and follow each
// change. Memory agrees with the disk: a change waits until its commit is written (`flush`), so a count never shows
// data that may yet be lost. Sums are forgotten when their tenant has nothing, and, when there are too many pairs of
// path and type, if they were not used lately. When a shard comes or goes all sums are forgotten, because only reading
// the shard would show which tenants it has.
//
// A shard has one commit in flight at a time. When its counts are flushed, those before are durable, and the store
// shows them.
//
// Rows that are in memory because they change often: counted-rows.ts.

import assert from 'node:assert/strict'
import { ownText } from '../../domain/recent.js'
import type { Range, Row, RowSink, Store } from '../../ports.js'
import { decodeNumber, encodeNumber, shardOfKey } from '../keys.js'
import { allShards, type CountRows } from '../layout.js'
import { nested } from '../nested.js'
import type { Owned } from '../replicate/ownership.js'
import { type CountedRow, CountedRows } from './counted-rows.js'

/** Counts by type, for each path. */
export type Paths = ReadonlyMap<string, ReadonlyMap<string, number>>

/** Counts of all tenants, for turns that change them and lists that read them. */
export interface PathCounts {
  /** Notes that a staged record of a shard adds or removes one. */
  count(tenant: string, path: string, type: string, difference: 1 | -1, shard: number): void
  /**
   * Adds the changed counts of some shards to the commit that is about to begin. The commit of each of them before is
   * durable.
   */
  flush(batch: RowSink, takes: (shard: number) => boolean): void
  /** A commit is durable. `isWritten`: whether nothing of a shard is in flight any more. */
  settle(isWritten: (shard: number) => boolean): void
  /** Whether the next flush forgets counts, which needs a commit that overlaps with no other one. */
  readonly mustForget: boolean
  /** The tenant's paths with their counts, if they are in memory; otherwise undefined, and `load` reads them. */
  paths(tenant: string): Paths | undefined
  /**
   * The tenant's paths, read from the store if need be. A tenant without paths is not remembered, because clients may
   * ask for any name.
   */
  load(tenant: string): Promise<Paths>
  /** Whether the tenant has anything. Remembers nothing, so it takes no place from tenants that are in use. */
  has(tenant: string): Promise<boolean>
  /**
   * Whether a commit in flight removes the last one of a path and type. Until the commit is durable, that pair may come
   * back.
   */
  readonly emptied: boolean
}

/** Pairs of path and type, of all tenants, whose sums are kept in memory: some 100 bytes each. */
export const pairsKept = 100_000
/** Tenants examined for one commit when there are too many pairs. */
const looksMax = 1000

const rowsPerRead = 1000

/** The numbers of things that `Counts` keep in memory. */
export interface CountsKept {
  /** Tenants whose sums are known, and their pairs of path and type. */
  readonly tenants: number
  readonly pairs: number
  /** Rows whose values are known. */
  readonly rows: number
}

export class Counts implements PathCounts {
  private readonly store: Store
  private readonly layout: CountRows
  private readonly owned: Owned
  private readonly pairsMax: number
  private readonly rows: CountedRows
  private readonly sums = new Map<string, Sums>()
  /** Sums that are being made. */
  private readonly loading = new Map<string, Loading>()
  /** Pairs of `sums`. */
  private pairs = 0
  /** Rows with a staged change, and those in flight. */
  private staged: CountedRow[] = []
  private flushed: CountedRow[] = []
  private emptiedRows = 0
  /** Grows whenever a shard comes or goes. */
  private generation = 0
  /** The sum of all flushed differences since the start. */
  difference = 0

  /**
   * `owned`: the shards that count, each in rows of its own; undefined: all shards of the store, in the same rows.
   * `limits`: for tests.
   */
  constructor(
    store: Store,
    layout: CountRows,
    owned?: Owned,
    limits: { readonly pairsMax?: number; readonly rowsMax?: number } = {},
  ) {
    this.store = store
    this.layout = layout
    this.owned = owned
    this.pairsMax = limits.pairsMax ?? pairsKept
    this.rows = new CountedRows(layout, limits.rowsMax)
  }

  /** The staged difference of a tenant. */
  stagedOf(tenant: string): number {
    return this.staged.reduce((sum, row) => (row.tenant === tenant ? sum + row.difference : sum), 0)
  }

  get size(): CountsKept {
    return { tenants: this.sums.size, pairs: this.pairs, rows: this.rows.size }
  }

  /**
   * Forgets everything that depends on the set of this owner's shards, which has changed. Staged counts of shards that
   * have gone are lost.
   */
  forget(): void {
    this.generation++
    this.sums.clear()
    this.pairs = 0
    // Other owners write the rows of a shard that has gone, so flushed counts of it would be wrong when it comes back.
    this.flushed = this.flushed.filter(({ shard }) => this.owns(shard))
    this.emptiedRows = this.flushed.filter(({ isEmptied }) => isEmptied).length
    this.staged = this.staged.filter(({ shard }) => this.owns(shard))
    this.rows.keepOnly([...this.flushed, ...this.staged])
  }

  private owns(shard: number): boolean {
    return this.owned === undefined || this.owned[shard] === 1
  }

  // [hot] For every attribute of every creation.
  count(tenant: string, path: string, type: string, difference: 1 | -1, shard: number): void {
    const row = this.rows.row(tenant, path, type, this.owned ? shard : allShards)
    row.difference += difference
    if (row.isStaged) return
    row.isStaged = true
    this.staged.push(row)
  }

  /**
   * Also writes rows whose difference is 0 in the end: a record has the present value of each count that it touched.
   * The code that makes counts from pages of a snapshot relies on that, because the pages may have one of two entities
   * that were exchanged (replicate/snapshot.ts).
   */
  flush(batch: RowSink, takes: (shard: number) => boolean): void {
    if (this.pairs > this.pairsMax) this.forgetSome()
    if (this.mustForget) {
      assert(this.flushed.length === 0, 'counts in flight would be forgotten')
      this.rows.age()
    }
    const due = this.staged.filter(({ shard }) => takes(shard))
    if (due.length === 0) return
    this.staged = due.length === this.staged.length ? [] : this.staged.filter(({ shard }) => !takes(shard))
    this.readUnknown(due)
    for (const row of due) this.write(batch, row)
    this.flushed = this.flushed.length === 0 ? due : [...this.flushed, ...due]
  }

  get mustForget(): boolean {
    return this.rows.isFull
  }

  get emptied(): boolean {
    return this.emptiedRows > 0
  }

  /** Rows of a commit that has ended with count 0 can be forgotten. */
  settle(isWritten: (shard: number) => boolean): void {
    if (this.flushed.length === 0) return
    const left: CountedRow[] = []
    for (const row of this.flushed)
      if (isWritten(row.shard)) this.settleOne(row)
      else left.push(row)
    this.flushed = left
  }

  private settleOne(row: CountedRow): void {
    if (row.isEmptied) {
      row.isEmptied = false
      this.emptiedRows--
    }
    if (row.count === 0 && !row.isStaged) this.rows.remove(row)
  }

  /**
   * Reads all counts that are not in memory with one call, because an entity may have thousands of attributes that are
   * new.
   */
  private readUnknown(staged: readonly CountedRow[]): void {
    const unknown: CountedRow[] = []
    for (const row of staged)
      if (row.count === undefined)
        if (this.sums.get(row.tenant)?.has(row.path, row.type) === false) row.count = 0
        else unknown.push(row)
    if (unknown.length === 0) return
    const values = this.store.getMany(unknown.map(({ key }) => key))
    for (const [index, row] of unknown.entries()) {
      const value = values[index]
      row.count = value ? decodeNumber(value) : 0
    }
  }

  private write(batch: RowSink, row: CountedRow): void {
    const { key, difference } = row
    const count = row.count! + difference
    row.count = count
    row.difference = 0
    row.isStaged = false
    if (count > 0) batch.put(key, encodeNumber(count))
    else batch.del(key)
    if (difference === 0) return
    this.difference += difference
    const isLeft = this.addToSums(row, difference)
    if (count > 0 || isLeft) return
    row.isEmptied = true
    this.emptiedRows++
  }

  /** Returns whether it is known that something is left of the row's path and type. */
  private addToSums({ tenant, path, type }: CountedRow, difference: number): boolean {
    this.loading.get(tenant)?.sums.add(path, type, difference)
    const sums = this.sums.get(tenant)
    if (!sums) return false
    this.pairs += sums.add(path, type, difference)
    if (sums.paths.size === 0) this.sums.delete(tenant)
    return sums.has(path, type)
  }

  paths(tenant: string): Paths | undefined {
    const sums = this.sums.get(tenant)
    if (sums) sums.isUsed = true
    return sums?.paths
  }

  load(tenant: string): Promise<Paths> {
    const known = this.paths(tenant)
    if (known) return Promise.resolve(known)
    const loading = this.loading.get(tenant)
    if (loading) return loading.done
    const started: Loading = { sums: new Sums(), done: Promise.resolve(noPaths) }
    this.loading.set(ownText(tenant), started)
    started.done = this.read(ownText(tenant), started)
    return started.done
  }

  async has(tenant: string): Promise<boolean> {
    if (this.sums.has(tenant)) return true
    for await (const rows of this.rowsNow(this.layout.range(tenant))) if (rows.length > 0) return true
    return false
  }

  private async read(tenant: string, loading: Loading): Promise<Paths> {
    try {
      for (;;) {
        const { generation } = this
        // Counts that are flushed from here on are added as they come.
        const sums = new Sums()
        loading.sums = sums
        for await (const rows of this.rowsNow(this.layout.range(tenant)))
          for (const { key, value } of rows) {
            const { path, type } = this.layout.parse(key)
            sums.add(path, type, decodeNumber(value))
          }
        if (generation !== this.generation) continue
        if (sums.paths.size > 0) {
          this.sums.set(tenant, sums)
          this.pairs += sums.pairs
        }
        return sums.paths
      }
    } finally {
      this.loading.delete(tenant)
    }
  }

  /** Rows of own shards as they are when the commits in flight are written. Later commits are not included. */
  async *rowsNow(range = this.layout.all): AsyncIterable<readonly Row[]> {
    const cursor = this.store.cursor(range)
    // The store may or may not show those yet.
    const flushed = this.flushed.filter(({ key }) => isWithin(range, key))
    const keys = new Set(flushed.map(({ key }) => key.toString('latin1')))
    const mayCount = ({ key }: Row): boolean =>
      this.owns(shardOfKey(key)) && (keys.size === 0 || !keys.has(key.toString('latin1')))
    const rowsFlushed = flushed.flatMap(({ key, count }) => (count ? [{ key, value: encodeNumber(count) }] : []))
    try {
      yield rowsFlushed
      for (;;) {
        const rows = await cursor.next(rowsPerRead)
        if (rows.length === 0) return
        yield rows.filter(mayCount)
      }
    } finally {
      await cursor.close()
    }
  }

  /** Forgets sums that were not used lately, at most a quarter of them. */
  private forgetSome(): void {
    const enough = this.pairsMax * 0.75
    let looks = Math.min(this.sums.size, looksMax)
    for (const [tenant, sums] of this.sums) {
      if (this.pairs <= enough || looks-- === 0) return
      this.sums.delete(tenant)
      if (sums.isUsed) {
        sums.isUsed = false
        this.sums.set(tenant, sums)
      } else this.pairs -= sums.pairs
    }
  }
}

interface Loading {
  sums: Sums
  done: Promise<Paths>
}

const noPaths: Paths = new Map()

/** A tenant's counts over all shards. */
class Sums {
  readonly paths = new Map<string, Map<string, number>>()
  /** Pairs of path and type. */
  pairs = 0
  /** Second chance: used since there were last too many. */
  isUsed = true

  has(path: string, type: string): boolean {
    return this.paths.get(path)?.has(type) ?? false
  }

  /** Returns how many pairs were added. While rows are read, a count may be below zero for a moment. */
  add(path: string, type: string, difference: number): number {
    const before = this.pairs
    const known = this.paths.get(path)
    const count = (known?.get(type) ?? 0) + difference
    if (count === 0) this.drop(path, type)
    else if (known?.has(type)) known.set(type, count)
    else {
      nested(this.paths, known ? path : ownText(path)).set(ownText(type), count)
      this.pairs++
    }
    return this.pairs - before
  }

  private drop(path: string, type: string): void {
    const types = this.paths.get(path)
    if (!types?.delete(type)) return
    if (types.size === 0) this.paths.delete(path)
    this.pairs--
  }
}

const isWithin = ({ gte, lt }: Range, key: Buffer): boolean =>
  Buffer.compare(gte, key) <= 0 && Buffer.compare(key, lt) < 0
