// Keys and rows on disk.
//
//   E shard tenant path id            -> row: every type of that id in that scope, as encoded entities
//   T tenant path type created shard  -> id          order of creation, by scope and type
//   I tenant id path                  -> ''          where an id lives outside the root path (the root needs no index)
//   X expires shard tenant path id type -> ''        which entity expires when
//   D tenant path type shard          -> count       paths and types of a tenant, and how many of each in a shard
//   A tenant path type name attrtype shard -> count  which attributes, and of which types, the entities of a type have
//   S owner tenant id                 -> row: a subscription and its revision
//   R owner tenant id                 -> row: the same of a registration
//   P owner tenant id                 -> progress of a subscription, as far as this owner knows
//   O shard stamp                     -> row: the pending notifications of a change
//   B shard stamp                     -> such rows of several changes, for a moment
//   L shard tenant subscription stamp -> row: a notification that was given up, and its report
//   M name                            -> value       the node's own notes
//
// Counts and the type index end with their shard, so one range has those of a tenant in all shards. Where all shards of
// a store come and go together they share one count row (`allShards`). With rows by shard, a commit of a hundred
// creations would write 64 rows instead of 4.
//
// Only primary rows and dead letters, which cannot be made from other rows, begin with the shard of their entity. They
// move between nodes, and the other rows are made from them. Subscriptions and registrations begin with the number of
// the register: every store has a row of each, and the row of the document owner counts.
//
// Nodes of a cluster and workers have some more rows (shard/replicate/replicated-layout.ts).
//
// Not here: S, R and P (document-layout.ts), O, B and L (notification-layout.ts), how a key is written (keys.ts).

import assert from 'node:assert/strict'
import { ownText } from '../domain/recent.js'
import type { Range } from '../ports.js'
import { KeyReader, prefix, under, writer } from './keys.js'
import { nested } from './nested.js'

// Primary rows

export const entityKey = (shard: number, tenant: string, path: string, id: string): Buffer =>
  writer.begin(prefix.entity).u16(shard).text(tenant).text(path).text(id).key()

export interface EntityKey {
  readonly shard: number
  readonly tenant: string
  readonly path: string
  readonly id: string
}

export function parseEntityKey(key: Buffer): EntityKey {
  const reader = new KeyReader(key)
  return { shard: reader.u16(), tenant: reader.text(), path: reader.text(), id: reader.text() }
}

/** The range of rows of one shard: of a tenant, or of one path of it. */
export function entityRange(shard: number, tenant: string, path?: string): Range {
  const start = writer.begin(prefix.entity).u16(shard).text(tenant)
  return under((path === undefined ? start : start.text(path)).key())
}

/** The range of all rows of one shard. */
export function shardRange(shard: number): Range {
  return under(writer.begin(prefix.entity).u16(shard).key())
}

export const allEntities = (): Range => under(Buffer.from([prefix.entity]))

/** First byte of a row of several encoded entities. An encoded entity begins with its version, which is far below. */
const rowOfSeveral = 0xff

/** The row of an id. Nearly always it has one type, and then the encoded entity is the row. */
export function encodeRow(encodedEntities: readonly Buffer[]): Buffer {
  const [only] = encodedEntities
  assert(only, 'a row needs at least one entity')
  if (encodedEntities.length === 1) return only
  const parts: Buffer[] = [Buffer.from([rowOfSeveral])]
  for (const encoded of encodedEntities) {
    const length = Buffer.allocUnsafe(4)
    length.writeUInt32BE(encoded.length)
    parts.push(length, encoded)
  }
  return Buffer.concat(parts)
}

/** The encoded entities of a row; they share its memory. */
export function decodeRow(row: Buffer): Buffer[] {
  if (row[0] !== rowOfSeveral) return [row]
  const encodedEntities: Buffer[] = []
  for (let at = 1; at < row.length; ) {
    const length = row.readUInt32BE(at)
    encodedEntities.push(row.subarray(at + 4, at + 4 + length))
    at += 4 + length
  }
  return encodedEntities
}

// Indexes

/** Dates may lie before 1970; shifted by this many milliseconds they are positive. */
const expiryShiftMs = 1e15

export const typeKey = (tenant: string, path: string, type: string, created: number, shard: number): Buffer =>
  writer.begin(prefix.type).text(tenant).text(path).text(type).positive(created).u16(shard).key()

const zero = Buffer.alloc(1)

/** A position in the type index of one type in one path. */
export interface TypePosition {
  readonly created: number
  readonly shard: number
}

/** The type index of one type in one path: all of it, or the entries after a position. */
export function typeRange(tenant: string, path: string, type: string, after?: TypePosition): Range {
  const all = under(writer.begin(prefix.type).text(tenant).text(path).text(type).key())
  if (!after) return all
  // The first possible key after another one is that key and a zero byte.
  return { gte: Buffer.concat([typeKey(tenant, path, type, after.created, after.shard), zero]), lt: all.lt }
}

/** The type index of a tenant. */
export const tenantTypeRange = (tenant: string): Range => under(writer.begin(prefix.type).text(tenant).key())

export interface TypeKey {
  readonly tenant: string
  readonly path: string
  readonly type: string
  readonly created: number
  readonly shard: number
}

export function parseTypeKey(key: Buffer): TypeKey {
  const reader = new KeyReader(key)
  return {
    tenant: reader.text(),
    path: reader.text(),
    type: reader.text(),
    created: reader.positive(),
    shard: reader.u16(),
  }
}

/** The position alone, which a key of the type index ends with. */
export const positionOfTypeKey = (key: Buffer): TypePosition => ({
  created: key.readDoubleBE(key.length - positionBytes),
  shard: key.readUInt16BE(key.length - shardBytes),
})

const shardBytes = 2
const positionBytes = 8 + shardBytes

export const idKey = (tenant: string, id: string, path: string): Buffer =>
  writer.begin(prefix.id).text(tenant).text(id).text(path).key()

export const idRange = (tenant: string, id: string): Range => under(writer.begin(prefix.id).text(tenant).text(id).key())

export function parseIdKey(key: Buffer): { readonly tenant: string; readonly id: string; readonly path: string } {
  const reader = new KeyReader(key)
  return { tenant: reader.text(), id: reader.text(), path: reader.text() }
}

export interface ExpiryKey extends EntityKey {
  readonly expiresMs: number
  readonly type: string
}

export const expiryKey = ({ expiresMs, shard, tenant, path, id, type }: ExpiryKey): Buffer =>
  writer
    .begin(prefix.expiry)
    .positive(expiresMs + expiryShiftMs)
    .u16(shard)
    .text(tenant)
    .text(path)
    .text(id)
    .text(type)
    .key()

/** The entries that expire in a time range, both ends included; milliseconds since 1970. */
export const expiryRange = (fromMs: number, untilMs: number): Range => ({
  gte: writer
    .begin(prefix.expiry)
    .positive(Math.max(0, fromMs + expiryShiftMs))
    .key(),
  lt: writer
    .begin(prefix.expiry)
    .positive(untilMs + 1 + expiryShiftMs)
    .key(),
})

export function parseExpiryKey(key: Buffer): ExpiryKey {
  const reader = new KeyReader(key)
  return {
    expiresMs: reader.positive() - expiryShiftMs,
    shard: reader.u16(),
    tenant: reader.text(),
    path: reader.text(),
    id: reader.text(),
    type: reader.text(),
  }
}

/** All keys of all indexes, counts included. A rebuild from the primary rows must give the same. */
export const allIndexes = (): readonly Range[] =>
  [prefix.type, prefix.id, prefix.expiry, prefix.directory, prefix.attribute].map(first => under(Buffer.from([first])))

// Counts

/**
 * In the place of a shard number: all shards of the store. A single node and a worker use it, because their shards are
 * always the same.
 */
export const allShards = 0xffff

export interface CountKey {
  readonly tenant: string
  readonly path: string
  readonly type: string
  readonly shard: number
}

/** The keys of one kind of counts. */
export interface CountRows {
  /** The range of all tenants. */
  readonly all: Range
  key(tenant: string, path: string, type: string, shard: number): Buffer
  /** The range of a tenant, in all shards. */
  range(tenant: string): Range
  parse(key: Buffer): CountKey
}

/** Entities by type: the directory. */
export const entityCounts: CountRows = {
  all: under(Buffer.from([prefix.directory])),
  key: (tenant, path, type, shard) =>
    writer.begin(prefix.directory).text(tenant).text(path).text(type).u16(shard).key(),
  range: tenant => under(writer.begin(prefix.directory).text(tenant).key()),
  parse: key => {
    const reader = new KeyReader(key)
    return { tenant: reader.text(), path: reader.text(), type: reader.text(), shard: reader.u16() }
  },
}

/** Attributes by type, name and attribute type (`attributeOfType`). */
export const attributeCounts: CountRows = {
  all: under(Buffer.from([prefix.attribute])),
  key: (tenant, path, attribute, shard) => {
    const [type = '', name = '', attributeType = ''] = attribute.split('\0')
    const start = writer.begin(prefix.attribute).text(tenant).text(path)
    return start.text(type).text(name).text(attributeType).u16(shard).key()
  },
  range: tenant => under(writer.begin(prefix.attribute).text(tenant).key()),
  parse: key => {
    const reader = new KeyReader(key)
    const [tenant, path] = [reader.text(), reader.text()]
    const type = attributeOfType(reader.text(), reader.text(), reader.text())
    return { tenant, path, type, shard: reader.u16() }
  },
}

/** The name of an attribute of a type in the attribute counts: type, attribute name and attribute type in one text. */
export function attributeOfType(type: string, name: string, attributeType: string): string {
  // [hot] For every attribute of every creation. The same few texts return again and again. The lookup saves putting a
  // text together and hashing it, which made counting attributes cost 10 % of a create (bench `create`).
  const known = named.get(type)?.get(name)?.get(attributeType)
  if (known !== undefined) return known
  if (++namedCount > namedMax) {
    named.clear()
    namedCount = 1
  }
  const text = `${type}\0${name}\0${attributeType}`
  nested(nested(named, ownText(type)), ownText(name)).set(ownText(attributeType), text)
  return text
}

const named = new Map<string, Map<string, Map<string, string>>>()
let namedCount = 0
/** Texts remembered, up to 600 bytes each. When there are more, all are forgotten at once. */
const namedMax = 4_000

// Notes

/** The last stamp of the node's hybrid clock that is on disk. A restart continues from it. */
export const stampKey = (): Buffer => writer.begin(prefix.meta).text('stamp').key()

/** While stores are divided: the key of the primary row that was copied last. */
export const copiedKey = (): Buffer => writer.begin(prefix.meta).text('copied').key()

/** The empty value of an index row, whose key has everything. */
export const nothing = Buffer.alloc(0)
