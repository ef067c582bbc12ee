// The longest delays of the server's event loop during reads, updates and creates, measured from outside.
//
// A light request (`GET /v2`, no store, no shard) is sent every 2 ms while the generator runs the mixed workload. Its
// latency is the wait for the event loop.
//
// The bare server is measured the same way: its result is the machine's share (a busy core, other programs), not
// Orrery's.

import { drive, type Load } from './generator.js'
import { percentile } from './report.js'
import { startSampler } from './sampler.js'

export interface Pauses {
  readonly samples: number
  readonly p50: number
  readonly p99: number
  readonly p999: number
  readonly max: number
  /** Requests per second of the mixed load meanwhile. */
  readonly rate: number
}

/** Milliseconds, under `load.workload`; the first URL is sampled. */
export async function pauses(load: Load): Promise<Pauses> {
  const sampler = await startSampler(load.urls[0]!, () => 'GET /v2 HTTP/1.1\r\nHost: bench\r\n\r\n')
  const outcome = await drive(load)
  const took = await sampler.end()
  return {
    samples: took.length,
    p50: percentile(took, 0.5),
    p99: percentile(took, 0.99),
    p999: percentile(took, 0.999),
    max: percentile(took, 1),
    rate: outcome.requests / outcome.seconds,
  }
}
