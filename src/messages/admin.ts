// What operators ask of a whole process, and what it tells (operations.md §4, §5, §7).

import type { Family } from '../domain/exposition.js'
import type { ServiceTally } from '../domain/service-metrics.js'
import type { CacheStatistics, Statistics } from '../domain/statistics.js'
import type { LogSettings } from '../ports.js'

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
  readonly metrics: readonly Family[]
  readonly statistics: Statistics
  readonly cache: CacheStatistics
  readonly services: readonly ServiceTally[]
  readonly log: null
}
