// Three nodes of a cluster on this machine: planned moves of shards, nodes that are killed, members of the log's engine
// that fail, the rates of replicated nodes, and shards that are divided among two etcds.
//
// Nodes, etcd and generator share the cores, and nothing is pinned. Each part begins with a cluster of its own.

import { dividedLogs } from './divided-logs.js'
import { engineMembers } from './engine-members.js'
import { failovers } from './failovers.js'
import { type PlannedMovesOptions, plannedMoves } from './planned-moves.js'
import type { RateOptions } from './rate-options.js'
import { replicatedRates } from './replicated-rates.js'
import type { Finding } from './report.js'

export interface ClusterOptions extends RateOptions, PlannedMovesOptions {
  /** Number of times that a node is killed. */
  readonly kills: number
}

export async function cluster(options: ClusterOptions): Promise<Finding[]> {
  const { subject, folder, kills } = options
  return [
    ...(await plannedMoves(options)),
    ...(await failovers(subject, folder, kills)),
    ...(await engineMembers(subject, folder, options.rounds)),
    ...(await replicatedRates(options)),
    ...(await dividedLogs(options)),
  ]
}
