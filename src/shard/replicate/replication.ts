// The log of a cluster as shards use it: they append to it, wait until others have followed it, and keep their
// position.

/** How far the log of a shard has been followed. */
export interface FollowedPosition {
  /** Of the last record; 0: nothing yet. */
  readonly sequence: number
  readonly epoch: number
  /** Of all records up to the last one. */
  readonly hash: Buffer
}

/** What turns have decided for one shard, as bytes for its log. */
export interface LogPayload {
  readonly shard: number
  readonly payload: Buffer
}

export type OnAppended = (outcome: ReadonlyMap<number, FollowedPosition> | Error) => void

/** Where what is decided here becomes durable before the store has it. */
export interface Replication {
  /**
   * Appends to the logs of shards that are this node's own, one part for each. Calls back when all are durable, with
   * the position of each; or, when other nodes have taken over some of the shards, with what has become of each
   * (commit/deposed.ts). Any other error means that nobody knows, and the node has to end. The next call only after
   * that.
   */
  append(parts: readonly LogPayload[], onDone: OnAppended): void
}

/** Calls back when every owner has what the log of a shard says up to a record, or with why that is not known. */
export type Barrier = (shard: number, sequence: number, onDone: (failure?: Error) => void) => void
