// The line of an entity (docs/operations/moving.md#the-file): read and written.
//
//   {"entity":{"id":"Room1","type":"Room","temperature":{"type":"Number","value":21,"metadata":{}}},
//    "tenant":"city","servicePath":"/a","dateCreated":"...","dateModified":"...","order":17,
//    "times":{"temperature":["...","..."]},"expires":{"type":"DateTime","value":"...","metadata":{}},"correlator":"..."}
//
// `entity` is the normalized entity in full precision, as it is stored. In it a `dateExpires` is a plain attribute;
// `expires` is the one that ends the entity. `order` is the rest of the creation's stamp. An attribute missing in
// `times` is as old as the entity.
//
// Times are written in UTC with milliseconds, and read as dates of the interface since 1970 (encoded-entity.ts has no
// room for others).
//
// The reader accepts more names than the interface: entities that are old, or come from another broker, may have names
// that no client could create today. It refuses lines that could not be stored, found or shown again.

import { parseDateTime, renderDateTime } from '../domain/date-time.js'
import {
  type Attribute,
  asStoredDate,
  defaultType,
  type Entity,
  expiryAttribute,
  isDateType,
  isTooDeep,
  type Metadata,
  noMetadata,
  type WantedAttribute,
} from '../domain/entities/entity.js'
import { isHidden } from '../domain/entities/representation.js'
import { createEntity } from '../domain/entities/update.js'
import { isObject, type Json, type JsonObject } from '../domain/json.js'
import { identifierLengthMax, valueDepthMax } from '../domain/limits.js'
import { accepted, type Refusal, type Result, refusals, refusalText, refused } from '../domain/refusal.js'
import { parseServicePaths, parseTenant } from '../domain/scope.js'
import { stampMs, stampOf, stampsPerMs } from '../domain/stamp.js'
import type { MovedEntity } from './moved.js'

/** Characters of a correlator root that are kept (encoded-entity.ts). */
const rootLengthMax = 255

const keys = [
  'entity',
  'tenant',
  'servicePath',
  'dateCreated',
  'dateModified',
  'order',
  'times',
  'expires',
  'correlator',
] as const

// [hot] Once per entity of an export.
export function writeEntity({ entity, tenant, path, root, isStamped }: MovedEntity): string {
  const { created, modifiedMs, attributes } = entity
  const createdMs = stampMs(created)
  const shown: [string, unknown][] = [
    ['id', entity.id],
    ['type', entity.type],
  ]
  const times: [string, readonly [string, string]][] = []
  let expires: unknown
  for (const [name, attribute] of attributes) {
    const { type, value, metadata } = attribute
    const member = { type, value, metadata: Object.fromEntries(metadata) }
    if (isHidden(name, attribute)) expires = member
    else shown.push([name, member])
    if (attribute.createdMs !== createdMs || attribute.modifiedMs !== modifiedMs)
      times.push([name, [time(attribute.createdMs), time(attribute.modifiedMs)]])
  }
  return JSON.stringify({
    entity: Object.fromEntries(shown),
    tenant,
    servicePath: path,
    dateCreated: time(createdMs),
    dateModified: time(modifiedMs),
    order: isStamped ? created - createdMs * stampsPerMs : undefined,
    times: times.length === 0 ? undefined : Object.fromEntries(times),
    expires,
    correlator: root === '' ? undefined : root,
  })
}

/** The entity of a line, or a refusal. An entity without a time of creation gets `nowMs`. */
export function readEntity(json: JsonObject, nowMs: number): Result<MovedEntity> {
  const unknown = checkKeys(json, keys)
  if (unknown) return refused(unknown)
  const { entity, order, expires, times = {} } = json
  if (!isObject(entity)) return badLine('entity is not an object')
  const tenant = readTenant(json)
  if (!tenant.ok) return tenant
  const path = readPath(json, false)
  if (!path.ok) return path
  const root = optionalText(json, 'correlator')
  if (!root.ok) return root
  if (root.value.length > rootLengthMax) return badLine(`correlator has more than ${rootLengthMax} characters`)
  const created = readTime(json.dateCreated, 'dateCreated')
  if (!created.ok) return created
  const modified = readTime(json.dateModified, 'dateModified')
  if (!modified.ok) return modified
  if (order !== undefined && !isOrder(order)) return badLine(`order is not a whole number below ${stampsPerMs}`)
  if (!isObject(times)) return badLine('times is not an object')
  const isStamped = created.value !== undefined && order !== undefined
  const createdMs = created.value ?? nowMs
  const stamp = stampOf(createdMs) + (isStamped ? (order as number) : 0)
  const bare = readBare(entity, expires)
  if (!bare.ok) return bare
  const dated = withTimes(bare.value, stamp, modified.value ?? createdMs, times)
  if (!dated.ok) return dated
  return accepted({
    kind: 'entity',
    tenant: tenant.value,
    path: path.value,
    entity: dated.value,
    root: root.value,
    isStamped,
    hasCreated: created.value !== undefined,
    hasModified: modified.value !== undefined,
  })
}

const isOrder = (value: Json): value is number =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) < stampsPerMs

/** The entity without its times; the times in the result mean nothing. */
function readBare(json: JsonObject, expires: Json | undefined): Result<Entity> {
  const { id, type } = json
  if (!isName(id, 1) || !isAscii(id)) return badLine(`entity.id is not ASCII of 1 to ${identifierLengthMax} characters`)
  // An entity without a type comes from the interface's first version (docs/interface/types.md#all-types).
  if (!isName(type, 0) || !isAscii(type))
    return badLine(`entity.type is not ASCII of ${identifierLengthMax} characters at most`)
  const attributes = new Map<string, WantedAttribute>()
  for (const name of Object.keys(json)) {
    if (name === 'id' || name === 'type') continue
    if (!isName(name, 1)) return badLine(`the name of an attribute is not a text of 1 to ${identifierLengthMax} bytes`)
    const attribute = readAttribute(json[name] as Json, name)
    if (!attribute.ok) return attribute
    attributes.set(name, attribute.value)
  }
  const plain = attributes.get(expiryAttribute)
  if (expires !== undefined) {
    if (plain) return badLine('there is an expires, and an attribute dateExpires')
    const attribute = readAttribute(expires, 'expires')
    if (!attribute.ok) return attribute
    if (!isDateType(attribute.value.type)) return badLine('expires is not of type DateTime or ISO8601')
    attributes.set(expiryAttribute, attribute.value)
  }
  // Checks locations, and brings names into the order in which they are kept.
  const { change, refusal } = createEntity({ id, type, attributes }, 0)
  if (refusal) return refused(refusal)
  const made = change!.after!
  return accepted(plain && isDateType(plain.type) ? withPlainDate(made) : made)
}

function withPlainDate(entity: Entity): Entity {
  const attributes = new Map(entity.attributes)
  attributes.set(expiryAttribute, { ...(attributes.get(expiryAttribute) as Attribute), isPlain: true })
  return { ...entity, attributes }
}

const isName = (value: Json | undefined, bytesMin: number): value is string =>
  typeof value === 'string' &&
  value.length >= bytesMin &&
  value.length <= identifierLengthMax &&
  Buffer.byteLength(value) <= identifierLengthMax

// biome-ignore lint/suspicious/noControlCharactersInRegex: whatever is one byte can be kept
const ascii = /^[\x00-\x7f]*$/

/** Encoded entities have one byte for each character of the id and the type (encoded-entity.ts). */
const isAscii = (text: string): boolean => ascii.test(text)

function readAttribute(json: Json, name: string): Result<WantedAttribute> {
  if (!isObject(json)) return badLine(`${name} is not an object`)
  const unknown = checkKeys(json, ['type', 'value', 'metadata'])
  if (unknown) return refused(unknown)
  const { metadata = {} } = json
  if (!isObject(metadata)) return badLine(`${name}.metadata is not an object`)
  const own = readTyped(json, name)
  if (!own.ok) return own
  const elements = new Map<string, Metadata>()
  for (const [key, element] of Object.entries(metadata)) {
    const where = `${name}.metadata.${key}`
    if (!isName(key, 1))
      return badLine(`${name}: the name of metadata is not a text of 1 to ${identifierLengthMax} bytes`)
    if (!isObject(element)) return badLine(`${where} is not an object`)
    const unknownOfElement = checkKeys(element, ['type', 'value'])
    if (unknownOfElement) return refused(unknownOfElement)
    const typed = readTyped(element, where)
    if (!typed.ok) return typed
    elements.set(key, typed.value)
  }
  return accepted({ ...own.value, metadata: elements.size === 0 ? noMetadata : elements })
}

/** The type and value of an attribute or of metadata. */
function readTyped({ type, value = null }: JsonObject, where: string): Result<Metadata> {
  if (type !== undefined && !isName(type, 0))
    return badLine(`${where}.type is not a text of ${identifierLengthMax} bytes at most`)
  if (isTooDeep(value)) return refused(refusals.nestedTooDeep(valueDepthMax))
  if (type === undefined || !isDateType(type)) return accepted({ type: type ?? defaultType(value), value })
  const date = asStoredDate(value)
  return date === undefined ? badLine(`${where}: ${refusalText(refusals.date)}`) : accepted({ type, value: date })
}

function withTimes(entity: Entity, created: number, modifiedMs: number, times: JsonObject): Result<Entity> {
  const createdMs = stampMs(created)
  const attributes = new Map<string, Attribute>()
  for (const [name, attribute] of entity.attributes) attributes.set(name, { ...attribute, createdMs, modifiedMs })
  for (const [name, pair] of Object.entries(times)) {
    const attribute = attributes.get(name)
    if (!attribute) return badLine(`times.${name}: there is no such attribute`)
    if (!Array.isArray(pair) || pair.length !== 2) return badLine(`times.${name} is not a list of two times`)
    const from = readTime(pair[0], `times.${name}`)
    if (!from.ok) return from
    const to = readTime(pair[1], `times.${name}`)
    if (!to.ok) return to
    attributes.set(name, { ...attribute, createdMs: from.value as number, modifiedMs: to.value as number })
  }
  return accepted({ ...entity, attributes, created, modifiedMs })
}

// Fields that lines of all kinds have: scope, times, texts

/** A refused line, with a text of our own. */
export const badLine = (problem: string) => refused(refusals.badLine(problem))

export const time = renderDateTime

/** The refusal of a member that no code reads: it is most likely misspelt. */
export function checkKeys(json: JsonObject, known: readonly string[]): Refusal | undefined {
  for (const key of Object.keys(json))
    if (!known.includes(key)) return refusals.badLine(`unknown member ${JSON.stringify(key)}`)
  return undefined
}

/** '' when there is none. */
function optionalText(json: JsonObject, name: string): Result<string> {
  const value = json[name] ?? ''
  return typeof value === 'string' ? accepted(value) : badLine(`${name} is not a text`)
}

export function readTenant(json: JsonObject): Result<string> {
  const text = optionalText(json, 'tenant')
  return text.ok ? parseTenant(text.value) : text
}

/** The path of a line, `/` when there is none; only that of a subscription may end in `#`. */
export function readPath(json: JsonObject, mayBeWildcard: boolean): Result<string> {
  const text = json.servicePath ?? '/'
  if (typeof text !== 'string') return badLine('servicePath is not a text')
  const paths = parseServicePaths(text)
  if (!paths.ok) return paths
  const [path, ...others] = paths.value
  if (path === undefined || others.length > 0) return badLine('servicePath is not one path')
  if (path.endsWith('#') && !mayBeWildcard) return badLine('servicePath ends in #')
  return accepted(path)
}

export function readTime(json: Json | undefined, name: string): Result<number | undefined> {
  if (json === undefined) return accepted(undefined)
  const ms = typeof json === 'string' ? parseDateTime(json) : undefined
  return ms === undefined || ms < 0 ? badLine(`${name} is not a date and time since 1970`) : accepted(ms)
}
