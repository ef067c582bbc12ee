// The log of a node of a cluster, as its commits see it: the logs of all the shards that a commit is about, and then the store.
//
// While a batch is filled, what it does to each shard is kept as well, as the bytes that stand in the shard's log afterwards. These are
// appended first; when they are durable the batch is written, with the positions that they have got. So the store never has what the log has
// not. If the process dies in between, the log has more than the store: the positions tell, and the rest is applied again.
//
// Rows that belong to no shard, the stamp, go along with whatever is written.

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
import { shardOfKey } from '../keys.js'
import type { CommitLane } from './commit-lane.js'
import type { Positions } from './positions.js'
import type { Part, Position, Replication } from './replication.js'
import { OperationWriter } from './row-operations.js'

/** Bytes that may be staged until writes are turned away: memory, and what one append may have. A log that is slow costs as much. */
const stagedBytesMax = 64 * 1024 * 1024

export interface ReplicatedLogParts {
  readonly store: Store
  readonly clock: Pick<Clock, 'monoMs'>
  readonly replication: Replication
  readonly lane: CommitLane
  readonly positions: Positions
  /** No stamp that was given or heard is above. */
  readonly lastStamp: () => number
  /** Adds the rows that go along with whatever is written. */
  readonly alongWith: (sink: RowSink) => void
}

export class ReplicatedLog implements CommitLog {
  /** Writing is what the logs of the shards take, and the rest what the store takes. */
  readonly times = noTimes()
  private readonly parts: ReplicatedLogParts

  constructor(parts: ReplicatedLogParts) {
    this.parts = parts
  }

  open(): OpenBatch {
    return new ReplicatedBatch(this.parts, this.times)
  }
}

class ReplicatedBatch implements OpenBatch {
  readonly rows: RowSink
  private readonly parts: ReplicatedLogParts
  private readonly times: CommitTimes
  private readonly batch: Batch
  private readonly ordered = new OrderedRows()
  /** What it does to each shard. */
  private readonly shards = new Map<number, OperationWriter>()
  private bytes = 0

  constructor(parts: ReplicatedLogParts, times: CommitTimes) {
    this.parts = parts
    this.times = times
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

  /** Writes rows of a shard to the batch, or to what is put into it later, and keeps them. */
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

  commit(onDone: (failure?: Error) => void): void {
    const { batch, parts, times } = this
    const { clock, replication, lastStamp } = parts
    this.ordered.flush(batch)
    const startedMs = clock.monoMs()
    const write = (reached: ReadonlyMap<number, Position>): void => {
      const appendedMs = clock.monoMs()
      this.write(reached, failure => {
        noteTimes(times, startedMs, appendedMs, clock.monoMs())
        if (!failure) this.clear()
        onDone(failure)
      })
    }
    const payloads = this.payloads(lastStamp())
    if (payloads.length === 0) return write(new Map())
    replication.append(payloads, outcome => {
      if (outcome instanceof Error) return onDone(outcome)
      for (const { shard } of payloads) assert(outcome.has(shard), 'every part has got its position')
      write(outcome)
    })
  }

  /**
   * The register, which has the largest number, comes first. A commit that is too large for one append goes in several, and the node may die between
   * two of them. Then a subscription that fires once must not have fired for a change while the register does not say so: it would fire again.
   */
  private payloads(stamp: number): readonly Part[] {
    const parts = [...this.shards].map(([shard, writer]) => ({ shard, payload: writer.end(stamp) }))
    return parts.sort((a, b) => b.shard - a.shard)
  }

  private write(reached: ReadonlyMap<number, Position>, onDone: (failure?: Error) => void): void {
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
