// Rows of the outbox as a crash may leave them: several rows bundled into one row of the store
// (src/shard/notify/bundle.ts).

import type { Row, Store } from '../../src/ports.js'
import { allOutbox, bundleKey, parseOutboxKey } from '../../src/shard/notify/notification-layout.js'
import { commit, rowsOf } from '../storage/store-contract.js'

function bundleOf(rows: readonly Row[]): Row {
  const parts = rows.map(({ key, value }) => {
    const { shard, stamp } = parseOutboxKey(key)
    const head = Buffer.alloc(14)
    head.writeUInt16BE(shard)
    head.writeDoubleBE(stamp, 2)
    head.writeUInt32BE(value.length, 10)
    return Buffer.concat([head, value])
  })
  return { key: bundleKey(parseOutboxKey(rows[0]!.key)), value: Buffer.concat([Buffer.of(1), ...parts]) }
}

/** Bundles all pending notifications of a store into one row; returns how many rows there were. */
export async function bundleAll(store: Store): Promise<number> {
  const rows = await rowsOf(store, allOutbox())
  if (rows.length === 0) return 0
  const bundle = bundleOf(rows)
  await commit(store, batch => {
    for (const { key } of rows) batch.del(key)
    batch.put(bundle.key, bundle.value)
  })
  return rows.length
}
