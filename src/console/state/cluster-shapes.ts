// The cluster as the interface shows it: the members that the console reads (docs/operations/cluster.md).

export interface MemberShape {
  readonly name: string
  readonly address: string
  readonly domain: string
  readonly status: string
  readonly isJoined: boolean
  readonly owned: number
  /** Requests a second for entities of its shards. */
  readonly load?: number
  readonly protocol?: number
  readonly undecodable: number
  /** How far its clock is ahead of the clock of the asked node. */
  readonly clockAheadMs?: number
}

export interface ShardShape {
  readonly shard: number
  readonly owner?: string
  /** The node that is about to own it. */
  readonly next?: string
  readonly epoch: number
  readonly copy: string
  readonly lag: number
}

interface StateShape {
  readonly state: string
  readonly reason?: string
  readonly shards: readonly number[]
}

export interface ClusterShape {
  readonly node: string
  readonly cluster: string
  readonly isJoined: boolean
  readonly log: StateShape
  readonly health: StateShape
  readonly members: readonly MemberShape[]
  readonly shards: readonly ShardShape[]
}

/** A shard that an operator should look at: without an owner, on its way, or with a copy that is not up to date. */
export const needsAttention = ({ owner, next, copy, lag }: ShardShape): boolean =>
  owner === undefined || next !== undefined || lag > 0 || (copy !== 'owned' && copy !== 'following')

/** How many shards move from which node to which. */
export function movesOf(shards: readonly ShardShape[]): ReadonlyMap<string, number> {
  const moves = new Map<string, number>()
  for (const { owner, next } of shards) {
    if (next === undefined) continue
    const move = `${owner ?? 'no node'} → ${next}`
    moves.set(move, (moves.get(move) ?? 0) + 1)
  }
  return moves
}
