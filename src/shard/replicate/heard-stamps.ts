// Stamps that others gave in shards that are followed: when such a shard becomes this node's own, stamps here have to be above them.
//
// Not earlier. The changes of a batch have stamps in the order of the batch and go to several owners: one that heard of the others' part first,
// from their logs, and gave no stamp below it any more, would put its own part behind theirs.

import type { Stamps } from '../../ports.js'

export class HeardStamps {
  private readonly own: Stamps
  private readonly observe: (stamp: number) => void
  private readonly hear: (stamp: number) => void
  private heard = 0

  /** `observe` has `own` give nothing up to a stamp any more; `hear` is told of each that is heard. */
  constructor(own: Stamps, observe: (stamp: number) => void, hear: (stamp: number) => void) {
    this.own = own
    this.observe = observe
    this.hear = hear
  }

  /** A stamp that another node gave. */
  note(stamp: number): void {
    if (stamp > this.heard) this.heard = stamp
    this.hear(stamp)
  }

  /** From now on stamps here are above all that was heard. */
  raise(): void {
    this.observe(this.heard)
  }

  /** The latest stamp that was given here or heard. */
  get last(): number {
    return Math.max(this.own.last, this.heard)
  }
}
