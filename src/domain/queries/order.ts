// The order of a list: `orderBy` with its keys, and the comparison of values of different kinds
// (docs/interface/queries.md#order).
//
// `sortValues` reads the values of an entity once. The caller breaks ties by the order of creation.

import { parseDateTime } from '../date-time.js'
import { type Entity, isDateType } from '../entities/entity.js'
import { compare, isArray, type Json } from '../json.js'
import { orderKeysMax } from '../limits.js'
import { distanceTo, locationOf } from '../places/geo.js'
import type { GeoQuery } from '../places/geo-query.js'
import { accepted, type Result, refusals, refused } from '../refusal.js'
import { stampMs } from '../stamp.js'
import { epochSeconds } from './query-parser.js'

export interface OrderKey {
  readonly name: string
  readonly descending: boolean
}

/**
 * The keys of an `orderBy` parameter, none when it is absent; a leading `!` reverses one. A repeated key counts once.
 */
export function parseOrder(text: string | undefined): Result<readonly OrderKey[]> {
  const keys = new Map<string, OrderKey>()
  for (const word of text?.split(',') ?? []) {
    const descending = word.startsWith('!')
    // The same name in the other direction may matter: of an array it uses the other end.
    keys.set(word, keys.get(word) ?? { name: descending ? word.slice(1) : word, descending })
  }
  if (keys.size > orderKeysMax) return refused(refusals.orderKeysTooMany(keys.size, orderKeysMax))
  return accepted([...keys.values()])
}

/** The sort values of an entity: a value for each key, undefined for a missing one. */
export function sortValues(
  keys: readonly OrderKey[],
  entity: Entity,
  path: string,
  geo: GeoQuery | undefined,
): readonly (Json | undefined)[] {
  if (isByDistance(keys)) return [distance(entity, geo)]
  return keys.map(key => keyValue(key, entity, path))
}

/** Compares two entities by the keys; 0 when all values are equal. */
export function compareSortValues(
  keys: readonly OrderKey[],
  a: readonly (Json | undefined)[],
  b: readonly (Json | undefined)[],
): number {
  for (let i = 0; i < keys.length; i++) {
    const order = compare(a[i], b[i])
    if (order !== 0) return keys[i]!.descending ? -order : order
  }
  return 0
}

/**
 * `orderBy=geo:distance` counts as the only key and in this direction (docs/interface/geography.md#order-by-distance).
 */
export const isByDistance = (keys: readonly OrderKey[]): boolean =>
  keys.length === 1 && keys[0]!.name === 'geo:distance' && !keys[0]!.descending

/** Metres from the point of a `near`; without one all are equal, and the order is that of creation. */
function distance(entity: Entity, geo: GeoQuery | undefined): number {
  const location = geo?.relation === 'near' ? locationOf(entity) : undefined
  return geo && location ? distanceTo(geo, location) : 0
}

function keyValue({ name, descending }: OrderKey, entity: Entity, path: string): Json | undefined {
  switch (name) {
    case 'id':
      return entity.id
    case 'type':
      return entity.type
    case 'servicePath':
      return path
    case 'dateCreated':
      return epochSeconds(stampMs(entity.created))
    case 'dateModified':
      return epochSeconds(entity.modifiedMs)
    default:
      return attributeValue(entity, name, descending)
  }
}

/**
 * Dates are ordered among the numbers, and an array by its smallest (descending: largest) element. All objects are
 * equal, and so are all arrays within arrays: the interface defines no order for them, and comparing large ones would
 * be slow.
 */
function attributeValue(entity: Entity, name: string, descending: boolean): Json | undefined {
  const attribute = entity.attributes.get(name)
  if (!attribute) return undefined
  const { value, type } = attribute
  if (isDateType(type) && typeof value === 'string') return epochSeconds(parseDateTime(value) as number)
  if (!isArray(value) || value.length === 0) return flat(value)
  return value.reduce<Json>(
    (best, item) => (compare(flat(item), best) < 0 === descending ? best : flat(item)),
    flat(value[0]!),
  )
}

function flat(value: Json): Json {
  if (typeof value !== 'object' || value === null) return value
  return isArray(value) ? anyArray : anyObject
}

const anyArray: Json = []
const anyObject: Json = {}
