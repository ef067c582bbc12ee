// A first-in, first-out queue for everything that waits for a receiver.

/** Empty places at the front of the array before it is shortened. */
const leftPlacesMax = 1024

// [hot] Twice per notification. An array's own `shift` moves all later items, 2 us at 10,000 items.
/** A queue whose operations at both ends cost the same at any length. */
export class Fifo<T> {
  private items: (T | undefined)[] = []
  private head = 0

  get size(): number {
    return this.items.length - this.head
  }

  get first(): T | undefined {
    return this.items[this.head]
  }

  push(item: T): void {
    this.items.push(item)
  }

  shift(): T | undefined {
    const { items, head } = this
    if (head === items.length) return undefined
    const item = items[head]
    items[head] = undefined
    this.head++
    if (this.head === items.length) {
      items.length = 0
      this.head = 0
    } else if (this.head > leftPlacesMax && this.head * 2 > items.length) {
      this.items = items.slice(this.head)
      this.head = 0
    }
    return item
  }

  /** Inserts the item by the given order. The cost grows with the number of items behind it. */
  insert(item: T, compare: (a: T, b: T) => number): void {
    let at = this.items.length
    while (at > this.head && compare(this.items[at - 1]!, item) > 0) at--
    if (at === this.items.length) this.items.push(item)
    else this.items.splice(at, 0, item)
  }

  *[Symbol.iterator](): Generator<T, void, void> {
    for (let at = this.head; at < this.items.length; at++) yield this.items[at]!
  }

  /** Removes and returns the first item that is wanted. */
  take(isWanted: (item: T) => boolean): T | undefined {
    for (let at = this.head; at < this.items.length; at++) {
      const item = this.items[at]!
      if (!isWanted(item)) continue
      if (at === this.head) return this.shift()
      this.items.splice(at, 1)
      return item
    }
    return undefined
  }

  /** Removes and returns all items. */
  drain(): T[] {
    const items = this.items.slice(this.head) as T[]
    this.clear()
    return items
  }

  clear(): void {
    this.items = []
    this.head = 0
  }
}
