// Counts what `GET /statistics` tells of this process (operations.md §4.2 to §4.4).
//
// A block that was not asked for at start is not counted. What others count for themselves (notifications, commits) is
// read from them, and what it was at the last reset is taken off.
//
// Not here: the JSON, and other processes (statistics.ts).

import type {
  DeprecatedFeature,
  QueueStatistics,
  Statistics,
  StatisticsCounters,
  Timing,
} from '../messages/statistics.js'
import type { AnsweredRequest, Clock } from '../ports.js'

/** Blocks that were asked for (`-statCounters` and so on). */
export interface StatisticsBlocks {
  readonly counters: boolean
  readonly semWait: boolean
  readonly timing: boolean
  /** Only where there are queues (`threadpool`). */
  readonly notifQueue: boolean
}

/** What others count, since the start. */
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

  /** The size is what waits now: it is not reset (§4.2). */
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

/** Verbs counted for one route: a client may invent any. */
const verbsMax = 16

function note(times: { accumulated: number; last: number }, ms: number): void {
  times.accumulated += ms
  times.last = ms
}

const wholeSeconds = (ms: number): number => Math.floor(ms / 1000)
