// Makes metrics out of plain numbers and histograms (messages/admin.ts, `MetricFamily`).
//
// Not here: which metrics there are (families.ts), their text (exposition.ts).

import type { Histogram, MetricFamily, MetricLabels, MetricSample } from '../messages/admin.js'

type PlainType = Exclude<MetricFamily['type'], 'histogram'>

/** A metric with any number of samples. Processes that have a sample in common add it up. */
export const family = (
  name: string,
  type: PlainType,
  help: string,
  values: readonly MetricSample[],
  aggregator: MetricFamily['aggregator'] = 'sum',
): MetricFamily => ({ name, type, help, aggregator, values })

/** A metric with one sample. */
export const single = (
  name: string,
  type: PlainType,
  help: string,
  value: number,
  aggregator?: MetricFamily['aggregator'],
  labels: MetricLabels = {},
): MetricFamily => family(name, type, help, [{ labels, value }], aggregator)

/** A metric with a sample for each value of one label. */
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

/** A metric with some histograms, which have the same bounds. */
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

/** The samples that Prometheus knows of a histogram: cumulative buckets, the sum and the count. */
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
