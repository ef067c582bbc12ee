// Entities as context providers answer them: read as far as they make sense (subscriptions.md §13.3).
//
// A provider is not ours and not the client's: what of its answer could not be an entity here, or could not be rendered, is left out, and the
// rest counts. When it was created or changed is not known, so builtin attributes and metadata are not there.
//
// Not here: bytes to JSON, which of the entities were asked for.

import { type Attribute, defaultType, type Entity, isTooDeep, type Metadata } from '../entities/entity.js'
import { hasIdentifierCharacters } from '../identifier.js'
import { isArray, isObject, type Json } from '../json.js'
import { identifierLengthMax } from '../limits.js'

/** The entities of an answer to a forwarded query; undefined: it is none. `type`: of entities that name none. */
export function readProvidedEntities(json: Json, type: string): readonly Entity[] | undefined {
  if (!isArray(json)) return undefined
  return json.flatMap(item => {
    const entity = readEntity(item, type)
    return entity ? [entity] : []
  })
}

const unknown = Number.NaN

function readEntity(json: Json, defaultEntityType: string): Entity | undefined {
  if (!isObject(json)) return undefined
  const { id, type = defaultEntityType } = json
  if (!isName(id) || !isName(type)) return undefined
  const attributes = new Map<string, Attribute>()
  for (const name of Object.keys(json)) {
    if (name === 'id' || name === 'type' || !isName(name)) continue
    const attribute = readAttribute(json[name]!)
    if (attribute) attributes.set(name, attribute)
  }
  return { id, type, attributes, created: unknown, modifiedMs: unknown }
}

function readAttribute(json: Json): Attribute | undefined {
  const element = readElement(json)
  if (!element) return undefined
  const { metadata: given } = json as { readonly metadata?: Json }
  const metadata = new Map<string, Metadata>()
  if (isObject(given))
    for (const name of Object.keys(given)) {
      const one = isName(name) ? readElement(given[name]!) : undefined
      if (one) metadata.set(name, one)
    }
  return { ...element, metadata, createdMs: unknown, modifiedMs: unknown }
}

/** Type and value, of an attribute or of its metadata. */
function readElement(json: Json): Metadata | undefined {
  if (!isObject(json) || !Object.hasOwn(json, 'value')) return undefined
  const { value = null, type = defaultType(value) } = json
  return isName(type) && !isTooDeep(value) && hasNumbersOnly(value) ? { type, value } : undefined
}

/** Whether it can be the name or type of anything here (base.md "Identifier syntax rules"). */
const isName = (json: Json | undefined): json is string =>
  typeof json === 'string' && json !== '' && json.length <= identifierLengthMax && hasIdentifierCharacters(json)

/** Whether all numbers of a value are some: JSON has texts for others (`1e999`), but no way back. Its depth has been looked at. */
function hasNumbersOnly(value: Json): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || value === null) return true
  for (const item of isArray(value) ? value : Object.values(value)) if (!hasNumbersOnly(item)) return false
  return true
}
