// The share of time for which the event loop is busy. A loop that waits for a processor counts as busy.
//
// It is measured again when somebody asks, at most once each half second, and follows changes within about a second. If
// nobody has asked for long, the first answer is about all of that time.

import type { Clock } from '../ports.js'

/** Milliseconds of an event loop so far, as the runtime counts them. */
export interface LoopTimes {
  readonly active: number
  readonly idle: number
}

const periodMs = 500

/** The weight of the latest measurement. */
const weight = 0.5

export class LoopUse {
  private share = 0
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
  get busyShare(): number {
    const nowMs = this.clock.monoMs()
    if (nowMs - this.measuredMs >= periodMs) this.measure(nowMs)
    return this.share
  }

  private measure(nowMs: number): void {
    const now = this.times()
    const activeMs = now.active - this.before.active
    const allMs = activeMs + now.idle - this.before.idle
    if (allMs > 0) this.share += (activeMs / allMs - this.share) * weight
    this.before = now
    this.measuredMs = nowMs
  }
}
