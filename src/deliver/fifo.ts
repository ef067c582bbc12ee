// The queue of everything that waits for a receiver.

/** Places that have been left before they are given back. */
const leftPlacesMax = 1024

// [hot] Twice per notification. An array's own `shift` moves all that is behind, 2 us at 10,000 items.
/** A queue whose ends cost the same however long it is. */
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

  /** Puts it where the order says; that costs as much as what is behind it. */
  insert(item: T, compare: (a: T, b: T) => number): void {
    let at = this.items.length
    while (at > this.head && compare(this.items[at - 1]!, item) > 0) at--
    if (at === this.items.length) this.items.push(item)
    else this.items.splice(at, 0, item)
  }

  *[Symbol.iterator](): Generator<T, void, void> {
    for (let at = this.head; at < this.items.length; at++) yield this.items[at]!
  }

  /** Takes the first one that is wanted. */
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

  /** Takes all. */
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
