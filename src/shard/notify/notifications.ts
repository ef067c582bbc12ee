// The notifications of an owner's changes, from the turn to the end: triggered (triggers.ts), kept (outbox.ts), claimed
// where another owner decides (claims.ts), delivered, and written down (progress-book.ts).
//
// A notification is handed over when its change is durable. Nothing here waits for a receiver, and a turn does not wait
// for anything here but the commit that it waits for anyway.

import type { Subscription, SubscriptionTransport } from '../../domain/subscriptions/subscription.js'
import type { OwnerRequest, ShardReply, Shards } from '../../messages/messages.js'
import type { Deliverer } from '../../ports.js'
import { hasLost } from '../commit/deposed.js'
import type { OutboxPart, OutboxRow } from './outbox.js'
import { type NotificationParts, PendingIntent } from './pending-intent.js'
import { sendLetter } from './pending-letter.js'
import { type DeliveryIntent, decodeTriggerEvent, type TriggerEvent } from './trigger-event.js'
import type { Done } from './triggers.js'

/**
 * Bytes of `atHand`: beyond, trigger events are read from their rows. Raising it saves reads while changes come faster
 * than messages are rendered.
 */
const atHandBytesMax = 32 * 1024 * 1024

/** How often at most it is told that notifications were dropped. */
const dropsReportedMs = 1_000

export class Notifications {
  private readonly parts: NotificationParts
  private deliverer: Deliverer | undefined
  /** Of each transport the first subscription that was there at start. */
  private readonly first = new Map<SubscriptionTransport['kind'], Subscription>()
  /**
   * What was triggered before all rows that an earlier owner has left were read, by what is read at once; it comes
   * behind them.
   */
  private readonly behind = new Map<OutboxPart, PendingIntent[]>()
  private dropped = 0
  private isDropToldLately = false

  constructor(parts: NotificationParts) {
    this.parts = parts
    for (const part of parts.outbox.parts) this.behind.set(part, [])
    parts.subscriptions.follow(() => ({
      add: subscription => this.prepare(subscription),
      remove: () => {},
      read: subscription => this.prepareFirst(subscription),
    }))
  }

  /** Begins to deliver, first what was pending when the process began. Resolves when all of that has been read. */
  async begin(deliverer: Deliverer, shards: Shards): Promise<void> {
    const { permits, reportFlush, triggers } = this.parts
    this.deliverer = deliverer
    triggers.begin()
    permits.begin(shards)
    reportFlush?.begin(shards)
    for (const subscription of this.first.values()) deliverer.prepare(subscription)
    await Promise.all([...this.behind.keys()].map(part => this.takeUp(part)))
    this.beginReplays()
  }

  /** Dead letters come behind what is pending. */
  private beginReplays(): void {
    const { deliverer, parts } = this
    if (!deliverer) return
    parts.replays?.begin({
      receiverOf: subscription => deliverer.receiverOf(subscription),
      send: (letter, onEnd) => sendLetter(parts, letter, pending => deliverer.deliver(pending), onEnd),
    })
  }

  /** A receiver (`Deliverer.receiverOf`) answers that had not answered yet, or not the last time. */
  onAnswering(receiver: string): void {
    this.parts.replays?.onAnswering(receiver)
  }

  /**
   * Delivers the notifications of a shard from now on, first those that an earlier owner has left, of which no stamp is
   * above `horizon`.
   */
  beginShard(shard: number, horizon: number): void {
    const part = this.parts.outbox.beginShard(shard, horizon)
    this.behind.set(part, [])
    if (!this.deliverer) return
    this.takeUp(part).catch((error: Error) =>
      this.parts.logger.error(
        `what shard ${shard} owes to receivers could not be read, its next owner tries again: ${error.message}`,
      ),
    )
  }

  /** Another owner delivers the notifications of a shard from now on: those that were handed over are ignored here. */
  endShard(shard: number): void {
    const { outbox } = this.parts
    const part = outbox.of(shard)
    this.behind.delete(part)
    outbox.endShard(shard)
  }

  /** Delivers what is pending since before a part of the outbox began, and then what was triggered meanwhile. */
  private async takeUp(part: OutboxPart): Promise<void> {
    try {
      await this.parts.outbox.load(part, (row, event) => {
        this.recall(event)
        for (const intent of event.intents) {
          const pending = this.pendingOf(event, intent, row)
          // Rows are read faster than messages are rendered of them.
          pending.release()
          this.hand(pending)
        }
        return this.deliverer !== undefined
      })
    } finally {
      const behind = this.behind.get(part) ?? []
      this.behind.delete(part)
      for (const pending of behind) this.hand(pending)
    }
  }

  /** What a row tells of a request whose notifications go on. */
  private recall({ correlator, descendants, intents }: TriggerEvent): void {
    this.parts.descendants.recall(correlator, descendants, intents.at(-1)?.number ?? 0)
  }

  private prepare(subscription: Subscription): void {
    if (this.deliverer) this.deliverer.prepare(subscription)
    else this.prepareFirst(subscription)
  }

  /**
   * Of what is there at start, one subscription of each transport is told of: connections to all receivers would be too
   * many.
   */
  private prepareFirst(subscription: Subscription): void {
    const { kind } = subscription.notification.transport
    if (this.first.has(kind)) return
    this.first.set(kind, subscription)
    this.deliverer?.prepare(subscription)
  }

  /** Nothing is handed over any more. */
  end(): void {
    this.parts.permits.end()
    this.parts.reportFlush?.end()
    this.parts.replays?.end()
    this.parts.letters.end()
    this.deliverer = undefined
  }

  /** Has the next commit leave nothing in the store but pending notifications. */
  settle(): void {
    this.parts.outbox.settle()
  }

  // [hot] Once per update.
  /** Whether a change in a tenant can trigger notifications. */
  concerns(tenant: string): boolean {
    return this.parts.triggers.concerns(tenant)
  }

  // [hot] Once per update of a tenant with subscriptions.
  /**
   * Finds and keeps the notifications of a change that commit `stagedIn` carries. Returns the number of the commit that
   * carries all of it.
   */
  fire(done: Done, stagedIn: number): number {
    const { triggers, outbox, commit, isKept, shardMap } = this.parts
    const event = triggers.fire(done)
    if (!event) return stagedIn
    if (isKept && !outbox.hasRoom) {
      this.drop(event)
      return stagedIn
    }
    const kept = isKept ? outbox.add(event) : undefined
    const carriedBy = kept?.commit ?? stagedIn
    const part = outbox.of(event.shard)
    commit.afterCommit(carriedBy, failure => {
      if (failure && hasLost(failure, event.shard)) this.takeBack(event)
      else if (failure && hasLost(failure, shardMap.register)) this.onDurable(needPermit(event), part, kept?.row)
      else this.onDurable(event, part, kept?.row)
    })
    return carriedBy
  }

  /** The change has not happened, so what it was to send was not sent. */
  private takeBack({ tenant, intents }: TriggerEvent): void {
    for (const { subscription, needsPermit, isGranted } of intents)
      if (!needsPermit || isGranted) this.parts.book.noteUnsent(tenant, subscription)
  }

  private onDurable(event: TriggerEvent, part: OutboxPart, row: OutboxRow | undefined): void {
    // The next owner finds the row.
    if (part.isOver && row) return
    const { atHand } = this.parts
    const behind = this.behind.get(part)
    for (const intent of event.intents) {
      const pending = this.pendingOf(event, intent, row)
      if (behind || atHand.bytes > atHandBytesMax) pending.release()
      if (behind) behind.push(pending)
      else this.hand(pending)
    }
  }

  private pendingOf(event: TriggerEvent, intent: DeliveryIntent, row: OutboxRow | undefined): PendingIntent {
    return new PendingIntent(this.parts, event, intent, row)
  }

  private hand(pending: PendingIntent): void {
    const { needsPermit, isGranted } = pending.intent
    if (!needsPermit || isGranted) return void this.deliverer?.deliver(pending)
    pending.release()
    this.parts.permits.claim(pending.tenant, pending.subscription, pending.id, isGranted => {
      if (isGranted) this.deliverer?.deliver(pending)
      else pending.end()
    })
  }

  /**
   * A notification that was given up is pending anew: it is kept with the commit of this tick, and has its id again.
   */
  again(message: Buffer): void {
    const { outbox, commit, shardMap, stamps } = this.parts
    const given = decodeTriggerEvent(message, { shard: 0, stamp: 0 })
    const shard = shardMap.shardOf(given.tenant, given.path, given.entity.id)
    // It has been claimed before.
    const intents = given.intents.map(intent => ({ ...intent, needsPermit: false }))
    const event = { ...given, shard, stamp: stamps.next(), intents }
    const { row, commit: carriedBy } = outbox.add(event)
    commit.afterCommit(carriedBy, failure => {
      if ((failure && hasLost(failure, shard)) || row.of.isOver) return
      const behind = this.behind.get(row.of)
      for (const intent of event.intents) {
        const pending = this.pendingOf(event, intent, row)
        if (!behind) this.deliverer?.deliver(pending)
        else {
          pending.release()
          behind.push(pending)
        }
      }
    })
  }

  private drop({ intents }: TriggerEvent): void {
    this.dropped += intents.length
    if (this.isDropToldLately) return
    this.isDropToldLately = true
    const { logger, clock } = this.parts
    logger.error(`Runtime Error (the outbox of notifications is full, ${this.dropped} dropped so far)`)
    clock.after(dropsReportedMs, () => {
      this.isDropToldLately = false
    })
  }

  /** Changes whose notifications are pending, and the bytes of their rows. */
  get pending(): { readonly rows: number; readonly bytes: number } {
    const { rows, bytes } = this.parts.outbox
    return { rows, bytes }
  }

  /** Whether notifications that wait for a receiver which is away must make room for others. */
  get isCrowded(): boolean {
    return this.parts.outbox.isCrowded
  }

  /** Notifications lost because the outbox was full. */
  get droppedCount(): number {
    return this.dropped
  }

  /** Notifications not made because too many descend from their request. */
  get droppedDescendants(): number {
    return this.parts.descendants.droppedCount
  }

  /** What other owners ask of the home of a subscription. */
  onAsk(request: OwnerRequest, onReply: (reply: ShardReply) => void): void {
    const { permits, reportFlush } = this.parts
    if (request.kind === 'claim') permits.onPermitRequest(request, onReply)
    else if (request.kind === 'news') permits.onProgressReport(request, onReply)
    else if (reportFlush) reportFlush.onFlush(request, onReply)
    else onReply({ kind: 'failed', reason: 'each owner keeps what it knows' })
  }

  /** First tries that wait in the queue which a tenant uses. */
  queueLength(tenant: string): number {
    return this.deliverer?.queueLength(tenant) ?? 0
  }
}

/**
 * What was decided here as the home of its subscriptions, and not written down before another node became their home:
 * that one decides anew.
 */
const needPermit = (event: TriggerEvent): TriggerEvent => ({
  ...event,
  intents: event.intents.map(intent => ({ ...intent, needsPermit: true, isGranted: false })),
})
