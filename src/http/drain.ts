// How a front stops without a reset of any connection (docs/operations/signals.md#what-a-stop-does): what both servers have in common.
//
// The system resets the connections that wait in the queue of a listener when that is closed, and a connection that is closed with bytes unread.
// So a front closes nothing before a moment in which nothing has come. A busy front has no such moment by itself. So it holds answers back while
// it waits for one: most clients wait for their answer before they send or connect again.
//
// Once nobody can connect, each answer ends its connection. A connection on which no request comes is ended after `quietMs`.
//
// Not here: what each server does to its connections (uws-front, node-front), the order among workers (process/supervisor).

/** A connection that rests is ended when no request has come for so long since the listener was closed. */
export const quietMs = 300
/** So long a client may take to close its side after the server has closed its own; what it sends meanwhile is read away (`node` only). */
export const lingerMsMax = 500
/** How often a front that drains looks at its connections. */
export const lookMs = 10

/** Nothing has come for so long: then the queue of a listener is empty, and no bytes are unread. */
const stillMs = 10
/** How long that is waited for. */
const stillMsMax = 500

/** What was cut off at the end of the time for draining. */
export interface CutOff {
  readonly connections: number
  /** Requests without an answer, or whose answer was still being sent. */
  readonly requests: number
}

/** Counts what comes to a front: connections, and requests. [hot] Once per request. */
export class Arrivals {
  count = 0

  /** Resolves in the turn of the event loop in which nothing has come for a moment, or after `waitMs`. */
  async still(waitMs: number): Promise<void> {
    const untilMs = performance.now() + Math.min(waitMs, stillMsMax)
    let before = this.count
    let sinceMs = performance.now()
    do {
      // After it the event loop has asked the system once for all that has come.
      await new Promise<void>(resolve => setImmediate(resolve))
      if (this.count === before) continue
      before = this.count
      sinceMs = performance.now()
    } while (performance.now() - sinceMs < stillMs && performance.now() < untilMs)
  }
}

/** Holds answers back between `shut` and `open`: no more than there are requests in flight. */
export class AnswerGate {
  isShut = false
  private held: (() => void)[] = []

  shut(): void {
    this.isShut = true
  }

  hold(answer: () => void): void {
    this.held.push(answer)
  }

  /** Sends what was held. */
  open(): void {
    this.isShut = false
    for (const answer of this.held.splice(0)) answer()
  }
}
