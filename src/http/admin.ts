// Handlers of the administration paths: statistics, log, traces, semaphores, metrics by tenant, and a node's place in
// its cluster (docs/interface/administration.md).
//
// With several workers an answer covers all of them, and a command is sent to all. These paths are not scoped by
// tenant. Without access control any client may use them: expose them to operators only.
//
// Not here: the code that counts, and the merging of several workers' counts into one text (observe).

import type { AdminOperations } from '../broker/admin.js'
import { refusals } from '../domain/refusal.js'
import {
  type LogLevel,
  type LogSettings,
  noTraces,
  type OptionSetting,
  parseTraceLevels,
  renderTraceLevels,
  type TraceLevels,
  withoutTraceLevels,
} from '../messages/admin.js'
import type { ClusterNumbers, ClusterStatus } from '../messages/cluster-status.js'
import type { AdminReply, LogChange } from '../messages/messages.js'
import type { Reply } from './reply.js'
import type { Request } from './request.js'

export interface AdminSettings {
  /** The log settings of this process; the other processes have the same. */
  readonly log: Readonly<LogSettings>
  /** Whether metrics by tenant are kept (`-disableMetrics`). */
  readonly hasServiceMetrics: boolean
  readonly reports: Reports
  /** The options of the start. */
  readonly options: readonly OptionSetting[]
}

export interface Reports {
  metrics(parts: readonly AdminReply['metrics'][]): Promise<string>
  statistics(parts: readonly AdminReply['statistics'][], isFull: boolean): string
  services(parts: readonly AdminReply['services'][]): string
}

const expositionType = 'text/plain; version=0.0.4; charset=utf-8'

/** The names of `GET /admin/sem` (docs/interface/administration.md#semaphores). There are no locks, so all are free. */
const semaphores = [
  'dbConnectionPool',
  'dbConnection',
  'request',
  'subCache',
  'transaction',
  'timeStat',
  'logMsg',
  'alarmMgr',
  'mqttMgr',
  'metrics',
  'connectionContext',
  'connectionEndpoints',
]

const semaphoresText = JSON.stringify(Object.fromEntries(semaphores.map(name => [name, { status: 'free' }])))

const resetText = JSON.stringify({ message: 'All statistics counter reset' })

/** The values of `level`, in lower case (docs/interface/administration.md#log-settings). */
const levels: Readonly<Record<string, LogLevel>> = {
  none: 'NONE',
  fatal: 'FATAL',
  error: 'ERROR',
  warning: 'WARN',
  warn: 'WARN',
  info: 'INFO',
  debug: 'DEBUG',
}

export class AdminHandlers {
  constructor(
    private readonly operations: AdminOperations,
    private readonly settings: AdminSettings,
  ) {}

  statistics({ parameters: { options } }: Request, reply: Reply): void {
    this.operations.all({ what: 'statistics', isReset: false }, parts => {
      reply.json(this.settings.reports.statistics(parts, options.has('fullCounters')))
    })
  }

  resetStatistics(reply: Reply): void {
    this.operations.all({ what: 'statistics', isReset: true }, () => reply.json(resetText))
  }

  cacheStatistics(reply: Reply): void {
    this.operations.first({ what: 'cache', isReset: false }, counters => {
      if (counters) reply.json(JSON.stringify(counters))
      else reply.refuse(refusals.unanswered('it is being started again'))
    })
  }

  resetCacheStatistics(reply: Reply): void {
    this.operations.all({ what: 'cache', isReset: true }, () => reply.json(resetText))
  }

  log(reply: Reply): void {
    const { level, infoPayloadBytesMax, lineBytesMax, deprecate } = this.settings.log
    const shown = { level, infoPayloadMaxSize: infoPayloadBytesMax, lineMaxSize: lineBytesMax, deprecate }
    reply.json(JSON.stringify(shown))
  }

  /**
   * Parameters are applied in the order of docs/interface/administration.md#log-settings, up to the first invalid one.
   */
  changeLog({ parameters: { values } }: Request, reply: Reply): void {
    const change: { -readonly [K in keyof LogChange]: LogChange[K] } = {}
    let refusal = ['level', 'infoPayloadMaxSize', 'lineMaxSize', 'deprecate'].some(name => values.has(name))
      ? undefined
      : refusals.logConfigMissing
    const size = (name: string): number | undefined => {
      const text = values.get(name)
      if (text === undefined || refusal) return undefined
      const bytes = /^\d{1,15}$/.test(text) ? Number(text) : 0
      if (bytes === 0) refusal = refusals.logSize(name)
      return bytes || undefined
    }
    const lineBytesMax = size('lineMaxSize')
    if (lineBytesMax !== undefined) change.lineBytesMax = lineBytesMax
    const infoPayloadBytesMax = size('infoPayloadMaxSize')
    if (infoPayloadBytesMax !== undefined) change.infoPayloadBytesMax = infoPayloadBytesMax
    const deprecate = values.get('deprecate')
    if (deprecate !== undefined && !refusal) change.deprecate = deprecate.toLowerCase() === 'true'
    const word = values.get('level')?.toLowerCase()
    const level = word !== undefined && Object.hasOwn(levels, word) ? levels[word] : undefined
    if (!refusal && level) change.level = level
    if (word !== undefined && !level) refusal ??= refusals.logLevel
    this.operations.all({ what: 'log', change }, () => {
      if (refusal) reply.refuseInShort(refusal, 'verbatim')
      else reply.taken()
    })
  }

  traces(reply: Reply): void {
    reply.json(tracesText('tracelevels', renderTraceLevels(this.settings.log.traces) || 'empty'))
  }

  setTraces(request: Request, reply: Reply): void {
    this.changeTraces(request, reply, 'tracelevels', levels => levels)
  }

  removeTraces(request: Request, reply: Reply): void {
    this.changeTraces(request, reply, 'tracelevels_removed', levels =>
      withoutTraceLevels(this.settings.log.traces, levels),
    )
  }

  clearTraces(reply: Reply): void {
    this.tellTraces(noTraces, reply, tracesText('tracelevels', 'all trace levels off'))
  }

  private changeTraces(
    { components }: Request,
    reply: Reply,
    key: string,
    change: (levels: TraceLevels) => TraceLevels,
  ): void {
    const text = components[2] as string
    const levels = parseTraceLevels(text)
    if (levels) this.tellTraces(change(levels), reply, tracesText(key, text))
    else reply.refuse(refusals.traceLevels)
  }

  private tellTraces(levels: TraceLevels, reply: Reply, text: string): void {
    this.operations.all({ what: 'log', change: { traces: [...levels] } }, () => reply.json(text))
  }

  /** `GET /admin/settings`: what `orrery config check` prints. */
  options(reply: Reply): void {
    reply.json(JSON.stringify({ options: this.settings.options }))
  }

  readonly semaphores = (reply: Reply): void => reply.json(semaphoresText)

  serviceMetrics({ parameters: { values } }: Request, reply: Reply): void {
    if (!this.settings.hasServiceMetrics) return reply.refuse(refusals.metricsOff)
    const isReset = values.get('reset') === 'true'
    this.operations.all({ what: 'services', isReset }, parts => reply.json(this.settings.reports.services(parts)))
  }

  /** `GET /metrics`, for Prometheus: all processes as one. */
  metrics(reply: Reply): void {
    this.operations.all({ what: 'metrics' }, parts => {
      this.settings.reports.metrics(parts).then(
        text => reply.text(text, expositionType),
        (error: Error) => reply.refuse(refusals.failure(error.message)),
      )
    })
  }

  resetServiceMetrics(reply: Reply): void {
    if (!this.settings.hasServiceMetrics) return reply.refuse(refusals.metricsOff)
    this.operations.all({ what: 'services', isReset: true }, () => reply.done())
  }
}

const tracesText = (key: string, text: string): string => JSON.stringify({ [key]: text })

export interface ClusterAdmin {
  status(): ClusterStatus
  numbers(): ClusterNumbers
  /** Gives all shards away, and takes none. Resolves to false if some found no new owner in time. */
  drain(): Promise<boolean>
  resume(): void
}

/** Handlers of a cluster node: members, owners, and the drain of a node. A process without a cluster has none. */
export class ClusterHandlers {
  constructor(private readonly clusterAdmin: ClusterAdmin) {}

  status(reply: Reply): void {
    reply.json(JSON.stringify(this.clusterAdmin.status()))
  }

  drain(reply: Reply): void {
    this.clusterAdmin.drain().then(isDone => {
      if (isDone) reply.done()
      else reply.refuse(refusals.handingOver)
    })
  }

  resume(reply: Reply): void {
    this.clusterAdmin.resume()
    reply.done()
  }
}
