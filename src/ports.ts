// The outside world as several rooms of the broker need it. A port that one room calls is declared there:
// broker/clustered-shards.ts, http/admin.ts, shard/replicate/replication.ts. Here are those that two rooms share which
// may not import each other.
//
// The code that implements a port lives at the edge (storage, observe, clock, deliver). The code that uses it receives
// it as an argument. Nothing here knows a product.

import type { Refusal } from './domain/refusal.js'
import type { NotificationInput } from './domain/subscriptions/message.js'
import type { Subscription } from './domain/subscriptions/subscription.js'
import type { DeprecatedFeature, LogLevel } from './messages/admin.js'
import type { DeadCause } from './messages/documents.js'

/** Time, as the broker sees it. Tests pass a fake one. */
export interface Clock {
  /** Whole milliseconds since 1970, may jump with the machine's clock. */
  wallMs(): number
  /** The same with a fraction as fine as the machine tells it: for the order of what happens in several processes. */
  fineWallMs(): number
  /** Milliseconds that only grow, for deadlines and durations. */
  monoMs(): number
  /** Calls `run` once after `delayMs`; the function returned takes the call back. */
  after(delayMs: number, run: () => void): () => void
  /** Calls `run` once, when the event loop has taken what is ready now. */
  endOfTick(run: () => void): void
}

/** Memory for answers under way, of which there is not any amount (docs/operations/answers.md). */
export interface AnswerRoom {
  /** Begins to count what one answer takes. */
  open(): AnswerHold
}

/** What one answer takes, as far as it is not small. */
export interface AnswerHold {
  /** Counts some more; false: there is no room for it, and nothing was counted. */
  take(bytes: number): boolean
  /** Gives all of it back; more may be taken afterwards. */
  release(): void
}

/** Moments that never repeat and never go back on one node (domain/stamp.ts). */
export interface Stamps {
  /**
   * `wanted` was given by another node, for this moment: it is taken, unless it is not above all given here or is far
   * in the future.
   */
  next(wanted?: number): number
  /** The latest one given. */
  readonly last: number
}

/** Chance, as the broker needs it. */
export interface Chance {
  /** A fresh lower-case UUID, 36 characters. */
  uuid(): string
  /** A number from 0 up to but without 1. */
  fraction(): number
}

/** One row of a store. Both buffers belong to the receiver. */
export interface Row {
  readonly key: Buffer
  readonly value: Buffer
}

/** The keys from `gte` up to but without `lt`, in byte order. */
export interface Range {
  readonly gte: Buffer
  readonly lt: Buffer
}

/** Rows of a range as they stood when the cursor was opened, in key order, whatever is committed meanwhile. */
export interface Cursor {
  /** The next rows, `rowsMax` at most. May give fewer: only an empty answer is the end. One call at a time. */
  next(rowsMax: number): Promise<Row[]>
  /** Must be called, also after a failure. */
  close(): Promise<void>
}

/** What a cursor is to give of each row: the rest may be left out, empty, which is cheaper. */
export type RowParts = 'both' | 'keys' | 'values'

/** What can be read of a store. */
export interface StoreReader {
  get(key: Uint8Array): Buffer | undefined
  /** As `get`, for several keys at once; same order, same length. */
  getMany(keys: readonly Uint8Array[]): (Buffer | undefined)[]
  cursor(range: Range, parts?: RowParts): Cursor
}

/** An open store as it is handed to a thread. */
export interface SharedStore {
  readonly kind: 'rocksdb'
  readonly handle: bigint
}

/** Where rows are written to. */
export interface RowSink {
  put(key: Buffer, value: Buffer): void
  del(key: Buffer): void
}

/** Changes to be made durable together, all or none. Reusable: `clear` makes it empty again. */
export interface Batch {
  /** Copies both: the buffers stay the caller's. */
  put(key: Uint8Array, value: Uint8Array): void
  del(key: Uint8Array): void
  clear(): void
  /** Operations since the last `clear`. */
  readonly length: number
}

/** What a store tells of itself (docs/operations/metrics.md). */
export interface StoreNumbers {
  /** Of its tables on the disk; its log is not counted. */
  readonly tableBytes: number
  /** Of what is in memory and not in tables yet. */
  readonly memtableBytes: number
  readonly cacheBytes: number
  /** Under way. */
  readonly compactions: number
  readonly flushes: number
  /** That compactions have yet to rewrite. */
  readonly pendingCompactionBytes: number
  /** Whether writes wait until compactions have caught up. */
  readonly isStalled: boolean
  /** To how many bytes a second writes are slowed down; 0: they are not. */
  readonly delayedBytesPerS: number
  /** Of compactions and flushes, since the start. */
  readonly backgroundErrors: number
}

/**
 * An ordered map of bytes on one machine. Keys compare as unsigned bytes.
 *
 * Reads see every batch whose commit has ended, and of the one in flight all or nothing: who must know keeps what it
 * has staged in memory until `onDone`. A failed commit leaves its outcome unknown, and the store refuses every later
 * one with the same error.
 */
export interface Store extends StoreReader {
  /** What it is, for logs: `rocksdb`, `level`, `memory`. */
  readonly name: string
  /** What it does and takes, for those who watch; absent where it cannot tell. */
  numbers?(): StoreNumbers
  /** What another thread of this process needs to read the store; undefined when only this one can. */
  readonly shared: SharedStore | undefined
  batch(): Batch
  /**
   * Makes the batch durable as the store's durability says and then calls `onDone`, with the error if it failed.
   * One commit at a time, and no other write while one is in flight. The batch must not be touched until `onDone`.
   */
  commit(batch: Batch, onDone: (error?: Error) => void): void
  /**
   * Calls back when all that was committed before survives a loss of power, whatever the store's durability; with the
   * error if it failed, as a commit. It counts as a commit: one at a time, and no other write while it is in flight.
   */
  sync(onDone: (error?: Error) => void): void
  /** Waits for the commit in flight, syncs, and lets go of the files. */
  close(): Promise<void>
}

/**
 * What room there is on the disk of the store, as it was last seen (docs/operations/full-disk.md). Each state includes
 * those before it.
 */
export interface DiskRoom {
  /** What needs room is refused. */
  readonly isShort: boolean
  /** Copies that follow the shards of other nodes wait. */
  readonly isScarce: boolean
  /** Nothing is written: deletions are refused as well, and commits wait. */
  readonly isExhausted: boolean
  /** What is free above the reserve; negative when part of the reserve is in use. */
  readonly freeBytes: number
  readonly reserveBytes: number
  /** Calls back as soon as the room is not scarce: at once, or later. */
  afterScarce(run: () => void): void
}

/** A notification that has not ended: it is sent until an outcome ends it. */
export interface PendingNotification {
  /** By which the receiver knows it when it comes again. */
  readonly id: string
  readonly tenant: string
  readonly subscription: string
  /** Tries that have failed. */
  readonly attempts: number
  /** Wall clock before which no further try is made; undefined: now. */
  readonly dueMs: number | undefined
  /** Whether it is a dead letter that is sent again: it has one try, and does not wait for a receiver that is away. */
  readonly isReplay?: boolean
  /** What its message is rendered from; may have to be read from the store. undefined: it has ended. */
  input(): NotificationInput | undefined
  /** What became of a try. */
  onOutcome(outcome: DeliveryOutcome): void
}

/** What delivers notifications. */
export interface Deliverer {
  /** Takes a notification over, in the order of the calls. One that finds no room is asked for its `input` again. */
  deliver(pending: PendingNotification): void
  /** Notifications of this subscription are likely: what takes its time can be done before. */
  prepare(subscription: Subscription): void
  /** The name of the receiver that a subscription has; undefined: it depends on each message. */
  receiverOf(subscription: Subscription): string | undefined
  /** First tries that wait in the queue which the tenant uses (docs/interface/notifications.md#flow-control). */
  queueLength(tenant: string): number
}

/**
 * What became of one try. With a `code`, or `delivered`, it counts as a success for the subscription
 * (docs/interface/notifications.md#outcomes).
 */
export type DeliveryOutcome =
  /** Ended. `code` is that of the HTTP answer. */
  | { readonly kind: 'delivered'; readonly code: number | undefined }
  /** Ended, and nothing was sent (`-simulatedNotification`). */
  | { readonly kind: 'simulated' }
  /**
   * To be tried again. `held`: the notifier has it and will do so. Otherwise it has no room: its owner offers it again,
   * with `attempts` as `attempt`, when `nextAttemptMs` (wall clock) has come; undefined: at once, before what came
   * later, since its receiver does not answer and it keeps its place. Not `sent`: it was held back.
   */
  | (Failure & { readonly kind: 'failed'; readonly nextAttemptMs: number | undefined; readonly held: boolean })
  /** Ended: it was the last try, or another one would change nothing. */
  | (Failure & { readonly kind: 'dead'; readonly cause: DeadCause })
  /**
   * Ended: this cannot be sent, and is not a failure of the receiver. Nothing is counted
   * (docs/interface/notifications.md#request, docs/interface/notifications.md#mqtt).
   */
  | { readonly kind: 'dropped'; readonly why: string }

export interface Failure {
  readonly reason: string
  readonly code: number | undefined
  readonly sent: boolean
  /** Failed tries, this one included. */
  readonly attempts: number
}

/** Who asks context providers. */
export interface Providers {
  /** POSTs a request, and tells once, later, what came of it. */
  ask(request: ProviderRequest, onAnswer: (answer: ProviderAnswer) => void): void
}

export interface ProviderRequest {
  readonly url: string
  /** Names and values in turn, free of control characters; host and framing are added. */
  readonly headers: readonly string[]
  readonly body: string
  /** Whether it may reach the provider twice. */
  readonly isRepeatable: boolean
  /** Monotonic: since when its time runs; undefined: since it is asked. */
  readonly sinceMs?: number
}

export type ProviderAnswer =
  | {
      readonly kind: 'answered'
      readonly status: number
      readonly body: Buffer
      /** A header by its lower-case name; undefined: it is not there, or more than once. */
      header(name: string): string | undefined
    }
  | { readonly kind: 'failed'; readonly reason: string }

/** `sync`: survives the loss of power if the disk honours a flush. `os`: survives the death of the process. */
export type Durability = 'sync' | 'os'

/** A request that has been answered, as those see it who count and log. Valid during the call only. */
export interface AnsweredRequest {
  /** Upper case, but not necessarily one that exists. */
  readonly method: string
  /** The template of its path; '' when there is none, or when a check failed before it was looked for. */
  readonly route: string
  /** As sent, with its query. */
  readonly url: string
  readonly status: number
  /** Why it was refused; undefined: it was not. */
  readonly refusal: Refusal | undefined
  /** Of the bodies. That of a request whose head was refused does not count. */
  readonly requestBytes: number
  readonly responseBytes: number
  /** From its head to its answer. */
  readonly durationMs: number
  readonly correlator: string
  /** Vendor headers as sent; '' when absent. */
  readonly tenant: string
  readonly paths: string
  /**
   * The client's address, as a proxy has told it or as the socket has it (docs/interface/administration.md#log-lines).
   * Costs 1 us.
   */
  from(): string
  /** The beginning of the body, if `payloadBytes` asked for it. */
  readonly payload: Buffer | undefined
}

/**
 * Why the server closed a client's connection. `room`: it had waited longest, and a new one came at the limit. `full`:
 * it was new, and none waited. `address`: it was new, and its address had as many as it may. `head`, `body`: its
 * request came too slowly.
 */
export type DropReason = 'room' | 'full' | 'address' | 'head' | 'body'

/** Who counts and logs requests. All is told synchronously and must cost next to nothing: every request passes here. */
export interface RequestWatch {
  /** Whether `from` will be asked of each request. */
  readonly wantsOrigin: boolean
  /** Bytes of each body that are to be kept for `onAnswered`; 0: none. */
  readonly payloadBytes: number
  /** A route has been found for a request; `payload` says what its body is, if it has one. */
  onRouted(route: string, method: string, payload: 'json' | 'text' | 'none'): void
  onAnswered(request: AnsweredRequest): void
  /** A body was parsed as JSON; only asked for when `isTimed`. */
  readonly isTimed: boolean
  onParsed(ms: number): void
  /**
   * Something deprecated is used; `usage` completes `Deprecated usage of`
   * (docs/interface/administration.md#deprecated-usages).
   */
  onDeprecated(feature: DeprecatedFeature, usage: string, context: LogContext): void
}

/** A try to send something, when it has ended. */
export interface EndedTry {
  readonly what: 'notification' | 'mqttNotification' | 'forward'
  readonly tenant: string
  readonly path: string
  /** `host:port/path`; of MQTT `host:port`. */
  readonly receiver: string
  readonly requestBytes: number
  readonly responseBytes: number
  /** Why there was no answer, or why it was not sent at all; undefined: there was one, of any status. */
  readonly failure: string | undefined
  /** From when it was asked for to its end; undefined: not measured. */
  readonly durationMs?: number | undefined
}

/** Who counts what is sent. */
export interface SendWatch {
  onEnded(ended: EndedTry): void
  /** As in `RequestWatch`. */
  onDeprecated(feature: DeprecatedFeature, usage: string, context: LogContext): void
}

/**
 * What a request's log lines carry (docs/interface/administration.md#log-lines). One object is one transaction: its
 * lines get one number.
 */
export interface LogContext {
  readonly correlator?: string
  readonly from?: string
  readonly tenant?: string
  readonly path?: string
}

/** Writes lines for operators. Never receives a secret. */
export interface Logger {
  level: LogLevel
  fatal(message: string, context?: LogContext): void
  error(message: string, context?: LogContext): void
  warn(message: string, context?: LogContext): void
  info(message: string, context?: LogContext): void
  debug(message: string, context?: LogContext): void
  /** A line whatever the level. */
  summary(message: string): void
}
