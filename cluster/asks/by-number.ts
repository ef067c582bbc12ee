// A table of what has numbers, given one after the other: found by number, with little garbage whatever comes and goes.
//
// Not a Map: the tables that a Map leaves when it grows or is cleaned point to the one that follows, so once such a table has survived a
// collection of young objects it keeps everything that comes later, with all it refers to, until the next full collection. A link with asks
// coming and going for minutes had 40 ms of scavenging at a time from that; with this table it has 1.
//
// Open addressing, each item as near behind the place of its number as there was room. What is taken out leaves no mark: those behind it move up.

const capacityMin = 64

export class ByNumber<T extends { readonly number: number }> {
  private slots: (T | undefined)[] = empty(capacityMin)
  private mask = capacityMin - 1
  private count = 0

  get size(): number {
    return this.count
  }

  get(number: number): T | undefined {
    return this.slots[this.slotOf(number)]
  }

  /** Adds one whose number is not there yet. */
  add(item: T): void {
    if (2 * this.count > this.mask) this.resize(2 * this.slots.length)
    this.slots[this.slotOf(item.number)] = item
    this.count++
  }

  /** Whether it was there. */
  delete(number: number): boolean {
    const { slots, mask } = this
    let hole = this.slotOf(number)
    if (!slots[hole]) return false
    for (let at = (hole + 1) & mask; slots[at]; at = (at + 1) & mask) {
      // Those that belong behind the hole would not be found before it.
      const fromHome = (at - slots[at]!.number) & mask
      if (fromHome < ((at - hole) & mask)) continue
      slots[hole] = slots[at]
      hole = at
    }
    slots[hole] = undefined
    this.count--
    return true
  }

  /** Where a number is, or where it would be put. */
  private slotOf(number: number): number {
    const { slots, mask } = this
    let at = number & mask
    for (let item = slots[at]; item && item.number !== number; item = slots[at]) at = (at + 1) & mask
    return at
  }

  private resize(capacity: number): void {
    const { slots } = this
    this.slots = empty(capacity)
    this.mask = capacity - 1
    for (const item of slots) if (item) this.slots[this.slotOf(item.number)] = item
  }
}

const empty = <T>(capacity: number): (T | undefined)[] => new Array<T | undefined>(capacity).fill(undefined)
