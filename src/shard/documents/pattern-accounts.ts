// The possible cost of the patterns of each tenant's subscriptions for one event
// (domain/subscriptions/pattern-account.ts). Every owner keeps it, because any may become the document owner, which
// decides about the next subscription.
//
// Subscriptions that the store has at start count when they are decoded, in small steps: to compute the cost of
// patterns takes up to 0.4 ms each. Until then a tenant may get more than its bound. An event stops at the bound in any
// case (domain/queries/pattern.ts).

import { eventWorkMax } from '../../domain/limits.js'
import { type Refusal, refusals } from '../../domain/refusal.js'
import { PatternAccount } from '../../domain/subscriptions/pattern-account.js'
import type { Subscription } from '../../domain/subscriptions/subscription.js'
import type { Clock } from '../../ports.js'
import type { DocumentFollower } from './documents.js'
import type { Subscriptions } from './forms.js'

/** The duration of a step, and the pause before the next one. */
const bitMs = 3
const pauseMs = 10

export class PatternAccounts {
  private readonly accounts = new Map<string, PatternAccount>()
  private readonly clock: Pick<Clock, 'monoMs' | 'after'>
  private readonly workMax: number
  /** Functions that add subscriptions that were decoded late, one by one. */
  private readonly late = new Map<string, () => void>()

  /** `workMax`: see `eventWorkMax`. */
  constructor(subscriptions: Subscriptions, clock: Pick<Clock, 'monoMs' | 'after'>, workMax = eventWorkMax) {
    this.clock = clock
    this.workMax = workMax
    subscriptions.follow(tenant => this.follower(tenant))
  }

  /**
   * The refusal if a subscription cannot be accepted, new or in place of the one with its id; undefined when it can.
   * One that does not increase the cost is always accepted.
   */
  refusalFor(subscription: Subscription): Refusal | undefined {
    const account = this.accounts.get(subscription.tenant) ?? new PatternAccount()
    const { before, after } = account.workWith(subscription)
    return after > this.workMax && after > before ? refusals.patternsTooCostly(after, this.workMax) : undefined
  }

  /** An account is kept as long as there is anything in it. */
  private follower(tenant: string): DocumentFollower<Subscription> {
    const account = new PatternAccount()
    const settle = (): void => {
      if (!account.isEmpty) this.accounts.set(tenant, account)
      else if (this.accounts.get(tenant) === account) this.accounts.delete(tenant)
    }
    const add = (subscription: Subscription): void => {
      account.add(subscription)
      settle()
    }
    return {
      add: subscription => {
        this.late.delete(keyOf(subscription))
        add(subscription)
      },
      remove: id => {
        this.late.delete(keyOf({ tenant, id }))
        account.remove(id)
        settle()
      },
      read: subscription => {
        if (this.late.size === 0) this.clock.after(pauseMs, () => this.takeBit())
        this.late.set(keyOf(subscription), () => add(subscription))
      },
    }
  }

  private takeBit(): void {
    const untilMs = this.clock.monoMs() + bitMs
    for (const [key, add] of this.late) {
      this.late.delete(key)
      add()
      if (this.clock.monoMs() >= untilMs) break
    }
    if (this.late.size > 0) this.clock.after(pauseMs, () => this.takeBit())
  }
}

const keyOf = ({ tenant, id }: Pick<Subscription, 'tenant' | 'id'>): string => `${id} ${tenant}`
