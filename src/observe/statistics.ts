// `GET /statistics` (docs/interface/administration.md#statistics): the counters of this process, and the JSON of the
// statistics of one or several processes.
//
// A block that the options do not enable is not counted. Numbers that other parts count for themselves (notifications,
// commits) are read from there, and their values at the last reset are subtracted.
//
// `mongo...` are the names of the reference, which dashboards know: they mean the store of any kind. Requests never
// wait for a lock here, so all times of `semWait` are 0.

import type {
  DeprecatedFeature,
  QueueStatistics,
  RequestCounts,
  Statistics,
  StatisticsCounters,
  Timing,
} from '../messages/admin.js'
import type { AnsweredRequest, Clock } from '../ports.js'

/** Blocks that the options enable (`-statCounters` and so on). */
export interface StatisticsBlocks {
  readonly counters: boolean
  readonly semWait: boolean
  readonly timing: boolean
  /** Only if there are queues (`threadpool`). */
  readonly notifQueue: boolean
}

/** Numbers that other parts count, since the start. */
export interface CountedElsewhere {
  readonly queue: Omit<QueueStatistics, 'timeInQueue'> & { readonly timeInQueueMs: number }
  readonly simulated: number
  /** Time of all commits, and of the last one. */
  readonly commitMs: number
  readonly lastCommitMs: number
}

const nothingElsewhere: CountedElsewhere = {
  queue: { in: 0, out: 0, reject: 0, sentOk: 0, sentError: 0, timeInQueueMs: 0, size: 0 },
  simulated: 0,
  commitMs: 0,
  lastCommitMs: 0,
}

const noCounters = {
  jsonRequests: 0,
  textRequests: 0,
  noPayloadRequests: 0,
  missedVerb: 0,
  invalidRequests: 0,
  deprecatedFeatures: { ngsiv1Requests: 0, ngsiv1Forwarding: 0, ngsiv1NotifFormat: 0, geoFormat: 0 },
}

export class StatisticsBook {
  private readonly startedMs: number
  private sinceMs: number
  private atReset: CountedElsewhere = nothingElsewhere
  private counters = structuredClone(noCounters)
  private requests = new Map<string, Map<string, number>>()
  private parseMs = { accumulated: 0, last: 0 }
  private totalMs = { accumulated: 0, last: 0 }

  constructor(
    readonly blocks: StatisticsBlocks,
    private readonly clock: Pick<Clock, 'monoMs'>,
    private readonly elsewhere: () => CountedElsewhere,
  ) {
    this.startedMs = clock.monoMs()
    this.sinceMs = this.startedMs
  }

  onRouted(route: string, method: string, payload: 'json' | 'text' | 'none'): void {
    if (!this.blocks.counters) return
    if (payload === 'json') this.counters.jsonRequests++
    else if (payload === 'text') this.counters.textRequests++
    else this.counters.noPayloadRequests++
    let verbs = this.requests.get(route)
    if (!verbs) {
      verbs = new Map()
      this.requests.set(route, verbs)
    }
    if (verbs.has(method) || verbs.size < verbsMax) verbs.set(method, (verbs.get(method) ?? 0) + 1)
  }

  onAnswered({ refusal, route, durationMs }: AnsweredRequest): void {
    if (this.blocks.timing) note(this.totalMs, durationMs)
    if (!this.blocks.counters || !refusal) return
    if (refusal.kind === 'MethodNotAlowed') this.counters.missedVerb++
    else if (route === '') this.counters.invalidRequests++
  }

  onParsed(ms: number): void {
    note(this.parseMs, ms)
  }

  onDeprecated(feature: DeprecatedFeature): void {
    this.counters.deprecatedFeatures[feature]++
  }

  read(): Statistics {
    const { blocks } = this
    const nowMs = this.clock.monoMs()
    const elsewhere = this.elsewhere()
    return {
      uptimeS: wholeSeconds(nowMs - this.startedMs),
      intervalS: wholeSeconds(nowMs - this.sinceMs),
      counters: blocks.counters ? this.readCounters(elsewhere) : undefined,
      hasSemWait: blocks.semWait,
      timing: blocks.timing ? this.readTiming(elsewhere) : undefined,
      notifQueue: blocks.notifQueue ? this.readQueue(elsewhere) : undefined,
      simulatedNotifications: elsewhere.simulated - this.atReset.simulated,
    }
  }

  /** Starts counting anew: on request, and when the process begins to serve. */
  reset(): void {
    this.sinceMs = this.clock.monoMs()
    this.atReset = this.elsewhere()
    this.counters = structuredClone(noCounters)
    this.requests = new Map()
    this.parseMs = { accumulated: 0, last: 0 }
    this.totalMs = { accumulated: 0, last: 0 }
  }

  private readCounters({ queue }: CountedElsewhere): StatisticsCounters {
    const requests = [...this.requests].map(([route, verbs]) => [route, Object.fromEntries(verbs)] as const)
    return {
      ...structuredClone(this.counters),
      requests: Object.fromEntries(requests),
      notificationsSent: queue.sentOk - this.atReset.queue.sentOk,
    }
  }

  private readTiming({ commitMs, lastCommitMs }: CountedElsewhere): { accumulated: Timing; last: Timing } {
    const commits = { accumulated: commitMs - this.atReset.commitMs, last: lastCommitMs }
    const of = (which: 'accumulated' | 'last'): Timing => ({
      jsonV2Parse: this.parseMs[which] / 1000,
      mongoWriteWait: commits.accumulated > 0 ? commits[which] / 1000 : 0,
      total: this.totalMs[which] / 1000,
    })
    return { accumulated: of('accumulated'), last: of('last') }
  }

  /** The size is the present length, so it is not reset (docs/interface/administration.md#statistics). */
  private readQueue({ queue }: CountedElsewhere): QueueStatistics {
    const before = this.atReset.queue
    return {
      in: queue.in - before.in,
      out: queue.out - before.out,
      reject: queue.reject - before.reject,
      sentOk: queue.sentOk - before.sentOk,
      sentError: queue.sentError - before.sentError,
      timeInQueue: (queue.timeInQueueMs - before.timeInQueueMs) / 1000,
      size: queue.size,
    }
  }
}

/** Verbs counted for one route: clients may invent any. */
const verbsMax = 16

function note(times: { accumulated: number; last: number }, ms: number): void {
  times.accumulated += ms
  times.last = ms
}

const wholeSeconds = (ms: number): number => Math.floor(ms / 1000)

/**
 * The statistics of several processes as one: the sums of the counts, and the last times of the first process that has
 * measured a request.
 */
export const joinStatistics = (parts: readonly Statistics[]): Statistics =>
  parts.reduce((one, other) => ({
    uptimeS: Math.max(one.uptimeS, other.uptimeS),
    intervalS: Math.max(one.intervalS, other.intervalS),
    counters: one.counters && other.counters && added(one.counters, other.counters),
    hasSemWait: one.hasSemWait,
    timing: one.timing &&
      other.timing && {
        accumulated: added(one.timing.accumulated, other.timing.accumulated),
        last: one.timing.last.total > 0 ? one.timing.last : other.timing.last,
      },
    notifQueue: one.notifQueue && other.notifQueue && added(one.notifQueue, other.notifQueue),
    simulatedNotifications: one.simulatedNotifications + other.simulatedNotifications,
  }))

type Tree = { readonly [name: string]: number | Tree }

/** Two trees of numbers as one: numbers at the same place are added. */
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

const renamed = (requests: RequestCounts): RequestCounts =>
  Object.entries(requests).reduce<RequestCounts>((sum, [route, verbs]) => added(sum, { [countedAs(route)]: verbs }), {})

function withAll(counters: StatisticsCounters): object {
  const all = allCounters(counters)
  return { ...all, requests: added(shownRoutes, all.requests), requestsLegacy: shownLegacyRoutes }
}

/** Empty objects are left out as well, except the whole tree. */
function withoutZeros(tree: object): object {
  const kept = Object.entries(tree)
    .map(([name, value]) => [name, typeof value === 'object' ? withoutZeros(value) : value] as const)
    .filter(([, value]) => (typeof value === 'object' ? Object.keys(value).length > 0 : value !== 0))
  return Object.fromEntries(kept)
}

/** Empty before the first measured request (docs/interface/administration.md#statistics). */
const renderTiming = ({ accumulated, last }: NonNullable<Statistics['timing']>): object =>
  withoutZeros({ accumulated, last })

function renderQueue({ size, ...counts }: QueueStatistics): object {
  const { timeInQueue, out } = counts
  return { ...counts, avgTimeInQueue: out === 0 ? 0 : timeInQueue / out, size }
}

const idsLengthMax = 1024

/**
 * The ids of subscriptions as docs/interface/administration.md#subscriptions-in-memory lists them. It reads no more ids
 * than fit.
 */
export function listedIds(ids: Iterable<string>): string {
  let list = ''
  for (const id of ids) {
    list = list === '' ? id : `${list}, ${id}`
    if (list.length > idsLengthMax) return 'too many subscriptions'
  }
  return list
}

/**
 * Routes and verbs that `options=fullCounters` shows whether or not they were used, as the reference names them
 * (docs/interface/administration.md#statistics); tools search for them. Two of our routes may share a name. `/exit` and
 * `/leak` exist in the reference's debug builds only, and never here.
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

/** The same for the interface's first version, which does not exist here. */
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

const countedAs = (route: string): string => namesOfRoutes[route] ?? route
