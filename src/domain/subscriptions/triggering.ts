// Whether an event triggers a subscription: the rules of docs/interface/subscriptions.md#triggering, one after the
// other.
//
// `matches` tests the conditions that depend only on the event and the subscription. The matcher tests the same for
// many at once, and tests compare both. `decideTrigger` tests the rest for one subscription that matched, in the order
// of docs/interface/subscriptions.md#triggering.
//
// Not here: the sets of names (event.ts), the index (matcher.ts), the explanation for humans (explanation.ts).

import { type Entity, expiryAttribute, type Metadata } from '../entities/entity.js'
import { locationOf, matchesGeo } from '../places/geo.js'
import type { Geometry } from '../places/location.js'
import { compilePattern, type EventWork } from '../queries/pattern.js'
import { conjuncts, matchesQuery, matchesStatement } from '../queries/query.js'
import type { Query, Statement } from '../queries/query-parser.js'
import { coversPath } from '../scope.js'
import { actionTypeOf, concerns, type Event, previousOf } from './event.js'
import type {
  Condition,
  NotificationSettings,
  SubjectEntity,
  Subscription,
  SubscriptionProgress,
  Watcher,
} from './subscription.js'
import { isExpired, isThrottled, storedStatus } from './subscription-status.js'

/**
 * Whether a subscription or a watch of a stream is about the event: by kind, path, attributes, id, type and `q`
 * (docs/interface/subscriptions.md#triggering step 2).
 */
export function matches(watcher: Watcher, event: Event): boolean {
  const { condition, entities, notification, servicePath, status } = watcher
  return (
    status !== 'inactive' &&
    coversPath(servicePath, event.path) &&
    concerns(event, condition, notification.propagateDeletes) &&
    entities.some(element => isElement(element, event.entity)) &&
    (condition.expression.q === undefined || matchesQuery(condition.expression.q, event.entity, event.path))
  )
}

/** Whether the entity matches the element of a subject (docs/interface/entities.md#changes). */
export function isElement({ id, idPattern, type, typePattern }: SubjectEntity, entity: Pick<Entity, 'id' | 'type'>) {
  if (id !== undefined && id !== entity.id) return false
  if (type !== undefined && type !== entity.type) return false
  return fitsPattern(typePattern, entity.type) && fitsPattern(idPattern, entity.id)
}

const fitsPattern = (pattern: string | undefined, text: string): boolean =>
  pattern === undefined || compilePattern(pattern)?.test(text) === true

/** Why a subscription that matched is not triggered. */
export type Hindrance = 'status' | 'expires' | 'onlyChangedAttrs' | 'throttling' | 'mq' | 'geo'

// [hot] Once per event and subscription that matched it.
/**
 * Whether an event triggers a subscription that it matches; if not, the first reason in the order of
 * docs/interface/subscriptions.md#triggering. `work`: the budget of the event.
 */
export function decideTrigger(
  subscription: Subscription,
  progress: SubscriptionProgress,
  event: Event,
  nowMs: number,
  work?: EventWork,
): 'fires' | Hindrance {
  const { notification, condition } = subscription
  if (storedStatus(subscription, progress) === 'inactive') return 'status'
  if (isExpired(subscription, nowMs)) return 'expires'
  if (notification.onlyChangedAttrs && saysNothing(notification, event)) return 'onlyChangedAttrs'
  if (isThrottled(subscription, progress, nowMs)) return 'throttling'
  return unmetExpression(condition, event, work) ?? 'fires'
}

/**
 * The part of a condition's expression that the matcher does not test, and that does not hold; undefined: all holds.
 */
export function unmetExpression(
  { expression: { mq, geo } }: Condition,
  event: Event,
  work?: EventWork,
): 'mq' | 'geo' | undefined {
  if (mq && !matchesMetadata(mq, event, work)) return 'mq'
  if (!geo) return undefined
  const location = locate(event.entity)
  return location && matchesGeo(geo, location) ? undefined : 'geo'
}

/** Whether `onlyChangedAttrs` leaves nothing to send. A propagated deletion needs only id and type. */
const saysNothing = (notification: NotificationSettings, event: Event): boolean =>
  !(notification.propagateDeletes && event.class === 'delete') && changedAttrs(notification, event).length === 0

/**
 * Builtin attributes that `onlyChangedAttrs` keeps although no request names them
 * (docs/interface/notifications.md#only-changed-attributes).
 */
const keptBuiltins: readonly string[] = ['alterationType', 'dateCreated', 'dateModified']

/**
 * The names that a notification with `onlyChangedAttrs` sends, if they exist
 * (docs/interface/notifications.md#only-changed-attributes); without names there is no notification. A name that the
 * request deleted is one of them. With all attributes, `dateExpires` is not: it is shown only when listed.
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
 * Whether an `mq` holds after the event. It may also be about metadata of the event itself
 * (docs/interface/subscriptions.md#expressions).
 */
function matchesMetadata(mq: Query, event: Event, work: EventWork | undefined): boolean {
  for (const statement of conjuncts(mq)) {
    const entity = isAboutEvent(statement) ? withEventMetadata(event, statement.path.attribute) : event.entity
    if (!matchesStatement(statement, entity, event.path, work)) return false
  }
  return true
}

/** Whether a statement of an `mq` is about metadata that only an event has: without an event its result is unknown. */
export const isAboutEvent = ({ path }: Statement): boolean =>
  path.metadata === 'previousValue' || path.metadata === 'actionType'

/**
 * An entity of one attribute, with the metadata of the event. Stored metadata of these names are ignored, as in
 * docs/interface/subscriptions.md#attribute-rule.
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

/** The location of the entity. Cached, since many subscriptions in a row are tested on the same event. */
function locate(entity: Entity): Geometry | undefined {
  if (located?.entity !== entity) located = { entity, geometry: locationOf(entity) }
  return located.geometry
}

/**
 * Whether an update by a custom notification has come back in a loop (docs/interface/cascades.md#circles): the root of
 * its correlator is that of the last request that modified the entity.
 */
export const isNotificationLoop = (root: string, lastRoot: string | undefined): boolean =>
  root !== '' && root === lastRoot
