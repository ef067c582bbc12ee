// The clock of a node in a cluster: its wall clock, held within a bound of the clocks of the cluster.
//
// The cluster compares the clocks of its nodes, and reports the origin of the reference: the time that the reference
// showed when this node's monotonic clock showed zero (cluster/clocks/). A machine whose clock is set wrong gets a time
// at the bound. So its stamps, the removal of expired entities and throttling are wrong by the bound at most, also at
// the moment when the clock is set. Until nodes have compared their clocks, the clock is that of the machine.
//
// Not here: the times in the log file, which are those of the machine.

import type { Clock } from '../ports.js'

export class BoundedClock implements Clock {
  private originMs: number | undefined

  /** `skewMaxMs`: how far this clock may be from the reference. */
  constructor(
    private readonly clock: Clock,
    private readonly skewMaxMs: number,
  ) {}

  /** From now on the clock is within the bound of a reference with this origin; undefined: there is no reference. */
  follow(originMs: number | undefined): void {
    this.originMs = originMs
  }

  wallMs(): number {
    return Math.floor(this.bounded(this.clock.wallMs()))
  }

  fineWallMs(): number {
    return this.bounded(this.clock.fineWallMs())
  }

  monoMs(): number {
    return this.clock.monoMs()
  }

  after(delayMs: number, run: () => void): () => void {
    return this.clock.after(delayMs, run)
  }

  endOfTick(run: () => void): void {
    this.clock.endOfTick(run)
  }

  // [hot] Several times for each change.
  private bounded(wallMs: number): number {
    if (this.originMs === undefined) return wallMs
    const referenceMs = this.originMs + this.clock.monoMs()
    return Math.min(Math.max(wallMs, referenceMs - this.skewMaxMs), referenceMs + this.skewMaxMs)
  }
}
