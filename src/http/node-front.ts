// The HTTP front over node:http and node:https: for platforms without the uWebSockets.js binary, and for HTTP/1.0.
//
// It behaves as uws-front.ts does and gives way where node cannot: methods that its parser does not know are answered
// 400 without asking anybody. Where node would do more than the other front it is held back: of a header sent twice the
// first one counts, too many headers are a 431 (node would drop the rest in silence, perhaps the one that names the
// tenant).
//
// The count of exchanges in flight decides when closing is done, not the count of connections: an idle client must not
// hold the program back.
//
// Not here: routes and statuses (routes, reply); which front is used (open-front).

import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, ListenOptions, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { ownText } from '../domain/recent.js'
import type { ArrivingBody, SlowAnswer, Waiting } from './connections.js'
import { Admission, answerStallMsDefault, BodyPace, headMsMax, StallWatch } from './connections.js'
import {
  type AnswerBody,
  ambiguousBody,
  type BodyHandler,
  BodyPieces,
  type Exchange,
  type Front,
  type FrontHandler,
  type FrontOptions,
  headBytesMax,
  headerText,
  isAmbiguous,
  lengthOf,
  listenFailure,
  pieceBytesMax,
  type TlsFiles,
  unwantedBytesMax,
} from './front.js'
import { cutFromMax } from './url.js'

const headersMax = 100
/** How often node looks for heads that have not come in time. */
const headCheckMs = 1000
const unwantedTimeoutMs = 10_000

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

/** Where to listen, in the words of node:net. */
function listenOptions({ port, host, family, shared = false }: FrontOptions): ListenOptions {
  const address = host ?? (family === 'ipv4' ? '0.0.0.0' : family === 'ipv6' ? '::' : undefined)
  return { port, host: address, ipv6Only: family === 'ipv6', exclusive: !shared }
}

class NodeFront implements Front {
  draining = false
  readonly stalls: StallWatch
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
  #drained: () => void = () => {}
  #closed: Promise<void> | undefined

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
    return new Promise((resolve, reject) => {
      const onError = (error: Error) => reject(listenFailure(error, this.#options))
      this.#server.once('error', onError)
      this.#server.listen(listenOptions(this.#options), () => {
        this.#server.off('error', onError)
        resolve((this.#server.address() as AddressInfo).port)
      })
    })
  }

  dismiss(): void {
    this.draining = true
  }

  close(drainMs: number): Promise<void> {
    this.#closed ??= this.#drain(drainMs)
    return this.#closed
  }

  async #drain(drainMs: number): Promise<void> {
    this.dismiss()
    const ended = new Promise<void>(resolve => this.#server.close(() => resolve()))
    if (this.#inFlight > 0) {
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, drainMs)
        this.#drained = () => {
          clearTimeout(timer)
          setImmediate(resolve)
        }
      })
    }
    for (const connection of this.#connections) connection.close()
    await ended
  }

  #onConnection(socket: Socket): void {
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
      if (connection) this.#bySocket.set(socket, connection)
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
    if (announcesBody(request)) {
      this.#pace.add(connection)
      request.once('end', isWhole)
    } else isWhole()
    response.once('close', () => {
      if (--connection.requests === 0 && connection.isOpen) this.#admission.waits(connection)
    })
  }

  #onRequest(request: IncomingMessage, response: ServerResponse, handler: FrontHandler): void {
    this.#inFlight++
    response.once('close', () => {
      if (--this.#inFlight === 0) this.#drained()
    })
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
  readonly #socket: Socket
  readonly #onEnd: () => void

  constructor(socket: Socket, onEnd: () => void) {
    this.#socket = socket
    this.#onEnd = onEnd
    socket.once('close', () => this.#end())
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

class NodeExchange implements Exchange, SlowAnswer {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly #front: NodeFront
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  #answered = false
  #onBody: BodyHandler | undefined
  #pieces: BodyPieces | undefined
  #offset = 0

  constructor(front: NodeFront, request: IncomingMessage, response: ServerResponse) {
    this.#front = front
    this.#request = request
    this.#response = response
    this.method = request.method ?? ''
    request.on('error', () => {}) // The client went away: 'close' of the response reports it.
    response.on('error', () => {})
    const target = originForm(request.url ?? '')
    const mark = target.indexOf('?')
    this.path = mark < 0 ? target : target.slice(0, mark)
    this.query = mark < 0 ? '' : target.slice(mark + 1)
    if (target.length <= cutFromMax) return
    this.path = ownText(this.path)
    this.query = ownText(this.query)
  }

  header(name: string): string {
    const values = this.#request.headersDistinct
    return Object.hasOwn(values, name) ? (values[name]?.[0] ?? '') : ''
  }

  headerTimes(name: string): number {
    const values = this.#request.headersDistinct
    return Object.hasOwn(values, name) ? (values[name]?.length ?? 0) : 0
  }

  clientAddress(): string {
    return plainAddress(this.#request.socket.remoteAddress ?? '')
  }

  reply(status: number, headers: readonly string[], body?: AnswerBody, onSent?: () => void): void {
    const response = this.#response
    if (this.#answered || response.destroyed || response.closed) {
      onSent?.()
      return
    }
    if (onSent) response.once('close', onSent)
    this.#reply(status, headers, body, false)
  }

  stream(status: number, headers: readonly string[], parts: AsyncGenerator<Uint8Array, void, void>): void {
    const response = this.#response
    const isOver = this.#answered || response.destroyed || response.closed
    this.#answered = true
    if (!isOver) {
      response.writeHead(
        status,
        headers.map((text, i) => (i % 2 === 0 ? text : headerText(text))),
      )
      response.flushHeaders()
    }
    this.#writeParts(parts).catch(() => response.destroy())
  }

  async #writeParts(parts: AsyncGenerator<Uint8Array, void, void>): Promise<void> {
    const response = this.#response
    const { stalls } = this.#front
    const isGone = (): boolean => response.destroyed || response.closed
    // Also for a client that has gone: what has not begun does not learn that it was returned.
    for await (const part of parts) {
      if (isGone()) return
      stalls.add(this)
      await new Promise<void>(resolve => {
        response.once('close', resolve)
        response.write(part, () => {
          response.off('close', resolve)
          resolve()
        })
      })
      stalls.remove(this)
      if (isGone()) return
      this.#offset += part.length
    }
    response.end()
  }

  replyAndClose(status: number, headers: readonly string[], body?: Uint8Array | string): void {
    this.#reply(status, headers, body, true)
  }

  /** Gives the whole body to `onBody`; never calls it when the client goes away before, or sends too much. */
  collect(onBody: BodyHandler, bytesMax: number): void {
    this.#onBody = onBody
    const chunks: Buffer[] = []
    let bytes = 0
    this.#request.on('data', (chunk: Buffer) => {
      if (!this.#onBody) return
      bytes += chunk.length
      if (bytes > bytesMax) this.#request.destroy()
      else chunks.push(chunk)
    })
    this.#request.once('end', () => {
      const taker = this.#onBody
      this.#onBody = undefined
      if (taker && bytes <= bytesMax) taker(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
    })
  }

  #reply(status: number, headers: readonly string[], body: AnswerBody | undefined, close: boolean): void {
    const response = this.#response
    if (this.#answered) return
    this.#answered = true
    this.#onBody = undefined
    if (response.destroyed || response.closed) return
    const bytes = bytesOf(body)
    const length = bytes === undefined ? 0 : lengthOf(bytes)
    const head = headers.map((text, i) => (i % 2 === 0 ? text : headerText(text)))
    const silent = status === 204 || status === 304
    if (!silent) head.push('Content-Length', String(length))
    if (close || this.#front.draining) head.push('Connection', 'close')
    response.writeHead(status, head)
    const content = silent || this.method === 'HEAD' || length === 0 ? undefined : bytes
    if (close && this.#bodyIsArriving()) this.#finishAfterBody(content && bytesInOne(content))
    else if (content && length > pieceBytesMax) this.#send(new BodyPieces(content))
    else response.end(content && bytesInOne(content))
    if (response.socket && response.socket.writableLength > 0) this.#watch()
  }

  #send(pieces: BodyPieces): void {
    this.#pieces = pieces
    this.#writePieces()
    // An earlier answer of the connection may still be on its way.
    if (!this.#response.socket) this.#watch()
  }

  /** The system has not taken it at once. */
  #watch(): void {
    const { stalls } = this.#front
    stalls.add(this)
    this.#response.once('close', () => stalls.remove(this))
  }

  /** Writes a piece, and the next one when the system has taken it. */
  #writePieces(): void {
    const pieces = this.#pieces
    if (!pieces) return
    const response = this.#response
    for (;;) {
      const piece = pieces.at(this.#offset)
      this.#offset += piece.length
      if (this.#offset === pieces.length) {
        this.#pieces = undefined
        response.end(piece)
        return
      }
      if (response.write(piece)) continue
      response.once('drain', () => this.#writePieces())
      return
    }
  }

  /** Not known while an earlier answer of the connection is being sent. */
  taken(): number {
    return this.#response.socket ? this.#offset : Number.NaN
  }

  retry(): void {}

  giveUp(): void {
    this.#request.socket.destroy()
  }

  #bodyIsArriving(): boolean {
    return !this.#request.complete && announcesBody(this.#request)
  }

  /** To close with bytes unread resets the connection, which may cost the client the answer it has not read yet. */
  #finishAfterBody(content: Uint8Array | undefined): void {
    const request = this.#request
    if (content) this.#response.write(content)
    else this.#response.flushHeaders()
    let bytes = 0
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > unwantedBytesMax) request.destroy()
    })
    request.once('end', () => this.#response.end())
    request.socket.setTimeout(unwantedTimeoutMs, () => request.destroy())
  }
}

type Bytes = Exclude<AnswerBody, string>

const bytesOf = (body: AnswerBody | undefined): Bytes | undefined =>
  typeof body === 'string' ? Buffer.from(body) : body

const bytesInOne = (bytes: Bytes): Uint8Array => (bytes instanceof Uint8Array ? bytes : Buffer.concat(bytes))
function announcesBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
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

/** `http://host/path`, as a proxy would send it, names the same thing as `/path`. */
function originForm(target: string): string {
  if (target.startsWith('/')) return target
  const scheme = target.indexOf('://')
  if (scheme < 0) return target
  const slash = target.indexOf('/', scheme + 3)
  return slash < 0 ? '/' : target.slice(slash)
}

/** An IPv4 client of a dual-stack socket is an IPv4 client. */
function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
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
