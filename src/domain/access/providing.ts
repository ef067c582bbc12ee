// Registrations under a grant: a principal may register what its rules for `register` cover
// (docs/interface/access.md#registrations).
//
// A registration stands for all entities that it names, also those that do not exist yet. So rules have to cover all of
// them: every id where it has a pattern, every type where it has no type, all attributes where it lists none.
//
// Not here: answers of providers, which are cut as stored entities are (`AccessCondition.seen`).

import { entityLabel } from '../entities/update.js'
import type { ProvidedEntity, Registration } from '../providers/registration.js'
import { type Refusal, refusals } from '../refusal.js'
import { tenantShown } from '../scope.js'
import { shows } from './attribute-set.js'
import { type Grant, grantWithin, refuseAction } from './grant.js'

/** The refusal of a registration, or undefined. `grant`: what its creator may register. */
export function refuseRegistration(
  grant: Grant,
  { tenant, servicePath, dataProvided }: Pick<Registration, 'tenant' | 'servicePath' | 'dataProvided'>,
): Refusal | undefined {
  const own = grantWithin(grant, [servicePath])
  if (own.kind === 'denied') return refuseAction('register', { tenant, paths: [servicePath] })
  if (own.kind === 'all') return undefined
  const { entities, attrs } = dataProvided
  for (const entity of entities) {
    const place = [labelOf(entity), servicePath, tenantShown(tenant)] as const
    const allowed = own.condition.attributesOfArea(servicePath, entity.type, entity.id)
    if (!allowed) return refusals.entityNotAllowed('register', ...place)
    if (attrs.length === 0 && allowed.kind !== 'all') return refusals.attributesNotAllowed('register', ...place)
    const name = attrs.find(one => !shows(allowed, one))
    if (name !== undefined) return refusals.attributeNotAllowed('register', name, ...place)
  }
  return undefined
}

const labelOf = ({ id, idPattern, type }: ProvidedEntity): string => entityLabel(id ?? (idPattern as string), type)
