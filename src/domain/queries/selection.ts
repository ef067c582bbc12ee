// Selects the entities that a request means: by id and type (exact or by pattern), and by their attributes
// (docs/interface/queries.md#lists, docs/interface/batch.md#query).
//
// The node that received the request compiles the selection, and perhaps refuses it. The selection keeps its texts:
// they are sent to other nodes, which compile them again.

import type { Entity } from '../entities/entity.js'
import { explorationTogetherMax, selectionPatternsMax, selectionStepsMax } from '../limits.js'
import { locationOf, matchesGeo } from '../places/geo.js'
import { type GeoQuery, type GivenGeoQuery, parseGeoQuery } from '../places/geo-query.js'
import { accepted, type GeoQuerySource, type Result, refusals, refused } from '../refusal.js'
import { compilePattern, type Pattern } from './pattern.js'
import { Exploration } from './pattern-engine.js'
import { conjuncts, matchesQuery } from './query.js'
import { parseQuery, type Query } from './query-parser.js'

/** One selector: all given conditions must hold. */
export interface SelectorSource {
  readonly ids?: readonly string[] | undefined
  readonly idPattern?: string | undefined
  readonly types?: readonly string[] | undefined
  readonly typePattern?: string | undefined
}

export interface SelectionSource {
  /** Any of them must match; empty: every entity. */
  readonly selectors: readonly SelectorSource[]
  readonly q?: string | undefined
  readonly mq?: string | undefined
  readonly geo?: GivenGeoQuery | undefined
  /** At least one of these attributes must exist (the deprecated `attributes` of op/query). */
  readonly anyAttribute?: readonly string[] | undefined
  /** The source of the texts: the text of a refusal depends on it. */
  readonly from: GeoQuerySource
}

interface Selector {
  readonly idPattern: Pattern | undefined
  readonly types: ReadonlySet<string> | undefined
  readonly typePattern: Pattern | undefined
}

// A body may have 30,000 selectors, so the test of each entity must not walk through all of them.
export interface Selection {
  readonly source: SelectionSource
  /** For each named id, the selectors that name it. */
  readonly named: ReadonlyMap<string, readonly Selector[]>
  /** Selectors that name no id. */
  readonly unnamed: readonly Selector[]
  /** The types that match, by name or by pattern; undefined: every type. */
  readonly types: TypeSelector | undefined
  readonly q: Query | undefined
  readonly mq: Query | undefined
  readonly geo: GeoQuery | undefined
}

interface TypeSelector {
  readonly names: ReadonlySet<string>
  readonly patterns: readonly Pattern[]
}

/**
 * Compiles a selection, or returns a refusal for the first mistake (docs/interface/queries.md#lists: patterns,
 * geography, `q`, `mq`).
 */
export function compileSelection(source: SelectionSource): Result<Selection> {
  const identity = compileSelectors(source.selectors)
  if (!identity.ok) return identity
  const geo = parseGeoQuery(source.geo ?? {}, source.from)
  if (!geo.ok) return geo
  const q = source.q === undefined ? undefined : parseQuery(source.q, 'q')
  if (q && !q.ok) return q
  const mq = source.mq === undefined ? undefined : parseQuery(source.mq, 'mq')
  if (mq && !mq.ok) return mq
  exploreMany([...patternsOf(identity.value), ...patternsIn(q?.value), ...patternsIn(mq?.value)])
  return accepted({ source, ...identity.value, q: q?.value, mq: mq?.value, geo: geo.value })
}

/** Up to this number of patterns, automata are built when they are needed: 4 ms each at worst, once. */
const unexploredMax = 4

/** Explores many patterns now, within one allowance; the others have no automata. */
function exploreMany(patterns: readonly Pattern[]): void {
  if (patterns.length <= unexploredMax) return
  const exploration = new Exploration(explorationTogetherMax)
  for (const pattern of patterns) pattern.explore(exploration)
}

const patternsOf = ({ named, unnamed }: Pick<Selection, 'named' | 'unnamed'>): readonly Pattern[] =>
  [...new Set([...unnamed, ...[...named.values()].flat()])].flatMap(({ idPattern, typePattern }) =>
    [idPattern, typePattern].filter(one => one !== undefined),
  )

const patternsIn = (query: Query | undefined): readonly Pattern[] =>
  query ? conjuncts(query).flatMap(one => (one.operator === 'MatchPattern' ? one.right : [])) : []

type Identity = Pick<Selection, 'named' | 'unnamed' | 'types'>

function compileSelectors(selectors: readonly SelectorSource[]): Result<Identity> {
  const named = new Map<string, Selector[]>()
  const unnamed: Selector[] = []
  const names = new Set<string>()
  const patterns: Pattern[] = []
  let anyType = selectors.length === 0
  let count = 0
  let steps = 0
  for (const one of selectors) {
    const idPattern = one.idPattern === undefined ? undefined : compilePattern(one.idPattern)
    if (one.idPattern !== undefined && !idPattern) return refused(refusals.idPattern)
    const typePattern = one.typePattern === undefined ? undefined : compilePattern(one.typePattern)
    if (one.typePattern !== undefined && !typePattern) return refused(refusals.typePattern)
    for (const pattern of [idPattern, typePattern]) {
      if (!pattern) continue
      if (++count > selectionPatternsMax) return refused(refusals.selectionPatternsTooMany(selectionPatternsMax))
      steps += pattern.steps
      if (steps > selectionStepsMax) return refused(refusals.selectionPatternsTooLarge(selectionStepsMax))
    }
    const types = one.types && new Set(one.types)
    const selector: Selector = { idPattern, types, typePattern }
    if (!one.ids) unnamed.push(selector)
    else for (const id of one.ids) remember(named, id, selector)
    if (types) for (const type of types) names.add(type)
    else if (typePattern) patterns.push(typePattern)
    else anyType = true
  }
  return accepted({ named, unnamed, types: anyType ? undefined : { names, patterns } })
}

function remember(named: Map<string, Selector[]>, id: string, selector: Selector): void {
  const known = named.get(id)
  if (!known) named.set(id, [selector])
  else if (known.at(-1) !== selector) known.push(selector)
}

/** Whether entities of the type can match. */
export function mayMeanType({ types }: Selection, type: string): boolean {
  return types === undefined || types.names.has(type) || types.patterns.some(pattern => pattern.test(type))
}

/** Whether the id and type match, whatever the attributes. */
export function meansIdentity({ source, named, unnamed }: Selection, id: string, type: string): boolean {
  if (source.selectors.length === 0) return true
  return (
    named.get(id)?.some(selector => meansType(selector, type) && meansId(selector, id)) ||
    unnamed.some(selector => meansType(selector, type) && meansId(selector, id))
  )
}

/** Whether only id and type decide. */
export const isAboutIdentity = ({ q, mq, geo, source }: Selection): boolean =>
  q === undefined && mq === undefined && geo === undefined && source.anyAttribute === undefined

/** Whether every id of the matching types matches: then counts need no test of ids. */
export const meansAllIds = ({ source, unnamed }: Selection): boolean =>
  unnamed.length === source.selectors.length && unnamed.every(({ idPattern }) => idPattern === undefined)

/** The ids that can match, when the selection names all of them; undefined otherwise. */
export function namedIds({ source, named, unnamed }: Selection): ReadonlySet<string> | undefined {
  return source.selectors.length === 0 || unnamed.length > 0 ? undefined : new Set(named.keys())
}

// [hot] For every entity that a scan reads.
/** Whether the entity's attributes match. Its identity was tested before. */
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

const meansId = ({ idPattern }: Selector, id: string): boolean => !idPattern || idPattern.test(id)
