// The attributes that the table shows: those that the address names, else the first ones that the types have.

import type { Json, JsonObject } from '../../domain/json.js'
import type { ConsoleClient } from '../interface/console-client.js'
import { useReading } from './reading.js'
import type { ConsoleScope } from './scope.js'

/** Attributes that are shown when none is chosen. */
const shownMax = 5
/** Attributes that may be chosen. */
export const columnsMax = 50
/** Types that are asked for their attributes when the filter names no single one. */
const typesMax = 20

/** undefined: not known yet. */
export function useColumns(
  client: ConsoleClient,
  { tenant, servicePath }: ConsoleScope,
  type: string,
  chosen: string,
): readonly string[] | undefined {
  const one = type !== '' && !type.includes(',')
  const path = one ? `v2/types/${encodeURIComponent(type)}` : 'v2/types'
  const query = one ? {} : { limit: String(typesMax) }
  const isAsked = chosen === ''
  const scope = { tenant, servicePath }
  const { json, problem } = useReading(client, isAsked ? { method: 'GET', path, query, ...scope } : undefined)
  if (!isAsked) return [...new Set(chosen.split(',').filter(name => name !== ''))].slice(0, columnsMax)
  // A type without entities, or no right to ask: the list itself shows what is wrong.
  if (problem) return []
  if (json === undefined) return undefined
  const types = (one ? [json] : json) as readonly { readonly attrs?: JsonObject }[]
  return [...new Set(types.flatMap(namesOf))].slice(0, shownMax)
}

const namesOf = ({ attrs = {} }: { readonly attrs?: Readonly<Record<string, Json>> }): string[] => Object.keys(attrs)
