// The page of a list whose parts several owners hold: from the keys of each, in order, which entities of which parts are on it.
//
// What comes before the page is not walked through. The beginning is found in all parts at once by halving:
//
//   part 0   . . . . . | . .  .        the cuts together leave `offset` keys to their left,
//   part 1   . . | . . . . . . .       and nothing to the left comes after anything to the right
//   part 2   . . . | . . . .
//
// and from there the parts are merged as far as the page goes.

import { compareSortValues, type OrderKey } from '../domain/queries/order.js'
import type { ListKeys } from '../messages/messages.js'

/** An entity of the page: the part that has it, and where its key stands there. */
export interface Picked {
  readonly part: number
  readonly at: number
}

/** The page from `offset` on, `limit` at most. Each part has at least its first `offset + limit` keys, or all. */
export function mergedPage(
  parts: readonly ListKeys[],
  order: readonly OrderKey[],
  offset: number,
  limit: number,
): readonly Picked[] {
  const merge = new Merge(parts, order)
  merge.skip(offset)
  return merge.take(limit)
}

class Merge {
  private readonly parts: readonly ListKeys[]
  private readonly order: readonly OrderKey[]
  /** Of each part, the key that comes next. */
  private at: number[]

  constructor(parts: readonly ListKeys[], order: readonly OrderKey[]) {
    this.parts = parts
    this.order = order
    this.at = parts.map(() => 0)
  }

  /** Passes over the first keys of all. */
  skip(count: number): void {
    // Keys before `low` are among the first, keys from `high` on are not.
    let low = this.at
    let high = this.parts.map(({ created }) => Math.min(created.length, count))
    for (;;) {
      const part = widest(low, high)
      const at = (low[part]! + high[part]!) >> 1
      if (at === high[part]) break
      const cut = this.parts.map((_, other) => this.before({ part, at }, other, low[other]!, high[other]!))
      const sum = cut.reduce((all, one) => all + one, 0)
      if (sum < count) {
        low = cut
        low[part] = at + 1
      } else high = cut
    }
    this.at = low
  }

  /** The next keys. */
  take(limit: number): readonly Picked[] {
    const { at, parts } = this
    const taken: Picked[] = []
    while (taken.length < limit) {
      let first = -1
      for (let part = 0; part < parts.length; part++) {
        if (at[part] === parts[part]!.created.length) continue
        if (first < 0 || this.compare(part, at[part]!, first, at[first]!) < 0) first = part
      }
      if (first < 0) break
      taken.push({ part: first, at: at[first]! })
      at[first]!++
    }
    return taken
  }

  /** How many keys of a part come before a key, if it is known that this is between two numbers. */
  private before(key: Picked, part: number, low: number, high: number): number {
    if (part === key.part) return key.at
    while (low < high) {
      const at = (low + high) >> 1
      if (this.compare(part, at, key.part, key.at) < 0) low = at + 1
      else high = at
    }
    return low
  }

  // [hot] Twice or so for each entity of a page.
  /** The order of the list, as within one owner: by its keys, then by creation. */
  private compare(partA: number, atA: number, partB: number, atB: number): number {
    const { order, parts } = this
    const [a, b] = [parts[partA]!, parts[partB]!]
    const byKeys = order.length === 0 ? 0 : compareSortValues(order, a.values[atA]!, b.values[atB]!)
    return byKeys || a.created[atA]! - b.created[atB]! || a.shards[atA]! - b.shards[atB]! || partA - partB
  }
}

/** Of which part it is least known where it has to be cut. */
function widest(low: readonly number[], high: readonly number[]): number {
  let widest = 0
  for (let part = 1; part < low.length; part++)
    if (high[part]! - low[part]! > high[widest]! - low[widest]!) widest = part
  return widest
}
