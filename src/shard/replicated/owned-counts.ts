// Counts by tenant, path and type (directory.ts) of a node whose shards come and go: kept by shard, in rows that follow it from node to node,
// and told as the sums over the shards that are this node's own.
//
// A tenant's sums are made when they are first needed, from the counts of each shard, and follow what changes. When a shard comes or goes all
// sums are forgotten: which tenants it is about is not known without reading it.

import type { RowSink, Store } from '../../ports.js'
import { type CountRows, Directory, type PathCounts, type Paths } from '../directory.js'
import { nested } from '../nested.js'

type Sums = Map<string, Map<string, number>>

/** Tenants without anything of which that is remembered: anybody may ask for any name, and to find nothing takes a look at each shard. */
const emptyTenantsMax = 1000

export class OwnedCounts implements PathCounts {
  private readonly store: Store
  private readonly rowsOf: (shard: number) => CountRows
  private readonly shards = new Map<number, Directory>()
  private readonly sums = new Map<string, Sums>()
  private readonly loading = new Map<string, Promise<Paths>>()
  /** Those of `sums` that had nothing when they were made, the oldest first. */
  private readonly empty = new Set<string>()
  private generation = 0
  emptied = false

  constructor(store: Store, rowsOf: (shard: number) => CountRows) {
    this.store = store
    this.rowsOf = rowsOf
  }

  /** A shard is this node's own from now on; gives its part. */
  begin(shard: number): Directory {
    this.forget()
    const counts = new Directory(this.store, this.rowsOf(shard), (...change) => this.add(...change))
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
  }

  count(tenant: string, path: string, type: string, difference: 1 | -1, shard: number): void {
    this.shards.get(shard)!.count(tenant, path, type, difference)
  }

  flush(batch: RowSink): void {
    this.emptied = false
    for (const counts of this.shards.values()) {
      counts.flush(batch)
      if (counts.emptied) this.emptied = true
    }
  }

  private add(tenant: string, path: string, type: string, difference: number): void {
    const sums = this.sums.get(tenant)
    if (!sums) return
    this.empty.delete(tenant)
    addTo(sums, path, type, difference)
  }

  paths(tenant: string): Paths | undefined {
    return this.sums.get(tenant)
  }

  load(tenant: string): Promise<Paths> {
    const known = this.sums.get(tenant)
    if (known) return Promise.resolve(known)
    let loading = this.loading.get(tenant)
    if (!loading) {
      loading = this.read(tenant).finally(() => {
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
    const sums: Sums = new Map()
    for (const part of parts)
      for (const [path, types] of part) for (const [type, count] of types) addTo(sums, path, type, count)
    this.sums.set(tenant, sums)
    if (sums.size === 0) this.keepEmpty(tenant)
    return sums
  }

  private keepEmpty(tenant: string): void {
    this.empty.add(tenant)
    if (this.empty.size <= emptyTenantsMax) return
    const [oldest] = this.empty
    this.empty.delete(oldest!)
    this.sums.delete(oldest!)
  }
}

function addTo(sums: Sums, path: string, type: string, difference: number): void {
  const types = nested(sums, path)
  const count = (types.get(type) ?? 0) + difference
  if (count !== 0) types.set(type, count)
  else {
    types.delete(type)
    if (types.size === 0) sums.delete(path)
  }
}
