// Looks at the clocks of the cluster from time to time, and reports what changes.
//
// Not here: measuring (peer-origin.ts), deciding (clock-state.ts).

import type { ClusterClock } from '../ports.js'
import { type ClockState, clockUnknown, nextClockState } from './clock-state.js'
import type { OriginRange } from './peer-origin.js'

export interface ClockWatchParts {
  readonly clock: Pick<ClusterClock, 'wallMs' | 'monoMs' | 'after'>
  readonly skewMaxMs: number
  /** The ranges of the nodes that can be reached. */
  readonly others: () => readonly OriginRange[]
  /** Called after each look. */
  readonly onLook: (state: ClockState) => void
}

/** Between two looks. */
const lookMs = 250

export class ClockWatch {
  private readonly parts: ClockWatchParts
  private latest: ClockState = clockUnknown
  private isClosed = false

  constructor(parts: ClockWatchParts) {
    this.parts = parts
  }

  start(): void {
    const looking = (): void => {
      if (this.isClosed) return
      this.look()
      this.parts.clock.after(lookMs, looking)
    }
    looking()
  }

  close(): void {
    this.isClosed = true
  }

  get state(): ClockState {
    return this.latest
  }

  /** The origin of our own wall clock: what it showed when our monotonic clock showed zero. */
  get ownMs(): number {
    const { clock } = this.parts
    return clock.wallMs() - clock.monoMs()
  }

  private look(): void {
    const { clock, skewMaxMs, others, onLook } = this.parts
    const readings = { monoMs: clock.monoMs(), ownMs: this.ownMs, others: others(), skewMaxMs }
    this.latest = nextClockState(this.latest, readings)
    onLook(this.latest)
  }
}
