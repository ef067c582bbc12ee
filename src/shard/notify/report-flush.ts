// The flush of progress reports: an owner that keeps no rows sends the progress of its notifications to the document
// owner, twice a second.
//
// One request is in flight at a time. Its parts count here until the document owner has answered, and from then on
// there. A reader may see them at both for a moment, but never at none. The owner repeats a request that fails, or
// whose outcome is unknown, with the same mark until the document owner has it. The document owner counts each mark
// once (progress-book.ts). So when a document owner dies, nothing is lost of what others flush. An owner that dies
// loses the counts of its last second at most, as long as the document owner answers within half a second.

import type { ShardMap } from '../../domain/scope.js'
import type { FlushRequest, ShardReply, Shards } from '../../messages/messages.js'
import type { Clock } from '../../ports.js'
import type { GroupCommit } from '../commit/commit.js'
import { hasLost, replyAfterFailure } from '../commit/deposed.js'
import type { ProgressBook } from './progress-book.js'

/**
 * The time between the beginnings of two requests. An owner that dies loses the counts of this time and of the time of
 * a reply.
 */
const intervalMs = 500
/** Subscriptions in one ask, 300 bytes each; the next ones go with the next ask. */
const partsMax = 1_000

export class ReportFlush {
  private readonly book: ProgressBook
  private readonly commit: GroupCommit
  private readonly shardMap: ShardMap
  private readonly clock: Clock
  private shards: Shards | undefined
  private takeBack: () => void = () => {}
  private readonly source: string
  /** The number of the latest request. */
  private number = 0
  private askedMs = 0

  /** `source`: a name that no other owner has or had. */
  constructor(book: ProgressBook, commit: GroupCommit, shardMap: ShardMap, clock: Clock, source: string) {
    this.book = book
    this.commit = commit
    this.shardMap = shardMap
    this.clock = clock
    this.source = source
  }

  /** Sends requests to document owners through `shards` from now on, if there is progress to flush. */
  begin(shards: Shards): void {
    this.shards = shards
    this.askedMs = this.clock.monoMs()
    this.wait()
  }

  /** Stops sending requests. */
  end(): void {
    this.shards = undefined
    this.takeBack()
  }

  /** Waits for the rest of the interval, which began with the latest request. */
  private wait(): void {
    this.after(Math.max(0, this.askedMs + intervalMs - this.clock.monoMs()), () => this.flush())
  }

  private after(ms: number, onDone: () => void): void {
    this.takeBack()
    if (this.shards) this.takeBack = this.clock.after(ms, onDone)
  }

  private flush(): void {
    this.askedMs = this.clock.monoMs()
    const parts = this.book.takeSome(partsMax)
    if (parts.length === 0) return this.wait()
    this.number++
    this.ask({ kind: 'handIn', parts, mark: { source: this.source, number: this.number } })
  }

  /** All parts have one document owner: where rows are not kept, that is the owner of the register. */
  private ask(request: FlushRequest): void {
    const { parts } = request
    this.shards?.ask(this.shardMap.register, request, ({ kind }) => {
      if (kind !== 'done') return this.after(intervalMs, () => this.ask(request))
      this.book.noteHandedIn(parts)
      if (parts.length === partsMax) this.flush()
      else this.wait()
    })
  }

  /** Adds the parts that another owner flushes; replies when they are durable. */
  onFlush({ parts, mark }: FlushRequest, onReply: (reply: ShardReply) => void): void {
    this.commit.afterCommit(this.book.add(parts, mark), failure =>
      onReply(failure && hasLost(failure, this.shardMap.register) ? replyAfterFailure(failure) : { kind: 'done' }),
    )
  }
}
