// The copies of shards in the directory of a node of a cluster, which may lack some: a node keeps those that placement
// gives it, and a snapshot may have been interrupted.

import type { Store } from '../ports.js'
import { Positions } from '../shard/replicate/positions.js'
import type { FollowedPosition } from '../shard/replicate/replication.js'

export interface NodeCopies {
  /** The position of each complete copy in the log of its shard. The last one is that of the register. */
  readonly positions: ReadonlyMap<number, FollowedPosition>
  /** The shards without a complete copy. */
  readonly missing: readonly number[]
}

/** Reads the copies in the store of a node. `shards`: how many the cluster has, without the register. */
export async function readCopies(store: Store, shards: number): Promise<NodeCopies> {
  const known = await Positions.read(store)
  const positions = new Map<number, FollowedPosition>()
  const missing: number[] = []
  for (let shard = 0; shard <= shards; shard++) {
    const position = known.of(shard)
    if (position) positions.set(shard, position)
    else missing.push(shard)
  }
  return { positions, missing }
}

/** Shards listed in a sentence. */
const shardsNamedMax = 10

export function shardsInWords(shards: readonly number[]): string {
  const named = shards.slice(0, shardsNamedMax).join(', ')
  if (shards.length === 1) return `shard ${named}`
  return `shards ${named}${shards.length > shardsNamedMax ? ` and ${shards.length - shardsNamedMax} more` : ''}`
}
