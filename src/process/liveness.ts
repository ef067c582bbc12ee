// `GET /health/live` on a port of its own (`-livePort`), answered by the thread or process that watches over the node.
//
// A node answers nothing during a turn. An orchestrator that asks the node itself takes a long turn for a dead process,
// and kills it. The watching thread has nothing else to do and answers at once. It sends each part of the node (the
// thread, or every worker) a ping each second. A part that has left one unanswered for a minute is not live.
//
// Plain HTTP, whatever protocol the other port uses: probes send no secrets. The port has only this one answer.
//
// Not here: replacing a worker that ended (supervisor.ts), readiness, which the node itself reports (http/service.ts).

import { createServer, type Server } from 'node:http'
import { isIPv6 } from 'node:net'
import type { Config } from '../config/config.js'
import type { Clock } from '../ports.js'

/** Between two pings to a part that answers. */
const pingMs = 1_000
/** A part that is silent for longer is not live. This is longer than any turn: only an endless loop takes so long. */
const silenceMsMax = 60_000

/** Connections at a time, and the time in which a request must arrive: probes are few and short. */
const connectionsMax = 64
const requestMsMax = 5_000

/** The calls by which the watching thread or process reports about one part of a node. */
export interface Pulse {
  answered(): void
  /** The part has ended, on purpose or not: it gets no more pings. */
  ended(): void
}

/** Whether the parts of a node answer pings. */
export class Pulses {
  /** Each part with the time of its unanswered ping; undefined: it has answered all. */
  private readonly parts = new Map<() => void, number | undefined>()

  constructor(private readonly clock: Pick<Clock, 'monoMs'>) {}

  /** Registers a part, which gets pings from now on. */
  begin(ping: () => void): Pulse {
    this.parts.set(ping, undefined)
    return {
      answered: () => {
        if (this.parts.has(ping)) this.parts.set(ping, undefined)
      },
      ended: () => {
        this.parts.delete(ping)
      },
    }
  }

  /** Sends a ping to each part that has answered the previous one. */
  beat(): void {
    const nowMs = this.clock.monoMs()
    for (const [ping, sentMs] of this.parts) {
      if (sentMs !== undefined) continue
      this.parts.set(ping, nowMs)
      ping()
    }
  }

  /** The longest time for which a part has left a ping unanswered. */
  get silentMs(): number {
    const nowMs = this.clock.monoMs()
    let longest = 0
    for (const sentMs of this.parts.values()) if (sentMs !== undefined) longest = Math.max(longest, nowMs - sentMs)
    return longest
  }
}

/** Listens for probes until the process ends; resolves with the port. Rejects with a sentence for the operator. */
export function serveLiveness(
  { livePort: port, host, family }: Pick<Config['http'], 'livePort' | 'host' | 'family'>,
  pulses: Pulses,
): Promise<number> {
  const server = probeServer(pulses)
  const address = host ?? (family === 'ipv4' ? '0.0.0.0' : family === 'ipv6' ? '::' : undefined)
  const beating = setInterval(() => pulses.beat(), pingMs)
  beating.unref()
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      clearInterval(beating)
      const shown = address === undefined ? `port ${port}` : `${isIPv6(address) ? `[${address}]` : address}:${port}`
      reject(new Error(`cannot listen for -livePort at ${shown}: ${cause.message}`, { cause }))
    })
    server.listen({ port, host: address, ipv6Only: family === 'ipv6' }, () => {
      server.unref()
      const listening = server.address()
      resolve(typeof listening === 'object' && listening ? listening.port : 0)
    })
  })
}

function probeServer(pulses: Pulses): Server {
  const server = createServer({ requestTimeout: requestMsMax, headersTimeout: requestMsMax }, (request, response) => {
    const isKnown = request.url === '/health/live' && (request.method === 'GET' || request.method === 'HEAD')
    const { silentMs } = pulses
    const status = !isKnown ? 404 : silentMs > silenceMsMax ? 503 : 200
    response.writeHead(status, { 'Content-Type': 'application/json', Connection: 'close' })
    response.end(JSON.stringify(bodyOf(status, silentMs)))
  })
  server.maxConnections = connectionsMax
  return server
}

function bodyOf(status: 200 | 404 | 503, silentMs: number): Readonly<Record<string, string>> {
  switch (status) {
    case 200:
      return { status: 'live' }
    case 404:
      return { error: 'NotFound', description: 'there is only GET /health/live here' }
    case 503:
      return { error: 'Unavailable', description: `the node has not answered for ${Math.floor(silentMs / 1000)} s` }
  }
}
