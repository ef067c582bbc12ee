// The numbers of the broker, each with a line of the last 15 minutes (state/metric-history.ts).

import { useEffect } from 'preact/hooks'
import { quantile } from '../interface/exposition.js'
import { type ChartPoint, LineChart } from '../parts/chart.js'
import { CurlNote, Problem } from '../parts/notes.js'
import { bytesText, number, secondsText } from '../parts/value-text.js'
import type { ViewName } from '../state/address.js'
import type { ConsoleParts } from '../state/console-parts.js'
import { historyMs, type MetricsSample, sampleMs } from '../state/metric-history.js'
import { useValue } from '../state/observable.js'
import { useReading } from '../state/reading.js'

interface VersionShape {
  readonly orrery?: { readonly version: string; readonly runtime: string }
  readonly orion?: { readonly uptime: string }
}

interface ShownNumber {
  readonly name: string
  /** The value at a sample, with the one before it; undefined: there is none. */
  readonly valueAt: (sample: MetricsSample, before: MetricsSample | undefined) => number | undefined
  readonly text: (value: number) => string
  /** The view behind it; undefined: there is none. */
  readonly view?: ViewName
}

const gauge =
  (...names: string[]) =>
  ({ sums }: MetricsSample): number | undefined =>
    names.some(name => sums.has(name)) ? names.reduce((sum, name) => sum + (sums.get(name) ?? 0), 0) : undefined

/** By second. A counter that is smaller than before has begun anew. */
const rate =
  (total: (sample: MetricsSample) => number | undefined) =>
  (sample: MetricsSample, before: MetricsSample | undefined): number | undefined => {
    if (!before) return undefined
    const difference = (total(sample) ?? 0) - (total(before) ?? 0)
    return difference < 0 ? undefined : difference / ((sample.atMs - before.atMs) / 1000)
  }

const share =
  (histogram: string, part: number) =>
  ({ histograms }: MetricsSample, before: MetricsSample | undefined): number | undefined =>
    before && quantile(before.histograms.get(histogram), histograms.get(histogram), part)

const wholeText = (value: number): string => number(value)
const rateText = (value: number): string => `${number(value, 1)}/s`
const boundText = (value: number): string => (Number.isFinite(value) ? `≤ ${secondsText(value)}` : 'very long')

const failedNotifications = gauge(
  'orrery_notifications_failed_total',
  'orrery_notifications_dead_total',
  'orrery_notifications_dropped_total',
)

const shownNumbers: readonly ShownNumber[] = [
  { name: 'Entities', valueAt: gauge('orrery_entities'), text: wholeText, view: 'entities' },
  { name: 'Subscriptions', valueAt: gauge('orrery_subscriptions'), text: wholeText, view: 'subscriptions' },
  { name: 'Requests', valueAt: rate(gauge('orrery_http_requests_total')), text: rateText },
  { name: 'Failed requests (5xx)', valueAt: rate(sample => sample.failedRequests), text: rateText },
  { name: 'Notifications', valueAt: rate(gauge('orrery_notifications_sent_total')), text: rateText },
  { name: 'Failed notifications', valueAt: rate(failedNotifications), text: rateText, view: 'subscriptions' },
  { name: 'Requests, p50', valueAt: share('orrery_http_request_duration_seconds', 0.5), text: boundText },
  { name: 'Requests, p99', valueAt: share('orrery_http_request_duration_seconds', 0.99), text: boundText },
  { name: 'Commit, p99', valueAt: share('orrery_commit_sync_seconds', 0.99), text: boundText },
  { name: 'Event loop delay, p99', valueAt: share('orrery_event_loop_delay_seconds', 0.99), text: boundText },
  { name: 'Memory', valueAt: gauge('process_resident_memory_bytes'), text: bytesText },
  { name: 'Streams', valueAt: gauge('orrery_streams'), text: wholeText },
  { name: 'Dead letters', valueAt: gauge('orrery_dead_letters'), text: wholeText, view: 'subscriptions' },
]

/** A value belongs to the interval that ends with its sample. */
function pointsOf(samples: readonly MetricsSample[], { valueAt }: ShownNumber): ChartPoint[] {
  return samples.flatMap((sample, at) => {
    const value = valueAt(sample, samples[at - 1])
    return value === undefined || !Number.isFinite(value) ? [] : [{ atMs: sample.atMs, value }]
  })
}

const metricsRequest = { method: 'GET', path: 'metrics' } as const

export function OverviewView({ client, bar, metrics }: ConsoleParts) {
  useEffect(() => metrics.begin(), [metrics])
  const samples = useValue(metrics.samples)
  const problem = useValue(metrics.problem)
  const { json } = useReading<VersionShape>(client, {
    method: 'GET',
    path: 'version',
    query: { options: 'libVersions' },
  })
  const latest = samples.at(-1)
  return (
    <section aria-labelledby="view-title">
      <h1 id="view-title">Overview</h1>
      <VersionNote json={json} />
      <Problem problem={problem} />
      {latest && (
        <ul class="numbers">
          {shownNumbers.map(shown => (
            <NumberBox key={shown.name} shown={shown} samples={samples} link={shown.view && bar.link(shown.view)} />
          ))}
        </ul>
      )}
      <p class="quiet">
        {latest
          ? `A line has at most the last 15 minutes, from when this page was opened: ${number(samples.length)} samples, one every ${number(sampleMs / 1000)} s. They are about all tenants.`
          : problem
            ? ''
            : 'reading…'}
      </p>
      <CurlNote client={client} request={metricsRequest} />
    </section>
  )
}

function VersionNote({ json }: { readonly json: VersionShape | undefined }) {
  const { orrery, orion } = json ?? {}
  if (!orrery || !orion) return null
  return (
    <p>
      Orrery {orrery.version} on {orrery.runtime}, up {orion.uptime}
    </p>
  )
}

function NumberBox({
  shown,
  samples,
  link,
}: {
  readonly shown: ShownNumber
  readonly samples: readonly MetricsSample[]
  readonly link: string | undefined
}) {
  const points = pointsOf(samples, shown)
  const latest = points.at(-1)
  const text = latest ? shown.text(latest.value) : '–'
  const highest = Math.max(0, ...points.map(({ value }) => value))
  return (
    <li>
      <span class="quiet">{link ? <a href={link}>{shown.name}</a> : shown.name}</span>
      <strong>{text}</strong>
      {latest && (
        <LineChart
          points={points}
          nowMs={latest.atMs}
          spanMs={historyMs}
          label={`${shown.name} of the last 15 minutes: now ${text}, at most ${shown.text(highest)}`}
        />
      )}
    </li>
  )
}
