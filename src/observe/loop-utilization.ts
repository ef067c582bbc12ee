// The utilization of the event loop: the share of time in which it is not idle. A loop that waits for a processor is not
// idle.
//
// A reader causes a measurement, at most one each half second. The share follows changes within about a second. After a
// long time without readers, the first measurement covers all of that time.

import type { Clock } from '../ports.js'

/** Milliseconds of an event loop so far, as the runtime counts them. */
export interface LoopTimes {
  readonly active: number
  readonly idle: number
}

const periodMs = 500

/** The weight of the latest measurement; all earlier ones have the rest. */
const weight = 0.5

export class LoopUtilization {
  private smoothed = 0
  private before: LoopTimes
  private measuredMs: number

  constructor(
    private readonly clock: Pick<Clock, 'monoMs'>,
    private readonly times: () => LoopTimes = () => performance.eventLoopUtilization(),
  ) {
    this.before = times()
    this.measuredMs = clock.monoMs()
  }

  /** From 0 to 1. */
  get share(): number {
    const nowMs = this.clock.monoMs()
    if (nowMs - this.measuredMs >= periodMs) this.measure(nowMs)
    return this.smoothed
  }

  private measure(nowMs: number): void {
    const now = this.times()
    const activeMs = now.active - this.before.active
    const allMs = activeMs + now.idle - this.before.idle
    if (allMs > 0) this.smoothed += (activeMs / allMs - this.smoothed) * weight
    this.before = now
    this.measuredMs = nowMs
  }
}
