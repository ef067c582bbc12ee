// Time and chance as they really are: the `Clock` and the `Chance` of the running program. Tests pass others.
//
// Timers do not keep the process alive: what keeps it running is what it serves.
// The hybrid clock gives stamps (domain/stamp.ts) that only grow, also over restarts and between nodes if it is told the
// last stamp on disk and every stamp heard. A stamp from a clock far ahead takes this one along: who hears stamps from
// others decides whom to believe.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { stampAfter } from './domain/stamp.js'
import type { Chance, Clock } from './ports.js'

/** The longest delay of one Node timer; a longer one would fire at once. */
export const timerDelayMsMax = 2 ** 31 - 1

export const systemClock: Clock = {
  wallMs: () => Date.now(),
  fineWallMs,
  monoMs: () => performance.now(),
  after,
  endOfTick: run => {
    setImmediate(run)
  },
}

let offsetMs = performance.timeOrigin

/** The monotonic clock, which has microseconds, set by the wall clock; set anew when that was moved. */
function fineWallMs(): number {
  const wallMs = Date.now()
  const fineMs = offsetMs + performance.now()
  if (fineMs >= wallMs - driftMsMax && fineMs < wallMs + 1 + driftMsMax) return fineMs
  offsetMs = wallMs - performance.now()
  return wallMs
}

/** Milliseconds that the two clocks may be apart before the wall clock counts as moved. */
const driftMsMax = 2

export const systemChance: Chance = { uuid: () => randomUUID() }

/** Gives strictly increasing stamps near the wall clock. */
export class HybridClock {
  #last: number

  /** `last` is the highest stamp given before, by this clock or one it follows. */
  constructor(
    private readonly clock: Pick<Clock, 'wallMs'>,
    last = 0,
  ) {
    assertStamp(last)
    this.#last = last
  }

  /** A stamp above all given and observed so far. */
  next(): number {
    this.#last = stampAfter(this.#last, this.clock.wallMs())
    assertStamp(this.#last)
    return this.#last
  }

  /** Takes note of a stamp given elsewhere: the next one here is above it. */
  observe(stamp: number): void {
    assertStamp(stamp)
    if (stamp > this.#last) this.#last = stamp
  }

  /** The highest stamp given or observed. */
  get last(): number {
    return this.#last
  }
}

/** A delay beyond the limit of one timer is waited for in several. */
function after(delayMs: number, run: () => void): () => void {
  let timer: NodeJS.Timeout
  const wait = (leftMs: number): void => {
    const stepMs = Math.min(leftMs, timerDelayMsMax)
    timer = setTimeout(() => (leftMs > stepMs ? wait(leftMs - stepMs) : run()), stepMs).unref()
  }
  wait(Math.max(delayMs, 0))
  return () => clearTimeout(timer)
}

// [hot] For every change: the sentence is put together only when it is needed.
function assertStamp(stamp: number): void {
  if (!Number.isSafeInteger(stamp) || stamp < 0) assert.fail(`not a stamp: ${stamp}`)
}
