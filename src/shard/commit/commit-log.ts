// The log that makes a batch durable. On a single node and in a worker the store itself is the log: a record is
// appended with its batch, and RocksDB's own WAL keeps it. In a node of a cluster the logs of the shards come first
// (replicate/replicated-log.ts).

import assert from 'node:assert/strict'
import { emptyHistogram, type Histogram, observe } from '../../domain/histogram.js'
import type { Batch, Clock, RowSink, Store } from '../../ports.js'
import { decodeNumber, encodeNumber } from '../keys.js'
import { stampKey } from '../layout.js'

/** The rows that are staged in one lane, and not in a commit yet. */
export interface OpenBatch {
  /** Operations so far. */
  readonly length: number
  /** The sink for rows of a shard. */
  rowsOf(shard: number): RowSink
  /** The sink for rows of a shard's type index: they are written after all others. */
  orderedOf(shard: number): RowSink
  /** The sink for rows whose keys begin with their kind and their shard. */
  readonly rows: RowSink
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

/**
 * Makes batches durable. Each shard belongs to a lane. Commits of different lanes may overlap, those of one lane follow
 * each other.
 */
export interface CommitLog {
  readonly times: CommitTimes
  /** The lane of everything that commits together with all other lanes, and overlaps with no other commit. */
  readonly wholeLane: number
  /** How many groups the lanes form. Lanes of different groups share no commit, unless it is whole. */
  readonly groups: number
  /** Commits of one group that may be in flight. */
  readonly inFlightMax: number
  /** Milliseconds from the beginning of a commit to that of the next one, at least. It may change at any time. */
  readonly gapMs: number
  /** Whether so much is staged or in flight that nothing more should be. */
  readonly isFull: boolean
  laneOf(shard: number): number
  /** The group of a lane, from 0 on. */
  groupOf(lane: number): number
  /** The lane of a row whose key begins with its kind and its shard. */
  laneOfKey(key: Buffer): number
  open(lane: number): OpenBatch
  /**
   * Makes batches of different lanes durable together. They must not be used any more. The failure may concern some of
   * the shards only (deposed.ts).
   */
  commit(batches: readonly OpenBatch[], onDone: (failure?: Error) => void): void
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

/** The log of an owner whose store is its log. All shards are in one lane. */
export class StoreLog implements CommitLog {
  readonly times = noTimes()
  readonly wholeLane = 0
  readonly groups = 1
  readonly inFlightMax = 1
  readonly gapMs = 0
  readonly isFull = false
  private readonly store: Store
  private readonly clock: Pick<Clock, 'monoMs'>
  private readonly lastStamp: () => number
  private readonly stamp = stampKey()
  /** Batches that are empty again. */
  private readonly spare: StoreBatch[] = []

  /** `lastStamp`: a stamp at least as large as all that were given. */
  constructor(store: Store, clock: Pick<Clock, 'monoMs'>, lastStamp: () => number) {
    this.store = store
    this.clock = clock
    this.lastStamp = lastStamp
  }

  laneOf(): number {
    return this.wholeLane
  }

  laneOfKey(): number {
    return this.wholeLane
  }

  groupOf(): number {
    return 0
  }

  open(): OpenBatch {
    return this.spare.pop() ?? new StoreBatch(this.store.batch())
  }

  commit([batch]: readonly OpenBatch[], onDone: (failure?: Error) => void): void {
    assert(batch instanceof StoreBatch, 'a commit has one batch of this log')
    const { clock, times } = this
    const { rows, ordered } = batch
    ordered.flush(rows)
    rows.put(this.stamp, encodeNumber(this.lastStamp()))
    const startedMs = clock.monoMs()
    let writtenMs = startedMs
    this.store.commit(rows, failure => {
      noteTimes(times, startedMs, writtenMs, clock.monoMs())
      if (!failure) {
        rows.clear()
        this.spare.push(batch)
      }
      onDone(failure)
    })
    writtenMs = clock.monoMs()
  }
}

class StoreBatch implements OpenBatch {
  readonly rows: Batch
  readonly ordered = new OrderedRows()

  constructor(rows: Batch) {
    this.rows = rows
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
}
