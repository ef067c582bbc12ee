// A bundle: rows of the outbox that one commit writes, as one row of the store.
//
//   value   u8 version, then of each row: u16 shard | f64 stamp | u32 length | its bytes
//
// Not here: which rows share one, and for how long (bundles.ts).

import { assertVersion } from '../../domain/unreadable.js'
import type { Row, Store } from '../../ports.js'
import { readRow, rowsOf } from '../../rows.js'
import { allBundles, bundleKey, type OutboxKey, outboxKey } from './notification-layout.js'
import { type TriggerEvent, writeRow } from './trigger-event.js'

/** The fields of a row of the outbox that bundles use. */
export interface BundledRow extends OutboxKey {
  readonly bytes: number
  /** Notifications that have not ended. */
  open: number
  /** undefined: it has a row of its own in the store. */
  bundle: Bundle | undefined
  /** The index of its bytes in the bundle. */
  begin: number
  /** Its value, while it moves from the bundle to a row of its own. */
  value: Buffer | undefined
}

const version = 1
const versionBytes = 1
const headBytes = 14

export class Bundle {
  readonly rows: BundledRow[] = []
  /** The number of its rows that have not ended. */
  open = 0
  /** When it was written, by the monotonic clock. */
  sinceMs = 0
  private bytes: Buffer
  private length = versionBytes

  /** `likelyBytes`: the expected size. */
  constructor(likelyBytes: number) {
    this.bytes = Buffer.allocUnsafe(versionBytes + likelyBytes)
    this.bytes[0] = version
  }

  // [hot] Once per change that triggers notifications.
  /** Adds the row of a trigger event with this head. */
  add(row: BundledRow, head: string, event: TriggerEvent): void {
    const bytes = this.roomFor(headBytes + row.bytes)
    let at = bytes.writeUInt16BE(row.shard, this.length)
    at = bytes.writeDoubleBE(row.stamp, at)
    row.begin = bytes.writeUInt32BE(row.bytes, at)
    row.bundle = this
    this.length = writeRow(bytes, row.begin, head, event)
    this.open++
    this.rows.push(row)
  }

  /** The buffer, with room for so many more bytes. */
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

  /** The value of the bundle's row in the store. */
  get value(): Buffer {
    return this.bytes.subarray(0, this.length)
  }

  /** The bytes of a row of it; they share the memory of all. */
  bytesOf({ begin, bytes }: BundledRow): Buffer {
    return this.bytes.subarray(begin, begin + bytes)
  }
}

/** Writes every row of the bundles in a store as a row of its own, where readers of the outbox find it. */
export async function splitBundles(store: Store): Promise<void> {
  const batch = store.batch()
  for await (const rows of rowsOf(store, allBundles(), { rowsPerRead: 1 }))
    for (const bundle of rows) {
      for (const { key, value } of rowsOfBundle(bundle)) batch.put(key, value)
      batch.del(bundle.key)
      await new Promise<void>((resolve, reject) => store.commit(batch, error => (error ? reject(error) : resolve())))
      batch.clear()
    }
}

/** The rows of the outbox that a bundle holds; their values share its memory. */
export function* rowsOfBundle({ key, value }: Row): Iterable<Row> {
  readRow(key, () => assertVersion('a bundle of pending notifications', value[0], version))
  for (let at = versionBytes; at < value.length; ) {
    const begin = at + headBytes
    const end = begin + value.readUInt32BE(at + 10)
    const row = { shard: value.readUInt16BE(at), stamp: value.readDoubleBE(at + 2) }
    yield { key: outboxKey(row), value: value.subarray(begin, end) }
    at = end
  }
}
