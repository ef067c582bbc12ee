// A record, and its way into the store: the entity's row and every index, in the batch of the commit.
//
// A record is the outcome of one turn. It has the new state of one entity, and the facts about the old state that
// indexes need, so `apply` reads nothing. It never leaves the process: a log elsewhere gets the rows that it leads to
// (replicate/row-operations.ts).

import { encodedCreated, encodedExpiresMs } from '../../encoded-entity.js'
import type { RowSink } from '../../ports.js'
import type { PathCounts } from '../commit/counts.js'
import { attributeOfType, expiryKey, idKey, nothing, typeKey } from '../layout.js'

/** The facts about the old entity that are in indexes. */
export interface Before {
  readonly created: number
  readonly expiresMs: number | undefined
}

export type AttributeDifference = readonly [name: string, type: string, difference: 1 | -1]

export interface ShardRecord {
  readonly shard: number
  readonly tenant: string
  readonly path: string
  readonly id: string
  readonly type: string
  /** undefined: this turn created the entity. */
  readonly before: Before | undefined
  /** Attributes, with their types, that the entity gained (1) or lost (-1). */
  readonly attributes: readonly AttributeDifference[]
  /** The entity after the turn; undefined: it was deleted. */
  readonly encoded: Buffer | undefined
}

// [hot] Once per accepted change.
/**
 * Writes a record: rows of the type index to `ordered`, which is written after `batch`, all others to `batch`. `row` is
 * the whole row of the id after it, and `key` its key; undefined when no type of the id is left.
 */
export function apply(
  record: ShardRecord,
  key: Buffer,
  row: Buffer | undefined,
  batch: RowSink,
  ordered: RowSink,
  directory: PathCounts,
  attributes: PathCounts,
): void {
  const { shard, tenant, path, id, type, before, encoded } = record
  if (row) batch.put(key, row)
  else batch.del(key)
  if (!before && encoded) {
    ordered.put(typeKey(tenant, path, type, encodedCreated(encoded), shard), Buffer.from(id))
    if (path !== '/') batch.put(idKey(tenant, id, path), nothing)
    directory.count(tenant, path, type, 1, shard)
  }
  if (before && !encoded) {
    ordered.del(typeKey(tenant, path, type, before.created, shard))
    if (path !== '/' && !row) batch.del(idKey(tenant, id, path))
    directory.count(tenant, path, type, -1, shard)
  }
  for (const [name, attributeType, difference] of record.attributes)
    attributes.count(tenant, path, attributeOfType(type, name, attributeType), difference, shard)
  const dueBefore = before?.expiresMs
  const dueAfter = encoded && encodedExpiresMs(encoded)
  if (dueBefore === dueAfter) return
  if (dueBefore !== undefined) batch.del(expiryKey({ ...record, expiresMs: dueBefore }))
  if (dueAfter !== undefined) batch.put(expiryKey({ ...record, expiresMs: dueAfter }), nothing)
}
