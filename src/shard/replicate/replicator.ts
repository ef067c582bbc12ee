// What stands between a commit and the store in a node of a cluster: the logs of the shards that the commit is about.
//
// While a batch is filled, what it does to each shard is kept as well, as the bytes that stand in the shard's log afterwards. These are
// appended first; when they are durable the batch is written, with the positions that they have got. So the store never has what the log has
// not. If the process dies in between, the log has more than the store: the positions tell, and the rest is applied again.
//
// Rows that belong to no shard, the stamp, go along with whatever is written.

import assert from 'node:assert/strict'
import type { Batch, Part, Position, Replication, RowSink } from '../../ports.js'
import { shardOfKey } from '../keys.js'
import type { CommitLane } from './commit-lane.js'
import type { Positions } from './positions.js'
import { OperationWriter } from './row-operations.js'

/** Bytes that may be staged until writes are turned away: memory, and what one append may have. A log that is slow costs as much. */
const stagedBytesMax = 64 * 1024 * 1024

/** What a batch that is being filled does to each shard. */
export class StagedParts {
  private readonly shards = new Map<number, OperationWriter>()
  private bytes = 0

  /** Whether it does anything to a shard. */
  holds(shard: number): boolean {
    return this.shards.has(shard)
  }

  /** Whether there is as much as one batch may have. */
  get isFull(): boolean {
    return this.bytes >= stagedBytesMax
  }

  // [hot] Twice for every change of a node of a cluster.
  /** Writes rows of a shard to the batch, or to what is put into it later, and keeps them. */
  sink(shard: number, batch: RowSink): RowSink {
    const writer = this.writer(shard)
    return {
      put: (key, value) => {
        batch.put(key, value)
        this.bytes += key.length + value.length
        writer.put(key, value)
      },
      del: key => {
        batch.del(key)
        this.bytes += key.length
        writer.del(key)
      },
    }
  }

  /** As `sink`, for rows whose keys begin with their shard. */
  sinkByKey(batch: RowSink): RowSink {
    return {
      put: (key, value) => this.sink(shardOfKey(key), batch).put(key, value),
      del: key => this.sink(shardOfKey(key), batch).del(key),
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

  /** Gives all parts, and begins anew. */
  take(stamp: number): readonly Part[] {
    const parts = [...this.shards].map(([shard, writer]) => ({ shard, payload: writer.end(stamp) }))
    this.shards.clear()
    this.bytes = 0
    return parts
  }
}

export interface ReplicatorParts {
  readonly replication: Replication
  readonly lane: CommitLane
  readonly positions: Positions
  /** Adds the rows that go along with whatever is written. */
  readonly alongWith: (sink: RowSink) => void
}

export class Replicator {
  private readonly parts: ReplicatorParts

  constructor(parts: ReplicatorParts) {
    this.parts = parts
  }

  staging(): StagedParts {
    return new StagedParts()
  }

  /** Appends the parts of a batch and writes it. `onAppended`: it is written now. */
  commit(batch: Batch, parts: readonly Part[], onAppended: () => void, onDone: (failure?: Error) => void): void {
    if (parts.length === 0) return this.write(batch, new Map(), onDone)
    this.parts.replication.append(parts, outcome => {
      onAppended()
      if (outcome instanceof Error) return onDone(outcome)
      for (const { shard } of parts) assert(outcome.has(shard), 'every part has got its position')
      this.write(batch, outcome, onDone)
    })
  }

  private write(batch: Batch, reached: ReadonlyMap<number, Position>, onDone: (failure?: Error) => void): void {
    const { lane, positions, alongWith } = this.parts
    for (const [shard, position] of reached) positions.put(batch, shard, position)
    alongWith(batch)
    lane.commit(batch, failure => {
      if (!failure) for (const [shard, position] of reached) positions.note(shard, position)
      onDone(failure)
    })
  }
}
