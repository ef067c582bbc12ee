// The parts of commits, by lane: what is staged for commits to come, and what is in flight. Each part has a number, and
// a later part a higher one.
//
//   staged -> busy, in a commit in flight -> ended: it is durable, or known not to be
//
// A lane has one part staged and one busy at most.
//
// Not here: when commits begin, and which parts they take (commit.ts).

import type { CommitEnd } from './change-queue.js'
import type { CommitLog, OpenBatch } from './commit-log.js'
import { isDeposed } from './deposed.js'

export type Waiter = (failure?: Error) => void

/** A part of a commit: the changes of one lane, staged or in flight. */
export interface Filling {
  readonly number: number
  readonly lane: number
  readonly batch: OpenBatch
  readonly waiters: Waiter[]
  ended: CommitEnd | undefined
}

export class Fillings {
  /** The number of the latest part. */
  private number = 0
  /** Parts that have not ended, by number. */
  private readonly open = new Map<number, Filling>()
  /** By lane. */
  private readonly staged = new Map<number, Filling>()
  private readonly busy = new Map<number, Filling>()

  constructor(private readonly log: Pick<CommitLog, 'open'>) {}

  // [hot] Twice for every change.
  /** The staged part of a lane, which may be a new one. */
  stagedOf(lane: number): Filling {
    let filling = this.staged.get(lane)
    if (!filling) {
      filling = { number: ++this.number, lane, batch: this.log.open(lane), waiters: [], ended: undefined }
      this.staged.set(lane, filling)
      this.open.set(filling.number, filling)
    }
    return filling
  }

  /** Moves staged parts into a commit in flight. */
  take(takes: (filling: Filling) => boolean): readonly Filling[] {
    const taken = [...this.staged.values()].filter(takes)
    for (const filling of taken) {
      this.staged.delete(filling.lane)
      this.busy.set(filling.lane, filling)
    }
    return taken
  }

  /** Notes the end of a part in flight. */
  end(filling: Filling, end: CommitEnd): void {
    filling.ended = end
    this.busy.delete(filling.lane)
    this.open.delete(filling.number)
  }

  /** A part that has not ended; undefined: it has. */
  get(number: number): Filling | undefined {
    return this.open.get(number)
  }

  /** The parts that have not ended, in the order of their numbers. */
  all(): Iterable<Filling> {
    return this.open.values()
  }

  isBusy(lane: number): boolean {
    return this.busy.has(lane)
  }

  isStaged(lane: number): boolean {
    return this.staged.has(lane)
  }

  get hasStaged(): boolean {
    return this.staged.size > 0
  }

  // [hot] For every change.
  /** Whether one of these lanes has something staged and nothing in flight. */
  hasFreeLane(isMeant: (lane: number) => boolean): boolean {
    for (const lane of this.staged.keys()) if (!this.busy.has(lane) && isMeant(lane)) return true
    return false
  }

  /** Whether a lane has operations that are staged or in flight. */
  holds(lane: number): boolean {
    return [this.staged.get(lane), this.busy.get(lane)].some(filling => filling && filling.batch.length > 0)
  }

  /** The number of staged operations. */
  get operations(): number {
    let sum = 0
    for (const { batch } of this.staged.values()) sum += batch.length
    return sum
  }
}

/** Calls back when all of them have called their waiters, with one of the failures: at once when there are none. */
export function afterEach(
  all: readonly { readonly waiters: Waiter[] }[],
  failed: Error | undefined,
  onDurable: Waiter,
): void {
  let left = all.length
  if (failed || left === 0) return onDurable(failed)
  let failure: Error | undefined
  for (const { waiters } of all)
    waiters.push(one => {
      if (one && !(failure && isDeposed(one))) failure = one
      if (--left === 0) onDurable(failure)
    })
}
