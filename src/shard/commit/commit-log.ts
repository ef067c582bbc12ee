// The log that makes a batch durable. On a single node and in a worker the store itself is the log: a record is
// appended with its batch, and RocksDB's own WAL keeps it. In a node of a cluster the logs of the shards come first
// (replicate/replicated-log.ts).

import { emptyHistogram, type Histogram, observe } from '../../domain/histogram.js'
import type { Batch, Clock, RowSink, Store } from '../../ports.js'
import { decodeNumber, encodeNumber } from '../keys.js'
import { stampKey } from '../layout.js'

/** A batch that is being filled. */
export interface OpenBatch {
  /** Operations so far. */
  readonly length: number
  /** Whether it has as much as one commit may have. */
  readonly isFull: boolean
  /** The sink for rows of a shard. */
  rowsOf(shard: number): RowSink
  /** The sink for rows of a shard's type index: they are written after all others. */
  orderedOf(shard: number): RowSink
  /** The sink for rows whose keys begin with their kind and their shard. */
  readonly rows: RowSink
  /** Whether it has anything of a shard, in the batch or on the way to the log. Only where shards come and go. */
  holds(shard: number): boolean
  /**
   * Makes the batch durable. It is empty again, and may be filled, when `onDone` is called without a failure, or with
   * one that concerns some of its shards only (deposed.ts).
   */
  commit(onDone: (failure?: Error) => void): void
}

/**
 * Seconds from the start of a commit until it was written, and from then until it was durable. `lastMs`: milliseconds
 * of the last commit in all.
 */
export interface CommitTimes {
  readonly write: Histogram
  readonly sync: Histogram
  lastMs: number
}

/** The source of batches. One of them is committed at a time. */
export interface CommitLog {
  open(): OpenBatch
  readonly times: CommitTimes
}

/** Bounds for the times of commits, in seconds: from a write to memory to an overloaded disk. */
const commitBoundsS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

export const noTimes = (): CommitTimes => ({
  write: emptyHistogram(commitBoundsS),
  sync: emptyHistogram(commitBoundsS),
  lastMs: 0,
})

/** Records the times of one commit. */
export function noteTimes(times: CommitTimes, startedMs: number, writtenMs: number, endedMs: number): void {
  observe(times.write, (writtenMs - startedMs) / 1000)
  observe(times.sync, (endedMs - writtenMs) / 1000)
  times.lastMs = endedMs - startedMs
}

/**
 * Rows of the type index, kept until their batch is full. [hot] In order of creation each row follows directly after
 * the one before, and the store finds its place from there. Between rows of entities it had to search for each from the
 * top (bench `create`).
 */
export class OrderedRows implements RowSink {
  private readonly rows: { readonly key: Buffer; readonly value: Buffer | undefined }[] = []

  put(key: Buffer, value: Buffer): void {
    this.rows.push({ key, value })
  }

  del(key: Buffer): void {
    this.rows.push({ key, value: undefined })
  }

  flush(batch: Batch): void {
    for (const { key, value } of this.rows)
      if (value) batch.put(key, value)
      else batch.del(key)
    this.rows.length = 0
  }
}

/** The last stamp that a store's node gave; 0 for a new store. */
export function lastStamp(store: Store): number {
  const value = store.get(stampKey())
  return value ? decodeNumber(value) : 0
}

/** The log of an owner whose store is its log. */
export class StoreLog implements CommitLog {
  readonly times = noTimes()
  private readonly store: Store
  private readonly clock: Pick<Clock, 'monoMs'>
  private readonly lastStamp: () => number

  /** `lastStamp`: a stamp at least as large as all that were given. */
  constructor(store: Store, clock: Pick<Clock, 'monoMs'>, lastStamp: () => number) {
    this.store = store
    this.clock = clock
    this.lastStamp = lastStamp
  }

  open(): OpenBatch {
    return new StoreBatch(this.store, this.times, this.clock, this.lastStamp)
  }
}

class StoreBatch implements OpenBatch {
  readonly isFull = false
  readonly rows: Batch
  private readonly ordered = new OrderedRows()
  private readonly store: Store
  private readonly times: CommitTimes
  private readonly clock: Pick<Clock, 'monoMs'>
  private readonly lastStamp: () => number
  private readonly stamp = stampKey()

  constructor(store: Store, times: CommitTimes, clock: Pick<Clock, 'monoMs'>, lastStamp: () => number) {
    this.store = store
    this.times = times
    this.clock = clock
    this.lastStamp = lastStamp
    this.rows = store.batch()
  }

  get length(): number {
    return this.rows.length
  }

  // [hot] Twice for every change.
  rowsOf(): RowSink {
    return this.rows
  }

  orderedOf(): RowSink {
    return this.ordered
  }

  holds(): boolean {
    return this.length > 0
  }

  commit(onDone: (failure?: Error) => void): void {
    const { rows, clock, times } = this
    this.ordered.flush(rows)
    rows.put(this.stamp, encodeNumber(this.lastStamp()))
    const startedMs = clock.monoMs()
    let writtenMs = startedMs
    this.store.commit(rows, failure => {
      noteTimes(times, startedMs, writtenMs, clock.monoMs())
      if (!failure) rows.clear()
      onDone(failure)
    })
    writtenMs = clock.monoMs()
  }
}
