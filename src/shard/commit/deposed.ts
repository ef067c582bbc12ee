// What a failed commit means for those who wait for it, and for those who ask later.
//
// When another node has taken over a shard of this one the store is well: an append was refused (replicate/replicated-log.ts). The node ends all
// the same, since turns have decided what never will be.

import type { ShardLoss } from '../../messages/cluster-status.js'

/** Why an append was refused: other nodes own what it was about. */
export interface Deposed extends Error {
  readonly code: 'deposed'
  readonly losses: readonly ShardLoss[]
}

/** Whether a commit has failed because other nodes own what it was about. */
export const isDeposed = (failure: Error): failure is Deposed => 'code' in failure && failure.code === 'deposed'

/** The reply to what is asked after a commit has failed: nothing is done of it. */
export const replyAfterFailure = (
  failure: Error,
): { readonly kind: 'moved' } | { readonly kind: 'failed'; readonly reason: string } =>
  isDeposed(failure) ? { kind: 'moved' } : { kind: 'failed', reason: failure.message }

/** The reply to a write whose commit has failed. Nobody here knows whether the log has it when another node has taken over. */
export const replyOfFailure = (failure: Error): { readonly kind: 'lost' | 'failed'; readonly reason: string } => ({
  kind: isDeposed(failure) ? 'lost' : 'failed',
  reason: failure.message,
})
