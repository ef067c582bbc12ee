// Many requests in little time: a few connections that stay open, several requests in flight, and only the compared
// parts of each answer.

import { Agent, request } from 'node:http'
import type { HttpRequest } from './reference-requests.js'

export interface AliveMessage {
  readonly status: number
  /** The header `Ctx-Total-Count`; undefined when absent. */
  readonly total: string | undefined
  readonly text: string
}

export class KeptAlive {
  readonly #ports: readonly number[]
  readonly #agent: Agent
  #sent = 0

  /** With several ports, requests go to them in turn; `connections` to each. */
  constructor(ports: readonly number[], connections: number) {
    this.#ports = ports
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections })
  }

  send({ method, target, headers, body }: HttpRequest, tenant: string): Promise<AliveMessage> {
    const all: Record<string, string | number> = { ...headers, 'Ctx-Service': tenant }
    const bytes = body === undefined ? undefined : Buffer.from(body)
    if (bytes) Object.assign(all, { 'Content-Type': 'application/json', 'Content-Length': bytes.length })
    const port = this.#ports[this.#sent++ % this.#ports.length] as number
    const options = { host: '127.0.0.1', port, method, path: target, headers: all, agent: this.#agent }
    return new Promise((resolve, reject) => {
      const sent = request(options, response => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const total = response.headers['ctx-total-count'] as string | undefined
          resolve({ status: response.statusCode ?? 0, total, text: Buffer.concat(chunks).toString() })
        })
      })
      sent.on('error', reject)
      sent.end(bytes)
    })
  }

  close(): void {
    this.#agent.destroy()
  }
}
