// A small HTTP client for tests. An instance is one connection, unless it is given several. On each, requests go out
// one after another.
//
// An answer with any status is an answer; only a connection that breaks, or cannot be made, throws. The crash tests
// depend on that difference: after a throw it is unknown whether the write happened.

import { Agent, type IncomingHttpHeaders, request } from 'node:http'

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The body as JSON; undefined when it is empty. */
  readonly json: unknown
}

export class HttpClient {
  readonly #agent: Agent

  constructor(
    readonly baseUrl: string,
    /** A list waits up to 35 s for another node, and is answered then. */
    readonly timeoutMs = 40_000,
    connections = 1,
  ) {
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections })
  }

  get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.send('GET', path, undefined, headers)
  }

  /** Sends `body` as JSON, or no body when it is undefined. */
  send(method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
    const all: Record<string, string | number> = { ...headers }
    if (bytes) Object.assign(all, { 'Content-Type': 'application/json', 'Content-Length': bytes.length })
    return new Promise((resolve, reject) => {
      const options = { method, agent: this.#agent, headers: all, timeout: this.timeoutMs }
      const sent = request(new URL(path, this.baseUrl), options, response => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8')
          const json = parsed(response.headers['content-type'], text)
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json })
        })
      })
      sent.on('timeout', () => sent.destroy(new Error(`no answer within ${this.timeoutMs} ms: ${method} ${path}`)))
      sent.on('error', reject)
      sent.end(bytes)
    })
  }

  close(): void {
    this.#agent.destroy()
  }
}

function parsed(contentType: string | undefined, text: string): unknown {
  return text !== '' && contentType?.includes('json') ? JSON.parse(text) : undefined
}
