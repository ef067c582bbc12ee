// A clock for tests. Time moves only when the test moves it. Then all due callbacks run in order, before `advance`
// returns.
//
// When code awaits a promise between two timers, the test needs to await it, too: the clock does not wait for promises.

import assert from 'node:assert/strict'
import type { Clock } from '../../src/ports.js'

/** The most callbacks of one `advance`; more of them mean a timer that feeds itself without end. */
const runsMax = 100_000

interface Timer {
  readonly dueMs: number
  readonly run: () => void
}

export class FakeClock implements Clock {
  #wallMs: number
  #monoMs = 0
  #timers: Timer[] = []
  #endOfTick: (() => void)[] = []

  constructor(wallMs = Date.UTC(2026, 0, 1)) {
    this.#wallMs = wallMs
  }

  wallMs(): number {
    return this.#wallMs
  }

  fineWallMs(): number {
    return this.#wallMs
  }

  monoMs(): number {
    return this.#monoMs
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { dueMs: this.#monoMs + Math.max(delayMs, 0), run }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter(other => other !== timer)
    }
  }

  endOfTick(run: () => void): void {
    this.#endOfTick.push(run)
  }

  /** Timers not yet due plus callbacks that wait for the end of the tick. */
  get waiting(): number {
    return this.#timers.length + this.#endOfTick.length
  }

  /** Ends the current tick without moving the time: runs the callbacks of `endOfTick`, and those that they add. */
  tick(): void {
    for (let runs = 0; this.#endOfTick.length > 0; runs++) {
      assert(runs < runsMax, 'endOfTick feeds itself')
      this.#endOfTick.shift()?.()
    }
  }

  /** Moves both clocks, runs timers as they fall due, earliest first, and ends every tick between them. */
  advance(ms: number): void {
    assert(ms >= 0, 'time does not go back; see jumpWall')
    const untilMs = this.#monoMs + ms
    this.tick()
    for (let runs = 0; ; runs++) {
      assert(runs < runsMax, 'a timer feeds itself')
      const timer = this.#earliest()
      if (!timer || timer.dueMs > untilMs) break
      this.#timers = this.#timers.filter(other => other !== timer)
      this.#moveTo(timer.dueMs)
      timer.run()
      this.tick()
    }
    this.#moveTo(untilMs)
  }

  /** Moves only the wall clock, back or forth, as an operator or NTP would. */
  jumpWall(ms: number): void {
    this.#wallMs += ms
  }

  /** Of timers due together, the one that was made first. */
  #earliest(): Timer | undefined {
    let earliest: Timer | undefined
    for (const timer of this.#timers) if (!earliest || timer.dueMs < earliest.dueMs) earliest = timer
    return earliest
  }

  #moveTo(monoMs: number): void {
    this.#wallMs += monoMs - this.#monoMs
    this.#monoMs = monoMs
  }
}
