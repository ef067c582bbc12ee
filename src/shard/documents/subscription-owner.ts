// The document owner of subscriptions: it creates, changes, removes and reads those of a tenant.
//
// Every owner, document owner or not, answers a request for progress with its own part.
//
// Not here: how a change is made (document-owner.ts), the progress of notifications (notifications.ts).

import type { TenantLimits } from '../../domain/access/quotas.js'
import { subscriptionBytesMax } from '../../domain/limits.js'
import { accepted, type Result, refusals, refused } from '../../domain/refusal.js'
import { noProgress, type Subscription } from '../../domain/subscriptions/subscription.js'
import { encodeSubscription } from '../../domain/subscriptions/subscription-json.js'
import { patchSubscription } from '../../domain/subscriptions/subscription-parser.js'
import { storedStatus } from '../../domain/subscriptions/subscription-status.js'
import type { OwnerRequest, SubscriptionRequest, SubscriptionWrite } from '../../messages/messages.js'
import { type Decided, type DocumentOwner, type OnReply, removal, wanted } from './document-owner.js'
import type { Subscriptions } from './forms.js'
import type { PatternAccounts } from './pattern-accounts.js'

export class SubscriptionOwner {
  private readonly subscriptions: Subscriptions
  private readonly owner: DocumentOwner
  private readonly countMax: number
  private readonly patterns: PatternAccounts

  /**
   * `countMax`: for all tenants together, see `subscriptionsMax`. `patterns`: the cost of the patterns of each tenant.
   * `quotas` undefined: tenants have none.
   */
  constructor(
    subscriptions: Subscriptions,
    owner: DocumentOwner,
    countMax: number,
    patterns: PatternAccounts,
    private readonly quotas?: Pick<TenantLimits, 'refusalFor'>,
  ) {
    this.patterns = patterns
    this.subscriptions = subscriptions
    this.owner = owner
    this.countMax = countMax
  }

  onAsk(request: Exclude<SubscriptionRequest, OwnerRequest>, onReply: OnReply): void {
    const { subscriptions, owner } = this
    switch (request.kind) {
      case 'findSubscription': {
        const { tenant, id } = request
        const held = subscriptions.of(tenant)
        const subscription = held?.get(id)
        const found = held && subscription ? [{ subscription, progress: held.progressOf(id) }] : []
        const reply = { kind: 'subscriptions', subscriptions: found, total: found.length } as const
        return owner.afterTold(subscriptions.changedIn(tenant, id), reply, onReply)
      }
      case 'listSubscriptions': {
        const { tenant, servicePath, offset, limit, reader } = request
        const isVisible = owner.visibleFor(reader, tenant)
        const found = subscriptions.of(tenant)?.page(servicePath, offset, limit, isVisible)
        const { known, total } = found ?? { known: [], total: 0 }
        const page = known.map(({ document, progress }) => ({ subscription: document, progress }))
        return owner.afterTold(subscriptions.stagedIn, { kind: 'subscriptions', subscriptions: page, total }, onReply)
      }
      case 'progress': {
        const held = subscriptions.of(request.tenant)
        return onReply({ kind: 'progress', parts: request.ids.map(id => held?.progressOf(id) ?? noProgress) })
      }
      default:
        return owner.change(subscriptions, () => this.decide(request), onReply)
    }
  }

  private decide(request: SubscriptionWrite): Result<Decided<Subscription>> {
    if (request.kind === 'createSubscription') {
      const { tenant, id } = request.subscription
      if (this.subscriptions.size >= this.countMax) return refused(refusals.subscriptionsTooMany(this.countMax))
      if (this.subscriptions.of(tenant)?.has(id))
        return refused(refusals.failure(`there is a subscription ${id} already`))
      const refusal = this.quotas?.refusalFor(tenant, 'subscriptions', this.subscriptions.of(tenant)?.size ?? 0)
      if (refusal) return refused(refusal)
      return this.stored(request.subscription)
    }
    const { tenant, id } = request
    const existing = this.subscriptions.of(tenant)?.get(id)
    if (!existing) return refused(refusals.subscriptionNotFound)
    if (request.kind === 'removeSubscription') return accepted(removal(tenant, id))
    const patched = patchSubscription(this.settled(existing), request.payload, request.servicePath)
    return patched.ok ? this.stored(patched.value) : patched
  }

  private stored(subscription: Subscription): Result<Decided<Subscription>> {
    const refusal = this.patterns.refusalFor(subscription)
    if (refusal) return refused(refusal)
    return wanted(subscription, encodeSubscription(subscription), subscriptionBytesMax, refusals.subscriptionTooLarge)
  }

  /**
   * If progress has switched a subscription off, its next change stores that status. From then on it may be that no
   * other owner asks here any more (permits.ts).
   */
  private settled(subscription: Subscription): Subscription {
    const { tenant, id, status, statusRevision } = subscription
    const found = storedStatus(subscription, this.subscriptions.of(tenant)!.progressOf(id))
    return found === status ? subscription : { ...subscription, status: found, statusRevision: statusRevision + 1 }
  }
}
