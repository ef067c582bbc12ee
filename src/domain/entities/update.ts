// The effect of a command on one entity: entity before + command -> entity after, or a refusal, or (PartialUpdate)
// both.
//
// Everything that depends on the stored state is decided here: existence (docs/interface/updates.md#one-entity,
// docs/interface/updates.md#single-attributes), changed attributes (docs/interface/entities.md#changes), metadata
// (docs/interface/updates.md#metadata-in-updates), operators (docs/interface/updates.md#update-operators), the one
// location (docs/interface/geography.md#location), values without a type (docs/interface/updates.md#plain-values). The
// moment of the update is an argument.
//
// Not here: reading requests (entity.ts), the entity for an id without a type (shard), bytes.

import { equal, type Json, valueHasForbiddenCharacters } from '../json.js'
import { attributesMax, metadataMax } from '../limits.js'
import { checkLocation, checkPositions, isLocationType } from '../places/location.js'
import { accepted, type LocationPrefix, type Refusal, type Result, refusals } from '../refusal.js'
import { stampMs } from '../stamp.js'
import {
  type Attribute,
  asStoredDate,
  type Entity,
  expiryAttribute,
  ignoresType,
  isDateType,
  type MetadataMap,
  noMetadata,
  type WantedAttribute,
  type WantedEntity,
} from './entity.js'
import { applyOperator, operatorOf, startOperator } from './operators.js'

/** Options of an update (docs/interface/updates.md#one-entity, docs/interface/updates.md#metadata-in-updates). */
export interface UpdateOptions {
  /** Metadata of the request replace the stored ones instead of being merged with them. */
  readonly overrideMetadata: boolean
  /** Every attribute of the request counts as changed. */
  readonly forcedUpdate: boolean
}

/** The effect on an attribute. A request may name an attribute and leave it unchanged. */
export interface Alteration {
  readonly name: string
  readonly action: 'append' | 'update' | 'delete'
  /**
   * Whether the request names it. A replacement deletes attributes that it does not name; the deletion of an entity
   * names none.
   */
  readonly named: boolean
  /**
   * Whether value or type count as changed (docs/interface/entities.md#changes). An attribute that is appended,
   * replaced or deleted counts as changed in value and metadata.
   */
  readonly valueChanged: boolean
  readonly metadataChanged: boolean
}

/** The effect of a command. `after`: undefined when the entity was deleted, `before` when nothing changed. */
export interface Change {
  readonly before: Entity | undefined
  readonly after: Entity | undefined
  readonly alterations: readonly Alteration[]
}

/**
 * The outcome of a command: a change, a refusal, or both when only part could be done
 * (docs/interface/updates.md#append, docs/interface/updates.md#update).
 */
export interface UpdateOutcome {
  readonly change?: Change
  readonly refusal?: Refusal
}

/** The name of an entity in a refusal: its id, and its type only if the request named it. */
export const entityLabel = (id: string, type: string | undefined): string => (type === undefined ? id : `${id}/${type}`)

const refuse = (refusal: Refusal): UpdateOutcome => ({ refusal })

/** `POST /v2/entities` for an entity that does not exist. */
export function createEntity(wanted: WantedEntity, stamp: number): UpdateOutcome {
  const draft = new Draft(undefined, stampMs(stamp))
  for (const [name, attribute] of wanted.attributes) {
    const refusal = draft.start(name, attribute, 'creation')
    if (refusal) return refuse(refusal)
  }
  return draft.finish({ id: wanted.id, type: wanted.type, created: stamp })
}

/**
 * `POST .../attrs` without `append`, and upsert: updates existing attributes, appends missing ones
 * (docs/interface/updates.md#one-entity).
 */
export function appendAttributes(
  before: Entity,
  wanted: ReadonlyMap<string, WantedAttribute>,
  options: UpdateOptions,
  nowMs: number,
): UpdateOutcome {
  const draft = new Draft(before, nowMs)
  for (const [name, attribute] of wanted) {
    const refusal = before.attributes.has(name)
      ? draft.update(name, attribute, options, 'append')
      : draft.start(name, attribute, 'append')
    if (refusal) return refuse(refusal)
  }
  return draft.finish(before)
}

/** `POST .../attrs?options=append`: adds only missing attributes (docs/interface/updates.md#append). */
export function appendStrict(
  before: Entity,
  wanted: ReadonlyMap<string, WantedAttribute>,
  label: string,
  nowMs: number,
): UpdateOutcome {
  const existing: string[] = []
  const draft = new Draft(before, nowMs)
  for (const [name, attribute] of wanted) {
    if (before.attributes.has(name)) {
      existing.push(name)
      continue
    }
    const refusal = draft.start(name, attribute, 'append')
    if (refusal) return refuse(refusal)
  }
  if (existing.length === 0) return draft.finish(before)
  if (existing.length === wanted.size) return refuse(refusals.attributesExist('Unprocessable', label, existing))
  return partly(draft.finish(before), refusals.attributesExist('PartialUpdate', label, existing))
}

/** `PATCH .../attrs`: updates only existing attributes (docs/interface/updates.md#update). */
export function updateAttributes(
  before: Entity,
  wanted: ReadonlyMap<string, WantedAttribute>,
  options: UpdateOptions,
  label: string,
  nowMs: number,
): UpdateOutcome {
  const missing: string[] = []
  const draft = new Draft(before, nowMs)
  for (const [name, attribute] of wanted) {
    if (!before.attributes.has(name)) {
      missing.push(name)
      continue
    }
    const refusal = draft.update(name, attribute, options, 'update')
    if (refusal) return refuse(refusal)
  }
  if (missing.length === 0) return draft.finish(before)
  if (missing.length === wanted.size) return refuse(refusals.attributesMissing('Unprocessable', label, missing))
  return partly(draft.finish(before), refusals.attributesMissing('PartialUpdate', label, missing))
}

/** `PUT .../attrs`: the request becomes the whole set of attributes (docs/interface/updates.md#replace). */
export function replaceAttributes(
  before: Entity,
  wanted: ReadonlyMap<string, WantedAttribute>,
  nowMs: number,
): UpdateOutcome {
  const draft = new Draft(undefined, nowMs)
  draft.replaceAll()
  for (const [name, attribute] of wanted) {
    const refusal = draft.start(name, attribute, 'creation', before.attributes.has(name) ? 'update' : 'append')
    if (refusal) return refuse(refusal)
  }
  for (const name of before.attributes.keys())
    if (!draft.has(name)) draft.alterations.push(lost(name, wanted.has(name)))
  return draft.finish(before, before)
}

/** `PUT .../attrs/{name}` (docs/interface/updates.md#single-attributes). */
export function updateAttribute(
  before: Entity,
  name: string,
  wanted: WantedAttribute,
  options: UpdateOptions,
  nowMs: number,
): UpdateOutcome {
  if (!before.attributes.has(name)) return refuse(refusals.attributeNotFound)
  const draft = new Draft(before, nowMs)
  const refusal = draft.update(name, wanted, options, 'update')
  return refusal ? refuse(refusal) : draft.finish(before)
}

/** `PUT .../attrs/{name}/value`: the stored type and metadata stay (docs/interface/updates.md#plain-values). */
export function updateValue(
  before: Entity,
  name: string,
  value: Json,
  options: Pick<UpdateOptions, 'forcedUpdate'>,
  nowMs: number,
): UpdateOutcome {
  const stored = before.attributes.get(name)
  if (!stored) return refuse(refusals.attributeNotFound)
  if (stored.type !== 'TextUnrestricted' && valueHasForbiddenCharacters(value))
    return refuse(refusals.charactersInValue)
  const isDate = isDateType(stored.type)
  const typed = isDate ? asStoredDate(value) : value
  if (typed === undefined) return refuse(refusals.date)
  const draft = new Draft(before, nowMs)
  const wanted = {
    type: stored.type,
    value: typed,
    operator: isDate ? undefined : operatorOf(typed),
    metadata: undefined,
  }
  const refusal = draft.update(name, wanted, { ...options, overrideMetadata: false }, 'update')
  return refusal ? refuse(refusal) : draft.finish(before)
}

/** `DELETE .../attrs/{name}` (docs/interface/updates.md#single-attributes). */
export function deleteAttribute(before: Entity, name: string, nowMs: number): UpdateOutcome {
  if (!before.attributes.has(name)) return refuse(refusals.attributeNotFound)
  const draft = new Draft(before, nowMs)
  draft.remove(name)
  return draft.finish(before)
}

/**
 * Batch `delete` with attributes: existing ones are removed, the others are reported as missing
 * (docs/interface/batch.md#outcome).
 */
export function deleteAttributes(
  before: Entity,
  names: readonly string[],
  label: string,
  nowMs: number,
): UpdateOutcome {
  const missing = names.filter(name => !before.attributes.has(name))
  if (missing.length === names.length) return refuse(refusals.attributesMissing('Unprocessable', label, missing))
  const draft = new Draft(before, nowMs)
  for (const name of names) if (before.attributes.has(name)) draft.remove(name)
  const outcome = draft.finish(before)
  return missing.length === 0 ? outcome : partly(outcome, refusals.attributesMissing('PartialUpdate', label, missing))
}

/** `DELETE /v2/entities/{id}`, and the removal of an expired entity. */
export function deleteEntity(before: Entity): UpdateOutcome {
  const alterations = [...before.attributes.keys()].map(name => lost(name, false))
  return { change: { before, after: undefined, alterations } }
}

/**
 * The time when the entity is to be removed, milliseconds since 1970; undefined for a regular one
 * (docs/interface/entities.md#expiry).
 */
export function expiresMs(entity: Entity): number | undefined {
  const attribute = entity.attributes.get(expiryAttribute)
  if (!attribute || attribute.isPlain || !isDateType(attribute.type)) return undefined
  if (typeof attribute.value !== 'string') return undefined
  return Date.parse(attribute.value)
}

const lost = (name: string, named: boolean): Alteration => ({
  name,
  action: 'delete',
  named,
  valueChanged: true,
  metadataChanged: true,
})

/** A partial success. If the outcome already has another refusal than missing names, that one stays. */
const partly = (outcome: UpdateOutcome, refusal: Refusal): UpdateOutcome =>
  outcome.refusal ? outcome : { ...outcome, refusal }

/** The attributes of one entity while a command works on them. */
class Draft {
  readonly alterations: Alteration[] = []
  private readonly before: Entity | undefined
  private readonly attributes: Map<string, Attribute>
  private readonly nowMs: number
  private changed = false
  /** Whether an attribute was added: only an added one can be out of order. */
  private added = false
  /** Whether a location attribute was touched, and the first reason why its value cannot be a location. */
  private locationTouched = false
  private locationFound = false
  private badLocation: Refusal | undefined

  constructor(before: Entity | undefined, nowMs: number) {
    this.before = before
    this.nowMs = nowMs
    this.attributes = before ? copyOf(before.attributes) : new Map()
  }

  has(name: string): boolean {
    return this.attributes.has(name)
  }

  /**
   * Adds a new attribute (docs/interface/updates.md#operators-on-new-attributes). `action`: `update` if it existed
   * before a replacement.
   */
  start(
    name: string,
    wanted: WantedAttribute,
    on: 'creation' | 'append',
    action: 'append' | 'update' = 'append',
  ): Refusal | undefined {
    let value: Json | undefined = wanted.value
    if (wanted.operator) {
      const started = startOperator(wanted.operator, on)
      if (!started.ok) return started.refusal
      value = started.value
      if (value === undefined) return undefined
    }
    const metadata = wanted.metadata ?? noMetadata
    this.locate(wanted.type, value, metadata, on === 'append' ? ' for new attribute' : '')
    this.attributes.set(name, {
      type: wanted.type,
      value,
      metadata,
      createdMs: this.nowMs,
      modifiedMs: this.nowMs,
    })
    this.changed = true
    this.added = true
    this.alterations.push({ name, action, named: true, valueChanged: true, metadataChanged: true })
    return undefined
  }

  /** Updates an existing attribute. */
  update(name: string, wanted: WantedAttribute, options: UpdateOptions, via: 'append' | 'update'): Refusal | undefined {
    const stored = this.attributes.get(name) as Attribute
    const value = this.valueAfter(stored, wanted)
    if (!value.ok) return value.refusal
    const metadata = joinMetadata(stored.metadata, wanted.metadata, options.overrideMetadata)
    if (metadata.size > metadataMax && metadata.size > stored.metadata.size)
      return refusals.tooMany('metadata', metadata.size, metadataMax)
    const becomesLocation = via === 'append' && !isLocation(stored)
    this.locate(wanted.type, value.value, metadata, becomesLocation ? ' for existing attribute' : '')
    const valueChanged =
      options.forcedUpdate ||
      wanted.operator !== undefined ||
      stored.type !== wanted.type ||
      !equal(stored.value, value.value)
    const metadataChanged = !equalMetadata(stored.metadata, metadata)
    this.alterations.push({ name, action: 'update', named: true, valueChanged, metadataChanged })
    // An attribute that was plain changes its meaning now, even with the same value.
    if (!valueChanged && !metadataChanged && !stored.isPlain) return undefined
    this.attributes.set(name, {
      type: wanted.type,
      value: value.value,
      metadata,
      createdMs: stored.createdMs,
      modifiedMs: this.nowMs,
    })
    this.changed = true
    return undefined
  }

  /** A replacement always counts as a change (docs/interface/entities.md#changes). */
  replaceAll(): void {
    this.changed = true
  }

  remove(name: string): void {
    this.attributes.delete(name)
    this.changed = true
    this.alterations.push(lost(name, true))
  }

  /**
   * Returns the outcome. `identity`: id, type and creation. `before`: the replaced entity, if the draft did not begin
   * with it.
   */
  finish(identity: Pick<Entity, 'id' | 'type' | 'created'>, before = this.before): UpdateOutcome {
    if (this.added && this.attributes.size > attributesMax && this.attributes.size > (before?.attributes.size ?? 0))
      return refuse(refusals.tooMany('attributes', this.attributes.size, attributesMax))
    if (this.locationTouched && this.locations() > 1) return refuse(refusals.locationSecond)
    if (this.badLocation) return refuse(this.badLocation)
    if (before && !this.changed) return { change: { before, after: before, alterations: this.alterations } }
    const { id, type, created } = identity
    const attributes = this.added ? inStoredOrder(this.attributes) : this.attributes
    const after: Entity = { id, type, attributes, created, modifiedMs: this.nowMs }
    return { change: { before, after, alterations: this.alterations } }
  }

  private valueAfter(stored: Attribute, wanted: WantedAttribute): Result<Json> {
    return wanted.operator ? applyOperator(wanted.operator, stored.value) : accepted(wanted.value)
  }

  /**
   * Checks a possible location (docs/interface/geography.md). `finish` refuses it, since the refusal of a second
   * location has precedence.
   */
  private locate(type: string, value: Json, metadata: MetadataMap, prefix: LocationPrefix): void {
    if (!isLocationType(type)) return
    this.locationTouched = true
    if (value === null || ignoresType(metadata)) return
    // A second location is refused in any case, and checking each of many would take long.
    if (this.locationFound) return
    this.locationFound = true
    this.badLocation = checkPositions(type, value)
    if (this.badLocation) return
    const checked = checkLocation(type, value, prefix)
    if (!checked.ok) this.badLocation = checked.refusal
  }

  private locations(): number {
    let count = 0
    for (const attribute of this.attributes.values()) if (isLocation(attribute)) count++
    return count
  }
}

/** A copy of a map; `new Map(map)` takes twice as long, and leaves garbage for each entry. */
function copyOf<T>(map: ReadonlyMap<string, T>): Map<string, T> {
  const copy = new Map<string, T>()
  for (const name of map.keys()) copy.set(name, map.get(name) as T)
  return copy
}

const indexName = /^(?:0|[1-9][0-9]{0,9})$/

/**
 * Attributes or metadata in the order that they have after being stored as a JSON object: JSON.parse puts names that
 * are array indexes (`0`, `17`) first. All others keep the order in which they were added.
 */
function inStoredOrder<T>(named: Map<string, T>): Map<string, T> {
  let indexed = false
  for (const name of named.keys()) if (indexName.test(name)) indexed = true
  if (!indexed) return named
  const order: Record<string, T> = Object.create(null)
  for (const [name, one] of named) order[name] = one
  return new Map(Object.entries(order))
}

/** Whether the attribute is the location of its entity (docs/interface/geography.md#location). */
export const isLocation = (attribute: Attribute): boolean =>
  isLocationType(attribute.type) && attribute.value !== null && !ignoresType(attribute.metadata)

/** The metadata after an update (docs/interface/updates.md#metadata-in-updates). */
function joinMetadata(stored: MetadataMap, wanted: MetadataMap | undefined, override: boolean): MetadataMap {
  if (override) return wanted ?? noMetadata
  if (wanted === undefined) return stored
  if (wanted.size === 0 || stored.size === 0) return wanted
  const joined = copyOf(stored)
  for (const [name, element] of wanted) joined.set(name, element)
  return inStoredOrder(joined)
}

function equalMetadata(a: MetadataMap, b: MetadataMap): boolean {
  if (a === b) return true
  if (a.size !== b.size) return false
  for (const [name, element] of a) {
    const other = b.get(name)
    if (!other || other.type !== element.type || !equal(other.value, element.value)) return false
  }
  return true
}
