// What a node is given from outside, and what it gives: time, chance, a logger, and its place among workers or nodes.
//
// Everything that a test may want to replace comes in here, so a test can run a whole node under its own clock, or put
// something between the broker and its shards.

import type { Placement, ShardMap } from '../domain/scope.js'
import type { ClusterAdmin } from '../http/admin.js'
import type { ConnectionSource } from '../http/front.js'
import type { LogSettings } from '../messages/admin.js'
import type { HealthProblem, ShardLoss } from '../messages/cluster-status.js'
import type { Shards } from '../messages/messages.js'
import type { Chance, Clock, Logger } from '../ports.js'
import type { WorkerPart } from '../shard/open-shards.js'
import type { ReplicatedNeeds } from '../shard/replicate/open-replicated.js'
import type { ReplicatedShards } from '../shard/replicate/replicated-shards.js'
import type { CertificateContents } from './certificate-watch.js'

/** How a node is one of several: a worker of one machine, or a node of a cluster. */
export type NodeMembership = JoinedWorker | JoinedNode

export interface JoinedWorker extends WorkerPart {
  readonly kind: 'worker'
  /**
   * Where connections come from that the supervisor accepts: they share the port. undefined: each has one of its own.
   */
  readonly connections?: ConnectionSource
  /** Given this worker's shards: gives all of them. */
  join(own: OwnPart): Promise<Joined>
}

export interface Joined {
  readonly shards: Shards
  /** Whether all others can be asked. */
  isWhole(): boolean
  /** Calls back whenever one of the others can be asked anew. */
  onReach(listener: () => void): void
  /**
   * Calls back at once, and again when others are: where all members of the cluster that are known listen for each
   * other, `host:port`.
   */
  onMembers?(listener: (addresses: readonly string[]) => void): void
  /** For operators; undefined: there is no cluster. */
  readonly clusterAdmin?: ClusterAdmin
  /** Why some shards cannot answer, in words; undefined: all can. */
  unready?(): string | undefined
  /** Gives away what others can take over, while requests are still answered. */
  drain?(): Promise<void>
  /** Nobody is asked any more, and nobody asks. */
  close(): Promise<void>
}

/** What a cluster is, for good. */
export interface Agreement extends Placement {
  readonly id: string
}

export interface JoinedNode {
  readonly kind: 'node'
  /**
   * New connections show and verify what these files have: those to nodes (`cluster`) or to the engine of the log
   * (`log`). Fails with a sentence, and goes on with the old ones, when they are of no use.
   */
  renew(use: 'cluster' | 'log', contents: CertificateContents): void
  /**
   * What the cluster is; as wanted, if this is its first node. Waits for the log engine. `own`: what the data directory
   * belongs to, where there is one: rejects with a sentence for the operator when the engine has another cluster, or
   * none.
   */
  agree(wanted: Placement, own: { readonly path: string; readonly id: string } | undefined): Promise<AgreedPlace>
}

/** The place of a node that knows what its cluster is. */
export interface AgreedPlace {
  readonly agreement: Agreement
  /** Has the node's shards opened over the log of the cluster, and comes together with the other nodes. */
  join<Own extends OwnShards>(
    open: (log: ClusterLog) => Promise<Own>,
    options: JoinOptions,
  ): Promise<{ readonly own: Own; readonly joined: Joined }>
}

/** What the shards of a node write to, once they are its own. */
export type ClusterLog = Pick<ReplicatedNeeds, 'replication' | 'barrier'>

export interface JoinOptions {
  /** How long another node may take for a list. */
  readonly listMs: number
  /** undefined: every shard can answer. */
  readonly onHealth: (problem: HealthProblem | undefined) => void
  /** Other nodes have taken over shards of this one. */
  readonly onLost: (losses: readonly ShardLoss[]) => void
}

/** This node's shards, as the broker asks them. */
export interface OwnPart {
  readonly local: Shards
  readonly shardMap: ShardMap
  readonly pathsOf: (tenant: string) => Iterable<string> | undefined
}

/** The same, as the cluster moves them as well. */
export interface OwnShards extends OwnPart {
  readonly host: ReplicatedShards
}

export interface Surroundings {
  readonly clock: Clock
  readonly chance: Chance
  readonly logger: Logger
  /** The settings of that logger, which operators may change; undefined: what they change has no effect. */
  readonly log?: LogSettings
  /** Told once when the node can promise nothing any more and must end. */
  readonly onFailure: (failure: Error) => void
  /** undefined: the node is alone. */
  readonly place?: NodeMembership
  /** Puts something between the broker and its shards. */
  readonly wrapShards?: (shards: Shards) => Shards
}

export interface RunningNode {
  readonly port: number
  /** Looks now whether the files of certificates have changed; it does so every second anyway. */
  lookAtCertificates(): void
  /** What it runs on, for the line that says it is ready. */
  readonly store: string
  /**
   * Stops accepting; answers are held back until `drain`, which the caller calls at once. A node of a cluster goes on.
   */
  unlisten(): Promise<void>
  /**
   * Stops accepting, answers the requests that still come, and closes all connections; others may still ask its shards.
   */
  drain(): Promise<void>
  /**
   * Stops accepting, and answers what is in flight: for a node that can promise nothing more, and gives nothing away.
   */
  dismiss(): Promise<void>
  /** Makes everything durable and closes the store. */
  close(): Promise<void>
}
