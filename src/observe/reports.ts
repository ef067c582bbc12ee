// What several processes have counted, as one text: what `http` needs for its administration paths (`Reports` of http/admin.ts).

import type { AdminTold } from '../messages/admin.js'
import { renderMetrics } from './exposition.js'
import { renderServiceMetrics } from './service-metrics.js'
import { joinStatistics, renderStatistics } from './statistics.js'

export const adminReports = {
  metrics: renderMetrics,
  statistics: (parts: readonly AdminTold['statistics'][], isFull: boolean): string =>
    renderStatistics(joinStatistics(parts), isFull),
  services: (parts: readonly AdminTold['services'][]): string => renderServiceMetrics(parts.flat()),
}
