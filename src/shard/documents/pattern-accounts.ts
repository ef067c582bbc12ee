// What the patterns of each tenant's subscriptions may cost for one event (domain/subscriptions/pattern-account.ts),
// kept by every owner, since any may become the home that decides about the next subscription.
//
// What the store has at start counts when it is decoded, bit by bit: to find out what patterns cost takes up to 0.4 ms
// each. Until then a tenant may get more than its bound; an event stops at the bound whatever there is
// (domain/queries/pattern.ts).

import { eventWorkMax } from '../../domain/limits.js'
import { type Refusal, refusals } from '../../domain/refusal.js'
import { PatternAccount } from '../../domain/subscriptions/pattern-account.js'
import type { Subscription } from '../../domain/subscriptions/subscription.js'
import type { Clock } from '../../ports.js'
import type { DocumentFollower } from './documents.js'
import type { Subscriptions } from './forms.js'

/** How long a bit takes, and the pause before the next one. */
const bitMs = 3
const pauseMs = 10

export class PatternAccounts {
  private readonly accounts = new Map<string, PatternAccount>()
  private readonly clock: Pick<Clock, 'monoMs' | 'after'>
  private readonly workMax: number
  /** Takes in, one by one, what was decoded late. */
  private readonly late = new Map<string, () => void>()

  /** `workMax`: as `eventWorkMax` says. */
  constructor(subscriptions: Subscriptions, clock: Pick<Clock, 'monoMs' | 'after'>, workMax = eventWorkMax) {
    this.clock = clock
    this.workMax = workMax
    subscriptions.follow(tenant => this.follower(tenant))
  }

  /**
   * Why a subscription cannot be taken, new or in place of the one with its id; undefined when it can. One that makes
   * nothing worse can, always.
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
