// Whether all entities that a request may be about show an attribute (docs/interface/access.md#filters).
//
// The check ignores stored data: otherwise its answer would reveal them. A clause is cut to what the request names: its
// paths (before), types and ids. If the rest does not show the attribute, other clauses that show it
// have to cover all of it: each of its paths, with each of its types, with each of its ids.
//
//   clause 1: /#, every type, all but cost     request: type=Lamp     rest: /#, Lamp      does not show cost
//   clause 2: /#, Lamp, all                                                  clause 2 covers it, so cost is shown
//   request without a type: the rest of clause 1 is every type, which clause 2 does not cover

import { ruleComparisonsMax } from './access-limits.js'
import type { IdSelector } from './access-rule.js'
import { type AttributeSet, exceptFor, onlyOf, shows } from './attribute-set.js'
import type { AccessCondition, CompiledClause, IdSet } from './condition.js'
import { coversPattern } from './path-patterns.js'

/** The entities that a request may be about, as far as it names them. */
export interface AskedEntities {
  /** Whether it may be about entities of a type. */
  mayMeanType(type: string): boolean
  /** The only types; undefined: others are possible. */
  readonly types: ReadonlySet<string> | undefined
  /** The only ids; undefined: others are possible. */
  readonly ids: ReadonlySet<string> | undefined
}

/** Nothing is named: all entities. */
export const anyEntities: AskedEntities = { mayMeanType: () => true, types: undefined, ids: undefined }

/** One type, or one id. */
export const entitiesOf = (type: string | undefined, id: string | undefined): AskedEntities => ({
  mayMeanType: one => type === undefined || one === type,
  types: type === undefined ? undefined : new Set([type]),
  ids: id === undefined ? undefined : new Set([id]),
})

/** The comparisons of rules that one request may cost. */
export class RuleComparisons {
  private done = 0

  constructor(private readonly max = ruleComparisonsMax) {}

  /** Counts some more. False: there are too many. */
  count(number: number): boolean {
    this.done += number
    return !this.areTooMany
  }

  get areTooMany(): boolean {
    return this.done > this.max
  }
}

/** The clauses that a request can reach, cut to it. Work is done when it is needed, once for each name. */
export class ReachedClauses {
  private readonly shown = new Map<string, boolean>()
  /** The types of clauses that were compared with the request, since clauses often name the same. */
  private readonly meant = new Map<string, boolean>()

  constructor(
    private readonly clauses: readonly CompiledClause[],
    private readonly asked: AskedEntities,
    private readonly comparisons = new RuleComparisons(),
  ) {}

  /** Whether the request can reach none. */
  get isEmpty(): boolean {
    return !this.clauses.some(clause => this.typesOf(clause)?.length !== 0 && this.idsOf(clause)?.length !== 0)
  }

  /** Whether each entity that the request may be about shows the attribute, as far as the clauses tell. */
  showAll(name: string): boolean {
    const known = this.shown.get(name)
    if (known !== undefined) return known
    const isShown = this.showAllThat(({ attributes }) => shows(attributes, name))
    this.shown.set(name, isShown)
    return isShown
  }

  /** The same for all attributes, whatever their names: for a name that no clause has, and for each excluded one. */
  showEverything(): boolean {
    if (!this.showOthers()) return false
    const excluded = this.clauses.flatMap(({ attributes }) =>
      attributes.kind === 'except' ? [...attributes.names] : [],
    )
    return [...new Set(excluded)].every(name => this.showAll(name))
  }

  /** The same for an attribute that no clause names. */
  showOthers(): boolean {
    return this.showAllThat(({ attributes }) => attributes.kind !== 'only')
  }

  private showAllThat(isShown: (clause: CompiledClause) => boolean): boolean {
    const showing = this.clauses.filter(isShown)
    return (
      showing.length === this.clauses.length || this.clauses.every(one => isShown(one) || this.isCovered(one, showing))
    )
  }

  /** Whether other clauses cover the rest of a clause completely: also if nothing is left of it. */
  private isCovered(clause: CompiledClause, by: readonly CompiledClause[]): boolean {
    const types = this.typesOf(clause)
    if (types?.length === 0) return true
    if (!this.mayCompare(this.asked.ids?.size ?? 0, clause.ids)) return false
    const ids = this.idsOf(clause)
    if (ids?.length === 0) return true
    for (const path of clause.paths) {
      const onPath = by.filter(({ paths }) => paths.some(one => coversPattern(one, path)))
      for (const type of types ?? [undefined]) {
        const ofType = onPath.filter(one => one.types === undefined || (type !== undefined && one.types.has(type)))
        if (!this.comparisons.count(by.length + onPath.length)) return false
        for (const id of ids ?? [undefined]) {
          if (!this.comparisons.count(ofType.length + 1)) return false
          if (!ofType.some(one => one.ids === undefined || (id !== undefined && holds(one.ids, id)))) return false
        }
      }
    }
    return true
  }

  /** Counts comparisons of a number of ids with a set. False: there are too many. */
  private mayCompare(count: number, ids: IdSet | undefined): boolean {
    return this.comparisons.count(ids ? count * (1 + ids.patterns.length) : count)
  }

  /** The types of the rest of a clause; undefined: every type. Without types, nothing is left. */
  private typesOf({ types }: CompiledClause): readonly string[] | undefined {
    return types ? [...types].filter(type => this.mayMeanType(type)) : this.asked.types && [...this.asked.types]
  }

  private mayMeanType(type: string): boolean {
    const known = this.meant.get(type)
    if (known !== undefined) return known
    const isMeant = this.asked.mayMeanType(type)
    this.meant.set(type, isMeant)
    return isMeant
  }

  /** The ids of the rest of a clause, in the same way. */
  private idsOf({ ids: own }: CompiledClause): readonly IdSelector[] | undefined {
    const { ids } = this.asked
    if (!own) return ids && [...ids]
    if (ids) return [...ids].filter(id => own.has(id))
    return [...own.names, ...own.patterns.map(({ source }) => ({ pattern: source }))]
  }
}

const ofEveryType = new WeakMap<AccessCondition, AttributeSet | 'none' | 'unknown'>()

// [hot] Once per write without a type under a narrowed grant; only the first one compares rules.
/**
 * The attributes that all entities of a condition show, whatever their types and ids. undefined: rules name ids, or need
 * more comparisons than one request may cost. `none`: there are no entities.
 */
export function attributesOfEveryType(condition: AccessCondition): AttributeSet | 'none' | undefined {
  let known = ofEveryType.get(condition)
  if (known === undefined) {
    known = findAttributesOfEveryType(condition.compiled)
    ofEveryType.set(condition, known)
  }
  return known === 'unknown' ? undefined : known
}

function findAttributesOfEveryType(clauses: readonly CompiledClause[]): AttributeSet | 'none' | 'unknown' {
  if (clauses.some(({ ids }) => ids !== undefined)) return 'unknown'
  const comparisons = new RuleComparisons()
  const reached = new ReachedClauses(clauses, anyEntities, comparisons)
  if (reached.isEmpty) return 'none'
  const named = [
    ...new Set(clauses.flatMap(({ attributes }) => (attributes.kind === 'all' ? [] : [...attributes.names]))),
  ]
  const hidden = named.filter(name => !reached.showAll(name))
  const shown = reached.showOthers() ? exceptFor(new Set(hidden)) : onlyOf(named.filter(name => reached.showAll(name)))
  return comparisons.areTooMany ? 'unknown' : shown
}

/** Whether ids have all that a selector selects. Of two patterns, only the same text certainly has. */
const holds = (ids: IdSet, selector: IdSelector): boolean =>
  typeof selector === 'string' ? ids.has(selector) : ids.patterns.some(({ source }) => source === selector.pattern)
