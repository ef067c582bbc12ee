// Entities, attributes and metadata: their types, and how they are parsed from the body of a request.
//
// Parsing makes all checks that depend only on the request (docs/interface/entities.md,
// docs/interface/updates.md#create, docs/interface/updates.md#one-entity, docs/interface/updates.md#plain-values,
// docs/interface/entities.md#expiry). update.ts makes the checks that also depend on the stored entity. Dates get their
// stored and rendered form here.
//
// Not here: bytes to JSON (http/body.ts), the effect of an update (update.ts), JSON of an answer (representation.ts).

import { parseDateTime, renderDateTime } from '../date-time.js'
import { isArray, isObject, type Json, type JsonObject, valueHasForbiddenCharacters } from '../json.js'
import { attributesMax, identifierLengthMax, metadataMax, valueDepthMax } from '../limits.js'
import { ownText } from '../recent.js'
import { accepted, type IdentifierPlace, type Refusal, type Result, refusals, refused } from '../refusal.js'
import { operatorOf, type UpdateOperator } from './operators.js'

export interface Metadata {
  readonly type: string
  readonly value: Json
}

export type MetadataMap = ReadonlyMap<string, Metadata>

export const noMetadata: MetadataMap = new Map()

/** A stored attribute. Times are milliseconds since 1970. */
export interface Attribute {
  readonly type: string
  readonly value: Json
  readonly metadata: MetadataMap
  readonly createdMs: number
  readonly modifiedMs: number
  /**
   * Of a `dateExpires` with a date type: the name had no meaning in the system that it came from. It is an ordinary
   * attribute until it is updated (docs/interface/entities.md#builtin-attributes). No request sets this.
   */
  readonly isPlain?: true | undefined
}

/** A stored entity. Immutable. */
export interface Entity extends EntityContent {
  readonly id: string
  readonly type: string
}

/** The parts of an entity that queries read besides its identity. */
export interface EntityContent {
  /** In the order in which they were added. */
  readonly attributes: ReadonlyMap<string, Attribute>
  /** Hybrid clock stamp (stamp.ts): unique on its node, and the order of creation. */
  readonly created: number
  readonly modifiedMs: number
}

/** An attribute in a request. */
export interface WantedAttribute {
  readonly type: string
  /** The new value, or the operator object that computes it. */
  readonly value: Json
  readonly operator?: UpdateOperator | undefined
  /**
   * undefined: not mentioned. An empty map requests the removal of all (docs/interface/updates.md#metadata-in-updates).
   */
  readonly metadata: MetadataMap | undefined
}

export interface WantedEntity {
  readonly id: string
  readonly type: string
  readonly attributes: ReadonlyMap<string, WantedAttribute>
}

/** The body of a request as JSON, with facts that a JSON value alone does not show. */
export interface Payload {
  readonly value: Json
  /** The position of each duplicate key: the keys from the root to it, array indexes as numbers. */
  readonly duplicates: readonly (readonly (string | number)[])[]
  /** Whether the document nests deeper than a single value may. Then values must be measured. */
  readonly deep: boolean
}

/** The type of an entity when a creation has no type. */
export const defaultEntityType = 'Thing'

/** The attribute that makes an entity transient (docs/interface/entities.md#expiry). */
export const expiryAttribute = 'dateExpires'

/** The type of an attribute or metadata without a type in the request (docs/interface/entities.md#default-types). */
export function defaultType(value: Json): string {
  switch (typeof value) {
    case 'string':
      return 'Text'
    case 'number':
      return 'Number'
    case 'boolean':
      return 'Boolean'
    default:
      return value === null ? 'None' : 'StructuredValue'
  }
}

/** Whether values of the type are dates (docs/interface/entities.md#special-types). */
export const isDateType = (type: string): boolean => type === 'DateTime' || type === 'ISO8601'

/** A value as a date type stores it: null, or the rendered date; undefined when it is not a date. */
export function asStoredDate(value: Json): string | null | undefined {
  if (value === null) return null
  if (typeof value !== 'string') return undefined
  const ms = parseDateTime(value)
  return ms === undefined ? undefined : renderDateTime(ms)
}

/**
 * Whether the metadata excludes an attribute from being the entity's location (docs/interface/geography.md#location).
 */
export const ignoresType = (metadata: MetadataMap | undefined): boolean => metadata?.get('ignoreType')?.value === true

/** The entity of a `POST /v2/entities` (docs/interface/updates.md#create). */
export function parseEntity(payload: Payload, keyValues: boolean): Result<WantedEntity> {
  const json = payload.value
  if (!isObject(json)) return refused(refusals.notJson)
  const duplicate = refuseDuplicates(payload, 'entity', keyValues)
  if (duplicate) return refused(duplicate)
  const keys = Object.keys(json)
  const id = json['id'] ?? (Object.hasOwn(json, 'id') ? null : '')
  const type = json['type'] ?? (Object.hasOwn(json, 'type') ? null : defaultEntityType)
  if (typeof id !== 'string') return refused(refusals.entityIdKind)
  if (typeof type !== 'string') return refused(refusals.entityTypeKind)
  const refusal = checkIdentifier('entity id', id) ?? checkIdentifier('entity type', type)
  if (refusal) return refused(refusal)
  const attributes = parseEach(json, keys, payload.deep, keyValues)
  return attributes.ok ? accepted({ id, type, attributes: attributes.value }) : attributes
}

/** The attributes of a `POST`, `PATCH` or `PUT` on `/attrs` (docs/interface/updates.md#one-entity). */
export function parseAttributes(payload: Payload, keyValues: boolean): Result<ReadonlyMap<string, WantedAttribute>> {
  const json = payload.value
  if (!isObject(json)) return refused(refusals.notJson)
  const duplicate = refuseDuplicates(payload, 'entity', keyValues)
  if (duplicate) return refused(duplicate)
  const keys = Object.keys(json)
  if (keys.length === 0) return refused(refusals.emptyPayload)
  if (Object.hasOwn(json, 'id')) return refused(refusals.entityIdInPayload)
  if (Object.hasOwn(json, 'type')) return refused(refusals.entityTypeInPayload)
  return parseEach(json, keys, payload.deep, keyValues)
}

/** The attribute of a `PUT .../attrs/{name}` (docs/interface/updates.md#single-attributes). */
export function parseSingleAttribute(name: string, payload: Payload): Result<WantedAttribute> {
  const json = payload.value
  if (!isObject(json)) return refused(refusals.notJson)
  const duplicate = refuseDuplicates(payload, 'attribute', false)
  if (duplicate) return refused(duplicate)
  return parseAttribute(name, json, payload.deep)
}

/**
 * The JSON value of a `PUT .../value` (docs/interface/updates.md#plain-values). update.ts checks it against the stored
 * type.
 */
export function parseValue(payload: Payload): Result<Json> {
  const duplicate = refuseDuplicates(payload, 'value', false)
  if (duplicate) return refused(duplicate)
  if (payload.deep && isTooDeep(payload.value)) return refused(refusals.nestedTooDeep(valueDepthMax))
  return accepted(payload.value)
}

/**
 * The value of a text (docs/interface/updates.md#plain-values). Text without quotes is refused. Blanks and line breaks
 * are not trimmed. There are no escapes: the text between the outer quotes is the string.
 */
export function parseTextValue(text: string): Result<Json> {
  if (text.startsWith('"')) {
    if (text.length < 2 || !text.endsWith('"')) return refused(refusals.textUnclosed)
    return accepted(text.slice(1, -1))
  }
  const word = words.get(text)
  if (word !== undefined) return accepted(word)
  if (!jsonNumber.test(text)) return refused(refusals.textUnknown)
  const n = Number(text)
  return Number.isFinite(n) ? accepted(n) : refused(refusals.textUnknown)
}

const words: ReadonlyMap<string, Json> = new Map<string, Json>([
  ['true', true],
  ['True', true],
  ['TRUE', true],
  ['false', false],
  ['False', false],
  ['FALSE', false],
  ['null', null],
  ['Null', null],
  ['NULL', null],
])

const jsonNumber = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/

/** The attributes of an entity in a payload, without `id` and `type` (docs/interface/entities.md#attributes). */
export function parseEach(
  json: JsonObject,
  keys: readonly string[],
  deep: boolean,
  keyValues: boolean,
): Result<ReadonlyMap<string, WantedAttribute>> {
  const tooMany = keys.length > attributesMax ? refuseAttributes(json, keys.length) : undefined
  if (tooMany) return refused(tooMany)
  const attributes = new Map<string, WantedAttribute>()
  for (const name of keys) {
    if (name === 'id' || name === 'type') continue
    const refusal = checkIdentifier('attribute name', name)
    if (refusal) return refused(refusal)
    const value = json[name] as Json
    const attribute = keyValues
      ? parseTyped(name, defaultType(value), value, undefined, deep)
      : parseAttribute(name, value, deep)
    if (!attribute.ok) return attribute
    attributes.set(name, attribute.value)
  }
  return accepted(attributes)
}

/** The refusal of more attributes than an entity may have. `id` and `type` do not count. */
export function refuseAttributes(json: JsonObject, members: number): Refusal | undefined {
  const count = members - Number(Object.hasOwn(json, 'id')) - Number(Object.hasOwn(json, 'type'))
  return count > attributesMax ? refusals.tooMany('attributes', count, attributesMax) : undefined
}

/** An attribute in normalized form (docs/interface/entities.md#attributes). */
function parseAttribute(name: string, json: Json, deep: boolean): Result<WantedAttribute> {
  if (!isObject(json)) return refused(refusals.attributeNotObject)
  let type: string | undefined
  let value: Json = null
  let metadata: MetadataMap | undefined
  for (const key in json) {
    const member = json[key] as Json
    if (key === 'value') {
      value = member
    } else if (key === 'type') {
      if (typeof member !== 'string') return refused(refusals.attributeTypeNotString)
      const refusal = checkIdentifier('attribute type', member)
      if (refusal) return refused(refusal)
      type = member
    } else if (key === 'metadata') {
      const parsed = parseMetadata(member, deep)
      if (!parsed.ok) return parsed
      metadata = parsed.value
    } else {
      return refused(refusals.attributeUnknownKey)
    }
  }
  return parseTyped(name, type ?? defaultType(value), value, metadata, deep)
}

/**
 * The rules that connect name, type and value (docs/interface/entities.md#forbidden-characters,
 * docs/interface/entities.md#special-types, docs/interface/entities.md#expiry).
 */
function parseTyped(
  name: string,
  type: string,
  value: Json,
  metadata: MetadataMap | undefined,
  deep: boolean,
): Result<WantedAttribute> {
  if (deep && isTooDeep(value)) return refused(refusals.nestedTooDeep(valueDepthMax))
  if (type !== 'TextUnrestricted' && valueHasForbiddenCharacters(value)) return refused(refusals.charactersInValue)
  if (isDateType(type)) {
    const date = asStoredDate(value)
    if (date === undefined) return refused(refusals.date)
    return accepted({ type, value: date, metadata })
  }
  if (name === expiryAttribute) return refused(refusals.expiryType)
  if (type === 'geo:json' && value !== null && !isObject(value) && !ignoresType(metadata))
    return refused(refusals.geoJsonKind)
  return accepted({ type, value, operator: operatorOf(value), metadata })
}

function parseMetadata(json: Json, deep: boolean): Result<MetadataMap> {
  if (!isObject(json)) return refused(refusals.metadataNotObject)
  const names = Object.keys(json)
  if (names.length === 0) return accepted(noMetadata)
  if (names.length > metadataMax) return refused(refusals.tooMany('metadata', names.length, metadataMax))
  const metadata = new Map<string, Metadata>()
  for (const name of names) {
    const refusal = checkIdentifier('metadata name', name)
    if (refusal) return refused(refusal)
    const element = parseMetadataElement(json[name] as Json, deep)
    if (!element.ok) return element
    metadata.set(name, element.value)
  }
  return accepted(metadata)
}

function parseMetadataElement(json: Json, deep: boolean): Result<Metadata> {
  if (!isObject(json)) return refused(refusals.metadataElementNotObject)
  let type: string | undefined
  let value: Json = null
  for (const key in json) {
    const member = json[key] as Json
    if (key === 'value') {
      value = member
    } else if (key === 'type') {
      if (typeof member !== 'string') return refused(refusals.metadataTypeNotString)
      const refusal = checkIdentifier('metadata type', member)
      if (refusal) return refused(refusal)
      type = member
    } else {
      return refused(refusals.metadataUnknownKey)
    }
  }
  if (deep && isTooDeep(value)) return refused(refusals.nestedTooDeep(valueDepthMax))
  if (valueHasForbiddenCharacters(value)) return refused(refusals.charactersInMetadataValue)
  if (type !== undefined && isDateType(type)) {
    const date = asStoredDate(value)
    return date === undefined ? refused(refusals.date) : accepted({ type, value: date })
  }
  return accepted({ type: type ?? defaultType(value), value })
}

/** Whether the value nests deeper than a value may (docs/interface/requests.md#bodies). */
export function isTooDeep(value: Json, levels = 0): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === valueDepthMax) return true
  for (const item of isArray(value) ? value : Object.values(value)) if (isTooDeep(item, levels + 1)) return true
  return false
}

/**
 * The refusal for the first duplicate key that is not allowed (docs/interface/entities.md#duplicate-names). `root`: the
 * kind of the document, which gives a path its meaning. `id`, `type` of an entity and `type` of an attribute may occur
 * twice; the last one wins.
 */
export function refuseDuplicates(
  payload: Pick<Payload, 'duplicates'>,
  root: 'entity' | 'attribute' | 'value',
  keyValues: boolean,
): Refusal | undefined {
  for (const found of payload.duplicates) {
    // The path as it would be in a normalized entity: attribute, then value, type or metadata, then deeper.
    const path: readonly (string | number)[] =
      root === 'value'
        ? ['', 'value', ...found]
        : root === 'attribute'
          ? ['', ...found]
          : keyValues && found.length > 1
            ? [found[0] as string, 'value', ...found.slice(1)]
            : found
    const [attribute, member] = path
    const key = String(path.at(-1))
    if (path.length === 1) {
      if (attribute !== 'id' && attribute !== 'type') return refusals.attributeTwice(key)
    } else if (path.length === 2) {
      if (member === 'value') return refusals.attributeValueTwice
      if (member === 'metadata') return refusals.keyTwice(key, '/')
    } else {
      const above = path.slice(2, -1).map(step => `${step}/`)
      return refusals.keyTwice(key, `/${above.join('')}`)
    }
  }
  return undefined
}

// Identifiers: entity ids, entity types, and names and types of attributes and metadata
// (docs/interface/entities.md#identifiers)

/**
 * Printable ASCII without white space, & ? / # and the eight forbidden characters. A backslash is allowed, so
 * identifiers need escaping inside JSON.
 */
const identifierSyntax = /^[!$%*+,\-.0-9:@A-Z[\\\]^_`a-z{|}~]*$/

/** The reason why the text cannot be an identifier; undefined when it can. */
export function checkIdentifier(place: IdentifierPlace, text: string): Refusal | undefined {
  // [hot] Some ten times per entity. Names and types are few, and this lookup takes a quarter of the time of the
  // checks.
  if (legal.has(text)) return undefined
  if (text.length === 0) return refusals.identifierTooShort(place)
  if (!identifierSyntax.test(text)) return refusals.identifierCharacters(place)
  if (text.length > identifierLengthMax) return refusals.identifierTooLong(place, text.length, identifierLengthMax)
  if (place !== 'entity id') remember(text)
  return undefined
}

/** A cache of names and types that passed the checks. */
const legal = new Set<string>()
/** The limit of cached texts; beyond it all are forgotten at once. */
const legalMax = 2000

function remember(text: string): void {
  if (legal.size >= legalMax) legal.clear()
  // The text may be a part of a list, which it would keep in memory.
  legal.add(ownText(text))
}

/** Whether all characters are allowed in an identifier, whatever the length. */
export const hasIdentifierCharacters = (text: string): boolean => identifierSyntax.test(text)
