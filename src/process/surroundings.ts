// The inputs of a node from outside (time, chance, a logger, its place among workers or nodes), and the interface of a
// running node.
//
// Everything that a test may want to replace comes in here. So a test can run a whole node under its own clock, or put
// a wrapper between the broker and its shards.

import type { ReadAccess } from '../access/access-text.js'
import type { Placement, ShardMap } from '../domain/scope.js'
import type { ClusterAdmin } from '../http/admin.js'
import type { ConnectionSource } from '../http/front.js'
import type { LogSettings } from '../messages/admin.js'
import type { ClockStatus, HealthProblem, ShardLoss } from '../messages/cluster-status.js'
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
   * The source of connections that the supervisor accepts for a shared port. undefined: each worker has its own port.
   */
  readonly connections?: ConnectionSource
  /** Receives this worker's shards; resolves with access to all of them. */
  join(own: OwnPart): Promise<Joined>
}

export interface Joined {
  readonly shards: Shards
  /** Whether all others can be asked. */
  isWhole(): boolean
  /** Calls back whenever one of the others becomes reachable again. */
  onReach(listener: () => void): void
  /**
   * Calls back at once, and again after each change, with the addresses (`host:port`) at which all known members of the
   * cluster listen for each other.
   */
  onMembers?(listener: (addresses: readonly string[]) => void): void
  /** Calls back at once, and again after each change, with the number of nodes of the cluster that are there. */
  onProcesses?(listener: (count: number) => void): void
  /** Reads of all owners wait: the shards should move no further for a moment. */
  rest(): void
  /** Milliseconds since a shard last got another owner. */
  stillMs(): number
  /** For operators; undefined: there is no cluster. */
  readonly clusterAdmin?: ClusterAdmin
  /** The reason why some shards cannot answer, in words; undefined: all can. */
  unready?(): string | undefined
  /** Gives away the shards that others can take over, while requests are still answered. */
  drain?(): Promise<void>
  /** Ends all asks, in both directions. */
  close(): Promise<void>
}

/** The fixed properties of a cluster. */
export interface Agreement extends Placement {
  readonly id: string
}

export interface JoinedNode {
  readonly kind: 'node'
  /**
   * New connections present and verify these certificates: those to nodes (`cluster`) or to the engine of the log
   * (`log`). When the certificates are not usable, it throws an error with a sentence, and the old ones stay in use.
   */
  renew(use: 'cluster' | 'log', contents: CertificateContents): void
  /**
   * The agreement of the cluster; as wanted, if this is its first node. Waits for the log engine. `own`: the cluster of
   * an existing data directory. Rejects with a sentence for the operator when the engine has another cluster, or none.
   */
  agree(wanted: Placement, own: { readonly path: string; readonly id: string } | undefined): Promise<AgreedPlace>
}

/** The place of a node that has the agreement of its cluster. */
export interface AgreedPlace {
  readonly agreement: Agreement
  /** Opens the node's shards over the log of the cluster, and connects with the other nodes. */
  join<Own extends OwnShards>(
    open: (log: ClusterLog) => Promise<Own>,
    options: JoinOptions,
  ): Promise<{ readonly own: Own; readonly joined: Joined }>
}

/** The log that the shards of a node write to, once they are its own. */
export type ClusterLog = Pick<ReplicatedNeeds, 'replication' | 'barrier'>

export interface JoinOptions {
  /** How long another node may take for a list. */
  readonly listMs: number
  /** undefined: every shard can answer. */
  readonly onHealth: (problem: HealthProblem | undefined) => void
  /** The clocks of the nodes were compared. Called several times a second. */
  readonly onClock: (clock: ClockStatus) => void
  /** Other nodes have taken over shards of this one. */
  readonly onLost: (losses: readonly ShardLoss[]) => void
}

/** This node's shards, in the form that the broker asks. */
export interface OwnPart {
  readonly local: Shards
  readonly shardMap: ShardMap
  readonly pathsOf: (tenant: string) => ReadonlySet<string> | undefined
}

/** The same, with the interface by which the cluster moves them. */
export interface OwnShards extends OwnPart {
  readonly host: ReplicatedShards
}

export interface Surroundings {
  readonly clock: Clock
  readonly chance: Chance
  readonly logger: Logger
  /** The settings of that logger, which operators may change; undefined: their changes have no effect. */
  readonly log?: LogSettings
  /** Called once when the node can guarantee nothing any more and must end. */
  readonly onFailure: (failure: Error) => void
  /** undefined: the node is alone. */
  readonly place?: NodeMembership
  /** The access file as it was before the start (preflight.ts); undefined: the node reads it first. */
  readonly readAccess?: ReadAccess | undefined
  /** Puts a wrapper between the broker and its shards. */
  readonly wrapShards?: (shards: Shards) => Shards
}

export interface RunningNode {
  readonly port: number
  /** undefined: operators have no port of their own. */
  readonly adminPort: number | undefined
  /**
   * Reads the access file and changed certificates now, and opens the audit log again; a node looks at these files
   * regularly anyway.
   */
  lookAtFiles(): void
  /** The name of its store, for the line that reports readiness. */
  readonly store: string
  /**
   * Stops accepting connections. Answers are held back until `drain`, which the caller calls at once. A node of a
   * cluster continues.
   */
  unlisten(): Promise<void>
  /**
   * Stops accepting, answers the requests that still come, and closes all connections; others may still ask its shards.
   */
  drain(): Promise<void>
  /**
   * Stops accepting, and answers the requests in flight: for a node that can guarantee nothing more, and gives no
   * shards away.
   */
  dismiss(): Promise<void>
  /** Makes everything durable and closes the store. */
  close(): Promise<void>
}
