// Batches of writes at their owner. The items have their turns one after the other, and the batch is answered when all
// are durable.
//
// A turn may take long, when an entity is large or many subscriptions match it. So batches share one slice of time in
// each tick of the event loop, and the remaining items wait for the next tick. A batch has no isolation
// (broker/batch.ts): between its slices other requests may have their turns. But the batches of one tenant run one
// after the other. So an entity that occurs in several parts of one payload gets them in their order. Tenants take
// turns: one with slow entities does not delay the others.
//
// Not here: the work of a turn (shard.ts).

import assert from 'node:assert/strict'
import type { BatchRequest, ShardReply, WriteReply, WriteRequest } from '../../messages/messages.js'
import type { Clock } from '../../ports.js'
import type { GroupCommit } from '../commit/commit.js'
import { hasLost, replyAfterFailure, replyOfFailure } from '../commit/deposed.js'
import type { Actor } from './actor.js'
import type { Shard, Turn } from './shard.js'

type OnReply = (reply: ShardReply) => void

/**
 * How long batches may use the event loop at a time. Batches of usual size take 1 to 2 ms. A smaller value slows down
 * long batches, a larger one all other requests.
 */
const sliceMs = 10

/**
 * Turns between two looks at the clock, in a tenant where no subscription can match. A look takes 75 ns, such a turn
 * some 2,000.
 */
const quietTurns = 4

/** Items that wait for their turns; batches that exceed this are refused. */
const itemsWaitingMax = 100_000

/**
 * A batch in flight. [hot] While it waits for a commit, it must not keep the payload (broker/batch.ts) in memory, and
 * should be small.
 */
class Running {
  readonly items: readonly WriteRequest[]
  readonly onReply: OnReply
  readonly replies: WriteReply[]
  /** The actors whose changes the reply waits for, each at the index of its item. */
  readonly held: (Actor | undefined)[]
  /** The commits that its reply waits for. */
  readonly commits = new Set<number>()
  /** The next item. */
  at = 0

  constructor(items: readonly WriteRequest[], onReply: OnReply) {
    this.items = items
    this.onReply = onReply
    this.replies = new Array<WriteReply>(items.length)
    this.held = new Array<Actor | undefined>(items.length)
  }
}

export interface BatchNeeds {
  readonly turn: (item: WriteRequest) => Turn
  /** Whether a change in the tenant may trigger a notification, and so may take long. */
  readonly concerns: (tenant: string) => boolean
  readonly shards: readonly Pick<Shard, 'hold' | 'releaseHold'>[]
  readonly commit: Pick<GroupCommit, 'isDurable' | 'failed' | 'afterCommit' | 'afterCommits'>
  readonly clock: Pick<Clock, 'monoMs' | 'endOfTick'>
}

export class Batches {
  private readonly needs: BatchNeeds
  /**
   * The batches that have not had all their turns, of each tenant in the order of arrival; never empty. The first
   * tenant is next.
   */
  private readonly waiting = new Map<string, Running[]>()
  private itemsWaiting = 0
  /** When the slice of this tick ends; undefined: none has begun. */
  private sliceEndMs: number | undefined
  private onDrained: (() => void)[] = []

  constructor(needs: BatchNeeds) {
    this.needs = needs
  }

  // [hot] Once per batch and owner.
  onBatch({ items }: BatchRequest, onReply: OnReply): void {
    assert(items.length > 0, 'a batch has no items')
    if (this.itemsWaiting + items.length > itemsWaitingMax) return onReply({ kind: 'busy' })
    const batch = new Running(items, onReply)
    const { tenant } = items[0]!.target
    const queue = this.waiting.get(tenant)
    if (!queue && this.run(batch)) return
    if (queue) queue.push(batch)
    else this.waiting.set(tenant, [batch])
    this.itemsWaiting += items.length - batch.at
  }

  /** Resolves when all accepted items have had their turns. */
  drained(): Promise<void> {
    return new Promise(resolve => (this.waiting.size === 0 ? resolve() : void this.onDrained.push(resolve)))
  }

  /** Gives items their turns until the slice ends. Returns true when all had theirs. */
  private run(batch: Running): boolean {
    const { items, replies, held } = batch
    const { turn, concerns, shards, commit, clock } = this.needs
    const endMs = this.slice()
    const turnsPerLook = concerns(items[0]!.target.tenant) ? 1 : quietTurns
    while (batch.at < items.length) {
      if (batch.at % turnsPerLook === 0 && clock.monoMs() >= endMs) return false
      const { failed } = commit
      if (failed) {
        replies[batch.at++] = replyAfterFailure(failed)
        continue
      }
      const { actor, reply } = turn(items[batch.at] as WriteRequest)
      replies[batch.at] = reply
      if (actor && !commit.isDurable(actor.stagedIn)) {
        shards[actor.place.shard]!.hold()
        held[batch.at] = actor
        if (!batch.commits.has(actor.stagedIn)) this.stageIn(batch, actor)
      }
      batch.at++
    }
    this.replyAfter(batch.commits, held, replies, batch.onReply)
    return true
  }

  /**
   * Notes that the replies of a batch depend on the commit of an actor. In each of its commits another node may have
   * taken over some of the shards.
   */
  private stageIn({ held, replies, commits }: Running, { stagedIn, place: { shard } }: Actor): void {
    commits.add(stagedIn)
    this.needs.commit.afterCommit(stagedIn, failure => {
      if (failure && hasLost(failure, shard)) noteLost(failure, stagedIn, shard, held, replies)
    })
  }

  /** When the slice of this tick ends; the first batch of the tick begins it. */
  private slice(): number {
    if (this.sliceEndMs !== undefined) return this.sliceEndMs
    const { clock } = this.needs
    const endMs = clock.monoMs() + sliceMs
    this.sliceEndMs = endMs
    clock.endOfTick(() => this.goOn())
    return endMs
  }

  private goOn(): void {
    this.sliceEndMs = undefined
    // The loop also reaches tenants that are added at the end meanwhile.
    for (const [tenant, queue] of this.waiting) {
      if (this.needs.clock.monoMs() >= this.slice()) return
      const [batch] = queue as [Running]
      const { at } = batch
      const isDone = this.run(batch)
      this.itemsWaiting -= batch.at - at
      if (isDone) queue.shift()
      this.waiting.delete(tenant)
      if (queue.length > 0) this.waiting.set(tenant, queue)
      if (!isDone) return
    }
    for (const onDrained of this.onDrained.splice(0)) onDrained()
  }

  /** A function of its own, so that its closure does not keep the items. */
  private replyAfter(
    commits: Iterable<number>,
    held: readonly (Actor | undefined)[],
    replies: WriteReply[],
    onReply: OnReply,
  ): void {
    const { shards, commit } = this.needs
    commit.afterCommits(commits, () => {
      for (const actor of held) if (actor) shards[actor.place.shard]!.releaseHold(actor)
      onReply({ kind: 'batch', replies })
    })
  }
}

/** Marks the changes of a shard that a failed commit, or a later one, has lost. */
function noteLost(
  failure: Error,
  commit: number,
  lost: number,
  held: readonly (Actor | undefined)[],
  replies: WriteReply[],
): void {
  for (const [at, actor] of held.entries())
    if (actor?.place.shard === lost && actor.stagedIn >= commit) replies[at] = replyOfFailure(failure, lost)
}
