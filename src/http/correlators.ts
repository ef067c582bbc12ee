// Correlators for requests that bring none: UUIDs (operations.md §8.5).
//
// A correlator has to be unique, not secret. So chance is asked once, and the last twelve digits count from there: a fresh random UUID
// for every request was 5 % of all garbage of a write.

import type { Chance } from '../ports.js'

const countMax = 2 ** 48

// [hot] Writing all twelve digits anew for every request was 1 % of a create.
const lastDigits = Array.from({ length: 4096 }, (_, n) => n.toString(16).padStart(3, '0'))

export class Correlators {
  private readonly start: string
  private count: number
  /** The UUID without its last three digits, for this count without them. */
  private head = ''
  private headOf = -1

  constructor(chance: Pick<Chance, 'uuid'>) {
    const uuid = chance.uuid()
    this.start = uuid.slice(0, -12)
    this.count = Number.parseInt(uuid.slice(-12), 16)
  }

  /** A UUID that no other process and no earlier request has. */
  next(): string {
    this.count = (this.count + 1) % countMax
    const last = this.count % lastDigits.length
    const others = (this.count - last) / lastDigits.length
    if (others !== this.headOf) {
      this.headOf = others
      this.head = this.start + others.toString(16).padStart(9, '0')
    }
    return this.head + lastDigits[last]
  }
}
