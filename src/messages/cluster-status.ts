// What a node knows of its cluster, as operators and metrics are told.

/** What the engine of a cluster's log has lost of what this node knows. */
export interface LogLoss {
  /** Whether it does not know the cluster any more. */
  readonly isNameless: boolean
  /** Shards of whose logs something is missing, of so many in `total`. */
  readonly shards: readonly number[]
  readonly total: number
}

/**
 * Why some shards of a cluster could not answer in the last seconds, as far as a node knows
 * (docs/operations/cluster-health.md).
 */
export type HealthProblem =
  | ({ readonly kind: 'lost' } & LogLoss)
  /** The log engine takes no appends: `full`, its quota is exceeded; `away`, it does not answer, or cannot. */
  | { readonly kind: 'full' | 'away'; readonly reason: string; readonly shards: readonly number[] }
  | { readonly kind: 'unowned'; readonly shards: readonly number[] }
  /** This node cannot reach the owners; or these have not proven that they can append. */
  | { readonly kind: 'unreachable' | 'silent'; readonly nodes: readonly string[]; readonly shards: readonly number[] }

/** A node's cluster, as that node sees it (README, "From one node to three"). */
export interface ClusterStatus {
  readonly node: string
  readonly cluster: string
  /** Whether this node takes shards. */
  readonly isJoined: boolean
  /** Whether the log engine has all that this node knows; if not, what was found, and the shards that it is about. */
  readonly log: {
    readonly state: 'whole' | 'lost'
    readonly reason?: string
    readonly shards: readonly number[]
  }
  /**
   * Whether every shard could answer in the last seconds, as far as this node knows; if not, why, and which could not.
   */
  readonly health: {
    readonly state: 'ready' | HealthProblem['kind']
    readonly reason?: string
    readonly shards: readonly number[]
  }
  readonly members: readonly {
    readonly name: string
    readonly address: string
    readonly domain: string
    readonly status: string
    readonly isJoined: boolean
    /** Shards that it owns. */
    readonly owned: number
    /** The version of the protocol that is spoken with it; undefined: none, or it is this node itself. */
    readonly protocol: number | undefined
    /** Messages of it that could not be read here. */
    readonly undecodable: number
  }[]
  /** Shards of entities in their order, and behind them the register. */
  readonly shards: readonly {
    readonly shard: number
    /** undefined: nobody. */
    readonly owner: string | undefined
    readonly epoch: number
    /**
     * What this node has of it: `owned`, `following`, `incomplete` (being fetched, or none), `ahead` (of its log),
     * `stopped`.
     */
    readonly copy: string
    /** The last record that is known here, and how many of those before it are not applied here. */
    readonly known: number
    readonly lag: number
  }[]
}

/** What a node of a cluster counts. */
export interface ClusterNumbers {
  readonly status: ClusterStatus
  /** Requests to the engine of the log, by their kind. */
  readonly log: readonly {
    readonly kind: string
    readonly requests: number
    readonly failures: number
    readonly records: number
    readonly bytes: number
    readonly milliseconds: number
  }[]
  /** How long the append under way has waited for the engine; 0: there is none. */
  readonly stalledMs: number
  readonly gossip: {
    readonly bytesSent: number
    readonly bytesReceived: number
    readonly messagesUnreadable: number
    readonly suspicions: number
  }
}

/** A shard that was this node's own until another node took it over. */
export interface ShardLoss {
  readonly shard: number
  /** The node that owns it now; undefined: nobody does. */
  readonly node: string | undefined
  /** Of its latest takeover. */
  readonly epoch: number
  /** How long ago this node was last certain to own it; undefined: it never was. */
  readonly certainMs: number | undefined
}
