// Turns of the event loop for long reads: however many of them there are, one goes on per turn, and each as often as any other one.
//
// If each took its step in every turn, a hundred of them would hold the loop a hundred times as long. What begins in a turn in which much was read
// already waits as well.

import type { Clock } from '../../ports.js'

/** Bytes read in one turn of the event loop: some 1 ms. */
export const turnBytesMax = 512 * 1024
/** Smaller steps are not counted. */
const countedBytes = 64 * 1024

export class Turns {
  private readonly clock: Pick<Clock, 'endOfTick'>
  private readonly waiting: (() => void)[] = []
  /** Read in this turn. */
  private bytes = 0

  constructor(clock: Pick<Clock, 'endOfTick'>) {
    this.clock = clock
  }

  /** Whether enough was read in this turn. */
  get isOver(): boolean {
    return this.bytes > turnBytesMax
  }

  /** So much was read at once. */
  note(bytes: number): void {
    if (bytes < countedBytes) return
    if (this.bytes === 0 && this.waiting.length === 0) this.clock.endOfTick(() => this.go())
    this.bytes += bytes
  }

  /** Resolves when it is the caller's turn. */
  next(): Promise<void> {
    return new Promise(resolve => {
      if (this.bytes === 0 && this.waiting.length === 0) this.clock.endOfTick(() => this.go())
      this.waiting.push(resolve)
    })
  }

  /** The next turn. */
  private go(): void {
    this.bytes = 0
    const first = this.waiting.shift()
    if (this.waiting.length > 0) this.clock.endOfTick(() => this.go())
    first?.()
  }
}
