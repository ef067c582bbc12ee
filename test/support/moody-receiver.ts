// A receiver of notifications that is not always well: it answers, refuses, asks for a later try, stalls, hangs up, or
// is gone for a while.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Teardown } from './broker-process.js'
import type { Random } from './random.js'

export interface ReceivedRequest {
  readonly method: string
  readonly path: string
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

type Ending = 'well' | 'refused' | 'later' | 'stalled' | 'hung up'

/** Most end well, since the breaker of the sender would otherwise hide all the rest. */
const endings = ['well', 'well', 'well', 'well', 'well', 'refused', 'later', 'later', 'stalled', 'hung up'] as const

export class MoodyReceiver {
  /** While it is well, it answers every request at once with success. */
  isWell = true
  private server: Server | undefined
  private readonly sockets = new Set<Socket>()
  private port = 0
  private readonly random: Random
  private readonly onReceived: (request: ReceivedRequest) => void

  constructor(t: Teardown, random: Random, onReceived: (request: ReceivedRequest) => void) {
    this.random = random
    this.onReceived = onReceived
    t.teardown(() => this.close())
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  get isOpen(): boolean {
    return this.server !== undefined
  }

  /** Listens; also again on the same port after it was gone. */
  async open(): Promise<void> {
    // For a moment another process may have the port.
    while (!this.server) {
      const server = createServer((request, response) => this.take(request, response))
      server.on('connection', socket => {
        this.sockets.add(socket)
        socket.on('error', () => {})
        socket.on('close', () => this.sockets.delete(socket))
      })
      const isListening = await new Promise<boolean>(resolve => {
        server.once('error', () => resolve(false))
        server.listen(this.port, '127.0.0.1', () => resolve(true))
      })
      if (!isListening) continue
      this.server = server
      this.port = (server.address() as AddressInfo).port
    }
  }

  async close(): Promise<void> {
    const { server } = this
    this.server = undefined
    for (const socket of this.sockets) socket.destroy()
    if (server) await new Promise(resolve => server.close(resolve))
  }

  private take(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('error', () => {})
    request.on('end', () => {
      const { method = '', url: path = '' } = request
      const headers = request.headers as Record<string, string>
      this.onReceived({ method, path, headers, body: Buffer.concat(chunks).toString() })
      this.end(this.isWell ? 'well' : this.random.pick(endings), response)
    })
  }

  private end(ending: Ending, response: ServerResponse): void {
    switch (ending) {
      case 'well':
        return void response.writeHead(this.random.fraction() < 0.5 ? 200 : 204).end()
      case 'refused':
        return void response.writeHead(404).end('no')
      case 'later':
        return void response.writeHead(this.random.pick([408, 429, 500, 503])).end()
      case 'stalled':
        return
      case 'hung up':
        return void response.destroy()
    }
  }
}
