// Whether rules allow a change that has happened: what is decided before a write has to allow all that the write does.

import type { AccessAction } from '../../src/domain/access/access-rule.js'
import { shows } from '../../src/domain/access/attribute-set.js'
import { grantWithin, refuseAction } from '../../src/domain/access/grant.js'
import type { GrantByAction } from '../../src/domain/access/writing.js'
import { type Change, entityLabel } from '../../src/domain/entities/update.js'
import { type Refusal, refusals } from '../../src/domain/refusal.js'
import { type Scope, tenantShown } from '../../src/domain/scope.js'

/**
 * The refusal of a finished change; undefined: all of it is allowed. An entity has the same place, type and id before
 * and after it. `isNotified`: it came as a notification, for which other rules count.
 */
export function refuseChange(
  grantOf: GrantByAction,
  scope: Scope,
  { before, after, alterations }: Change,
  isNotified: boolean,
): Refusal | undefined {
  const { id, type } = (after ?? before)!
  const place = [entityLabel(id, type), scope.path, tenantShown(scope.tenant)] as const
  const refuse = (action: AccessAction, name?: string): Refusal | undefined => {
    const grant = grantWithin(grantOf(action), [scope.path])
    if (grant.kind === 'denied') return refuseAction(action, { tenant: scope.tenant, paths: [scope.path] })
    if (grant.kind === 'all') return undefined
    const set = grant.condition.attributesOf({ path: scope.path, type, id })
    if (!set) return refusals.entityNotAllowed(action, ...place)
    return name === undefined || shows(set, name) ? undefined : refusals.attributeNotAllowed(action, name, ...place)
  }
  const whole: AccessAction = isNotified ? 'notify' : !before ? 'create' : !after ? 'delete' : 'update'
  const isEmpty = alterations.length === 0
  const first = isEmpty || !before || !after ? refuse(whole) : undefined
  if (first) return first
  for (const { name, action } of alterations) {
    const needed = isNotified || !before || !after ? whole : action === 'delete' ? 'delete' : 'update'
    const refusal = refuse(needed, name)
    if (refusal) return refusal
  }
  return undefined
}
