// How late the event loop is: a timer that ought to ring every 50 ms, and by how much it rings later.
//
// A histogram that only grows, and not percentiles since the last look: several may look, and those of several
// processes can be added.

import { emptyHistogram, observe } from '../domain/histogram.js'
import type { Clock } from '../ports.js'

const periodMs = 50

const rememberedMs = 30_000

const boundsS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

export class LoopDelay {
  readonly seconds = emptyHistogram(boundsS)
  private cancel = (): void => {}
  private dueMs = Number.POSITIVE_INFINITY
  /** The longest delays of this stretch of time and of the one before. */
  private longestMs = 0
  private beforeMs = 0
  private stretchEndMs = 0

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

  /** The longest delay of late, the one under way included. */
  get latelyMs(): number {
    return Math.max(this.longestMs, this.beforeMs, this.lateMs)
  }

  private get lateMs(): number {
    return Math.max(0, this.clock.monoMs() - this.dueMs)
  }

  private remember(lateMs: number): void {
    const nowMs = this.clock.monoMs()
    if (nowMs >= this.stretchEndMs) {
      this.beforeMs = this.longestMs
      this.longestMs = 0
      this.stretchEndMs = nowMs + rememberedMs
    }
    this.longestMs = Math.max(this.longestMs, lateMs)
  }

  stop(): void {
    this.cancel()
  }
}
