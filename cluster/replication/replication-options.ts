// Every knob of replication, with what it costs.

import assert from 'node:assert/strict'

const mib = 1024 * 1024

export interface ReplicationOptions {
  /** Nodes that keep each shard, its owner among them. */
  readonly replicas: number
  /**
   * How long an owner may answer reads after it was last certain to be the owner, on its own monotonic clock. Who takes
   * over from one that does not answer waits as long: a longer lease makes failover longer, a shorter one needs the log
   * more often.
   */
  readonly leaseMs: number
  /** What a newcomer waits besides, as a part of the lease: clocks may drift so far from each other. */
  readonly leaseMargin: number
  /** How often an owner makes certain that it is. A third of the lease, so that one lost answer means nothing. */
  readonly renewMs: number
  /** How long the second in line waits for the first to take over an orphaned shard, the third for both, and so on. */
  readonly claimStepMs: number
  /**
   * How long a node that gossip takes for dead is left its shards after the log told of something that it has done, on
   * the smaller side of a cut. It has to be longer than an owner is silent that is used.
   */
  readonly signMs: number
  /** How long a node keeps its copy of a shard that others ought to keep: until these have theirs, and some more. */
  readonly dropAfterMs: number
  /** Between two looks at what is to be done. */
  readonly lookMs: number
  /** Pause before something is asked again that came to nothing. */
  readonly retryMs: number
  /**
   * Between two looks whether the engine still has what is known here: what somebody else does with it is noticed so
   * late.
   */
  readonly checkMs: number
  /** How often an owner proves that the engine takes its appends: each time costs the engine one small write. */
  readonly heartbeatMs: number
  /**
   * A shard of which nothing proves for so long that it can answer makes nodes unhealthy. A few `heartbeatMs`, and
   * longer than an owner takes to be replaced.
   */
  readonly healthMs: number
  /** Shards that one node moves to itself at the same time: more is faster, and each has its pause longer. */
  readonly movesMax: number
  /** Shards whose snapshots one node fetches at the same time. */
  readonly fetchesMax: number
  /** Bytes of one page of a snapshot, and of records read at once. */
  readonly pageBytesMax: number
  /** Bytes of records that wait to be applied; what comes beyond is read again later. */
  readonly pendingBytesMax: number
  /** How far a standby may be behind to be given a shard in good order, in records. */
  readonly lagMax: number
  /** Between two rounds of letting go of records that enough nodes have. */
  readonly trimMs: number
  /** Records that are kept although enough nodes have them: a node that was away for less need not fetch a snapshot. */
  readonly recordsKept: number
}

export const replicationOptionsDefault: ReplicationOptions = {
  replicas: 3,
  leaseMs: 2000,
  leaseMargin: 0.05,
  renewMs: 600,
  claimStepMs: 1500,
  signMs: 10_000,
  dropAfterMs: 600_000,
  lookMs: 200,
  retryMs: 250,
  checkMs: 2000,
  heartbeatMs: 1500,
  healthMs: 6000,
  movesMax: 4,
  fetchesMax: 2,
  pageBytesMax: mib,
  pendingBytesMax: 32 * mib,
  lagMax: 500,
  trimMs: 5000,
  recordsKept: 1000,
}

/** Defaults for what is not given; asserts that the whole makes sense. */
export function completeReplicationOptions(given: Partial<ReplicationOptions>): ReplicationOptions {
  const options = { ...replicationOptionsDefault, ...given }
  assert(options.replicas >= 1, 'a shard needs one node at least')
  assert(options.renewMs * 2 < options.leaseMs, 'leaseMs has no room for two renewals')
  assert(options.leaseMargin >= 0.001, 'leaseMargin is smaller than what clocks drift')
  assert(options.checkMs >= 1, 'checkMs is too short')
  assert(options.healthMs >= 2 * options.heartbeatMs, 'healthMs has no room for two heartbeats')
  assert(options.recordsKept >= 1, 'the last record always stays')
  return Object.freeze(options)
}
