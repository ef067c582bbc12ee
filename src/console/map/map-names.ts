// The names of the attributes that the map needs: those that are locations, and those that may be numbers, which may
// give the colour. They follow from the types that the broker has.

import type { Json, JsonObject } from '../../domain/json.js'
import type { ConsoleClient } from '../interface/console-client.js'
import { useReading } from '../state/reading.js'
import type { ConsoleScope } from '../state/scope.js'

/** Types that are asked for their attributes. */
const typesMax = 1_000
/** Attributes of a kind that are used. */
const namesMax = 50

export interface MapNames {
  /** The attributes that are locations in some entity. */
  readonly locations: readonly string[]
  /** The attributes that may have numbers. */
  readonly numbers: readonly string[]
  /** The types that have a location, by name. */
  readonly types: readonly string[]
}

interface TypeAttributes {
  readonly type: string
  readonly attrs: Readonly<Record<string, { readonly types: readonly string[] }>>
}

const locationTypes = new Set(['geo:json', 'geo:point', 'geo:line', 'geo:box', 'geo:polygon'])
/** A type of an attribute is a free text, such as `Celsius`. Values of these are no numbers. */
const otherTypes = new Set([
  ...locationTypes,
  ...['Text', 'Boolean', 'DateTime', 'ISO8601', 'StructuredValue', 'None', 'Relationship', 'command', 'commandResult'],
])

/** `names` is undefined until they are known. `again` reads them again. */
export function useMapNames(
  client: ConsoleClient,
  { tenant, servicePath }: ConsoleScope,
): { readonly names: MapNames | undefined; readonly again: () => void } {
  const query = { limit: String(typesMax) }
  const request = { method: 'GET', path: 'v2/types', query, tenant, servicePath } as const
  const { json, problem, again } = useReading<readonly TypeAttributes[]>(client, request)
  return { names: json ? namesIn(json) : problem && namesIn([]), again }
}

function namesIn(types: readonly TypeAttributes[]): MapNames {
  const locations = new Set<string>()
  const numbers = new Set<string>()
  const placed: string[] = []
  for (const { type, attrs } of types) {
    const found = Object.entries(attrs).filter(([, { types }]) => types.some(one => locationTypes.has(one)))
    if (found.length === 0) continue
    placed.push(type)
    for (const [name] of found) locations.add(name)
    for (const [name, { types }] of Object.entries(attrs))
      if (types.some(one => !otherTypes.has(one))) numbers.add(name)
  }
  return { locations: [...locations].slice(0, namesMax), numbers: [...numbers].slice(0, namesMax), types: placed }
}

/** The value and the type of a location; undefined: the attribute is none. With `ignoreType` it is none. */
export function locationIn(attribute: Json): { readonly type: string; readonly value: Json } | undefined {
  const { type, value = null, metadata = null } = membersOf(attribute)
  const { ignoreType = null } = membersOf(metadata)
  if (typeof type !== 'string' || !locationTypes.has(type) || value === null) return undefined
  return membersOf(ignoreType).value === true ? undefined : { type, value }
}

/** The value of an attribute as the interface shows it. */
export const valueIn = (attribute: Json): Json | undefined => membersOf(attribute).value

function membersOf(json: Json): JsonObject {
  return typeof json === 'object' && json !== null && !isList(json) ? json : {}
}

const isList = (json: JsonObject | readonly Json[]): json is readonly Json[] => Array.isArray(json)
