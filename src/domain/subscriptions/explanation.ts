// Explains whether a subscription would be triggered if a stored entity were updated now, and why.
//
// It lists every condition that the subscription has, with its result, in the order of
// docs/interface/subscriptions.md#triggering. Some conditions depend on the update: then `holds` means that an update
// could satisfy the condition, and the text describes how.
//
// Not here: whether an event triggers a subscription (triggering.ts). A test keeps both consistent.

import { renderDateTime } from '../date-time.js'
import type { Entity } from '../entities/entity.js'
import { isArray, isObject } from '../json.js'
import { locationOf, matchesGeo } from '../places/geo.js'
import { matchesStatement, Several, targetOf } from '../queries/query.js'
import type { Query, Statement } from '../queries/query-parser.js'
import { coversPath } from '../scope.js'
import {
  type AlterationType,
  alterationTypesOf,
  type SubjectEntity,
  type Subscription,
  type SubscriptionProgress,
  watchesDeletions,
} from './subscription.js'
import { isExpired, isThrottled, storedStatus } from './subscription-status.js'
import { changedAttrs, isAboutEvent, isElement } from './triggering.js'

/** The JSON of the answer. */
export interface Explanation {
  /** Whether an update of the entity can trigger the subscription now. */
  readonly fires: boolean
  /** The first condition that does not hold, or the requirement for the update. */
  readonly reason: string
  readonly conditions: readonly ExplainedCondition[]
}

export interface ExplainedCondition {
  readonly condition:
    | 'alterationTypes'
    | 'servicePath'
    | 'attrs'
    | 'entities'
    | 'status'
    | 'expires'
    | 'onlyChangedAttrs'
    | 'throttling'
    | 'q'
    | 'mq'
    | 'geo'
  readonly holds: boolean
  readonly text: string
  /** The end of throttling. */
  readonly until?: string
}

/** Tests each condition of the subscription on an entity in a path. `progress` is that of all processes together. */
export function explain(
  subscription: Subscription,
  progress: SubscriptionProgress,
  entity: Entity,
  path: string,
  nowMs: number,
): Explanation {
  const { q, mq, source } = subscription.condition.expression
  const attrs = explainAttrs(subscription, entity)
  const conditions = [
    explainTypes(subscription),
    explainPath(subscription, path),
    attrs,
    explainIdentity(subscription, entity),
    explainStatus(subscription, progress),
    explainExpiry(subscription, nowMs),
    ...explainChangedAttrs(subscription, entity),
    explainThrottling(subscription, progress, nowMs),
    ...(q ? explainQuery(q, source.q as string, entity, path) : []),
    ...(mq ? explainQuery(mq, source.mq as string, entity, path) : []),
    ...explainGeo(subscription, entity),
  ]
  const hindrance = conditions.find(({ holds }) => !holds)
  return { fires: !hindrance, reason: (hindrance ?? attrs).text, conditions }
}

/** The types of the condition, and deletions when they are propagated. */
function typesOf(subscription: Subscription): readonly AlterationType[] {
  const types = alterationTypesOf(subscription.condition)
  const isMore = watchesDeletions(subscription) && !types.includes('entityDelete')
  return isMore ? [...types, 'entityDelete'] : types
}

function explainTypes(subscription: Subscription): ExplainedCondition {
  const types = typesOf(subscription)
  const holds = types.some(type => type !== 'entityCreate')
  const text = `waits for ${types.join(', ')}`
  return { condition: 'alterationTypes', holds, text: holds ? text : `${text}: the entity is there already` }
}

function explainPath({ servicePath }: Subscription, path: string): ExplainedCondition {
  const holds = coversPath(servicePath, path)
  return { condition: 'servicePath', holds, text: `${path} is ${holds ? '' : 'not '}within ${servicePath}` }
}

function explainAttrs(subscription: Subscription, { attributes }: Entity): ExplainedCondition {
  const { condition } = subscription
  const { attrs } = condition
  const types = typesOf(subscription)
  const waitsForUpdates = types.includes('entityChange') || types.includes('entityUpdate')
  if (!waitsForUpdates && types.includes('entityDelete'))
    return { condition: 'attrs', holds: true, text: 'a deletion counts, whatever the attributes' }
  const wish = types.includes('entityUpdate')
    ? 'has to be named by a request'
    : `has to change${condition.notifyOnMetadataChange ? '' : ', other than in metadata'}`
  if (attrs.length === 0) return { condition: 'attrs', holds: true, text: `an attribute of the entity ${wish}` }
  const there = attrs.filter(name => attributes.has(name))
  const text = `one of ${listed(attrs)} ${wish}`
  return there.length === 0
    ? { condition: 'attrs', holds: false, text: `${text}, and the entity has none of them` }
    : { condition: 'attrs', holds: true, text: `${text}; the entity has ${listed(there)}` }
}

function explainIdentity({ entities }: Subscription, entity: Entity): ExplainedCondition {
  const element = entities.find(one => isElement(one, entity))
  const { id, type } = entity
  const text = element ? `is meant by ${elementText(element)}` : 'is meant by no element of subject.entities'
  return { condition: 'entities', holds: element !== undefined, text: `${id} of type ${type} ${text}` }
}

const elementText = ({ id, idPattern, type, typePattern }: SubjectEntity): string =>
  cut(JSON.stringify({ id, idPattern, type, typePattern }))

function explainStatus(subscription: Subscription, progress: SubscriptionProgress): ExplainedCondition {
  const status = storedStatus(subscription, progress)
  if (status === subscription.status) return { condition: 'status', holds: status !== 'inactive', text: `is ${status}` }
  const why = subscription.status === 'oneshot' ? 'it has fired its one shot' : 'after too many failures'
  return { condition: 'status', holds: false, text: `is inactive: ${why}` }
}

function explainExpiry(subscription: Subscription, nowMs: number): ExplainedCondition {
  const { expiresMs } = subscription
  if (expiresMs === undefined) return { condition: 'expires', holds: true, text: 'never expires' }
  const isOver = isExpired(subscription, nowMs)
  return { condition: 'expires', holds: !isOver, text: `expire${isOver ? 'd' : 's'} ${renderDateTime(expiresMs)}` }
}

function explainChangedAttrs({ notification }: Subscription, { attributes }: Entity): ExplainedCondition[] {
  if (!notification.onlyChangedAttrs) return []
  const names = changedAttrs(notification, { named: new Set(attributes.keys()) })
  const text =
    names.length === 0
      ? 'none of the attributes to be sent is there'
      : `the request has to name one of ${listed(names)}`
  return [{ condition: 'onlyChangedAttrs', holds: names.length > 0, text }]
}

/** The last instant of a JavaScript date. */
const dateMsMax = 8.64e15

function explainThrottling(
  subscription: Subscription,
  progress: SubscriptionProgress,
  nowMs: number,
): ExplainedCondition {
  const { throttlingSeconds } = subscription
  if (throttlingSeconds === 0) return { condition: 'throttling', holds: true, text: 'is not throttled' }
  const rule = `at most once in ${throttlingSeconds} s`
  const { lastNotificationMs } = progress
  if (lastNotificationMs === undefined)
    return { condition: 'throttling', holds: true, text: `${rule}: there was no notification yet` }
  const last = `the last notification was ${renderDateTime(lastNotificationMs)}`
  if (!isThrottled(subscription, progress, nowMs))
    return { condition: 'throttling', holds: true, text: `${rule}: ${last}` }
  const until = renderDateTime(Math.min(lastNotificationMs + throttlingSeconds * 1000, dateMsMax))
  return { condition: 'throttling', holds: false, text: `${rule}: ${last}, the next one may be ${until}`, until }
}

/**
 * Each statement separately. Statements and their texts are in the same order: a text is split before anything else.
 */
function explainQuery(query: Query, source: string, entity: Entity, path: string): ExplainedCondition[] {
  const texts = source.split(';')
  return query.statements.map((statement, at) => {
    const text = cut((texts[at] as string).trim())
    if (query.language === 'mq' && isAboutEvent(statement))
      return { condition: 'mq', holds: true, text: `${text}: the update will tell` }
    const holds = matchesStatement(statement, entity, path)
    return { condition: query.language, holds, text: `${text}: ${found(statement, entity, path)}` }
  })
}

function found({ path }: Statement, entity: Entity, servicePath: string): string {
  const target = targetOf(path, entity, servicePath)
  if (target === undefined) return 'there is none'
  if (target instanceof Several) return `there are ${target.values.length}`
  if (isArray(target)) return `is a list of ${target.length}`
  if (isObject(target)) return 'is an object'
  return `is ${typeof target === 'string' ? `'${cut(target)}'` : target}`
}

function explainGeo({ condition }: Subscription, entity: Entity): ExplainedCondition[] {
  const { geo, source } = condition.expression
  if (!geo) return []
  const query = cut(`${source.georel} ${source.geometry} ${source.coords}`)
  const location = locationOf(entity)
  if (!location) return [{ condition: 'geo', holds: false, text: `${query}: the entity has no location` }]
  return [{ condition: 'geo', holds: matchesGeo(geo, location), text: `${query}: the location is a ${location.type}` }]
}

/** The limit of a text, which may be as long as a request. */
const textLengthMax = 200

const cut = (text: string): string => (text.length > textLengthMax ? `${text.slice(0, textLengthMax)}...` : text)

const namesMax = 10

const listed = (names: readonly string[]): string =>
  names.length > namesMax
    ? `${names.slice(0, namesMax).join(', ')} and ${names.length - namesMax} more`
    : names.join(', ')
