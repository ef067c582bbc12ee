// Counts for `GET /metrics`: requests by method, route, status and time, and connections that the server has closed, by
// reason.
//
// Routes are ours and few. A method or a path that a client has made up is counted as `other`, so that the number of
// series does not depend on clients.
//
// Not here: when a connection is closed (http/connections.ts). uWebSockets.js does not report connections that it
// closes by its own timers.

import { emptyHistogram, type Histogram, observe } from '../domain/histogram.js'
import type { MetricFamily } from '../messages/admin.js'
import type { AnsweredRequest, DropReason } from '../ports.js'
import { byLabel, family, histograms } from './metric-family.js'

const boundsS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

const methods = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD'])

const statusesMax = 600

interface Tally {
  readonly route: string
  readonly method: string
  readonly statuses: Float64Array
  readonly seconds: Histogram
}

export class RequestTallies {
  private readonly tallies = new Map<string, Map<string, Tally>>()
  /** Most requests are like the one before. */
  private last: Tally | undefined

  // [hot] Once per request.
  onAnswered({ method, route, status, durationMs }: AnsweredRequest): void {
    const { last } = this
    const tally = last && last.route === route && last.method === method ? last : this.tallyOf(route, method)
    this.last = tally
    tally.statuses[status]!++
    observe(tally.seconds, durationMs / 1000)
  }

  private tallyOf(route: string, method: string): Tally {
    if (!methods.has(method) && method !== 'other') return this.tallyOf(route, 'other')
    let ofRoute = this.tallies.get(route)
    if (!ofRoute) {
      ofRoute = new Map()
      this.tallies.set(route, ofRoute)
    }
    let tally = ofRoute.get(method)
    if (!tally) {
      tally = { route, method, statuses: new Float64Array(statusesMax), seconds: emptyHistogram(boundsS) }
      ofRoute.set(method, tally)
    }
    return tally
  }

  families(): readonly MetricFamily[] {
    const all = [...this.tallies.values()].flatMap(ofRoute => [...ofRoute.values()])
    const labelsOf = ({ method, route }: Tally) => ({ method, route: route || 'other' })
    return [
      family(
        'orrery_http_requests_total',
        'counter',
        'Requests answered, by method, route and status.',
        all.flatMap(tally =>
          [...tally.statuses.entries()]
            .filter(([, value]) => value > 0)
            .map(([status, value]) => ({ labels: { ...labelsOf(tally), status: String(status) }, value })),
        ),
      ),
      histograms(
        'orrery_http_request_duration_seconds',
        'Time from the head of a request to its answer.',
        all.map(tally => ({ labels: labelsOf(tally), histogram: tally.seconds })),
      ),
    ]
  }
}

/** Connections that are open at one server. */
export interface OpenCount {
  readonly server: string
  readonly isTls: boolean
  readonly count: number
}

export class ConnectionTallies {
  private readonly counts: Record<DropReason, number> = {
    room: 0,
    full: 0,
    address: 0,
    head: 0,
    body: 0,
    certificate: 0,
  }

  private open: () => readonly OpenCount[] = () => []

  /** Sets the source of the number of open connections. */
  watch(open: () => readonly OpenCount[]): void {
    this.open = open
  }

  readonly onDropped = (reason: DropReason): void => {
    this.counts[reason]++
  }

  families(): readonly MetricFamily[] {
    const help = 'Connections of clients that the server has closed, by reason.'
    const open = this.open().map(({ server, isTls, count }) => ({
      labels: { server, tls: isTls ? 'yes' : 'no' },
      value: count,
    }))
    return [
      family('orrery_http_connections', 'gauge', 'Connections of clients that are open, by server.', open),
      byLabel('orrery_http_connections_dropped_total', 'counter', help, 'reason', this.counts),
    ]
  }
}
