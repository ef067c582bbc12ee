// The matcher of a tenant, which takes in late what is there at start: to decode 100,000 subscriptions and to find
// places for them takes 1.5 s, and until the first event of the tenant nobody asks for them.
//
// From `begin` on they are taken in bit by bit, so that the event loop is not held up, or all at once by the first
// event. Then their patterns are compiled bit by bit, or by the first event that needs them. What is added does not
// wait.

import type { EventWork } from '../../domain/queries/pattern.js'
import type { Event } from '../../domain/subscriptions/event.js'
import { Matcher } from '../../domain/subscriptions/matcher.js'
import type { Subscription } from '../../domain/subscriptions/subscription.js'
import type { Clock } from '../../ports.js'

/** Before the first bit: a node that has just begun has clients to meet. */
const firstAfterMs = 100
/**
 * How long a bit takes, and the pause before the next one: all of 100,000 in some 3 s. Raising the first holds requests
 * up for as long.
 */
const bitMs = 6
const pauseMs = 3

export class LateMatcher {
  private readonly matcher = new Matcher()
  private readonly clock: Pick<Clock, 'monoMs' | 'after'>
  private readonly read: (id: string) => unknown
  /** Ids of those that are not in the matcher. */
  private readonly waiting = new Set<string>()
  /** Ids of those that are in it, whose patterns are not compiled. */
  private readonly unprepared: string[] = []

  /** `read` has a subscription that waits decoded: it calls `takeIn`, or `remove` if it is not there any more. */
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
    this.matcher.prepare(subscription.id)
  }

  /** Takes in a subscription that waited. What its patterns need is made ready later. */
  takeIn(subscription: Subscription): void {
    this.waiting.delete(subscription.id)
    this.matcher.add(subscription)
    if (mayHavePatterns(subscription)) this.unprepared.push(subscription.id)
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
  touched(event: Event, found: Subscription[], work?: EventWork): void {
    if (this.waiting.size > 0) this.take(Number.POSITIVE_INFINITY)
    this.matcher.touched(event, found, work)
  }

  private takeBit(): void {
    const untilMs = this.clock.monoMs() + bitMs
    this.take(untilMs)
    if (this.waiting.size === 0) this.prepareTaken(untilMs)
    if (this.waiting.size > 0 || this.unprepared.length > 0) this.clock.after(pauseMs, () => this.takeBit())
  }

  private prepareTaken(untilMs: number): void {
    while (this.unprepared.length > 0 && this.clock.monoMs() < untilMs) this.matcher.prepare(this.unprepared.pop()!)
  }

  private take(untilMs: number): void {
    for (const id of this.waiting) {
      this.read(id)
      if (this.clock.monoMs() >= untilMs) return
    }
  }
}

const mayHavePatterns = ({ entities, condition: { expression } }: Subscription): boolean =>
  expression.source.q !== undefined ||
  expression.source.mq !== undefined ||
  entities.some(({ idPattern, typePattern }) => idPattern !== undefined || typePattern !== undefined)
