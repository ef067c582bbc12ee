// The log of a cluster, as shards use it: they append to it, wait until others have followed it, and keep their
// position.

/** How far the log of a shard has been followed. */
export interface FollowedPosition {
  /** The number of the last record; 0: nothing yet. */
  readonly sequence: number
  readonly epoch: number
  /** The hash of all records up to the last one. */
  readonly hash: Buffer
}

/** The decisions of turns for one shard, as bytes for its log. */
export interface LogPayload {
  readonly shard: number
  readonly payload: Buffer
}

export type OnAppended = (outcome: ReadonlyMap<number, FollowedPosition> | Error) => void

/** Makes decisions durable before the store has them. */
export interface Replication {
  /** How many engines keep the logs. They work independently, and the parts of an append for each go one by one. */
  readonly engines: number
  /** The index of the engine that keeps the log of a shard. */
  engineOf(shard: number): number
  /**
   * Appends to the logs of own shards, one part for each. Calls back when all are durable, with the position of each.
   * When other nodes have taken over some of the shards, it passes the outcome of each (commit/deposed.ts). After any
   * other error the outcome is unknown, and the node has to end. A call with a shard must wait for the callback of the
   * one before with that shard; calls without a common shard overlap.
   */
  append(parts: readonly LogPayload[], onDone: OnAppended): void
}

/** Calls back when every owner has the log of a shard up to a record, or with the reason why that is not known. */
export type Barrier = (shard: number, sequence: number, onDone: (failure?: Error) => void) => void
