// Counts the connections of clients that the server has closed by itself, by reason, for `GET /metrics`.
//
// Not here: when a connection is closed (http/connections.ts). What uWebSockets.js closes by its own timers, it does not report.

import type { Family } from '../domain/exposition.js'
import type { DropReason } from '../ports.js'

export class ConnectionTallies {
  private readonly counts: Record<DropReason, number> = { room: 0, full: 0, address: 0, head: 0, body: 0 }

  readonly onDropped = (reason: DropReason): void => {
    this.counts[reason]++
  }

  families(): readonly Family[] {
    return [
      {
        name: 'orrery_http_connections_dropped_total',
        type: 'counter',
        help: 'Connections of clients that the server has closed, by reason.',
        join: 'sum',
        samples: Object.entries(this.counts).map(([reason, value]) => ({ labels: { reason }, value })),
      },
    ]
  }
}
