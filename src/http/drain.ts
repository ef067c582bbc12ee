// How a front stops without a reset of any connection (docs/operations/signals.md#what-a-stop-does): the part that both
// servers share.
//
// When a listener is closed, the system resets the connections that wait in its queue. It also resets a connection that
// is closed with bytes unread. So a front closes nothing before a moment in which nothing has arrived. A busy front has
// no such moment by itself. So it holds answers back while it waits for one: most clients wait for their answer before
// they send or connect again.
//
// When no client can connect any more, each answer ends its connection. A connection on which no request comes is ended
// after `quietMs`.
//
// Not here: how each server closes its connections (uws-front, node-front), the order among workers
// (process/supervisor).

/** An idle connection is closed when no request has come for this time since the listener was closed. */
export const quietMs = 300
/**
 * A connection that is younger than this may still bring its first request, after a TLS handshake and over a slow
 * network.
 */
export const firstRequestMsMax = 800
/**
 * How long a client may take to close its side after the server has closed its own; `node` discards the bytes that
 * still come.
 */
export const lingerMsMax = 500
/** How often a front that drains checks its connections. */
export const lookMs = 10

/** A front is still when nothing has come for this time. */
const stillMs = 10
/** The longest wait for that. */
const stillMsMax = 500
/** How often it checks. It sleeps in between: the system seldom interrupts a process that has just slept. */
const stillLookMs = 1
/** A check that took longer is too old: the system has run other processes, and something may have come. */
const lookTookMsMax = 0.5

/** The connections and requests that were cut off at the end of the drain time. */
export interface CutOff {
  readonly connections: number
  /** Requests without an answer, or whose answer was still being sent. */
  readonly requests: number
}

/** Counts arriving connections and requests of a front. [hot] Once per request. */
export class Arrivals {
  count = 0

  /** Resolves right after a check that found nothing new for `stillMs`, or after `waitMs`. */
  async still(waitMs: number): Promise<void> {
    const untilMs = performance.now() + Math.min(waitMs, stillMsMax)
    let before = this.count
    let sinceMs = performance.now()
    for (;;) {
      await new Promise<void>(resolve => setTimeout(resolve, stillLookMs))
      const beginMs = performance.now()
      // In between the event loop asks the system once for all new events.
      await new Promise<void>(resolve => setImmediate(resolve))
      const nowMs = performance.now()
      if (this.count !== before) sinceMs = nowMs
      before = this.count
      const isStill = nowMs - sinceMs >= stillMs && nowMs - beginMs < lookTookMsMax
      if (isStill || nowMs >= untilMs) return
    }
  }
}

/** Holds answers back between `shut` and `open`. There are at most as many as requests in flight. */
export class AnswerGate {
  isShut = false
  private held: (() => void)[] = []

  shut(): void {
    this.isShut = true
  }

  hold(answer: () => void): void {
    this.held.push(answer)
  }

  /** Sends the held answers. */
  open(): void {
    this.isShut = false
    for (const answer of this.held.splice(0)) answer()
  }
}
