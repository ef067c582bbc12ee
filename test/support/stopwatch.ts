// The time of single calls, by a monotonic clock, and the worst call of each kind.

import { patternsKeptMax } from '../../src/domain/limits.js'
import { compilePattern } from '../../src/domain/queries/pattern.js'

interface Kind {
  calls: number
  /** Of the slowest call. */
  ms: number
  input: string
}

export class Stopwatch {
  private readonly kinds = new Map<string, Kind>()
  private readonly again: number

  /**
   * A call that takes longer than `again` milliseconds is repeated three times, since the clock also counts other work
   * of the machine.
   */
  constructor(again = 3) {
    this.again = again
  }

  time<T>(name: string, input: () => string, call: () => T): T {
    const before = performance.now()
    const result = call()
    let ms = performance.now() - before
    const kind = this.kindOf(name)
    kind.calls++
    if (ms <= kind.ms) return result
    if (ms > this.again) ms = this.leastOf(ms, call)
    if (ms > kind.ms) Object.assign(kind, { ms, input: input() })
    return result
  }

  private kindOf(name: string): Kind {
    const known = this.kinds.get(name)
    if (known) return known
    const kind = { calls: 0, ms: 0, input: '' }
    this.kinds.set(name, kind)
    return kind
  }

  private leastOf(ms: number, call: () => unknown): number {
    let least = ms
    for (let left = 3; left > 0; left--) {
      forgetPatterns()
      const before = performance.now()
      call()
      least = Math.min(least, performance.now() - before)
    }
    return least
  }

  /** A line for each kind whose slowest call took longer than so many milliseconds, the slowest first. */
  report(slowerThanMs = 0): string[] {
    const rows = [...this.kinds].filter(([, { ms }]) => ms > slowerThanMs).sort(([, a], [, b]) => b.ms - a.ms)
    return rows.map(([name, { calls, ms, input }]) => `${ms.toFixed(1).padStart(6)} ms  ${name} (${calls}): ${input}`)
  }
}

let forgotten = 0

/** Makes a repeated call compile its patterns again. */
function forgetPatterns(): void {
  for (let left = patternsKeptMax; left >= 0; left--) compilePattern(`forget${forgotten++}`)
}
