// One reader of a watch: what it has received, and what it has to receive next (docs/interface/live.md).
//
//   confirming -> replaying (with a cursor) -> snapshot (if wanted, without a cursor or after a gap) -> live
//        ^                                                                                                 |
//        +---------------------------- changes may be missing: a gap ---------------------------------------+
//
// It is confirmed when every owner of shards knows its filter. Changes that come during a replay or a snapshot wait,
// and follow behind it: a reader may see a change twice, and misses none.
//
// A reader that gets a gap reads the entities again. So nothing older may follow the gap: every owner has to answer
// once more before it (`barrier`). Otherwise a slow owner's change could come last, and a later one be part of the gap.
//
// With `minInterval` the latest state of an entity waits for its time. As long as anything waits, the reader's cursor
// stays behind it.

import type { AccessCondition } from '../../domain/access/condition.js'
import { renderEntity } from '../../domain/entities/representation.js'
import type { Refusal } from '../../domain/refusal.js'
import { stampMs } from '../../domain/stamp.js'
import type { FilterSource } from '../../domain/streams/change-filter.js'
import type { StreamCursor } from '../../domain/streams/cursor.js'
import { type GapReason, gapText, snapshotEndText, snapshotText } from '../../domain/streams/event-text.js'
import type { Watch } from '../../domain/streams/watch.js'
import type { Shards } from '../../messages/messages.js'
import type { SentChange, StreamPosition } from '../../messages/streams.js'
import type { Clock } from '../../ports.js'
import type { Bookmarked } from './bookmark-turns.js'
import type { CatchUpBudget } from './catch-up-budget.js'
import type { OwnerFeed } from './owner-feed.js'
import { Snapshot, selectionOfFilter, snapshotEntitiesMax } from './snapshot.js'
import { type ChangeTexts, changeAsSeen, folded, type ReadChange, type StreamEvent } from './stream-event.js'

/** The connection of a reader. */
export interface StreamReader {
  /** The watch has begun; events follow. Called once, before the first event. */
  onBegun(cursor: string): void
  onEvent(event: StreamEvent): void
  /** The watch cannot begin or go on. Called at most once, and then nothing else. */
  onRefused(refusal: Refusal): void
  /** Calls back when the reader has room for more: a snapshot is only as fast as its reader. */
  whenRoom(next: () => void): void
}

/** A filter, and the readers that share it. */
export interface FilterGroup {
  readonly number: number
  readonly key: string
  readonly source: FilterSource
  /** What its readers may see; undefined: all that the filter finds. */
  readonly grant: AccessCondition | undefined
  readonly readings: Set<Reading>
  /** The revision in which it was added. */
  readonly revision: number
  /** Its cursor for a state of the feeds, and the digest of their rings and its tenant. */
  state: FeedState | undefined
  cursor: StreamCursor | undefined
  rings: string
  digest: string
}

/** The rings of all owners, and the tick up to which all changes were received. */
export interface FeedState {
  readonly rings: string
  readonly tick: number
}

/** What a reading needs of all streams (stream-hub.ts). */
export interface ReadingHub {
  readonly parts: { readonly shards: Shards; readonly clock: Clock }
  readonly texts: ChangeTexts
  readonly budget: CatchUpBudget
  /** One for each owner of shards. */
  readonly owners: Iterable<OwnerFeed>
  /** The cursor of a reader that has received everything so far; undefined: not all owners have answered yet. */
  cursor(group: FilterGroup): StreamCursor | undefined
  textOf(cursor: StreamCursor): string
  /**
   * Whether every owner has answered since a revision of the filters, and all its changes from before are passed on.
   */
  isKnown(revision: number): boolean
  /** Has every owner answer once more, and returns the revision that it then has. */
  barrier(): number
  /** The revision of the latest barrier. */
  readonly lastBarrier: number
  /** Confirms a reading, now or when every owner knows its filter. */
  await(reading: Reading): void
  /** A reader has received a change of an owner: older ones of its shard from other owners come too late. */
  noteOrder(feed: OwnerFeed, change: SentChange): void
  /** Ends a reading. */
  close(reading: Reading): void
}

/** Changes that may wait behind a replay or a snapshot; with more, the reader gets a gap. */
const waitingMax = 20_000
/** Tries to read a part of a snapshot, and the pause between them. */
const triesMax = 20
const againMs = 500

type State =
  | { readonly kind: 'confirming' }
  | {
      readonly kind: 'replaying'
      readonly waiting: Waiting[]
      isOverrun: boolean
      /** Of each shard, the owner whose changes were replayed, and the stamp of the latest. */
      readonly replayed: Map<number, { readonly feed: OwnerFeed; readonly stamp: number }>
    }
  | { readonly kind: 'snapshot'; readonly snapshot: Snapshot; readonly waiting: Waiting[]; isOverrun: boolean }
  | { readonly kind: 'live' }
  | { readonly kind: 'ended' }

type Replaying = Extract<State, { kind: 'replaying' }>

interface Waiting {
  readonly change: SentChange
  readonly how: 'found' | 'left'
  readonly cursor: StreamCursor | undefined
}

/** An entity about which an event was sent lately. */
interface Paced {
  readonly untilMs: number
  /** The tick up to which the reader had everything then. */
  readonly tick: number
  /** The latest change since. */
  later: ReadChange | undefined
}

export class Reading implements Bookmarked {
  private state: State = { kind: 'confirming' }
  private hasBegun = false
  /** The gap that the reader gets when it is confirmed, and its beginning. */
  private gap: { readonly reason: GapReason; readonly sinceMs: number } | undefined
  /** The revision of the filters that every owner must have. */
  private wanted: number
  /** Whether the cursor of the watch was ahead of the feeds of this process. */
  private wasAhead = false
  /** The cursor that the reader got last. */
  private last: StreamCursor | undefined
  /** In the order of `untilMs`. */
  private readonly paced = new Map<string, Paced>()
  private stopPacing: (() => void) | undefined

  constructor(
    private readonly hub: ReadingHub,
    readonly group: FilterGroup,
    private readonly watch: Watch,
    private readonly reader: StreamReader,
    readonly turn: number,
  ) {
    this.last = watch.from
    this.wanted = Math.max(group.revision, hub.lastBarrier)
  }

  /** Ends it. The reader gets nothing any more. */
  end(): void {
    if (this.state.kind === 'ended') return
    this.enter({ kind: 'ended' })
    this.stopPacing?.()
    this.hub.close(this)
  }

  get gatherMs(): number {
    return this.watch.gatherMs
  }

  get isConfirming(): boolean {
    return this.state.kind === 'confirming'
  }

  /** Goes on if every owner knows the filter by now. */
  confirm(): void {
    const cursor = this.hub.cursor(this.group)
    if (this.state.kind !== 'confirming' || !cursor || !this.hub.isKnown(this.wanted)) return
    if (!this.hasBegun) {
      const { from } = this.watch
      if (from && from.rings === cursor.rings && from.tick > cursor.tick && !this.wasAhead) {
        // The cursor is of another node, whose feeds had arrived further than those of this one.
        this.wasAhead = true
        this.wanted = this.hub.barrier()
        return
      }
      this.hasBegun = true
      this.reader.onBegun(this.hub.textOf(from ?? cursor))
      if (from && from.rings === cursor.rings && from.tick <= cursor.tick) return this.replay(from)
      if (from) this.gap = { reason: 'restarted', sinceMs: stampMs(from.tick) }
    }
    const { gap } = this
    this.gap = undefined
    this.last = cursor
    if (gap) {
      // A reader that is cut off before the end of the snapshot comes back with the cursor from before the gap.
      const text = this.watch.hasSnapshot ? undefined : this.hub.textOf(cursor)
      this.dropPaced()
      this.send({ kind: 'gap', cursor: text, data: gapText(gap.reason, gap.sinceMs) })
    }
    if (this.watch.hasSnapshot) this.readSnapshot(cursor)
    else this.enter({ kind: 'live' })
  }

  private enter(state: State): void {
    const { state: before, hub } = this
    this.state = state
    if (before.kind === 'snapshot') before.snapshot.close()
    if (before.kind === 'snapshot' || before.kind === 'replaying') hub.budget.releaseChanges(before.waiting.length)
  }

  /** Changes may be missing from now on. The reader learns it when every owner has the revision. */
  onGap(reason: GapReason, revision = this.hub.barrier()): void {
    if (this.state.kind === 'ended') return
    this.wanted = revision
    // A reader that has not begun misses nothing, or continues from its cursor.
    if (this.hasBegun)
      this.gap ??= { reason, sinceMs: this.last ? stampMs(this.last.tick) : this.hub.parts.clock.wallMs() }
    this.enter({ kind: 'confirming' })
    this.hub.await(this)
  }

  onRefused(refusal: Refusal): void {
    if (this.state.kind === 'ended') return
    this.end()
    this.reader.onRefused(refusal)
  }

  onBookmark(): void {
    if (this.state.kind !== 'live') return
    this.send({ kind: 'bookmark', cursor: this.cursorText(this.hub.cursor(this.group)), data: '{}' })
  }

  // [hot] Once per change and reader.
  onChange(change: SentChange, how: 'found' | 'left'): void {
    const { state, hub } = this
    switch (state.kind) {
      case 'live':
        return this.pass(change, how, hub.cursor(this.group))
      case 'confirming':
        // A snapshot has it. Without one, what comes before the gap is shown at once.
        if (this.hasBegun && !this.watch.hasSnapshot) this.pass(change, how, undefined)
        return
      case 'replaying':
      case 'snapshot':
        if (state.waiting.length < waitingMax && hub.budget.holdChange())
          state.waiting.push({ change, how, cursor: hub.cursor(this.group) })
        else state.isOverrun = true
        return
      case 'ended':
    }
  }

  private pass(change: SentChange, how: 'found' | 'left', cursor: StreamCursor | undefined): void {
    const read = { change, how, key: this.hub.texts.keyOf(change) }
    const shown = this.watch.minIntervalMs > 0 ? this.paceChange(read) : read
    if (shown) this.show(shown, cursor)
  }

  private show(read: ReadChange, cursor: StreamCursor | undefined): void {
    const text = this.hub.texts.textOf(read, this.watch.form)
    if (text) this.send({ kind: text.kind, cursor: this.cursorText(cursor), data: text.data, change: read })
  }

  private send(event: StreamEvent): void {
    this.reader.onEvent(event)
  }

  /** A cursor behind which nothing waits for its time; undefined: the reader keeps the one that it has. */
  private cursorText(cursor: StreamCursor | undefined): string | undefined {
    if (!cursor) return undefined
    const [oldest] = this.paced.values()
    const allowed = oldest && oldest.tick < cursor.tick ? { rings: cursor.rings, tick: oldest.tick } : cursor
    this.last = allowed
    return this.hub.textOf(allowed)
  }

  // Pacing

  /** What to show of a change now; undefined: it has to wait, because an event about its entity was sent just now. */
  private paceChange(read: ReadChange): ReadChange | undefined {
    const { clock } = this.hub.parts
    const paced = this.paced.get(read.key)
    const nowMs = clock.monoMs()
    const later = paced?.later ? folded(paced.later, read) : read
    if (paced && nowMs < paced.untilMs) {
      paced.later = later
      return undefined
    }
    // The timer may be late: what has waited for it is in `later`.
    this.pace(read.key, nowMs)
    return later
  }

  private pace(key: string, nowMs: number): void {
    this.paced.delete(key)
    const tick = this.last?.tick ?? 0
    this.paced.set(key, { untilMs: nowMs + this.watch.minIntervalMs, tick, later: undefined })
    this.stopPacing ??= this.hub.parts.clock.after(this.watch.minIntervalMs, () => this.onPaced())
  }

  /** Shows the latest states whose time has come. */
  private onPaced(): void {
    this.stopPacing = undefined
    const { clock } = this.hub.parts
    const nowMs = clock.monoMs()
    for (const [key, { untilMs, later }] of this.paced) {
      if (untilMs > nowMs) {
        this.stopPacing ??= clock.after(untilMs - nowMs, () => this.onPaced())
        return
      }
      this.paced.delete(key)
      if (!later) continue
      this.pace(key, nowMs)
      this.show(later, this.state.kind === 'live' ? this.hub.cursor(this.group) : undefined)
    }
  }

  /** What waits is part of the gap. */
  private dropPaced(): void {
    for (const paced of this.paced.values()) paced.later = undefined
  }

  // Replay

  private replay(from: StreamCursor): void {
    const state: Replaying = { kind: 'replaying', waiting: [], isOverrun: false, replayed: new Map() }
    this.enter(state)
    const steps = [...this.hub.owners].map(feed => ({ feed, upTo: feed.position as StreamPosition }))
    this.replayNext(state, from, steps, 0)
  }

  private replayNext(
    state: Replaying,
    from: StreamCursor,
    steps: readonly { readonly feed: OwnerFeed; readonly upTo: StreamPosition }[],
    after: number,
  ): void {
    if (this.state !== state) return
    const [step, ...others] = steps
    if (!step) return this.catchUp()
    const { shards } = this.hub.parts
    const { shard } = step.feed
    if (shard === undefined) return this.onGap('owner lost')
    const { ring, position: upTo } = step.upTo
    const request = {
      kind: 'stream',
      step: { what: 'replay', source: this.group.source, ring, sinceTick: from.tick, after, upTo },
    } as const
    shards.ask(shard, request, reply => {
      if (this.state !== state) return
      if (reply.kind !== 'stream' || (reply.content.what !== 'replayed' && reply.content.what !== 'gap'))
        return this.onGap('owner lost')
      const { content } = reply
      if (content.what === 'gap') return this.onGap(content.reason)
      for (const change of content.changes) {
        // Two owners replay a shard that has moved, and nobody knows which of them begins.
        const earlier = state.replayed.get(change.shard)
        if (earlier && earlier.feed !== step.feed) return this.onGap('owner lost')
        state.replayed.set(change.shard, { feed: step.feed, stamp: change.stamp })
        this.hub.noteOrder(step.feed, change)
        const { grant } = this.group
        const seen = grant ? changeAsSeen(grant, change) : change
        if (seen) this.pass(seen, change.found.length > 0 ? 'found' : 'left', undefined)
      }
      this.reader.whenRoom(() =>
        content.isLast
          ? this.replayNext(state, from, others, 0)
          : this.replayNext(state, from, steps, content.position),
      )
    })
  }

  /** Passes on what has come meanwhile, and is live. */
  private catchUp(): void {
    const { state } = this
    if (state.kind !== 'replaying' && state.kind !== 'snapshot') return
    if (state.isOverrun) return this.onGap('too old')
    const replayed = state.kind === 'replaying' ? state.replayed : undefined
    if (state.waiting.some(({ change: { shard, stamp } }) => stamp < (replayed?.get(shard)?.stamp ?? 0)))
      return this.onGap('owner lost')
    this.enter({ kind: 'live' })
    for (const { change, how, cursor } of state.waiting) this.pass(change, how, cursor)
  }

  // Snapshot

  private readSnapshot(cursor: StreamCursor): void {
    const selection = selectionOfFilter(this.group.source)
    if (!selection.ok) return this.onRefused(selection.refusal)
    const { parts, budget } = this.hub
    const snapshot = new Snapshot(parts.shards, this.group, selection.value, budget)
    const state: State = { kind: 'snapshot', snapshot, waiting: [], isOverrun: false }
    this.enter(state)
    this.readPart(state, snapshot, cursor, 0, 0)
  }

  /**
   * The owners of shards change: soon they may be at rest. The reader learns that the snapshot begins anew by a gap.
   */
  private beginSnapshotLater(state: State): void {
    this.hub.parts.clock.after(againMs, () => {
      if (this.state === state) this.onGap('owner lost')
    })
  }

  private readPart(state: State, snapshot: Snapshot, cursor: StreamCursor, count: number, tries: number): void {
    if (this.state !== state) return
    snapshot.read(result => {
      if (this.state !== state) return
      if (!snapshot.isSteady) return this.beginSnapshotLater(state)
      if (!result.ok) {
        if (result.refusal.kind !== 'Unavailable' || tries >= triesMax) return this.onRefused(result.refusal)
        this.hub.parts.clock.after(againMs, () => this.readPart(state, snapshot, cursor, count, tries + 1))
        return
      }
      const entities = result.value
      if (!entities) {
        this.send({ kind: 'snapshot', cursor: this.hub.textOf(cursor), data: snapshotEndText(count) })
        return this.catchUp()
      }
      const { view } = this.watch.form
      for (let at = 0; at < entities.length; at += snapshotEntitiesMax) {
        const part = entities.slice(at, at + snapshotEntitiesMax)
        const texts = part.map(({ entity, path }) => renderEntity(entity, path, view))
        this.send({ kind: 'snapshot', cursor: undefined, data: snapshotText(texts) })
      }
      this.reader.whenRoom(() => this.readPart(state, snapshot, cursor, count + entities.length, 0))
    })
  }
}
