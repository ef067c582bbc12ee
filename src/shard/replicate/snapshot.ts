// Snapshots of one shard: its rows page by page, and their way into another store. The rows in it: `destinations` in
// ../keys.ts.
//
// A page is read when it is requested, so pages are not one point in time. That is safe because the receiver then
// applies the log from before the first page, which corrects every row that changed meanwhile.
//
// Rows of the indexes T, I and X, and the counts D and A, are not in it, because they are made from the entities.
// Counts of a shard are summed up while pages come, and written after the last one. Pages that have one of two entities
// too early or too late give a wrong count. But changes made meanwhile are in the log that follows, and each record has
// the values of the counts that it touched (commit/counts.ts).

import type { Range, Row, RowSink, Store, StoreReader } from '../../ports.js'
import { rowsOf } from '../../rows.js'
import { prefix, shardOfKey } from '../keys.js'
import { attributeCounts, entityCounts } from '../layout.js'
import { indexRow, type MadeCounts, putRow } from '../rebuild.js'
import { shardRanges } from './replicated-layout.js'
import { OperationWriter, type RowOperation } from './row-operations.js'

export interface ShardPage {
  readonly rows: Buffer
  /** The key after which to continue; undefined at the end. */
  readonly next: Buffer | undefined
}

/** Rows read at a time. */
const rowsPerRead = 256
/** The first possible key after another one is that key and a zero byte. */
const zero = Buffer.alloc(1)

/**
 * Some rows of ranges, which ascend, after a key, up to so many bytes. `stamp`: at least as large as all stamps that
 * were given for them.
 */
export async function readPage(
  store: StoreReader,
  ranges: readonly Range[],
  after: Buffer | undefined,
  bytesMax: number,
  stamp: number,
): Promise<ShardPage> {
  const writer = new OperationWriter()
  for (const range of ranges)
    for await (const rows of rowsBehind(store, range, after))
      for (const { key, value } of rows) {
        writer.put(key, value)
        if (writer.length >= bytesMax) return { rows: writer.end(stamp), next: key }
      }
  return { rows: writer.end(stamp), next: undefined }
}

/** The rows of a range after a key, or all of them, some at a time. */
export async function* rowsBehind(store: StoreReader, { gte, lt }: Range, after?: Buffer): AsyncIterable<Row[]> {
  if (after && Buffer.compare(after, lt) >= 0) return
  const isInside = after && Buffer.compare(after, gte) >= 0
  yield* rowsOf(store, { gte: isInside ? Buffer.concat([after, zero]) : gte, lt }, { rowsPerRead })
}

/** All rows of a shard, some at a time. */
export async function* rowsOfShard(store: Store, shard: number): AsyncIterable<Row[]> {
  for (const range of shardRanges(shard)) yield* rowsBehind(store, range)
}

/** The counts of a shard, some at a time: they are among those of all shards. */
export async function* countsOfShard(store: Store, shard: number): AsyncIterable<Row[]> {
  for (const { all } of [attributeCounts, entityCounts])
    for await (const rows of rowsOf(store, all)) {
      const own = rows.filter(({ key }) => shardOfKey(key) === shard)
      if (own.length > 0) yield own
    }
}

/** The shards that have counts. */
export async function shardsWithCounts(store: Store): Promise<Set<number>> {
  const shards = new Set<number>()
  for (const { all } of [attributeCounts, entityCounts])
    for await (const rows of rowsOf(store, all, { parts: 'keys' }))
      for (const { key } of rows) shards.add(shardOfKey(key))
  return shards
}

/**
 * The rows of a page, and the index rows that follow from them; adds to the counts that the shard will have. Fails with
 * `Unreadable` where an entity is not understood.
 */
export function rowsOfPage(operations: readonly RowOperation[], counts: MadeCounts): readonly Row[] {
  const rows: Row[] = []
  const sink = { put: (key: Buffer, value: Buffer) => rows.push({ key, value }) }
  for (const { key, value } of operations) if (value) putRow({ key, value }, sink, counts)
  return rows
}

/** Deletes rows of a shard, and the index rows that follow from them. */
export function delRows(sink: RowSink, rows: readonly Row[]): void {
  for (const row of rows) {
    sink.del(row.key)
    if (row.key[0] === prefix.entity) indexRow(row, { put: key => sink.del(key) })
  }
}
