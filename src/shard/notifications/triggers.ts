// Which subscriptions a change fires: asked in the turn that makes the change, so that what it owes is part of the same commit.
//
// Each tenant with subscriptions has a matcher; all others cost one look into a map. Whether a subscription that depends on its own past fires
// is decided at its home: here, when this is the home, and the book is written at once; else later, by a claim (claims.ts).

import type { Entity } from '../../domain/entity.js'
import { alterationTypeOf, type Event, eventOf, previousOf } from '../../domain/event.js'
import { EventWork } from '../../domain/event-work.js'
import { eventWorkMax } from '../../domain/limits.js'
import type { NamedAttribute } from '../../domain/occasion.js'
import type { Subscription } from '../../domain/subscription.js'
import { firing, isNotificationLoop } from '../../domain/triggering.js'
import type { Change } from '../../domain/update.js'
import { imageRoot } from '../../image.js'
import type { Numbering, Origin } from '../../messages.js'
import type { Clock, Logger } from '../../ports.js'
import type { Follower } from '../documents/documents.js'
import type { Subscriptions } from '../documents/forms.js'
import type { EntityKey } from '../layout.js'
import type { Claims } from './claims.js'
import { type FiredEntry, type Firing, notificationIdOf } from './firing.js'
import { LateMatcher } from './late-matcher.js'
import type { ProgressBook } from './progress-book.js'

/** What a turn has done to an entity. */
export interface Done {
  readonly change: Change
  readonly place: EntityKey
  /** The image of the entity as it is now; when it was deleted, as it was last. */
  readonly image: Buffer
  /** As it was before. */
  readonly imageBefore: Buffer | undefined
  readonly origin: Origin
  readonly stamp: number
}

const noEntries: readonly FiredEntry[] = []

/** Between two warnings of one kind. */
const tellMsMin = 60_000

export class Triggers {
  private readonly matchers = new Map<string, LateMatcher>()
  private readonly book: ProgressBook
  private readonly clock: Clock
  private readonly logger: Pick<Logger, 'warn'>
  private readonly claims: Claims
  private readonly found: Subscription[] = []
  private readonly work = new EventWork()
  private toldMs = Number.NEGATIVE_INFINITY

  constructor(
    subscriptions: Subscriptions,
    book: ProgressBook,
    claims: Claims,
    clock: Clock,
    logger: Pick<Logger, 'warn'>,
  ) {
    this.book = book
    this.claims = claims
    this.clock = clock
    this.logger = logger
    subscriptions.follow(tenant => this.follower(tenant, id => subscriptions.of(tenant)?.get(id)))
  }

  /** Keeps a tenant's matcher, as long as it can find anything. */
  private follower(tenant: string, read: (id: string) => unknown): Follower<Subscription> {
    const matcher = new LateMatcher(this.clock, read)
    const settle = (): void => {
      if (matcher.size > 0) this.matchers.set(tenant, matcher)
      else if (this.matchers.get(tenant) === matcher) this.matchers.delete(tenant)
    }
    return {
      add: subscription => {
        matcher.add(subscription)
        settle()
      },
      remove: id => {
        matcher.remove(id)
        settle()
      },
      recall: id => {
        matcher.recall(id)
        settle()
      },
      read: subscription => {
        matcher.takeIn(subscription)
        settle()
      },
    }
  }

  /** All that the store has at start is there. */
  begin(): void {
    for (const matcher of this.matchers.values()) matcher.begin()
  }

  // [hot] Once per update.
  /** Whether a change in a tenant can fire anything. */
  concerns(tenant: string): boolean {
    return this.matchers.has(tenant)
  }

  // [hot] Once per update of a tenant with subscriptions.
  /** What a change has fired; what is decided here is written down. undefined: nothing. */
  fire(done: Done): Firing | undefined {
    const { change, place, image, origin, stamp } = done
    const { shard, tenant, path } = place
    const { numbering } = origin
    const matcher = this.matchers.get(tenant)
    if (!matcher || !numbering || this.isLoop(done)) return undefined
    const event = eventOf(change, place)
    const { found } = this
    found.length = 0
    const { work } = this
    work.begin()
    matcher.touched(event, found, work)
    const entries = found.length === 0 ? noEntries : this.entriesOf(found, event, done, numbering)
    if (work.isExceeded) this.tellExceeded(tenant)
    if (entries.length === 0) return undefined
    return {
      shard,
      stamp,
      tenant,
      path,
      correlator: origin.correlator ?? origin.correlatorRoot,
      authToken: origin.authToken,
      entity: event.entity,
      image,
      named: namedBy(event),
      entries,
    }
  }

  private entriesOf(
    found: readonly Subscription[],
    event: Event,
    { place: { shard }, stamp }: Done,
    numbering: Numbering,
  ): readonly FiredEntry[] {
    const nowMs = this.clock.wallMs()
    const entries: FiredEntry[] = []
    for (const subscription of found) {
      const { id, condition } = subscription
      if (firing(subscription, this.book.of(event.tenant, id), event, nowMs, this.work) !== 'fires') continue
      const isToBeClaimed = this.claims.isElsewhere(subscription)
      if (!isToBeClaimed) this.book.noteSent(subscription)
      else if (this.claims.isQuiet(subscription, nowMs)) continue
      entries.push({
        id: notificationIdOf(shard, stamp, entries.length),
        subscription: id,
        number: numbering.next,
        alteration: alterationTypeOf(event, condition),
        isToBeClaimed,
      })
      numbering.next += numbering.step
    }
    return entries
  }

  /** That patterns were left out: subscriptions that are older than the bound exceed it (pattern-account.ts). */
  private tellExceeded(tenant: string): void {
    const nowMs = this.clock.monoMs()
    if (nowMs - this.toldMs < tellMsMin) return
    this.toldMs = nowMs
    this.logger.warn(
      `the patterns of subscriptions cost more than ${eventWorkMax} steps for one event, those left over do not match: delete some`,
      { tenant },
    )
  }

  /** Whether the update has come round in a circle; that is told (subscriptions.md §6.8). */
  private isLoop({ change, imageBefore, origin, place }: Done): boolean {
    if (!origin.isCustomNotification || !imageBefore) return false
    if (!isNotificationLoop('custom', origin.correlatorRoot, imageRoot(imageBefore))) return false
    const { id, type } = (change.after ?? change.before) as Entity
    this.logger.warn(`Notification loop detected for entity id ${id} type ${type}, skipping subscription triggering`, {
      correlator: origin.correlator ?? origin.correlatorRoot,
      tenant: place.tenant,
      path: place.path,
    })
    return true
  }
}

function namedBy(event: Event): readonly NamedAttribute[] {
  const named: NamedAttribute[] = []
  for (const alteration of event.alterations) {
    if (!alteration.named) continue
    const { name, action } = alteration
    named.push({ name, action, previous: previousOf(event, name) })
  }
  return named
}
