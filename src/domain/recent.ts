// The latest of many texts, with what is known of each: a cache whose memory is bounded whatever texts come.
//
// Two generations: what is looked up or put is in the younger one; when that is full it becomes the older one, and what was in the older one is
// forgotten. So what is in use stays, a look costs one or two looks into a map, and no order of use has to be kept.
//
// Names come from clients. A text that was cut out of a longer one holds on to all of that: a key here should be a text of its own.

export class Recent<T> {
  private younger = new Map<string, T>()
  private older = new Map<string, T>()

  /** Keeps the latest `generationMax` at least, and twice as many at most. `onForgotten`: told of each that had to give way. */
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

/** A copy of a text that holds on to nothing else: one that was cut out of a longer one keeps all of that in memory. */
export const ownText = (text: string): string => (text.length < cutMin ? text : `${text} `.slice(0, -1))

/** Shorter ones are copied when they are cut. */
const cutMin = 13
