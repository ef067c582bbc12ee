// What the rules of the owner of a subscription allow, by the present access file (docs/interface/access.md#subscriptions).
//
// A subscription notifies if its owner may subscribe to everything in its path. The condition of a narrower grant is not
// applied to notifications yet, so such a subscription is silent. So is one without an owner.
//
// [hot] Once per subscription that a change may trigger. The answer is remembered until the file changes.

import { grantOf, grantWithin } from '../domain/access/grant.js'
import { principalOf } from '../domain/access/principal.js'
import type { Subscription } from '../domain/subscriptions/subscription.js'
import type { AccessSource } from './access-source.js'

export class OwnerRules {
  private known = new WeakMap<Subscription, boolean>()

  constructor(private readonly source: Pick<AccessSource, 'file' | 'on'>) {
    source.on(() => {
      this.known = new WeakMap()
    })
  }

  /** Whether a subscription may notify now. */
  readonly mayNotify = (subscription: Subscription): boolean => {
    const known = this.known.get(subscription)
    if (known !== undefined) return known
    const may = this.isAllowed(subscription)
    this.known.set(subscription, may)
    return may
  }

  private isAllowed({ owner, tenant, servicePath }: Subscription): boolean {
    const { file } = this.source
    const principal = owner && principalOf(file, owner)
    const grant = grantOf(file, principal, tenant, 'subscribe')
    return grantWithin(grant, [servicePath]).kind === 'all'
  }
}
