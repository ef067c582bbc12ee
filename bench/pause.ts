// How long the server's event loop is away, at its worst, while reads, updates and creates go on: seen from outside.
//
// A light request (`GET /v2`, no store, no shard) is sent every 2 ms on a connection of its own while the generator runs the
// mixed workload. Its latency is the wait for the event loop. A sample that comes due while the one before is unanswered
// waits for it and counts from when it came due: otherwise one long pause would hide all the samples it delayed.
//
// The bare server is measured the same way: what it shows is the machine's share (a busy core, other programs), not Orrery's.

import { connect } from 'node:net'
import { drive, type Load } from './generator.js'

export interface Pauses {
  readonly samples: number
  readonly p50: number
  readonly p99: number
  readonly p999: number
  readonly max: number
  /** Requests per second of the mixed load meanwhile. */
  readonly rate: number
}

const everyMs = 2

/** Milliseconds, under `load.workload`; the first URL is sampled. */
export async function pauses(load: Load): Promise<Pauses> {
  const sampler = sample(new URL(load.urls[0]!))
  const outcome = await drive(load)
  const took = (await sampler.end()).sort((a, b) => a - b)
  if (took.length === 0) throw new Error('no sample was answered')
  const rank = (share: number): number => took[Math.min(took.length - 1, Math.ceil(took.length * share) - 1)]!
  return {
    samples: took.length,
    p50: rank(0.5),
    p99: rank(0.99),
    p999: rank(0.999),
    max: took.at(-1)!,
    rate: outcome.requests / outcome.seconds,
  }
}

function sample(url: URL): { end(): Promise<number[]> } {
  const took: number[] = []
  const due: number[] = []
  let received = ''
  let failure: Error | undefined
  const socket = connect(Number(url.port || 80), url.hostname)
  socket.setNoDelay(true)
  const ask = (): void => {
    socket.write('GET /v2 HTTP/1.1\r\nHost: bench\r\n\r\n')
  }
  socket.on('error', error => {
    failure = error
  })
  socket.on('close', () => {
    failure ??= new Error(`${url.host} closed the sampler's connection`)
  })
  socket.on('data', chunk => {
    const now = performance.now()
    received += chunk.toString('latin1')
    const head = received.indexOf('\r\n\r\n')
    if (head === -1) return
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(received.slice(0, head + 2))?.[1] ?? 0)
    if (received.length < head + 4 + length) return
    if (received[9] !== '2') failure = new Error(`GET /v2 was answered ${received.slice(0, head)}`)
    received = ''
    took.push(now - due.shift()!)
    if (due.length > 0) ask()
  })
  // A timer of this process that fires late is not the server's doing, so a sample counts from when the timer really fired.
  const timer = setInterval(() => {
    due.push(performance.now())
    if (due.length === 1) ask()
  }, everyMs)
  return {
    async end() {
      clearInterval(timer)
      for (let waited = 0; due.length > 0 && failure === undefined && waited < 10_000; waited += 10) {
        await new Promise(later => setTimeout(later, 10))
      }
      if (failure) throw failure
      if (due.length > 0) throw new Error('GET /v2 is not answered any more')
      socket.destroy()
      return took
    },
  }
}
