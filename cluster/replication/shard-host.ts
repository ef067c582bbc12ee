// The keeper of shards, as the cluster sees it: a store that follows logs, and turns that append to them. The host
// knows the content of a record; the cluster knows its place in the log.
//
// Shards 0 to V-1 hold entities. Shard V, the register, holds what all nodes need, so each node follows it
// (subscriptions, registrations, service paths).
//
// At its host a shard is in one of two states. Following: records are applied to the store as they come, and no asks
// are executed. Active: the router lets asks in, turns append through `Replication`, and only records that were
// appended here are applied. The cluster switches between them: `activate`, `seal`.

/** How far a shard's log has been followed: the last record, and the chain up to it. */
export interface LogPosition {
  /** 0: nothing yet. */
  readonly sequence: number
  /** The epoch of the last record. */
  readonly epoch: number
  /** The hash of all records up to the last one (log-record.ts). */
  readonly hash: Buffer
}

/**
 * The code of a failure over bytes that the host cannot read: the host itself is well, and has applied none of them.
 */
const unreadableCode = 'unreadable'

/** Whether a host has failed over the bytes that it got, and not for a reason of its own. */
export const isUnreadable = (failure: Error): boolean => 'code' in failure && failure.code === unreadableCode

export interface ShardHost {
  /** How far the store has a shard's log; undefined: it has nothing of the shard, or only part of a snapshot. */
  position(shard: number): LogPosition | undefined
  /**
   * Applies the payloads of records to the store of a shard that is following, in order and all or none, with the
   * position they lead to. One call at a time for each shard. An error ends the node.
   */
  apply(shard: number, payloads: readonly Buffer[], position: LogPosition, onDone: (failure?: Error) => void): void
  /** The whole log of the shard is applied, and from now on only this node appends: gets ready for asks. */
  activate(shard: number, onDone: (failure?: Error) => void): void
  /**
   * Starts no more turns in the shard. Calls back when the earlier ones are appended and applied, or are known to be
   * lost (`Deposed`). The shard is then following again, from `position`.
   */
  seal(shard: number, onDone: (failure?: Error) => void): void
  /**
   * Some rows of the shard behind a place, about so many bytes; `next` is the place behind them, undefined at the end.
   */
  snapshot(
    shard: number,
    after: Buffer | undefined,
    bytesMax: number,
    onDone: (page: SnapshotPage | Error) => void,
  ): void
  /**
   * Writes rows of a snapshot to the store; the first page replaces all rows of the shard. The shard has no position
   * until `apply` gives one.
   */
  install(shard: number, rows: Buffer, isFirst: boolean, onDone: (failure?: Error) => void): void
  /** Deletes all that the store has of a shard that is following. */
  drop(shard: number, onDone: (failure?: Error) => void): void
  /** Calls back when all that was applied before survives a loss of power. */
  sync(onDone: (failure?: Error) => void): void
  /** How many requests for entities of a shard came while it was active: a number that only grows. */
  requests(shard: number): number
}

export interface SnapshotPage {
  readonly rows: Buffer
  readonly next: Buffer | undefined
}

/** The changes of turns in one shard since the last append, as bytes that `apply` takes. */
export interface ShardPayload {
  readonly shard: number
  readonly payload: Buffer
}

/** A shard that was this node's own until another node took it over, or until it was given up. */
export interface Loss {
  readonly shard: number
  /** The node that owns it now; undefined: no node does. */
  readonly node: string | undefined
  /** The epoch of its latest takeover. */
  readonly epoch: number
  /** How long ago this node was last certain to own it; undefined: it never was. */
  readonly certainMs: number | undefined
  /** This node has given it up because the engine of its log was silent: its changes may be in the log or not. */
  readonly isForsaken?: true
}

/**
 * Other nodes have taken over some of the shards of an append, or this node has given them up. The parts of the other
 * shards are durable.
 */
export class DeposedError extends Error {
  readonly code = 'deposed'
  readonly losses: readonly Loss[]
  /** The positions of the parts that are durable. */
  readonly reached: ReadonlyMap<number, LogPosition>

  constructor(losses: readonly Loss[], reached: ReadonlyMap<number, LogPosition>) {
    super(losses.map(fateOf).join(', '))
    this.losses = losses
    this.reached = reached
  }
}

function fateOf({ shard, node, isForsaken }: Loss): string {
  if (isForsaken) return `the log of shard ${shard} does not answer`
  return node === undefined ? `shard ${shard} has no owner now` : `shard ${shard} was taken over by ${node}`
}

/** The log as an active host needs it: makes the changes of turns durable. */
export interface HostReplication {
  /**
   * Appends to the logs of active shards, one part for each. Calls back when all are durable, with the position of
   * each. Calls back with `Deposed` when other nodes have taken over some of the shards, or when their log was silent
   * for long: their parts are not durable, or nobody knows, all others are. Any other error means that the outcome is
   * unknown, and the node has to end. A call with a shard must wait for the callback of the one before with that shard;
   * calls without a common shard overlap.
   */
  append(parts: readonly ShardPayload[], onDone: (outcome: ReadonlyMap<number, LogPosition> | Error) => void): void
}
