// A token bucket: a rate with bursts of up to one second. It is full at first, and each use takes one token.
//
// The rate comes with each use. So a new rate counts at once, and the bucket keeps its tokens. A bucket has room for one
// token at least, because the rate of one of several processes may be below one.

/** The largest number of tokens at a rate. */
const roomAt = (perSecond: number): number => Math.max(1, perSecond)

/** How long an empty bucket takes at most until it is full: at a rate of one divided among this many processes. */
export const fullAfterMs = (processes: number): number => 1_000 * Math.max(1, processes)

export class TokenBucket {
  private tokens: number

  constructor(
    perSecond: number,
    private atMs: number,
  ) {
    this.tokens = roomAt(perSecond)
  }

  // [hot] Once per request of a tenant with a rate.
  /** Takes a token. Returns 0, or without a token the time in milliseconds until there is one. */
  take(perSecond: number, nowMs: number): number {
    const waitMs = this.waitMs(perSecond, nowMs)
    if (waitMs === 0) this.tokens--
    return waitMs
  }

  /** The time until there is a token; 0: there is one. */
  waitMs(perSecond: number, nowMs: number): number {
    const gained = (Math.max(0, nowMs - this.atMs) * perSecond) / 1_000
    this.tokens = Math.min(roomAt(perSecond), this.tokens + gained)
    this.atMs = nowMs
    // Sums of parts may be a little below a whole token.
    return this.tokens > 1 - 1e-9 ? 0 : ((1 - this.tokens) * 1_000) / perSecond
  }
}
