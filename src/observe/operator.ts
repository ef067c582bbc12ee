// Carries out what operators ask of a process: to tell what it has counted, and to log otherwise (operations.md §4, §5, §7).
//
// Not here: how the parts of several processes become one answer (reports.ts).

import type { CacheStatistics, LogSettings } from '../messages/admin.js'
import type { AdminOrder, AdminTold } from '../messages/messages.js'
import { familiesOf, type Sources } from './families.js'
import type { ServiceTallies } from './service-tallies.js'
import type { StatisticsBook } from './statistics-book.js'

export interface OperatorParts {
  readonly log: LogSettings
  readonly statistics: StatisticsBook
  readonly services: ServiceTallies | undefined
  readonly sources: Sources
  /** What is known of subscriptions; counts are since the start. */
  readonly cache: () => CacheStatistics
}

export class Operator {
  private readonly parts: OperatorParts
  private cacheAtReset: Pick<CacheStatistics, 'inserts' | 'removes' | 'updates'> = {
    inserts: 0,
    removes: 0,
    updates: 0,
  }

  constructor(parts: OperatorParts) {
    this.parts = parts
  }

  obey(order: AdminOrder): AdminTold[AdminOrder['what']] {
    const { statistics, services, log } = this.parts
    switch (order.what) {
      case 'metrics':
        return familiesOf(this.parts.sources)
      case 'statistics': {
        const told = statistics.read()
        if (order.isReset) statistics.reset()
        return told
      }
      case 'cache':
        return this.cache(order.isReset)
      case 'services':
        return services?.read(order.isReset) ?? []
      case 'log': {
        const { traces, ...change } = order.change
        Object.assign(log, change, traces && { traces: new Set(traces) })
        return null
      }
    }
  }

  private cache(isReset: boolean): CacheStatistics {
    const now = this.parts.cache()
    const { inserts, removes, updates } = this.cacheAtReset
    const told = {
      ...now,
      inserts: now.inserts - inserts,
      removes: now.removes - removes,
      updates: now.updates - updates,
    }
    if (isReset) this.cacheAtReset = now
    return told
  }
}
