// Bundles: rows of the outbox that one commit writes, as one row of the store for as long as nearly all of them are about to go.
//
// As a rule a notification has ended a moment after its change, and its row goes again. Written and deleted one by one these rows cost the
// store more than all else of the changes; those of a bundle are written and deleted together. What of it has not ended after a while gets rows
// of its own (outbox.ts), and so does all that a crash has left, before anybody reads the outbox (`splitBundles`): nobody else knows of bundles.
//
//   value   of each row: u16 shard | f64 stamp | u32 length | its bytes

import type { Store } from '../../ports.js'
import { allBundles, bundleKey, type OutboxKey, outboxKey } from '../notification-layout.js'
import { type Firing, writeRow } from './firing.js'

/** A row that a bundle takes. */
export interface BundledRow extends OutboxKey {
  readonly bytes: number
}

/** Bytes of a bundle; further rows of the commit make another one. */
export const bundleBytesMax = 256 * 1024
/** A row of more bytes gains nothing by going into one. */
export const bundledBytesMax = 16 * 1024

const headBytes = 14

export class Bundle<R extends BundledRow> {
  readonly rows: R[] = []
  /** Rows of it that are owed. */
  open = 0
  /** When it was written, by the monotonic clock. */
  sinceMs = 0
  private bytes: Buffer
  private length = 0
  /** Where the bytes of each row begin. */
  private readonly begins: number[] = []

  /** `likelyBytes`: how much it will take in, about. */
  constructor(likelyBytes: number) {
    this.bytes = Buffer.allocUnsafe(likelyBytes)
  }

  hasRoom(bytes: number): boolean {
    return this.length + headBytes + bytes <= bundleBytesMax
  }

  // [hot] Once per change that fires.
  /** Takes the row of a firing with this head; gives its number. */
  add(row: R, head: string, firing: Firing): number {
    const bytes = this.roomFor(headBytes + row.bytes)
    let at = bytes.writeUInt16BE(row.shard, this.length)
    at = bytes.writeDoubleBE(row.stamp, at)
    at = bytes.writeUInt32BE(row.bytes, at)
    this.begins.push(at)
    this.length = writeRow(bytes, at, head, firing)
    this.open++
    return this.rows.push(row) - 1
  }

  /** The buffer, with so much behind what is in it. */
  private roomFor(bytes: number): Buffer {
    const needed = this.length + bytes
    if (needed > this.bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.bytes.length))
      larger.set(this.bytes.subarray(0, this.length))
      this.bytes = larger
    }
    return this.bytes
  }

  get key(): Buffer {
    return bundleKey(this.rows[0]!)
  }

  /** What the store keeps. */
  get value(): Buffer {
    return this.bytes.subarray(0, this.length)
  }

  /** The bytes of a row by its number; they share the memory of all. */
  bytesOf(number: number): Buffer {
    const begin = this.begins[number]!
    return this.bytes.subarray(begin, begin + this.rows[number]!.bytes)
  }
}

/** Gives every row of what bundles there are in a store a place of its own: to be called before the outbox is read, and safe to be called again. */
export async function splitBundles(store: Store): Promise<void> {
  const cursor = store.cursor(allBundles())
  const batch = store.batch()
  try {
    for (let rows = await cursor.next(1); rows.length > 0; rows = await cursor.next(1))
      for (const { key, value } of rows) {
        for (let at = 0; at < value.length; ) {
          const begin = at + headBytes
          const end = begin + value.readUInt32BE(at + 10)
          const row = { shard: value.readUInt16BE(at), stamp: value.readDoubleBE(at + 2) }
          batch.put(outboxKey(row), value.subarray(begin, end))
          at = end
        }
        batch.del(key)
        await new Promise<void>((resolve, reject) => store.commit(batch, error => (error ? reject(error) : resolve())))
        batch.clear()
      }
  } finally {
    await cursor.close()
  }
}
