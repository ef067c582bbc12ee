// The state of one receiver that has dead letters: whether it accepts them now, and how fast.
//
// Not here: the decisions (replays.ts).

import { xxHash64 } from '../../domain/hash.js'
import type { Letter, LetterList } from './letter-list.js'

/** Pauses vary by this share in both directions, fixed for each receiver, so that not all are tried at once. */
const spread = 0.2

/** Further letters are not remembered as suspects: they wait for their own time. */
const suspectsMax = 64

export class ReceiverReplays {
  state: 'resting' | 'trying' | 'flowing' = 'resting'
  /** Monotonic time of the next try of a resting receiver. */
  nextMs = Number.POSITIVE_INFINITY
  /** Monotonic time at which the next letter is due, of those that were not ready at the last look. */
  dueMs = Number.POSITIVE_INFINITY
  /** It rests because no letter can be sent. */
  isIdle = false
  /** It has answered another message since it began to rest. */
  isWell = false
  /** Rests in a row. */
  pauses = 0
  /** Letters that it has put off in a row. */
  refusals = 0
  inFlight = 0
  /** The first subscription has the next turn. */
  readonly lists = new Set<LetterList>()
  /** Letters that have failed, perhaps because the receiver accepted none. */
  readonly suspects = new SuspectLetters()
  readonly tokens: Tokens
  /** The factor by which its pauses differ from those of others. */
  readonly spread: number

  constructor(
    readonly name: string,
    perSecondMax: number,
  ) {
    this.tokens = new Tokens(perSecondMax)
    this.spread = 1 - spread + 2 * spread * (xxHash64(name).low / 2 ** 32)
  }

  /** The receiver accepts letters, so those that failed before are ready. */
  releaseSuspects(): void {
    this.suspects.release()
  }
}

class SuspectLetters {
  private readonly letters = new Set<Letter>()

  get size(): number {
    return this.letters.size
  }

  has(letter: Letter): boolean {
    return this.letters.has(letter)
  }

  add(letter: Letter): void {
    if (this.letters.size < suspectsMax) this.letters.add(letter)
  }

  release(): void {
    for (const letter of this.letters) letter.dueMs = 0
    this.letters.clear()
  }
}

/** A rate limit: so many letters a second, and up to a tenth of a second's at once. */
export class Tokens {
  private tokens = 1
  private sinceMs = Number.NEGATIVE_INFINITY

  constructor(private readonly perSecondMax: number) {}

  /** The number of tokens now. */
  at(nowMs: number): number {
    const burst = Math.max(1, this.perSecondMax / 10)
    this.tokens = Math.min(burst, this.tokens + ((nowMs - this.sinceMs) * this.perSecondMax) / 1_000)
    this.sinceMs = nowMs
    return Math.floor(this.tokens)
  }

  take(): void {
    this.tokens--
  }
}
