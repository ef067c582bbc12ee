// The real clock and the real source of chance: the `Clock` and the `Chance` of the running program. Tests pass others.
//
// Timers do not keep the process alive; servers and connections do. The hybrid clock returns stamps (domain/stamp.ts)
// that only grow. They also grow across restarts and between nodes if the clock receives the last stamp on disk and
// every stamp from other nodes. A stamp from a clock far ahead would move this clock forward too, so stamps of requests
// are followed within a bound only. With the fine wall clock, several processes of one machine return
// stamps in the order in which things happened.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { stampAfter, stampOf } from './domain/stamp.js'
import type { Chance, Clock } from './ports.js'

/** The longest delay of one Node timer. A timer with a longer delay would run at once. */
export const timerDelayMsMax = 2 ** 31 - 1

/**
 * The largest difference between the fine wall clock and the wall clock. Beyond it, the machine's clock counts as set.
 */
export const fineErrorMsMax = 2
/** The process may be interrupted between two readings; it is not interrupted several times in a row. */
const readingsMax = 3

/**
 * The wall clock in fractions of a millisecond, computed from the monotonic clock. Processes of one machine agree
 * within some microseconds, which is less than one request between them takes. When the machine's clock is set, this
 * clock follows it, and is then right within a millisecond.
 */
export class FineWallClock {
  /** `beganMs`: the wall clock time at which the monotonic clock was zero. */
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
 * How far a stamp of another process may be ahead of this one's clock, where no bound is known. The processes of one
 * machine differ by less, unless its clock is set.
 */
const stampAheadMsMaxDefault = 10_000

/** Returns strictly increasing stamps near the wall clock. */
export class HybridClock {
  #last: number

  /**
   * `last` is the highest earlier stamp, of this clock or of the one that it replaces. `aheadMsMax`: how far stamps of
   * requests may be ahead of this clock.
   */
  constructor(
    private readonly clock: Pick<Clock, 'wallMs'>,
    last = 0,
    private readonly aheadMsMax = stampAheadMsMaxDefault,
  ) {
    assertStamp(last)
    this.#last = last
  }

  /** Returns a stamp above all stamps so far: `wanted`, if it is above them and not far ahead of the wall clock. */
  next(wanted?: number): number {
    const wallMs = this.clock.wallMs()
    const isNear = wanted !== undefined && wanted <= stampOf(wallMs + this.aheadMsMax)
    this.#last = isNear ? Math.max(this.#last + 1, wanted) : stampAfter(this.#last, wallMs)
    assertStamp(this.#last)
    return this.#last
  }

  /** Notes a stamp of another clock: the next stamp here is above it. */
  observe(stamp: number): void {
    assertStamp(stamp)
    if (stamp > this.#last) this.#last = stamp
  }

  /** Notes a stamp of another clock, as `observe` does, unless it is far ahead of this clock. */
  follow(stamp: number): void {
    assertStamp(stamp)
    if (stamp > this.#last && stamp <= stampOf(this.clock.wallMs() + this.aheadMsMax)) this.#last = stamp
  }

  /** The highest stamp that was returned or observed. */
  get last(): number {
    return this.#last
  }
}

/**
 * A timer that is later than this runs after the data that has arrived meanwhile: Node would run it before, and a busy
 * process would give up answers that are here already.
 */
const lateMsMax = 20

/** Divides a delay beyond the limit of one timer over several timers. */
function after(delayMs: number, run: () => void): () => void {
  const dueMs = monoMs() + delayMs
  let timer: NodeJS.Timeout
  let isCancelled = false
  const wait = (leftMs: number): void => {
    const stepMs = Math.min(leftMs, timerDelayMsMax)
    timer = setTimeout(() => {
      if (leftMs > stepMs) wait(leftMs - stepMs)
      else if (monoMs() - dueMs <= lateMsMax) run()
      else setImmediate(() => isCancelled || run())
    }, stepMs).unref()
  }
  wait(Math.max(delayMs, 0))
  return () => {
    isCancelled = true
    clearTimeout(timer)
  }
}

// [hot] For every change. The error text is built only when it is needed.
function assertStamp(stamp: number): void {
  if (!Number.isSafeInteger(stamp) || stamp < 0) assert.fail(`not a stamp: ${stamp}`)
}
