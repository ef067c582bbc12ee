// The circuit breaker of one receiver: it decides whether something may be sent now, and learns from each try.
//
// It only decides. The lane (lanes.ts) keeps the messages that may not be sent, and decides for how long.

/** Failures in a row that open the breaker. They and the tries in flight are all timeouts of a dead receiver. */
export const failuresToOpen = 5

/**
 * Pauses between tries while a receiver does not answer. They spread by a fifth, so its return is noticed within 5 s.
 */
const openMsMin = 1_000
const openMsMax = 4_000

/**
 * The circuit breaker of one receiver: closed, open for a while, and then one probe that decides.
 *
 *   closed --five failures in a row--> open --its time is over--> probing --answer--> closed
 *                                       ^                            |
 *                                       +---------- failure ---------+   open for twice as long, 4 s at most
 *
 * Any answer closes it, also an answer to an earlier message. Any status is an answer: a receiver that replies 503 is
 * alive. A failure of a message that was sent before the breaker opened changes nothing.
 */
export interface Breaker {
  state: 'closed' | 'open' | 'probing'
  failures: number
  /** Number of openings since it was last closed. */
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

/** A probe is being sent. */
export function onProbe(breaker: Breaker): void {
  breaker.state = 'probing'
}

/** The probe ended without information about the receiver. The next one may go at once. */
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

/** The pause before the next try at a receiver that failed to answer `losses` times; `fraction` is from 0 up to 1. */
export const lostDelayMs = (losses: number, fraction: number): number =>
  Math.min(openMsMin * 2 ** losses, openMsMax) * (0.8 + 0.4 * fraction)
