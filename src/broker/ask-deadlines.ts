// Gives every ask a deadline. It wraps the shards of a cluster node for the asks of that node itself.
//
// The reply to a write waits for its commit, and so does a read of rows that were just written. In a cluster the commit
// waits for the engine of the log, which may be away for hours. After its deadline an ask gets the reply `lost`, since
// the commit may still happen. A later reply is dropped. A list may take long for other reasons. It gets the short
// deadline only while the log accepts nothing, since every list waits for the commits in flight.
//
// An ask past its deadline keeps its callback until its commit ends. So beyond `lateMax` of them, further asks of the
// kind get the reply `busy`, as when a shard's mailbox (shard.ts) or an append (replicate/replicated-log.ts) is full.
//
// [hot] Each ask costs an object and a closure; one that is not answered at once also a reading of the clock and an
// entry in a set. Each kind has one timer, since its deadlines end in order. Measured with 50 asks outstanding: 0.3 us
// an ask.

import type { ShardReply, ShardRequest, Shards } from '../messages/messages.js'
import type { Clock } from '../ports.js'

type OnReply = (reply: ShardReply) => void

export interface AskTimes {
  /**
   * How long an ask that is not a list may take. It is longer than the wait for other nodes: to wait out an election of
   * the engine is better than an unknown outcome. Keep it below the client's own timeout.
   */
  readonly waitMs: number
  /**
   * For lists, and for writes that wait for their notifications (`options=flowControl`); `waitMs` when the log is
   * stalled.
   */
  readonly listWaitMs: number
  /** How long the commits in flight have waited for the log; 0: there is none. */
  readonly stalledMs: () => number
}

/** Asks of one kind past their deadline whose commit has not ended, some 300 bytes each. */
export const lateMax = 20_000

/** The longest time between two checks of the oldest ask. */
const lookMs = 1_000

const busy: ShardReply = { kind: 'busy' }

export class AskDeadlines implements Shards {
  private readonly writes: Deadline
  private readonly reads: Deadline
  private readonly lists: Deadline

  constructor(
    private readonly shards: Shards,
    clock: Pick<Clock, 'monoMs' | 'after'>,
    times: AskTimes,
  ) {
    this.writes = new Deadline(clock, times.waitMs, times)
    this.reads = new Deadline(clock, times.waitMs, times)
    this.lists = new Deadline(clock, times.listWaitMs, times)
  }

  ask(shard: number, request: ShardRequest, onReply: OnReply): void {
    this.deadlineOf(request).ask(this.shards, shard, request, onReply)
  }

  owners(): readonly number[] {
    return this.shards.owners()
  }

  ownerOf(shard: number): number {
    return this.shards.ownerOf(shard)
  }

  pathsOf(tenant: string): Iterable<string> | undefined {
    return this.shards.pathsOf(tenant)
  }

  private deadlineOf(request: ShardRequest): Deadline {
    switch (request.kind) {
      case 'list':
      case 'backup':
      case 'tenants':
        return this.lists
      case 'find':
      case 'fetch':
      case 'types':
      case 'unused':
      case 'stream':
        return this.reads
      case 'batch':
        return request.items[0]?.origin.isPaced ? this.lists : this.writes
      default:
        return 'origin' in request && request.origin.isPaced ? this.lists : this.writes
    }
  }
}

class Waiting {
  /** undefined: it is answered, or past its deadline. */
  onReply: OnReply | undefined
  /** undefined: `ask` has not returned yet. */
  beganMs: number | undefined

  constructor(onReply: OnReply) {
    this.onReply = onReply
  }
}

/** The asks of one kind, which have the same deadline. */
class Deadline {
  private readonly waiting = new Set<Waiting>()
  private isTimed = false
  private late = 0

  constructor(
    private readonly clock: Pick<Clock, 'monoMs' | 'after'>,
    private readonly waitMs: number,
    private readonly times: AskTimes,
  ) {}

  ask(shards: Shards, shard: number, request: ShardRequest, onReply: OnReply): void {
    if (this.late >= lateMax) return onReply(busy)
    const one = new Waiting(onReply)
    shards.ask(shard, request, reply => this.end(one, reply))
    if (one.onReply) this.add(one)
  }

  private add(one: Waiting): void {
    one.beganMs = this.clock.monoMs()
    this.waiting.add(one)
    if (!this.isTimed) this.wait(this.times.waitMs)
  }

  private end(one: Waiting, reply: ShardReply): void {
    const { onReply } = one
    if (!onReply) {
      this.late--
      return
    }
    one.onReply = undefined
    if (one.beganMs !== undefined) this.waiting.delete(one)
    onReply(reply)
  }

  private wait(delayMs: number): void {
    this.isTimed = true
    this.clock.after(delayMs, () => {
      this.isTimed = false
      this.giveUp()
    })
  }

  /** Ends the asks past their deadline, and waits for the next one. */
  private giveUp(): void {
    const { stalledMs, waitMs: stalledWaitMs } = this.times
    const mayMs = stalledMs() >= stalledWaitMs ? stalledWaitMs : this.waitMs
    const nowMs = this.clock.monoMs()
    const lost: ShardReply = { kind: 'lost', reason: `it was not done within ${mayMs} ms` }
    for (const one of this.waiting) {
      const leftMs = one.beganMs! + mayMs - nowMs
      // The log may be stalled before the deadline of this ask.
      if (leftMs > 0) return this.isTimed ? undefined : this.wait(Math.min(leftMs, lookMs))
      this.waiting.delete(one)
      this.late++
      const { onReply } = one
      one.onReply = undefined
      onReply?.(lost)
    }
  }
}
