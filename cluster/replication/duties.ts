// What a node ought to do about a shard, from what it knows: one pure function.
//
// The first of those that ought to keep a shard takes it over when it is orphaned; if it does not, being gone or
// without a whole copy, the next one does some time later, and so on; last of all whoever has a whole copy from
// earlier. From an owner that lives the shard is asked for, which is a move without a gap.
//
// A node that is not to be given shards claims none. In particular one that has just begun: as long as it has not heard
// of the others, all shards look orphaned to it, and what an owner that loses a shard has not appended yet is refused.

import type { Phase } from './holding.js'
import type { ReplicaState } from './replica.js'
import type { ReplicationOptions } from './replication-options.js'

export interface Situation {
  /** Whether this node is to be given shards. */
  readonly isJoined: boolean
  /** Its place among those that ought to keep the shard, 0 for the owner; -1: it is none of them. */
  readonly rank: number
  /** How many ought to. */
  readonly keepers: number
  readonly phase: Phase
  readonly replica: ReplicaState
  /** Whose the latest takeover is. `gone`: it had an owner, who does not live any more, or none ever. */
  readonly owner: 'self' | 'other' | 'gone'
  /** How long nobody has owned it, as far as this node knows. */
  readonly orphanedMs: number
  /** How long it has not been one of those that ought to keep the shard. */
  readonly strandedMs: number
  /**
   * Whether the store may have rows of the shard although it has no whole copy: a snapshot that broke off leaves some.
   */
  readonly mayHoldRows: boolean
  /** Whether its copy is near the end of the log. */
  readonly isClose: boolean
  readonly options: Pick<ReplicationOptions, 'claimStepMs' | 'dropAfterMs'>
}

/**
 * `adopt`: the shard is ours, and we have to get ready. `release`: it is ours, and we cannot. `ask`: its owner is to
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
  return rank === 0 && isClose ? 'ask' : 'nothing'
}
