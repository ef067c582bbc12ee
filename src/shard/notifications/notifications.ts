// What an owner's changes owe to receivers, from the turn to the end: fired (triggers.ts), kept (outbox.ts), claimed where another owner decides
// (claims.ts), handed to who sends, and written down (progress-book.ts).
//
// A notification is handed over when its change is durable. Nothing here waits for a receiver, and a turn does not wait for anything here
// but the commit that it waits for anyway.

import type { Subscription, Transport } from '../../domain/subscription.js'
import type { ShardReply, Shards, SubscriptionRequest } from '../../messages.js'
import type { Despatch } from '../../ports.js'
import { decodeFiring, type FiredEntry, type Firing } from './firing.js'
import type { NotificationParts } from './notification-parts.js'
import type { OutboxRow } from './outbox.js'
import { Owed } from './owed.js'
import type { Done } from './triggers.js'

/** Bytes of `atHand`: beyond, what is to be made is read from its row. Raising it saves reads while changes come faster than messages are made. */
const atHandBytesMax = 32 * 1024 * 1024

/** How often at most it is told that notifications were dropped. */
const dropsToldMs = 1_000

export class Notifications {
  private readonly parts: NotificationParts
  private despatch: Despatch | undefined
  /** Of each transport the first subscription, until messages are handed over. */
  private readonly first = new Map<Transport['kind'], Subscription>()
  /** What was fired before all rows of an earlier process were read; it comes behind them. */
  private behind: Owed[] | undefined = []
  private dropped = 0
  private isDropToldLately = false

  constructor(parts: NotificationParts) {
    this.parts = parts
    parts.subscriptions.follow(() => ({ add: subscription => this.expect(subscription), remove: () => {} }))
  }

  /** Begins to hand notifications over, first what was owed when the process began. Resolves when all of that has been read. */
  async begin(despatch: Despatch, shards: Shards): Promise<void> {
    const { outbox, claims } = this.parts
    this.despatch = despatch
    claims.begin(shards)
    for (const subscription of this.first.values()) despatch.expect(subscription)
    this.first.clear()
    try {
      await outbox.load((row, firing) => {
        for (const entry of firing.entries) {
          const owed = this.owing(firing, entry, row)
          // Rows are read faster than messages are made of them.
          owed.let()
          this.hand(owed)
        }
        return this.despatch !== undefined
      })
    } finally {
      const behind = this.behind ?? []
      this.behind = undefined
      for (const owed of behind) this.hand(owed)
    }
  }

  /** Of what is there at start, one subscription of each transport is told of: connections to all receivers would be too many. */
  private expect(subscription: Subscription): void {
    const { despatch, first } = this
    if (despatch) return despatch.expect(subscription)
    const { kind } = subscription.notification.transport
    if (!first.has(kind)) first.set(kind, subscription)
  }

  /** Nothing is handed over any more. */
  end(): void {
    this.parts.claims.end()
    this.despatch = undefined
  }

  // [hot] Once per update.
  /** Whether a change in a tenant can owe anything. */
  concerns(tenant: string): boolean {
    return this.parts.triggers.concerns(tenant)
  }

  // [hot] Once per update of a tenant with subscriptions.
  /** Finds and keeps what a change owes that commit `stagedIn` carries. Gives the number of the commit that carries all of it. */
  fire(done: Done, stagedIn: number): number {
    const { triggers, outbox, commit, isKept } = this.parts
    const firing = triggers.fire(done)
    if (!firing) return stagedIn
    if (isKept && !outbox.hasRoom) {
      this.drop(firing)
      return stagedIn
    }
    const kept = isKept ? outbox.add(firing) : undefined
    const carriedBy = kept?.commit ?? stagedIn
    commit.afterCommit(carriedBy, failure => {
      if (!failure) this.release(firing, kept?.row)
    })
    return carriedBy
  }

  private release(firing: Firing, row: OutboxRow | undefined): void {
    const { atHand } = this.parts
    for (const entry of firing.entries) {
      const owed = this.owing(firing, entry, row)
      if (this.behind || atHand.bytes > atHandBytesMax) owed.let()
      if (this.behind) this.behind.push(owed)
      else this.hand(owed)
    }
  }

  private owing(firing: Firing, entry: FiredEntry, row: OutboxRow | undefined): Owed {
    return new Owed(this.parts, firing, entry, row)
  }

  private hand(owed: Owed): void {
    if (!owed.entry.isToBeClaimed) return void this.despatch?.take(owed)
    owed.let()
    this.parts.claims.claim(owed.tenant, owed.subscription, owed.id, isGranted => {
      if (isGranted) this.despatch?.take(owed)
      else owed.end()
    })
  }

  /** A notification that was given up is owed anew: it is kept with the commit of this tick, and has its id again. */
  again(message: Buffer): void {
    const { outbox, commit, shardMap, stamps } = this.parts
    const given = decodeFiring(message, { shard: 0, stamp: 0 })
    const shard = shardMap.shardOf(given.tenant, given.path, given.entity.id)
    const firing = { ...given, shard, stamp: stamps.next() }
    const { row, commit: carriedBy } = outbox.add(firing)
    commit.afterCommit(carriedBy, failure => {
      if (failure) return
      for (const entry of firing.entries) {
        const owed = this.owing(firing, entry, row)
        // It has been claimed before.
        if (!this.behind) this.despatch?.take(owed)
        else {
          owed.let()
          this.behind.push(owed)
        }
      }
    })
  }

  private drop({ entries }: Firing): void {
    this.dropped += entries.length
    if (this.isDropToldLately) return
    this.isDropToldLately = true
    const { logger, clock } = this.parts
    logger.error(`Runtime Error (the outbox of notifications is full, ${this.dropped} dropped so far)`)
    clock.after(dropsToldMs, () => {
      this.isDropToldLately = false
    })
  }

  /** Changes whose notifications are owed, and the bytes of their rows. */
  get owed(): { readonly rows: number; readonly bytes: number } {
    const { rows, bytes } = this.parts.outbox
    return { rows, bytes }
  }

  /** Notifications lost because the outbox was full. */
  get droppedCount(): number {
    return this.dropped
  }

  /** What other owners ask of the home of a subscription. */
  onAsk(request: Extract<SubscriptionRequest, { kind: 'claim' | 'news' }>, onReply: (reply: ShardReply) => void): void {
    if (request.kind === 'claim') this.parts.claims.onClaim(request, onReply)
    else this.parts.claims.onNews(request, onReply)
  }

  /** First tries that wait in the queue which a tenant uses. */
  queueLength(tenant: string): number {
    return this.despatch?.queueLength(tenant) ?? 0
  }
}
