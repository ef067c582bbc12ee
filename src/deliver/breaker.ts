// The circuit breaker of one receiver: closed, open for a while, and then one probe that decides.
//
//   closed --five failures in a row--> open --its time is over--> probing --answer--> closed
//                                       ^                            |
//                                       +---------- failure ---------+   open for twice as long, 30 s at most
//
// Any answer closes it, also that of something sent earlier, and any status is an answer: who says 503 is alive.
// Failures of what was sent before it opened say nothing new and change nothing.

/** Failures in a row that open the breaker: no more of a dead receiver's timeouts than these and what is under way. */
export const failuresToOpen = 5

const openMsMin = 1_000
const openMsMax = 30_000

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
  const openMs = Math.min(openMsMin * 2 ** breaker.openings, openMsMax)
  breaker.state = 'open'
  breaker.openings++
  breaker.openUntilMs = nowMs + openMs * (0.8 + 0.4 * fraction())
  return true
}
