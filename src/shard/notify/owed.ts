// One notification that is owed: what who sends it is given, and where it is told what became of each try.
//
// Until its message is made, what it is about is at hand, unless too much is (notifications.ts); later, or after a start, it is read from its
// row. What has no row (`bestEffort`) is kept at hand.
//
// When its shard gets another owner, that one sends it, and here it has ended: nothing is given and nothing is heard any more.

import type { Occasion } from '../../domain/subscriptions/occasion.js'
import type { DeliveryRecord, ProgressNews } from '../../messages/messages.js'
import type { DeliveryOutcome, Due } from '../../ports.js'
import { type FiredEntry, type Firing, occasionOf } from './firing.js'
import type { NotificationParts } from './notification-parts.js'
import type { OutboxRow } from './outbox.js'

export class Owed implements Due {
  readonly id: string
  readonly tenant: string
  readonly subscription: string
  readonly entry: FiredEntry
  attempts = 0
  dueMs: number | undefined
  private readonly parts: NotificationParts
  private readonly row: OutboxRow | undefined
  private firing: Firing | undefined
  /** What it is about, for those who ask what became of it. */
  readonly about: Pick<DeliveryRecord, 'id' | 'type' | 'path'>

  constructor(parts: NotificationParts, firing: Firing, entry: FiredEntry, row: OutboxRow | undefined) {
    this.parts = parts
    this.firing = firing
    this.entry = entry
    this.row = row
    this.id = entry.id
    this.tenant = firing.tenant
    this.subscription = entry.subscription
    if (row) parts.atHand.bytes += firing.image.length
    this.about = { id: firing.entity.id, type: firing.entity.type, path: firing.path }
  }

  // [hot] Once per notification.
  occasion(): Occasion | undefined {
    if (this.isOver) {
      this.let()
      return undefined
    }
    const subscription = this.parts.subscriptions.of(this.tenant)?.get(this.subscription)
    const firing = subscription && (this.firing ?? this.recall())
    this.let()
    if (firing) return occasionOf(firing, this.entry, subscription)
    this.end()
    return undefined
  }

  private get isOver(): boolean {
    return this.row?.of.isOver === true
  }

  private recall(): Firing | undefined {
    return this.row && this.parts.outbox.read(this.row)
  }

  /** Keeps nothing that can be read again. */
  let(): void {
    if (!this.row || !this.firing) return
    this.parts.atHand.bytes -= this.firing.image.length
    this.firing = undefined
  }

  // [hot] Once per try.
  onOutcome(outcome: DeliveryOutcome): void {
    if (this.isOver) return
    const { deliveries, clock } = this.parts
    const record = recordOf(outcome, this, clock.wallMs())
    deliveries.note(this.tenant, this.subscription, record)
    switch (outcome.kind) {
      case 'delivered':
        this.tell({ kind: 'success', code: outcome.code })
        return this.end()
      case 'failed':
        this.noteFailure(outcome)
        this.attempts = outcome.attempts
        this.dueMs = outcome.nextAttemptMs
        return
      case 'dead':
        this.noteFailure(outcome)
        this.bury(record)
        return this.end()
      case 'simulated':
      case 'dropped':
        return this.end()
    }
  }

  /** Keeps it for whoever wants it sent again. Its row goes in the same commit. */
  private bury(record: DeliveryRecord): void {
    const { outbox, deliveries } = this.parts
    const letter = this.row && outbox.extract(this.row, this.entry)
    if (letter) deliveries.bury(this.tenant, this.subscription, record, letter)
  }

  /** An answer counts as a success whatever it says, and of failures the first one counts (subscriptions.md §8.6, design.md §5). */
  private noteFailure({
    code,
    attempts,
    reason,
  }: {
    code: number | undefined
    attempts: number
    reason: string
  }): void {
    if (code !== undefined) this.tell({ kind: 'success', code })
    else if (attempts === 1) this.tell({ kind: 'failure', reason })
  }

  private tell(news: ProgressNews): void {
    const { claims, book, subscriptions } = this.parts
    const subscription = subscriptions.of(this.tenant)?.get(this.subscription)
    // Its home may have been here when it was fired, and not any more, or the other way round.
    if (subscription && claims.isElsewhere(subscription)) claims.tell(this.tenant, this.subscription, news)
    else book.noteNews(this.tenant, this.subscription, news)
  }

  /** It is owed no more. */
  end(): void {
    if (this.row && !this.isOver) this.parts.outbox.end(this.row)
  }
}

// [hot] Once per try. Written out: put together by spreading it takes 2.1 us instead of 0.01.
/** What is told of a try. */
function recordOf(
  outcome: DeliveryOutcome,
  { about, id: notificationId, attempts }: Owed,
  atMs: number,
): DeliveryRecord {
  const { kind } = outcome
  const { id, type, path } = about
  const isFailure = kind === 'failed' || kind === 'dead'
  return {
    id,
    type,
    path,
    atMs,
    notificationId,
    attempt: isFailure ? outcome.attempts : attempts + 1,
    outcome: kind,
    code: isFailure || kind === 'delivered' ? outcome.code : undefined,
    reason: isFailure ? outcome.reason : kind === 'dropped' ? outcome.why : '',
  }
}
