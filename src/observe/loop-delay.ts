// The delay of the event loop: a timer is due every 50 ms, and the time by which it is late is measured.
//
// The result is a histogram that only grows, not percentiles since the last look: it supports several readers, and the
// histograms of several processes can be added.

import { emptyHistogram, observe } from '../domain/histogram.js'
import type { Clock } from '../ports.js'

const periodMs = 50

const rememberedMs = 30_000

const boundsS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

export class LoopDelay {
  readonly seconds = emptyHistogram(boundsS)
  private cancel = (): void => {}
  private dueMs = Number.POSITIVE_INFINITY
  /** The longest delays of this period and of the one before. */
  private longestMs = 0
  private beforeMs = 0
  private windowEndMs = 0

  constructor(private readonly clock: Pick<Clock, 'monoMs' | 'after'>) {}

  start(): void {
    this.dueMs = this.clock.monoMs() + periodMs
    this.cancel = this.clock.after(periodMs, () => {
      const lateMs = this.lateMs
      observe(this.seconds, lateMs / 1000)
      this.remember(lateMs)
      this.start()
    })
  }

  /** The longest recent delay, the current one included. */
  get latelyMs(): number {
    return Math.max(this.longestMs, this.beforeMs, this.lateMs)
  }

  private get lateMs(): number {
    return Math.max(0, this.clock.monoMs() - this.dueMs)
  }

  private remember(lateMs: number): void {
    const nowMs = this.clock.monoMs()
    if (nowMs >= this.windowEndMs) {
      this.beforeMs = this.longestMs
      this.longestMs = 0
      this.windowEndMs = nowMs + rememberedMs
    }
    this.longestMs = Math.max(this.longestMs, lateMs)
  }

  stop(): void {
    this.cancel()
  }
}
