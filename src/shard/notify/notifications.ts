// The notifications of an owner's changes, from the turn to the end. They are triggered (triggers.ts), stored
// (outbox.ts), permitted where another owner decides (permits.ts), delivered, and recorded (progress-book.ts).
//
// A notification is passed to the deliverer when its change is durable. No code here waits for a receiver, and a turn
// waits for no commit but its own.

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

/** Least time between two reports that notifications were dropped. */
const dropsReportedMs = 1_000

export class Notifications {
  private readonly parts: NotificationParts
  private deliverer: Deliverer | undefined
  /** Of each transport the first subscription that existed at start. */
  private readonly first = new Map<SubscriptionTransport['kind'], Subscription>()
  /**
   * Notifications triggered before all rows of an earlier owner were read, by the part that is read. They follow after
   * those rows.
   */
  private readonly behind = new Map<OutboxPart, PendingIntent[]>()
  private dropped = 0
  private hasLoggedDropLately = false

  constructor(parts: NotificationParts) {
    this.parts = parts
    for (const part of parts.outbox.parts) this.behind.set(part, [])
    parts.subscriptions.follow(() => ({
      add: subscription => this.prepare(subscription),
      remove: () => {},
      read: subscription => this.prepareFirst(subscription),
    }))
  }

  /**
   * Begins to deliver, first the notifications that were pending at start. Resolves when all of those have been read.
   */
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

  /** Replays of dead letters begin after the pending notifications were read. */
  private beginReplays(): void {
    const { deliverer, parts } = this
    if (!deliverer) return
    parts.replays?.begin({
      receiverOf: subscription => deliverer.receiverOf(subscription),
      send: (letter, onEnd) => sendLetter(parts, letter, pending => deliverer.deliver(pending), onEnd),
    })
  }

  /** A receiver (`Deliverer.receiverOf`) answers for the first time, or again after a failure. */
  onAnswering(receiver: string): void {
    this.parts.replays?.onAnswering(receiver)
  }

  /**
   * Delivers the notifications of a shard from now on, first those that an earlier owner left, whose stamps are not
   * above `horizon`.
   */
  beginShard(shard: number, horizon: number): void {
    const part = this.parts.outbox.beginShard(shard, horizon)
    this.behind.set(part, [])
    if (!this.deliverer) return
    this.takeUp(part).catch((error: Error) =>
      this.parts.logger.error(
        `the pending notifications of shard ${shard} could not be read, its next owner tries again: ${error.message}`,
      ),
    )
  }

  /** Ends the deliveries of a shard, which another owner takes over. Outcomes of those in flight are ignored here. */
  endShard(shard: number): void {
    const { outbox } = this.parts
    const part = outbox.of(shard)
    this.behind.delete(part)
    outbox.endShard(shard)
  }

  /** Delivers notifications that were pending before a part of the outbox began, and then those triggered meanwhile. */
  private async takeUp(part: OutboxPart): Promise<void> {
    try {
      await this.parts.outbox.load(part, (row, event) => {
        this.recall(event)
        for (const intent of event.intents) {
          const pending = this.pendingOf(event, intent, row)
          // Rows are read faster than messages are rendered from them.
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

  /** Restores the count of descendants of a request from a row. */
  private recall({ correlator, descendants, intents }: TriggerEvent): void {
    this.parts.descendants.recall(correlator, descendants, intents.at(-1)?.number ?? 0)
  }

  private prepare(subscription: Subscription): void {
    if (this.deliverer) this.deliverer.prepare(subscription)
    else this.prepareFirst(subscription)
  }

  /**
   * Of the subscriptions that exist at start, the deliverer prepares one of each transport, because connections to all
   * receivers would be too many.
   */
  private prepareFirst(subscription: Subscription): void {
    const { kind } = subscription.notification.transport
    if (this.first.has(kind)) return
    this.first.set(kind, subscription)
    this.deliverer?.prepare(subscription)
  }

  /** Stops passing notifications on. */
  end(): void {
    this.parts.permits.end()
    this.parts.reportFlush?.end()
    this.parts.replays?.end()
    this.parts.letters.end()
    this.deliverer = undefined
  }

  /** Makes the next commit leave nothing but pending notifications in the store. */
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
   * Finds and stores the notifications of a change that commit `stagedIn` carries. Returns the number of the commit
   * that carries all of it.
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

  /** The change was lost, so its notifications count as not sent. */
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
   * Makes a notification that was given up pending again. It is stored with the commit of this tick, and keeps its id.
   */
  again(message: Buffer): void {
    const { outbox, commit, shardMap, stamps } = this.parts
    const given = decodeTriggerEvent(message, { shard: 0, stamp: 0 })
    const shard = shardMap.shardOf(given.tenant, given.path, given.entity.id)
    // It has had its permit before.
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
    if (this.hasLoggedDropLately) return
    this.hasLoggedDropLately = true
    const { logger, clock } = this.parts
    logger.error(`Runtime Error (the outbox of notifications is full, ${this.dropped} dropped so far)`)
    clock.after(dropsReportedMs, () => {
      this.hasLoggedDropLately = false
    })
  }

  /** Changes whose notifications are pending, and the bytes of their rows. */
  get pending(): { readonly rows: number; readonly bytes: number } {
    const { rows, bytes } = this.parts.outbox
    return { rows, bytes }
  }

  /** Whether notifications for an unreachable receiver must make room for others. */
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

  /** Handles the requests of other owners to the document owner. */
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
 * Clears permits that this node granted as the document owner, when another node became it before they were durable.
 * The new one decides again.
 */
const needPermit = (event: TriggerEvent): TriggerEvent => ({
  ...event,
  intents: event.intents.map(intent => ({ ...intent, needsPermit: true, isGranted: false })),
})
