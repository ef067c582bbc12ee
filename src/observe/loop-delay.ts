// How late the event loop is: a timer that ought to ring every 50 ms, and by how much it rings later.
//
// A histogram that only grows, and not percentiles since the last look: several may look, and those of several processes can be added.

import { emptyHistogram, observe } from '../domain/histogram.js'
import type { Clock } from '../ports.js'

const periodMs = 50

const boundsS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

export class LoopDelay {
  readonly seconds = emptyHistogram(boundsS)
  private readonly clock: Pick<Clock, 'monoMs' | 'after'>
  private cancel = (): void => {}

  constructor(clock: Pick<Clock, 'monoMs' | 'after'>) {
    this.clock = clock
  }

  start(): void {
    const dueMs = this.clock.monoMs() + periodMs
    this.cancel = this.clock.after(periodMs, () => {
      observe(this.seconds, Math.max(0, this.clock.monoMs() - dueMs) / 1000)
      this.start()
    })
  }

  stop(): void {
    this.cancel()
  }
}
