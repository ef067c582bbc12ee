// A commit that was only partly appended: the replies to its waiters, and to requests that come later.
//
// When another node has taken over a shard of this one, the log refuses the staged records of that shard
// (replicate/replicated-log.ts). The store works, and so do the other shards: their staged records are durable. A
// caller that waits asks whether the failure concerns its shard (`hasLost`). The same happens when one of several
// engines is silent for long: nobody knows then whether it has the records of its shards.
//
// Any other failure concerns all shards: the content of the store is unknown, and the node ends.

import type { ShardLoss } from '../../messages/cluster-status.js'
import type { FollowedPosition } from '../replicate/replication.js'

/** The error when a part of an append was refused, because other nodes own those shards. */
export interface Deposed extends Error {
  readonly code: 'deposed'
  readonly losses: readonly ShardLoss[]
  /** The positions of the shards that were appended. */
  readonly reached: ReadonlyMap<number, FollowedPosition>
}

/** Whether a commit has failed only for shards that other nodes own. */
export const isDeposed = (failure: Error): failure is Deposed => 'code' in failure && failure.code === 'deposed'

/** Whether the records of a shard in a failed commit are not durable, or may not be. */
export const hasLost = (failure: Error, shard: number): boolean =>
  !isDeposed(failure) || failure.losses.some(loss => loss.shard === shard)

/** The reply to a request that has changed nothing and read nothing certain, because a commit has failed. */
export const replyAfterFailure = (
  failure: Error,
): { readonly kind: 'moved' } | { readonly kind: 'failed'; readonly reason: string } =>
  isDeposed(failure) ? { kind: 'moved' } : { kind: 'failed', reason: failure.message }

/**
 * The reply to a write in a shard whose commit has failed. When another node has taken over, the client has to check
 * whether the write took effect.
 */
export function replyOfFailure(
  failure: Error,
  shard: number,
): { readonly kind: 'lost' | 'failed'; readonly reason: string } {
  if (!isDeposed(failure)) return { kind: 'failed', reason: failure.message }
  const { node, isForsaken } = failure.losses.find(loss => loss.shard === shard) ?? {}
  if (isForsaken) return { kind: 'lost', reason: `the log of shard ${shard} does not answer` }
  const reason = node === undefined ? `shard ${shard} has no owner now` : `shard ${shard} was taken over by ${node}`
  return { kind: 'lost', reason }
}
