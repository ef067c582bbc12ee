// Polls one owner of shards for the changes that the filters of this process find there.
//
// A poll carries what has changed in the filters since the last one. A new filter ends the poll that waits, and a new
// poll begins at once. After a failure the feed polls again, from the same position. If all readers let their events be
// gathered, the feed pauses after each answer; meanwhile the changes stay with the owner.
//
// Not here: which filters there are, and what becomes of a change (stream-hub.ts).

import type { ShardReply, Shards } from '../../messages/messages.js'
import {
  pollBytesMax,
  pollChangesMax,
  type StreamPoll,
  type StreamPosition,
  type StreamReply,
} from '../../messages/streams.js'
import type { Clock } from '../../ports.js'

/** How long an owner may keep a poll. So far behind is the cursor of readers while nothing happens. */
const waitMs = 1_000
/** How long a feed waits after a failure. */
const againMs = 250

/** The filters of this process, and their changes. */
export interface FilterChanges {
  readonly revision: number
  /** How long the feed may pause after an answer, in milliseconds. */
  readonly gatherMs: number
  /** The changes since a revision; 0: everything. */
  since(revision: number): FiltersSince
}

/** The filters to add and to remove after a revision; after 0, there were none. */
export type FiltersSince = Pick<StreamPoll, 'fromRevision' | 'add' | 'remove'>

type Changes = Extract<StreamReply, { what: 'changes' }>

export interface OwnerFeedParts {
  readonly shards: Shards
  readonly clock: Pick<Clock, 'after' | 'endOfTick'>
  readonly holder: string
  /** A shard that the owner has now; undefined: it has none. */
  readonly shardOf: () => number | undefined
  readonly filters: FilterChanges
  readonly onChanges: (feed: OwnerFeed, reply: Changes) => void
  /** Changes may be missing: `restarted`, the owner has another ring; `too old`, it does not have them any more. */
  readonly onLost: (reason: 'restarted' | 'too old') => void
  /** The owner does not have the shard any more by which it was asked. */
  readonly onMoved: () => void
}

export class OwnerFeed {
  private at: StreamPosition | undefined
  /** All changes at the owner up to this tick have been passed on. */
  tick = 0
  /** The revision of the filters that the owner has. */
  private revision = 0
  /** The same, once everything that the owner was doing when it learnt of it was passed on. */
  answered = 0
  private poll = 0
  private isDue = false
  /** Ends the pause after an answer; undefined: there is none. */
  private stopPause: (() => void) | undefined
  private isClosed = false
  /** The owner did not know this holder: it has matched nothing for a while, or it is another process. */
  private isUnknown = false

  constructor(private readonly parts: OwnerFeedParts) {}

  /** A shard by which the owner is asked. By any other one, another owner would be. */
  get shard(): number | undefined {
    return this.parts.shardOf()
  }

  /** Where the feed has arrived; undefined: the owner has not answered yet. */
  get position(): StreamPosition | undefined {
    return this.at
  }

  /** Polls at the end of this tick, since the filters have changed. */
  pollSoon(): void {
    if (this.isDue || this.isClosed) return
    this.isDue = true
    this.endPause()
    this.parts.clock.endOfTick(() => {
      this.isDue = false
      if (!this.isClosed) this.pollNow()
    })
  }

  /** Polls soon if the feed pauses. */
  wake(): void {
    if (this.stopPause) this.pollSoon()
  }

  close(): void {
    this.isClosed = true
    this.endPause()
  }

  private endPause(): void {
    this.stopPause?.()
    this.stopPause = undefined
  }

  private pollNow(): void {
    const { shards, holder, filters } = this.parts
    const { shard } = this
    if (shard === undefined) return this.pollLater()
    const number = ++this.poll
    const { revision } = filters
    const step = {
      ...({ what: 'poll', holder, after: this.at, revision, waitMs } as const),
      ...filters.since(this.revision),
    }
    shards.ask(shard, { kind: 'stream', step }, reply => {
      // The owner answers an earlier poll only to end it.
      if (number === this.poll && !this.isClosed) this.onReply(reply, revision)
    })
  }

  private onReply(reply: ShardReply, revision: number): void {
    if (reply.kind !== 'stream') {
      if (reply.kind === 'moved') this.parts.onMoved()
      return this.pollLater()
    }
    const { content } = reply
    switch (content.what) {
      case 'changes':
        return this.take(content, revision)
      case 'unknown':
        this.revision = 0
        this.answered = 0
        this.isUnknown = true
        return this.pollSoon()
      default:
        return this.pollLater()
    }
  }

  private take(changes: Changes, revision: number): void {
    const isOther = this.at !== undefined && this.at.ring !== changes.at.ring
    const { at: before } = this
    this.at = changes.at
    if (changes.lost || isOther || this.isUnknown) this.parts.onLost(isOther ? 'restarted' : 'too old')
    this.isUnknown = false
    this.revision = revision
    this.answered = changes.settled ?? revision
    this.parts.onChanges(this, changes)
    const { gatherMs, revision: wanted } = this.parts.filters
    if (gatherMs === 0 || this.answered < wanted || mayHaveMore(changes, before)) return this.pollSoon()
    if (!this.isDue && !this.isClosed) this.stopPause = this.parts.clock.after(gatherMs, () => this.pollSoon())
  }

  private pollLater(): void {
    this.parts.clock.after(againMs, () => {
      if (!this.isClosed) this.pollSoon()
    })
  }
}

/** Whether the owner may have more changes than this answer. `from`: the position behind which it begins. */
function mayHaveMore({ at, changes }: Changes, from: StreamPosition | undefined): boolean {
  if (from && at.ring === from.ring && at.position - from.position >= pollChangesMax) return true
  return changes.reduce((bytes, { encoded }) => bytes + encoded.length, 0) >= pollBytesMax
}
