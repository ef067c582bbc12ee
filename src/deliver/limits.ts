// The limits of the notifier, how `-notificationMode` changes them (docs/interface/notifications.md#modes), and the
// times of further tries: 1, 5, 30 and 120 seconds after a failed one, then no more.
//
// Every mode has a lane per receiver, so that a dead receiver delays no other one. Every mode keeps connections alive,
// because a connection for each notification would cost more than the notification and runs out of ports at some 500 a
// second. A mode decides the width: how many notifications are sent at a time, and how many wait.
//
//   transient             up to 32 at a time to a receiver, 512 in all
//   persistent            one at a time to a receiver, 512 in all
//   threadpool:q:n        n at a time in all, also to one receiver; q wait
//   threadpool:q:n,s:q:n  the same for the tenant s; all others share the first pair
//
// Second and later tries have a width of their own, an eighth on top, so that they never take the place of a first one.

import assert from 'node:assert/strict'

export interface Limits {
  /** First tries that wait for one receiver. Each costs its message and 200 bytes. Above, rows stay in the outbox. */
  readonly laneQueueMax: number
  readonly laneBytesMax: number
  /** Failed deliveries of one receiver in memory until their next try, or its answer; others go to their owner. */
  readonly laneRetriesMax: number
  /** Bytes of first tries, waiting or in flight, over all receivers. Further tries have half as much of their own. */
  readonly bytesMax: number
  /** Receivers known at a time. Each costs 2 KB; the longest idle ones are forgotten. */
  readonly lanesMax: number
  /** First tries at a time to one receiver that answers. */
  readonly laneSendsMax: number
  /** The same to a receiver that has not answered yet, or not the last time. It limits the sends that can time out. */
  readonly laneUnprovenSendsMax: number
  readonly laneRetrySendsMax: number
  /** Receivers probed in a second, of all that are held back. With more than five times as many the pauses grow. */
  readonly probesPerSecondMax: number
  /** First tries at a time over all receivers of a pool: the bound on sockets. */
  readonly sendsMax: number
  /** First tries that wait in a pool. */
  readonly queueMax: number
}

export const limitsByDefault: Limits = {
  laneQueueMax: 10_000,
  laneBytesMax: 16 * 1024 * 1024,
  laneRetriesMax: 1_000,
  bytesMax: 64 * 1024 * 1024,
  lanesMax: 10_000,
  laneSendsMax: 32,
  laneUnprovenSendsMax: 4,
  laneRetrySendsMax: 4,
  probesPerSecondMax: 500,
  sendsMax: 512,
  queueMax: 100_000,
}

/** A width that some tenants share. */
export interface PoolLimits {
  /** Undefined: the pool of all tenants without their own. */
  readonly tenant: string | undefined
  readonly queueMax: number
  readonly sendsMax: number
  readonly laneSendsMax: number
}

/** The pools of a mode that was validated with the options; the shared one comes first. */
export function poolsOf(mode: string, limits: Limits): PoolLimits[] {
  const shared = { tenant: undefined, queueMax: limits.queueMax, sendsMax: limits.sendsMax }
  if (mode === 'transient') return [{ ...shared, laneSendsMax: limits.laneSendsMax }]
  if (mode === 'persistent') return [{ ...shared, laneSendsMax: 1 }]
  const words = mode === 'threadpool' ? 'threadpool:100:10' : mode
  return words.split(',').map((word, index) => {
    const [name, queue, sends] = word.split(':')
    const [queueMax, sendsMax] = [Number(queue), Number(sends)]
    assert(index > 0 || name === 'threadpool', `not a notification mode: ${mode}`)
    assert(queueMax > 0 && sendsMax > 0, `not a notification mode: ${mode}`)
    return { tenant: index === 0 ? undefined : name!.toLowerCase(), queueMax, sendsMax, laneSendsMax: sendsMax }
  })
}

/** Further tries at a time in a pool with so many first tries at a time. */
export const retrySendsMax = (sendsMax: number): number => Math.max(1, Math.floor(sendsMax / 8))

/** First tries of a pool that may be in flight to receivers without a last answer, all of these receivers together. */
export const unprovenSendsMax = (sendsMax: number): number => Math.max(1, Math.ceil((sendsMax * 3) / 4))

export const triesMax = 5

const retryDelaysMs = [1_000, 5_000, 30_000, 120_000] as const

/**
 * How long a receiver must have been away before its notifications are given up to make room for others: as long as a
 * delivery whose tries fail one by one.
 */
export const giveUpMs = retryDelaysMs.reduce((sum, delayMs) => sum + delayMs, 0)

/** The delays spread by this share to both sides, so that jobs that failed together do not come back together. */
const spread = 0.2

/** The time until the next try after this number of failed ones; `fraction` is drawn from 0 up to 1. */
export function retryDelayMs(failedTries: number, fraction: number): number {
  const delayMs = retryDelaysMs[failedTries - 1]
  assert(delayMs !== undefined, `there is no attempt after ${failedTries} failed ones`)
  return delayMs * (1 - spread + 2 * spread * fraction)
}

/**
 * The status means "not now". It counts as a success, and the notification is tried again all the same
 * (docs/interface/notifications.md#outcomes).
 */
export function asksForRetry(code: number): boolean {
  return code === 408 || code === 429 || code >= 500
}
