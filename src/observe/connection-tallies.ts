// Counts the connections of clients that the server has closed by itself, by reason, for `GET /metrics`.
//
// Not here: when a connection is closed (http/connections.ts). What uWebSockets.js closes by its own timers, it does not report.

import type { MetricFamily } from '../messages/admin.js'
import type { DropReason } from '../ports.js'
import { byLabel } from './metric-family.js'

export class ConnectionTallies {
  private readonly counts: Record<DropReason, number> = { room: 0, full: 0, address: 0, head: 0, body: 0 }

  readonly onDropped = (reason: DropReason): void => {
    this.counts[reason]++
  }

  families(): readonly MetricFamily[] {
    const help = 'Connections of clients that the server has closed, by reason.'
    return [byLabel('orrery_http_connections_dropped_total', 'counter', help, 'reason', this.counts)]
  }
}
