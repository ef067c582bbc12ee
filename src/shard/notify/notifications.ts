// What an owner's changes owe to receivers, from the turn to the end: fired (triggers.ts), kept (outbox.ts), claimed where another owner decides
// (claims.ts), handed to who sends, and written down (progress-book.ts).
//
// A notification is handed over when its change is durable. Nothing here waits for a receiver, and a turn does not wait for anything here
// but the commit that it waits for anyway.

import type { Subscription, Transport } from '../../domain/subscriptions/subscription.js'
import type { HomeNews, ShardReply, Shards } from '../../messages/messages.js'
import type { Despatch } from '../../ports.js'
import { decodeFiring, type FiredEntry, type Firing } from './firing.js'
import type { NotificationParts } from './notification-parts.js'
import type { OutboxPart, OutboxRow } from './outbox.js'
import { Owed } from './owed.js'
import type { Done } from './triggers.js'

/** Bytes of `atHand`: beyond, what is to be made is read from its row. Raising it saves reads while changes come faster than messages are made. */
const atHandBytesMax = 32 * 1024 * 1024

/** How often at most it is told that notifications were dropped. */
const dropsToldMs = 1_000

export class Notifications {
  private readonly parts: NotificationParts
  private despatch: Despatch | undefined
  /** Of each transport the first subscription that was there at start. */
  private readonly first = new Map<Transport['kind'], Subscription>()
  /** What was fired before all rows that an earlier owner has left were read, by what is read at once; it comes behind them. */
  private readonly behind = new Map<OutboxPart, Owed[]>()
  private dropped = 0
  private isDropToldLately = false

  constructor(parts: NotificationParts) {
    this.parts = parts
    for (const part of parts.outbox.parts) this.behind.set(part, [])
    parts.subscriptions.follow(() => ({
      add: subscription => this.expect(subscription),
      remove: () => {},
      read: subscription => this.expectFirst(subscription),
    }))
  }

  /** Begins to hand notifications over, first what was owed when the process began. Resolves when all of that has been read. */
  async begin(despatch: Despatch, shards: Shards): Promise<void> {
    const { claims, handingIn, triggers } = this.parts
    this.despatch = despatch
    triggers.begin()
    claims.begin(shards)
    handingIn?.begin(shards)
    for (const subscription of this.first.values()) despatch.expect(subscription)
    await Promise.all([...this.behind.keys()].map(part => this.takeUp(part)))
  }

  /** Sees to what a shard owes from now on, first to what an earlier owner has left, of which no stamp is above `horizon`. */
  beginShard(shard: number, horizon: number): void {
    const part = this.parts.outbox.beginShard(shard, horizon)
    this.behind.set(part, [])
    if (!this.despatch) return
    this.takeUp(part).catch((error: Error) =>
      this.parts.logger.error(
        `what shard ${shard} owes to receivers could not be read, its next owner tries again: ${error.message}`,
      ),
    )
  }

  /** Another owner sees to what a shard owes from now on: of what was handed over nothing more is told or heard. */
  endShard(shard: number): void {
    const { outbox } = this.parts
    const part = outbox.of(shard)
    this.behind.delete(part)
    outbox.endShard(shard)
  }

  /** Hands over what is owed since before a part of the outbox began, and then what was fired meanwhile. */
  private async takeUp(part: OutboxPart): Promise<void> {
    try {
      await this.parts.outbox.load(part, (row, firing) => {
        this.recall(firing)
        for (const entry of firing.entries) {
          const owed = this.owing(firing, entry, row)
          // Rows are read faster than messages are made of them.
          owed.let()
          this.hand(owed)
        }
        return this.despatch !== undefined
      })
    } finally {
      const behind = this.behind.get(part) ?? []
      this.behind.delete(part)
      for (const owed of behind) this.hand(owed)
    }
  }

  /** What a row tells of a request whose notifications go on. */
  private recall({ correlator, descendants, entries }: Firing): void {
    this.parts.descendants.recall(correlator, descendants, entries.at(-1)?.number ?? 0)
  }

  private expect(subscription: Subscription): void {
    if (this.despatch) this.despatch.expect(subscription)
    else this.expectFirst(subscription)
  }

  /** Of what is there at start, one subscription of each transport is told of: connections to all receivers would be too many. */
  private expectFirst(subscription: Subscription): void {
    const { kind } = subscription.notification.transport
    if (this.first.has(kind)) return
    this.first.set(kind, subscription)
    this.despatch?.expect(subscription)
  }

  /** Nothing is handed over any more. */
  end(): void {
    this.parts.claims.end()
    this.parts.handingIn?.end()
    this.despatch = undefined
  }

  /** Has the next commit leave nothing in the store but what is owed. */
  settle(): void {
    this.parts.outbox.settle()
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
    const part = outbox.of(firing.shard)
    commit.afterCommit(carriedBy, failure => {
      if (!failure) this.release(firing, part, kept?.row)
    })
    return carriedBy
  }

  private release(firing: Firing, part: OutboxPart, row: OutboxRow | undefined): void {
    // The next owner finds the row.
    if (part.isOver && row) return
    const { atHand } = this.parts
    const behind = this.behind.get(part)
    for (const entry of firing.entries) {
      const owed = this.owing(firing, entry, row)
      if (behind || atHand.bytes > atHandBytesMax) owed.let()
      if (behind) behind.push(owed)
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
      if (failure || row.of.isOver) return
      const behind = this.behind.get(row.of)
      for (const entry of firing.entries) {
        const owed = this.owing(firing, entry, row)
        // It has been claimed before.
        if (!behind) this.despatch?.take(owed)
        else {
          owed.let()
          behind.push(owed)
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

  /** Notifications not made because too many descend from their request. */
  get droppedDescendants(): number {
    return this.parts.descendants.droppedCount
  }

  /** What other owners ask of the home of a subscription. */
  onAsk(request: HomeNews, onReply: (reply: ShardReply) => void): void {
    const { claims, handingIn } = this.parts
    if (request.kind === 'claim') claims.onClaim(request, onReply)
    else if (request.kind === 'news') claims.onNews(request, onReply)
    else if (handingIn) handingIn.onHandIn(request, onReply)
    else onReply({ kind: 'failed', reason: 'each owner keeps what it knows' })
  }

  /** First tries that wait in the queue which a tenant uses. */
  queueLength(tenant: string): number {
    return this.despatch?.queueLength(tenant) ?? 0
  }
}
