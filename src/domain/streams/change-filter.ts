// The filter of a watch: which changes its readers receive (docs/interface/live.md#filters).
//
// The node that holds a stream parses the filter. The owners of shards get its texts, compile them, and find it with
// the matcher that finds subscriptions. A right of the reader is part of the filter as well: no code behind the matcher
// takes events out.
//
// Not here: the parts of a watch that only the holder of the stream needs (watch.ts).

import { AccessCondition, type GrantClause } from '../access/condition.js'
import type { Entity } from '../entities/entity.js'
import { EventWork } from '../queries/pattern.js'
import { matchesQuery } from '../queries/query.js'
import { accepted, type Result } from '../refusal.js'
import type { Event } from '../subscriptions/event.js'
import {
  type AlterationType,
  alterationTypes,
  type Expression,
  type ExpressionSource,
  type SubjectEntity,
  type Watcher,
} from '../subscriptions/subscription.js'
import { expressionOf } from '../subscriptions/subscription-parser.js'
import { unmetExpression } from '../subscriptions/triggering.js'

/** A filter in texts, as it is sent to the owners of shards. Plain data. */
export interface FilterSource {
  readonly tenant: string
  /** The path of the watched entities, as in a subscription. */
  readonly servicePath: string
  /** Never empty. Any of them must match. */
  readonly entities: readonly SubjectEntity[]
  /** A change must concern one of these attributes. An empty list has every attribute. */
  readonly attrs: readonly string[]
  readonly expression: ExpressionSource
  /** Never empty. */
  readonly alterationTypes: readonly AlterationType[]
  /** Whether readers also receive that an entity does not match any more. */
  readonly leaves: boolean
  /** The grant of its readers (docs/interface/access.md#streams); undefined: all that the filter finds. */
  readonly grant?: readonly GrantClause[] | undefined
}

/** A compiled filter. */
export interface ChangeFilter extends Watcher {
  readonly tenant: string
  /** Whether its readers receive that an entity does not match any more, and an entity may cease to match. */
  readonly leaves: boolean
  /** undefined: its readers may see all that it finds. */
  readonly grant: AccessCondition | undefined
}

/** Compiles a filter. A text that another build accepted may be refused here. */
export function compileFilter(id: string, source: FilterSource): Result<ChangeFilter> {
  const expression = expressionOf({ ...source.expression })
  return expression.ok ? accepted(filterWith(id, source, expression.value)) : expression
}

/** The filter of parts that are compiled already. */
export const filterWith = (id: string, source: FilterSource, expression: Expression): ChangeFilter => ({
  id,
  tenant: source.tenant,
  servicePath: source.servicePath,
  status: 'active',
  entities: source.entities,
  condition: {
    attrs: source.attrs,
    expression,
    alterationTypes: source.alterationTypes,
    notifyOnMetadataChange: true,
    takesBareCreations: true,
  },
  notification: { propagateDeletes: undefined },
  leaves: source.leaves && mayLeave(source, expression),
  grant: source.grant && new AccessCondition(source.grant),
})

/**
 * Whether an entity that matches may cease to match unseen. Without an expression only its removal ends that, and most
 * readers receive the removal itself.
 */
const mayLeave = ({ alterationTypes }: FilterSource, { q, mq, geo }: Expression): boolean =>
  q !== undefined || mq !== undefined || geo !== undefined || !alterationTypes.includes('entityDelete')

/**
 * The filter that finds entities which matched before a change, whatever the kind of change: give it `eventBefore`, as
 * if that entity were deleted.
 */
export const filterBefore = (filter: ChangeFilter): ChangeFilter => ({
  ...filter,
  condition: { ...filter.condition, attrs: [], alterationTypes: ['entityDelete'] },
})

/** The event with which `filterBefore` is matched. */
export const eventBefore = (event: Event, before: Entity): Event => ({ ...event, class: 'delete', entity: before })

/**
 * Whether an entity that matched a filter before the event does not match it any more. A reader that receives the
 * deletion itself needs no other message.
 */
export function leaves({ condition }: ChangeFilter, event: Event, work: EventWork = new EventWork()): boolean {
  if (event.class === 'delete') return !condition.alterationTypes.includes('entityDelete')
  const { q } = condition.expression
  if (q && !matchesQuery(q, event.entity, event.path, work)) return true
  return unmetExpression(condition, event, work) !== undefined
}

/** All alteration types: the default of a watch. */
export const allAlterations: readonly AlterationType[] = alterationTypes
