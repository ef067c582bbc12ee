// The JSON of `GET /statistics`, made of the statistics of one or several processes (operations.md §4).
//
// `mongo...` are the names of the reference, which dashboards know: they mean the store, whatever it is. Requests never
// wait for a lock here, so all times of `semWait` are 0.
//
// Not here: the statistics of a process (messages/statistics.ts), and the code that counts (statistics-book.ts).

import type { QueueStatistics, RequestCounts, Statistics, StatisticsCounters } from '../messages/statistics.js'

/** What several processes tell, as if it were one: the first one's last times, and the sums of what is counted. */
export const joinStatistics = (parts: readonly Statistics[]): Statistics =>
  parts.reduce((one, other) => ({
    uptimeS: Math.max(one.uptimeS, other.uptimeS),
    intervalS: Math.max(one.intervalS, other.intervalS),
    counters: one.counters && other.counters && added(one.counters, other.counters),
    hasSemWait: one.hasSemWait,
    timing: one.timing &&
      other.timing && { accumulated: added(one.timing.accumulated, other.timing.accumulated), last: one.timing.last },
    notifQueue: one.notifQueue && other.notifQueue && added(one.notifQueue, other.notifQueue),
    simulatedNotifications: one.simulatedNotifications + other.simulatedNotifications,
  }))

type Tree = { readonly [name: string]: number | Tree }

/** Two trees of numbers as one: what stands at the same place is added. */
function added<T extends object>(one: T, other: T): T {
  const sum = { ...one } as Record<string, unknown>
  for (const [name, value] of Object.entries(other) as [string, number | Tree][]) {
    const known = sum[name]
    if (typeof value === 'number') sum[name] = ((known as number | undefined) ?? 0) + value
    else sum[name] = known === undefined ? value : added(known as Tree, value)
  }
  return sum as T
}

const waits = ['request', 'dbConnectionPool', 'transaction', 'subCache', 'connectionContext', 'timeStat', 'metrics']

/** The JSON of `GET /statistics`. Counters that are zero are left out unless `isFull` (`options=fullCounters`). */
export function renderStatistics(
  { uptimeS, intervalS, counters, hasSemWait, timing, notifQueue, simulatedNotifications }: Statistics,
  isFull: boolean,
): string {
  return JSON.stringify({
    ...(counters && { counters: isFull ? withAll(counters) : withoutZeros(allCounters(counters)) }),
    ...(hasSemWait && { semWait: Object.fromEntries(waits.map(name => [name, 0])) }),
    ...(timing && { timing: renderTiming(timing) }),
    ...(notifQueue && { notifQueue: renderQueue(notifQueue) }),
    uptime_in_secs: uptimeS,
    measuring_interval_in_secs: intervalS,
    ...((isFull || simulatedNotifications > 0) && { simulatedNotifications }),
  })
}

const allCounters = (counters: StatisticsCounters) => {
  const { jsonRequests, textRequests, noPayloadRequests, requests, missedVerb, invalidRequests } = counters
  return {
    jsonRequests,
    textRequests,
    noPayloadRequests,
    requests: renamed(requests),
    requestsLegacy: {},
    missedVerb,
    registrationUpdateErrors: 0,
    discoveryErrors: 0,
    notificationsSent: counters.notificationsSent,
    invalidRequests,
    deprecatedFeatures: counters.deprecatedFeatures,
  }
}

/** As they are told. */
const renamed = (requests: RequestCounts): RequestCounts =>
  Object.entries(requests).reduce<RequestCounts>((sum, [route, verbs]) => added(sum, { [countedAs(route)]: verbs }), {})

function withAll(counters: StatisticsCounters): object {
  const all = allCounters(counters)
  return { ...all, requests: added(shownRoutes, all.requests), requestsLegacy: shownLegacyRoutes }
}

/** Empty objects are left out as well, but for the whole. */
function withoutZeros(tree: object): object {
  const kept = Object.entries(tree)
    .map(([name, value]) => [name, typeof value === 'object' ? withoutZeros(value) : value] as const)
    .filter(([, value]) => (typeof value === 'object' ? Object.keys(value).length > 0 : value !== 0))
  return Object.fromEntries(kept)
}

/** Empty before the first request that was measured (§4.2). */
const renderTiming = ({ accumulated, last }: NonNullable<Statistics['timing']>): object =>
  withoutZeros({ accumulated, last })

function renderQueue({ size, ...counts }: QueueStatistics): object {
  const { timeInQueue, out } = counts
  return { ...counts, avgTimeInQueue: out === 0 ? 0 : timeInQueue / out, size }
}

const idsLengthMax = 1024

/** The ids of subscriptions as §4.5 lists them. Looks at no more of them than fit. */
export function listedIds(ids: Iterable<string>): string {
  let list = ''
  for (const id of ids) {
    list = list === '' ? id : `${list}, ${id}`
    if (list.length > idsLengthMax) return 'too many subscriptions'
  }
  return list
}

/**
 * Routes and verbs that `options=fullCounters` shows whether or not they were used, as the reference names them (§4.3);
 * tools look for them. Two of our routes may share a name. `/exit` and `/leak` are there in the reference's debug
 * builds only, and never here.
 */
const shownRoutes: RequestCounts = zeros({
  '/v2': ['GET', 'OPTIONS'],
  '/v2/entities': ['POST', 'GET', 'OPTIONS'],
  '/v2/entities/{id}[/attrs]': ['GET', 'DELETE', 'POST', 'PUT', 'PATCH', 'OPTIONS'],
  '/v2/entities/{id}/attrs/{name}': ['GET', 'PUT', 'DELETE', 'OPTIONS'],
  '/v2/entities/{id}/attrs/{name}/value': ['GET', 'PUT', 'OPTIONS'],
  '/v2/types': ['GET', 'OPTIONS'],
  '/v2/types/{type}': ['GET', 'OPTIONS'],
  '/v2/subscriptions': ['POST', 'GET', 'OPTIONS'],
  '/v2/subscriptions/{id}': ['GET', 'DELETE', 'PATCH', 'OPTIONS'],
  '/v2/registrations': ['POST', 'GET', 'OPTIONS'],
  '/v2/registrations/{id}': ['GET', 'DELETE', 'PATCH', 'OPTIONS'],
  '/v2/op/query': ['POST', 'OPTIONS'],
  '/v2/op/update': ['POST', 'OPTIONS'],
  '/v2/op/notify': ['POST'],
  '/admin/log': ['GET', 'PUT'],
  '/admin/metrics': ['GET', 'DELETE'],
  '/admin/sem': ['GET'],
  '/cache/statistics': ['GET', 'DELETE'],
  '/log/trace[/{level}]': ['GET', 'PUT', 'DELETE'],
  '/statistics': ['GET', 'DELETE'],
  '/version': ['GET'],
  '/exit[/*]': ['GET'],
  '/leak[/*]': ['GET'],
})

/** The same of the interface's first version, of which there is nothing here. */
const shownLegacyRoutes: RequestCounts = zeros({
  '/v1/queryContext': ['POST'],
  '/v1/updateContext': ['POST'],
  '/v1/contextEntities/{id}': ['PUT', 'DELETE'],
  '/v1/contextEntities/{id}/attributes/{name}': ['GET'],
  '/ngsi10/queryContext': ['POST'],
  '/ngsi10/updateContext': ['POST'],
})

function zeros(routes: Readonly<Record<string, readonly string[]>>): RequestCounts {
  const counts = Object.entries(routes).map(([route, verbs]) => [route, verbs.map(verb => [verb, 0] as const)] as const)
  return Object.fromEntries(counts.map(([route, verbs]) => [route, Object.fromEntries(verbs)]))
}

/** Routes of ours that are counted under another name. */
const namesOfRoutes: Readonly<Record<string, string>> = {
  '/v2/entities/{id}': '/v2/entities/{id}[/attrs]',
  '/v2/entities/{id}/attrs': '/v2/entities/{id}[/attrs]',
  '/log/trace': '/log/trace[/{level}]',
  '/log/trace/{levels}': '/log/trace[/{level}]',
}

/** The name under which a route of ours is counted. */
const countedAs = (route: string): string => namesOfRoutes[route] ?? route
