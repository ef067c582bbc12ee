// Work of one request that may be long, done in steps between which the event loop has its turn.
//
// Whoever works looks now and then whether a step is due, and stops when the time of the request is over.

import type { Clock } from '../ports.js'

/** How long a step takes: others wait for that. */
const stepMs = 4

export class Steps {
  private readonly clock: Pick<Clock, 'monoMs' | 'endOfTick'>
  private readonly endMs: number
  private sinceMs: number

  /** `deadlineMs`: what all steps together may take. */
  constructor(clock: Pick<Clock, 'monoMs' | 'endOfTick'>, deadlineMs = Number.POSITIVE_INFINITY) {
    this.clock = clock
    this.sinceMs = clock.monoMs()
    this.endMs = this.sinceMs + deadlineMs
  }

  /** Whether the event loop should have its turn. */
  get isDue(): boolean {
    return this.clock.monoMs() - this.sinceMs > stepMs
  }

  /** Whether the time of the request was over when the step began. */
  get isOver(): boolean {
    return this.sinceMs > this.endMs
  }

  async breathe(): Promise<void> {
    await new Promise<void>(resolve => this.clock.endOfTick(resolve))
    this.sinceMs = this.clock.monoMs()
  }
}
