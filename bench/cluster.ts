// Three nodes of a cluster on this machine, in parts: planned moves of shards, nodes that are killed, members of the
// log's engine that fail, the rates of replicated nodes, shards that are divided among two etcds, a fourth node that joins,
// a rolling restart on a busy machine, and nine nodes by a simulation.
//
// Nodes, etcd and generator share the cores, and nothing is pinned. Each part begins with a cluster of its own.

import { dividedLogs } from './divided-logs.js'
import { engineMembers } from './engine-members.js'
import { failovers } from './failovers.js'
import { type JoiningOptions, joining } from './joining.js'
import { nineNodes } from './nine-nodes.js'
import { type PlannedMovesOptions, plannedMoves } from './planned-moves.js'
import type { RateOptions } from './rate-options.js'
import { replicatedRates } from './replicated-rates.js'
import type { Finding } from './report.js'
import { restarts } from './restarts.js'

export interface ClusterOptions extends RateOptions, PlannedMovesOptions, JoiningOptions {
  /** Number of times that a node is killed. */
  readonly kills: number
}

const parts = {
  moves: plannedMoves,
  failovers: ({ subject, folder, kills }) => failovers(subject, folder, kills),
  engine: ({ subject, folder, rounds }) => engineMembers(subject, folder, rounds),
  rates: replicatedRates,
  divided: dividedLogs,
  joining,
  restarts: ({ subject, folder, rounds }) => restarts(subject, folder, rounds),
  nine: nineNodes,
} as const satisfies Record<string, (options: ClusterOptions) => Promise<Finding[]>>

export type ClusterPart = keyof typeof parts

export const clusterParts = Object.keys(parts) as readonly ClusterPart[]

/** Runs some parts, one after the other. */
export async function cluster(options: ClusterOptions, chosen: readonly ClusterPart[]): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const part of chosen) findings.push(...(await parts[part](options)))
  return findings
}
