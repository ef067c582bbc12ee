// Turns of the event loop for long reads: however many of them there are, one goes on per turn, and each as often as any other one.
//
// If each took its step in every turn, a hundred of them would hold the loop a hundred times as long.

import type { Clock } from '../ports.js'

export class Turns {
  private readonly clock: Pick<Clock, 'endOfTick'>
  private waiting: (() => void)[] = []

  constructor(clock: Pick<Clock, 'endOfTick'>) {
    this.clock = clock
  }

  /** Resolves when it is the caller's turn. */
  next(): Promise<void> {
    return new Promise(resolve => {
      this.waiting.push(resolve)
      if (this.waiting.length === 1) this.clock.endOfTick(() => this.go())
    })
  }

  private go(): void {
    const first = this.waiting.shift()
    if (this.waiting.length > 0) this.clock.endOfTick(() => this.go())
    first?.()
  }
}
