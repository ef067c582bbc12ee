// Intervals, to be found by a value that lies in them: which of many bounds `temperature > 30; temperature < 40` does 35 meet?
//
// The intervals are sorted by their lower ends. Their middle one is the root of a binary tree, the middles of both halves stand
// below it, and so on; for each subtree the highest upper end is known. Then a look leaves out what begins too late, and every subtree
// that ends too early: it costs the logarithm of their number for each interval that it finds.
//
// What is added waits in a short list, which every look goes through, until there is enough of it to sort everything again; what is
// removed leaves a hole until there are more holes than intervals.

import { partitionPoint } from '../search.js'
import type { Bound } from './query-parser.js'

interface Interval<B, T> {
  /** Both ends count; undefined: there is none. */
  readonly low: B | undefined
  readonly high: B | undefined
  /** undefined: it has been removed. */
  item: T | undefined
}

/** How many may wait: each costs every look a few nanoseconds, sorting costs a tenth of a microsecond for each interval there is. */
const waitingMax = 64

/** Items by intervals whose ends, and the values that are looked for, are all numbers or all strings. */
export class Intervals<B extends Bound, T> {
  private sorted: Interval<B, T>[] = []
  /** For the subtree with the root at the same place: its highest end. */
  private highest: (B | undefined)[] = []
  private waiting: Interval<B, T>[] = []
  private holes = 0

  get size(): number {
    return this.sorted.length - this.holes + this.waiting.length
  }

  add(low: B | undefined, high: B | undefined, item: T): void {
    this.waiting.push({ low, high, item })
  }

  remove(low: B | undefined, high: B | undefined, item: T): void {
    if (this.waiting.length > waitingMax) this.sort()
    const waiting = this.waiting.findIndex(one => one.item === item)
    if (waiting >= 0) {
      this.waiting.splice(waiting, 1)
      return
    }
    const wanted = { low, high }
    let at = this.firstFrom(wanted)
    while (at < this.sorted.length && this.sorted[at]!.item !== item) {
      if (compare(this.sorted[at]!, wanted) > 0) return
      at++
    }
    if (at === this.sorted.length) return
    this.sorted[at]!.item = undefined
    this.holes++
    if (this.holes > this.sorted.length / 2) this.sort()
  }

  // [hot] Once per event and attribute with bounds.
  /** Shows the items of all intervals that begin at `most` or lower and end at `least` or higher; for one value both are the value. */
  visit(least: B, most: B, show: (item: T) => void): void {
    if (this.waiting.length > waitingMax) this.sort()
    for (const { low, high, item } of this.waiting) if (begins(low, most) && reaches(high, least)) show(item as T)
    this.search(0, this.sorted.length, least, most, show)
  }

  private search(first: number, end: number, least: B, most: B, show: (item: T) => void): void {
    let from = first
    while (from < end) {
      const middle = (from + end) >>> 1
      if (!reaches(this.highest[middle], least)) return
      this.search(from, middle, least, most, show)
      const { low, high, item } = this.sorted[middle]!
      if (!begins(low, most)) return
      if (item !== undefined && reaches(high, least)) show(item)
      from = middle + 1
    }
  }

  private sort(): void {
    // Two sorted runs: the language's sort joins them without comparing all with all.
    const waiting = this.waiting.sort(compare)
    this.sorted = [...this.sorted.filter(({ item }) => item !== undefined), ...waiting].sort(compare)
    this.waiting = []
    this.holes = 0
    this.highest = new Array(this.sorted.length)
    this.measure(0, this.sorted.length)
  }

  /** Finds the highest ends of a subtree that is not empty. */
  private measure(from: number, end: number): B | undefined {
    const middle = (from + end) >>> 1
    let highest = this.sorted[middle]!.high
    if (from < middle) highest = higher(highest, this.measure(from, middle))
    if (middle + 1 < end) highest = higher(highest, this.measure(middle + 1, end))
    this.highest[middle] = highest
    return highest
  }

  /** The first place whose interval is not before the wanted one. */
  private firstFrom(wanted: Ends<B>): number {
    return partitionPoint(at => compare(this.sorted[at]!, wanted) < 0, 0, this.sorted.length)
  }
}

type Ends<B> = Pick<Interval<B, unknown>, 'low' | 'high'>

const begins = <B extends Bound>(low: B | undefined, most: B): boolean => low === undefined || low <= most

const reaches = <B extends Bound>(high: B | undefined, least: B): boolean => high === undefined || high >= least

const higher = <B extends Bound>(a: B | undefined, b: B | undefined): B | undefined =>
  a === undefined || b === undefined ? undefined : a > b ? a : b

/** By the lower end, then by the upper one. */
function compare<B extends Bound>(a: Ends<B>, b: Ends<B>): number {
  if (a.low !== b.low) return a.low === undefined || (b.low !== undefined && a.low < b.low) ? -1 : 1
  if (a.high !== b.high) return b.high === undefined || (a.high !== undefined && a.high < b.high) ? -1 : 1
  return 0
}
