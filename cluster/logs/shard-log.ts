// The replicated log as the cluster needs it: for each shard a sequence of records, and takeovers, which decide the
// node that may append.
//
// After a takeover only its owner may append; its epoch is higher than that of every earlier one. The appender numbers
// records without gaps, from 1, or from 2 where a store has the content from before (founding.ts). A driver promises,
// for each shard:
//
//   order       takeovers and appends happen one after the other, and readings follow that order
//   fence       an append happens only while the latest takeover is the one that it names, checked in one step
//   durability  what is reported to have happened survives what the engine promises to survive
//
// An outcome `unknown` may have happened, and may still happen later. An appender finds out by repeating the same
// append; a new owner by looking at the latest takeover.
//
// Callbacks are called exactly once, never before the call that they belong to has returned. Bytes that are passed, in
// either direction, do not change afterwards; they may be part of a larger buffer.
//
// Not here: the content of a record (log-record.ts). Drivers: etcd-log.ts, and in tests simulated-log.ts.

export interface Takeover {
  readonly epoch: number
  /** The name of the node that has taken over, with a word that is unique to that life of its process. */
  readonly owner: string
}

export interface LogRecord {
  readonly sequence: number
  readonly bytes: Buffer
}

export interface Append {
  readonly shard: number
  /** The epoch of the takeover in whose name this is appended. */
  readonly epoch: number
  readonly sequence: number
  readonly bytes: Buffer
}

export interface Unknown {
  readonly kind: 'unknown'
  readonly reason: string
  /** The engine rejects us, or forbids this request: a retry is of no use. */
  readonly isRefused?: true
  /** The engine takes no appends until the operator makes room (the quota of etcd). */
  readonly isFull?: true
}

/** A node's proof, in few bytes, that it may append to its shards and that the engine takes appends. */
export interface Heartbeat {
  readonly node: string
  /** The takeovers in whose names the node would append, by shard. At least one. */
  readonly epochs: ReadonlyMap<number, number>
  readonly bytes: Buffer
}

/** `superseded`: one of the takeovers is not the latest. Nothing was written. */
export type HeartbeatOutcome = { readonly kind: 'appended' } | { readonly kind: 'superseded' } | Unknown

export type TakeoverOutcome =
  /** `before`: the takeover that this one has replaced. */
  { readonly kind: 'taken'; readonly epoch: number; readonly before: Takeover | undefined } | Unknown

/** `superseded`: the latest takeover was another one, and nothing has happened. */
export type RetakeOutcome =
  | { readonly kind: 'taken'; readonly epoch: number }
  | { readonly kind: 'superseded' }
  | Unknown

export type AppendOutcome =
  | { readonly kind: 'appended' }
  /** Nothing has happened, since the latest takeover of these shards is another one. */
  | { readonly kind: 'superseded'; readonly shards: readonly number[] }
  /** Nothing has happened, since a log lacks the record before: the engine has lost something. */
  | { readonly kind: 'short' }
  | Unknown

/** A part of a shard's log, with the log's end and latest takeover at one moment, which is not before the question. */
export interface LogReading {
  readonly kind: 'read'
  /** In order, without gaps, from the first that was asked for, or from the first that is kept, if that is later. */
  readonly records: readonly LogRecord[]
  /** The number of the last record that the log had; 0: none ever. */
  readonly last: number
  readonly takeover: Takeover | undefined
}

export type ReadOutcome = LogReading | Unknown

/** The latest takeovers of all shards at one moment, which is not before the question. */
export type TakeoversOutcome = { readonly kind: 'read'; readonly takeovers: ReadonlyMap<number, Takeover> } | Unknown

/** `stands`: the value that the name has had since it was first given one. */
export type CreateOnceOutcome = { readonly kind: 'stands'; readonly value: Buffer } | Unknown

/** The value of a name. Undefined: none, and there never was one unless the engine has lost it. */
export type NamedOutcome = { readonly kind: 'read'; readonly value: Buffer | undefined } | Unknown

/** The shards whose logs lack a record that is certain to have existed, and have no later one. */
export type LackingOutcome = { readonly kind: 'read'; readonly shards: readonly number[] } | Unknown

/** Receives the events of logs, for each log in the order in which they happen. */
export interface LogFollower {
  onRecord(shard: number, record: LogRecord): void
  onTakeover(shard: number, takeover: Takeover): void
  /** A heartbeat that any node has written. Missed ones are not reported later. */
  onHeartbeat(node: string, bytes: Buffer): void
  /**
   * Events may have been missed, so a follower that needs all of them must read. Events from now on are reported. Also
   * called when following begins. A reading may contain an event that is reported a moment later.
   */
  onGap(reason: string): void
}

export interface ShardLog {
  takeOver(shard: number, owner: string, onDone: (outcome: TakeoverOutcome) => void): void
  /** Takes a shard over for `owner` if its latest takeover has this epoch: a handoff to another node. */
  retake(shard: number, epoch: number, owner: string, onDone: (outcome: RetakeOutcome) => void): void
  /**
   * Appends all of them in one step, or none. One for a shard, at least one; `appendsMax` and `appendBytesMax` at most.
   * The same append made again, with the same bytes and while its takeovers are the latest, happens once, and is
   * reported each time. A record from the third on is appended only behind the one before it.
   */
  append(appends: readonly Append[], onDone: (outcome: AppendOutcome) => void): void
  /**
   * Replaces the node's last heartbeat if its takeovers are the latest. The engine may compare only so many at once.
   */
  heartbeat(heartbeat: Heartbeat, onDone: (outcome: HeartbeatOutcome) => void): void
  readonly appendsMax: number
  readonly appendBytesMax: number
  /** The records of a shard behind a number, as many as have about `bytesMax`; one at least, if there is any. */
  read(shard: number, after: number, bytesMax: number, onDone: (outcome: ReadOutcome) => void): void
  takeovers(onDone: (outcome: TakeoversOutcome) => void): void
  /** Which of these shards have lost their ends: no record of this number, nor of a higher one. */
  lacking(ends: ReadonlyMap<number, number>, onDone: (outcome: LackingOutcome) => void): void
  /**
   * Begins to report all takeovers, and the records of shards that are `wanted` at that moment. One follower at a time.
   */
  follow(wanted: (shard: number) => boolean, follower: LogFollower): void
  /**
   * For how long everything that has happened was reported, until a moment ago; 0: it may not have been. undefined: the
   * driver cannot tell.
   */
  readonly followedMs?: number
  /** Deletes records up to a number; the last one stays in any case. The caller does not learn whether it succeeds. */
  trim(shard: number, upTo: number): void
  /** Gives a name of the whole cluster a value, unless it has one, and returns the value that it now has for good. */
  createOnce(name: string, value: Buffer, onDone: (outcome: CreateOnceOutcome) => void): void
  named(name: string, onDone: (outcome: NamedOutcome) => void): void
  /** While it is on, the driver does not compact the engine's history, so deleted keys can still be found there. */
  keepHistory(isOn: boolean): void
  /** Ends following. Only outcomes of earlier requests are still reported. */
  close(): Promise<void>
}
