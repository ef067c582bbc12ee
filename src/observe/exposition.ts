// The text of `GET /metrics`: the metrics of all processes as one, merged and rendered by prom-client.
//
// prom-client counts nothing here: its two calls would cost each request 0.46 us, a plain tally costs 0.004 us. families.ts
// reads the tallies at each scrape. The first scrape loads prom-client, so that a start does not wait for it.
//
// Not here: which metrics there are (families.ts; README, "Metrics").

import type { MetricFamily } from '../messages/admin.js'
import { single } from './metric-family.js'

/** The text of the metrics of several processes. Leaves out metrics without samples. */
export async function renderMetrics(parts: readonly (readonly MetricFamily[])[]): Promise<string> {
  const { AggregatorRegistry } = await import('prom-client')
  const help = 'Processes that have answered for these metrics.'
  const all = [...parts, [single('orrery_workers', 'gauge', help, parts.length)]]
  return AggregatorRegistry.aggregate(all.map(part => part.filter(({ values }) => values.length > 0))).metrics()
}
