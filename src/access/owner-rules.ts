// What the rules of the owner of a subscription allow, by the present access file
// (docs/interface/access.md#subscriptions), and which documents a reader sees (docs/interface/access.md#owners).
//
// A subscription sends no notification if it has no owner, if its owner is no longer in the file, or if it would be
// refused now.
//
// [hot] Once per subscription that a change may trigger, and per notification. The answer is remembered until the file
// changes.

import { type AllowedGrant, grantOf, isAdminOf } from '../domain/access/grant.js'
import { mayHandle, type PrincipalSource, principalOf, type VisibleDocuments } from '../domain/access/principal.js'
import { grantOfWatcher } from '../domain/access/watching.js'
import type { Subscription } from '../domain/subscriptions/subscription.js'
import type { AccessSource } from './access-source.js'

export class OwnerRules {
  private known = new WeakMap<Subscription, { readonly grant: AllowedGrant | undefined }>()

  constructor(private readonly source: Pick<AccessSource, 'file' | 'on'>) {
    source.on(() => {
      this.known = new WeakMap()
    })
  }

  /** What a subscription may notify of now; undefined: of nothing. */
  readonly grantOfOwner = (subscription: Subscription): AllowedGrant | undefined => {
    const known = this.known.get(subscription)
    if (known) return known.grant
    const grant = this.find(subscription)
    this.known.set(subscription, { grant })
    return grant
  }

  /** Which subscriptions or registrations of a tenant a reader sees. */
  readonly visibleDocuments: VisibleDocuments = (reader, tenant) => {
    const { file } = this.source
    const principal = principalOf(file, reader)
    if (!principal) return () => false
    const isAdmin = isAdminOf(file, principal, tenant)
    const creatorOf = (owner: PrincipalSource | undefined) => owner && principalOf(file, owner)
    return ({ owner }) => mayHandle(principal, creatorOf(owner), isAdmin)
  }

  private find(subscription: Subscription): AllowedGrant | undefined {
    const { owner, tenant } = subscription
    const { file } = this.source
    const principal = owner && principalOf(file, owner)
    const grant = grantOfWatcher(grantOf(file, principal, tenant, 'subscribe'), 'subscribe', subscription)
    return grant.ok ? grant.value : undefined
  }
}
