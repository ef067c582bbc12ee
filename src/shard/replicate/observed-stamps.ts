// Stamps that others gave in shards that are followed: when such a shard becomes this node's own, stamps here have to
// be above them.
//
// Not earlier. The changes of a batch have stamps in the order of the batch and go to several owners: one that heard of
// the others' part first, from their logs, and gave no stamp below it any more, would put its own part behind theirs.

import type { Stamps } from '../../ports.js'

/** A clock that gives no stamp up to one that it has observed. */
export interface StampObserver {
  observe(stamp: number): void
}

export class ObservedStamps {
  private readonly own: Pick<Stamps, 'last'> & StampObserver
  private readonly requestClock: StampObserver
  private heard = 0

  /** `own` gives the stamps here; `requestClock` observes each stamp that is heard. */
  constructor(own: Pick<Stamps, 'last'> & StampObserver, requestClock: StampObserver) {
    this.own = own
    this.requestClock = requestClock
  }

  /** A stamp that another node gave. */
  note(stamp: number): void {
    if (stamp > this.heard) this.heard = stamp
    this.requestClock.observe(stamp)
  }

  /** From now on stamps here are above all that was heard. */
  raise(): void {
    this.own.observe(this.heard)
  }

  /** The latest stamp that was given here or heard. */
  get last(): number {
    return Math.max(this.own.last, this.heard)
  }
}
