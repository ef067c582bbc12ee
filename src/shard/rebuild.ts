// The rows that follow from an entity: rows of the indexes T, I and X, and its part of the counts D and A.
//
// So indexes and counts can be made again from entities. That happens where rows move to another store (transfer.ts),
// where a shard comes in a snapshot (replicate/snapshot.ts), and in tests, which compare the result with a store.
//
// Not here: whether an entity itself is right, and in its right shard.

import { expiryAttribute } from '../domain/entities/entity.js'
import { assertEncodedEntity, decodeEntity, encodedCreated, encodedExpiresMs, encodedType } from '../encoded-entity.js'
import type { Row } from '../ports.js'
import { readRow } from '../rows.js'
import { encodeNumber, prefix } from './keys.js'
import {
  attributeCounts,
  attributeOfType,
  type CountRows,
  decodeRow,
  entityCounts,
  expiryKey,
  idKey,
  nothing,
  parseEntityKey,
  typeKey,
} from './layout.js'
import { nested } from './nested.js'

interface Puts {
  put(key: Buffer, value: Buffer): void
}

/** Receives counts by tenant, path, and type or attribute (commit/counts.ts). */
export interface CountSink {
  count(tenant: string, path: string, type: string, difference: 1, shard: number): void
}

export interface CountSinks {
  readonly entities: CountSink
  readonly attributes: CountSink
}

/**
 * Puts a row that moves, and the index rows that follow from it, and counts its entities and attributes. Returns the
 * number of its entities.
 */
export function putRow(row: Row, sink: Puts, counts: CountSinks): number {
  sink.put(row.key, row.value)
  return row.key[0] === prefix.entity ? indexRow(row, sink, counts) : 0
}

/**
 * Puts every index row that follows from the row of an entity, and adds to the counts if there are any. Returns the
 * number of its entities.
 */
export function indexRow({ key, value }: Row, indexes: Puts, counts?: CountSinks): number {
  const place = parseEntityKey(key)
  const { shard, tenant, path, id } = place
  if (path !== '/') indexes.put(idKey(tenant, id, path), nothing)
  const encodedEntities = decodeRow(value)
  for (const encoded of encodedEntities) {
    readRow(key, () => assertEncodedEntity(encoded))
    const type = encodedType(encoded)
    indexes.put(typeKey(tenant, path, type, encodedCreated(encoded), shard), Buffer.from(id))
    const expiresMs = encodedExpiresMs(encoded)
    if (expiresMs !== undefined) indexes.put(expiryKey({ ...place, type, expiresMs }), nothing)
    if (!counts) continue
    counts.entities.count(tenant, path, type, 1, shard)
    for (const attribute of readRow(key, () => attributesIn(encoded, type)))
      counts.attributes.count(tenant, path, attribute, 1, shard)
  }
  return encodedEntities.length
}

/** The attributes of an encoded entity, as counts name them. */
const attributesIn = (encoded: Buffer, type: string): readonly string[] =>
  [...decodeEntity(encoded).attributes]
    .filter(([name]) => name !== expiryAttribute)
    .map(([name, attribute]) => attributeOfType(type, name, attribute.type))

/** Counts made from entities, for a slot: one shard, or all of them (`allShards`). */
export class MadeCounts implements CountSinks {
  readonly entities: Totals
  readonly attributes: Totals

  constructor(slot: number) {
    this.entities = new Totals(entityCounts, slot)
    this.attributes = new Totals(attributeCounts, slot)
  }

  rows(): readonly Row[] {
    return [...this.entities.rows(), ...this.attributes.rows()]
  }
}

class Totals implements CountSink {
  private readonly layout: CountRows
  private readonly slot: number
  /** By tenant, path and type. */
  private readonly totals = new Map<string, Map<string, Map<string, number>>>()

  constructor(layout: CountRows, slot: number) {
    this.layout = layout
    this.slot = slot
  }

  count(tenant: string, path: string, type: string, difference: 1): void {
    const types = nested(nested(this.totals, tenant), path)
    types.set(type, (types.get(type) ?? 0) + difference)
  }

  *rows(): Iterable<Row> {
    for (const [tenant, paths] of this.totals)
      for (const [path, types] of paths)
        for (const [type, total] of types)
          yield { key: this.layout.key(tenant, path, type, this.slot), value: encodeNumber(total) }
  }
}
