// Verified tokens, by the hash of their text: a bounded number, each until it expires.
//
// When there is no room, the oldest one is dropped. But if it was used since its last check, it becomes the youngest
// instead (second chance). So a hit only sets a bit, and tokens in use stay. It does not remember refused tokens: a
// client can make as many of them as it likes.

/** An entry. `RememberedTokens` sets `isUsed`. */
export interface Remembered {
  /** The instant from which on it is not accepted. */
  readonly endsMs: number
  isUsed: boolean
}

/** Entries that get a second chance for one new entry: some 10 us. */
const chancesMax = 64

export class RememberedTokens<T extends Remembered> {
  /** The oldest first. */
  private readonly byHash = new Map<string, T>()

  constructor(private readonly countMax: number) {}

  get size(): number {
    return this.byHash.size
  }

  // [hot] Once per request with a token.
  /** undefined: it is not known, or it has ended. */
  get(hash: string, nowMs: number): T | undefined {
    const found = this.byHash.get(hash)
    if (!found) return undefined
    if (found.endsMs <= nowMs) {
      this.byHash.delete(hash)
      return undefined
    }
    found.isUsed = true
    return found
  }

  set(hash: string, value: T): void {
    this.byHash.delete(hash)
    if (this.byHash.size >= this.countMax) this.makeRoom()
    this.byHash.set(hash, value)
  }

  /** Forgets those that do not pass. */
  keepOnly(passes: (value: T) => boolean): void {
    for (const [hash, value] of this.byHash) if (!passes(value)) this.byHash.delete(hash)
  }

  private makeRoom(): void {
    let chances = chancesMax
    for (const [hash, value] of this.byHash) {
      this.byHash.delete(hash)
      if (!value.isUsed || chances === 0) return
      chances--
      value.isUsed = false
      this.byHash.set(hash, value)
    }
  }
}
