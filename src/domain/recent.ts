// The latest of many texts, with what is known of each: a cache with bounded memory.
//
// There are two generations. A text that is looked up or set is in the younger one. When that is full it becomes the
// older one, and the texts of the older one are forgotten. So texts in use stay, and no order of use has to be kept.
//
// Names come from clients. A text that was cut out of a longer one keeps all of that in memory: use `ownText` for keys.

export class Recent<T> {
  private younger = new Map<string, T>()
  private older = new Map<string, T>()

  /**
   * Keeps the latest `generationMax` at least, and twice as many at most. `onForgotten`: told of each that had to give
   * way.
   */
  constructor(
    private readonly generationMax: number,
    private readonly onForgotten?: (key: string) => void,
  ) {}

  get size(): number {
    return this.younger.size + this.older.size
  }

  /** undefined: it is not known, or not any more. */
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

  /** All that is known. */
  *entries(): Iterable<readonly [string, T]> {
    yield* this.older
    yield* this.younger
  }

  clear(): void {
    this.younger = new Map()
    this.older = new Map()
  }
}

/** A copy of a text. One that was cut out of a longer text keeps all of that in memory. */
export const ownText = (text: string): string => (text.length < cutMin ? text : `${text} `.slice(0, -1))

/** Shorter ones are copied when they are cut. */
const cutMin = 13
