// How long the server's event loop is away, at its worst, while reads, updates and creates go on: seen from outside.
//
// A light request (`GET /v2`, no store, no shard) is sent every 2 ms while the generator runs the mixed workload. Its latency is the wait
// for the event loop. Samples go round over a few connections, so that none waits for the answer to another: on a single one a turn of
// the loop longer than 2 ms would pile them up, and the pile would be measured. One that finds all connections waiting counts from when it
// came due: otherwise a long pause would hide the samples it delayed.
//
// The bare server is measured the same way: what it shows is the machine's share (a busy core, other programs), not Orrery's.

import { connect, type Socket } from 'node:net'
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

/** Enough that a pause of 100 ms finds a connection for every sample. */
const connections = 50

function sample(url: URL): { end(): Promise<number[]> } {
  const took: number[] = []
  const due: number[] = []
  const idle: Socket[] = []
  let failure: Error | undefined
  const ask = (socket: Socket, dueMs: number): void => {
    let received = ''
    socket.on('data', chunk => {
      received += chunk.toString('latin1')
      const head = received.indexOf('\r\n\r\n')
      if (head === -1) return
      const length = Number(/\r\ncontent-length: *(\d+)/i.exec(received.slice(0, head + 2))?.[1] ?? 0)
      if (received.length < head + 4 + length) return
      if (received[9] !== '2') failure = new Error(`GET /v2 was answered ${received.slice(0, head)}`)
      took.push(performance.now() - dueMs)
      socket.removeAllListeners('data')
      const next = due.shift()
      if (next === undefined) idle.push(socket)
      else ask(socket, next)
    })
    socket.write('GET /v2 HTTP/1.1\r\nHost: bench\r\n\r\n')
  }
  const sockets = Array.from({ length: connections }, () => {
    const socket = connect(Number(url.port || 80), url.hostname)
    socket.setNoDelay(true)
    socket.on('error', error => {
      failure = error
    })
    socket.on('close', () => {
      failure ??= new Error(`${url.host} closed a connection of the sampler`)
    })
    idle.push(socket)
    return socket
  })
  // A timer of this process that fires late is not the server's doing, so a sample counts from when the timer really fired.
  const timer = setInterval(() => {
    const socket = idle.shift()
    if (socket) ask(socket, performance.now())
    else due.push(performance.now())
  }, everyMs)
  return {
    async end() {
      clearInterval(timer)
      for (let waited = 0; idle.length < connections && failure === undefined && waited < 10_000; waited += 10) {
        await new Promise(later => setTimeout(later, 10))
      }
      if (failure) throw failure
      if (idle.length < connections) throw new Error('GET /v2 is not answered any more')
      for (const socket of sockets) socket.destroy()
      return took
    },
  }
}
