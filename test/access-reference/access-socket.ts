// Batches as messages of a WebSocket (docs/interface/live.md#updates): writes like any other.
//
// Each proof has a connection of its own, which lasts as long as the file. Not here: which requests go this way.

import type { Teardown } from '../support/broker-process.js'
import type { Answer } from '../support/http-client.js'
import type { HttpRequest } from '../support/reference-requests.js'
import { StreamSocketClient } from '../support/stream-socket-client.js'

/** Connections that may be cut off, one after the other. */
const triesMax = 3

export class UpdateSockets {
  readonly #t: Teardown
  readonly #sockets = new Map<string, Promise<StreamSocketClient>>()
  #refs = 0

  constructor(t: Teardown) {
    this.#t = t
  }

  /** Sends the batch over the connection of the proof, and returns the answer in the form of an answer over HTTP. */
  async send(url: string, proof: Readonly<Record<string, string>>, { headers, body }: HttpRequest): Promise<Answer> {
    const key = `${url} ${JSON.stringify(proof)}`
    const opening = this.#sockets.get(key) ?? this.#open(url, proof)
    this.#sockets.set(key, opening)
    const socket = await opening
    if (socket.refused !== undefined) return answerOf(socket.refused, { error: 'the connection was refused' })
    const ref = ++this.#refs
    const from = socket.messages.length
    const tenant = headers['Ctx-Service']
    const path = headers['Ctx-ServicePath'] ?? '/'
    socket.send({ op: 'update', ref, path, ...(tenant && { tenant }), body: JSON.parse(body as string) })
    const message = await socket.next(`the answer to update ${ref}`, one => one.ref === ref, from)
    return answerOf(Number(message.status), message)
  }

  /**
   * Opens a connection, and again if it is cut off before it has answered anything: uWebSockets may do that in rare
   * cases when a response becomes a WebSocket (src/http/uws-socket.ts).
   */
  async #open(url: string, proof: Readonly<Record<string, string>>): Promise<StreamSocketClient> {
    for (let tries = 1; ; tries++) {
      const socket = await StreamSocketClient.open(this.#t, `${url.replace(/^http/, 'ws')}/v2/stream`, {
        headers: proof,
      })
      if (socket.refused !== undefined) return socket
      if (socket.native.readyState === socket.native.OPEN) socket.send({ op: 'ping' })
      await socket.until('a pong', ({ messages, ended }) => messages.length > 0 || ended !== undefined)
      if (!socket.ended || tries === triesMax) return socket
    }
  }

  /** Closes all connections: the next file begins with new ones. */
  async close(): Promise<void> {
    for (const socket of this.#sockets.values()) (await socket).native.terminate()
    this.#sockets.clear()
  }
}

const answerOf = (status: number, json: unknown): Answer => ({ status, json, text: JSON.stringify(json), headers: {} })
