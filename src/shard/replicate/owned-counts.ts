// Counts by tenant, path and type (directory.ts) of a node whose shards come and go: kept by shard, in rows that follow it from node to node,
// and told as the sums over the shards that are this node's own.
//
// A tenant's sums are made when they are first needed, from the counts of each shard, and follow what changes. When a shard comes or goes all
// sums are forgotten: which tenants it is about is not known without reading it. Sums of tenants that are empty, or were not used lately when there
// are too many pairs, are forgotten as well: they are made again from the counts of the shards.

import { ownText } from '../../domain/recent.js'
import type { RowSink, Store } from '../../ports.js'
import { type CountRows, Directory, looksMax, type OnCount, type PathCounts, type Paths } from '../commit/directory.js'
import { nested } from '../nested.js'

interface Sums {
  readonly paths: Map<string, Map<string, number>>
  /** Pairs of path and type. */
  pairs: number
  /** Second chance: used since there were last too many. */
  used: boolean
}

/** Pairs of path and type in the sums of all tenants, and in the counts of one shard. */
const sumPairsKept = 100_000
const shardPairsKept = 20_000

/** Tenants without anything of which that is remembered: anybody may ask for any name, and to find nothing takes a look at each shard. */
const emptyTenantsMax = 1000

export class OwnedCounts implements PathCounts {
  private readonly store: Store
  private readonly rowsOf: (shard: number) => CountRows
  private readonly shards = new Map<number, Directory>()
  private readonly sums = new Map<string, Sums>()
  private readonly loading = new Map<string, Promise<Paths>>()
  private pairs = 0
  private readonly pairsMax: number
  /** Those of `sums` that have nothing, the oldest first. */
  private readonly empty = new Set<string>()
  private generation = 0
  /** Tenants whose sums are being made. */
  private reading = 0
  emptied = false

  constructor(store: Store, rowsOf: (shard: number) => CountRows, pairsMax = sumPairsKept) {
    this.store = store
    this.rowsOf = rowsOf
    this.pairsMax = pairsMax
  }

  /** What is in memory: tenants and pairs of the sums, and tenants that the shards' counts know, each as often as a shard knows it. */
  get size(): { readonly tenants: number; readonly pairs: number; readonly tenantsOfShards: number } {
    let tenantsOfShards = 0
    for (const counts of this.shards.values()) tenantsOfShards += counts.size.tenants
    return { tenants: this.sums.size, pairs: this.pairs, tenantsOfShards }
  }

  /** A shard is this node's own from now on; gives its part. */
  begin(shard: number): Directory {
    this.forget()
    const onCount: OnCount = (...change) => this.add(...change)
    const counts = new Directory(this.store, this.rowsOf(shard), onCount, Math.min(shardPairsKept, this.pairsMax))
    this.shards.set(shard, counts)
    return counts
  }

  /** A shard, of which nothing is staged, is not this node's own any more. */
  end(shard: number): void {
    this.forget()
    this.shards.delete(shard)
  }

  private forget(): void {
    this.generation++
    this.sums.clear()
    this.loading.clear()
    this.empty.clear()
    this.pairs = 0
  }

  count(tenant: string, path: string, type: string, difference: 1 | -1, shard: number): void {
    this.shards.get(shard)!.count(tenant, path, type, difference)
  }

  flush(batch: RowSink): void {
    this.emptied = false
    if (this.pairs > this.pairsMax) this.forgetSome()
    // Whoever makes sums needs what the shards have read for that.
    const mayForget = this.reading === 0
    for (const counts of this.shards.values()) {
      counts.flush(batch, mayForget)
      if (counts.emptied) this.emptied = true
    }
  }

  private add(tenant: string, path: string, type: string, difference: number): void {
    const sums = this.sums.get(tenant)
    if (!sums) return
    this.empty.delete(tenant)
    this.addTo(sums, path, type, difference)
    if (sums.paths.size === 0) this.keepEmpty(tenant)
  }

  paths(tenant: string): Paths | undefined {
    const sums = this.sums.get(tenant)
    if (sums) sums.used = true
    return sums?.paths
  }

  load(tenant: string): Promise<Paths> {
    const known = this.paths(tenant)
    if (known) return Promise.resolve(known)
    let loading = this.loading.get(tenant)
    if (!loading) {
      this.reading++
      loading = this.read(tenant).finally(() => {
        this.reading--
        if (this.loading.get(tenant) === loading) this.loading.delete(tenant)
      })
      this.loading.set(tenant, loading)
    }
    return loading
  }

  private async read(tenant: string): Promise<Paths> {
    for (;;) {
      const { generation } = this
      const shards = [...this.shards.values()]
      await Promise.all(shards.map(counts => counts.load(tenant)))
      if (generation !== this.generation) continue
      const parts = shards.map(counts => counts.loaded(tenant))
      // While others were read, one that had nothing may have got something: it has to be read again.
      if (parts.every(part => part !== undefined)) return this.sum(tenant, parts)
    }
  }

  private sum(tenant: string, parts: readonly Paths[]): Paths {
    const sums: Sums = { paths: new Map(), pairs: 0, used: true }
    for (const part of parts)
      for (const [path, types] of part) for (const [type, count] of types) this.addTo(sums, path, type, count)
    this.pairs -= this.sums.get(tenant)?.pairs ?? 0
    this.sums.set(ownText(tenant), sums)
    if (sums.paths.size === 0) this.keepEmpty(tenant)
    return sums.paths
  }

  private addTo(sums: Sums, path: string, type: string, difference: number): void {
    const types = nested(sums.paths, path)
    const before = types.get(type)
    const count = (before ?? 0) + difference
    if (count !== 0) types.set(type, count)
    else {
      types.delete(type)
      if (types.size === 0) sums.paths.delete(path)
    }
    const more = (count === 0 ? 0 : 1) - (before === undefined ? 0 : 1)
    sums.pairs += more
    this.pairs += more
  }

  /** Forgets sums that were not used lately, a quarter of what there is at most. */
  private forgetSome(): void {
    const enough = this.pairsMax * 0.75
    let looks = Math.min(this.sums.size, looksMax)
    for (const [tenant, sums] of this.sums) {
      if (this.pairs <= enough || looks-- === 0) return
      this.sums.delete(tenant)
      if (sums.used) {
        sums.used = false
        this.sums.set(tenant, sums)
      } else {
        this.pairs -= sums.pairs
        this.empty.delete(tenant)
      }
    }
  }

  private keepEmpty(tenant: string): void {
    this.empty.add(tenant)
    if (this.empty.size <= emptyTenantsMax) return
    const [oldest] = this.empty
    this.empty.delete(oldest!)
    this.sums.delete(oldest!)
  }
}
