// The outside world, as several folders of the broker need it. A port that only one folder calls is declared there:
// broker/clustered-shards.ts, http/admin.ts, shard/replicate/replication.ts. Here are the ports that two folders share
// which may not import each other.
//
// The code that implements a port lives at the edge (storage, observe, clock, deliver). The code that uses it receives
// it as an argument. Nothing here knows a product.

import type { PrincipalSource, ShownKind } from './domain/access/principal.js'
import type { Refusal } from './domain/refusal.js'
import type { NotificationInput } from './domain/subscriptions/message.js'
import type { Subscription } from './domain/subscriptions/subscription.js'
import type { DeprecatedFeature, LogLevel } from './messages/admin.js'
import type { DeadCause } from './messages/documents.js'

/** Time, as the broker sees it. Tests pass a fake one. */
export interface Clock {
  /** Whole milliseconds since 1970. May jump when the machine's clock is set. */
  wallMs(): number
  /** The same, with the finest fraction that the machine has. It orders what happens in several processes. */
  fineWallMs(): number
  /** Milliseconds that only grow, for deadlines and durations. */
  monoMs(): number
  /** Calls `run` once after `delayMs`. The returned function cancels the call. */
  after(delayMs: number, run: () => void): () => void
  /** Calls `run` once, after the event loop has handled all events that are ready now. */
  endOfTick(run: () => void): void
}

/** A limited budget of memory for answers in progress (docs/operations/answers.md). */
export interface AnswerRoom {
  /** Begins to count the memory of one answer. */
  open(): AnswerHold
}

/** The memory of one answer, apart from small amounts. */
export interface AnswerHold {
  /** Counts more bytes. Returns false when there is no room for them; then nothing was counted. */
  take(bytes: number): boolean
  /** Returns all bytes to the budget. More may be taken afterwards. */
  release(): void
}

/** Stamps that never repeat and never go back on one node (domain/stamp.ts). */
export interface Stamps {
  /**
   * `wanted` is a stamp that another node chose for this moment. It is used if it is above all stamps returned here,
   * and not far in the future.
   */
  next(wanted?: number): number
  /** The latest stamp that was returned. */
  readonly last: number
}

/** Chance, as the broker needs it. */
export interface Chance {
  /** A fresh lower-case UUID, 36 characters. */
  uuid(): string
  /** A number from 0 to 1, without 1. */
  fraction(): number
}

/** One row of a store. Both buffers belong to the receiver. */
export interface Row {
  readonly key: Buffer
  readonly value: Buffer
}

/** The keys from `gte` up to `lt`, without `lt`, in byte order. */
export interface Range {
  readonly gte: Buffer
  readonly lt: Buffer
}

/** The rows of a range in key order, as they were when the cursor was opened. Later commits do not change them. */
export interface Cursor {
  /**
   * Returns the next rows, at most `rowsMax`. It may return fewer: only an empty result is the end. One call at a time.
   */
  next(rowsMax: number): Promise<Row[]>
  /** Must be called, also after a failure. */
  close(): Promise<void>
}

/** The parts of each row that a cursor reads. Parts that are left out are empty, which is cheaper. */
export type RowParts = 'both' | 'keys' | 'values'

/** The read access to a store. */
export interface StoreReader {
  get(key: Uint8Array): Buffer | undefined
  /** Like `get`, for several keys at once; same order, same length. */
  getMany(keys: readonly Uint8Array[]): (Buffer | undefined)[]
  cursor(range: Range, parts?: RowParts): Cursor
}

/** An open store in the form that can be sent to another thread. */
export interface SharedStore {
  readonly kind: 'rocksdb'
  readonly handle: bigint
}

/** A destination of row writes. */
export interface RowSink {
  put(key: Buffer, value: Buffer): void
  del(key: Buffer): void
}

/** Changes that become durable together, all or none. Reusable: `clear` empties it. */
export interface Batch {
  /** Copies both buffers; the caller keeps them. */
  put(key: Uint8Array, value: Uint8Array): void
  del(key: Uint8Array): void
  clear(): void
  /** Operations since the last `clear`. */
  readonly length: number
}

/** The numbers that a store reports about itself (docs/operations/metrics.md). */
export interface StoreNumbers {
  /** The bytes of its tables on disk, without its log. */
  readonly tableBytes: number
  /** The bytes that are in memory and not in tables yet. */
  readonly memtableBytes: number
  readonly cacheBytes: number
  /** Compactions that are running. */
  readonly compactions: number
  readonly flushes: number
  /** Bytes that compactions have yet to rewrite. */
  readonly pendingCompactionBytes: number
  /** Whether writes wait until compactions have caught up. */
  readonly isStalled: boolean
  /** The limit in bytes per second to which writes are slowed down; 0: they are not. */
  readonly delayedBytesPerS: number
  /** Errors of compactions and flushes since the start. */
  readonly backgroundErrors: number
}

/**
 * An ordered map of bytes on one machine. Keys compare as unsigned bytes.
 *
 * Reads see every batch whose commit has ended. Of the batch in flight they see all or nothing, so a caller that must
 * know keeps its staged changes in memory until `onDone`. A failed commit leaves its outcome unknown, and the store
 * refuses every later commit with the same error.
 */
export interface Store extends StoreReader {
  /** The name of the engine, for logs: `rocksdb`, `level`, `memory`. */
  readonly name: string
  /** Its numbers, for metrics. Absent where the engine has none. */
  numbers?(): StoreNumbers
  /** The handle with which another thread of this process reads the store; undefined: only this thread can read it. */
  readonly shared: SharedStore | undefined
  batch(): Batch
  /**
   * Makes the batch durable, to the level of the store's durability, and then calls `onDone`, with the error if it
   * failed. One commit at a time, and no other write while one is in flight. The batch must not be touched until
   * `onDone`.
   */
  commit(batch: Batch, onDone: (error?: Error) => void): void
  /**
   * Calls back when all earlier commits survive a loss of power, whatever the store's durability; with the error if it
   * failed, as for a commit. It counts as a commit: one at a time, and no other write while it is in flight.
   */
  sync(onDone: (error?: Error) => void): void
  /** Waits for the commit in flight, syncs, and closes the files. */
  close(): Promise<void>
}

/**
 * The free space on the disk of the store, as last measured (docs/operations/full-disk.md). Each state includes the
 * states before it.
 */
export interface DiskRoom {
  /** Requests that need space are refused. */
  readonly isShort: boolean
  /** Copies that follow the shards of other nodes wait. */
  readonly isScarce: boolean
  /** Nothing is written: deletions are refused as well, and commits wait. */
  readonly isExhausted: boolean
  /** Free bytes above the reserve; negative when part of the reserve is in use. */
  readonly freeBytes: number
  readonly reserveBytes: number
  /** Calls back as soon as the state is not scarce: at once, or later. */
  afterScarce(run: () => void): void
}

/** A notification that has not ended: it is sent until an outcome ends it. */
export interface PendingNotification {
  /** The name by which the receiver recognises a repeated notification. */
  readonly id: string
  readonly tenant: string
  readonly subscription: string
  /** The number of failed tries. */
  readonly attempts: number
  /** The wall clock time before which no further try is made; undefined: now. */
  readonly dueMs: number | undefined
  /** Whether it is a dead letter that is sent again. It has one try, and does not wait for a receiver that is away. */
  readonly isReplay?: boolean
  /**
   * Returns the data from which its message is rendered. It may be read from the store. undefined: the notification has
   * ended.
   */
  input(): NotificationInput | undefined
  /** Reports the outcome of a try. */
  onOutcome(outcome: DeliveryOutcome): void
}

/** The delivery of notifications. */
export interface Deliverer {
  /** Takes a notification over, in the order of the calls. If there is no room, its `input` is read again later. */
  deliver(pending: PendingNotification): void
  /** Announces that notifications of this subscription are likely, so that slow preparations can be done before. */
  prepare(subscription: Subscription): void
  /** The name of the receiver of a subscription; undefined: it depends on each message. */
  receiverOf(subscription: Subscription): string | undefined
  /** First tries that wait in the queue of this tenant (docs/interface/notifications.md#flow-control). */
  queueLength(tenant: string): number
}

/**
 * The outcome of one try. With a `code`, or `delivered`, it counts as a success for the subscription
 * (docs/interface/notifications.md#outcomes).
 */
export type DeliveryOutcome =
  /** Ended. `code` is the status of the HTTP answer. */
  | { readonly kind: 'delivered'; readonly code: number | undefined }
  /** Ended, and nothing was sent (`-simulatedNotification`). */
  | { readonly kind: 'simulated' }
  /**
   * To be tried again. `held`: the notifier keeps it and will try again. If not `held`, the notifier has no room, and
   * the owner offers it again at `nextAttemptMs` (wall clock), with the same `attempts`. If that time is undefined, the
   * owner offers it at once, before later ones: its receiver does not answer, and it keeps its place. Not `sent`: it
   * was held back.
   */
  | (Failure & { readonly kind: 'failed'; readonly nextAttemptMs: number | undefined; readonly held: boolean })
  /** Ended: it was the last try, or another try would fail in the same way. */
  | (Failure & { readonly kind: 'dead'; readonly cause: DeadCause })
  /**
   * Ended: this cannot be sent, and it is not a failure of the receiver. Nothing is counted
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

/** The client side of context providers. */
export interface Providers {
  /** POSTs a request, and calls `onAnswer` once, later, with the outcome. */
  ask(request: ProviderRequest, onAnswer: (answer: ProviderAnswer) => void): void
}

export interface ProviderRequest {
  readonly url: string
  /** Names and values in turn, free of control characters. Host and framing headers are added. */
  readonly headers: readonly string[]
  readonly body: string
  /** Whether the request may reach the provider twice. */
  readonly isRepeatable: boolean
  /** Monotonic: the start of its time limit; undefined: the time of the call. */
  readonly sinceMs?: number
}

export type ProviderAnswer =
  | {
      readonly kind: 'answered'
      readonly status: number
      readonly body: Buffer
      /** The value of a header, by its lower-case name; undefined: the header is absent, or occurs more than once. */
      header(name: string): string | undefined
    }
  | { readonly kind: 'failed'; readonly reason: string }

/** `sync`: survives the loss of power if the disk honours a flush. `os`: survives the death of the process. */
export type Durability = 'sync' | 'os'

/** A request that has been answered, for code that counts and logs. Valid during the call only. */
export interface AnsweredRequest {
  /** Upper case; it may be a method that does not exist. */
  readonly method: string
  /** The template of its path; '' when there is none, or when a check failed before the route was looked up. */
  readonly route: string
  /** As the client sent it, with its query. */
  readonly url: string
  readonly status: number
  /** The refusal with which it was answered; undefined: it was not refused. */
  readonly refusal: Refusal | undefined
  /** Bytes of the bodies. The body of a request whose head was refused does not count. */
  readonly requestBytes: number
  readonly responseBytes: number
  /** The time from its head to its answer. */
  readonly durationMs: number
  readonly correlator: string
  /** The vendor headers as the client sent them; '' when absent. */
  readonly tenant: string
  readonly paths: string
  /**
   * The client's address, from a proxy's header or from the socket (docs/interface/administration.md#log-lines). Costs
   * 1 us.
   */
  from(): string
  /** The beginning of the body, if `payloadBytes` asked for it. */
  readonly payload: Buffer | undefined
}

/**
 * Why the server closed a client's connection. `room`: it had waited longest, and a new one came at the limit. `full`:
 * it was new, and none waited. `address`: it was new, and its address already had its maximum. `head`, `body`: its
 * request came too slowly. `certificate`: its client has shown no certificate, or one that is not accepted (any more).
 */
export type DropReason = 'room' | 'full' | 'address' | 'head' | 'body' | 'certificate'

/** Counts and logs requests. All calls are synchronous and must cost next to nothing: every request passes here. */
export interface RequestWatch {
  /** Whether `from` will be asked of each request. */
  readonly wantsOrigin: boolean
  /** Bytes of each body to keep for `onAnswered`; 0: none. */
  readonly payloadBytes: number
  /** A route was found for a request. `payload` is the kind of its body. */
  onRouted(route: string, method: string, payload: 'json' | 'text' | 'none'): void
  onAnswered(request: AnsweredRequest): void
  /** A body was parsed as JSON. Only called when `isTimed`. */
  readonly isTimed: boolean
  onParsed(ms: number): void
  /**
   * A client used something deprecated. `usage` completes `Deprecated usage of`
   * (docs/interface/administration.md#deprecated-usages).
   */
  onDeprecated(feature: DeprecatedFeature, usage: string, context: LogContext): void
}

/** What the audit log has of a request, or of a message on a WebSocket (docs/operations/audit.md). */
export interface AuditEntry {
  /** The principal; undefined: there is no access control, or the principal is not known. */
  readonly principal: PrincipalSource | undefined
  /** The kind of proof in the request; undefined: no code has read it. */
  readonly shown: ShownKind | undefined
  /** The address of the client, as in log lines. */
  readonly address: string
  /** The address of its connection, if a header has named another one. */
  readonly peer: string | undefined
  /** Of a message: its `op`. */
  readonly method: string
  /** As the client sent it, without the query. */
  readonly path: string
  /** The whole query, which may hold secrets: only harmless parameters of it may be shown. */
  readonly query: string
  /** The vendor headers as the client sent them; '' when absent. */
  readonly tenant: string
  readonly servicePath: string
  readonly status: number
  readonly correlator: string
  /** How many entities the request names; undefined: it names none, or was not read so far. */
  readonly entities: number | undefined
  /** The id of the first of them, or of the subscription or registration. */
  readonly id: string | undefined
  readonly isMessage: boolean
}

/** Keeps who did what. */
export interface AuditTrail {
  /** Whether no request may change anything now, because its line could not be written (`-auditRequired`). */
  readonly refusesChanges: boolean
  /** Adds an entry. It costs some microseconds, and never waits for a disk. */
  add(entry: AuditEntry): void
}

/** A finished try to send something. */
export interface EndedTry {
  readonly what: 'notification' | 'mqttNotification' | 'forward'
  readonly tenant: string
  readonly path: string
  /** `host:port/path`; of MQTT `host:port`. */
  readonly receiver: string
  /** The id of the registration because of which a request was forwarded; undefined: it is a notification. */
  readonly registration?: string | undefined
  readonly requestBytes: number
  readonly responseBytes: number
  /** Why there was no answer, or why nothing was sent; undefined: there was an answer, of any status. */
  readonly failure: string | undefined
  /** The time from the order to send it until its end; undefined: not measured. */
  readonly durationMs?: number | undefined
}

/** Counts the messages that are sent. */
export interface SendWatch {
  onEnded(ended: EndedTry): void
  /** As in `RequestWatch`. */
  onDeprecated(feature: DeprecatedFeature, usage: string, context: LogContext): void
}

/**
 * The context that a request's log lines carry (docs/interface/administration.md#log-lines). One object is one
 * transaction: its lines get one number.
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
  /** Writes a line at any level. */
  summary(message: string): void
}
