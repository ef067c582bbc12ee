// The duty of a node for a shard, from what the node knows: one pure function.
//
// The first of the nodes that ought to keep a shard takes it over when it has no living owner. If that node is gone or
// has no whole copy, the next one does so some time later, and so on; last come nodes with a whole copy from earlier. A
// living owner is asked to hand the shard over, which moves it without a gap. Of an owner that should have no shards,
// the next ones ask as well, some time later: an owner of the build before knows another first node than this one.
//
// A node that should not get shards claims none. This matters for a node that has just begun. Until it knows the
// others, all shards look orphaned to it; and when an owner loses a shard, its changes that are not yet appended are
// refused.

import type { Phase } from './holding.js'
import type { ReplicaState } from './replica.js'
import type { ReplicationOptions } from './replication-options.js'

/**
 * The owner by the latest takeover. `leaving`: it lives and should have no shards. `gone`: it does not live any more,
 * or there never was one.
 */
export type OwnerSort = 'self' | 'other' | 'leaving' | 'gone'

export interface Situation {
  /** Whether this node should get shards. */
  readonly isJoined: boolean
  /** Its place among the nodes that ought to keep the shard, 0 for the owner; -1: it is none of them. */
  readonly rank: number
  /** How many nodes ought to keep it. */
  readonly keepers: number
  readonly phase: Phase
  readonly replica: ReplicaState
  readonly owner: OwnerSort
  /** How long the shard has had no owner, as far as this node knows. */
  readonly orphanedMs: number
  /** How long its owner has been one that should have no shards. */
  readonly leavingMs: number
  /** How long this node has not been one of those that ought to keep the shard. */
  readonly strandedMs: number
  /**
   * Whether the store may have rows of the shard although it has no whole copy: an interrupted snapshot leaves some.
   */
  readonly mayHoldRows: boolean
  /** Whether its copy is near the end of the log. */
  readonly isClose: boolean
  readonly options: Pick<ReplicationOptions, 'claimStepMs' | 'leavingStepMs' | 'dropAfterMs'>
}

/**
 * `adopt`: the shard is ours, and we have to get ready. `release`: it is ours, and we cannot. `ask`: its owner should
 * hand it over. `fetch`: a snapshot is needed.
 */
export type Duty = 'nothing' | 'claim' | 'adopt' | 'release' | 'ask' | 'fetch' | 'drop'

export function dutyOf(situation: Situation): Duty {
  const { isJoined, rank, keepers, phase, replica, owner, orphanedMs, isClose, options } = situation
  const isStranded = rank < 0 && situation.strandedMs >= options.dropAfterMs
  if (phase !== 'following' || replica === 'closed' || replica === 'ahead') return 'nothing'
  if (owner === 'self' && replica !== 'following') return 'release'
  if (replica === 'stopped') return 'nothing'
  if (replica === 'incomplete' && rank >= 0) return 'fetch'
  if (replica === 'incomplete') return isStranded && situation.mayHoldRows ? 'drop' : 'nothing'
  if (owner === 'self') return 'adopt'
  const line = rank < 0 ? keepers : rank
  if (owner === 'gone') return isJoined && orphanedMs >= line * options.claimStepMs ? 'claim' : 'nothing'
  if (rank < 0) return isStranded ? 'drop' : 'nothing'
  const isNext = owner === 'leaving' && isJoined && situation.leavingMs >= rank * options.leavingStepMs
  return isClose && (rank === 0 || isNext) ? 'ask' : 'nothing'
}
