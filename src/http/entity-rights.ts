// What the rules allow of a request about entities: the scope of a read with its condition, the scope of a write with
// its limits, and the refusals of what the body names (docs/interface/access.md#reads,
// docs/interface/access.md#writes).
//
// Not here: whether the request is allowed at all (request-authorizer.ts).

import type { ReadScope } from '../broker/replies.js'
import { refuseSelection } from '../domain/access/filters.js'
import {
  type GrantByAction,
  WriteDecisions,
  type WriteKind,
  type WriteLimits,
  type WrittenEntity,
} from '../domain/access/writing.js'
import type { OrderKey } from '../domain/queries/order.js'
import type { Selection } from '../domain/queries/selection.js'
import { accepted, type Refusal, type Result } from '../domain/refusal.js'
import type { Scope } from '../domain/scope.js'
import { oneScope, type Request, readPaths, tenantOf } from './request.js'

/** A place in which a write is allowed. */
export interface WriteScope extends Scope {
  /** Of writes without a type; undefined: they may be about any entity of their id. */
  readonly limits: WriteLimits | undefined
}

/**
 * The scope of a write of some entities, if the rules allow it for all of them. `entities` is called only with access
 * control.
 */
export function writeScope(
  request: Request,
  kind: WriteKind,
  entities: () => readonly WrittenEntity[],
): Result<WriteScope> {
  return scopeOfWrites(request, () => [{ kind, entities: entities() }])
}

/** The same for writes of several kinds, in their order. */
export function scopeOfWrites(
  request: Request,
  writes: () => Iterable<{ readonly kind: WriteKind; readonly entities: readonly WrittenEntity[] }>,
): Result<WriteScope> {
  const scope = oneScope(request)
  const { permit } = request
  if (!scope.ok) return scope
  if (!permit || permit.isWhole) return accepted({ ...scope.value, limits: undefined })
  const grantOf: GrantByAction = action => permit.grants[action] ?? { kind: 'denied', reason: 'action' }
  const decisions = new WriteDecisions(grantOf, scope.value)
  let limits: WriteLimits = []
  for (const { kind, entities } of writes()) {
    const decided = decisions.decide(kind, entities)
    if (!decided.ok) {
      permit.onForbidden()
      return decided
    }
    if (decided.value.length > 0) limits = decided.value
  }
  return accepted({ ...scope.value, limits: limits.length > 0 ? limits : undefined })
}

/** The scope of a read, with what the rules for `read` allow there. */
export function readScope(request: Request): Result<ReadScope> {
  const tenant = tenantOf(request)
  if (!tenant.ok) return tenant
  const grant = request.permit?.grants.read
  if (grant?.kind !== 'narrowed') return accepted({ tenant: tenant.value, paths: readPaths(request), grant: undefined })
  return accepted({ tenant: tenant.value, paths: grant.condition.paths, grant: grant.condition })
}

/** The refusal of a list that filters or sorts by an attribute that its reader may not see; undefined: it does not. */
export function refuseFilters(
  request: Request,
  { tenant }: ReadScope,
  selection: Selection,
  order: readonly OrderKey[],
): Refusal | undefined {
  const grant = request.permit?.grants.read
  return grant && refuseSelection(grant, { tenant, paths: readPaths(request) }, selection, order)
}
