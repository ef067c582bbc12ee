// The matcher of a tenant, to which the subscriptions that exist at start are added late. To decode 100,000
// subscriptions and to index them takes 1.5 s, and they are not needed before the first event of the tenant.
//
// From `begin` on they are added in small steps, which do not block the event loop, or all at once by the first event.
// Then their patterns are compiled in small steps, or by the first event that needs them. Later subscriptions are added
// at once.

import type { EventWork } from '../../domain/queries/pattern.js'
import type { Event } from '../../domain/subscriptions/event.js'
import { Matcher } from '../../domain/subscriptions/matcher.js'
import type { Subscription } from '../../domain/subscriptions/subscription.js'
import type { Clock } from '../../ports.js'

/** Time before the first step: a node that has just started has clients to serve. */
const firstAfterMs = 100
/**
 * The duration of a step, and the pause before the next one: 100,000 take some 3 s. Raising the first delays requests
 * by as much.
 */
const bitMs = 6
const pauseMs = 3

export class LateMatcher {
  private readonly matcher = new Matcher()
  private readonly clock: Pick<Clock, 'monoMs' | 'after'>
  private readonly read: (id: string) => unknown
  /** Ids of subscriptions that are not in the matcher yet. */
  private readonly waiting = new Set<string>()
  /** Ids of subscriptions in the matcher whose patterns are not compiled. */
  private readonly unprepared: string[] = []

  /**
   * `read` decodes a waiting subscription: it calls `takeIn`, or `remove` if the subscription does not exist any more.
   */
  constructor(clock: Pick<Clock, 'monoMs' | 'after'>, read: (id: string) => unknown) {
    this.clock = clock
    this.read = read
  }

  /** The number of subscriptions that an event may match. */
  get size(): number {
    return this.matcher.size + this.waiting.size
  }

  /** Notes a subscription that is added late. */
  recall(id: string): void {
    this.waiting.add(id)
  }

  /**
   * Adds a subscription, or replaces the one with the same id. One that is inactive by its owner's wish is never found.
   */
  add(subscription: Subscription): void {
    this.waiting.delete(subscription.id)
    this.matcher.add(subscription)
    this.matcher.prepare(subscription.id)
  }

  /** Adds a subscription that waited. Its patterns are compiled later. */
  takeIn(subscription: Subscription): void {
    this.waiting.delete(subscription.id)
    this.matcher.add(subscription)
    if (mayHavePatterns(subscription)) this.unprepared.push(subscription.id)
  }

  /** Forgets a subscription, if it exists. */
  remove(id: string): void {
    if (!this.waiting.delete(id)) this.matcher.remove(id)
  }

  /** Begins to add subscriptions. All that exist at start have been recalled. */
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
