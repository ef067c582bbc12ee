// Rows in memory, sorted by key. Keys are latin1 strings, one character per byte: such strings compare as their bytes
// do.

export class SortedRows {
  readonly #values = new Map<string, Buffer>()
  /** The keys of `#values`, in order. */
  readonly #keys: string[] = []

  get(key: string): Buffer | undefined {
    return this.#values.get(key)
  }

  put(key: string, value: Buffer): void {
    if (!this.#values.has(key)) this.#keys.splice(this.#placeOf(key), 0, key)
    this.#values.set(key, value)
  }

  del(key: string): void {
    if (this.#values.delete(key)) this.#keys.splice(this.#placeOf(key), 1)
  }

  /** The rows from `from` up to but without `to`, in order. */
  between(from: string, to: string): readonly (readonly [key: string, value: Buffer])[] {
    const first = this.#placeOf(from)
    const keys = this.#keys.slice(first, Math.max(first, this.#placeOf(to)))
    return keys.map(key => [key, this.#values.get(key)!])
  }

  /** The number of keys before this one. */
  #placeOf(key: string): number {
    let low = 0
    let high = this.#keys.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#keys[middle]! < key) low = middle + 1
      else high = middle
    }
    return low
  }
}
