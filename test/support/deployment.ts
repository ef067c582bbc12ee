// Brokers that act as one, as seen by a client that sends one request after the other, each on another connection.
//
// Two deployments that agree may still differ in some values. Each such value is replaced by a name, and names are
// compared. An id that a broker makes for a subscription or registration becomes the number of the request that made
// it. A time of writing becomes the number of the request during which it was (`Times`). Nothing is left out.

import { Agent, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { fineErrorMsMax } from '../../src/clock.js'
import type { RandomRequest } from './random-interface.js'

/** The compared parts of an answer. */
export interface Shown {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  /** With names in place of the values that may differ. */
  readonly text: string
}

const comparedHeaders = ['content-type', 'location', 'ctx-total-count', 'allow'] as const

/** How long a broker may answer that it is unavailable. */
const unavailableMsMax = 60_000
/** The pause between two tries then. */
const againMs = 100

/** It is unknown whether a change was made; the content of the tenant cannot be compared any more. */
export class Unknown extends Error {}

export class Deployment {
  readonly name: string
  /** Requests that were sent again, since a broker reported that it had not done anything. */
  repeated = 0
  private readonly connections: readonly { readonly port: number; readonly agent: Agent }[]
  private turn = 0
  private readonly ids = new Map<number, string>()
  private readonly numbers = new Map<string, number>()

  /** `connections` to each of the ports. */
  constructor(name: string, ports: readonly number[], connections: number) {
    this.name = name
    this.connections = Array.from({ length: connections }, () => ports)
      .flat()
      .map(port => ({ port, agent: new Agent({ keepAlive: true, maxSockets: 1 }) }))
  }

  close(): void {
    for (const { agent } of this.connections) agent.destroy()
  }

  /** Sends a request, again when a broker reports that it did not do it; rejects with Unknown if it may have. */
  async send(asked: RandomRequest): Promise<Shown> {
    const untilMs = performance.now() + unavailableMsMax
    for (;;) {
      const shown = await this.sendOnce(asked)
      if (shown.status !== 503 || performance.now() > untilMs) return shown
      if (asked.method !== 'GET' && !shown.text.includes('nothing was done')) throw new Unknown(shown.text)
      this.repeated++
      await pause(againMs)
    }
  }

  private sendOnce(asked: RandomRequest): Promise<Shown> {
    const { method, target, headers, body, tenant, makes } = asked
    const { port, agent } = this.connections[this.turn++ % this.connections.length]!
    const bytes = body === undefined ? undefined : Buffer.from(body)
    const all: Record<string, string | number> = { 'Ctx-Service': tenant, ...headers }
    if (bytes)
      Object.assign(all, {
        'Content-Type': headers['Content-Type'] ?? 'application/json',
        'Content-Length': bytes.length,
      })
    const path = target.replace(/\{document (\d+)\}/, (_, number) => this.ids.get(Number(number)) ?? 'none')
    return new Promise((resolve, reject) => {
      const sent = request({ host: '127.0.0.1', port, method, path, headers: all, agent }, response => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const { location } = response.headers
          if (makes !== undefined && response.statusCode === 201 && location) this.note(makes, location)
          const named = comparedHeaders.map(name => [name, this.named(String(response.headers[name] ?? ''))])
          const text = this.named(Buffer.concat(chunks).toString())
          resolve({ status: response.statusCode ?? 0, headers: Object.fromEntries(named), text })
        })
      })
      sent.on('error', error => {
        // A broker closes idle connections. It has not seen a request that arrives after that.
        if (isClosed(error) && sent.reusedSocket) resolve(this.sendOnce(asked))
        else if (isClosed(error)) resolve({ status: 0, headers: {}, text: 'the connection was closed' })
        else reject(error)
      })
      sent.end(bytes)
    })
  }

  private note(number: number, location: string): void {
    const id = location.slice(location.lastIndexOf('/') + 1)
    this.ids.set(number, id)
    this.numbers.set(id, number)
  }

  private named(text: string): string {
    return text.replaceAll(/[0-9a-f]{24}/g, id => {
      const number = this.numbers.get(id)
      return number === undefined ? id : `<document ${number}>`
    })
  }
}

const isClosed = (error: NodeJS.ErrnoException): boolean => error.code === 'ECONNRESET' || error.code === 'EPIPE'

/**
 * The times at which requests were under way, one after the other, by this machine's clock. Times in answers of one of
 * several processes are by its fine clock, which may be a little before or behind.
 */
export class Times {
  private readonly beganMs: number[] = []
  private readonly endedMs: number[] = []

  /** Runs a request so much later than the previous one that their times differ for certain. */
  async during<T>(run: () => Promise<T>): Promise<T> {
    while (Date.now() <= (this.endedMs.at(-1) ?? 0) + 2 * fineErrorMsMax) await pause(1)
    this.beganMs.push(Date.now())
    try {
      return await run()
    } finally {
      this.endedMs.push(Date.now())
    }
  }

  /**
   * The text with names for all times since the first request and before `laterMs`. `isLate`: one name for all of them.
   */
  named(text: string, isLate: boolean): string {
    return text.replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, time => {
      const ms = Date.parse(time)
      // Some times have only seconds, so the first may seem to be before the first request.
      if (!(ms >= (this.beganMs[0] ?? 0) - 1000 && ms < laterMs)) return time
      return isLate ? '<a time since>' : `<${this.requestAt(ms)}>`
    })
  }

  private requestAt(ms: number): string {
    let [low, high] = [0, this.beganMs.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.beganMs[middle]! - fineErrorMsMax <= ms) low = middle + 1
      else high = middle
    }
    const at = low - 1
    return ms <= (this.endedMs[at] ?? Date.now()) + fineErrorMsMax ? `during request ${at}` : `after request ${at}`
  }
}

/** Times of the story that no clock makes are later. */
const laterMs = Date.UTC(2090, 0, 1)
