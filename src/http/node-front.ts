// The HTTP front over node:http and node:https: for platforms without the uWebSockets.js binary, and for HTTP/1.0.
//
// It behaves as uws-front.ts does and gives way where node cannot: methods that its parser does not know are answered
// 400 without asking anybody. Where node would do more than the other front it is held back: of a header sent twice the
// first one counts, too many headers are a 431 (node would drop the rest in silence, perhaps the one that names the
// tenant).
//
// When it stops, it closes its own side of a connection first, and reads away what the client still sends: so no
// connection is reset (drain.ts).
//
// Not here: routes and statuses (routes, reply); which front is used (open-front).

import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import type { ArrivingBody, Waiting } from './connections.js'
import { Admission, answerStallMsDefault, BodyPace, headMsMax, StallWatch } from './connections.js'
import { AnswerGate, Arrivals, type CutOff, firstRequestMsMax, lingerMsMax, lookMs, quietMs } from './drain.js'
import {
  ambiguousBody,
  type Front,
  type FrontHandler,
  type FrontOptions,
  headBytesMax,
  isAmbiguous,
  listenFailure,
  listenOptions,
  type TlsFiles,
} from './front.js'
import { announcesBody, NodeExchange, plainAddress } from './node-exchange.js'

const headersMax = 100
/** How often node looks for heads that have not come in time. */
const headCheckMs = 1000

/** A front over node:http. Fails when the TLS files cannot be used. */
export async function openNodeFront(options: FrontOptions, handler: FrontHandler): Promise<Front> {
  const limits = {
    maxHeaderSize: headBytesMax,
    headersTimeout: headMsMax,
    connectionsCheckingInterval: headCheckMs,
    requestTimeout: 0, // Bodies have a pace instead.
  }
  const server = options.tls
    ? createTlsServer({ ...readTls(options.tls), ...limits, handshakeTimeout: headMsMax })
    : createServer(limits)
  return new NodeFront(server, options, handler)
}

class NodeFront implements Front {
  draining = false
  readonly stalls: StallWatch
  readonly gate = new AnswerGate()
  readonly #server: Server
  readonly #options: FrontOptions
  readonly #admission: Admission
  readonly #pace: BodyPace
  readonly #connections = new Set<NodeConnection>()
  /** By the socket that requests name: with TLS it is not the one that was accepted. */
  readonly #bySocket = new WeakMap<Duplex, NodeConnection>()
  /** Connections whose last request has left open where it ends. */
  readonly #refused = new WeakSet<Socket>()
  #inFlight = 0
  readonly #arrivals = new Arrivals()
  #ended: Promise<void> | undefined
  #unlistened: Promise<void> | undefined
  #closed: Promise<CutOff | undefined> | undefined

  constructor(server: Server, options: FrontOptions, handler: FrontHandler) {
    this.#server = server
    this.#options = options
    this.stalls = new StallWatch(options.answerStallMs ?? answerStallMsDefault, options.onStall ?? (() => {}))
    this.#admission = new Admission(options)
    this.#pace = new BodyPace(this.#admission.dropped)
    server.maxHeadersCount = 0
    // node's own close() calls this, and takes a connection for idle whose answer is still being sent.
    server.closeIdleConnections = () => {}
    server.keepAliveTimeout = options.idleTimeoutS * 1000
    const onRequest = (request: IncomingMessage, response: ServerResponse) =>
      this.#onRequest(request, response, handler)
    server.on('request', onRequest)
    server.on('checkExpectation', onRequest)
    server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
      if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') this.#admission.dropped('head')
      refuse(error, socket)
    })
    server.on('connection', (socket: Socket) => this.#onConnection(socket))
    if (options.tls) this.#knowTlsSockets()
  }

  listen(): Promise<number> {
    const { source, port } = this.#options
    if (source) {
      this.#server.emit('listening') // From then on node looks for heads that have not come in time.
      return source.open(port, socket => this.#onHanded(socket))
    }
    return new Promise((resolve, reject) => {
      const onError = (error: Error) => reject(listenFailure(error, this.#options))
      this.#server.once('error', onError)
      this.#server.listen({ ...listenOptions(this.#options), exclusive: true }, () => {
        this.#server.off('error', onError)
        resolve((this.#server.address() as AddressInfo).port)
      })
    })
  }

  dismiss(): void {
    this.draining = true
    for (const connection of this.#connections) connection.linger()
  }

  unlisten(): Promise<void> {
    this.#unlistened ??= this.#stopListening(Number.POSITIVE_INFINITY)
    return this.#unlistened
  }

  close(drainMs: number): Promise<CutOff | undefined> {
    this.#closed ??= this.#drain(drainMs)
    return this.#closed
  }

  async #stopListening(waitMs: number): Promise<void> {
    const { listening } = this.#server
    if (listening || this.#options.source) this.gate.shut()
    if (listening) await this.#arrivals.still(waitMs)
    this.dismiss()
    this.#ended = new Promise<void>(resolve => this.#server.close(() => resolve()))
  }

  async #drain(drainMs: number): Promise<CutOff | undefined> {
    const untilMs = performance.now() + drainMs
    this.#unlistened ??= this.#stopListening(drainMs)
    await this.#unlistened
    for (const connection of this.#connections) connection.drain()
    this.gate.open()
    let nowMs = performance.now()
    while (this.#connections.size > 0 && nowMs < untilMs) {
      await new Promise<void>(resolve => setTimeout(resolve, Math.min(lookMs, untilMs - nowMs)))
      nowMs = performance.now()
      for (const connection of this.#connections) connection.look(nowMs)
    }
    const connections = this.#connections.size
    const cutOff = connections > 0 ? { connections, requests: this.#inFlight } : undefined
    for (const connection of this.#connections) connection.close()
    await this.#ended
    return cutOff
  }

  /** As if the server had accepted it by itself. */
  #onHanded(socket: Socket): void {
    socket.allowHalfOpen = true
    socket.setNoDelay(true)
    this.#server.emit('connection', socket)
  }

  #onConnection(socket: Socket): void {
    this.#arrivals.count++
    const address = plainAddress(socket.remoteAddress ?? '')
    if (!this.#admission.admits(this.#connections.size, address)) {
      socket.destroy()
      return
    }
    this.#admission.enter(address)
    const connection = new NodeConnection(socket, () => {
      this.#connections.delete(connection)
      this.#pace.delete(connection)
      this.#admission.waitsNoMore(connection)
      this.#admission.leave(address)
    })
    this.#connections.add(connection)
    if (this.draining) connection.linger()
    this.#bySocket.set(socket, connection)
    this.#admission.waits(connection)
  }

  /** Node does not say which accepted socket a TLS socket is over: the client's address and port tell. */
  #knowTlsSockets(): void {
    const accepted = new Map<string, NodeConnection>()
    const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`
    this.#server.on('connection', (socket: Socket) => {
      const connection = this.#bySocket.get(socket)
      if (!connection) return
      const name = nameOf(socket)
      accepted.set(name, connection)
      socket.once('close', () => {
        if (accepted.get(name) === connection) accepted.delete(name)
      })
    })
    this.#server.on('secureConnection', (socket: Socket) => {
      const connection = accepted.get(nameOf(socket))
      if (!connection) return
      connection.speaksOver(socket)
      this.#bySocket.set(socket, connection)
    })
  }

  /** Follows a request: its connection waits for the rest of the body, and after the answer for the next request. */
  #follow(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#bySocket.get(request.socket)
    if (!connection) return
    const isWhole = (): void => {
      this.#pace.delete(connection)
      this.#admission.waitsNoMore(connection)
    }
    connection.requests++
    connection.hasAsked = true
    if (announcesBody(request)) {
      this.#pace.add(connection)
      request.once('end', isWhole)
    } else isWhole()
    response.once('close', () => {
      if (--connection.requests === 0 && connection.isOpen) this.#admission.waits(connection)
    })
  }

  #onRequest(request: IncomingMessage, response: ServerResponse, handler: FrontHandler): void {
    if (this.#bySocket.get(request.socket)?.hasEnded) {
      request.resume()
      return
    }
    this.#arrivals.count++
    this.#inFlight++
    response.once('close', () => this.#inFlight--)
    this.#follow(request, response)
    const exchange = new NodeExchange(this, request, response)
    if (request.rawHeaders.length > 2 * headersMax) {
      exchange.replyAndClose(431, [])
      return
    }
    if (isAmbiguous(request.rawHeaders) || this.#refused.has(request.socket)) {
      this.#refuse(request, response)
      return
    }
    const onBody = handler.onRequest(exchange)
    if (onBody) exchange.collect(onBody, this.#options.bodyBytesMax)
    else if (announcesBody(request)) request.resume()
  }

  /** Node has read what follows in the same segment as a request of its own: that is not served. */
  #refuse(request: IncomingMessage, response: ServerResponse): void {
    const isFirst = !this.#refused.has(request.socket)
    this.#refused.add(request.socket)
    if (!isFirst) return
    const headers = ['Content-Type', 'application/json', 'Content-Length', String(ambiguousBody.length)]
    response.writeHead(400, [...headers, 'Connection', 'close'])
    response.end(ambiguousBody, () => request.socket.destroySoon())
  }
}

class NodeConnection implements Waiting, ArrivingBody {
  isOpen = true
  requests = 0
  /** A request has come. */
  hasAsked = false
  /** The server has closed its side: nobody can be answered any more. */
  hasEnded = false
  readonly #socket: Socket
  /** What is read and written; with TLS it is not the socket that was accepted. */
  #stream: Socket
  readonly #onEnd: () => void
  /** When something came last, or the server closed its side; and how many bytes had come then. */
  #sinceMs = 0
  #bytes = 0
  #isLingering = false
  readonly #openedMs = performance.now()

  constructor(socket: Socket, onEnd: () => void) {
    this.#socket = socket
    this.#stream = socket
    this.#onEnd = onEnd
    socket.once('close', () => this.#end())
  }

  /** Its TLS socket is there. */
  speaksOver(stream: Socket): void {
    this.#stream = stream
    if (this.#isLingering) this.linger()
  }

  /** node would close a connection at once behind its last answer, and so reset it if the client still sends. */
  linger(): void {
    this.#isLingering = true
    this.#stream.destroySoon = () => this.#endSide()
  }

  /** From now on `look` is called. */
  drain(): void {
    this.#sinceMs = performance.now()
    this.#bytes = this.bytesCome()
  }

  /** Ends the connection when it rests (drain.ts), and closes it when the client does not end it as well. */
  look(nowMs: number): void {
    if (this.hasEnded) {
      // The client may be slow to read its answer.
      if (!this.#stream.writableFinished) this.#sinceMs = nowMs
      else if (nowMs - this.#sinceMs >= lingerMsMax) this.close()
      return
    }
    const bytes = this.bytesCome()
    if (this.requests > 0 || bytes !== this.#bytes) {
      this.#bytes = bytes
      this.#sinceMs = nowMs
    } else {
      const isNew = !this.hasAsked && nowMs - this.#openedMs < firstRequestMsMax
      if (!isNew && nowMs - this.#sinceMs >= quietMs) this.#endSide()
    }
  }

  #endSide(): void {
    if (this.hasEnded) return
    this.hasEnded = true
    this.#sinceMs = performance.now()
    this.#stream.end()
    // What still comes is read away: node reads no more of a connection behind its last answer.
    this.#stream.resume()
  }

  bytesCome(): number {
    return this.#socket.bytesRead
  }

  goesOn(): void {}

  close(): void {
    this.#end()
    this.#socket.destroy()
  }

  #end(): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.#onEnd()
  }
}

/** What cannot be parsed: no request that anybody could answer properly. */
function refuse(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const status =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? '431 Request Header Fields Too Large'
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? '408 Request Timeout'
        : '400 Bad Request'
  socket.end(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`, () => socket.destroy())
}

/** The only suites that are offered: with forward secrecy and authenticated encryption, as all of TLS 1.3. */
const suites13 = ['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256']
export const suites12 = [
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
]

/** Reads the two PEM files, and throws a sentence when they do not make a server. */
export function readTls(tls: TlsFiles): SecureContextOptions {
  try {
    const pair = {
      key: readFileSync(tls.keyFile),
      cert: readFileSync(tls.certFile),
      minVersion: `TLSv${tls.minVersion}`,
      ciphers: [...suites13, ...suites12].join(':'),
    } as const
    createSecureContext(pair)
    return pair
  } catch (cause) {
    throw new Error(`cannot use the TLS files ${tls.keyFile} and ${tls.certFile}: ${(cause as Error).message}`, {
      cause,
    })
  }
}
