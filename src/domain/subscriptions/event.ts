// Events: a change of one entity, in the form in which subscriptions are matched
// (docs/interface/subscriptions.md#triggering step 1, docs/interface/subscriptions.md#alteration-types,
// docs/interface/subscriptions.md#attribute-rule).
//
// An event has one of four classes, and three sets of names: attributes that the request named, those whose value or
// type counts as changed, those whose metadata do. An update that changes nothing makes an event too. A change of only
// metadata counts as a change for some subscriptions and not for others: `alterationTypeOf` decides.
//
// Not here: the choice of watched entities (triggering.ts), and requests without an event: a refused request, the
// removal of an entity that expired (docs/interface/subscriptions.md#alteration-types), an update that came back in a
// loop (`isNotificationLoop`).

import type { Attribute, Entity } from '../entities/entity.js'
import type { Alteration, Change } from '../entities/update.js'
import type { Scope } from '../scope.js'
import { type AlterationType, alterationTypesOf, type Condition } from './subscription.js'

/** `update`: an existing entity was updated, and nothing changed. */
export type EventClass = 'create' | 'change' | 'update' | 'delete'

/** Something that happened to an entity. Plain data. */
export interface Event extends Scope {
  readonly class: EventClass
  /** As the request left it. For a deletion, its last state. */
  readonly entity: Entity
  /** The previous state; undefined: it did not exist. */
  readonly before: Entity | undefined
  readonly alterations: readonly Alteration[]
  /** Attributes that the request named and that were not refused. Empty when the entity was deleted. */
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
/** Creates the event of a change in a tenant and path. */
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

// [hot] Once per event and examined subscription.
/**
 * Whether the event has an alteration type of the condition, and concerns one of its attributes
 * (docs/interface/subscriptions.md#alteration-types, docs/interface/subscriptions.md#attribute-rule). Every change that
 * passes under `entityChange` passes under `entityUpdate`, also the deletion of an attribute by a replacement
 * (docs/interface/subscriptions.md#attribute-rule). `propagatesDeletes`: deletions of entities pass in any case.
 */
export function concerns(event: Event, condition: Condition, propagatesDeletes = false): boolean {
  const { attrs } = condition
  const types = alterationTypesOf(condition)
  switch (event.class) {
    case 'create':
      return types.includes('entityCreate') && (isBareCreation(event, condition) || hits(attrs, event.named))
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

const isBareCreation = ({ named }: Event, { attrs, takesBareCreations }: Condition): boolean =>
  takesBareCreations === true && named.size === 0 && attrs.length === 0

/**
 * Whether there are such names and, if the condition lists attributes, one of these is among them
 * (docs/interface/subscriptions.md#attribute-rule).
 */
function hits(attrs: readonly string[], names: ReadonlySet<string>): boolean {
  if (names.size === 0) return false
  return attrs.length === 0 || attrs.some(name => names.has(name))
}

/**
 * The alteration type of the event for a subscription with this condition
 * (docs/interface/subscriptions.md#alteration-types): the builtin attribute `alterationType`.
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
      // A change of only metadata counts only with `notifyOnMetadataChange`
      // (docs/interface/subscriptions.md#attribute-rule, the behaviour of 4.x).
      return event.changedValues.size > 0 || notifyOnMetadataChange ? 'entityChange' : 'entityUpdate'
  }
}

/**
 * The action of the request on a named attribute that exists: the builtin metadata `actionType`
 * (docs/interface/notifications.md#metadata).
 */
export function actionTypeOf(event: Event, name: string): 'append' | 'update' | undefined {
  if (!event.named.has(name)) return undefined
  const action = event.alterations.find(alteration => alteration.name === name)?.action
  return action === 'delete' ? undefined : action
}

/**
 * The attribute before a request that named it: the builtin metadata `previousValue`
 * (docs/interface/notifications.md#metadata).
 */
export function previousOf({ named, before }: Event, name: string): Attribute | undefined {
  return named.has(name) ? before?.attributes.get(name) : undefined
}
