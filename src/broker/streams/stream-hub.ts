// All streams of this process: the filters of their readers, one feed for each owner of shards, and who receives what
// (docs/interface/live.md).
//
// Readers that want the same changes share a filter, so an owner finds and sends a change once, however many readers
// there are. The cursor that readers get is the least tick of all feeds.
//
// Where changes may be missing, every reader gets a `gap`: an owner has begun anew, its ring has lost them, or another
// node has taken its shards over.
//
// Not here: one reader (reading.ts), connections (http/), the filters at an owner (shard/streams/).

import { AccessCondition } from '../../domain/access/condition.js'
import { xxHash64 } from '../../domain/hash.js'
import { eventWorkMax } from '../../domain/limits.js'
import { refusals } from '../../domain/refusal.js'
import type { FilterSource } from '../../domain/streams/change-filter.js'
import { renderCursor, type StreamCursor } from '../../domain/streams/cursor.js'
import type { GapReason } from '../../domain/streams/event-text.js'
import type { Watch } from '../../domain/streams/watch.js'
import type { Shards } from '../../messages/messages.js'
import type { NumberedFilter, RefusedFilter, SentChange, StreamReply } from '../../messages/streams.js'
import type { Chance, Clock } from '../../ports.js'
import { BookmarkTurns } from './bookmark-turns.js'
import { CatchUpBudget } from './catch-up-budget.js'
import { EndOfTick } from './end-of-tick.js'
import { GatherTimes } from './gather-times.js'
import { type FilterChanges, type FiltersSince, OwnerFeed, type OwnerFeedParts } from './owner-feed.js'
import { WaitingBudget } from './reader-queue.js'
import { type FeedState, type FilterGroup, Reading, type ReadingHub, type StreamReader } from './reading.js'
import { ChangeTexts, changeAsSeen } from './stream-event.js'

/** How often the owners of shards are looked at, and bookmarks are sent. */
const ownersMs = 500
/** Changes of filters that are kept for owners that poll; an owner that is further behind gets all filters again. */
const changesKept = 10_000

export interface HubParts {
  readonly shards: Shards
  readonly clock: Clock
  readonly chance: Pick<Chance, 'fraction'>
  /** Unique for each process. */
  readonly holder: string
  /** Filters for which an owner has room. */
  readonly filtersMax: number
}

/** With neither a filter to add nor one to remove, it is a barrier. */
interface FilterChange {
  readonly revision: number
  readonly add?: FilterGroup
  readonly remove?: number
}

export class StreamHub implements FilterChanges, ReadingHub {
  readonly texts = new ChangeTexts()
  readonly budget = new CatchUpBudget()
  readonly waiting = new WaitingBudget()
  readonly bookmarks: BookmarkTurns
  readonly endOfTick: EndOfTick
  readonly parts: HubParts
  private readonly groups = new Map<string, FilterGroup>()
  private readonly byNumber = new Map<number, FilterGroup>()
  private readonly feeds = new Map<number, OwnerFeed>()
  private changes: FilterChange[] = []
  /** The number of changes of the filters. */
  revision = 0
  lastBarrier = 0
  /** Readings that are not confirmed. */
  private readonly unconfirmed = new Set<Reading>()
  private numbers = 0
  /** Of each shard, the stamp of its latest change, and the owner that sent it. */
  private readonly latest = new Map<number, { readonly feed: OwnerFeed; stamp: number }>()
  private readonly gatherTimes = new GatherTimes()
  private isLooking = false
  /** How far all feeds together are; undefined: not all owners have answered yet. */
  private state: FeedState | undefined
  /** Whether the rings may be others than in `state`. */
  private isOther = true
  private cursorText = ''
  private cursorOf: StreamCursor = { rings: '', tick: 0 }

  constructor(parts: HubParts) {
    this.parts = parts
    this.bookmarks = new BookmarkTurns(parts.chance, ownersMs)
    this.endOfTick = new EndOfTick(parts.clock)
  }

  /** The number of watches. */
  get size(): number {
    let size = 0
    for (const { readings } of this.groups.values()) size += readings.size
    return size
  }

  /**
   * Begins to read for a watch. It is ready when every owner knows its filter (`Reading`). `turn`: when it gets its
   * bookmarks (`BookmarkTurns`).
   */
  open(watch: Watch, reader: StreamReader, turn = this.bookmarks.anyTurn()): Reading {
    this.look()
    const group = this.groupOf(watch.source)
    const reading = new Reading(this, group, watch, reader, turn)
    group.readings.add(reading)
    this.gatherTimes.add(watch.gatherMs)
    // A feed that pauses would bring this reader changes from before it was opened.
    for (const feed of this.feeds.values()) feed.wake()
    this.bookmarks.add(reading)
    this.await(reading)
    return reading
  }

  /** Confirms a reading, now or when every owner knows its filter. */
  await(reading: Reading): void {
    this.unconfirmed.add(reading)
    reading.confirm()
    if (!reading.isConfirming) this.unconfirmed.delete(reading)
  }

  /** Ends the reading of a watch. */
  close(reading: Reading): void {
    const { group } = reading
    this.unconfirmed.delete(reading)
    this.bookmarks.remove(reading)
    if (group.readings.delete(reading)) this.gatherTimes.remove(reading.gatherMs)
    if (group.readings.size > 0) return
    this.groups.delete(group.key)
    this.byNumber.delete(group.number)
    this.note({ revision: ++this.revision, remove: group.number })
  }

  /** The cursor of a reader that has received everything so far; undefined: not all owners have answered yet. */
  cursor(group: FilterGroup): StreamCursor | undefined {
    const { state } = this
    if (!state) return undefined
    if (group.state !== state) {
      if (group.rings !== state.rings) {
        group.rings = state.rings
        group.digest = digestOf(`${state.rings},${group.source.tenant}`)
      }
      group.state = state
      group.cursor = { rings: group.digest, tick: state.tick }
    }
    return group.cursor
  }

  /** Its text, rendered once for all readers of a tenant that follow each other. */
  textOf(cursor: StreamCursor): string {
    if (cursor.tick !== this.cursorOf.tick || cursor.rings !== this.cursorOf.rings) {
      this.cursorOf = cursor
      this.cursorText = renderCursor(cursor)
    }
    return this.cursorText
  }

  /** Call it when a feed has gone on, begun or ended. */
  private noteState(): void {
    const { state } = this
    let tick = Number.POSITIVE_INFINITY
    for (const feed of this.feeds.values()) {
      if (!feed.position) {
        this.state = undefined
        return
      }
      tick = Math.min(tick, feed.tick)
    }
    if (tick === Number.POSITIVE_INFINITY) {
      this.state = undefined
      return
    }
    if (this.isOther || !state) this.state = { rings: this.ringsNow(), tick }
    else if (state.tick !== tick) this.state = { rings: state.rings, tick }
    this.isOther = false
  }

  private ringsNow(): string {
    return [...this.feeds.values()]
      .map(feed => feed.position!.ring)
      .sort()
      .join()
  }

  isKnown(revision: number): boolean {
    if (this.feeds.size === 0) return false
    for (const feed of this.feeds.values()) if (!feed.position || feed.answered < revision) return false
    return true
  }

  barrier(): number {
    this.lastBarrier = ++this.revision
    this.note({ revision: this.revision })
    return this.revision
  }

  get owners(): Iterable<OwnerFeed> {
    return this.feeds.values()
  }

  private groupOf(source: FilterSource): FilterGroup {
    const key = JSON.stringify(source)
    let group = this.groups.get(key)
    if (!group) {
      group = {
        ...{ number: ++this.numbers, key, source, readings: new Set(), revision: ++this.revision },
        grant: source.grant && new AccessCondition(source.grant),
        ...{ state: undefined, cursor: undefined, rings: '', digest: '' },
      }
      this.groups.set(key, group)
      this.byNumber.set(group.number, group)
      this.note({ revision: group.revision, add: group })
    }
    return group
  }

  private note(change: FilterChange): void {
    this.changes.push(change)
    if (this.changes.length > 2 * changesKept) this.changes = this.changes.slice(-changesKept)
    for (const feed of this.feeds.values()) feed.pollSoon()
  }

  get gatherMs(): number {
    return this.gatherTimes.leastMs
  }

  since(revision: number): FiltersSince {
    const oldest = this.changes[0]
    if (revision === 0 || !oldest || oldest.revision > revision + 1) {
      const add = [...this.byNumber.values()].map(({ number, source }) => ({ number, source }))
      return { fromRevision: 0, add, remove: [] }
    }
    const add: NumberedFilter[] = []
    const remove: number[] = []
    for (let at = this.changes.length - 1; at >= 0 && this.changes[at]!.revision > revision; at--) {
      const change = this.changes[at]!
      if (change.remove !== undefined) remove.push(change.remove)
      else if (change.add && this.byNumber.has(change.add.number)) add.push(change.add)
    }
    return { fromRevision: revision, add: add.map(({ number, source }) => ({ number, source })), remove }
  }

  // Owners

  /** Has one feed for each owner, and looks again later while there are readers. */
  private look(): void {
    this.followOwners()
    if (this.isLooking) return
    this.isLooking = true
    this.parts.clock.after(ownersMs, () => {
      this.isLooking = false
      if (this.groups.size === 0) return this.stop()
      this.look()
      this.bookmarks.go()
    })
  }

  private stop(): void {
    for (const feed of this.feeds.values()) feed.close()
    this.feeds.clear()
    this.changes = []
    this.isOther = true
    this.noteState()
  }

  private followOwners(): void {
    const { shards } = this.parts
    const present = new Set(shards.owners().map(shard => shards.ownerOf(shard)))
    const isFirst = this.feeds.size === 0
    let isOther = false
    for (const [owner, feed] of this.feeds) {
      if (present.has(owner)) continue
      feed.close()
      this.feeds.delete(owner)
      isOther = true
    }
    for (const owner of present) {
      if (this.feeds.has(owner) || owner < 0) continue
      const feed = new OwnerFeed(this.feedParts(owner))
      this.feeds.set(owner, feed)
      feed.pollSoon()
      isOther = true
    }
    if (!isOther) return
    this.isOther = true
    this.noteState()
    if (!isFirst) this.gapAll('owner lost')
  }

  private feedParts(owner: number): OwnerFeedParts {
    const { shards, clock, holder } = this.parts
    return {
      ...{ shards, clock, holder },
      shardOf: () => shards.owners().find(shard => shards.ownerOf(shard) === owner),
      filters: this,
      onChanges: (feed, changes) => this.onChanges(feed, changes),
      onLost: reason => this.gapAll(reason),
      onMoved: () => this.followOwners(),
    }
  }

  private gapAll(reason: GapReason): void {
    const revision = this.barrier()
    for (const { readings } of this.groups.values()) for (const reading of readings) reading.onGap(reason, revision)
  }

  // [hot] Once per change that any filter of this process found.
  private pass(feed: OwnerFeed, change: SentChange): void {
    feed.tick = change.tick
    this.noteState()
    // A change that comes too late is part of the gap: a reader has newer states already.
    if (!this.isInOrder(feed, change)) return this.gapAll('owner lost')
    for (const number of change.found) this.passTo(number, change, 'found')
    for (const number of change.left) this.passTo(number, change, 'left')
  }

  /**
   * Whether a change is behind all that were passed on of its shard. It is not, when the shard has moved, and the
   * earlier owner sends a change that came before those of the later one.
   */
  private isInOrder(feed: OwnerFeed, change: SentChange): boolean {
    const latest = this.latest.get(change.shard)
    if (latest && latest.feed !== feed && change.stamp < latest.stamp) return false
    this.noteOrder(feed, change)
    return true
  }

  noteOrder(feed: OwnerFeed, { shard, stamp }: SentChange): void {
    const latest = this.latest.get(shard)
    if (!latest || (latest.feed !== feed && stamp > latest.stamp)) this.latest.set(shard, { feed, stamp })
    else if (latest.feed === feed) latest.stamp = Math.max(latest.stamp, stamp)
  }

  private passTo(number: number, change: SentChange, how: 'found' | 'left'): void {
    const group = this.byNumber.get(number)
    if (!group) return
    const seen = group.grant ? changeAsSeen(group.grant, change) : change
    if (seen) for (const reading of group.readings) reading.onChange(seen, how)
  }

  private onChanges(feed: OwnerFeed, { tick, refused, changes }: Extract<StreamReply, { what: 'changes' }>): void {
    for (const one of refused) this.refuse(one)
    this.isOther = true
    for (const change of changes) this.pass(feed, change)
    feed.tick = tick
    this.noteState()
    for (const reading of this.unconfirmed) {
      reading.confirm()
      if (!reading.isConfirming) this.unconfirmed.delete(reading)
    }
  }

  /** Refuses the watches whose filter an owner has no room for. */
  private refuse({ number, steps }: RefusedFilter): void {
    const refusal =
      steps === undefined
        ? refusals.filtersTooMany(this.parts.filtersMax)
        : refusals.patternsTooCostly(steps, eventWorkMax)
    for (const reading of [...(this.byNumber.get(number)?.readings ?? [])]) reading.onRefused(refusal)
  }
}

function digestOf(rings: string): string {
  const { high, low } = xxHash64(rings)
  return high.toString(36) + low.toString(36)
}
