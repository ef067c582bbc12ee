// The expected answer of a list, written from docs/interface/representations.md to docs/interface/queries.md#lists and
// docs/interface/batch.md#query as directly as possible: look at every entity, keep those that fit, sort them, cut the
// page, write it out.
//
// It shares no line with src/. A query comes as its meaning (a tree), not as its text: parsing is not tested here.
// Where the interface leaves the answer open (the order among objects), or it is too close to decide (distances), the
// result is marked so instead of guessed.
//
// Not here: the entities (reference-entities), geography (reference-geo), how a query is sent (reference-requests).

import {
  type Attribute,
  type Entity,
  instantOf,
  isDateType,
  isEqual,
  type Json,
  type JsonObject,
  type Metadata,
} from './reference-entities.js'
import { distanceTo, errorOf, fitsGeo, type Geo, placeOf } from './reference-geo.js'

/** A value of a right side. */
export interface Word {
  readonly quoted: boolean
  readonly text: string
}

export type Operator = '==' | '!=' | '>' | '<' | '>=' | '<=' | '~='

export interface Statement {
  readonly form: 'exists' | 'missing' | Operator
  readonly tokens: readonly string[]
  readonly shape: 'one' | 'list' | 'range'
  /** Of `~=` the pattern; none for `exists` and `missing`. */
  readonly words: readonly Word[]
  /** The same, in the form of the request. */
  readonly text: string
}

export interface Selector {
  readonly ids?: readonly string[]
  readonly idPattern?: string
  readonly types?: readonly string[]
  readonly typePattern?: string
}

export interface OrderKey {
  readonly name: string
  readonly descending: boolean
}

export interface Shown {
  readonly mode: 'normalized' | 'keyValues' | 'values' | 'unique'
  readonly attrs?: readonly string[]
  readonly metadata?: readonly string[]
}

export interface Query {
  readonly form: 'GET' | 'POST'
  /** Items of the header; undefined: no header. */
  readonly paths?: readonly string[]
  /** The entity fits any of them; empty: every entity. */
  readonly selectors: readonly Selector[]
  readonly q?: readonly Statement[]
  readonly mq?: readonly Statement[]
  readonly geo?: Geo
  /** The deprecated `attributes`: the entity has at least one of them. */
  readonly attributes?: readonly string[]
  readonly orderBy?: readonly OrderKey[]
  readonly limit?: number
  readonly offset?: number
  readonly counted: boolean
  readonly shown: Shown
}

export interface Expected {
  readonly total: number
  /** Entities of the queried paths and types. */
  readonly covered: number
  /** The entities that fit, in order. */
  readonly found: readonly Entity[]
  /** The body. */
  readonly text: string
  /** False: the interface leaves the order open, or it is too close to decide. */
  readonly isOrdered: boolean
}

/** The answer; undefined when no plain argument decides which entities fit. */
export function answerTo(query: Query, entities: Iterable<Entity>): Expected | undefined {
  const found: Entity[] = []
  let covered = 0
  for (const entity of entities) {
    if (!coversPath(query.paths, entity.path) || !mayBeType(query, entity.type)) continue
    covered++
    const fits = fitsQuery(query, entity)
    if (fits === undefined) return undefined
    if (fits) found.push(entity)
  }
  const { ordered, isOrdered } = inOrder(query, found)
  const { limit = 20, offset = 0 } = query
  const page = ordered.slice(offset, offset + limit).map(entity => shownEntity(entity, query.shown))
  return { total: found.length, covered, found: ordered, text: `[${page.join()}]`, isOrdered }
}

/** docs/interface/tenants-and-paths.md#service-paths */
export function coversPath(paths: readonly string[] = ['/#'], path: string): boolean {
  return paths.some(item => {
    if (item === '/#') return true
    if (!item.endsWith('/#')) return item === path
    const scope = item.slice(0, -'/#'.length)
    return path === scope || path.startsWith(`${scope}/`)
  })
}

const mayBeType = ({ selectors }: Query, type: string): boolean =>
  selectors.length === 0 || selectors.some(selector => meansType(selector, type))

const meansType = ({ types, typePattern }: Selector, type: string): boolean =>
  (!types || types.includes(type)) && (!typePattern || patternOf(typePattern).test(type))

const meansId = ({ ids, idPattern }: Selector, id: string): boolean =>
  (!ids || ids.includes(id)) && (!idPattern || patternOf(idPattern).test(id))

/** Whether the query selects the entity, whose path fits. */
export function fitsQuery(query: Query, entity: Entity): boolean | undefined {
  const { selectors, attributes, q = [], mq = [], geo } = query
  const { id, type } = entity
  if (selectors.length > 0 && !selectors.some(one => meansType(one, type) && meansId(one, id))) return false
  if (attributes && !attributes.some(name => entity.attributes.has(name))) return false
  if (!q.every(statement => holds('q', statement, entity))) return false
  if (!mq.every(statement => holds('mq', statement, entity))) return false
  return geo ? fitsGeo(geo, entity) : true
}

const patterns = new Map<string, RegExp>()

function patternOf(text: string): RegExp {
  const pattern = patterns.get(text) ?? new RegExp(text)
  patterns.set(text, pattern)
  return pattern
}

// The Simple Query Language (docs/interface/queries.md#simple-query-language)

/** The values at the path of a statement. */
export function targetsOf(language: 'q' | 'mq', { form, tokens }: Pick<Statement, 'form' | 'tokens'>, entity: Entity) {
  const [name = '', ...keys] = tokens
  const isBinary = form !== 'exists' && form !== 'missing'
  if (language === 'q' && isBinary && keys.length === 0) {
    if (name === 'dateCreated') return [entity.createdMs / 1000]
    if (name === 'dateModified') return [entity.modifiedMs / 1000]
    if (name === 'servicePath') return [entity.path]
  }
  const attribute = entity.attributes.get(name)
  if (!attribute) return []
  if (language === 'q') return under(comparable(attribute), keys)
  const [metadataName = '', ...deeper] = keys
  if (metadataName === 'dateCreated') return [attribute.createdMs / 1000]
  if (metadataName === 'dateModified') return [attribute.modifiedMs / 1000]
  const metadata = attribute.metadata.get(metadataName)
  return metadata ? under(comparable(metadata), deeper) : []
}

/** Dates compare as epoch seconds. */
const comparable = ({ type, value }: Metadata): Json =>
  isDateType(type) && typeof value === 'string' ? instantOf(value) / 1000 : value

/**
 * A number is an index in an array; any other key leads into each object of an array
 * (docs/interface/queries.md#operators).
 */
function under(value: Json, [key, ...rest]: readonly string[]): Json[] {
  if (key === undefined) return [value]
  if (isList(value)) {
    if (!/^\d+$/.test(key)) return value.flatMap(one => (isList(one) ? [] : under(one, [key, ...rest])))
    return Number(key) < value.length ? under(value[Number(key)]!, rest) : []
  }
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? under(value[key]!, rest) : []
}

const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value)

const meanings = new WeakMap<Word, null | boolean | number | string>()

/** The meaning of a value of a right side (docs/interface/queries.md#values): the first row that fits. */
function meaningOf(word: Word): null | boolean | number | string {
  const known = meanings.get(word)
  if (known !== undefined) return known
  const meaning = classified(word)
  meanings.set(word, meaning)
  return meaning
}

function classified({ quoted, text }: Word): null | boolean | number | string {
  if (quoted) return text
  if (/^[+-]?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(text)) return Number(text)
  if (/^\d{4}-\d\d-\d\d(T|$)/.test(text)) return instantOf(text) / 1000
  if (text === 'true' || text === 'false') return text === 'true'
  return text === 'null' ? null : text
}

function holds(language: 'q' | 'mq', statement: Statement, entity: Entity): boolean {
  const targets = targetsOf(language, statement, entity)
  if (statement.form === 'exists') return targets.length > 0
  if (statement.form === 'missing') return targets.length === 0
  if (targets.length === 0) return false
  const elements = targets.flatMap(target => (isList(target) ? [...target] : [target]))
  if (statement.form === '!=') return !elements.some(element => equals(statement, element))
  return elements.some(element => compares(statement, element))
}

function compares(statement: Statement, value: Json): boolean {
  const [word] = statement.words as readonly [Word]
  switch (statement.form) {
    case '==':
      return equals(statement, value)
    case '~=':
      return typeof value === 'string' && patternOf(word.text).test(value)
    case '>':
      return isSameKind(value, meaningOf(word)) && value! > meaningOf(word)!
    case '<':
      return isSameKind(value, meaningOf(word)) && value! < meaningOf(word)!
    case '>=':
      return isSameKind(value, meaningOf(word)) && value! >= meaningOf(word)!
    default:
      return isSameKind(value, meaningOf(word)) && value! <= meaningOf(word)!
  }
}

/** Only numbers and strings have an order; the language compares strings by code unit. */
const isSameKind = (a: Json, b: Json): boolean =>
  (typeof a === 'number' && typeof b === 'number') || (typeof a === 'string' && typeof b === 'string')

function equals({ shape, words }: Statement, value: Json): boolean {
  if (shape !== 'range') return words.some(word => meaningOf(word) === value)
  const [from, to] = words.map(meaningOf) as [number, number]
  return isSameKind(value, from) && (value as number) >= from && (value as number) <= to
}

// Order (docs/interface/queries.md#order, docs/interface/geography.md#order-by-distance)

function inOrder({ orderBy, geo }: Query, found: readonly Entity[]): { ordered: Entity[]; isOrdered: boolean } {
  if (!orderBy) return { ordered: [...found], isOrdered: true }
  const [first] = orderBy
  // A repeated key counts once.
  const isSole = orderBy.every(key => key.name === first?.name && key.descending === first.descending)
  if (isSole && first?.name === 'geo:distance' && !first.descending && geo?.relation === 'near')
    return byDistance(geo, found)
  let isOrdered = true
  const rows = found.map(entity => ({ entity, values: orderBy.map(key => sortValue(key, entity)) }))
  rows.sort((a, b) => {
    for (const [at, { descending }] of orderBy.entries()) {
      const order = compare(a.values[at]!, b.values[at]!)
      if (order === undefined) isOrdered = false
      else if (order !== 0) return descending ? -order : order
    }
    return 0
  })
  return { ordered: rows.map(({ entity }) => entity), isOrdered }
}

function byDistance(geo: Geo, found: readonly Entity[]): { ordered: Entity[]; isOrdered: boolean } {
  const rows = found.map(entity => {
    const place = placeOf(entity)!
    const metres = distanceTo(geo.place.positions[0]!, place)
    return { entity, metres, error: metres === 0 ? 0 : errorOf(place), at: String(place.positions) }
  })
  rows.sort((a, b) => a.metres - b.metres)
  const isOrdered = rows.every((row, at) => {
    const next = rows[at + 1]
    if (!next || row.at === next.at || next.metres === 0) return true
    return next.metres - row.metres > row.error + next.error
  })
  return { ordered: rows.map(({ entity }) => entity), isOrdered }
}

function sortValue({ name, descending }: OrderKey, entity: Entity): Json {
  if (name === 'id') return entity.id
  if (name === 'type') return entity.type
  if (name === 'servicePath') return entity.path
  if (name === 'dateCreated') return entity.createdMs
  if (name === 'dateModified') return entity.modifiedMs
  const attribute = entity.attributes.get(name)
  if (!attribute) return null
  const value = comparable(attribute)
  if (!isList(value) || value.length === 0) return value
  return value.reduce((best, one) => {
    const order = compare(one, best) ?? 0
    return (descending ? order > 0 : order < 0) ? one : best
  })
}

/**
 * Missing or null, number, string, object, array, boolean. Undefined for two objects or arrays that differ: their order
 * is left open.
 */
function compare(a: Json, b: Json): number | undefined {
  const [rankA, rankB] = [rankOf(a), rankOf(b)]
  if (rankA !== rankB) return rankA - rankB
  if (typeof a === 'object') return isEqual(a, b) ? 0 : undefined
  return a < b! ? -1 : a > b! ? 1 : 0
}

function rankOf(value: Json): number {
  if (value === null) return 0
  const rank = ['number', 'string', 'object', 'array', 'boolean'].indexOf(isList(value) ? 'array' : typeof value)
  return rank + 1
}

// The shown part (docs/interface/errors.md#form, docs/interface/representations.md)

/** An element of the answer. */
export function shownEntity(entity: Entity, shown: Shown): string {
  const attributes = shownAttributes(entity, shown)
  const named = attributes.map(([name, attribute]): [string, string] => [
    name,
    shown.mode === 'normalized' ? normalized(attribute, shown) : json(shownValue(attribute)),
  ])
  const bare = named.map(([, text]) => text)
  if (shown.mode === 'values') return `[${bare.join()}]`
  if (shown.mode === 'unique') return `[${[...new Set(bare)].join()}]`
  return members([['id', JSON.stringify(entity.id)], ['type', JSON.stringify(entity.type)], ...named])
}

type Builtin = Omit<Attribute, 'createdMs' | 'modifiedMs'> & Partial<Attribute>

const dateOf = (ms: number): Metadata => ({ type: 'DateTime', value: new Date(ms).toISOString() })

function shownAttributes(entity: Entity, { attrs }: Shown): (readonly [string, Builtin])[] {
  const metadata = new Map()
  const builtins = new Map<string, Builtin>([
    ['dateCreated', { ...dateOf(entity.createdMs), metadata }],
    ['dateModified', { ...dateOf(entity.modifiedMs), metadata }],
    ['servicePath', { type: 'Text', value: entity.path, metadata }],
  ])
  const users = [...entity.attributes]
  if (attrs === undefined) return users.filter(([name]) => name !== 'dateExpires')
  if (!attrs.includes('*'))
    return [...new Set(attrs)].flatMap(name => {
      const attribute = entity.attributes.get(name) ?? builtins.get(name)
      return attribute ? [[name, attribute] as const] : []
    })
  const expires = entity.attributes.get('dateExpires')
  if (expires) builtins.set('dateExpires', expires)
  return [
    ...users.filter(([name]) => name !== 'dateExpires'),
    ...['dateExpires', 'dateCreated', 'dateModified', 'servicePath'].flatMap(name => {
      const builtin = name !== 'dateExpires' && entity.attributes.has(name) ? undefined : builtins.get(name)
      return builtin && attrs.includes(name) ? [[name, builtin] as const] : []
    }),
  ]
}

function normalized(attribute: Builtin, { metadata: names }: Shown): string {
  const { createdMs, modifiedMs } = attribute
  const builtins = new Map<string, Metadata>()
  if (createdMs !== undefined) builtins.set('dateCreated', dateOf(createdMs))
  if (modifiedMs !== undefined) builtins.set('dateModified', dateOf(modifiedMs))
  const users = [...attribute.metadata.keys()]
  const wanted = names?.includes('*')
    ? [...users, ...[...builtins.keys()].filter(name => names.includes(name))]
    : (names ?? users)
  const elements = [...new Set(wanted)].flatMap((name): [string, string][] => {
    const element = attribute.metadata.get(name) ?? builtins.get(name)
    return element ? [[name, members(typeAndValue(element.type, element.value))]] : []
  })
  return members([...typeAndValue(attribute.type, shownValue(attribute)), ['metadata', members(elements)]])
}

const typeAndValue = (type: string, value: Json): [string, string][] => [
  ['type', JSON.stringify(type)],
  ['value', json(value)],
]

/** Of a Feature only the geometry, unless its type is ignored (docs/interface/geography.md#geojson). */
function shownValue({ type, value, metadata }: Builtin): Json {
  if (type !== 'geo:json' || value === null || metadata.get('ignoreType')?.value === true) return value
  const object = value as JsonObject
  return object.type === 'Feature' ? object.geometry! : object
}

const members = (named: readonly (readonly [string, string])[]): string =>
  `{${named.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join()}}`

/** A value as it is rendered: numbers have nine decimals at most (docs/interface/errors.md#form). */
function json(value: Json): string {
  if (typeof value === 'number') return Number.isInteger(value) ? String(value) : value.toFixed(9).replace(/\.?0+$/, '')
  if (isList(value)) return `[${value.map(json).join()}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  return members(Object.entries(value).map(([key, one]) => [key, json(one)]))
}
