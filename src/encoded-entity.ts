// An encoded entity: one entity as bytes. In this form it is stored, sent between nodes, and mostly answered.
//
//   0  u8   version, 1
//   1  u8   flags: 1 the JSON is exactly the normalized answer; 2 a hidden `dateExpires` precedes the JSON
//   2  f64  created, hybrid stamp            10 f64  modified, ms
//  18  f64  expires, ms; NaN: never          26 u32  number of attributes in the JSON
//  30  u32  where the JSON begins            34 u16  length of the type    36 u16  length of the correlator root
//  38  type, correlator root, then per attribute (the hidden one last) created and modified as u48 ms and, as u32,
//      where its part of the JSON ends; then the hidden attribute as [JSON], then the entity as normalized JSON
//
// A `dateExpires` of a date type inside the entity's JSON is a plain one (entity.ts).
//
// This layout has three advantages. A plain read needs no parsing. Indexes and expiry find their fields at fixed
// places. One attribute can be read without the others, and a change of one attribute copies the bytes of the others.

import assert from 'node:assert/strict'
import { decimalAt } from './domain/decimal.js'
import {
  type Attribute,
  type Entity,
  type EntityContent,
  expiryAttribute,
  isDateType,
  type Metadata,
  noMetadata,
} from './domain/entities/entity.js'
import {
  isHidden,
  writeStoredAttribute,
  writeStoredIdentity,
  writeStoredMember,
} from './domain/entities/representation.js'
import { expiresMs } from './domain/entities/update.js'
import { type Json, JsonWriter } from './domain/json.js'
import { assertVersion, Unreadable } from './domain/unreadable.js'

/** A new version raises the format of the data directory (docs/operations/versions.md). */
const version = 1
const flagAsIs = 1
const flagHidden = 2
const headBytes = 38
/** Created, modified, end. */
const recordBytes = 16
/** Characters of a correlator root that are kept. */
const rootLengthMax = 255

/** The buffer in which encoded entities are built before they get their own memory. */
const writer = new JsonWriter()

/** An entity with its encoded form. */
export interface EntityAndBytes {
  readonly entity: Entity
  readonly encoded: Buffer
}

// [hot] Once per accepted change.
/**
 * Encodes an entity. `root` is the correlator root of the request that last changed it
 * (docs/interface/cascades.md#circles). Attributes that are identical to those of `before` are copied from its bytes.
 */
export function encodeEntity(entity: Entity, root: string, before?: EntityAndBytes): Buffer {
  const hidden = hiddenAttribute(entity)
  const { attributes } = entity
  writer.restart(headBytes)
  writer.utf8(entity.type)
  const typeBytes = writer.length - headBytes
  writer.utf8(root.length > rootLengthMax ? root.slice(0, rootLengthMax).toWellFormed() : root)
  const recordsAt = writer.length
  writer.length += attributes.size * recordBytes
  if (hidden) writeStoredAttribute(hidden, writer)
  writer.asIs = true // the hidden attribute is not part of the answer
  const jsonAt = writer.length
  if (before && !hidden && (before.encoded[1]! & (flagAsIs | flagHidden)) === flagAsIs)
    writeChanged(entity, before, recordsAt, jsonAt)
  else writeAll(entity, hidden, recordsAt, jsonAt)
  const encoded = Buffer.allocUnsafe(writer.length)
  encoded.set(writer.bytes.subarray(0, writer.length))
  encoded[0] = version
  encoded[1] = (writer.asIs ? flagAsIs : 0) | (hidden ? flagHidden : 0)
  encoded.writeDoubleBE(entity.created, 2)
  encoded.writeDoubleBE(entity.modifiedMs, 10)
  encoded.writeDoubleBE((hidden && expiresMs(entity)) ?? Number.NaN, 18)
  encoded.writeUInt32BE(attributes.size - (hidden ? 1 : 0), 26)
  encoded.writeUInt32BE(jsonAt, 30)
  encoded.writeUInt16BE(typeBytes, 34)
  encoded.writeUInt16BE(recordsAt - headBytes - typeBytes, 36)
  return encoded
}

function writeAll(entity: Entity, hidden: Attribute | undefined, recordsAt: number, jsonAt: number): void {
  writeStoredIdentity(entity, writer)
  let at = recordsAt
  for (const [name, attribute] of entity.attributes) {
    if (attribute === hidden) continue
    writeStoredMember(name, attribute, writer)
    at = writeRecord(attribute, at, writer.length - jsonAt)
  }
  writer.raw('}')
  if (hidden) writeRecord(hidden, at, 0)
}

/** Like `writeAll`, for an entity and its earlier version, both without a hidden attribute. */
function writeChanged(
  entity: Entity,
  { entity: earlier, encoded }: EntityAndBytes,
  recordsAt: number,
  jsonAt: number,
): void {
  const earlierJsonAt = encoded.readUInt32BE(30)
  let earlierRecord = recordsAtOf(encoded)
  writeStoredIdentity(entity, writer)
  // The position of the next attribute in the earlier JSON, as long as both have the same names in the same order.
  let begin = earlierJsonAt + writer.length - jsonAt
  let at = recordsAt
  for (const name of entity.attributes.keys()) {
    const attribute = entity.attributes.get(name) as Attribute
    if (begin > 0 && isMember(encoded, begin, name)) {
      const end = earlierJsonAt + encoded.readUInt32BE(earlierRecord + 12)
      if (earlier.attributes.get(name) === attribute) writer.copy(encoded, begin, end)
      else writeStoredMember(name, attribute, writer)
      begin = end
      earlierRecord += recordBytes
    } else {
      begin = 0
      writeStoredMember(name, attribute, writer)
    }
    at = writeRecord(attribute, at, writer.length - jsonAt)
  }
  writer.raw('}')
}

/** Whether `,"name"` is at a position. It never is for a name that JSON escapes. */
function isMember(encoded: Buffer, at: number, name: string): boolean {
  const nameAt = at + 2
  for (let i = 0; i < name.length; i++) if (encoded[nameAt + i] !== name.charCodeAt(i)) return false
  return encoded[at] === comma && encoded[nameAt + name.length] === quote
}

/** Writes the record of an attribute, which precedes the JSON. Returns the position of the next record. */
function writeRecord({ createdMs, modifiedMs }: Attribute, at: number, end: number): number {
  writeU48(createdMs, at)
  writeU48(modifiedMs, at + 6)
  writeU32(end, at + 12)
  return at + recordBytes
}

function writeU48(value: number, at: number): void {
  writer.bytes[at] = value / 2 ** 40
  writer.bytes[at + 1] = value / 2 ** 32
  writeU32(value >>> 0, at + 2)
}

function writeU32(value: number, at: number): void {
  const { bytes } = writer
  bytes[at] = value >>> 24
  bytes[at + 1] = value >>> 16
  bytes[at + 2] = value >>> 8
  bytes[at + 3] = value
}

function hiddenAttribute(entity: Entity): Attribute | undefined {
  const attribute = entity.attributes.get(expiryAttribute)
  return attribute && isHidden(expiryAttribute, attribute) ? attribute : undefined
}

// [hot] For each entity that another process sends.
/** Whether bytes have the frame of an encoded entity of this release's version. It does not read the JSON. */
export function isEncodedEntity(bytes: Buffer): boolean {
  if (bytes.length < headBytes || bytes[0] !== version) return false
  const jsonAt = bytes.readUInt32BE(30)
  const isHidden = (bytes[1]! & flagHidden) !== 0
  const recordsEnd = recordsAtOf(bytes) + (bytes.readUInt32BE(26) + (isHidden ? 1 : 0)) * recordBytes
  const fits = isHidden ? recordsEnd <= jsonAt : recordsEnd === jsonAt
  return fits && jsonAt < bytes.length && bytes[jsonAt] === openBrace && bytes[bytes.length - 1] === closeBrace
}

/** Fails with `Unreadable` unless bytes are an encoded entity of this release's version. */
export function assertEncodedEntity(encoded: Buffer): void {
  assertVersion('a stored entity', encoded[0], version)
  if (!isEncodedEntity(encoded)) throw new Unreadable('a stored entity is damaged')
}

/**
 * The entity's normalized JSON, without the `dateExpires` of a transient entity. Shares memory with the encoded entity.
 */
export const encodedJson = (encoded: Buffer): Buffer => encoded.subarray(encoded.readUInt32BE(30))

/**
 * JSON that is still in an encoded entity: all of it, or what is left of it. [hot] To copy it to its place in an answer
 * takes a third of the time of a buffer for each entity.
 */
export class StoredJson {
  /** `runs`: the positions between which its bytes are, in pairs. */
  constructor(
    private readonly encoded: Buffer,
    private readonly runs: readonly number[],
    /** Bytes. */
    readonly length: number,
  ) {}

  static whole(encoded: Buffer): StoredJson {
    const from = encoded.readUInt32BE(30)
    return new StoredJson(encoded, [from, encoded.length], encoded.length - from)
  }

  /** Copies it to a position of a buffer that has room for it. */
  copyTo(target: Buffer, at: number): void {
    const { encoded, runs } = this
    let to = at
    for (let run = 0; run < runs.length; run += 2) to += encoded.copy(target, to, runs[run], runs[run + 1])
  }

  /** Whether `bytes` shares memory with the encoded entity. */
  get isShared(): boolean {
    return this.runs.length === 2
  }

  bytes(): Buffer {
    if (this.isShared) return this.encoded.subarray(this.runs[0], this.runs[1])
    const bytes = Buffer.allocUnsafe(this.length)
    this.copyTo(bytes, 0)
    return bytes
  }
}

/** Whether `encodedJson` is already the normalized answer. */
export const isAnswer = (encoded: Buffer): boolean => (encoded[1]! & flagAsIs) !== 0

/** Whether an encoded entity has a type, given as UTF-8. */
export const hasType = (encoded: Buffer, type: Uint8Array): boolean =>
  encoded.readUInt16BE(34) === type.length && standsAt(encoded, headBytes, type)

export const encodedType = (encoded: Buffer): string =>
  encoded.toString('latin1', headBytes, headBytes + encoded.readUInt16BE(34))

/** The id is the first member of the JSON. */
export function encodedId(encoded: Buffer): string {
  const from = encoded.readUInt32BE(30) + '{"id":"'.length
  const id = encoded.toString('latin1', from, encoded.indexOf(quote, from))
  return id.includes('\\') ? JSON.parse(`"${id}"`) : id
}

const quote = 0x22
const backslash = 0x5c
const openBrace = 0x7b
const closeBrace = 0x7d
const comma = 0x2c

/** The hybrid stamp of the entity's creation. */
export const encodedCreated = (encoded: Buffer): number => encoded.readDoubleBE(2)

/** Milliseconds since 1970 of the entity's last change. */
export const encodedModifiedMs = (encoded: Buffer): number => encoded.readDoubleBE(10)

/** Returns the same entity with another creation stamp. */
export function createdAt(encoded: Buffer, created: number): Buffer {
  const other = Buffer.from(encoded)
  other.writeDoubleBE(created, 2)
  return other
}

/** Milliseconds since 1970 when the entity is to be removed; undefined for a regular one. */
export function encodedExpiresMs(encoded: Buffer): number | undefined {
  const ms = encoded.readDoubleBE(18)
  return Number.isNaN(ms) ? undefined : ms
}

/** The correlator root of the last change. */
export function encodedRoot(encoded: Buffer): string {
  const at = headBytes + encoded.readUInt16BE(34)
  return encoded.toString('utf8', at, at + encoded.readUInt16BE(36))
}

interface StoredAttribute {
  readonly type: string
  readonly value: Json
  readonly metadata: Readonly<Record<string, Metadata>>
}

const recordsAtOf = (encoded: Buffer): number => headBytes + encoded.readUInt16BE(34) + encoded.readUInt16BE(36)

/** Decodes an encoded entity. */
export function decodeEntity(encoded: Buffer): Entity {
  assertVersion('a stored entity', encoded[0], version)
  const jsonAt = encoded.readUInt32BE(30)
  const json = JSON.parse(encoded.toString('utf8', jsonAt)) as Record<string, unknown>
  const attributes = new Map<string, Attribute>()
  let at = recordsAtOf(encoded)
  for (const name of Object.keys(json)) {
    if (name === 'id' || name === 'type') continue
    const attribute = attributeOf(json[name] as StoredAttribute, encoded, at)
    const isPlain = name === expiryAttribute && isDateType(attribute.type)
    attributes.set(name, isPlain ? { ...attribute, isPlain } : attribute)
    at += recordBytes
  }
  assert.equal(attributes.size, encoded.readUInt32BE(26), 'an encoded entity has other attributes than records of them')
  if (encoded[1]! & flagHidden) attributes.set(expiryAttribute, hiddenOf(encoded, at))
  return entityOf(encoded, json['id'] as string, json['type'] as string, attributes)
}

/** The attributes of an entity that a caller needs. */
export class Wanted {
  private readonly names: readonly WantedName[]
  private readonly hidden: boolean
  private readonly locations: boolean
  private readonly types = new TypeNames()

  /** `locations`: also the attributes that may be locations, whatever their names. */
  constructor(names: ReadonlySet<string>, locations: boolean) {
    this.names = [...names].map(name => ({ name, bytes: Buffer.from(`${JSON.stringify(name)}:`) }))
    this.hidden = names.has(expiryAttribute)
    this.locations = locations
  }

  // [hot] For every entity when a view is built. Decoding the whole entity took three times as long.
  /** Returns the content of an encoded entity with only these attributes. */
  decode(encoded: Buffer): EntityContent {
    assertVersion('a stored entity', encoded[0], version)
    const jsonAt = encoded.readUInt32BE(30)
    const attributes = new Map<string, Attribute>()
    let at = recordsAtOf(encoded)
    let begin = endOfIdentity(encoded, jsonAt)
    for (let left = encoded.readUInt32BE(26); left > 0; left--) {
      const end = jsonAt + encoded.readUInt32BE(at + 12)
      const known = this.nameAt(encoded, begin + 1)
      const plain = known && this.numberAt(encoded, begin + 1 + known.bytes.length, end, at)
      if (plain) attributes.set(known.name, plain)
      else if (known || (this.locations && standsAt(encoded, endOfString(encoded, begin + 1), startOfLocation))) {
        const member = JSON.parse(`{${encoded.toString('utf8', begin + 1, end)}}`) as Record<string, StoredAttribute>
        for (const name of Object.keys(member)) attributes.set(name, attributeOf(member[name]!, encoded, at))
      }
      begin = end
      at += recordBytes
    }
    if (this.hidden && encoded[1]! & flagHidden) attributes.set(expiryAttribute, hiddenOf(encoded, at))
    return { attributes, created: encodedCreated(encoded), modifiedMs: encoded.readDoubleBE(10) }
  }

  private nameAt(encoded: Buffer, at: number): WantedName | undefined {
    for (const wanted of this.names) if (standsAt(encoded, at, wanted.bytes)) return wanted
    return undefined
  }

  /**
   * The attribute between two positions, if it is a plain number without metadata. Most attributes are, and need no
   * parser.
   */
  private numberAt(encoded: Buffer, from: number, end: number, recordAt: number): Attribute | undefined {
    if (!standsAt(encoded, from, startOfType)) return undefined
    const typeAt = from + startOfType.length
    const typeEnd = encoded.indexOf(quote, typeAt)
    const valueAt = typeEnd + startOfValue.length
    const valueEnd = end - endOfPlain.length
    if (valueEnd <= valueAt || !standsAt(encoded, typeEnd, startOfValue) || !standsAt(encoded, valueEnd, endOfPlain))
      return undefined
    const value = decimalAt(encoded, valueAt, valueEnd)
    if (Number.isNaN(value)) return undefined
    const type = this.types.at(encoded, typeAt, typeEnd)
    return type === undefined ? undefined : { type, value, metadata: noMetadata, ...timesAt(encoded, recordAt) }
  }
}

/** Positions at which names are remembered. */
const knownNamesMax = 64

/**
 * Encoded entities as a reader sees them that does not see every attribute. Most entities that follow each other have
 * the same names at the same positions, so a name is compared with the last one there before it becomes a text.
 */
export class SeenMembers {
  private readonly known: { readonly bytes: Uint8Array; readonly isSeen: boolean }[] = []

  constructor(private readonly sees: (name: string) => boolean) {}

  // [hot] For every entity of an answer with hidden attributes. To decode and render the entity took ten times as long.
  /** The normalized JSON of what is seen, of an entity whose JSON `isAnswer`. */
  jsonOf(encoded: Buffer): StoredJson {
    assertVersion('a stored entity', encoded[0], version)
    const jsonAt = encoded.readUInt32BE(30)
    const runs: number[] = []
    let length = 0
    let from = jsonAt
    let begin = endOfIdentity(encoded, jsonAt)
    let at = recordsAtOf(encoded)
    const count = encoded.readUInt32BE(26)
    for (let nth = 0; nth < count; nth++) {
      const end = jsonAt + encoded.readUInt32BE(at + 12)
      if (!this.isSeen(encoded, begin + 1, nth)) {
        if (begin > from) runs.push(from, begin)
        length += begin - from
        from = end
      }
      begin = end
      at += recordBytes
    }
    runs.push(from, encoded.length)
    return new StoredJson(encoded, runs, length + encoded.length - from)
  }

  private isSeen(encoded: Buffer, at: number, nth: number): boolean {
    const known = this.known[nth]
    if (known && standsAt(encoded, at, known.bytes)) return known.isSeen
    const bytes = encoded.subarray(at, endOfString(encoded, at))
    const isSeen = this.sees(JSON.parse(bytes.toString()) as string)
    if (nth < knownNamesMax) this.known[nth] = { bytes: Buffer.from(bytes), isSeen }
    return isSeen
  }
}

interface WantedName {
  readonly name: string
  /** The name as it is in the JSON, with the colon after it. */
  readonly bytes: Uint8Array
}

const startOfType = Buffer.from('{"type":"')
const startOfValue = Buffer.from('","value":')
const endOfPlain = Buffer.from(',"metadata":{}}')

/** Remembers the name of the last type: the next entity nearly always has the same. */
class TypeNames {
  private bytes: Uint8Array = Buffer.alloc(0)
  private text = ''

  /** undefined: the name holds an escape. */
  at(encoded: Buffer, from: number, to: number): string | undefined {
    if (to - from === this.bytes.length && standsAt(encoded, from, this.bytes)) return this.text
    const bytes = encoded.subarray(from, to)
    if (bytes.includes(backslash)) return undefined
    this.bytes = Buffer.from(bytes)
    this.text = bytes.toString()
    return this.text
  }
}

/** The bytes after the name of an attribute that may be a location. */
const startOfLocation = Buffer.from(':{"type":"geo:')

function standsAt(encoded: Buffer, at: number, bytes: Uint8Array): boolean {
  for (let i = 0; i < bytes.length; i++) if (encoded[at + i] !== bytes[i]) return false
  return true
}

/** The position after the string that begins at `at`; after the encoded entity if the string has no end. */
function endOfString(encoded: Buffer, at: number): number {
  for (at++; encoded[at] !== quote && at < encoded.length; at++) if (encoded[at] === backslash) at++
  return at + 1
}

/** The position of the attributes: after `{"id":"..","type":".."`. */
function endOfIdentity(encoded: Buffer, jsonAt: number): number {
  const behindId = endOfString(encoded, jsonAt + '{"id":'.length)
  return endOfString(encoded, behindId + ',"type":'.length)
}

function entityOf(encoded: Buffer, id: string, type: string, attributes: ReadonlyMap<string, Attribute>): Entity {
  return { id, type, attributes, created: encodedCreated(encoded), modifiedMs: encoded.readDoubleBE(10) }
}

/** The hidden attribute. Its record, at `recordAt`, is the last one. */
function hiddenOf(encoded: Buffer, recordAt: number): Attribute {
  const stored = JSON.parse(
    encoded.toString('utf8', recordAt + recordBytes, encoded.readUInt32BE(30)),
  ) as StoredAttribute
  return attributeOf(stored, encoded, recordAt)
}

function attributeOf(stored: StoredAttribute, encoded: Buffer, recordAt: number): Attribute {
  const names = Object.keys(stored.metadata)
  return {
    type: stored.type,
    value: stored.value,
    metadata: names.length === 0 ? noMetadata : new Map(names.map(name => [name, stored.metadata[name] as Metadata])),
    ...timesAt(encoded, recordAt),
  }
}

/** The times of creation and last change of an attribute. */
const timesAt = (encoded: Buffer, recordAt: number): Pick<Attribute, 'createdMs' | 'modifiedMs'> => ({
  createdMs: encoded.readUIntBE(recordAt, 6),
  modifiedMs: encoded.readUIntBE(recordAt + 6, 6),
})
