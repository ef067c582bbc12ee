// The matcher of a tenant, which takes in late what is there at start: to decode 100,000 subscriptions and to find places for them takes 1.5
// s, and until the first event of the tenant nobody asks for them.
//
// From `begin` on they are taken in bit by bit, so that the event loop is not held up, or all at once by the first event. What is added does not wait.

import type { Event } from '../../domain/event.js'
import { Matcher } from '../../domain/matcher.js'
import type { Subscription } from '../../domain/subscription.js'
import type { Clock } from '../../ports.js'

/** Before the first bit: a node that has just begun has clients to meet. */
const firstAfterMs = 100
/** How long a bit takes, and the pause before the next one: all of 100,000 in some 3 s. Raising the first holds requests up for as long. */
const bitMs = 6
const pauseMs = 3

export class LateMatcher {
  private readonly matcher = new Matcher()
  private readonly clock: Pick<Clock, 'monoMs' | 'after'>
  private readonly read: (id: string) => unknown
  /** Ids of those that are not in the matcher. */
  private readonly waiting = new Set<string>()

  /** `read` has a subscription that waits decoded: it calls `add`, or `remove` if it is not there any more. */
  constructor(clock: Pick<Clock, 'monoMs' | 'after'>, read: (id: string) => unknown) {
    this.clock = clock
    this.read = read
  }

  /** How many subscriptions may be found. */
  get size(): number {
    return this.matcher.size + this.waiting.size
  }

  /** There is a subscription with this id, which is to be taken in late. */
  recall(id: string): void {
    this.waiting.add(id)
  }

  /** Takes in a subscription, in place of one with the same id. One that its owner made inactive is never found. */
  add(subscription: Subscription): void {
    this.waiting.delete(subscription.id)
    this.matcher.add(subscription)
  }

  /** Forgets a subscription, if it is there. */
  remove(id: string): void {
    if (!this.waiting.delete(id)) this.matcher.remove(id)
  }

  /** All that is there at start has been recalled. */
  begin(): void {
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
    for (const id of this.waiting) {
      this.read(id)
      if (this.clock.monoMs() >= untilMs) return
    }
  }
}
