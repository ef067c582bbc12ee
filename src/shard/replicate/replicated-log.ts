// The log of a node of a cluster, for its commits: the logs of all shards of a commit, and then the store.
//
// While a batch is filled, its operations on each shard are kept as well, as bytes for the shard's log. These are
// appended first. When they are durable the batch is written, with the new positions. So the store is never ahead of
// the log. If the process dies in between, the log is ahead: the positions show that, and the rest is applied again.
//
// If another node has taken over some of the shards, the batch is made again from the operations on the others. Code
// that keeps memory of the lost shards is informed first (`whenLost`), and then the waiters for the batch.
//
// The stamp, a row that belongs to no shard, goes along with every write.

import assert from 'node:assert/strict'
import type { Batch, Clock, RowSink, Store } from '../../ports.js'
import {
  type CommitLog,
  type CommitTimes,
  noTimes,
  noteTimes,
  type OpenBatch,
  OrderedRows,
} from '../commit/commit-log.js'
import { type Deposed, isDeposed } from '../commit/deposed.js'
import { shardOfKey } from '../keys.js'
import type { CommitLane } from './commit-lane.js'
import type { Positions } from './positions.js'
import type { FollowedPosition, LogPayload, Replication } from './replication.js'
import { decodeOperations, OperationWriter, type RowOperation } from './row-operations.js'

/**
 * Bytes that may be staged before writes are refused. It limits memory and the size of an append; a slow log uses as
 * much.
 */
const stagedBytesMax = 64 * 1024 * 1024

export interface ReplicatedLogParts {
  readonly store: Store
  readonly clock: Pick<Clock, 'monoMs'>
  readonly replication: Replication
  readonly lane: CommitLane
  readonly positions: Positions
  /** A stamp at least as large as all that were given or received. */
  readonly lastStamp: () => number
  /** Adds the rows that go along with every write. */
  readonly alongWith: (sink: RowSink) => void
}

type OnLost = (deposed: Deposed) => void

export class ReplicatedLog implements CommitLog {
  /** The write times are those of the shards' logs, and the sync times those of the store. */
  readonly times = noTimes()
  private readonly parts: ReplicatedLogParts
  private readonly batches: ReplicatedBatch[] = []
  private readonly listeners: OnLost[] = []

  constructor(parts: ReplicatedLogParts) {
    this.parts = parts
  }

  open(): OpenBatch {
    const batch = new ReplicatedBatch(this.parts, this.times, deposed => {
      for (const listener of this.listeners) listener(deposed)
    })
    this.batches.push(batch)
    return batch
  }

  /**
   * Adds a listener for shards that other nodes have taken over. It is called before the waiters for staged records of
   * these.
   */
  whenLost(listener: OnLost): void {
    this.listeners.push(listener)
  }

  /** The operations on a shard that are staged, and not written. */
  stagedOf(shard: number): readonly RowOperation[] {
    return this.batches.flatMap(batch => batch.operationsOf(shard))
  }
}

class ReplicatedBatch implements OpenBatch {
  readonly rows: RowSink
  private readonly parts: ReplicatedLogParts
  private readonly times: CommitTimes
  private readonly batch: Batch
  private readonly ordered = new OrderedRows()
  /** Its operations on each shard. */
  private readonly shards = new Map<number, OperationWriter>()
  private readonly onLost: OnLost
  private bytes = 0

  constructor(parts: ReplicatedLogParts, times: CommitTimes, onLost: OnLost) {
    this.parts = parts
    this.times = times
    this.onLost = onLost
    this.batch = parts.store.batch()
    this.rows = {
      put: (key, value) => this.rowsOf(shardOfKey(key)).put(key, value),
      del: key => this.rowsOf(shardOfKey(key)).del(key),
    }
  }

  get length(): number {
    return this.batch.length
  }

  get isFull(): boolean {
    return this.bytes >= stagedBytesMax
  }

  holds(shard: number): boolean {
    return this.shards.has(shard)
  }

  // [hot] Twice for every change of a node of a cluster.
  rowsOf(shard: number): RowSink {
    return this.both(shard, this.batch)
  }

  orderedOf(shard: number): RowSink {
    return this.both(shard, this.ordered)
  }

  /** Writes rows of a shard to the batch, or to the rows that are put into it later, and keeps them for the log. */
  private both(shard: number, rows: RowSink): RowSink {
    const writer = this.writer(shard)
    return {
      put: (key, value) => {
        rows.put(key, value)
        this.bytes += key.length + value.length
        writer.put(key, value)
      },
      del: key => {
        rows.del(key)
        this.bytes += key.length
        writer.del(key)
      },
    }
  }

  private writer(shard: number): OperationWriter {
    let writer = this.shards.get(shard)
    if (!writer) {
      writer = new OperationWriter()
      this.shards.set(shard, writer)
    }
    return writer
  }

  operationsOf(shard: number): readonly RowOperation[] {
    const writer = this.shards.get(shard)
    return writer ? decodeOperations(writer.end(0), shard).operations : []
  }

  commit(onDone: (failure?: Error) => void): void {
    const { batch, parts, times } = this
    const { clock, replication, lastStamp } = parts
    this.ordered.flush(batch)
    const startedMs = clock.monoMs()
    const write = (reached: ReadonlyMap<number, FollowedPosition>, deposed?: Deposed): void => {
      const appendedMs = clock.monoMs()
      this.write(reached, failure => {
        noteTimes(times, startedMs, appendedMs, clock.monoMs())
        if (failure) return onDone(failure)
        if (deposed) this.onLost(deposed)
        this.clear()
        onDone(deposed)
      })
    }
    const payloads = this.payloads(lastStamp())
    if (payloads.length === 0) return write(new Map())
    replication.append(payloads, outcome => {
      if (outcome instanceof Error && !isDeposed(outcome)) return onDone(outcome)
      const deposed = outcome instanceof Error ? outcome : undefined
      const reached = outcome instanceof Error ? outcome.reached : outcome
      const lost = new Set(deposed?.losses.map(({ shard }) => shard))
      for (const { shard } of payloads)
        assert(reached.has(shard) !== lost.has(shard), 'a part must either have a position or be lost')
      if (deposed) this.restrict(payloads.filter(({ shard }) => reached.has(shard)))
      write(reached, deposed)
    })
  }

  /** Fills the batch again with these parts only. */
  private restrict(parts: readonly LogPayload[]): void {
    const { batch } = this
    batch.clear()
    for (const { shard, payload } of parts)
      for (const { key, value } of decodeOperations(payload, shard).operations)
        if (value) batch.put(key, value)
        else batch.del(key)
  }

  /**
   * The register, which has the largest number, comes first. A commit that is too large for one append needs several,
   * and the node may die between two of them. If a change were logged without the one-shot subscription's progress in
   * the register, the subscription would be triggered again.
   */
  private payloads(stamp: number): readonly LogPayload[] {
    const parts = [...this.shards].map(([shard, writer]) => ({ shard, payload: writer.end(stamp) }))
    return parts.sort((a, b) => b.shard - a.shard)
  }

  private write(reached: ReadonlyMap<number, FollowedPosition>, onDone: (failure?: Error) => void): void {
    const { lane, positions, alongWith } = this.parts
    for (const [shard, position] of reached) positions.put(this.batch, shard, position)
    alongWith(this.batch)
    lane.commit(this.batch, failure => {
      if (!failure) for (const [shard, position] of reached) positions.note(shard, position)
      onDone(failure)
    })
  }

  private clear(): void {
    this.batch.clear()
    this.shards.clear()
    this.bytes = 0
  }
}
