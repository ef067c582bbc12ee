// One notification that is owed: what who sends it is given, and where it is told what became of each try.
//
// As long as nothing has been sent, what it is about is at hand; later, or after a start, it is read from its row. What has no row
// (`bestEffort`) is kept at hand.

import type { Occasion } from '../domain/occasion.js'
import type { ProgressNews } from '../messages.js'
import type { DeliveryOutcome, Due } from '../ports.js'
import { type FiredEntry, type Firing, occasionOf } from './firing.js'
import type { NotificationParts } from './notifications.js'
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

  constructor(parts: NotificationParts, firing: Firing, entry: FiredEntry, row: OutboxRow | undefined) {
    this.parts = parts
    this.firing = firing
    this.entry = entry
    this.row = row
    this.id = entry.id
    this.tenant = firing.tenant
    this.subscription = entry.subscription
  }

  // [hot] Once per notification.
  occasion(): Occasion | undefined {
    const subscription = this.parts.subscriptions.of(this.tenant)?.get(this.subscription)
    const firing = subscription && (this.firing ?? this.recall())
    this.let()
    if (firing) return occasionOf(firing, this.entry, subscription)
    this.end()
    return undefined
  }

  private recall(): Firing | undefined {
    return this.row && this.parts.outbox.read(this.row)
  }

  /** Keeps nothing that can be read again. */
  let(): void {
    if (this.row) this.firing = undefined
  }

  onOutcome(outcome: DeliveryOutcome): void {
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
        return this.end()
      case 'simulated':
      case 'dropped':
        return this.end()
    }
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
    const { claims, book } = this.parts
    if (this.entry.isToBeClaimed) claims.tell(this.tenant, this.subscription, news)
    else book.noteNews(this.tenant, this.subscription, news)
  }

  /** It is owed no more. */
  end(): void {
    if (this.row) this.parts.outbox.end(this.row)
  }
}
