// A commit that was not appended as a whole: what its waiters are told, and the requests that come later.
//
// When another node has taken over a shard of this one, the log refuses what was staged of that shard
// (replicate/replicated-log.ts). The store is well, and so are the other shards: what was staged of them is durable. A
// caller that waits asks whether the failure is about its shard (`hasLost`).
//
// Any other failure is about all shards: nobody knows what the store has, and the node ends.

import type { ShardLoss } from '../../messages/cluster-status.js'
import type { FollowedPosition } from '../replicate/replication.js'

/** Why some of an append was refused: other nodes own those shards. */
export interface Deposed extends Error {
  readonly code: 'deposed'
  readonly losses: readonly ShardLoss[]
  /** The positions of what was appended. */
  readonly reached: ReadonlyMap<number, FollowedPosition>
}

/** Whether a commit has failed only as far as it was about shards that other nodes own. */
export const isDeposed = (failure: Error): failure is Deposed => 'code' in failure && failure.code === 'deposed'

/** Whether what a failed commit had of a shard is not durable, or may not be. */
export const hasLost = (failure: Error, shard: number): boolean =>
  !isDeposed(failure) || failure.losses.some(loss => loss.shard === shard)

/** The reply to a request that has changed nothing and read nothing certain, because a commit has failed. */
export const replyAfterFailure = (
  failure: Error,
): { readonly kind: 'moved' } | { readonly kind: 'failed'; readonly reason: string } =>
  isDeposed(failure) ? { kind: 'moved' } : { kind: 'failed', reason: failure.message }

/**
 * The reply to a write in a shard whose commit has failed: when another node has taken over, the client has to look
 * what has become of it.
 */
export function replyOfFailure(
  failure: Error,
  shard: number,
): { readonly kind: 'lost' | 'failed'; readonly reason: string } {
  if (!isDeposed(failure)) return { kind: 'failed', reason: failure.message }
  const node = failure.losses.find(loss => loss.shard === shard)?.node ?? 'nobody'
  return { kind: 'lost', reason: `shard ${shard} was taken over by ${node}` }
}
