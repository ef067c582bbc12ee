// When a delivery that failed is tried again: after 1, 5, 30 and 120 seconds, and then no more (design.md §5).

import assert from 'node:assert/strict'

/** Tries in all, the first included. */
export const triesMax = 5

/** After the first, second... failed try. */
const retryDelaysMs = [1_000, 5_000, 30_000, 120_000] as const

/** The delays spread by this much to both sides, so that what failed together does not come back together. */
const spread = 0.2

/** The time until the next try after so many failed ones; `fraction` is drawn from 0 up to 1. */
export function retryDelayMs(failedTries: number, fraction: number): number {
  const delayMs = retryDelaysMs[failedTries - 1]
  assert(delayMs !== undefined, 'a delivery has five tries')
  return delayMs * (1 - spread + 2 * spread * fraction)
}

/** An answer that says: not now. Counted as a success, and tried again all the same (subscriptions.md §8.6). */
export function asksForRetry(code: number): boolean {
  return code === 408 || code === 429 || code >= 500
}
