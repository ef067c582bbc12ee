// The status of subscriptions and their counters, in one process and merged from several.
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import {
  noProgress,
  type Subscription,
  type SubscriptionProgress,
} from '../../../src/domain/subscriptions/subscription.js'
import {
  isThrottled,
  mergeProgress,
  recordFailure,
  recordSent,
  recordSuccess,
  shownStatus,
  storedStatus,
} from '../../../src/domain/subscriptions/subscription-status.js'
import { Random } from '../../support/random.js'
import { afterPatch, subscription } from '../../support/subscriptions.js'

const given = (members: string, limit?: number): Subscription =>
  subscription(
    `{"subject":{"entities":[{"id":"E"}]},"notification":{"http":{"url":"http://h"}${limit ? `,"maxFailsLimit":${limit}` : ''}}${members}}`,
  )

const plain = given('')

/**
 * The progress after this number of failures, one each millisecond, and the failures that switched the subscription
 * off.
 */
function afterFailures(subscription: Subscription, from: SubscriptionProgress, count: number) {
  let progress = from
  const disabledAt: number[] = []
  for (let at = 1; at <= count; at++) {
    const failure = recordFailure(subscription, progress, [], at, 'Timeout was reached')
    progress = failure.progress
    if (failure.disabledAt !== undefined) disabledAt.push(failure.disabledAt)
  }
  return { progress, disabledAt }
}

t.test('a subscription is expired after its end, and not at it', async t => {
  const ending = given(',"expires":"2030-01-01T00:00:00Z"')
  const endMs = Date.UTC(2030, 0, 1)
  t.equal(shownStatus(ending, noProgress, endMs), 'active')
  t.equal(shownStatus(ending, noProgress, endMs + 1), 'expired')
})

t.test('expiry hides the stored status, which shows again when it is taken back', async t => {
  const expired = afterPatch(given(',"expires":"2000-01-01T00:00:00Z"'), '{"status":"inactive"}')
  t.equal(shownStatus(expired, noProgress, Date.UTC(2030)), 'expired')
  t.equal(shownStatus(afterPatch(expired, '{"expires":""}'), noProgress, Date.UTC(2030)), 'inactive')
})

t.test('a notification that is passed on is counted and dated', async t => {
  const sent = recordSent(plain, recordSent(plain, noProgress, 5), 7)
  t.strictSame(sent, { ...noProgress, timesSent: 2, lastNotificationMs: 7 })
})

t.test('a one-shot is spent by its first notification, until its status is set again', async t => {
  const once = given(',"status":"oneshot"')
  const spent = recordSent(once, noProgress, 5)
  t.equal(storedStatus(once, spent), 'inactive')
  t.equal(storedStatus(afterPatch(once, '{"throttling":3}'), spent), 'inactive')
  const again = afterPatch(once, '{"status":"oneshot"}')
  t.equal(storedStatus(again, spent), 'oneshot')
  t.equal(storedStatus(again, recordSent(again, spent, 6)), 'inactive')
})

t.test('other subscriptions are not spent by a notification', async t => {
  t.equal(storedStatus(plain, recordSent(plain, noProgress, 5)), 'active')
})

t.test('a success clears the failures in a row and keeps the last one', async t => {
  const failed = recordFailure(plain, noProgress, [], 5, 'Timeout was reached').progress
  t.strictSame(failed, { ...noProgress, lastFailureMs: 5, lastFailureReason: 'Timeout was reached', failsCounter: 1 })
  t.strictSame(recordSuccess(failed, 6, 500), { ...failed, lastSuccessMs: 6, lastSuccessCode: 500, failsCounter: 0 })
})

t.test('a failure keeps the last success', async t => {
  const progress = recordFailure(plain, recordSuccess(noProgress, 5, 204), [], 6, 'x').progress
  t.match(progress, { lastSuccessMs: 5, lastSuccessCode: 204, lastFailureMs: 6, failsCounter: 1 })
})

t.test('without a limit no failure switches off', async t => {
  const { progress, disabledAt } = afterFailures(plain, noProgress, 1_000)
  t.strictSame([progress.failsCounter, disabledAt, storedStatus(plain, progress)], [1_000, [], 'active'])
})

t.test('the failure above the limit switches off, once', async t => {
  const limited = given('', 2)
  t.equal(storedStatus(limited, afterFailures(limited, noProgress, 2).progress), 'active')
  const { progress, disabledAt } = afterFailures(limited, noProgress, 4)
  t.equal(storedStatus(limited, progress), 'inactive')
  t.strictSame(disabledAt, [3])
})

t.test('switched on again, it has no credit: the next failure switches it off', async t => {
  const limited = given('', 2)
  const again = afterPatch(limited, '{"status":"active"}')
  const { progress } = afterFailures(limited, noProgress, 3)
  t.equal(storedStatus(again, progress), 'active')
  t.strictSame(afterFailures(again, progress, 1).disabledAt, [4])
})

t.test('a success gives the credit back', async t => {
  const limited = given('', 2)
  const { progress } = afterFailures(limited, noProgress, 2)
  t.strictSame(afterFailures(limited, recordSuccess(progress, 9, 200), 2).disabledAt, [])
})

t.test('a higher limit gives the difference as credit', async t => {
  const raised = afterPatch(
    given('', 2),
    '{"status":"active","notification":{"http":{"url":"http://h"},"maxFailsLimit":5}}',
  )
  t.strictSame(afterFailures(raised, afterFailures(given('', 2), noProgress, 3).progress, 4).disabledAt, [6])
})

t.test('failures of an inactive subscription count, but switch nothing off', async t => {
  const inactive = given(',"status":"inactive"', 1)
  const { progress, disabledAt } = afterFailures(inactive, noProgress, 3)
  t.strictSame([progress.failsCounter, disabledAt], [3, []])
  t.equal(storedStatus(afterPatch(inactive, '{"status":"active"}'), progress), 'active')
})

t.test('a notification is throttled until the time has passed, after any outcome of the last one', async t => {
  const throttled = given(',"throttling":2')
  const sent = recordSent(throttled, noProgress, 1_000)
  t.notOk(isThrottled(throttled, noProgress, 0), 'none was sent yet')
  t.ok(isThrottled(throttled, sent, 2_999))
  t.notOk(isThrottled(throttled, sent, 3_000))
  t.notOk(isThrottled(plain, sent, 1_000), 'no throttling')
  t.notOk(isThrottled(plain, sent, -60_000), 'no throttling, and a clock that was set back')
  t.notOk(isThrottled(throttled, sent, -60_000), 'a clock that was set back by more than the time between two')
  t.ok(isThrottled(afterPatch(throttled, '{"throttling":9}'), sent, 3_000), 'a longer time counts from then too')
})

t.test('parts add up: counts are sums, times the latest', async t => {
  const one = { ...noProgress, timesSent: 3, lastNotificationMs: 9, lastSuccessMs: 5, lastSuccessCode: 200 }
  const other = { ...noProgress, timesSent: 4, lastNotificationMs: 7, lastSuccessMs: 8, lastSuccessCode: 500 }
  const failing = { ...noProgress, timesSent: 1, lastFailureMs: 9, lastFailureReason: 'x', failsCounter: 2 }
  const expected = {
    timesSent: 8,
    lastNotificationMs: 9,
    lastSuccessMs: 8,
    lastSuccessCode: 500,
    lastFailureMs: 9,
    lastFailureReason: 'x',
    failsCounter: 2,
    spentRevision: 0,
  }
  t.strictSame(mergeProgress([one, other, failing]), expected)
  t.strictSame(mergeProgress([failing, other, one]), expected)
  t.strictSame(mergeProgress([]), noProgress)
})

t.test('a success of one process clears the earlier failures of another', async t => {
  const failed = afterFailures(plain, noProgress, 3).progress
  t.equal(mergeProgress([failed, recordSuccess(noProgress, 4, 200)]).failsCounter, 0)
  t.equal(mergeProgress([failed, recordSuccess(noProgress, 2, 200)]).failsCounter, 3, 'it came before the last of them')
  const again = recordFailure(plain, failed, [recordSuccess(noProgress, 4, 200)], 5, 'x').progress
  t.equal(again.failsCounter, 1, 'and they are not revived by the next one')
})

t.test('failures of several processes switch off together', async t => {
  const limited = given('', 2)
  const other = afterFailures(limited, noProgress, 2).progress
  const { progress, disabledAt } = recordFailure(limited, noProgress, [other], 3, 'x')
  t.equal(disabledAt, 3)
  t.equal(storedStatus(limited, mergeProgress([other, progress])), 'inactive')
  t.equal(recordFailure(limited, other, [progress], 4, 'x').disabledAt, undefined, 'which is told once')
})

/**
 * The first millisecond in which three processes that know of each other differ from a single one; undefined: never.
 */
function differAt(random: Random): number | undefined {
  let now = given(random.pick(['', ',"status":"oneshot"']), random.between(1, 4))
  let alone = noProgress
  const parts = [noProgress, noProgress, noProgress]
  for (let ms = 1; ms <= 40; ms++) {
    const at = random.between(0, 2)
    const own = parts[at]!
    const others = parts.filter((_, index) => index !== at)
    const event = random.pick(['patch', 'send', 'answer', 'fail', 'fail'])
    if (event === 'patch') {
      now = afterPatch(now, `{"status":"${random.pick(['active', 'oneshot', 'inactive'])}"}`)
    } else if (event === 'send') {
      parts[at] = recordSent(now, own, ms)
      alone = recordSent(now, alone, ms)
    } else if (event === 'answer') {
      parts[at] = recordSuccess(own, ms, 200 + at)
      alone = recordSuccess(alone, ms, 200 + at)
    } else {
      const failure = recordFailure(now, own, others, ms, `reason ${ms}`)
      const expected = recordFailure(now, alone, [], ms, `reason ${ms}`)
      if (failure.disabledAt !== expected.disabledAt) return ms
      parts[at] = failure.progress
      alone = expected.progress
    }
    if (!isDeepStrictEqual(mergeProgress(parts), alone)) return ms
  }
  return undefined
}

t.test('three processes that know of each other count like one', async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  for (let story = 0; story < 300; story++) {
    const ms = differAt(random)
    if (ms !== undefined) return t.fail(`story ${story} differs at ${ms} ms`)
  }
  t.pass('300 stories')
})
