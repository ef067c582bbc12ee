// Whether all entities that a request may be about show an attribute (docs/interface/access.md#filters).
//
// The stored data are not asked: the answer would depend on them, and would tell of them. A clause is cut to what the
// request names, its paths (before), types and ids. If the rest does not show the attribute, other clauses that show it
// have to cover all of it: each of its paths, with each of its types, with each of its ids.
//
//   clause 1: /#, every type, all but cost     request: type=Lamp     rest: /#, Lamp      does not show cost
//   clause 2: /#, Lamp, all                                                  clause 2 covers it, so cost is shown
//   request without a type: the rest of clause 1 is every type, which clause 2 does not cover

import { ruleComparisonsMax } from './access-limits.js'
import type { IdSelector } from './access-rule.js'
import { shows } from './attribute-set.js'
import type { CompiledClause, IdSet } from './condition.js'
import { coversPattern } from './path-patterns.js'

/** The entities that a request may be about, as far as it names them. */
export interface AskedEntities {
  /** Whether it may be about entities of a type. */
  mayMeanType(type: string): boolean
  /** The only types; undefined: others are possible. */
  readonly types: Iterable<string> | undefined
  /** The only ids; undefined: others are possible. */
  readonly ids: Iterable<string> | undefined
}

/** Nothing is named: all entities. */
export const anyEntities: AskedEntities = { mayMeanType: () => true, types: undefined, ids: undefined }

/** One type, or one id. */
export const entitiesOf = (type: string | undefined, id: string | undefined): AskedEntities => ({
  mayMeanType: one => type === undefined || one === type,
  types: type === undefined ? undefined : [type],
  ids: id === undefined ? undefined : [id],
})

/** What is left of a clause. Not an empty list: then nothing is left. */
interface Rest {
  readonly clause: CompiledClause
  /** undefined: every type. */
  readonly types: readonly string[] | undefined
  readonly ids: readonly IdSelector[] | undefined
}

/** The clauses that a request can reach, cut to it. */
export class ReachedClauses {
  private readonly rests: readonly Rest[]
  private comparisons = 0

  constructor(clauses: readonly CompiledClause[], asked: AskedEntities) {
    this.rests = clauses.flatMap(clause => cut(clause, asked) ?? [])
  }

  /** Whether the request can reach none. */
  get isEmpty(): boolean {
    return this.rests.length === 0
  }

  /** Whether each entity that the request may be about shows the attribute, as far as the clauses tell. */
  showAll(name: string): boolean {
    return this.showAllThat(({ attributes }) => shows(attributes, name))
  }

  /** The same for all attributes, whatever their names. */
  showEverything(): boolean {
    return this.showAllThat(({ attributes }) => attributes.kind === 'all')
  }

  private showAllThat(isShown: (clause: CompiledClause) => boolean): boolean {
    const showing = this.rests.filter(({ clause }) => isShown(clause)).map(({ clause }) => clause)
    return this.rests.every(rest => isShown(rest.clause) || this.isCovered(rest, showing))
  }

  private isCovered({ clause, types, ids }: Rest, by: readonly CompiledClause[]): boolean {
    for (const path of clause.paths) {
      const onPath = by.filter(({ paths }) => paths.some(one => coversPattern(one, path)))
      for (const type of types ?? [undefined]) {
        const ofType = onPath.filter(one => one.types === undefined || (type !== undefined && one.types.has(type)))
        this.comparisons += onPath.length + by.length
        for (const id of ids ?? [undefined]) {
          this.comparisons += ofType.length + 1
          if (this.comparisons > ruleComparisonsMax) return false
          if (!ofType.some(one => one.ids === undefined || (id !== undefined && holds(one.ids, id)))) return false
        }
      }
    }
    return true
  }
}

/** Whether ids have all that a selector selects. Of two patterns, only the same text certainly has. */
const holds = (ids: IdSet, selector: IdSelector): boolean =>
  typeof selector === 'string' ? ids.has(selector) : ids.patterns.some(({ source }) => source === selector.pattern)

/** The part of a clause that a request may be about; undefined: none. */
function cut(clause: CompiledClause, asked: AskedEntities): Rest | undefined {
  const types = clause.types ? [...clause.types].filter(asked.mayMeanType) : asked.types && [...asked.types]
  if (types?.length === 0) return undefined
  const ids = idsOf(clause.ids, asked)
  return ids?.length === 0 ? undefined : { clause, types, ids }
}

function idsOf(own: IdSet | undefined, asked: AskedEntities): readonly IdSelector[] | undefined {
  if (!own) return asked.ids && [...asked.ids]
  if (asked.ids) return [...asked.ids].filter(id => own.has(id))
  return [...own.names, ...own.patterns.map(({ source }) => ({ pattern: source }))]
}
