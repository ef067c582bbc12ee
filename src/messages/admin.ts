// What operators ask of a whole process and what it tells, and how it logs
// (docs/interface/administration.md#statistics, docs/interface/administration.md#log-settings,
// docs/interface/administration.md#metrics-by-tenant).
//
// Trace levels are sets of numbers from 0 to 255: which of the lines at DEBUG are written
// (docs/interface/administration.md#trace-levels; what is traced at which level: README, "Logs").
//
// Not here: the code that counts (observe/statistics.ts), the JSON of statistics (observe/statistics.ts).

/**
 * Something about a whole process, asked of any shard of its owner: what it has counted, how it logs
 * (docs/interface/administration.md#statistics, docs/interface/administration.md#log-settings,
 * docs/interface/administration.md#metrics-by-tenant).
 */
export interface AdminRequest {
  readonly kind: 'admin'
  readonly order: AdminCommand
}

export type AdminCommand =
  | { readonly what: 'metrics' }
  /** `isReset`: begins to count anew, in the same step. */
  | { readonly what: 'statistics' | 'cache' | 'services'; readonly isReset: boolean }
  | { readonly what: 'log'; readonly change: LogChange }

/** What is to be changed of how the process logs; undefined: stays. */
export type LogChange = Partial<Omit<LogSettings, 'traces'>> & { readonly traces?: readonly number[] }

/** What a process tells, by what it was asked for. */
export interface AdminReply {
  readonly metrics: readonly MetricFamily[]
  readonly statistics: Statistics
  readonly cache: CacheStatistics
  readonly services: readonly ServiceTally[]
  readonly log: null
}

/** A metric of Prometheus, in the form in which prom-client hands metrics from one process to another. */
export interface MetricFamily {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  /**
   * How samples with the same labels become one: counts of several processes add up, what all know alike is taken once.
   */
  readonly aggregator: 'sum' | 'max' | 'min'
  readonly values: readonly MetricSample[]
}

/** What is known of the files of certificates with one use. */
export interface CertificateNumbers {
  readonly use: 'https' | 'cluster' | 'log' | 'receivers'
  /** When the certificate ends that new connections get; undefined: there are authorities only. */
  readonly endMs: number | undefined
  /** How often the files had something new that is used since, or cannot be used. */
  readonly renewed: number
  readonly refused: number
}

export interface MetricSample {
  readonly labels: MetricLabels
  readonly value: number
  /** The parts of a histogram have names of their own; undefined: the name of the family. */
  readonly metricName?: string
}

export type MetricLabels = Readonly<Record<string, string>>

/** What is counted for one tenant and path, since the last reset. */
export interface ServiceTally {
  readonly service: string
  readonly path: string
  incomingTransactions: number
  incomingTransactionErrors: number
  incomingTransactionRequestSize: number
  incomingTransactionResponseSize: number
  /** Of all requests together; a mean when it is rendered. */
  serviceSeconds: number
  outgoingTransactions: number
  outgoingTransactionErrors: number
  outgoingTransactionRequestSize: number
  outgoingTransactionResponseSize: number
}

// The statistics of a process, as it answers them to `GET /statistics` and `GET /cache/statistics`
// (docs/interface/administration.md#statistics). Times are seconds. `mongo...` are the names of the reference: they
// mean the store, whatever it is.

/** Counts by route and verb. */
export type RequestCounts = Readonly<Record<string, Readonly<Record<string, number>>>>

export interface StatisticsCounters {
  readonly jsonRequests: number
  readonly textRequests: number
  readonly noPayloadRequests: number
  readonly requests: RequestCounts
  readonly missedVerb: number
  readonly invalidRequests: number
  readonly notificationsSent: number
  readonly deprecatedFeatures: Readonly<Record<DeprecatedFeature, number>>
}

export type DeprecatedFeature = 'ngsiv1Requests' | 'ngsiv1Forwarding' | 'ngsiv1NotifFormat' | 'geoFormat'

export interface Timing {
  readonly jsonV2Parse: number
  readonly mongoWriteWait: number
  readonly total: number
}

export interface QueueStatistics {
  readonly in: number
  readonly out: number
  readonly reject: number
  readonly sentOk: number
  readonly sentError: number
  readonly timeInQueue: number
  readonly size: number
}

/** What one process tells; a block that was not asked for at start is undefined. */
export interface Statistics {
  readonly uptimeS: number
  /** Since the start or the last reset. */
  readonly intervalS: number
  readonly counters?: StatisticsCounters | undefined
  readonly hasSemWait: boolean
  readonly timing?: { readonly accumulated: Timing; readonly last: Timing } | undefined
  readonly notifQueue?: QueueStatistics | undefined
  readonly simulatedNotifications: number
}

export interface CacheStatistics {
  /** Of subscriptions, joined; or the words that there are too many. */
  readonly ids: string
  readonly refresh: number
  readonly inserts: number
  readonly removes: number
  readonly updates: number
  readonly items: number
}

export type LogLevel = 'NONE' | 'FATAL' | 'ERROR' | 'WARN' | 'INFO' | 'DEBUG'

/** How the process logs, as operators may change it while it runs (docs/interface/administration.md#log-settings). */
export interface LogSettings {
  level: LogLevel
  /** Bytes of a payload that a line at INFO shows. */
  infoPayloadBytesMax: number
  /** Longer lines are replaced by a short text. */
  lineBytesMax: number
  /** Whether deprecated usages are told of. */
  deprecate: boolean
  /** Which of the lines at DEBUG are written that have a number. */
  traces: TraceLevels
}

export type TraceLevels = ReadonlySet<number>

export const noTraces: TraceLevels = new Set()

export const traceLevelMax = 255

/** The levels of a text such as `60,80-90`; undefined when it is no such list. */
export function parseTraceLevels(text: string): TraceLevels | undefined {
  const levels = new Set<number>()
  for (const range of text.split(',')) {
    const ends = /^(\d{1,3})(?:-(\d{1,3}))?$/.exec(range)
    const [from, to] = [Number(ends?.[1]), Number(ends?.[2] ?? ends?.[1])]
    if (!ends || from > to || to > traceLevelMax) return undefined
    for (let level = from; level <= to; level++) levels.add(level)
  }
  return levels
}

/** The levels as a text: `19, 21-25`; '' for none. */
export function renderTraceLevels(levels: TraceLevels): string {
  const ranges: string[] = []
  for (let level = 0; level <= traceLevelMax; level++) {
    if (!levels.has(level)) continue
    const from = level
    while (levels.has(level + 1)) level++
    ranges.push(from === level ? `${from}` : `${from}-${level}`)
  }
  return ranges.join(', ')
}

/** The levels without some of them. */
export const withoutTraceLevels = (levels: TraceLevels, gone: TraceLevels): TraceLevels =>
  new Set([...levels].filter(level => !gone.has(level)))
