// The matcher of a tenant, which takes in late what is there at start: to find places for 100,000 subscriptions takes 0.8 s, and until the first
// event of the tenant nobody asks for them.
//
// What is added before `begin` waits. From then on all of it is taken in bit by bit, so that the event loop is not held up, or at once by the first
// event; and what is added then does not wait.

import type { Event } from '../../domain/event.js'
import { Matcher } from '../../domain/matcher.js'
import type { Subscription } from '../../domain/subscription.js'
import type { Clock } from '../../ports.js'

/** Before the first bit: a node that has just begun has clients to meet. */
const firstAfterMs = 2_000
/** How long a bit takes, and the pause before the next one: all of 100,000 in about 3 s. Raising the first holds requests up for as long. */
const bitMs = 4
const pauseMs = 12

export class LateMatcher {
  private readonly matcher = new Matcher()
  private readonly clock: Pick<Clock, 'monoMs' | 'after'>
  /** By id: not in the matcher. */
  private readonly waiting = new Map<string, Subscription>()
  private isLate: boolean

  /** `isLate`: `begin` is still to come. */
  constructor(clock: Pick<Clock, 'monoMs' | 'after'>, isLate: boolean) {
    this.clock = clock
    this.isLate = isLate
  }

  /** How many subscriptions may be found. */
  get size(): number {
    return this.matcher.size + this.waiting.size
  }

  /** Takes in a subscription, in place of one with the same id. One that its owner made inactive is never found. */
  add(subscription: Subscription): void {
    if (!this.isLate) {
      this.waiting.delete(subscription.id)
      this.matcher.add(subscription)
    } else if (subscription.status === 'inactive') this.waiting.delete(subscription.id)
    else this.waiting.set(subscription.id, subscription)
  }

  /** Forgets a subscription, if it is there. */
  remove(id: string): void {
    if (!this.waiting.delete(id)) this.matcher.remove(id)
  }

  /** Everything that was there at start has been added. */
  begin(): void {
    this.isLate = false
    if (this.waiting.size > 0) this.clock.after(firstAfterMs, () => this.takeBit())
  }

  // [hot] Once per event.
  /** Appends the subscriptions that the event matches, see `Matcher.touched`. */
  touched(event: Event, found: Subscription[]): void {
    if (this.waiting.size > 0) this.take(Number.POSITIVE_INFINITY)
    this.matcher.touched(event, found)
  }

  private takeBit(): void {
    this.take(this.clock.monoMs() + bitMs)
    if (this.waiting.size > 0) this.clock.after(pauseMs, () => this.takeBit())
  }

  private take(untilMs: number): void {
    for (const [id, subscription] of this.waiting) {
      this.waiting.delete(id)
      this.matcher.add(subscription)
      if (this.clock.monoMs() >= untilMs) return
    }
  }
}
