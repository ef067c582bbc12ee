// The order of a list: `orderBy` with its keys, and how values of different kinds stand to each other (entities.md §9.2).
//
// What is compared is taken out of an entity once (`sortValues`); ties are broken by the caller, by order of creation.

import { parseDateTime } from './date-time.js'
import { type Entity, isDateType } from './entity.js'
import { distanceTo, locationOf } from './geo.js'
import type { GeoQuery } from './geo-query.js'
import { compare, isArray, type Json } from './json.js'
import { epochSeconds } from './query-parser.js'
import { stampMs } from './stamp.js'

export interface OrderKey {
  readonly name: string
  readonly descending: boolean
}

/** The keys of an `orderBy` parameter; a leading `!` reverses one. */
export function parseOrder(text: string): readonly OrderKey[] {
  return text.split(',').map(word => {
    const descending = word.startsWith('!')
    return { name: descending ? word.slice(1) : word, descending }
  })
}

/** What an entity is ordered by: a value for each key, undefined where it has none. */
export function sortValues(
  keys: readonly OrderKey[],
  entity: Entity,
  path: string,
  geo: GeoQuery | undefined,
): readonly (Json | undefined)[] {
  if (isByDistance(keys)) return [distance(entity, geo)]
  return keys.map(key => keyValue(key, entity, path))
}

/** Which of two comes first by the keys; 0 when they do not tell. */
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

/** `orderBy=geo:distance` counts as the only key and in this direction (entities.md §9.3). */
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

/** Dates stand among the numbers, an array where its smallest (descending: largest) element stands. */
function attributeValue(entity: Entity, name: string, descending: boolean): Json | undefined {
  const attribute = entity.attributes.get(name)
  if (!attribute) return undefined
  const { value, type } = attribute
  if (isDateType(type) && typeof value === 'string') return epochSeconds(parseDateTime(value) as number)
  if (!isArray(value) || value.length === 0) return value
  return value.reduce((best, item) => (compare(item, best) < 0 === descending ? best : item))
}
