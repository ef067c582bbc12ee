// Counts of streams, by transport, kind of event and end.

import type { MetricFamily } from '../messages/admin.js'
import { byLabel, counter, gauge } from './metric-family.js'

const kinds = [
  'entityCreate',
  'entityUpdate',
  'entityChange',
  'entityDelete',
  'entityLeave',
  'snapshot',
  'bookmark',
  'gap',
]

export class StreamTallies {
  private readonly open: Record<string, number> = { sse: 0, websocket: 0 }
  private readonly opened: Record<string, number> = { sse: 0, websocket: 0 }
  private readonly closed: Record<string, number> = { client: 0, slow: 0, stopping: 0, refused: 0, error: 0 }
  private readonly events: Record<string, number> = Object.fromEntries(kinds.map(kind => [kind, 0]))
  private coalesced = 0
  private lost = 0

  private waiting: () => number = () => 0

  watch(waiting: () => number): void {
    this.waiting = waiting
  }

  begin(transport: string): void {
    add(this.open, transport, 1)
    add(this.opened, transport, 1)
  }

  end(transport: string, by: string): void {
    add(this.open, transport, -1)
    add(this.closed, by, 1)
  }

  event(kind: string): void {
    add(this.events, kind, 1)
  }

  fold(count: number): void {
    this.coalesced += count
  }

  lose(): void {
    this.lost++
  }

  families(): readonly MetricFamily[] {
    return [
      byLabel('orrery_streams', 'gauge', 'Open streams.', 'transport', this.open),
      byLabel('orrery_streams_opened_total', 'counter', 'Streams that were opened.', 'transport', this.opened),
      byLabel('orrery_streams_closed_total', 'counter', 'Streams that have ended, by cause.', 'cause', this.closed),
      byLabel('orrery_stream_events_total', 'counter', 'Events for readers of streams, by kind.', 'kind', this.events),
      gauge('orrery_stream_waiting_bytes', 'Bytes of events that wait for readers.', this.waiting()),
      counter('orrery_stream_coalesced_total', 'Events that were folded for slow readers.', this.coalesced),
      counter(
        'orrery_ngsi_proxy_lost_total',
        'Notifications for event sources that no client read at the moment.',
        this.lost,
      ),
    ]
  }
}

function add(counts: Record<string, number>, name: string, change: number): void {
  counts[name] = (counts[name] ?? 0) + change
}
