// Refuses filters on attributes that the reader may not see: their result would reveal the values
// (docs/interface/access.md#filters).
//
// A request whose filters are not refused is answered as if hidden attributes were not there: every entity that it can
// reach shows the attributes that it names. So filters and indexes may work on stored entities. One filter is left: a
// geographical one, since only an entity tells which attribute is its location. It is for the entity as seen.

import { isByDistance, type OrderKey } from '../queries/order.js'
import type { Query } from '../queries/query-parser.js'
import { mayMeanType, namedIds, type Selection } from '../queries/selection.js'
import { type Refusal, refusals } from '../refusal.js'
import { tenantShown } from '../scope.js'
import type { Expression } from '../subscriptions/subscription.js'
import { type AllowedGrant, pathsText, type RequestPlace } from './grant.js'
import { type AskedEntities, ReachedClauses } from './rule-overlap.js'

/** An attribute, and the part of the request that names it. */
export interface FilteredName {
  readonly filter: 'q' | 'mq' | 'orderBy' | 'attributes' | 'condition.attrs'
  readonly attribute: string
}

/** The attributes that a `q` or `mq` names. Builtin ones of an entity may be seen, whatever the rules. */
export const namesInQuery = ({ language, statements }: Query): readonly FilteredName[] =>
  statements
    .filter(({ path }) => path.metadata !== undefined || path.builtin === undefined)
    .map(({ path }) => ({ filter: language, attribute: path.attribute }))

/** Names of `orderBy` that are no attributes (docs/interface/queries.md#order). */
const orderBuiltins: ReadonlySet<string> = new Set(['id', 'type', 'servicePath', 'dateCreated', 'dateModified'])

/** The attributes that an order names. */
export const namesInOrder = (order: readonly OrderKey[]): readonly FilteredName[] =>
  isByDistance(order)
    ? []
    : order.filter(({ name }) => !orderBuiltins.has(name)).map(({ name }) => ({ filter: 'orderBy', attribute: name }))

/** The attributes that the filters of a list name. */
export const namesInSelection = ({ q, mq, source }: Selection): readonly FilteredName[] => [
  ...(q ? namesInQuery(q) : []),
  ...(mq ? namesInQuery(mq) : []),
  ...(source.anyAttribute ?? []).map(attribute => ({ filter: 'attributes', attribute }) as const),
]

/** The attributes that an expression of a subscription or a stream names. */
export const namesInExpression = ({ q, mq }: Expression): readonly FilteredName[] => [
  ...(q ? namesInQuery(q) : []),
  ...(mq ? namesInQuery(mq) : []),
]

/** The entities that a selection may select. */
export const entitiesOfSelection = (selection: Selection): AskedEntities => ({
  mayMeanType: type => mayMeanType(selection, type),
  types: selection.types && selection.types.patterns.length === 0 ? selection.types.names : undefined,
  ids: namedIds(selection),
})

/** The refusal of a list that filters or sorts by an attribute that may not be seen; undefined: it does not. */
export const refuseSelection = (
  grant: AllowedGrant,
  place: RequestPlace,
  selection: Selection,
  order: readonly OrderKey[],
): Refusal | undefined =>
  refuseNames(grant, place, entitiesOfSelection(selection), [...namesInSelection(selection), ...namesInOrder(order)])

/** The refusal for the first of these names that an entity of the request may not show; undefined: all are shown. */
export function refuseNames(
  grant: AllowedGrant,
  place: RequestPlace,
  asked: AskedEntities,
  names: readonly FilteredName[],
): Refusal | undefined {
  if (grant.kind === 'all' || names.length === 0 || grant.condition.showsAllAttributes()) return undefined
  const reached = new ReachedClauses(grant.condition.compiled, asked)
  const distinct = new Set(names.map(({ attribute }) => attribute))
  const hiddenName = [...distinct].find(attribute => !reached.showAll(attribute))
  const hidden = names.find(({ attribute }) => attribute === hiddenName)
  return (
    hidden && refusals.filterNotAllowed(hidden.filter, hidden.attribute, pathsText(place), tenantShown(place.tenant))
  )
}
