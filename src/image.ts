// An image: one entity as bytes, the form in which it is stored, travels between nodes, and (most often) is answered.
//
//   0  u8   version, 1
//   1  u8   flags: 1 the JSON is the normalized answer as it is; 2 a hidden `dateExpires` stands before the JSON
//   2  f64  created, hybrid stamp            10 f64  modified, ms
//  18  f64  expires, ms; NaN: never          26 u32  number of attributes in the JSON
//  30  u32  where the JSON begins            34 u16  length of the type    36 u16  length of the correlator root
//  38  type, correlator root, then per attribute (the hidden one last) created and modified as u48 ms,
//      then the hidden attribute as [JSON], then the entity as normalized JSON
//
// So a plain read needs no parsing, and what indexes and expiry need stands at fixed places.

import assert from 'node:assert/strict'
import { type Attribute, type Entity, expiryAttribute, isDateType, type Metadata, noMetadata } from './domain/entity.js'
import type { Json } from './domain/json.js'
import { JsonWriter } from './domain/json-writer.js'
import { writeStored, writeStoredAttribute } from './domain/representation.js'
import { expiresMs } from './domain/update.js'

const version = 1
const flagAsIs = 1
const flagHidden = 2
const headBytes = 38
const timesBytes = 12
/** Characters of a correlator root that are kept. */
const rootLengthMax = 255

/** Where images are put together before they get their own memory. */
const writer = new JsonWriter()

// [hot] Once per accepted change.
/** The image of an entity. `root` is the correlator root of the request that last changed it (subscriptions.md §6.8). */
export function encodeImage(entity: Entity, root: string): Buffer {
  const hidden = hiddenAttribute(entity)
  writer.restart(headBytes)
  writer.utf8(entity.type)
  const typeBytes = writer.length - headBytes
  writer.utf8(root.length > rootLengthMax ? root.slice(0, rootLengthMax).toWellFormed() : root)
  const timesAt = writer.length
  writer.length += entity.attributes.size * timesBytes
  if (hidden) writeStoredAttribute(hidden, writer)
  writer.asIs = true // the hidden attribute is not part of the answer
  const jsonAt = writer.length
  writeStored(entity, writer)
  const image = Buffer.allocUnsafe(writer.length)
  image.set(writer.bytes.subarray(0, writer.length))
  image[0] = version
  image[1] = (writer.asIs ? flagAsIs : 0) | (hidden ? flagHidden : 0)
  image.writeDoubleBE(entity.created, 2)
  image.writeDoubleBE(entity.modifiedMs, 10)
  image.writeDoubleBE(expiresMs(entity) ?? Number.NaN, 18)
  image.writeUInt32BE(entity.attributes.size - (hidden ? 1 : 0), 26)
  image.writeUInt32BE(jsonAt, 30)
  image.writeUInt16BE(typeBytes, 34)
  image.writeUInt16BE(timesAt - headBytes - typeBytes, 36)
  let at = timesAt
  for (const attribute of entity.attributes.values()) {
    if (attribute === hidden) continue
    at = writeTimes(image, attribute, at)
  }
  if (hidden) writeTimes(image, hidden, at)
  return image
}

function writeTimes(image: Buffer, attribute: Attribute, at: number): number {
  image.writeUIntBE(attribute.createdMs, at, 6)
  image.writeUIntBE(attribute.modifiedMs, at + 6, 6)
  return at + timesBytes
}

function hiddenAttribute(entity: Entity): Attribute | undefined {
  const attribute = entity.attributes.get(expiryAttribute)
  return attribute && isDateType(attribute.type) ? attribute : undefined
}

/** The entity's normalized JSON, `dateExpires` of a transient entity left out. Shares memory with the image. */
export const imageJson = (image: Buffer): Buffer => image.subarray(image.readUInt32BE(30))

/** Whether `imageJson` is the normalized answer, nothing to be rendered again. */
export const isAnswer = (image: Buffer): boolean => (image[1]! & flagAsIs) !== 0

export const imageType = (image: Buffer): string =>
  image.toString('latin1', headBytes, headBytes + image.readUInt16BE(34))

/** The id stands first in the JSON. */
export function imageId(image: Buffer): string {
  const from = image.readUInt32BE(30) + '{"id":"'.length
  const id = image.toString('latin1', from, image.indexOf(quote, from))
  return id.includes('\\') ? JSON.parse(`"${id}"`) : id
}

const quote = 0x22

/** The hybrid stamp of the entity's creation. */
export const imageCreated = (image: Buffer): number => image.readDoubleBE(2)

/** Milliseconds since 1970 when the entity is to be removed; undefined for a regular one. */
export function imageExpiresMs(image: Buffer): number | undefined {
  const ms = image.readDoubleBE(18)
  return Number.isNaN(ms) ? undefined : ms
}

/** The correlator root of the last change. */
export function imageRoot(image: Buffer): string {
  const at = headBytes + image.readUInt16BE(34)
  return image.toString('utf8', at, at + image.readUInt16BE(36))
}

interface StoredAttribute {
  readonly type: string
  readonly value: Json
  readonly metadata: Readonly<Record<string, Metadata>>
}

/** The entity of an image; with `isWanted` only the attributes that it names. */
export function decodeImage(image: Buffer, isWanted?: (name: string, type: string) => boolean): Entity {
  assert.equal(image[0], version, 'an image of an unknown version')
  const jsonAt = image.readUInt32BE(30)
  const json = JSON.parse(image.toString('utf8', jsonAt)) as Record<string, unknown>
  const attributes = new Map<string, Attribute>()
  let count = 0
  let at = headBytes + image.readUInt16BE(34) + image.readUInt16BE(36)
  for (const name of Object.keys(json)) {
    if (name === 'id' || name === 'type') continue
    const stored = json[name] as StoredAttribute
    if (!isWanted || isWanted(name, stored.type)) attributes.set(name, attributeOf(stored, image, at))
    at += timesBytes
    count++
  }
  assert.equal(count, image.readUInt32BE(26), 'an image whose attributes do not match their times')
  if (image[1]! & flagHidden) {
    const hidden = JSON.parse(image.toString('utf8', at + timesBytes, jsonAt)) as StoredAttribute
    attributes.set(expiryAttribute, attributeOf(hidden, image, at))
  }
  return {
    id: json['id'] as string,
    type: json['type'] as string,
    attributes,
    created: imageCreated(image),
    modifiedMs: image.readDoubleBE(10),
  }
}

function attributeOf(stored: StoredAttribute, image: Buffer, timesAt: number): Attribute {
  const names = Object.keys(stored.metadata)
  return {
    type: stored.type,
    value: stored.value,
    metadata: names.length === 0 ? noMetadata : new Map(names.map(name => [name, stored.metadata[name] as Metadata])),
    createdMs: image.readUIntBE(timesAt, 6),
    modifiedMs: image.readUIntBE(timesAt + 6, 6),
  }
}
