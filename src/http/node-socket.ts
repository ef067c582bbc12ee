// A WebSocket of the node:http front, over `ws`.
//
// Not here: which requests become a WebSocket (node-front.ts).

import type { Duplex } from 'node:stream'
import { type ServerOptions, type WebSocket, WebSocketServer } from 'ws'
import type { SlowAnswer, StallWatch } from './connections.js'
import {
  type MessageSocket,
  noBinary,
  pingsWaitingMax,
  type SocketListener,
  type SocketOptions,
  silenceSMax,
} from './front.js'

/** Compresses messages from this number of bytes on. */
const compressBytesMin = 1024

/** A server for connections that the front passes to it. */
export function socketServer({ messageBytesMax, compression }: SocketOptions): WebSocketServer {
  // The types of the package lack `maxPendingAutoPongs`.
  const options: ServerOptions & { readonly maxPendingAutoPongs: number } = {
    noServer: true,
    clientTracking: false,
    maxPayload: messageBytesMax,
    maxPendingAutoPongs: pingsWaitingMax,
    perMessageDeflate: compression ? { threshold: compressBytesMin, serverNoContextTakeover: true } : false,
    // The front has chosen the subprotocol.
    handleProtocols: protocols => [...protocols][0] ?? false,
  }
  return new WebSocketServer(options)
}

/**
 * All WebSockets of a front: a connection that is silent for `silenceSMax` gets a ping, and is cut off without an
 * answer.
 */
export class NodeSockets {
  readonly #open = new Set<NodeSocket>()
  #timer: NodeJS.Timeout | undefined

  constructor(private readonly stalls: StallWatch) {}

  /** `onExpecting`: called when its client begins to wait for answers (1), and when it does not any more (-1). */
  add(native: WebSocket, stream: Duplex, listener: SocketListener, onExpecting: (change: 1 | -1) => void): void {
    const socket = new NodeSocket(native, stream, listener, this.stalls, onExpecting)
    this.#open.add(socket)
    this.#timer ??= setInterval(() => this.#look(), (silenceSMax * 1000) / 2).unref()
    native.once('close', () => {
      this.#open.delete(socket)
      if (this.#open.size === 0) {
        clearInterval(this.#timer)
        this.#timer = undefined
      }
      socket.ended()
      listener.onGone()
    })
    listener.onOpen(socket)
  }

  #look(): void {
    for (const socket of this.#open) socket.look()
  }
}

class NodeSocket implements MessageSocket, SlowAnswer {
  readonly #native: WebSocket
  readonly #stream: Duplex
  readonly #stalls: StallWatch
  /** Whether something came, or could not come because the client was asked just now, since `look` was called. */
  #isAlive = true
  #isFull = false
  #given = 0
  readonly #onExpecting: (change: 1 | -1) => void
  #isExpecting = false

  constructor(
    native: WebSocket,
    stream: Duplex,
    listener: SocketListener,
    stalls: StallWatch,
    onExpecting: (change: 1 | -1) => void,
  ) {
    this.#onExpecting = onExpecting
    this.#native = native
    this.#stream = stream
    this.#stalls = stalls
    native.on('error', () => {}) // A broken frame: the package closes the connection and reports that.
    const isAlive = (): void => {
      this.#isAlive = true
    }
    native.on('pong', isAlive)
    native.on('ping', isAlive)
    native.on('message', (message: Buffer, isBinary) => {
      this.#isAlive = true
      if (native.readyState !== native.OPEN) return // Behind a binary message, or behind our close frame.
      if (isBinary) native.close(noBinary.code, noBinary.reason)
      else listener.onMessage(message)
    })
    stream.on('drain', () => {
      if (!this.#isFull) return
      this.#isFull = false
      this.#stalls.remove(this)
      listener.onRoom()
    })
  }

  send(texts: readonly string[]): boolean {
    if (this.#native.readyState !== this.#native.OPEN) return false
    const stream = this.#stream
    stream.cork()
    for (const text of texts) {
      this.#given += text.length
      this.#native.send(text)
    }
    stream.uncork()
    this.#isFull = stream.writableNeedDrain
    if (this.#isFull) this.#stalls.add(this)
    return !this.#isFull
  }

  close(code: number, reason: string): void {
    this.#native.close(code, reason)
  }

  destroy(): void {
    this.#native.terminate()
  }

  /** Called every half of `silenceSMax`. */
  look(): void {
    if (!this.#isAlive) return this.destroy()
    this.#isAlive = false
    if (this.#native.readyState === this.#native.OPEN) this.#native.ping()
  }

  taken(): number {
    return this.#given - this.#native.bufferedAmount
  }

  /** The system reports when it takes more. */
  retry(): void {}

  giveUp(): void {
    this.destroy()
  }

  expectsAnswers(isExpecting: boolean): void {
    if (isExpecting === this.#isExpecting) return
    this.#isExpecting = isExpecting
    this.#onExpecting(isExpecting ? 1 : -1)
  }

  ended(): void {
    this.expectsAnswers(false)
    this.#stalls.remove(this)
  }
}
