// A delivery intent that has not ended, for the delivery engine: it gives the input of its message, and receives the
// outcome of each try.
//
// Until its message is rendered, its trigger event is in memory, unless too many are (notifications.ts). Later, or
// after a start, the event is read from its row. An intent without a row (`bestEffort`) keeps the event.
//
// When its shard gets another owner, that owner sends it. Here it has ended: it gives no input, and ignores outcomes.

import type { GrantOfOwner } from '../../domain/access/watching.js'
import type { ShardMap } from '../../domain/scope.js'
import type { NotificationInput } from '../../domain/subscriptions/message.js'
import type { DeliveryRecord, ProgressReport } from '../../messages/messages.js'
import type { Clock, DeliveryOutcome, Failure, Logger, PendingNotification, Stamps } from '../../ports.js'
import type { GroupCommit } from '../commit/commit.js'
import type { Subscriptions } from '../documents/forms.js'
import type { Deliveries } from './deliveries.js'
import type { Descendants } from './descendants.js'
import type { Letters } from './letters.js'
import type { Outbox, OutboxRow } from './outbox.js'
import type { Permits } from './permits.js'
import type { ProgressBook } from './progress-book.js'
import type { Replays } from './replays.js'
import type { ReportFlush } from './report-flush.js'
import { type DeliveryIntent, type FailedTries, inputOf, type TriggerEvent } from './trigger-event.js'
import type { Triggers } from './triggers.js'

/** The parts that notifications, and the code that passes them on (notifications.ts), use. */
export interface NotificationParts {
  readonly commit: GroupCommit
  readonly subscriptions: Subscriptions
  readonly book: ProgressBook
  readonly triggers: Triggers
  readonly permits: Permits
  readonly descendants: Descendants
  /** undefined where rows of progress are always kept. */
  readonly reportFlush: ReportFlush | undefined
  readonly outbox: Outbox
  /** Bytes of encoded entities in memory that wait to be rendered, each counted for every notification of it. */
  readonly atHand: { bytes: number }
  readonly deliveries: Deliveries
  readonly letters: Letters
  /** undefined: dead letters are sent again when a client asks for it. */
  readonly replays: Replays | undefined
  /** What the rules of its owner let a subscription notify of; undefined: everything. */
  readonly grantOfOwner: GrantOfOwner | undefined
  readonly shardMap: ShardMap
  readonly stamps: Pick<Stamps, 'next'>
  /** Whether pending notifications outlive the process (`-notifDelivery atLeastOnce`). */
  readonly isKept: boolean
  readonly clock: Clock
  readonly logger: Pick<Logger, 'warn' | 'error'>
}

/** The tries of a notification that is sent again after it was given up. */
const givenUp: FailedTries = { tries: 0, dueMs: undefined }

export class PendingIntent implements PendingNotification {
  readonly id: string
  readonly tenant: string
  readonly subscription: string
  readonly intent: DeliveryIntent
  attempts: number
  dueMs: number | undefined
  /** A failure of it counts for its subscription already. */
  private isCounted: boolean
  private readonly parts: NotificationParts
  private readonly row: OutboxRow | undefined
  private event: TriggerEvent | undefined
  /** Its entity, for requests about outcomes. */
  readonly about: Pick<DeliveryRecord, 'id' | 'type' | 'path'>

  constructor(parts: NotificationParts, event: TriggerEvent, intent: DeliveryIntent, row: OutboxRow | undefined) {
    this.parts = parts
    this.event = event
    this.intent = intent
    this.row = row
    this.id = intent.id
    this.attempts = intent.failed?.tries ?? 0
    this.dueMs = intent.failed?.dueMs
    this.isCounted = intent.failed !== undefined
    this.tenant = event.tenant
    this.subscription = intent.subscription
    if (row) parts.atHand.bytes += event.encoded.length
    this.about = { id: event.entity.id, type: event.entity.type, path: event.path }
  }

  // [hot] Once per notification.
  input(): NotificationInput | undefined {
    if (this.isOver) {
      this.release()
      return undefined
    }
    const subscription = this.parts.subscriptions.of(this.tenant)?.get(this.subscription)
    const event = subscription && (this.event ?? this.recall())
    this.release()
    const input = event && inputOf(event, this.intent, subscription, this.parts.grantOfOwner)
    if (!input) this.end()
    return input
  }

  private get isOver(): boolean {
    return this.row?.of.isOver === true
  }

  private recall(): TriggerEvent | undefined {
    return this.row && this.parts.outbox.read(this.row)
  }

  /** Releases the trigger event, if it can be read again. */
  release(): void {
    if (!this.row || !this.event) return
    this.parts.atHand.bytes -= this.event.encoded.length
    this.event = undefined
  }

  // [hot] Once per try.
  onOutcome(outcome: DeliveryOutcome): void {
    if (this.isOver) return
    const { deliveries, clock } = this.parts
    const record = recordOf(outcome, this, clock.wallMs())
    deliveries.note(this.tenant, this.subscription, record)
    switch (outcome.kind) {
      case 'delivered':
        reportProgress(this.parts, this, { kind: 'success', code: outcome.code })
        this.parts.replays?.onDelivered(this.tenant, this.subscription)
        return this.end()
      case 'failed':
        this.noteFailure(outcome)
        return this.onFailed(outcome.attempts, outcome.code, outcome.nextAttemptMs)
      case 'dead':
        this.noteFailure(outcome)
        this.bury(record)
        return this.end()
      case 'simulated':
      case 'dropped':
        return this.end()
    }
  }

  /**
   * After a restart the tries continue with this count. If there was no answer the next try is due at once, because the
   * receiver may be back.
   */
  private onFailed(tries: number, code: number | undefined, nextMs: number | undefined): void {
    const isKnown = this.attempts === tries && this.dueMs === nextMs
    this.attempts = tries
    this.dueMs = nextMs
    if (!this.row || isKnown) return
    this.parts.outbox.note(this.row, this.id, { tries, dueMs: code === undefined ? undefined : nextMs })
  }

  /** Keeps it as a dead letter, to be sent again. Its row is deleted in the same commit. */
  private bury(record: DeliveryRecord): void {
    const { outbox, letters } = this.parts
    const letter = this.row && outbox.extract(this.row, { ...this.intent, failed: givenUp })
    if (letter) letters.bury(this.tenant, this.subscription, record, letter)
  }

  /**
   * Any answer counts as a success, and of several failures the first one counts
   * (docs/interface/notifications.md#outcomes, docs/operations/notifications.md).
   */
  private noteFailure({ code, reason }: Pick<Failure, 'code' | 'reason'>): void {
    if (code !== undefined) reportProgress(this.parts, this, { kind: 'success', code })
    else if (!this.isCounted) reportProgress(this.parts, this, { kind: 'failure', reason })
    this.isCounted = true
  }

  /** Ends it: it is not pending any more. */
  end(): void {
    if (this.row && !this.isOver) this.parts.outbox.end(this.row, this.id)
  }
}

/** Counts the outcome of a notification for its subscription, at the owner that counts. */
export function reportProgress(
  { permits, book, subscriptions }: NotificationParts,
  { tenant, subscription: id }: Pick<PendingNotification, 'tenant' | 'subscription'>,
  report: ProgressReport,
): void {
  const subscription = subscriptions.of(tenant)?.get(id)
  // The document owner may have changed since the notification was triggered.
  if (subscription && permits.isElsewhere(subscription)) permits.report(tenant, id, report)
  else book.noteReport(tenant, id, report)
}

// [hot] Once per try. The fields are written out: with spread syntax it takes 2.1 us instead of 0.01.
/** The record of a try. */
export function recordOf(
  outcome: DeliveryOutcome,
  { about, id: notificationId, attempts }: Pick<PendingIntent, 'about' | 'id' | 'attempts'>,
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
    cause: kind === 'dead' ? outcome.cause : undefined,
  }
}
