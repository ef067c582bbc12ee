// The state of a cluster as one node knows it, in the form for operators and metrics.

/** What the engine of a cluster's log has lost, compared with what this node knows. */
export interface LogLoss {
  /** Whether the engine does not know the cluster any more. */
  readonly isNameless: boolean
  /** Shards whose logs lack something, out of `total`. */
  readonly shards: readonly number[]
  readonly total: number
}

/**
 * Why some shards of a cluster could not answer in the last seconds, as far as a node knows
 * (docs/operations/cluster-health.md).
 */
export type HealthProblem =
  | ({ readonly kind: 'lost' } & LogLoss)
  /** The logs of these shards have other records than the node has applied. */
  | { readonly kind: 'diverged'; readonly shards: readonly number[] }
  /** The log engine accepts no appends. `full`: its quota is exceeded. `away`: it does not answer, or cannot. */
  | {
      readonly kind: 'full' | 'away'
      /** The engine, where there are several. */
      readonly engine?: string
      readonly reason: string
      readonly shards: readonly number[]
    }
  | { readonly kind: 'unowned'; readonly shards: readonly number[] }
  /**
   * `unreachable`: the owners do not answer this node, which may be one of them. `silent`: the owners have not proven
   * that they can append.
   */
  | { readonly kind: 'unreachable' | 'silent'; readonly nodes: readonly string[]; readonly shards: readonly number[] }

/** The clock of a node, compared with those of the others (docs/operations/cluster.md#clocks). */
export interface ClockStatus {
  /**
   * `unknown`: no other node could be compared. `close`: within `skewMaxMs`. `apart`: further away, or no majority
   * agrees on the time. `unsafe`: so far away that the node takes no shards.
   */
  readonly state: 'unknown' | 'close' | 'apart' | 'unsafe'
  /** How far it is ahead of the median of all clocks; below 0: behind. */
  readonly aheadMs: number
  /** The bound: `-clockSkewMax`. */
  readonly skewMaxMs: number
}

/** A node's cluster, as that node sees it (docs/operations/cluster.md). */
export interface ClusterStatus {
  readonly node: string
  readonly cluster: string
  /** Whether this node takes shards. */
  readonly isJoined: boolean
  /** Whether the log engine has everything that this node knows. If not: the finding, and the shards concerned. */
  readonly log: {
    readonly state: 'whole' | 'lost'
    readonly reason?: string
    readonly shards: readonly number[]
  }
  /** The log engines in their order, where the shards are divided among several. */
  readonly engines?: readonly {
    /** The addresses of its members. */
    readonly engine: string
    /** The number of shards whose logs it keeps, the register counted. */
    readonly shards: number
    readonly hasRegister: boolean
    /** As of this node's latest requests to it. `full`: its quota is exceeded. `away`: it does not answer, or cannot. */
    readonly state: 'answers' | 'full' | 'away'
    readonly reason?: string
  }[]
  /**
   * Whether every shard could answer in the last seconds, as far as this node knows. If not: the reason, and the shards
   * that could not.
   */
  readonly health: {
    readonly state: 'ready' | HealthProblem['kind'] | 'clock'
    readonly reason?: string
    readonly shards: readonly number[]
  }
  readonly clock: ClockStatus
  /** What moves shards between nodes that stay: the least `-balance` of all joined nodes. */
  readonly balance: 'load' | 'count' | 'off'
  /** Exchanges for load that this node chose, and that were carried out. */
  readonly exchanges: number
  readonly members: readonly {
    readonly name: string
    readonly address: string
    readonly domain: string
    readonly status: string
    readonly isJoined: boolean
    /** Shards that it owns. */
    readonly owned: number
    /** The requests a second for entities of its shards; undefined: it reports none. */
    readonly load: number | undefined
    /** The version of the protocol on the link to it; undefined: no link, or it is this node itself. */
    readonly protocol: number | undefined
    /** Messages of that member that this node could not read. */
    readonly undecodable: number
    /** How far its clock is ahead of this node's; undefined: it is this node itself, or was not measured. */
    readonly clockAheadMs: number | undefined
  }[]
  /** The shards of entities in their order, then the register. */
  readonly shards: readonly {
    readonly shard: number
    /** undefined: no node owns it. */
    readonly owner: string | undefined
    /** The node that is about to own it, because that is its place among the nodes that take shards; undefined: none. */
    readonly next?: string | undefined
    readonly epoch: number
    /**
     * The state of this node's copy: `owned`, `following`, `incomplete` (being fetched, or none), `ahead` (of its log),
     * `stopped`.
     */
    readonly copy: string
    /** The last record known here, and how many records up to it are not applied here. */
    readonly known: number
    readonly lag: number
  }[]
}

/** The counters of a node of a cluster. */
export interface ClusterNumbers {
  readonly status: ClusterStatus
  /** Requests to the engine of the log, by their kind. */
  readonly log: readonly {
    readonly kind: string
    /** The engine, where there are several. */
    readonly engine?: string
    readonly requests: number
    readonly failures: number
    readonly records: number
    readonly bytes: number
    readonly milliseconds: number
  }[]
  /** How long the append in flight has waited for the engine; 0: there is none. */
  readonly stalledMs: number
  /** How often lists of this node that waited for shards have asked all nodes to begin no moves for a moment. */
  readonly rests: number
  readonly gossip: {
    readonly bytesSent: number
    readonly bytesReceived: number
    readonly messagesUnreadable: number
    readonly suspicions: number
  }
}

/** A shard that this node owned until another node took it over, or until this node gave it up. */
export interface ShardLoss {
  readonly shard: number
  /** The node that owns it now; undefined: no node does. */
  readonly node: string | undefined
  /** The epoch of its latest takeover. */
  readonly epoch: number
  /** How long ago this node was last certain that it owned the shard; undefined: it never was. */
  readonly certainMs: number | undefined
  /** This node has given it up because the engine of its log was silent: its changes may be in the log or not. */
  readonly isForsaken?: true
}
