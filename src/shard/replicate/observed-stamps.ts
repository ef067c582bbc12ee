// Stamps that other nodes gave in followed shards. When such a shard becomes this node's own, stamps here have to be
// above them.
//
// They must not be raised earlier. The changes of a batch have stamps in the order of the batch and go to several
// owners. Suppose an owner received the others' part first, from their logs, and gave only larger stamps from then on:
// its own part would come after theirs.

import type { Stamps } from '../../ports.js'

/** A clock that gives larger stamps than those that it has followed; it follows none that is far ahead of it. */
export interface StampFollower {
  follow(stamp: number): void
}

/** A clock that gives only stamps above all that it has observed. */
export interface StampObserver {
  observe(stamp: number): void
}

export class ObservedStamps {
  private readonly own: Pick<Stamps, 'last'> & StampObserver
  private readonly requestClock: StampFollower
  private received = 0

  /** `own` gives the stamps here; `requestClock` follows each stamp that is received. */
  constructor(own: Pick<Stamps, 'last'> & StampObserver, requestClock: StampFollower) {
    this.own = own
    this.requestClock = requestClock
  }

  /** Notes a stamp that another node gave. */
  note(stamp: number): void {
    if (stamp > this.received) this.received = stamp
    this.requestClock.follow(stamp)
  }

  /** From now on stamps here are above all that were received. */
  raise(): void {
    this.own.observe(this.received)
  }

  /** The latest stamp that was given here or received. */
  get last(): number {
    return Math.max(this.own.last, this.received)
  }
}
