// How many entities there are in the shards that are this node's own: of each, what it had when it began, read in the background, and what has
// changed since.

import type { StoreReader } from '../../ports.js'
import type { Directory } from '../commit/directory.js'
import { EntityCount } from '../commit/entity-count.js'
import { directoriesOf } from './replicated-layout.js'

export class OwnedEntityCount {
  private readonly store: StoreReader
  private readonly shards = new Map<number, EntityCount>()

  constructor(store: StoreReader) {
    this.store = store
  }

  /** undefined: not known yet. */
  get total(): number | undefined {
    let sum = 0
    for (const { total } of this.shards.values()) {
      if (total === undefined) return undefined
      sum += total
    }
    return sum
  }

  /** A shard is this node's own from now on. */
  begin(shard: number, counts: Directory): void {
    const count = new EntityCount(counts, directoriesOf(shard))
    count.begin(this.store)
    this.shards.set(shard, count)
  }

  /** A shard is not this node's own any more. */
  end(shard: number): void {
    void this.shards.get(shard)?.stop()
    this.shards.delete(shard)
  }

  /** Reads no more; resolves when the store is not needed. */
  async stop(): Promise<void> {
    await Promise.all([...this.shards.values()].map(count => count.stop()))
  }
}
