// A record: the durable outcome of one turn, versioned. It is what a log keeps and what `apply` writes to the store.
//
// It says what became of one entity and what the indexes must know of what was before, so that it can be applied without reading
// more than the entity's own row. On one node the log is the store's own and records are never encoded; the bytes are for logs
// that live elsewhere, and the loopback test sends every record through them.

import assert from 'node:assert/strict'

export const recordVersion = 1

/** What indexes know of the entity as it was. */
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
  /** undefined: the entity was created by this turn. */
  readonly before: Before | undefined
  /** Attributes, with their types, that the entity has got (1) or has no more (-1). */
  readonly attributes: readonly AttributeDifference[]
  /** The entity after the turn; undefined: it was deleted. */
  readonly image: Buffer | undefined
}

/** u8 version, u32 length of a JSON head, the head, the image if there is one. */
export function encodeRecord(record: ShardRecord): Buffer {
  const { image, ...head } = record
  const json = Buffer.from(JSON.stringify({ ...head, deleted: image === undefined }))
  const start = Buffer.alloc(5)
  start[0] = recordVersion
  start.writeUInt32BE(json.length, 1)
  return Buffer.concat([start, json, image ?? Buffer.alloc(0)])
}

export function decodeRecord(bytes: Buffer): ShardRecord {
  assert.equal(bytes[0], recordVersion, 'a record of an unknown version')
  const imageAt = 5 + bytes.readUInt32BE(1)
  const { deleted, ...head } = JSON.parse(bytes.toString('utf8', 5, imageAt))
  return { ...head, image: deleted ? undefined : bytes.subarray(imageAt) }
}
