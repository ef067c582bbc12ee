// Executes the orders of operators to a process: reporting its counts, and changing its log settings
// (docs/interface/administration.md#statistics, docs/interface/administration.md#log-settings,
// docs/interface/administration.md#metrics-by-tenant). And makes one text of the reports of several processes.

import type { CacheStatistics, LogSettings } from '../messages/admin.js'
import type { AdminCommand, AdminReply } from '../messages/messages.js'
import { familiesOf, type Sources } from './families.js'
import { renderMetrics } from './metric-family.js'
import type { RegistrationTallies } from './registration-tallies.js'
import { renderServiceMetrics, type ServiceTallies } from './service-metrics.js'
import { joinStatistics, renderStatistics, type StatisticsBook } from './statistics.js'

export interface OperatorParts {
  readonly log: LogSettings
  readonly statistics: StatisticsBook
  readonly services: ServiceTallies | undefined
  readonly registrations: RegistrationTallies
  readonly sources: Sources
  /** Numbers about subscriptions; counts are since the start. */
  readonly cache: () => CacheStatistics
}

export class ProcessReports {
  private cacheAtReset: Pick<CacheStatistics, 'inserts' | 'removes' | 'updates'> = {
    inserts: 0,
    removes: 0,
    updates: 0,
  }

  constructor(private readonly parts: OperatorParts) {}

  execute(order: AdminCommand): AdminReply[AdminCommand['what']] {
    const { statistics, services, registrations, log } = this.parts
    switch (order.what) {
      case 'metrics':
        return familiesOf(this.parts.sources)
      case 'statistics': {
        const counts = statistics.read()
        if (order.isReset) statistics.reset()
        return counts
      }
      case 'cache':
        return this.cache(order.isReset)
      case 'services':
        return services?.read(order.isReset) ?? []
      case 'forwarding':
        return registrations.of(order.registrations)
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
    const sinceReset = {
      ...now,
      inserts: now.inserts - inserts,
      removes: now.removes - removes,
      updates: now.updates - updates,
    }
    if (isReset) this.cacheAtReset = now
    return sinceReset
  }
}

/** The counts of several processes, as one text: `Reports` of http/admin.ts. */
export const adminReports = {
  metrics: renderMetrics,
  statistics: (parts: readonly AdminReply['statistics'][], isFull: boolean): string =>
    renderStatistics(joinStatistics(parts), isFull),
  services: (parts: readonly AdminReply['services'][]): string => renderServiceMetrics(parts.flat()),
}
