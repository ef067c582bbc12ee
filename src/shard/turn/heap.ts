// A binary heap: gives the first of many items while others come and go.

export class Heap<T> {
  private readonly items: T[] = []
  private readonly compare: (a: T, b: T) => number

  /** `compare` as for sorting: the first item is at the top. */
  constructor(compare: (a: T, b: T) => number) {
    this.compare = compare
  }

  get size(): number {
    return this.items.length
  }

  /** The first item; undefined when there is none. */
  get top(): T | undefined {
    return this.items[0]
  }

  push(item: T): void {
    const { items, compare } = this
    let at = items.length
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (compare(items[parent]!, item) <= 0) break
      items[at] = items[parent]!
      at = parent
    }
    items[at] = item
  }

  /** Removes the first item. */
  pop(): T | undefined {
    const { items } = this
    const top = items[0]
    const last = items.pop()
    if (items.length > 0) this.sink(last as T)
    return top
  }

  /** Replaces the first item. */
  replaceTop(item: T): void {
    this.sink(item)
  }

  /** All items, in no order. */
  all(): readonly T[] {
    return this.items
  }

  private sink(item: T): void {
    const { items, compare } = this
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= items.length) break
      if (child + 1 < items.length && compare(items[child + 1]!, items[child]!) < 0) child++
      if (compare(item, items[child]!) <= 0) break
      items[at] = items[child]!
      at = child
    }
    items[at] = item
  }
}
