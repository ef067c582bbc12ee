// Reads the text format of Prometheus: sums of a metric, and the buckets of a histogram. Labels other than the bounds of
// buckets do not matter here, so that the samples of several workers or routes become one.

export interface MetricSums {
  /** By the name of the sample. */
  readonly sums: ReadonlyMap<string, number>
  /** By the name of the histogram: counts by upper bound, in ascending order. */
  readonly histograms: ReadonlyMap<string, ReadonlyMap<number, number>>
  /** Requests that were answered with a status from 500 on. */
  readonly failedRequests: number
}

const sample = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/

export function readMetrics(text: string): MetricSums {
  const sums = new Map<string, number>()
  const histograms = new Map<string, Map<number, number>>()
  let failedRequests = 0
  for (const line of text.split('\n')) {
    const [, name, labels = '', digits] = sample.exec(line) ?? []
    if (name === undefined) continue
    const value = Number(digits)
    sums.set(name, (sums.get(name) ?? 0) + value)
    if (name === 'orrery_http_requests_total' && labels.includes('status="5')) failedRequests += value
    const bound = /(?:^|,)le="([^"]*)"/.exec(labels)?.[1]
    if (bound === undefined || !name.endsWith('_bucket')) continue
    const histogram = name.slice(0, -'_bucket'.length)
    const buckets = histograms.get(histogram) ?? new Map<number, number>()
    const upper = bound === '+Inf' ? Number.POSITIVE_INFINITY : Number(bound)
    buckets.set(upper, (buckets.get(upper) ?? 0) + value)
    histograms.set(histogram, buckets)
  }
  return { sums, histograms, failedRequests }
}

/**
 * The bound below which the part `share` of the observations between two samples lies; undefined: there were none. It is
 * the upper bound of a bucket, so the true value may be lower.
 */
export function quantile(
  before: ReadonlyMap<number, number> | undefined,
  after: ReadonlyMap<number, number> | undefined,
  share: number,
): number | undefined {
  if (!after) return undefined
  const counts = [...after].map(([bound, count]) => [bound, count - (before?.get(bound) ?? 0)] as const)
  const all = counts.at(-1)?.[1] ?? 0
  if (all <= 0) return undefined
  return counts.find(([, count]) => count >= all * share)?.[0]
}
