// Which subscriptions a change should trigger, written from docs/interface/subscriptions.md#triggering and
// docs/interface/notifications.md#only-changed-attributes and from nothing else.
//
// Plain on purpose: the event is found by comparing the entity before with the entity after, and every rule is checked
// for every subscription. It shares no line with src/. A result that reference-geo leaves undefined is undefined here,
// too.
//
// Not here: the effect of a change on an entity (reference-entities), the language of expressions (reference-query),
// random subscriptions (random-watch).

import { type Attribute, type Change, type Entity, isEqual, type Metadata } from './reference-entities.js'
import type { Geo } from './reference-geo.js'
import { coversPath, fitsQuery, type Statement } from './reference-query.js'

export interface Subscription {
  /** In the order of creation. */
  readonly id: string
  readonly path: string
  readonly status: 'active' | 'inactive' | 'oneshot'
  readonly expiresMs?: number
  readonly throttlingSeconds: number
  /** The entity matches any of them. */
  readonly elements: readonly Element[]
  /** Empty: every attribute. */
  readonly attrs: readonly string[]
  /** Empty: the default set. */
  readonly alterationTypes: readonly AlterationType[]
  readonly notifyOnMetadataChange: boolean
  readonly q?: readonly Statement[]
  readonly mq?: readonly Statement[]
  readonly geo?: Geo
  readonly sentAttrs: readonly string[]
  readonly exceptAttrs: readonly string[]
  readonly onlyChangedAttrs: boolean
  /** Orrery's own: deletions count, with any alteration types and any sent attributes. */
  readonly propagateDeletes?: boolean
}

export type AlterationType = 'entityCreate' | 'entityChange' | 'entityUpdate' | 'entityDelete'

export interface Element {
  readonly id?: string
  readonly idPattern?: string
  readonly type?: string
  readonly typePattern?: string
}

/** The effect of a request on an entity, as far as it counts for subscriptions. */
export interface Happening {
  readonly class: 'create' | 'change' | 'update' | 'delete'
  readonly before: Entity | undefined
  /** The present entity; after a deletion, the last one. */
  readonly entity: Entity
  /**
   * The sets of docs/interface/subscriptions.md#triggering: named in the request; value or type changed; metadata
   * changed.
   */
  readonly r: ReadonlySet<string>
  readonly v: ReadonlySet<string>
  readonly m: ReadonlySet<string>
}

/** The event of a change that was not refused: the entity before it and after it. */
export function happeningOf(change: Change, before: Entity | undefined, after: Entity | undefined): Happening {
  const entity = (after ?? before) as Entity
  const r = new Set(namedBy(change, before))
  const none = new Set<string>()
  if (!before) return { class: 'create', before, entity, r, v: new Set(entity.attributes.keys()), m: none }
  if (!after) return { class: 'delete', before, entity, r: none, v: none, m: none }
  const names = [...new Set([...before.attributes.keys(), ...after.attributes.keys()])]
  const counts = (isOther: (a: Attribute, b: Attribute, name: string) => boolean) => (name: string) => {
    const [a, b] = [before.attributes.get(name), after.attributes.get(name)]
    return !a || !b || change.action === 'replace' || isOther(a, b, name)
  }
  const v = new Set(names.filter(counts((a, b, name) => isForced(change, name) || !isSameElement(a, b))))
  const m = new Set(names.filter(counts((a, b) => !isSameMetadata(a, b))))
  return { class: v.size + m.size > 0 ? 'change' : 'update', before, entity, r, v, m }
}

/**
 * The attributes that a request names, and that it was allowed to touch (docs/interface/subscriptions.md#triggering).
 */
function namedBy(change: Change, before: Entity | undefined): readonly string[] {
  const isThere = (name: string) => before?.attributes.has(name) === true
  switch (change.action) {
    case 'create':
    case 'append':
    case 'replace':
      return change.given.map(([name]) => name)
    case 'appendStrict':
      return change.given.map(([name]) => name).filter(name => !isThere(name))
    case 'update':
      return change.given.map(([name]) => name).filter(isThere)
    case 'updateOne':
    case 'updateValue':
      return [change.name]
    case 'deleteSome':
      return change.names.filter(isThere)
    case 'deleteEntity':
      return []
  }
}

/**
 * Whether the attribute counts as changed even if its value stays (docs/interface/subscriptions.md#attribute-rule,
 * docs/interface/entities.md#changes).
 */
function isForced(change: Change, name: string): boolean {
  if (change.action === 'updateValue') return change.name === name && change.forced
  if (change.action === 'updateOne') return change.name === name && (change.forced || isOperator(change.given))
  // `appendStrict` refuses all but new attributes, and these have changed anyway.
  if (change.action !== 'append' && change.action !== 'update') return false
  const given = change.given.find(([one]) => one === name)
  return given !== undefined && (change.forced || isOperator(given[1]))
}

const isOperator = ({ value }: { readonly value?: unknown }): boolean =>
  typeof value === 'object' && value !== null && '$inc' in value

const isSameElement = (a: Metadata, b: Metadata): boolean => a.type === b.type && isEqual(a.value, b.value)

const isSameMetadata = (a: Attribute, b: Attribute): boolean =>
  a.metadata.size === b.metadata.size &&
  [...a.metadata].every(([name, one]) => {
    const other = b.metadata.get(name)
    return other !== undefined && isSameElement(one, other)
  })

/**
 * Whether a subscription is selected: by class, path, attributes, id, type (docs/interface/subscriptions.md#triggering
 * step 2), and by its `q`.
 */
export function isSelected(subscription: Subscription, happening: Happening): boolean {
  const { entity } = happening
  return (
    subscription.status !== 'inactive' &&
    passesAttributes(subscription, happening) &&
    coversPath([subscription.path], entity.path) &&
    subscription.elements.some(element => isMeant(element, entity)) &&
    fits({ q: subscription.q }, entity) === true
  )
}

/** docs/interface/subscriptions.md#alteration-types, docs/interface/subscriptions.md#attribute-rule */
function passesAttributes(subscription: Subscription, { class: kind, r, v, m }: Happening): boolean {
  const { attrs, notifyOnMetadataChange } = subscription
  const given = subscription.alterationTypes
  const types = given.length > 0 ? given : ['entityCreate', 'entityChange']
  const hits = (names: ReadonlySet<string>) =>
    names.size > 0 && (attrs.length === 0 || attrs.some(one => names.has(one)))
  if (kind === 'create') return types.includes('entityCreate') && hits(v)
  if (kind === 'delete') return types.includes('entityDelete') || subscription.propagateDeletes === true
  const isChanged = hits(v) || (notifyOnMetadataChange && hits(m))
  if (types.includes('entityUpdate') && (hits(r) || isChanged)) return true
  return types.includes('entityChange') && isChanged
}

/** docs/interface/entities.md#changes */
function isMeant({ id, idPattern, type, typePattern }: Element, entity: Entity): boolean {
  if (id !== undefined && id !== entity.id) return false
  if (idPattern !== undefined && !new RegExp(idPattern).test(entity.id)) return false
  if (type !== undefined && type !== entity.type) return false
  return typePattern === undefined || new RegExp(typePattern).test(entity.type)
}

type Expression = { readonly [name in 'q' | 'mq' | 'geo']?: Subscription[name] | undefined }

function fits({ q, mq, geo }: Expression, entity: Entity): boolean | undefined {
  const query = { form: 'GET', selectors: [], counted: false, shown: { mode: 'normalized' } } as const
  return fitsQuery({ ...query, ...(q && { q }), ...(mq && { mq }), ...(geo && { geo }) }, entity)
}

/**
 * The verdict on a selected subscription: the first rule that holds it back
 * (docs/interface/subscriptions.md#triggering), or `fires`; undefined: no plain argument decides it.
 */
export function verdictOn(
  subscription: Subscription,
  happening: Happening,
  lastNotificationMs: number | undefined,
  nowMs: number,
): string | undefined {
  const { expiresMs, onlyChangedAttrs, propagateDeletes, throttlingSeconds, q, mq, geo } = subscription
  const isPropagated = propagateDeletes && happening.class === 'delete'
  const { entity } = happening
  if (subscription.status === 'inactive') return 'status'
  if (expiresMs !== undefined && expiresMs < nowMs) return 'expires'
  if (onlyChangedAttrs && !isPropagated && sentNames(subscription, happening).length === 0) return 'onlyChangedAttrs'
  if (lastNotificationMs !== undefined && nowMs - lastNotificationMs < throttlingSeconds * 1000) return 'throttling'
  if (!fits({ q }, entity)) return 'q'
  if (!fits({ mq }, withEventMetadata(happening))) return 'mq'
  const isThere = fits({ geo }, entity)
  if (isThere === undefined) return undefined
  return isThere ? 'fires' : 'geo'
}

/**
 * docs/interface/notifications.md#only-changed-attributes: of the attributes to send, those that the request named;
 * three builtins stay if they are listed.
 */
export function sentNames({ sentAttrs, exceptAttrs }: Subscription, { r }: Happening): readonly string[] {
  const named = [...r]
  const builtins = ['alterationType', 'dateCreated', 'dateModified'].filter(name => sentAttrs.includes(name))
  if (sentAttrs.length > 0 && !sentAttrs.includes('*'))
    return [...new Set([...named.filter(name => sentAttrs.includes(name)), ...builtins])]
  const users = named.filter(name => !exceptAttrs.includes(name))
  return [...new Set([...users.filter(name => name !== 'dateExpires' || sentAttrs.includes(name)), ...builtins])]
}

/**
 * The entity with the metadata that only an event has (docs/interface/subscriptions.md#expressions,
 * docs/interface/notifications.md#metadata).
 */
export function withEventMetadata({ entity, before, r }: Happening): Entity {
  const attributes = [...entity.attributes].map(([name, attribute]) => {
    const metadata = new Map(attribute.metadata)
    metadata.delete('previousValue')
    metadata.delete('actionType')
    const previous = before?.attributes.get(name)
    if (r.has(name)) metadata.set('actionType', { type: 'Text', value: previous ? 'update' : 'append' })
    if (r.has(name) && previous) metadata.set('previousValue', { type: previous.type, value: previous.value })
    return [name, { ...attribute, metadata }] as const
  })
  return { ...entity, attributes: new Map(attributes) }
}
