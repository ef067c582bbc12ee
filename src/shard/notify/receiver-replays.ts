// What is known of one receiver that has dead letters: whether it takes them now, and how fast.
//
// Not here: what follows from what (replays.ts).

import { xxHash64 } from '../../domain/hash.js'
import type { Letter, LetterList } from './letter-list.js'

/** Pauses spread by this much to both sides, each receiver by its own part, so that not all are tried at once. */
const spread = 0.2

/** Letters beyond are not remembered as suspects: they wait for their own time. */
const suspectsMax = 64

export class ReceiverReplays {
  state: 'resting' | 'trying' | 'flowing' = 'resting'
  /** Monotonic: when one that rests is tried. */
  nextMs = Number.POSITIVE_INFINITY
  /** Monotonic: when the next letter is due, of those that were not ready when they were looked at last. */
  dueMs = Number.POSITIVE_INFINITY
  /** It rests because no letter can be sent. */
  isIdle = false
  /** It has answered something else since it began to rest. */
  isWell = false
  /** Rests in a row. */
  pauses = 0
  /** Letters that it has put off in a row. */
  refusals = 0
  inFlight = 0
  /** The subscription whose turn comes next is the first one. */
  readonly lists = new Set<LetterList>()
  /** Letters that have failed, perhaps since the receiver took none. */
  readonly suspects = new SuspectLetters()
  readonly tokens: Tokens
  /** By which its pauses differ from those of others. */
  readonly spread: number

  constructor(
    readonly name: string,
    perSecondMax: number,
  ) {
    this.tokens = new Tokens(perSecondMax)
    this.spread = 1 - spread + 2 * spread * (xxHash64(name).low / 2 ** 32)
  }

  /** The receiver takes letters: those that have failed before are ready. */
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

/** How many may go out: so many a second, and a tenth of a second's at once. */
export class Tokens {
  private tokens = 1
  private sinceMs = Number.NEGATIVE_INFINITY

  constructor(private readonly perSecondMax: number) {}

  /** Those there are now. */
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
