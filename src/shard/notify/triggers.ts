// Finds the subscriptions that a change triggers, in the turn that makes the change, so that its intents are part of
// the same commit.
//
// Each tenant with subscriptions has a matcher; all other tenants cost one lookup in a map. The document owner decides
// whether a subscription that depends on its own past is triggered. If that is this owner, the progress book is written
// at once; otherwise a permit is requested later (permits.ts).

import { EventViews, type GrantOfOwner, matchesAsSeen } from '../../domain/access/watching.js'
import type { Entity } from '../../domain/entities/entity.js'
import type { Change } from '../../domain/entities/update.js'
import { eventWorkMax } from '../../domain/limits.js'
import { EventWork } from '../../domain/queries/pattern.js'
import { alterationTypeOf, type Event, eventOf, previousOf } from '../../domain/subscriptions/event.js'
import type { NamedAttribute } from '../../domain/subscriptions/message.js'
import type { Subscription, SubscriptionTransport } from '../../domain/subscriptions/subscription.js'
import { decideTrigger, isNotificationLoop } from '../../domain/subscriptions/triggering.js'
import { encodedRoot } from '../../encoded-entity.js'
import type { Numbering, Origin } from '../../messages/messages.js'
import type { Clock, Logger } from '../../ports.js'
import type { DocumentFollower } from '../documents/documents.js'
import type { Subscriptions } from '../documents/forms.js'
import type { EntityKey } from '../layout.js'
import type { Descendants } from './descendants.js'
import { LateMatcher } from './late-matcher.js'
import type { Permits } from './permits.js'
import type { ProgressBook } from './progress-book.js'
import { type DeliveryIntent, notificationIdOf, type TriggerEvent } from './trigger-event.js'

const isCustom = ({ kind }: SubscriptionTransport): boolean => kind === 'httpCustom' || kind === 'mqttCustom'

/** The effect of a turn on an entity. */
export interface Done {
  readonly change: Change
  readonly place: EntityKey
  /** The encoded entity as it is now; of a deleted one, its last state. */
  readonly encoded: Buffer
  /** The encoded entity before the change. */
  readonly encodedBefore: Buffer | undefined
  readonly origin: Origin
  readonly stamp: number
}

const noIntents: readonly DeliveryIntent[] = []

/** The least time between two warnings of one kind. */
const exceededLogMsMin = 60_000

export class Triggers {
  private readonly matchers = new Map<string, LateMatcher>()
  private readonly book: ProgressBook
  private readonly clock: Clock
  private readonly logger: Pick<Logger, 'warn'>
  private readonly permits: Permits
  private readonly descendants: Descendants
  /** undefined: there is no access control. */
  private readonly grantOfOwner: GrantOfOwner | undefined
  private readonly found: Subscription[] = []
  private readonly work = new EventWork()
  private exceededLoggedMs = Number.NEGATIVE_INFINITY

  constructor(
    subscriptions: Subscriptions,
    book: ProgressBook,
    permits: Permits,
    descendants: Descendants,
    clock: Clock,
    logger: Pick<Logger, 'warn'>,
    grantOfOwner: GrantOfOwner | undefined = undefined,
  ) {
    this.grantOfOwner = grantOfOwner
    this.book = book
    this.permits = permits
    this.descendants = descendants
    this.clock = clock
    this.logger = logger
    subscriptions.follow(tenant => this.follower(tenant, id => subscriptions.of(tenant)?.get(id)))
  }

  /** Keeps a tenant's matcher, as long as it can find anything. */
  private follower(tenant: string, read: (id: string) => unknown): DocumentFollower<Subscription> {
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

  /** All subscriptions that the store has at start are known. */
  begin(): void {
    for (const matcher of this.matchers.values()) matcher.begin()
  }

  // [hot] Once per update.
  /** Whether a change in a tenant can trigger anything. */
  concerns(tenant: string): boolean {
    return this.matchers.has(tenant)
  }

  // [hot] Once per update of a tenant with subscriptions.
  /**
   * The trigger event of a change; undefined: nothing is triggered. Notifications that are decided here are recorded.
   */
  fire(done: Done): TriggerEvent | undefined {
    const { change, place, encoded, origin, stamp } = done
    const { shard, tenant, path } = place
    const { numbering } = origin
    const matcher = this.matchers.get(tenant)
    if (!matcher || !numbering) return undefined
    const circle = this.circleOf(done)
    if (circle === 'custom') return undefined
    const event = eventOf(change, place)
    const { found } = this
    found.length = 0
    const { correlatorRoot: root, correlator } = origin
    const { work } = this
    work.begin()
    matcher.touched(event, found, work)
    const room = found.length === 0 ? undefined : this.descendants.room(origin)
    const limits = { room, isOfCustom: circle === 'ngsi' }
    const intents = found.length === 0 ? noIntents : this.intentsOf(found, event, done, numbering, limits)
    if (work.isExceeded) this.logExceeded(tenant)
    if (intents.length === 0) return undefined
    const descendants = this.descendants.add(root, intents.length)
    return {
      shard,
      stamp,
      tenant,
      path,
      correlator: correlator ?? root,
      descendants: room === undefined ? undefined : descendants,
      authToken: origin.authToken,
      entity: event.entity,
      encoded,
      named: namedBy(event),
      intents,
    }
  }

  private intentsOf(
    found: readonly Subscription[],
    event: Event,
    { place: { shard }, stamp, origin }: Done,
    numbering: Numbering,
    { room, isOfCustom }: { readonly room: number | undefined; readonly isOfCustom: boolean },
  ): readonly DeliveryIntent[] {
    const nowMs = this.clock.wallMs()
    const intents: DeliveryIntent[] = []
    let tooMany = 0
    const views = this.grantOfOwner && new EventViews(event, this.work)
    for (const subscription of found) {
      const { id, condition } = subscription
      if (isOfCustom && isCustom(subscription.notification.transport)) continue
      const seen = views ? this.seenBy(subscription, views) : event
      if (!seen) continue
      if (decideTrigger(subscription, this.book.of(event.tenant, id), seen, nowMs, this.work) !== 'fires') continue
      if (intents.length === room) {
        tooMany++
        continue
      }
      const notification = notificationIdOf(shard, stamp, intents.length)
      const needsPermit = this.permits.isByDocumentOwner(subscription)
      const isGranted = needsPermit && this.permits.isDecidedHere(subscription)
      if (isGranted) this.book.noteGranted(subscription, notification)
      else if (!needsPermit) this.book.noteSent(subscription)
      else if (this.permits.isQuiet(subscription, nowMs)) continue
      intents.push({
        id: notification,
        subscription: id,
        number: numbering.next,
        alteration: alterationTypeOf(seen, condition),
        needsPermit,
        isGranted,
      })
      numbering.next += numbering.step
    }
    if (tooMany > 0) this.descendants.drop(origin.correlatorRoot, tooMany)
    return intents
  }

  /** The event as the rules of its owner show it to a subscription that it matches; undefined: it is none for that. */
  private seenBy(subscription: Subscription, views: EventViews): Event | undefined {
    const grant = this.grantOfOwner?.(subscription)
    if (!grant) return undefined
    if (grant.kind === 'all') return views.under(undefined)
    const seen = views.under(grant.condition)
    return seen && matchesAsSeen(subscription, seen, this.work) ? seen : undefined
  }

  /** Logs that patterns were left out: subscriptions that are older than the bound exceed it (pattern-account.ts). */
  private logExceeded(tenant: string): void {
    const nowMs = this.clock.monoMs()
    if (nowMs - this.exceededLoggedMs < exceededLogMsMin) return
    this.exceededLoggedMs = nowMs
    this.logger.warn(
      `the patterns of subscriptions cost more than ${eventWorkMax} steps for one event, those left over do not match: delete some`,
      { tenant },
    )
  }

  /**
   * Whether the update is a notification that has come back in a circle, and of which kind
   * (docs/interface/cascades.md#circles). One with a text or JSON of its own triggers nothing, which is logged; one
   * with a patched entity triggers no custom one.
   */
  private circleOf({ change, encodedBefore, origin, place }: Done): 'custom' | 'ngsi' | undefined {
    const { isCustomNotification, isPatchedNotification, correlatorRoot } = origin
    if (!(isCustomNotification || isPatchedNotification) || !encodedBefore) return undefined
    if (!isNotificationLoop(correlatorRoot, encodedRoot(encodedBefore))) return undefined
    if (!isCustomNotification) return 'ngsi'
    const { id, type } = (change.after ?? change.before) as Entity
    this.logger.warn(`Notification loop detected for entity id ${id} type ${type}, skipping subscription triggering`, {
      correlator: origin.correlator ?? correlatorRoot,
      tenant: place.tenant,
      path: place.path,
    })
    return 'custom'
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
