// Every option of replication with its cost.

import assert from 'node:assert/strict'

const mib = 1024 * 1024

/**
 * What moves shards between nodes that stay: `load`: unequal numbers of shards, and unequal loads. `count`: unequal
 * numbers. `off`: nothing.
 */
export const balances = ['off', 'count', 'load'] as const

export type Balance = (typeof balances)[number]

export interface ReplicationOptions {
  /** Nodes that keep each shard, its owner among them. */
  readonly replicas: number
  /**
   * How long an owner may answer reads after it was last certain to be the owner, on its own monotonic clock. A node
   * that takes over from a silent owner waits as long. A longer lease makes failover longer; a shorter one needs the
   * log more often.
   */
  readonly leaseMs: number
  /** The additional wait of a new owner, as a part of the lease: clocks may drift so far from each other. */
  readonly leaseMargin: number
  /** How often an owner confirms its lease. A third of the lease, so that one lost answer does not matter. */
  readonly renewMs: number
  /** How long the second in line waits for the first to take over an orphaned shard, the third for both, and so on. */
  readonly claimStepMs: number
  /**
   * The same for a shard whose owner leaves. The first in line asks at once, and needs some seconds for many shards: the
   * next one is only for an owner of another build, which knows another first one.
   */
  readonly leavingStepMs: number
  /**
   * How long a node on the smaller side of a cut leaves an apparently dead node its shards, after the log last reported
   * an action of that node. It has to be longer than the pauses of an owner that is in use.
   */
  readonly signMs: number
  /** How long a node keeps its copy of a shard that others ought to keep: until these have theirs, and some more. */
  readonly dropAfterMs: number
  /** Between two checks of all duties. */
  readonly lookMs: number
  /** Pause before a failed request is repeated. */
  readonly retryMs: number
  /** Between two checks whether the engine still has everything that is known here: a loss is noticed so late. */
  readonly checkMs: number
  /** How often an owner proves that the engine takes its appends: each time costs the engine one small write. */
  readonly heartbeatMs: number
  /**
   * Without proof for so long that a shard can answer, nodes are unhealthy. A few `heartbeatMs`, and longer than it
   * takes to replace an owner.
   */
  readonly healthMs: number
  /**
   * When one of several engines has not answered an append for so long, its owner gives the shards of that engine up
   * until the engine is back. Other changes may wait for the append until then, so it has to be shorter than clients
   * wait; an election of the engine should fit in.
   */
  readonly forsakeMs: number
  /** Shards that one node moves to itself at the same time: more is faster, and each has its pause longer. */
  readonly movesMax: number
  /**
   * The rest after a takeover, until the next round of moves begins (move-rounds.ts): the new owner gets ready, and
   * lists find all owners at rest. It delays moves.
   */
  readonly moveRestMs: number
  /** How long a round may keep the next one waiting. */
  readonly moveRoundMs: number
  /** The rest that a node with waiting lists asks for, each time, and how often it does so. */
  readonly holdMs: number
  readonly holdEveryMs: number
  /** The longest such rest after a takeover: lists that never find one do not stop moves. */
  readonly holdMsMax: number
  /**
   * Shards of one engine that a node fetches or drops at the same time. A fetched one counts until it has caught up with
   * its log.
   */
  readonly fetchesMax: number
  /** Bytes of one page of a snapshot, and of records read at once. */
  readonly pageBytesMax: number
  /** Bytes of records that wait to be applied; records beyond that are read again later. */
  readonly pendingBytesMax: number
  /** How far a standby may be behind, in records, to get a shard by handoff. */
  readonly lagMax: number
  /** Between two rounds of deleting records that enough nodes have. */
  readonly trimMs: number
  /** Records that are kept although enough nodes have them: a node that was away for less need not fetch a snapshot. */
  readonly recordsKept: number
  /** The setting of this node. The least one of all nodes applies (balancer.ts). */
  readonly balance: Balance
  /** The time constant of the mean by which loads are smoothed. Well below `hotMs`, which it delays. */
  readonly loadMs: number
  /** How long loads have to be unequal before a shard moves, and how long a node has to be joined before. */
  readonly hotMs: number
  /** Loads are unequal if one differs by more than this part of the mean from it. */
  readonly hotPart: number
  /** Below so many requests a second above or below the mean, loads count as equal: moves cost more than they save. */
  readonly hotRequestsMin: number
  /** An exchange has to lower the larger one of two loads by this part of the mean. */
  readonly hotGain: number
  /** How long a node takes part in no further exchange after one. */
  readonly hotPauseMs: number
  /** How long two nodes try to carry an exchange out. */
  readonly exchangeMs: number
}

export const replicationOptionsDefault: ReplicationOptions = {
  replicas: 3,
  leaseMs: 2000,
  leaseMargin: 0.05,
  renewMs: 600,
  claimStepMs: 1500,
  leavingStepMs: 5000,
  signMs: 10_000,
  dropAfterMs: 600_000,
  lookMs: 200,
  retryMs: 250,
  checkMs: 2000,
  heartbeatMs: 1500,
  healthMs: 6000,
  forsakeMs: 4000,
  movesMax: 8,
  moveRestMs: 150,
  moveRoundMs: 5000,
  holdMs: 1000,
  holdEveryMs: 300,
  holdMsMax: 4000,
  fetchesMax: 4,
  pageBytesMax: mib,
  pendingBytesMax: 32 * mib,
  lagMax: 500,
  trimMs: 5000,
  recordsKept: 1000,
  balance: 'load',
  loadMs: 20_000,
  hotMs: 60_000,
  hotPart: 0.25,
  hotRequestsMin: 100,
  hotGain: 0.05,
  hotPauseMs: 60_000,
  exchangeMs: 30_000,
}

/** Fills in defaults, and asserts that the options fit together. */
export function completeReplicationOptions(given: Partial<ReplicationOptions>): ReplicationOptions {
  const options = { ...replicationOptionsDefault, ...given }
  assert(options.replicas >= 1, 'replicas is less than 1')
  assert(options.renewMs * 2 < options.leaseMs, 'leaseMs has no room for two renewals')
  assert(options.leaseMargin >= 0.001, 'leaseMargin is smaller than the drift of clocks')
  assert(options.checkMs >= 1, 'checkMs is too short')
  assert(options.healthMs >= 2 * options.heartbeatMs, 'healthMs has no room for two heartbeats')
  assert(options.recordsKept >= 1, 'recordsKept is less than 1')
  assert(options.loadMs > 0, 'loadMs is no time')
  assert(options.hotGain > 0, 'without hotGain shards could move back and forth')
  assert(options.hotPauseMs >= options.exchangeMs, 'hotPauseMs is shorter than an exchange')
  return Object.freeze(options)
}
