// How far this store has the log of each shard: in memory what its rows say, which are written in the batches that lead there.

import type { RowSink, Store } from '../../ports.js'
import { rowsOf } from '../../rows.js'
import { allPositions, decodePosition, encodePosition, parsePositionKey, positionKey } from './replicated-layout.js'
import type { Position } from './replication.js'

/** More than there are shards. */
const rowsPerRead = 1000

export class Positions {
  private readonly known = new Map<number, Position>()

  /** Reads what the store says. */
  async load(store: Store): Promise<void> {
    for await (const rows of rowsOf(store, allPositions(), { rowsPerRead }))
      for (const { key, value } of rows) this.known.set(parsePositionKey(key), decodePosition(value))
  }

  /** undefined: the store has nothing of the shard, or only a part. */
  of(shard: number): Position | undefined {
    return this.known.get(shard)
  }

  /** Adds the row of a position to the batch that leads there. */
  put(sink: RowSink, shard: number, position: Position): void {
    sink.put(positionKey(shard), encodePosition(position))
  }

  /** That batch has been written. */
  note(shard: number, position: Position): void {
    this.known.set(shard, position)
  }

  /** Deletes the row in a batch after which the store has nothing of the shard, or only a part. */
  del(sink: RowSink, shard: number): void {
    sink.del(positionKey(shard))
    this.known.delete(shard)
  }
}
