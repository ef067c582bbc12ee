// Events: what a change of one entity is to those who watch it (docs/interface/subscriptions.md#triggering step 1,
// docs/interface/subscriptions.md#alteration-types, docs/interface/subscriptions.md#attribute-rule).
//
// An event has one of four classes, and three sets of names: attributes that the request named, those whose value or
// type counts as changed, those whose metadata does. An update that changes nothing makes an event too. A change of
// metadata alone is a change to one subscription and none to another: `alterationTypeOf` tells.
//
// Not here: which entity is watched (triggering.ts), and what makes no event: a refused request, the removal of an
// entity that expired (docs/interface/subscriptions.md#alteration-types), an update that came round in a circle
// (`isNotificationLoop`).

import type { Attribute, Entity } from '../entities/entity.js'
import type { Alteration, Change } from '../entities/update.js'
import type { Scope } from '../scope.js'
import { type AlterationType, alterationTypesOf, type Condition } from './subscription.js'

/** `update`: an existing entity was updated, and nothing changed. */
export type EventClass = 'create' | 'change' | 'update' | 'delete'

/** Something that happened to an entity. Plain data. */
export interface Event extends Scope {
  readonly class: EventClass
  /** As the request left it; when it was deleted, as it was last. */
  readonly entity: Entity
  /** As it was; undefined: it was not there. */
  readonly before: Entity | undefined
  readonly alterations: readonly Alteration[]
  /** Attributes that the request named, and that were not refused. Empty when the entity was deleted. */
  readonly named: ReadonlySet<string>
  /**
   * Attributes that were appended, deleted, got another value or type, or count as if they had
   * (docs/interface/entities.md#changes, `forcedUpdate`).
   */
  readonly changedValues: ReadonlySet<string>
  /** Attributes that were appended, deleted or got other metadata. */
  readonly changedMetadata: ReadonlySet<string>
}

// [hot] Once per change of a tenant that has subscriptions: 0.3 us for one attribute.
/** The event of a change in a tenant and path. */
export function eventOf({ before, after, alterations }: Change, { tenant, path }: Scope): Event {
  const entity = (after ?? before) as Entity
  const named = namesOf(alterations, isNamed)
  const changedValues = after ? namesOf(alterations, isValueChanged) : noNames
  const changedMetadata = after ? namesOf(alterations, isMetadataChanged) : noNames
  return {
    class: classOf(before, after, changedValues.size + changedMetadata.size),
    tenant,
    path,
    entity,
    before,
    alterations,
    named,
    changedValues,
    changedMetadata,
  }
}

function classOf(before: Entity | undefined, after: Entity | undefined, changes: number): EventClass {
  if (!before) return 'create'
  if (!after) return 'delete'
  return changes > 0 ? 'change' : 'update'
}

const noNames: ReadonlySet<string> = new Set()

const isNamed = ({ named }: Alteration): boolean => named
const isValueChanged = ({ valueChanged }: Alteration): boolean => valueChanged
const isMetadataChanged = ({ metadataChanged }: Alteration): boolean => metadataChanged

function namesOf(
  alterations: readonly Alteration[],
  isMeant: (alteration: Alteration) => boolean,
): ReadonlySet<string> {
  let names: Set<string> | undefined
  for (const alteration of alterations) {
    if (!isMeant(alteration)) continue
    names ??= new Set()
    names.add(alteration.name)
  }
  return names ?? noNames
}

// [hot] Once per event and subscription that is looked into.
/**
 * Whether the event is of a kind that the condition asks for, and concerns one of its attributes
 * (docs/interface/subscriptions.md#alteration-types, docs/interface/subscriptions.md#attribute-rule). Every change that
 * passes under `entityChange` passes under `entityUpdate`, also the deletion of an attribute by a replacement
 * (docs/interface/subscriptions.md#attribute-rule). `propagatesDeletes`: deletions of entities pass in any case.
 */
export function concerns(event: Event, condition: Condition, propagatesDeletes = false): boolean {
  const { attrs } = condition
  const types = alterationTypesOf(condition)
  switch (event.class) {
    case 'create':
      return types.includes('entityCreate') && hits(attrs, event.named)
    case 'delete':
      return propagatesDeletes || types.includes('entityDelete')
    default: {
      const anyUpdate = types.includes('entityUpdate')
      if (anyUpdate && hits(attrs, event.named)) return true
      if (!anyUpdate && !types.includes('entityChange')) return false
      return (
        hits(attrs, event.changedValues) || (condition.notifyOnMetadataChange && hits(attrs, event.changedMetadata))
      )
    }
  }
}

/**
 * Whether there are such names and, if any attributes are asked for, one of these is among them
 * (docs/interface/subscriptions.md#attribute-rule).
 */
function hits(attrs: readonly string[], names: ReadonlySet<string>): boolean {
  if (names.size === 0) return false
  return attrs.length === 0 || attrs.some(name => names.has(name))
}

/**
 * What the event is called to a subscriber with the condition (docs/interface/subscriptions.md#alteration-types): the
 * builtin attribute `alterationType`.
 */
export function alterationTypeOf(event: Event, { notifyOnMetadataChange }: Condition): AlterationType {
  switch (event.class) {
    case 'create':
      return 'entityCreate'
    case 'delete':
      return 'entityDelete'
    case 'update':
      return 'entityUpdate'
    case 'change':
      // Metadata alone: no change to whoever does not ask for it (docs/interface/subscriptions.md#attribute-rule, the
      // behaviour of 4.x).
      return event.changedValues.size > 0 || notifyOnMetadataChange ? 'entityChange' : 'entityUpdate'
  }
}

/**
 * What the request did to an attribute that it named and that is there: the builtin metadata `actionType`
 * (docs/interface/notifications.md#metadata).
 */
export function actionTypeOf(event: Event, name: string): 'append' | 'update' | undefined {
  if (!event.named.has(name)) return undefined
  const action = event.alterations.find(alteration => alteration.name === name)?.action
  return action === 'delete' ? undefined : action
}

/**
 * The attribute as it was before a request that named it: the builtin metadata `previousValue`
 * (docs/interface/notifications.md#metadata).
 */
export function previousOf({ named, before }: Event, name: string): Attribute | undefined {
  return named.has(name) ? before?.attributes.get(name) : undefined
}
