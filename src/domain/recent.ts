// A cache with bounded memory: the latest of many texts, with a value for each.
//
// There are two generations. A text that is looked up or set is in the younger one. When that is full it becomes the
// older one, and the texts of the older one are forgotten. So texts in use stay, without an LRU order.
//
// Names come from clients. A text that was cut out of a longer one keeps the whole longer text in memory: use `ownText`
// for keys.

export class Recent<T> {
  private younger = new Map<string, T>()
  private older = new Map<string, T>()

  /**
   * Keeps at least the latest `generationMax`, and at most twice as many. `onForgotten`: called with each removed key.
   */
  constructor(
    private readonly generationMax: number,
    private readonly onForgotten?: (key: string) => void,
  ) {}

  get size(): number {
    return this.younger.size + this.older.size
  }

  /** undefined: it is unknown, or was removed. */
  get(key: string): T | undefined {
    const known = this.younger.get(key)
    if (known !== undefined) return known
    const before = this.older.get(key)
    if (before === undefined) return undefined
    this.set(key, before)
    return before
  }

  set(key: string, value: T): void {
    if (this.younger.size >= this.generationMax && !this.younger.has(key)) {
      const { older, onForgotten } = this
      this.older = this.younger
      this.younger = new Map()
      if (onForgotten) for (const old of older.keys()) if (old !== key) onForgotten(old)
    }
    this.younger.set(key, value)
    if (this.older.size > 0) this.older.delete(key)
  }

  delete(key: string): void {
    this.younger.delete(key)
    this.older.delete(key)
  }

  /** All entries. */
  *entries(): Iterable<readonly [string, T]> {
    yield* this.older
    yield* this.younger
  }

  clear(): void {
    this.younger = new Map()
    this.older = new Map()
  }
}

/** A copy of a text. A text that was cut out of a longer one keeps the whole longer text in memory. */
export const ownText = (text: string): string => (text.length < cutMin ? text : `${text} `.slice(0, -1))

/** V8 copies shorter texts when they are cut. */
const cutMin = 13
