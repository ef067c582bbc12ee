// The home of subscriptions: where those of a tenant are created, changed, removed and read.
//
// A turn is synchronous, as those of entities are: it sees what turns before it have staged. A change is replied to when it is durable here
// and, where there are other owners, when all of them have it durably (sharing.ts): so the next change of an entity meets it wherever it is
// decided. Reads wait for what is staged.
//
// Whoever is asked is the home: who asks knows the placement. An owner that is asked for progress tells its own part, home or not.

import { subscriptionBytesMax } from '../../domain/limits.js'
import { accepted, type Refusal, type Result, refusals, refused } from '../../domain/refusal.js'
import { noProgress, type Subscription } from '../../domain/subscription.js'
import { encodeSubscription } from '../../domain/subscription-json.js'
import { patchSubscription } from '../../domain/subscription-parser.js'
import { storedStatus } from '../../domain/subscription-status.js'
import type { ShardReply, SubscriptionRequest, SubscriptionWrite } from '../../messages.js'
import type { Stamps } from '../../ports.js'
import type { GroupCommit } from '../commit.js'
import type { Learning } from './learning.js'
import type { Sharing } from './sharing.js'
import type { Subscriptions } from './subscriptions.js'

type OnReply = (reply: ShardReply) => void

/** What became of notifications is asked elsewhere (notifications.ts). */
export type HomeRequest = Exclude<SubscriptionRequest, { kind: 'claim' | 'news' }>

export interface HomeLimits {
  /** Subscriptions of all tenants together, as `subscriptionsMax` says. */
  readonly subscriptionsMax: number
  /** Changes of subscriptions whose reply waits. */
  readonly mailboxLengthMax: number
}

/** What the home tells others of its changes with, and learns theirs; not there when it is alone. */
export interface Company {
  readonly sharing: Sharing
  readonly learning: Learning
}

/** A change that is about to be staged; without a subscription it is a removal. */
interface Decided {
  readonly tenant: string
  readonly id: string
  readonly subscription: Subscription | undefined
  readonly text: string
}

export class SubscriptionHome {
  private readonly subscriptions: Subscriptions
  private readonly commit: GroupCommit
  private readonly stamps: Stamps
  private readonly limits: HomeLimits
  private readonly company: Company | undefined
  private waiting = 0

  constructor(
    subscriptions: Subscriptions,
    commit: GroupCommit,
    stamps: Stamps,
    limits: HomeLimits,
    company: Company | undefined,
  ) {
    this.subscriptions = subscriptions
    this.commit = commit
    this.stamps = stamps
    this.limits = limits
    this.company = company
  }

  onAsk(request: HomeRequest, onReply: OnReply): void {
    switch (request.kind) {
      case 'findSubscription': {
        const { tenant, id } = request
        const held = this.subscriptions.of(tenant)
        const subscription = held?.get(id)
        if (!held || !subscription)
          return this.afterStaged({ kind: 'subscriptions', subscriptions: [], total: 0 }, onReply)
        const known = { subscription, progress: held.progressOf(id) }
        return this.afterStaged({ kind: 'subscriptions', subscriptions: [known], total: 1 }, onReply)
      }
      case 'listSubscriptions': {
        const { tenant, servicePath, offset, limit } = request
        const page = this.subscriptions.of(tenant)?.page(servicePath, offset, limit) ?? { subscriptions: [], total: 0 }
        return this.afterStaged({ kind: 'subscriptions', ...page }, onReply)
      }
      case 'progress': {
        const held = this.subscriptions.of(request.tenant)
        return onReply({ kind: 'progress', parts: request.ids.map(id => held?.progressOf(id) ?? noProgress) })
      }
      case 'learn':
        if (this.company) return this.company.learning.onLearn(request, onReply)
        return onReply({ kind: 'failed', reason: 'this owner is the only one' })
      default:
        return this.change(request, onReply)
    }
  }

  private change(request: SubscriptionWrite, onReply: OnReply): void {
    const obstacle = this.company?.sharing.obstacle()
    if (obstacle) return onReply(obstacle)
    if (this.waiting >= this.limits.mailboxLengthMax) return onReply({ kind: 'busy' })
    const decided = this.decide(request)
    if (!decided.ok) return this.afterStaged({ kind: 'refused', refusal: decided.refusal }, onReply)
    const revision = this.stage(decided.value)
    this.waiting++
    const reply = (answer: ShardReply): void => {
      this.waiting--
      onReply(answer)
    }
    this.commit.afterCommit(this.subscriptions.stagedIn, failure => {
      if (failure) return reply({ kind: 'failed', reason: failure.message })
      if (!this.company) return reply({ kind: 'done' })
      this.company.sharing.share(revision, unshared => reply(unshared ?? { kind: 'done' }))
    })
  }

  private decide(request: SubscriptionWrite): Result<Decided> {
    if (request.kind === 'createSubscription') {
      const { tenant, id } = request.subscription
      const { subscriptionsMax } = this.limits
      if (this.subscriptions.size >= subscriptionsMax) return refused(refusals.subscriptionsTooMany(subscriptionsMax))
      if (this.subscriptions.of(tenant)?.get(id))
        return refused(refusals.failure(`there is a subscription ${id} already`))
      return wanted(request.subscription)
    }
    const { tenant, id } = request
    const existing = this.subscriptions.of(tenant)?.get(id)
    if (!existing) return refused(refusals.subscriptionNotFound)
    if (request.kind === 'removeSubscription') return accepted({ tenant, id, subscription: undefined, text: '' })
    const patched = patchSubscription(this.settled(existing), request.payload, request.servicePath)
    return patched.ok ? wanted(patched.value) : patched
  }

  /** One that has been switched off is so in writing, once it changes: from then on it may be that nobody asks here any more (claims.ts). */
  private settled(subscription: Subscription): Subscription {
    const { tenant, id, status, statusRevision } = subscription
    const stored = storedStatus(subscription, this.subscriptions.of(tenant)!.progressOf(id))
    return stored === status ? subscription : { ...subscription, status: stored, statusRevision: statusRevision + 1 }
  }

  /** Gives the revision of the change. */
  private stage({ tenant, id, subscription, text }: Decided): number {
    const { subscriptions, company } = this
    const revision = this.stamps.next()
    if (subscription) subscriptions.put(subscription, revision, text)
    else subscriptions.remove(tenant, id, company && revision)
    company?.sharing.note({ revision, tenant, id, subscription })
    return revision
  }

  private afterStaged(reply: ShardReply, onReply: OnReply): void {
    this.commit.afterCommit(this.subscriptions.stagedIn, failure =>
      onReply(failure ? { kind: 'failed', reason: failure.message } : reply),
    )
  }
}

function wanted(subscription: Subscription): Result<Decided> {
  const { tenant, id } = subscription
  const text = encodeSubscription(subscription)
  const refusal = checkSize(text)
  return refusal ? refused(refusal) : accepted({ tenant, id, subscription, text })
}

function checkSize(text: string): Refusal | undefined {
  const bytes = Buffer.byteLength(text)
  return bytes > subscriptionBytesMax ? refusals.subscriptionTooLarge(bytes, subscriptionBytesMax) : undefined
}
