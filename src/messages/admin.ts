// What operators ask of a whole process, and what it tells (operations.md §4, §5, §7).

import type { LogSettings } from './log-settings.js'
import type { CacheStatistics, Statistics } from './statistics.js'

/** Something about a whole process, asked of any shard of its owner: what it has counted, how it logs (operations.md §4, §5, §7). */
export interface AdminRequest {
  readonly kind: 'admin'
  readonly order: AdminOrder
}

export type AdminOrder =
  | { readonly what: 'metrics' }
  /** `isReset`: begins to count anew, in the same step. */
  | { readonly what: 'statistics' | 'cache' | 'services'; readonly isReset: boolean }
  | { readonly what: 'log'; readonly change: LogChange }

/** What is to be changed of how the process logs; undefined: stays. */
export type LogChange = Partial<Omit<LogSettings, 'traces'>> & { readonly traces?: readonly number[] }

/** What a process tells, by what it was asked for. */
export interface AdminTold {
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
  /** How samples with the same labels become one: counts of several processes add up, what all know alike is taken once. */
  readonly aggregator: 'sum' | 'max'
  readonly values: readonly MetricSample[]
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
