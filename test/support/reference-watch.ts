// The events that a watch of a live feed should report about a change, written from docs/interface/live.md and from the
// rules of subscriptions and lists that it names, and from nothing else.
//
// Plain on purpose: every rule is asked for every watch. It shares no line with src/. A result that reference-geo
// leaves undefined makes several reports possible.
//
// Not here: the effect of a request on an entity (reference-entities), the classes of changes
// (reference-subscriptions), random watches (random-feed), the order and the loss of events
// (test/test/streams/feed-checker.ts).

import { type Entity, isEqual, type Json, type JsonObject } from './reference-entities.js'
import type { Geo } from './reference-geo.js'
import {
  coversPath,
  fitsQuery,
  type Query,
  type Selector,
  type Shown,
  type Statement,
  shownEntity,
} from './reference-query.js'
import { type AlterationType, type Happening, withEventMetadata } from './reference-subscriptions.js'

export interface Watch {
  /** One service path, which may end in `/#`. */
  readonly path: string
  /** The entity fits any of them; empty: every entity. */
  readonly selectors: readonly Selector[]
  readonly q?: readonly Statement[]
  readonly mq?: readonly Statement[]
  readonly geo?: Geo
  /** One of these attributes has to change; empty: each attribute counts. */
  readonly conditionAttrs: readonly string[]
  /** Empty: all of them. */
  readonly alterationTypes: readonly AlterationType[]
  readonly shown: Shown & { readonly mode: 'normalized' | 'keyValues' }
  readonly onlyChangedAttrs: boolean
  readonly sysAttrs: boolean
  readonly leave: boolean
  readonly snapshot: boolean
  /** Least time between two events about one entity; 0: none. */
  readonly minIntervalMs: number
  /** How long events may be gathered. */
  readonly gatherMs: number
}

/**
 * The event of a change for a reader: an event of one of the four kinds, an `entityLeave`, or nothing. `hidden`:
 * nothing, since `onlyChangedAttrs` leaves nothing to show.
 */
export type Report = 'event' | 'leave' | 'hidden' | 'nothing'

/** Whether the list of the watch has this entity; undefined: no plain argument decides it. */
export function isListed({ path, selectors, q, mq, geo }: Watch, entity: Entity): boolean | undefined {
  if (!coversPath([path], entity.path)) return false
  const query: Query = { form: 'GET', selectors, counted: false, shown: { mode: 'normalized' } }
  return fitsQuery({ ...query, ...(q && { q }), ...(mq && { mq }), ...(geo && { geo }) }, entity)
}

/** The possible reports of a change: one, unless no plain argument decides. */
export function reportsOf(watch: Watch, happening: Happening): readonly Report[] {
  const { before, class: kind } = happening
  const isMeant = passesKind(watch, happening)
  const isShown = kind === 'delete' || !watch.onlyChangedAttrs || namesShown(watch, happening).length > 0
  const reports = new Set<Report>()
  // Of a deletion, the last state counts.
  for (const isNow of possible(isListed(watch, withEventMetadata(happening))))
    for (const was of possible(before !== undefined && isListed(watch, before))) {
      const isThere = isNow && kind !== 'delete'
      if (isNow && isMeant) reports.add(isShown ? 'event' : 'hidden')
      else reports.add(watch.leave && was && !isThere ? 'leave' : 'nothing')
    }
  return [...reports]
}

const possible = (is: boolean | undefined): readonly boolean[] => (is === undefined ? [true, false] : [is])

/** docs/interface/live.md#filters, docs/interface/subscriptions.md#attribute-rule */
function passesKind({ alterationTypes, conditionAttrs }: Watch, { class: kind, r, v, m }: Happening): boolean {
  const takes = (type: AlterationType) => alterationTypes.length === 0 || alterationTypes.includes(type)
  const hits = (names: ReadonlySet<string>) =>
    names.size > 0 && (conditionAttrs.length === 0 || conditionAttrs.some(one => names.has(one)))
  if (kind === 'create') return takes('entityCreate') && (conditionAttrs.length === 0 || hits(v))
  if (kind === 'delete') return takes('entityDelete')
  const isChanged = hits(v) || hits(m)
  return (takes('entityUpdate') && (hits(r) || isChanged)) || (takes('entityChange') && isChanged)
}

/** With `onlyChangedAttrs`: the attributes that the request named, as far as they are shown, and builtin ones. */
export function namesShown({ shown: { attrs }, sysAttrs }: Watch, { r }: Happening): readonly string[] {
  const isShown = (name: string) =>
    attrs === undefined || attrs.includes(name) || (attrs.includes('*') && name !== 'dateExpires')
  const users = [...r].filter(name => isShown(name) && (attrs !== undefined || name !== 'dateExpires'))
  return [...users, ...(sysAttrs ? builtinDates : [])]
}

const builtinDates = ['dateCreated', 'dateModified'] as const

/** The entity as the list of the watch shows it. */
export function listedEntity({ shown, sysAttrs }: Watch, entity: Entity): JsonObject {
  const attrs = sysAttrs ? [...(shown.attrs ?? ['*']), ...builtinDates] : shown.attrs
  return asJson(entity, shown, attrs)
}

/** The entity as an event about a change shows it; `names`: with `onlyChangedAttrs`, the attributes that are named. */
export function eventEntity(watch: Watch, { entity }: Happening, names: readonly string[]): JsonObject {
  return watch.onlyChangedAttrs ? asJson(entity, watch.shown, names) : listedEntity(watch, entity)
}

function asJson(entity: Entity, shown: Shown, attrs: readonly string[] | undefined): JsonObject {
  const { attrs: _attrs, ...rest } = shown
  return JSON.parse(shownEntity(entity, attrs === undefined ? rest : { ...rest, attrs })) as JsonObject
}

/** Names in `changed`: attributes with another value, type or metadata, and those that were added or deleted. */
export const changedNames = ({ v, m }: Happening): ReadonlySet<string> => new Set([...v, ...m])

/** Whether two shown entities are equal. The dates of a broker are left out, because they cannot be predicted. */
export const isShownAlike = (a: JsonObject, b: JsonObject): boolean => isEqual(withoutDates(a), withoutDates(b))

function withoutDates(entity: JsonObject): Json {
  if (!('dateCreated' in entity) && !('dateModified' in entity)) return entity
  return Object.fromEntries(
    Object.entries(entity).filter(([name]) => !(builtinDates as readonly string[]).includes(name)),
  )
}
