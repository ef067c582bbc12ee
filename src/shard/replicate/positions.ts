// The position of this store in the log of each shard. Memory has the content of rows, which are written in the batches
// that lead to the positions.

import type { RowSink, Store, StoreReader } from '../../ports.js'
import { rowsOf } from '../../rows.js'
import { allPositions, decodePosition, encodePosition, parsePositionKey, positionKey } from './replicated-layout.js'
import type { FollowedPosition } from './replication.js'

/** The position of a shard in a store; undefined: the store has nothing of the shard, or only a part. */
export function storedPosition(store: Pick<StoreReader, 'get'>, shard: number): FollowedPosition | undefined {
  const row = store.get(positionKey(shard))
  return row && decodePosition(row)
}

/** The positions of all shards. */
export class Positions {
  private readonly known = new Map<number, FollowedPosition>()

  /** Reads the positions that a store has. */
  static async read(store: Store): Promise<Positions> {
    const positions = new Positions()
    for await (const rows of rowsOf(store, allPositions()))
      for (const { key, value } of rows) positions.note(parsePositionKey(key), decodePosition(value))
    return positions
  }

  /** undefined: the store has nothing of the shard, or only a part. */
  of(shard: number): FollowedPosition | undefined {
    return this.known.get(shard)
  }

  /** Adds the row of a position to the batch that leads to it. */
  put(sink: RowSink, shard: number, position: FollowedPosition): void {
    sink.put(positionKey(shard), encodePosition(position))
  }

  /** Notes that this batch has been written. */
  note(shard: number, position: FollowedPosition): void {
    this.known.set(shard, position)
  }

  /** Deletes the row in a batch after which the store has nothing of the shard, or only a part. */
  del(sink: RowSink, shard: number): void {
    sink.del(positionKey(shard))
    this.known.delete(shard)
  }
}
