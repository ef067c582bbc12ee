// Statistics: omitted counters, the full form, and several processes as one
// (docs/interface/administration.md#statistics).

import t from 'tap'
import type { Statistics } from '../../src/messages/admin.js'
import { joinStatistics, listedIds, renderStatistics } from '../../src/observe/statistics.js'

const none: Statistics = { uptimeS: 5, intervalS: 3, hasSemWait: false, simulatedNotifications: 0 }

const counters: Statistics['counters'] = {
  jsonRequests: 1,
  textRequests: 0,
  noPayloadRequests: 2,
  requests: { '/v2/entities': { GET: 2, POST: 1 } },
  missedVerb: 0,
  invalidRequests: 0,
  notificationsSent: 4,
  deprecatedFeatures: { ngsiv1Requests: 0, ngsiv1Forwarding: 0, ngsiv1NotifFormat: 0, geoFormat: 0 },
}
const queue = { in: 3, out: 2, reject: 1, sentOk: 1, sentError: 1, timeInQueue: 0.5, size: 1 }
const timing = (total: number) => ({ jsonV2Parse: 0, mongoWriteWait: 0, total })

const shown = (statistics: Statistics, isFull = false): unknown => JSON.parse(renderStatistics(statistics, isFull))

t.test('two fields are always there', async t => {
  t.same(shown(none), { uptime_in_secs: 5, measuring_interval_in_secs: 3 })
})

t.test('counters that are zero are left out', async t => {
  t.same(shown({ ...none, counters }), {
    counters: {
      jsonRequests: 1,
      noPayloadRequests: 2,
      requests: { '/v2/entities': { GET: 2, POST: 1 } },
      notificationsSent: 4,
    },
    uptime_in_secs: 5,
    measuring_interval_in_secs: 3,
  })
})

t.test('in full every counter is there, and every route that tools look for', async t => {
  const { counters: all, ...rest } = shown({ ...none, counters }, true) as { counters: Record<string, object> }
  const { requests, requestsLegacy, ...others } = all
  const { requests: _, ...counted } = counters!
  t.same(others, { ...counted, registrationUpdateErrors: 0, discoveryErrors: 0 })
  t.match(requests, { '/v2/entities': { GET: 2, POST: 1, OPTIONS: 0 }, '/version': { GET: 0 } })
  t.match(requestsLegacy, { '/v1/queryContext': { POST: 0 } })
  t.same(rest, { uptime_in_secs: 5, measuring_interval_in_secs: 3, simulatedNotifications: 0 })
})

t.test('two routes may be counted under one name', async t => {
  const requests = {
    '/v2/entities/{id}': { GET: 2 },
    '/v2/entities/{id}/attrs': { GET: 3, PATCH: 1 },
    '/log/trace/{levels}': { PUT: 1 },
  }
  t.match(shown({ ...none, counters: { ...counters!, requests } }), {
    counters: { requests: { '/v2/entities/{id}[/attrs]': { GET: 5, PATCH: 1 }, '/log/trace[/{level}]': { PUT: 1 } } },
  })
})

t.test('no request waits for locks', async t => {
  const names = ['request', 'dbConnectionPool', 'transaction', 'subCache', 'connectionContext', 'timeStat', 'metrics']
  const semWait = Object.fromEntries(names.map(name => [name, 0]))
  t.match(shown({ ...none, hasSemWait: true }), { semWait })
})

t.test('timing is empty before anything was measured', async t => {
  t.match(shown({ ...none, timing: { accumulated: timing(0), last: timing(0) } }), { timing: {} })
  t.match(shown({ ...none, timing: { accumulated: timing(2), last: timing(1) } }), {
    timing: { accumulated: { total: 2 }, last: { total: 1 } },
  })
})

t.test('the mean time in the queue is of those that have left it', async t => {
  t.match(shown({ ...none, notifQueue: queue }), { notifQueue: { ...queue, avgTimeInQueue: 0.25 } })
  t.match(shown({ ...none, notifQueue: { ...queue, out: 0 } }), { notifQueue: { avgTimeInQueue: 0 } })
})

t.test('several processes are shown as one', async t => {
  const one: Statistics = {
    ...none,
    counters,
    notifQueue: queue,
    simulatedNotifications: 1,
    timing: { accumulated: timing(1), last: timing(1) },
  }
  const other: Statistics = {
    ...one,
    uptimeS: 2,
    counters: { ...counters, requests: { '/v2/entities': { GET: 1 }, '/version': { GET: 7 } } },
    timing: { accumulated: timing(3), last: timing(2) },
  }
  const joined = joinStatistics([one, other])
  t.same(joined.counters?.requests, { '/v2/entities': { GET: 3, POST: 1 }, '/version': { GET: 7 } })
  t.equal(joined.counters?.jsonRequests, 2)
  t.equal(joined.notifQueue?.in, 6)
  t.same(joined.timing, { accumulated: timing(4), last: timing(1) })
  t.match(joined, { uptimeS: 5, simulatedNotifications: 2 })
})

t.test('a process that has measured no request leaves the last times to another', async t => {
  const asked: Statistics = { ...none, timing: { accumulated: timing(3), last: timing(2) } }
  const idle: Statistics = { ...none, timing: { accumulated: timing(0), last: timing(0) } }
  t.same(joinStatistics([idle, asked]).timing?.last, timing(2))
})

t.test('ids are listed as long as there is room', async t => {
  t.equal(listedIds([]), '')
  t.equal(listedIds(['a', 'b']), 'a, b')
  t.equal(listedIds(Array.from({ length: 100 }, () => 'x'.repeat(24))), 'too many subscriptions')
})
