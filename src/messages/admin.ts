// Requests of operators to a whole process, and its replies: statistics, metrics, log settings
// (docs/interface/administration.md#statistics, docs/interface/administration.md#log-settings,
// docs/interface/administration.md#metrics-by-tenant).
//
// And the counts of forwarded requests that a client sees (docs/interface/registrations.md#forwarding-information).
//
// Trace levels are sets of numbers from 0 to 255. They select the lines at DEBUG that are written
// (docs/interface/administration.md#trace-levels; the levels of all traces: docs/operations/logs.md).
//
// Not here: the code that counts (observe/statistics.ts), the JSON of statistics (observe/statistics.ts).

import type { ForwardingOutcome } from '../domain/providers/forwarding-outcome.js'

/**
 * A request to a whole process, sent to any shard of its owner: its counters or its log settings
 * (docs/interface/administration.md#statistics, docs/interface/administration.md#log-settings,
 * docs/interface/administration.md#metrics-by-tenant).
 */
export interface AdminRequest {
  readonly kind: 'admin'
  readonly order: AdminCommand
}

export type AdminCommand =
  | { readonly what: 'metrics' }
  /** `isReset`: sets the counters to zero in the same step. */
  | { readonly what: 'statistics' | 'cache' | 'services'; readonly isReset: boolean }
  /** The counts of these registrations. */
  | { readonly what: 'forwarding'; readonly registrations: readonly string[] }
  | { readonly what: 'log'; readonly change: LogChange }

/** Changes of a process's log settings; undefined: unchanged. */
export type LogChange = Partial<Omit<LogSettings, 'traces'>> & { readonly traces?: readonly number[] }

/** The replies of a process, by the command. */
export interface AdminReply {
  readonly metrics: readonly MetricFamily[]
  readonly statistics: Statistics
  readonly cache: CacheStatistics
  readonly services: readonly ServiceTally[]
  readonly forwarding: readonly ForwardingOutcome[]
  readonly log: null
}

/** A Prometheus metric, in the form in which prom-client passes metrics from one process to another. */
export interface MetricFamily {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  /**
   * How samples with the same labels are merged. Counts of several processes are added; a value that all of them know
   * alike is used once.
   */
  readonly aggregator: 'sum' | 'max' | 'min'
  readonly values: readonly MetricSample[]
}

/** The state of the certificate files of one use. */
export interface CertificateNumbers {
  readonly use: 'https' | 'cluster' | 'log' | 'receivers'
  /** The end of the certificate that new connections get; undefined: there are only authorities. */
  readonly endMs: number | undefined
  /** How often the files had new content: content that is used since, and content that cannot be used. */
  readonly renewed: number
  readonly refused: number
}

export interface MetricSample {
  readonly labels: MetricLabels
  readonly value: number
  /** The parts of a histogram have their own names; undefined: the name of the family. */
  readonly metricName?: string
}

export type MetricLabels = Readonly<Record<string, string>>

/** The counters of one tenant and path since the last reset. */
export interface ServiceTally {
  readonly service: string
  readonly path: string
  incomingTransactions: number
  incomingTransactionErrors: number
  incomingTransactionRequestSize: number
  incomingTransactionResponseSize: number
  /** The sum over all requests. It is rendered as a mean. */
  serviceSeconds: number
  outgoingTransactions: number
  outgoingTransactionErrors: number
  outgoingTransactionRequestSize: number
  outgoingTransactionResponseSize: number
}

// The statistics of a process, as `GET /statistics` and `GET /cache/statistics` return them
// (docs/interface/administration.md#statistics). Times are seconds. The names `mongo...` are from the reference; they
// mean the store of this broker, whatever its engine.

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

/** The statistics of one process. A block that no option enabled at start is undefined. */
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
  /** The ids of subscriptions, joined; or a text that there are too many. */
  readonly ids: string
  readonly refresh: number
  readonly inserts: number
  readonly removes: number
  readonly updates: number
  readonly items: number
}

/** An option that has an effect, as operators see it. */
export interface OptionSetting {
  readonly name: string
  /** A secret is masked. */
  readonly value: string
  /** Where it was given, or `default`, or `follows from others`. */
  readonly source: string
}

export type LogLevel = 'NONE' | 'FATAL' | 'ERROR' | 'WARN' | 'INFO' | 'DEBUG'

/**
 * The log settings of the process, which operators may change while it runs
 * (docs/interface/administration.md#log-settings).
 */
export interface LogSettings {
  level: LogLevel
  /** Bytes of a payload that a line at INFO shows. */
  infoPayloadBytesMax: number
  /** Longer lines are replaced by a short text. */
  lineBytesMax: number
  /** Whether deprecated usages are logged. */
  deprecate: boolean
  /** The numbers of the DEBUG lines that are written, among those that have a number. */
  traces: TraceLevels
}

export type TraceLevels = ReadonlySet<number>

export const noTraces: TraceLevels = new Set()

export const traceLevelMax = 255

/** Parses a text such as `60,80-90`. undefined: it is no such list. */
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

/** Renders the levels as a text: `19, 21-25`; '' for none. */
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

/** The levels without those of `gone`. */
export const withoutTraceLevels = (levels: TraceLevels, gone: TraceLevels): TraceLevels =>
  new Set([...levels].filter(level => !gone.has(level)))
