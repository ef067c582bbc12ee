// Whether an event fires a subscription: the rules of docs/interface/subscriptions.md#triggering, one after the other.
//
// `matches` asks what depends on the event and the subscription. The matcher asks the same of many at once, and tests
// hold it to this. `firing` asks the rest of one subscription that matched, in the order of
// docs/interface/subscriptions.md#triggering.
//
// Not here: the sets of names (event.ts), the index (matcher.ts), the account of it all for a person (explanation.ts).

import { type Entity, expiryAttribute, type Metadata } from '../entities/entity.js'
import { locationOf, matchesGeo } from '../places/geo.js'
import type { Geometry } from '../places/location.js'
import { compilePattern, type EventWork } from '../queries/pattern.js'
import { conjuncts, matchesQuery, matchesStatement } from '../queries/query.js'
import type { Query, Statement } from '../queries/query-parser.js'
import { coversPath } from '../scope.js'
import { actionTypeOf, concerns, type Event, previousOf } from './event.js'
import type { NotificationSettings, SubjectEntity, Subscription, SubscriptionProgress } from './subscription.js'
import { isExpired, isThrottled, storedStatus } from './subscription-status.js'

/**
 * Whether the event is one that the subscription watches: by kind, path, attributes, id, type and `q`
 * (docs/interface/subscriptions.md#triggering step 2).
 */
export function matches(subscription: Subscription, event: Event): boolean {
  const { condition, entities, notification, servicePath, status } = subscription
  return (
    status !== 'inactive' &&
    coversPath(servicePath, event.path) &&
    concerns(event, condition, notification.propagateDeletes) &&
    entities.some(element => isElement(element, event.entity)) &&
    (condition.expression.q === undefined || matchesQuery(condition.expression.q, event.entity, event.path))
  )
}

/** Whether the entity is one that the element of a subject means (docs/interface/entities.md#changes). */
export function isElement({ id, idPattern, type, typePattern }: SubjectEntity, entity: Pick<Entity, 'id' | 'type'>) {
  if (id !== undefined && id !== entity.id) return false
  if (type !== undefined && type !== entity.type) return false
  return fitsPattern(typePattern, entity.type) && fitsPattern(idPattern, entity.id)
}

const fitsPattern = (pattern: string | undefined, text: string): boolean =>
  pattern === undefined || compilePattern(pattern)?.test(text) === true

/** Why a subscription that matched does not fire. */
export type Hindrance = 'status' | 'expires' | 'onlyChangedAttrs' | 'throttling' | 'mq' | 'geo'

// [hot] Once per event and subscription that matched it.
/**
 * Whether a subscription fires that the event matches; if not, the first reason in the order of
 * docs/interface/subscriptions.md#triggering. `work`: what the event may cost.
 */
export function decideTrigger(
  subscription: Subscription,
  progress: SubscriptionProgress,
  event: Event,
  nowMs: number,
  work?: EventWork,
): 'fires' | Hindrance {
  const { notification, condition } = subscription
  const { mq, geo } = condition.expression
  if (storedStatus(subscription, progress) === 'inactive') return 'status'
  if (isExpired(subscription, nowMs)) return 'expires'
  if (notification.onlyChangedAttrs && saysNothing(notification, event)) return 'onlyChangedAttrs'
  if (isThrottled(subscription, progress, nowMs)) return 'throttling'
  if (mq && !matchesMetadata(mq, event, work)) return 'mq'
  if (!geo) return 'fires'
  const location = locate(event.entity)
  return location && matchesGeo(geo, location) ? 'fires' : 'geo'
}

/**
 * Whether nothing is left to be sent with `onlyChangedAttrs`. A deletion that is propagated says enough with id and
 * type.
 */
const saysNothing = (notification: NotificationSettings, event: Event): boolean =>
  !(notification.propagateDeletes && event.class === 'delete') && changedAttrs(notification, event).length === 0

/**
 * Builtins that `onlyChangedAttrs` keeps although no request names them
 * (docs/interface/notifications.md#only-changed-attributes).
 */
const keptBuiltins: readonly string[] = ['alterationType', 'dateCreated', 'dateModified']

/**
 * The names that a notification with `onlyChangedAttrs` sends, as far as they are there
 * (docs/interface/notifications.md#only-changed-attributes); with none there is no notification. A name that the
 * request deleted is one of them. Where all attributes are wanted, `dateExpires` is none: it shows only when listed.
 */
export function changedAttrs(
  { attrs, exceptAttrs }: Pick<NotificationSettings, 'attrs' | 'exceptAttrs'>,
  { named }: Pick<Event, 'named'>,
): readonly string[] {
  const listed = attrs.filter(name => name !== '*' && (named.has(name) || keptBuiltins.includes(name)))
  if (attrs.length > 0 && !attrs.includes('*')) return listed
  const others = [...named].filter(name => name !== expiryAttribute && !exceptAttrs.includes(name))
  return [...new Set([...others, ...listed])]
}

// Metadata

/**
 * Whether all of an `mq` holds after the event, whose own metadata it may ask for as well
 * (docs/interface/subscriptions.md#expressions).
 */
function matchesMetadata(mq: Query, event: Event, work: EventWork | undefined): boolean {
  for (const statement of conjuncts(mq)) {
    const entity = isAboutEvent(statement) ? withEventMetadata(event, statement.path.attribute) : event.entity
    if (!matchesStatement(statement, entity, event.path, work)) return false
  }
  return true
}

/**
 * Whether a statement of an `mq` asks for metadata that only an event has: without one, nobody can tell whether it
 * holds.
 */
export const isAboutEvent = ({ path }: Statement): boolean =>
  path.metadata === 'previousValue' || path.metadata === 'actionType'

/**
 * An entity of one attribute, whose metadata is what the event tells of it; stored metadata of these names counts as
 * little as in docs/interface/subscriptions.md#attribute-rule.
 */
function withEventMetadata(event: Event, name: string): Entity {
  const attribute = event.entity.attributes.get(name)
  if (!attribute) return event.entity
  const metadata = new Map<string, Metadata>()
  const action = actionTypeOf(event, name)
  if (action) metadata.set('actionType', { type: 'Text', value: action })
  const previous = previousOf(event, name)
  if (previous) metadata.set('previousValue', { type: previous.type, value: previous.value })
  return { ...event.entity, attributes: new Map([[name, { ...attribute, metadata }]]) }
}

// Geography

let located: { readonly entity: Entity; readonly geometry: Geometry | undefined } | undefined

/** Where the entity lies. Kept for the next one who asks: many subscriptions in a row ask of the same event. */
function locate(entity: Entity): Geometry | undefined {
  if (located?.entity !== entity) located = { entity, geometry: locationOf(entity) }
  return located.geometry
}

/**
 * Whether an update that a custom notification asks for has come back in a circle (docs/interface/cascades.md#circles):
 * the root of its correlator is that of the last request that modified the entity.
 */
export const isNotificationLoop = (root: string, lastRoot: string | undefined): boolean =>
  root !== '' && root === lastRoot
