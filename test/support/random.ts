// Random choices that can be repeated: the same seed gives the same choices.
//
// A test that uses it prints the seed; `SEED=<number>` in the environment repeats that run.

export class Random {
  #state: number

  constructor(readonly seed: number) {
    this.#state = seed >>> 0
  }

  /** From the environment when SEED is set, otherwise a new one. */
  static fromEnvironment(): Random {
    const given = process.env.SEED
    return new Random(given === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(given))
  }

  /** From 0 up to but without 1. (mulberry32) */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let x = this.#state
    x = Math.imul(x ^ (x >>> 15), x | 1)
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61)
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32
  }

  /** A whole number from `least` to `most`, both possible. */
  between(least: number, most: number): number {
    return least + Math.floor(this.fraction() * (most - least + 1))
  }

  /** One of `choices`. */
  pick<const T>(choices: readonly [T, ...T[]]): T {
    return choices[this.between(0, choices.length - 1)] as T
  }
}
