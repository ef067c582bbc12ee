// Handing in: what an owner that keeps no rows knows has become of notifications goes to the home of the subscriptions, every second.
//
// One ask is in flight at a time. Until it is answered its part counts here, and from then on at the home: for a moment it may be seen at both, and
// never at none. What nobody has taken is handed in again. Where the outcome is unknown it is taken for done: then a count may be too low, which
// is better than one that grows with every fault.

import type { ShardMap } from '../../domain/scope.js'
import type { HandedPart, HandInRequest, ShardReply, Shards } from '../../messages/messages.js'
import type { Clock } from '../../ports.js'
import type { GroupCommit } from '../commit/commit.js'
import type { ProgressBook } from './progress-book.js'

/** How long what is known here waits at most, if the home answers. */
const intervalMs = 1_000
/** Subscriptions in one ask, 300 bytes each; the next ones go with the next ask. */
const partsMax = 1_000

export class HandingIn {
  private readonly book: ProgressBook
  private readonly commit: GroupCommit
  private readonly shardMap: ShardMap
  private readonly clock: Clock
  private shards: Shards | undefined
  private takeBack: () => void = () => {}

  constructor(book: ProgressBook, commit: GroupCommit, shardMap: ShardMap, clock: Clock) {
    this.book = book
    this.commit = commit
    this.shardMap = shardMap
    this.clock = clock
  }

  /** From now on homes are asked through `shards`, if there is anything to hand in. */
  begin(shards: Shards): void {
    this.shards = shards
    this.wait()
  }

  /** Nobody is asked any more. */
  end(): void {
    this.shards = undefined
    this.takeBack()
  }

  private wait(): void {
    this.takeBack()
    if (this.shards) this.takeBack = this.clock.after(intervalMs, () => this.handIn())
  }

  private handIn(): void {
    const parts = this.book.takeSome(partsMax)
    const [first] = parts
    if (!first || !this.shards) return this.wait()
    // All that is taken has one home: where rows are not kept, that is the register.
    this.shards.ask(this.shardMap.register, { kind: 'handIn', parts }, reply => {
      this.onReply(parts, reply)
      if (parts.length === partsMax && reply.kind === 'done') this.handIn()
      else this.wait()
    })
  }

  private onReply(parts: readonly HandedPart[], { kind }: ShardReply): void {
    if (kind === 'moved' || kind === 'busy' || kind === 'unreachable') this.book.giveBack(parts)
    else this.book.noteHandedIn(parts)
  }

  /** Takes what another owner hands in; replies when it is durable. */
  onHandIn({ parts }: HandInRequest, onReply: (reply: ShardReply) => void): void {
    this.commit.afterCommit(this.book.add(parts), failure =>
      onReply(failure ? { kind: 'failed', reason: failure.message } : { kind: 'done' }),
    )
  }
}
