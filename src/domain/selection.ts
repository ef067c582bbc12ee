// Which entities a request is about: by id and type (exact or by pattern), by what their attributes hold. One meaning for
// `GET /v2/entities` and `POST /v2/op/query` (entities.md §10.1, §17.1).
//
// A selection is compiled once, where the request came in, and refused there. It keeps the texts it was made of: they are what travels to
// another node, which compiles them again.

import type { Entity } from './entity.js'
import { locationOf, matchesGeo } from './geo.js'
import { type GeoQuery, type GivenGeoQuery, parseGeoQuery } from './geo-query.js'
import { compilePattern, type Pattern } from './pattern.js'
import { matchesQuery, parseQuery, type Query } from './query.js'
import { accepted, type GeoQuerySource, type Result, refusals, refused } from './refusal.js'

/** One way to be meant: all of what is given must fit. */
export interface SelectorSource {
  readonly ids?: readonly string[] | undefined
  readonly idPattern?: string | undefined
  readonly types?: readonly string[] | undefined
  readonly typePattern?: string | undefined
}

export interface SelectionSource {
  /** Any of them; empty: every entity. */
  readonly selectors: readonly SelectorSource[]
  readonly q?: string | undefined
  readonly mq?: string | undefined
  readonly geo?: GivenGeoQuery | undefined
  /** At least one of these attributes must be there (the deprecated `attributes` of op/query). */
  readonly anyAttribute?: readonly string[] | undefined
  /** Where the texts stood: the words of a refusal depend on it. */
  readonly from: GeoQuerySource
}

interface Selector {
  readonly ids: ReadonlySet<string> | undefined
  readonly idPattern: Pattern | undefined
  readonly types: ReadonlySet<string> | undefined
  readonly typePattern: Pattern | undefined
}

export interface Selection {
  readonly source: SelectionSource
  readonly selectors: readonly Selector[]
  readonly q: Query | undefined
  readonly mq: Query | undefined
  readonly geo: GeoQuery | undefined
}

/** The selection of its texts, or the first thing that is wrong with them (entities.md §10.1: patterns, geography, `q`, `mq`). */
export function compileSelection(source: SelectionSource): Result<Selection> {
  const selectors: Selector[] = []
  for (const one of source.selectors) {
    const idPattern = one.idPattern === undefined ? undefined : compilePattern(one.idPattern)
    if (one.idPattern !== undefined && !idPattern) return refused(refusals.idPattern)
    const typePattern = one.typePattern === undefined ? undefined : compilePattern(one.typePattern)
    if (one.typePattern !== undefined && !typePattern) return refused(refusals.typePattern)
    const ids = one.ids && new Set(one.ids)
    const types = one.types && new Set(one.types)
    selectors.push({ ids, idPattern, types, typePattern })
  }
  const geo = parseGeoQuery(source.geo ?? {}, source.from)
  if (!geo.ok) return geo
  const q = source.q === undefined ? undefined : parseQuery(source.q, 'q')
  if (q && !q.ok) return q
  const mq = source.mq === undefined ? undefined : parseQuery(source.mq, 'mq')
  if (mq && !mq.ok) return mq
  return accepted({ source, selectors, q: q?.value, mq: mq?.value, geo: geo.value })
}

/** Whether entities of the type may be meant at all. */
export function mayMeanType({ selectors }: Selection, type: string): boolean {
  return selectors.length === 0 || selectors.some(selector => meansType(selector, type))
}

/** Whether the id and type are meant, whatever the entity holds. */
export function meansIdentity({ selectors }: Selection, id: string, type: string): boolean {
  return selectors.length === 0 || selectors.some(selector => meansType(selector, type) && meansId(selector, id))
}

/** Whether only id and type decide. */
export const isAboutIdentity = ({ q, mq, geo, source }: Selection): boolean =>
  q === undefined && mq === undefined && geo === undefined && source.anyAttribute === undefined

/** Whether every id of the types that are meant is meant: then counts need no look at ids. */
export const meansAllIds = ({ selectors }: Selection): boolean =>
  selectors.every(({ ids, idPattern }) => ids === undefined && idPattern === undefined)

/** The ids that can be meant, when the selection names them all; undefined when it does not. */
export function namedIds({ selectors }: Selection): ReadonlySet<string> | undefined {
  if (selectors.length === 0) return undefined
  const all = new Set<string>()
  for (const { ids } of selectors) {
    if (!ids) return undefined
    for (const id of ids) all.add(id)
  }
  return all
}

// [hot] For every entity that a scan looks into.
/** Whether the entity's attributes fit; its identity has been looked at before. */
export function meansContent({ q, mq, geo, source }: Selection, entity: Entity, path: string): boolean {
  if (source.anyAttribute && !source.anyAttribute.some(name => entity.attributes.has(name))) return false
  if (q && !matchesQuery(q, entity, path)) return false
  if (mq && !matchesQuery(mq, entity, path)) return false
  if (!geo) return true
  const location = locationOf(entity)
  return location !== undefined && matchesGeo(geo, location)
}

const meansType = ({ types, typePattern }: Selector, type: string): boolean =>
  (!types || types.has(type)) && (!typePattern || typePattern.test(type))

const meansId = ({ ids, idPattern }: Selector, id: string): boolean =>
  (!ids || ids.has(id)) && (!idPattern || idPattern.test(id))
