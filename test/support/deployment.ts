// Brokers that act as one, as a client sees them who sends one request after the other, each on another connection.
//
// What may differ between two deployments that agree is given a name, and the name is what is compared: the ids that a
// broker makes for subscriptions and registrations become the number of the request that made them, and times of
// writing the number of the request during which they were (`Times`). Nothing is left out.

import { Agent, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { fineErrorMsMax } from '../../src/clock.js'
import type { Asked } from './random-interface.js'

/** What is compared of an answer. */
export interface Shown {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  /** With names for what may differ. */
  readonly text: string
}

const comparedHeaders = ['content-type', 'location', 'ctx-total-count', 'allow'] as const

/** How long a broker may say that it cannot answer now. */
const unavailableMsMax = 60_000
/** Between two tries then. */
const againMs = 100

/** Nobody knows whether a change was made; what the tenant holds cannot be compared any more. */
export class Unknown extends Error {}

export class Deployment {
  readonly name: string
  /** Requests that were sent again, since a broker said that it had not done anything. */
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

  /** Sends a request, again when a broker says that it has not done it; rejects with Unknown when it cannot say. */
  async send(asked: Asked): Promise<Shown> {
    const untilMs = performance.now() + unavailableMsMax
    for (;;) {
      const shown = await this.sendOnce(asked)
      if (shown.status !== 503 || performance.now() > untilMs) return shown
      if (asked.method !== 'GET' && !shown.text.includes('nothing was done')) throw new Unknown(shown.text)
      this.repeated++
      await pause(againMs)
    }
  }

  private sendOnce(asked: Asked): Promise<Shown> {
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
        // A broker closes connections that were idle: what arrives after that has not been seen.
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
 * When requests were under way, one after the other, by the clock of this machine. What one of several processes tells
 * is by its fine clock, which may be a little before or behind.
 */
export class Times {
  private readonly beganMs: number[] = []
  private readonly endedMs: number[] = []

  /** Runs a request so much later than the one before that times tell them apart. */
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
   * A text with names for all times since the first request and before `lastMs`. `isLate`: of those only that they are.
   */
  named(text: string, isLate: boolean): string {
    return text.replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, time => {
      const ms = Date.parse(time)
      // Seconds are all that is told of some times, so the first may seem to be before the first request.
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
