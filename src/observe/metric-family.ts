// Metrics made of plain numbers and histograms (messages/admin.ts, `MetricFamily`), and the text of `GET /metrics`: the
// metrics of all processes as one, merged and rendered by prom-client.
//
// prom-client counts nothing here: its two calls would cost each request 0.46 us, while a plain tally costs 0.004 us.
// families.ts reads the tallies at each scrape. The first scrape loads prom-client, so that a start does not wait for
// it.
//
// Not here: the list of metrics (families.ts).

import type { Histogram } from '../domain/histogram.js'
import type { MetricFamily, MetricLabels, MetricSample } from '../messages/admin.js'

type PlainType = Exclude<MetricFamily['type'], 'histogram'>

/** A metric with any number of samples. By default, a sample that several processes have is added up. */
export const family = (
  name: string,
  type: PlainType,
  help: string,
  values: readonly MetricSample[],
  aggregator: MetricFamily['aggregator'] = 'sum',
): MetricFamily => ({ name, type, help, aggregator, values })

export const gauge = (
  name: string,
  help: string,
  value: number,
  aggregator?: MetricFamily['aggregator'],
  labels: MetricLabels = {},
): MetricFamily => family(name, 'gauge', help, [{ labels, value }], aggregator)

export const counter = (name: string, help: string, value: number, labels: MetricLabels = {}): MetricFamily =>
  family(name, 'counter', help, [{ labels, value }])

export const byLabel = (
  name: string,
  type: PlainType,
  help: string,
  label: string,
  values: Readonly<Record<string, number>>,
): MetricFamily =>
  family(
    name,
    type,
    help,
    Object.entries(values).map(([of, value]) => ({ labels: { [label]: of }, value })),
  )

export const histograms = (
  name: string,
  help: string,
  parts: readonly { readonly labels: MetricLabels; readonly histogram: Histogram }[],
): MetricFamily => ({
  name,
  type: 'histogram',
  help,
  aggregator: 'sum',
  values: parts.flatMap(({ labels, histogram }) => samplesOf(name, labels, histogram)),
})

/** The samples of a histogram in Prometheus: cumulative buckets, the sum and the count. */
function samplesOf(name: string, labels: MetricLabels, { bounds, counts, sum }: Histogram): readonly MetricSample[] {
  let count = 0
  const buckets = counts.map((ofBucket, at) => {
    count += ofBucket
    const le = at < bounds.length ? String(bounds[at]) : '+Inf'
    return { labels: { ...labels, le }, value: count, metricName: `${name}_bucket` }
  })
  return [
    ...buckets,
    { labels, value: sum, metricName: `${name}_sum` },
    { labels, value: count, metricName: `${name}_count` },
  ]
}

/** The text of the metrics of several processes. Leaves out metrics without samples. */
export async function renderMetrics(parts: readonly (readonly MetricFamily[])[]): Promise<string> {
  const { AggregatorRegistry } = await import('prom-client')
  const help = 'Processes that have answered for these metrics.'
  const all = [...parts, [gauge('orrery_workers', help, parts.length)]]
  return AggregatorRegistry.aggregate(all.map(part => part.filter(({ values }) => values.length > 0))).metrics()
}
