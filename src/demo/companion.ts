// A small server of the demo: a receiver of notifications, a provider of attributes, or a receiver that refuses.

import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createRawServer, type Server } from 'node:net'
import { hostDefault } from './arguments.js'

export interface CompanionAnswer {
  readonly status: number
  /** undefined: the answer has no body. */
  readonly json?: unknown
}

export interface Companion {
  readonly url: string
  readonly close: () => void
}

/** Starts a server on a free port of this machine, which answers each request to a path with `answer`. */
export async function startCompanion(answer: (path: string) => CompanionAnswer): Promise<Companion> {
  const server = createServer((request, response) => {
    // Nothing of a request is kept.
    request.resume()
    request.once('end', () => {
      const { status, json } = answer(request.url ?? '/')
      response.writeHead(status, { 'Content-Type': 'application/json' })
      response.end(json === undefined ? undefined : JSON.stringify(json))
    })
  })
  const url = await listening(server)
  return {
    url,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Starts a server that resets each connection. A port without a server could get one of another program. */
export async function startRefusing(): Promise<Companion> {
  const server = createRawServer(socket => socket.resetAndDestroy())
  const url = await listening(server)
  return { url, close: () => server.close() }
}

async function listening(server: Server): Promise<string> {
  server.listen(0, hostDefault)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return `http://${hostDefault}:${port}`
}
