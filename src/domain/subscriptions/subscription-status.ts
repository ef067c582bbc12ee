// The status of a subscription and the counters of its notifications (docs/interface/subscriptions.md#status,
// docs/interface/subscriptions.md#throttling).
//
// Every process that sends notifications for a subscription keeps and changes its own `SubscriptionProgress`. Clients
// see all of them merged: counts are added up, and of times the latest one counts. So no order among processes is
// needed.
//
// A switch-off (a one-shot that was triggered, a failure too many) does not overwrite the status of the subscription.
// It spends the revision in which the status was set. Setting the status again makes a new revision, and undoes the
// switch-off everywhere.
//
// Not here: counting a notification that is tried several times, the exchange of parts.

import type { Subscription, SubscriptionProgress, SubscriptionStatus } from './subscription.js'

/** The status after switch-offs, without expiry (docs/interface/subscriptions.md#status). */
export function storedStatus(subscription: Subscription, progress: SubscriptionProgress): SubscriptionStatus {
  return progress.spentRevision === subscription.statusRevision ? 'inactive' : subscription.status
}

/** Whether the time of the subscription has passed (docs/interface/subscriptions.md#status). */
export const isExpired = ({ expiresMs }: Subscription, nowMs: number): boolean =>
  expiresMs !== undefined && expiresMs < nowMs

/** The status that clients see (docs/interface/subscriptions.md#status). */
export function shownStatus(
  subscription: Subscription,
  progress: SubscriptionProgress,
  nowMs: number,
): SubscriptionStatus | 'expired' {
  return isExpired(subscription, nowMs) ? 'expired' : storedStatus(subscription, progress)
}

/**
 * Whether a notification would follow the last one too soon, and is dropped
 * (docs/interface/subscriptions.md#throttling). The last one may be in the future, since clocks of owners differ and
 * clocks are set back. Then it counts as well, but not for longer than the time between two.
 */
export function isThrottled(
  { throttlingSeconds }: Subscription,
  { lastNotificationMs }: SubscriptionProgress,
  nowMs: number,
): boolean {
  return lastNotificationMs !== undefined && Math.abs(nowMs - lastNotificationMs) < throttlingSeconds * 1000
}

// [hot] Both once per notification; `...own` took more than a microsecond there.
/**
 * A notification was passed to the sender, whatever its outcome. A one-shot is spent by it
 * (docs/interface/subscriptions.md#status, docs/interface/subscriptions.md#counters).
 */
export function recordSent(subscription: Subscription, own: SubscriptionProgress, nowMs: number): SubscriptionProgress {
  return {
    timesSent: own.timesSent + 1,
    lastNotificationMs: nowMs,
    lastSuccessMs: own.lastSuccessMs,
    lastSuccessCode: own.lastSuccessCode,
    lastFailureMs: own.lastFailureMs,
    lastFailureReason: own.lastFailureReason,
    failsCounter: own.failsCounter,
    spentRevision: subscription.status === 'oneshot' ? subscription.statusRevision : own.spentRevision,
  }
}

/**
 * The receiver answered: with any status, or over MQTT, which has none (docs/interface/subscriptions.md#counters,
 * docs/interface/notifications.md#outcomes).
 */
export function recordSuccess(
  own: SubscriptionProgress,
  nowMs: number,
  code: number | undefined,
): SubscriptionProgress {
  return {
    timesSent: own.timesSent,
    lastNotificationMs: own.lastNotificationMs,
    lastSuccessMs: nowMs,
    lastSuccessCode: code,
    lastFailureMs: own.lastFailureMs,
    lastFailureReason: own.lastFailureReason,
    failsCounter: 0,
    spentRevision: own.spentRevision,
  }
}

/** A recorded failure and its consequence. */
export interface RecordedFailure {
  readonly progress: SubscriptionProgress
  /**
   * The number of failures, of all parts together, with which it has just switched the subscription off; undefined: it
   * has not.
   */
  readonly disabledAt: number | undefined
}

/**
 * No answer came (docs/interface/subscriptions.md#counters). The failure that takes the counter of all parts above
 * `maxFailsLimit` switches the subscription off (docs/interface/subscriptions.md#too-many-failures). `others`: the
 * parts of other processes, as far as they are known.
 */
export function recordFailure(
  subscription: Subscription,
  own: SubscriptionProgress,
  others: readonly SubscriptionProgress[],
  nowMs: number,
  reason: string,
): RecordedFailure {
  // Failures of this part before a success of another process do not count any more, and must not be revived by this
  // one.
  const failsCounter = failuresSince(latestSuccess([own, ...others]), own) + 1
  const progress = { ...own, failsCounter, lastFailureMs: nowMs, lastFailureReason: reason }
  const merged = mergeProgress([progress, ...others])
  const { maxFailsLimit } = subscription.notification
  const isOver = maxFailsLimit !== undefined && merged.failsCounter > maxFailsLimit
  if (!isOver || storedStatus(subscription, merged) === 'inactive') return { progress, disabledAt: undefined }
  return { progress: { ...progress, spentRevision: subscription.statusRevision }, disabledAt: merged.failsCounter }
}

/**
 * Merges all parts (docs/interface/subscriptions.md#counters). The result is for clients, and must not be merged again.
 * Failures in a row are those of all parts, except parts that have not failed since another part had a success.
 */
export function mergeProgress(parts: readonly SubscriptionProgress[]): SubscriptionProgress {
  const success = latest(parts, part => part.lastSuccessMs)
  const failure = latest(parts, part => part.lastFailureMs)
  return {
    timesSent: sum(parts.map(part => part.timesSent)),
    lastNotificationMs: latest(parts, part => part.lastNotificationMs)?.lastNotificationMs,
    lastSuccessMs: success?.lastSuccessMs,
    lastSuccessCode: success?.lastSuccessCode,
    lastFailureMs: failure?.lastFailureMs,
    lastFailureReason: failure?.lastFailureReason ?? '',
    failsCounter: sum(parts.map(part => failuresSince(success?.lastSuccessMs, part))),
    spentRevision: Math.max(0, ...parts.map(part => part.spentRevision)),
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0)

const latestSuccess = (parts: readonly SubscriptionProgress[]): number | undefined =>
  latest(parts, part => part.lastSuccessMs)?.lastSuccessMs

/** The part's failures in a row, unless all of them are older than a success, its own or another part's. */
function failuresSince(successMs: number | undefined, part: SubscriptionProgress): number {
  const { failsCounter, lastFailureMs, lastSuccessMs } = part
  // Within one part the counter is more reliable than times, which may stop or go back.
  if (successMs === undefined || lastFailureMs === undefined || successMs === lastSuccessMs) return failsCounter
  return lastFailureMs < successMs ? 0 : failsCounter
}

/** The part with the latest time; the last of them when several have it. */
function latest(
  parts: readonly SubscriptionProgress[],
  timeOf: (part: SubscriptionProgress) => number | undefined,
): SubscriptionProgress | undefined {
  let found: SubscriptionProgress | undefined
  let foundMs = Number.NEGATIVE_INFINITY
  for (const part of parts) {
    const ms = timeOf(part)
    if (ms === undefined || ms < foundMs) continue
    found = part
    foundMs = ms
  }
  return found
}
