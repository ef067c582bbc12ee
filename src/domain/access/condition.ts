// A grant as a condition on entities: which of them a principal may see or change, and which attributes
// (docs/interface/access.md#the-decision).
//
//   clauses (from rules):   paths   types   ids   attributes
//                           /a/#    Museum  all   all but cost
//                           /b      all     m1    all
//
// An entity is covered when its path, type and id fit any clause; its attributes are those of all clauses that they
// fit. None of the three ever changes, so neither does the answer for an entity. The clauses are plain data: they cross
// nodes, and are compiled there again.
//
// [hot] Once per entity of a narrowed list, and per event of a narrowed watcher. On one core of a busy machine `covers`
// takes 0.07 us, also with a hundred types, and 0.5 us with a pattern; `seen` 0.5 us when one attribute of five is
// hidden.

import type { Entity } from '../entities/entity.js'
import { compilePattern, type EventWork, type Pattern, testWork } from '../queries/pattern.js'
import { anyCoversPath } from '../scope.js'
import type { AccessRule, IdSelector } from './access-rule.js'
import { type AttributeSet, asSeen, attributeSetOf, noAttribute, union } from './attribute-set.js'
import { coversPattern, withoutCovered } from './path-patterns.js'

/** The part of a rule that is left when action and tenant fit. Plain data. */
export type GrantClause = Pick<AccessRule, 'paths' | 'types' | 'ids' | 'attributes'>

/** A clause with its sets and patterns. */
export interface CompiledClause {
  readonly paths: readonly string[]
  /** undefined: every type. */
  readonly types: ReadonlySet<string> | undefined
  readonly ids: IdSet | undefined
  readonly attributes: AttributeSet
}

/** Ids by name and by pattern. */
export class IdSet {
  readonly names: ReadonlySet<string>
  readonly patterns: readonly Pattern[]

  /** A text that is no pattern in this build matches nothing. */
  constructor(selectors: readonly IdSelector[]) {
    this.names = new Set(selectors.filter(one => typeof one === 'string'))
    this.patterns = selectors.flatMap(one => (typeof one === 'string' ? [] : (compilePattern(one.pattern) ?? [])))
  }

  /** `work`: the budget of an event. Without any left, an id is not in the set. */
  has(id: string, work?: EventWork): boolean {
    if (this.names.has(id)) return true
    for (const pattern of this.patterns)
      if ((!work || work.spend(testWork(pattern, id.length))) && pattern.test(id)) return true
    return false
  }
}

/** Identifies an entity within a tenant. Only rules with ids read the id. */
export interface EntityInPath {
  readonly path: string
  readonly type: string
  readonly id: string
}

export class AccessCondition {
  private readonly index: ClauseIndex
  private readonly unions = new Unions()
  private knownPaths: readonly string[] | undefined

  /** At least one clause. */
  constructor(readonly clauses: readonly GrantClause[]) {
    this.index = new ClauseIndex(clauses)
  }

  /** The same, compiled. */
  get compiled(): readonly CompiledClause[] {
    return this.index.all
  }

  /** The paths in which entities may be covered, none within another one. */
  get paths(): readonly string[] {
    this.knownPaths ??= withoutCovered(this.clauses.flatMap(({ paths }) => paths))
    return this.knownPaths
  }

  /** Whether the entity is covered. */
  covers(entity: EntityInPath, work?: EventWork): boolean {
    for (const clause of this.index.ofType(entity.type)) if (fits(clause, entity, work)) return true
    return false
  }

  /** The attributes that the clauses name for an entity; undefined: it is not covered. */
  attributesOf(entity: EntityInPath, work?: EventWork): AttributeSet | undefined {
    let found: AttributeSet | undefined
    for (const clause of this.index.ofType(entity.type)) {
      if (!fits(clause, entity, work)) continue
      found = found ? this.unions.of(found, clause.attributes) : clause.attributes
      if (found.kind === 'all') return found
    }
    return found
  }

  /**
   * The attributes that are named for every entity of an area; undefined: the clauses do not cover all of it. Without a
   * type or an id the area has all types, or all ids. Only clauses that cover the whole area count.
   */
  attributesOfArea(path: string, type: string | undefined, id: string | undefined): AttributeSet | undefined {
    let found: AttributeSet | undefined
    for (const clause of this.index.all) {
      if (!fitsArea(clause, path, type, id)) continue
      found = found ? union(found, clause.attributes) : clause.attributes
    }
    return found
  }

  /** Whether one clause covers the whole area. */
  coversArea(path: string, type: string | undefined, id: string | undefined): boolean {
    return this.index.all.some(clause => fitsArea(clause, path, type, id))
  }

  /** The entity as its reader sees it; undefined: it does not see it. */
  seen(entity: Entity, path: string, work?: EventWork): Entity | undefined {
    const attributes = this.attributesOf({ path, type: entity.type, id: entity.id }, work)
    return attributes && asSeen(attributes, entity)
  }

  /** Whether entities of the type can be covered. */
  mayMeanType(type: string): boolean {
    return this.index.ofType(type).length > 0
  }

  /** The types that can be covered, if the clauses name them all; undefined: every type. */
  namedTypes(): ReadonlySet<string> | undefined {
    return this.index.namedTypes
  }

  /** The ids that can be covered, if the clauses name them all; undefined otherwise. */
  namedIds(): ReadonlySet<string> | undefined {
    const names = new Set<string>()
    for (const { ids } of this.index.all) {
      if (!ids || ids.patterns.length > 0) return undefined
      for (const name of ids.names) names.add(name)
    }
    return names
  }

  /** Which entities of a path and type are covered. */
  coversRange(path: string, type: string): 'none' | 'some' | 'all' {
    const fitting = this.ofRange(path, type)
    if (fitting.length === 0) return 'none'
    return fitting.some(({ ids }) => ids === undefined) ? 'all' : 'some'
  }

  /** The attributes that are named for every entity of a path and type; undefined: that depends on the id. */
  attributesOfRange(path: string, type: string): AttributeSet | undefined {
    const fitting = this.ofRange(path, type)
    if (fitting.some(({ ids }) => ids !== undefined)) return undefined
    return fitting.reduce((found, { attributes }) => union(found, attributes), noAttribute)
  }

  private ofRange(path: string, type: string): readonly CompiledClause[] {
    return this.index.ofType(type).filter(({ paths }) => anyCoversPath(paths, path))
  }

  /** Whether every covered entity is covered with all of its attributes. */
  showsAllAttributes(): boolean {
    return this.index.all.every(({ attributes }) => attributes.kind === 'all')
  }
}

/** Unions that were made before: entities of one type nearly always fit the same clauses. */
class Unions {
  private readonly known = new Map<AttributeSet, Map<AttributeSet, AttributeSet>>()
  private count = 0

  of(a: AttributeSet, b: AttributeSet): AttributeSet {
    const known = this.known.get(a)?.get(b)
    if (known) return known
    if (this.count >= unionsMax) {
      this.known.clear()
      this.count = 0
    }
    const made = union(a, b)
    const ofA = this.known.get(a)
    if (ofA) ofA.set(b, made)
    else this.known.set(a, new Map([[b, made]]))
    this.count++
    return made
  }
}

/** More are made again: that takes some microseconds. */
const unionsMax = 100

const fits = ({ paths, ids }: CompiledClause, entity: EntityInPath, work: EventWork | undefined): boolean =>
  anyCoversPath(paths, entity.path) && (ids === undefined || ids.has(entity.id, work))

const fitsArea = (
  { paths, types, ids }: CompiledClause,
  path: string,
  type: string | undefined,
  id: string | undefined,
): boolean =>
  (types === undefined || (type !== undefined && types.has(type))) &&
  (ids === undefined || (id !== undefined && ids.has(id))) &&
  paths.some(pattern => coversPattern(pattern, path))

/** The clauses for each type, compiled when they are first needed: many grants are only passed on. */
class ClauseIndex {
  private compiled: readonly CompiledClause[] | undefined
  private division: Divided | undefined

  constructor(private readonly clauses: readonly GrantClause[]) {}

  get all(): readonly CompiledClause[] {
    this.compiled ??= this.clauses.map(compileClause)
    return this.compiled
  }

  get namedTypes(): ReadonlySet<string> | undefined {
    const { untyped, byType } = this.divided
    return untyped.length > 0 ? undefined : new Set(byType.keys())
  }

  ofType(type: string): readonly CompiledClause[] {
    const { untyped, byType } = this.divided
    return byType.get(type) ?? untyped
  }

  private get divided(): Divided {
    this.division ??= this.divide()
    return this.division
  }

  private divide(): Divided {
    const byType = new Map<string, CompiledClause[]>()
    const untyped = this.all.filter(({ types }) => types === undefined)
    for (const clause of this.all) {
      for (const type of clause.types ?? []) {
        const known = byType.get(type)
        if (known) known.push(clause)
        else byType.set(type, [...untyped, clause])
      }
    }
    return { untyped, byType }
  }
}

interface Divided {
  readonly untyped: readonly CompiledClause[]
  /** The clauses for each named type, those for every type included. */
  readonly byType: ReadonlyMap<string, readonly CompiledClause[]>
}

const compileClause = ({ paths, types, ids, attributes }: GrantClause): CompiledClause => ({
  paths,
  types: types && new Set(types),
  ids: ids && new IdSet(ids),
  attributes: attributeSetOf(attributes),
})
