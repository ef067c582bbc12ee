// A connection to a provider: one request at a time, and its answer as a whole.
//
// It is an undici `Client` of its own, so that it can be given up at once while it is still connecting, and so that it is known whether it has
// served before. Connecting, TLS and the `Host` header are ours (deliver/sockets/client.ts).
//
// Not here: how many there are, deadlines (forwarder.ts).

import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Client, Dispatcher } from 'undici'
import { openClient } from './sockets/client.js'
import { mayProvideItself, OwnListenerDenied } from './sockets/egress.js'
import type { Endpoint, OpenSocket } from './sockets/sockets.js'

export interface Sent {
  readonly path: string
  /** Names and values in turn, with a host. */
  readonly headers: readonly string[]
  readonly body: string
}

export type SendEnd =
  | { readonly kind: 'answered'; readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: Buffer }
  | { readonly kind: 'tooLarge' }
  | { readonly kind: 'lost'; readonly error: Error }

type OnEnd = (end: SendEnd) => void

export class Connection implements Dispatcher.DispatchHandler {
  /** Answers that came over the present socket. */
  answers = 0
  /** When it ended its last request. */
  idleSinceMs = 0
  isClosed = false
  private readonly client: Client
  private readonly answerBytesMax: number
  private socket: Socket | undefined
  private onEnd: OnEnd | undefined
  private status = 0
  private headers: IncomingHttpHeaders = {}
  private chunks: Buffer[] = []
  private bytes = 0

  private path = ''
  /** It ends at this broker itself. */
  private isOwn = false

  /** `onClosed`: told when it closes while nothing is sent. `isOwn`: whether a socket ends at this broker itself. */
  constructor(
    endpoint: Endpoint,
    openSocket: OpenSocket,
    answerBytesMax: number,
    onClosed: () => void,
    isOwn?: (socket: Socket) => boolean,
  ) {
    this.answerBytesMax = answerBytesMax
    this.client = openClient(endpoint, openSocket, socket => {
      this.socket = socket
      this.answers = 0
      this.isOwn = false
      if (!isOwn) return
      socket.once(endpoint.protocol === 'https:' ? 'secureConnect' : 'connect', () => {
        this.isOwn = isOwn(socket)
        if (this.isOwn && !mayProvideItself(this.path)) socket.destroy(new OwnListenerDenied())
      })
    })
    this.client.on('disconnect', () => {
      if (!this.onEnd) onClosed()
    })
  }

  /** POSTs, and tells once, later, how that ended. One at a time. */
  send({ path, headers, body }: Sent, onEnd: OnEnd): void {
    this.onEnd = onEnd
    this.status = 0
    this.chunks = []
    this.bytes = 0
    this.path = path
    if (this.isOwn && !mayProvideItself(path)) return this.end({ kind: 'lost', error: new OwnListenerDenied() })
    this.client.dispatch({ path, method: 'POST', headers: [...headers], body }, this)
  }

  onRequestStart(): void {}

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    // Below that more will follow.
    if (status < 200) return
    this.status = status
    this.headers = headers
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.bytes += chunk.length
    if (this.bytes <= this.answerBytesMax) this.chunks.push(chunk)
    else this.end({ kind: 'tooLarge' })
  }

  onResponseEnd(): void {
    this.answers++
    this.end({ kind: 'answered', status: this.status, headers: this.headers, body: Buffer.concat(this.chunks) })
  }

  onRequestUpgrade(
    _controller: Dispatcher.DispatchController,
    _status: number,
    _headers: object,
    socket: Duplex,
  ): void {
    socket.destroy()
    this.end({ kind: 'lost', error: new Error('the provider speaks another protocol') })
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.end({ kind: 'lost', error })
  }

  private end(end: SendEnd): void {
    const { onEnd } = this
    if (!onEnd) return
    this.onEnd = undefined
    this.chunks = []
    // Later, and apart from undici, which swallows what is thrown in its callbacks.
    queueMicrotask(() => onEnd(end))
  }

  /** Also while it is connecting, which undici would let go on. What is sent is not told of any more. */
  destroy(): void {
    this.isClosed = true
    this.onEnd = undefined
    this.chunks = []
    this.client.destroy().catch(() => {})
    this.socket?.on('error', () => {}).destroy()
  }
}
