// A state of free disk space that the test chooses.

import type { DiskRoom } from '../../src/ports.js'

export class PretendedRoom implements DiskRoom {
  isShort = false
  isScarce = false
  isExhausted = false
  readonly freeBytes = 41 * 1024 * 1024
  readonly reserveBytes = 64 * 1024 * 1024
  private waiting: (() => void)[] = []

  become(state: 'ample' | 'short' | 'scarce' | 'exhausted'): void {
    this.isExhausted = state === 'exhausted'
    this.isScarce = this.isExhausted || state === 'scarce'
    this.isShort = this.isScarce || state === 'short'
    if (this.isScarce) return
    for (const run of this.waiting.splice(0)) run()
  }

  afterScarce(run: () => void): void {
    if (this.isScarce) this.waiting.push(run)
    else run()
  }
}
