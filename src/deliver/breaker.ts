// The circuit breaker of one receiver: whether something may be sent to it now, and what it learns from each try.
//
// It only decides. Who keeps what may not be sent, and for how long, stands in lanes.ts.

/** Failures in a row that open the breaker: no more of a dead receiver's timeouts than these and what is under way. */
export const failuresToOpen = 5

/** Pauses between two tries while a receiver does not answer, which spread by a fifth: so it is noticed within 5 s. */
const openMsMin = 1_000
const openMsMax = 4_000

/**
 * The circuit breaker of one receiver: closed, open for a while, and then one probe that decides.
 *
 *   closed --five failures in a row--> open --its time is over--> probing --answer--> closed
 *                                       ^                            |
 *                                       +---------- failure ---------+   open for twice as long, 4 s at most
 *
 * Any answer closes it, also that of something sent earlier, and any status is an answer: a receiver that says 503 is
 * alive. Failures of what was sent before it opened say nothing new and change nothing.
 */
export interface Breaker {
  state: 'closed' | 'open' | 'probing'
  failures: number
  /** Times it has opened since it was closed. */
  openings: number
  /** Monotonic. */
  openUntilMs: number
}

export const closedBreaker = (): Breaker => ({ state: 'closed', failures: 0, openings: 0, openUntilMs: 0 })

/** What may be sent now: anything, one probe, nothing. */
export function passage({ state, openUntilMs }: Breaker, nowMs: number): 'free' | 'probe' | 'held' {
  if (state === 'closed') return 'free'
  return state === 'open' && nowMs >= openUntilMs ? 'probe' : 'held'
}

/** Something is sent to find out. */
export function onProbe(breaker: Breaker): void {
  breaker.state = 'probing'
}

/** The probe ended without telling anything: the next one may go at once. */
export function onVoidProbe(breaker: Breaker): void {
  if (breaker.state === 'probing') breaker.state = 'open'
}

/** True when this closes it. */
export function onAnswer(breaker: Breaker): boolean {
  const closes = breaker.state !== 'closed'
  breaker.state = 'closed'
  breaker.failures = 0
  breaker.openings = 0
  return closes
}

/** True when this opens it, for the first time or again. `fraction` draws from 0 up to 1. */
export function onFailure(breaker: Breaker, wasProbe: boolean, nowMs: number, fraction: () => number): boolean {
  if (breaker.state === 'closed') {
    breaker.failures++
    if (breaker.failures < failuresToOpen) return false
  } else if (breaker.state === 'open' || !wasProbe) return false
  breaker.state = 'open'
  breaker.openUntilMs = nowMs + lostDelayMs(breaker.openings++, fraction())
  return true
}

/** The pause before a receiver is tried again that failed to answer `losses` times; `fraction` is from 0 up to 1. */
export const lostDelayMs = (losses: number, fraction: number): number =>
  Math.min(openMsMin * 2 ** losses, openMsMax) * (0.8 + 0.4 * fraction)
