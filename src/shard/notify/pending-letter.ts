// A dead letter that is sent again, for the delivery engine: it has one try, and its row stays until that is delivered.
//
// So a crash, or another owner of its shard, leaves a letter. If the try fails, the row gets the outcome, and nothing
// else changes. When the message is rendered, the present state is checked: the letter may have been deleted, or its
// subscription may be inactive.
//
// Not here: which letter is sent when (replays.ts).

import type { NotificationInput } from '../../domain/subscriptions/message.js'
import { isExpired } from '../../domain/subscriptions/subscription-status.js'
import { Unreadable } from '../../domain/unreadable.js'
import type { DeliveryRecord } from '../../messages/messages.js'
import type { DeliveryOutcome, PendingNotification } from '../../ports.js'
import type { Letter } from './letter-list.js'
import type { Letters } from './letters.js'
import { decodeLetterRow } from './notification-layout.js'
import { type NotificationParts, recordOf, reportProgress } from './pending-intent.js'
import type { ReplayEnd } from './replays.js'
import { decodeTriggerEvent, inputOf, type TriggerEvent } from './trigger-event.js'

type OnEnd = (end: ReplayEnd) => void

/** Passes a letter on to be sent; calls back once, later. */
export function sendLetter(
  parts: NotificationParts,
  letter: Letter,
  deliver: (pending: PendingNotification) => void,
  onEnd: OnEnd,
): void {
  const head = headOf(parts.letters, letter)
  if (head) deliver(new PendingLetter(parts, letter, head, onEnd))
  else parts.clock.endOfTick(() => onEnd('void'))
}

/** undefined: it is not durable yet, or was deleted. */
function headOf(letters: Letters, letter: Letter): DeliveryRecord | undefined {
  const row = letters.rowOf(letter)
  return row && (JSON.parse(decodeLetterRow(row).head) as DeliveryRecord)
}

class PendingLetter implements PendingNotification {
  readonly id: string
  readonly tenant: string
  readonly subscription: string
  readonly attempts: number
  readonly dueMs = undefined
  readonly isReplay = true
  readonly about: Pick<DeliveryRecord, 'id' | 'type' | 'path'>
  private isOver = false

  constructor(
    private readonly parts: NotificationParts,
    private readonly letter: Letter,
    { notificationId, id, type, path }: DeliveryRecord,
    private readonly onEnd: OnEnd,
  ) {
    this.id = notificationId
    this.tenant = letter.list.tenant
    this.subscription = letter.list.id
    this.attempts = letter.tries
    this.about = { id, type, path }
  }

  input(): NotificationInput | undefined {
    const { letters, subscriptions, clock } = this.parts
    const subscription = subscriptions.of(this.tenant)?.get(this.subscription)
    const isActive = subscription && subscription.status !== 'inactive' && !isExpired(subscription, clock.wallMs())
    const row = isActive && !this.isOver ? letters.rowOf(this.letter) : undefined
    const event = row && this.eventOf(row)
    const intent = event?.intents[0]
    const input = intent && inputOf(event, intent, subscription!, this.parts.grantOfOwner)
    if (!input) this.end('void')
    return input
  }

  /** undefined: this build cannot read it, so it is not replayed automatically. */
  private eventOf(row: Buffer): TriggerEvent | undefined {
    try {
      return decodeTriggerEvent(decodeLetterRow(row).message, { shard: this.letter.shard, stamp: 0 })
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error
      this.letter.mayReplay = false
      return undefined
    }
  }

  onOutcome(outcome: DeliveryOutcome): void {
    if (this.isOver) return
    if (!this.letter.isKept) return this.end('void')
    switch (outcome.kind) {
      case 'delivered':
        this.note(outcome)
        reportProgress(this.parts, this, { kind: 'success', code: outcome.code })
        this.parts.letters.discard(this.letter)
        return this.end('delivered')
      case 'dead':
        if (!outcome.sent && outcome.cause === 'noAnswer') return this.end('heldBack')
        if (outcome.code !== undefined) reportProgress(this.parts, this, { kind: 'success', code: outcome.code })
        this.parts.letters.rewrite(this.letter, this.note(outcome))
        return this.end(outcome.cause)
      case 'dropped':
        // Its URL may have changed to one without a receiver.
        this.parts.letters.rewrite(this.letter, { ...this.note(outcome), outcome: 'dead', cause: 'unsendable' })
        return this.end('unsendable')
      case 'simulated':
      case 'failed':
        // Letters are not sent in a simulation, and a replay has only one try.
        return this.end('void')
    }
  }

  private note(outcome: DeliveryOutcome): DeliveryRecord {
    const { deliveries, clock } = this.parts
    const record = recordOf(outcome, this, clock.wallMs())
    deliveries.note(this.tenant, this.subscription, record)
    return record
  }

  private end(end: ReplayEnd): void {
    if (this.isOver) return
    this.isOver = true
    this.onEnd(end)
  }
}
