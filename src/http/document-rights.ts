// Which subscriptions and registrations a request sees and changes (docs/interface/access.md#owners), and whether the
// rules allow a registration (docs/interface/access.md#registrations). Without access control all is allowed.
//
// Not here: the rules of subscriptions (subscription-rights.ts), the choice of a list
// (shard/documents/document-owner.ts).

import { grantWithin } from '../domain/access/grant.js'
import type { OwnedDocument, PrincipalSource } from '../domain/access/principal.js'
import { refuseRegistration } from '../domain/access/providing.js'
import type { Registration } from '../domain/providers/registration.js'
import type { Refusal } from '../domain/refusal.js'
import type { Permit } from './access-guard.js'

/** For whom a list of documents is; undefined: all of the tenant are in it. */
export const readerOf = (permit: Permit | undefined, tenant: string): PrincipalSource | undefined =>
  permit && !permit.asker.isAdminOf(tenant) ? permit.asker.source : undefined

/** Whether a document of a tenant is there for the request. */
export const isThere = (permit: Permit | undefined, document: OwnedDocument, tenant: string): boolean =>
  !permit || permit.asker.maySee(document, tenant)

/** What the rules are asked about a registration. */
export type ProvidedPart = Pick<Registration, 'tenant' | 'servicePath' | 'dataProvided'>

/** The refusal of a registration by the rules of the principal that asks; undefined: they allow it. */
export function refuseProviding(permit: Permit | undefined, wanted: ProvidedPart): Refusal | undefined {
  if (!permit) return undefined
  const { tenant, servicePath } = wanted
  return counted(permit, refuseRegistration(permit.asker.grant('register', tenant, [servicePath]), wanted))
}

/** The refusal of a changed registration by the rules of its owner; undefined: they allow it. */
export function refuseProvidingOfOwner(
  permit: Permit | undefined,
  changed: ProvidedPart & OwnedDocument,
): Refusal | undefined {
  if (!permit) return undefined
  const { tenant, servicePath } = changed
  const grant = grantWithin(permit.asker.grantOfOwner(changed, 'register', tenant), [servicePath])
  return counted(permit, refuseRegistration(grant, changed))
}

function counted(permit: Permit, refusal: Refusal | undefined): Refusal | undefined {
  if (refusal) permit.onForbidden()
  return refusal
}
