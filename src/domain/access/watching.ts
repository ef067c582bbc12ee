// Subscriptions and streams under a grant (docs/interface/access.md#subscriptions, docs/interface/access.md#streams).
//
// The grant is a condition of the watcher, as its path and its `q` are. An event is matched as its watcher sees it: not
// at all if the grant does not cover the entity, and without the attributes that it does not show. A change of hidden
// attributes alone is no event. The notification, or the event of a stream, is made of the same event.
//
// Not here: the matcher, which finds the watchers that the whole event matches: `matchesAsSeen` is asked about those.

import type { Entity } from '../entities/entity.js'
import type { EventWork, Pattern } from '../queries/pattern.js'
import { compilePattern } from '../queries/pattern.js'
import { matchesQuery } from '../queries/query.js'
import { accepted, type Result, refused } from '../refusal.js'
import type { FilterSource } from '../streams/change-filter.js'
import { concerns, type Event } from '../subscriptions/event.js'
import type { Condition, SubjectEntity, Subscription, Watcher } from '../subscriptions/subscription.js'
import { matches } from '../subscriptions/triggering.js'
import { type AttributeSet, alterationsAsSeen, asSeen, everyAttribute, namesAsSeen } from './attribute-set.js'
import type { AccessCondition } from './condition.js'
import { namesInExpression, refuseNames } from './filters.js'
import { type AllowedGrant, type Grant, grantWithin, refuseAction } from './grant.js'
import type { AskedEntities } from './rule-overlap.js'

/** What a watcher is about, before it is compiled or after. */
export interface WatchedPart {
  readonly tenant: string
  readonly servicePath: string
  readonly entities: readonly SubjectEntity[]
  readonly condition: Pick<Condition, 'attrs' | 'expression'>
}

/**
 * The grant under which a watcher is matched, or the refusal of the watcher. After a change of the file, a watcher that
 * would be refused matches nothing. `grant`: that of its creator, or of the reader of a stream.
 */
export function grantOfWatcher(
  grant: Grant,
  action: 'subscribe' | 'stream',
  { tenant, servicePath, entities, condition }: WatchedPart,
): Result<AllowedGrant> {
  const place = { tenant, paths: [servicePath] }
  const own = grantWithin(grant, place.paths)
  if (own.kind === 'denied') return refused(refuseAction(action, place))
  const names = [
    ...condition.attrs.map(attribute => ({ filter: 'condition.attrs', attribute }) as const),
    ...namesInExpression(condition.expression),
  ]
  const refusal = refuseNames(own, place, entitiesOfSubject(entities), names)
  return refusal ? refused(refusal) : accepted(own)
}

/** What the present rules of its owner let a subscription notify of; undefined: of nothing. */
export type GrantOfOwner = (subscription: Subscription) => AllowedGrant | undefined

/** The attributes of an entity under a grant; undefined: it is not covered, or there is no grant. */
export function attributesUnder(
  grant: AllowedGrant | undefined,
  { id, type }: Pick<Entity, 'id' | 'type'>,
  path: string,
): AttributeSet | undefined {
  if (!grant) return undefined
  return grant.kind === 'all' ? everyAttribute : grant.condition.attributesOf({ path, type, id })
}

/** The entities that a subject may mean. */
export function entitiesOfSubject(subject: readonly SubjectEntity[]): AskedEntities {
  const types = subject.flatMap(({ type }) => type ?? [])
  const patterns = subject.flatMap(({ type, typePattern }) => (type === undefined ? [compiled(typePattern)] : []))
  const ids = subject.flatMap(({ id }) => id ?? [])
  const names = new Set(types)
  return {
    mayMeanType: type => names.has(type) || patterns.some(pattern => pattern === 'any' || pattern.test(type)),
    types: patterns.length > 0 ? undefined : names,
    ids: ids.length < subject.length ? undefined : new Set(ids),
  }
}

const compiled = (pattern: string | undefined): Pattern | 'any' =>
  (pattern === undefined ? undefined : compilePattern(pattern)) ?? 'any'

/** The filter of a stream with the grant of its readers: plain data, as it is sent to the owners of shards. */
export const withGrant = (source: FilterSource, grant: AllowedGrant): FilterSource =>
  grant.kind === 'all' ? source : { ...source, grant: grant.condition.clauses }

/** Whether it is an update of nothing that is seen. */
export const isUnseen = ({ class: kind, named, changedValues, changedMetadata }: Event): boolean =>
  (kind === 'change' || kind === 'update') && named.size + changedValues.size + changedMetadata.size === 0

/**
 * One event as watchers with different conditions see it. Watchers that share a condition object share its view of the
 * event. `work`: the budget of the event.
 */
export class EventViews {
  private readonly byCondition = new Map<AccessCondition, Event | undefined>()

  constructor(
    private readonly event: Event,
    private readonly work?: EventWork,
  ) {}

  /** The event under a condition; undefined: it is not there. */
  under(condition: AccessCondition | undefined): Event | undefined {
    if (!condition) return this.event
    const known = this.byCondition.get(condition)
    if (known || this.byCondition.has(condition)) return known
    const seen = eventAsSeen(condition, this.event, this.work)
    this.byCondition.set(condition, seen)
    return seen
  }
}

/** The event as a reader under the condition sees it; undefined: the entity is not there for it. */
export function eventAsSeen(condition: AccessCondition, event: Event, work?: EventWork): Event | undefined {
  const { path, entity } = event
  const set = condition.attributesOf({ path, type: entity.type, id: entity.id }, work)
  return set && eventWith(set, event)
}

/** The event without the attributes that are not in the set. */
function eventWith(set: AttributeSet, event: Event): Event {
  if (set.kind === 'all') return event
  const changedValues = namesAsSeen(set, event.changedValues)
  const changedMetadata = namesAsSeen(set, event.changedMetadata)
  const isUnchanged = changedValues.size + changedMetadata.size === 0
  return {
    ...event,
    class: event.class === 'change' && isUnchanged ? 'update' : event.class,
    entity: asSeen(set, event.entity),
    before: event.before && asSeen(set, event.before),
    alterations: alterationsAsSeen(set, event.alterations),
    named: namesAsSeen(set, event.named),
    changedValues,
    changedMetadata,
  }
}

// [hot] Once per event and narrowed watcher that matched it.
/** Whether a watcher that matches the whole event also matches it as it is seen. */
export function matchesAsSeen(
  { condition, notification: { propagateDeletes } }: Watcher,
  seen: Event,
  work?: EventWork,
): boolean {
  if (!concerns(seen, condition, propagateDeletes)) return false
  const { q } = condition.expression
  return q === undefined || matchesQuery(q, seen.entity, seen.path, work)
}

/** Whether a watcher with a condition is about the event: the plain rule that the matcher follows. */
export function matchesUnder(condition: AccessCondition | undefined, watcher: Watcher, event: Event): boolean {
  const seen = new EventViews(event).under(condition)
  return seen !== undefined && matches(watcher, seen)
}
