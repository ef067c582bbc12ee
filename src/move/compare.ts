// Compares an entity of the target with the one that an import brings, only in the parts that the import has.
//
// A file may lack times of creation and change, and the correlator of the last change. A running broker shows numbers
// with nine decimals and the geometry of a Feature, and accepts no times, so only the parts that it shows are compared.

import { type Attribute, type Entity, expiryAttribute, type Metadata } from '../domain/entities/entity.js'
import { renderedValue } from '../domain/entities/representation.js'
import { equal, isArray, isObject, type Json, type JsonObject, renderNumber } from '../domain/json.js'
import { stampMs } from '../domain/stamp.js'
import type { MovedEntity } from './moved.js'

/** An entity of a store, and the correlator root of its last change. */
export interface StoredEntity {
  readonly entity: Entity
  readonly root: string
}

/** Whether a stored entity equals an item in all parts of the item. `created`: the stamp that the item would get. */
export function isSameEntity(item: MovedEntity, created: number, { entity: there, root }: StoredEntity): boolean {
  const { entity, isStamped, hasCreated, hasModified } = item
  if (item.root !== '' && item.root !== root) return false
  if (isStamped ? created !== there.created : hasCreated && stampMs(created) !== stampMs(there.created)) return false
  if (hasModified && entity.modifiedMs !== there.modifiedMs) return false
  if (entity.attributes.size !== there.attributes.size) return false
  for (const [name, attribute] of entity.attributes) {
    const other = there.attributes.get(name)
    if (!other || !isSameAttribute(attribute, other)) return false
    if (hasCreated && attribute.createdMs !== other.createdMs) return false
    if (hasModified && attribute.modifiedMs !== other.modifiedMs) return false
  }
  return true
}

const isSameAttribute = (a: Attribute, b: Attribute): boolean =>
  (a.isPlain ?? false) === (b.isPlain ?? false) && isSameElement(a, b) && isSameMetadata(a.metadata, b.metadata)

const isSameElement = (a: Metadata, b: Metadata): boolean => a.type === b.type && equal(a.value, b.value)

function isSameMetadata(a: ReadonlyMap<string, Metadata>, b: ReadonlyMap<string, Metadata>): boolean {
  if (a.size !== b.size) return false
  for (const [name, element] of a) {
    const other = b.get(name)
    if (!other || !isSameElement(element, other)) return false
  }
  return true
}

/** Whether a broker's answer, normalized and with `dateExpires`, shows the entity of an item. */
export function isShown({ entity }: MovedEntity, shown: JsonObject): boolean {
  const { id: _id, type: _type, ...members } = shown
  const names = Object.keys(members)
  // A broker that does not know dateExpires shows it like an ordinary attribute.
  if (names.length !== entity.attributes.size) return false
  return names.every(name => {
    const attribute = entity.attributes.get(name)
    const member = members[name]
    if (!attribute || !isObject(member) || !isObject(member.metadata ?? {})) return false
    const isDate = name === expiryAttribute
    const own = { type: attribute.type, value: isDate ? attribute.value : renderedValue(attribute) }
    const metadata = Object.fromEntries([...attribute.metadata].map(([key, element]) => [key, { ...element }]))
    const { type = '', value = null, metadata: ofOther = {} } = member
    return equal(rounded({ ...own, metadata } as JsonObject), rounded({ type, value, metadata: ofOther }))
  })
}

/** The same value with numbers as the interface shows them. */
function rounded(value: Json): Json {
  if (typeof value === 'number') return Number(renderNumber(value))
  if (isArray(value)) return value.map(rounded)
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, rounded(member as Json)]))
}
