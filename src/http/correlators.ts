// Correlators for requests that bring none: UUIDs (operations.md §8.5).
//
// A correlator has to be unique, not secret. So chance is asked once, and the last twelve digits count from there: a fresh random UUID
// for every request was 5 % of all garbage of a write.

import type { Chance } from '../ports.js'

const countMax = 2 ** 48

export class Correlators {
  private readonly start: string
  private count: number

  constructor(chance: Chance) {
    const uuid = chance.uuid()
    this.start = uuid.slice(0, -12)
    this.count = Number.parseInt(uuid.slice(-12), 16)
  }

  /** A UUID that no other process and no earlier request has. */
  next(): string {
    this.count = (this.count + 1) % countMax
    return this.start + this.count.toString(16).padStart(12, '0')
  }
}
