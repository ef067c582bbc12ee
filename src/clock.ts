// Time and chance as they really are: the `Clock` and the `Chance` of the running program. Tests pass others.
//
// Timers do not keep the process alive: what keeps it running is what it serves.
// The hybrid clock gives stamps (domain/stamp.ts) that only grow, also over restarts and between nodes if it is told
// the last stamp on disk and every stamp heard. A stamp from a clock far ahead takes this one along: who hears stamps
// from others decides whom to believe.
// The fine wall clock lets several processes of one machine give stamps that stand in the order in which things
// happened.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { stampAfter, stampOf } from './domain/stamp.js'
import type { Chance, Clock } from './ports.js'

/** The longest delay of one Node timer; a longer one would fire at once. */
export const timerDelayMsMax = 2 ** 31 - 1

/** So far the fine wall clock may be from the wall clock, which is taken for set anew beyond. */
export const fineErrorMsMax = 2
/** The process may be interrupted between two readings; several times in a row it is not. */
const readingsMax = 3

/**
 * The wall clock in fractions of a millisecond, by the clock that only grows: processes of one machine agree within
 * some microseconds, which is less than it takes to ask one after the other. When the machine's clock is set, it
 * follows, then right within a millisecond.
 */
export class FineWallClock {
  /** `beganMs`: when the growing clock began, by the wall clock. */
  constructor(
    private readonly coarse: Pick<Clock, 'wallMs' | 'monoMs'>,
    private beganMs: number,
  ) {}

  fineWallMs(): number {
    const { coarse } = this
    for (let readings = 0; readings < readingsMax; readings++) {
      const ms = this.beganMs + coarse.monoMs()
      if (Math.abs(ms - coarse.wallMs()) <= fineErrorMsMax) return ms
    }
    this.beganMs = coarse.wallMs() - coarse.monoMs()
    return this.beganMs + coarse.monoMs()
  }
}

const wallMs = (): number => Date.now()
const monoMs = (): number => performance.now()
const fine = new FineWallClock({ wallMs, monoMs }, performance.timeOrigin)

export const systemClock: Clock = {
  wallMs,
  fineWallMs: () => fine.fineWallMs(),
  monoMs,
  after,
  endOfTick: run => {
    setImmediate(run)
  },
}

export const systemChance: Chance = { uuid: () => randomUUID(), fraction: () => Math.random() }

/**
 * How far a stamp from elsewhere may be ahead of this node's own clock: more than clocks of one installation differ.
 */
const stampAheadMsMax = 10_000

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

  /** A stamp above all given and observed so far: the wanted one if it is, and not far ahead of the wall clock. */
  next(wanted?: number): number {
    const wallMs = this.clock.wallMs()
    const isNear = wanted !== undefined && wanted <= stampOf(wallMs + stampAheadMsMax)
    this.#last = isNear ? Math.max(this.#last + 1, wanted) : stampAfter(this.#last, wallMs)
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
