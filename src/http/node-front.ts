// The HTTP front over node:http and node:https: for platforms without the uWebSockets.js binary, and for HTTP/1.0.
//
// It behaves as uws-front.ts does and gives way where node cannot: methods that its parser does not know are answered 400
// without asking anybody. Where node would do more than the other front it is held back: of a header sent twice the first
// one counts, too many headers are a 431 (node would drop the rest in silence, perhaps the one that names the tenant).
//
// The count of exchanges in flight decides when closing is done, not the count of connections: an idle client must not
// hold the program back.
//
// Not here: routes and statuses (routes, reply); which front is used (open-front).

import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, isIPv6, type ListenOptions, type Socket } from 'node:net'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { ownText } from '../domain/recent.js'
import { ambiguousBody, isAmbiguous } from './framing.js'
import type { BodyHandler, Exchange, Front, FrontHandler, FrontOptions, TlsFiles } from './front.js'
import { headBytesMax } from './head-limit.js'
import { cutFromMax } from './url.js'

/** Headers a request may have. */
const headersMax = 100
/** A client has this long for line and headers, counted from the connection or from the request before. */
const headTimeoutMs = 60_000
const requestTimeoutMs = 300_000
/** Of a body that nobody wants this much is read away, so that the client finishes sending and sees the answer. */
export const unwantedBytesMax = 16 * 1024 * 1024
const unwantedTimeoutMs = 10_000

/** A front over node:http. Fails when the TLS files cannot be used. */
export async function openNodeFront(options: FrontOptions, handler: FrontHandler): Promise<Front> {
  const limits = { maxHeaderSize: headBytesMax, headersTimeout: headTimeoutMs, requestTimeout: requestTimeoutMs }
  const server = options.tls ? createTlsServer({ ...readTls(options.tls), ...limits }) : createServer(limits)
  return new NodeFront(server, options, handler)
}

/** Where to listen, in the words of node:net. */
function listenOptions({ port, host, family, shared = false }: FrontOptions): ListenOptions {
  const address = host ?? (family === 'ipv4' ? '0.0.0.0' : family === 'ipv6' ? '::' : undefined)
  return { port, host: address, ipv6Only: family === 'ipv6', exclusive: !shared }
}

class NodeFront implements Front {
  draining = false
  readonly #server: Server
  readonly #options: FrontOptions
  readonly #sockets = new Set<Socket>()
  /** Connections whose last request has left open where it ends. */
  readonly #refused = new WeakSet<Socket>()
  #inFlight = 0
  #drained: () => void = () => {}
  #closed: Promise<void> | undefined

  constructor(server: Server, options: FrontOptions, handler: FrontHandler) {
    this.#server = server
    this.#options = options
    server.maxConnections = options.connectionsMax
    server.maxHeadersCount = 0
    // node's own close() calls this, and takes a connection for idle whose answer is still being sent.
    server.closeIdleConnections = () => {}
    server.keepAliveTimeout = options.idleTimeoutS * 1000
    const onRequest = (request: IncomingMessage, response: ServerResponse) =>
      this.#onRequest(request, response, handler)
    server.on('request', onRequest)
    server.on('checkExpectation', onRequest)
    server.on('clientError', refuse)
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
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
    for (const socket of this.#sockets) socket.destroy()
    await ended
  }

  #onRequest(request: IncomingMessage, response: ServerResponse, handler: FrontHandler): void {
    this.#inFlight++
    response.once('close', () => {
      if (--this.#inFlight === 0) this.#drained()
    })
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

class NodeExchange implements Exchange {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly #front: NodeFront
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  #answered = false
  #onBody: BodyHandler | undefined

  constructor(front: NodeFront, request: IncomingMessage, response: ServerResponse) {
    this.#front = front
    this.#request = request
    this.#response = response
    this.method = request.method ?? ''
    request.on('error', () => {}) // The client went away: 'close' of the response has told.
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

  reply(status: number, headers: readonly string[], body?: Uint8Array | string): void {
    this.#reply(status, headers, body, false)
  }

  replyAndClose(status: number, headers: readonly string[], body?: Uint8Array | string): void {
    this.#reply(status, headers, body, true)
  }

  /** Gives the whole body to `onBody`, which is not called at all when the client goes away before or sends too much. */
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

  #reply(status: number, headers: readonly string[], body: Uint8Array | string | undefined, close: boolean): void {
    const response = this.#response
    if (this.#answered) return
    this.#answered = true
    this.#onBody = undefined
    if (response.destroyed || response.closed) return
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    const head = headers.map((text, i) => (i % 2 === 0 ? text : headerText(text)))
    const silent = status === 204 || status === 304
    if (!silent) head.push('Content-Length', String(bytes?.length ?? 0))
    if (close || this.#front.draining) head.push('Connection', 'close')
    response.writeHead(status, head)
    const content = silent || this.method === 'HEAD' || !bytes?.length ? undefined : bytes
    if (close && this.#bodyIsArriving()) this.#finishAfterBody(content)
    else response.end(content)
  }

  #bodyIsArriving(): boolean {
    const { headers, complete } = this.#request
    return !complete && (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0)
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

/** What cannot be parsed: no request that anybody could answer properly. */
function refuse(error: NodeJS.ErrnoException, socket: Socket | import('node:stream').Duplex): void {
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

/** Suites with forward secrecy and authenticated encryption, the only ones that are offered. Those of TLS 1.3 have both by definition. */
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

/** What no header may hold becomes `?`: a line end would let the client write headers of its own. */
export function headerText(value: string): string {
  return value.replace(/[^\t -~\x80-\xff]/g, '?')
}

/** The reason why an address cannot be listened on, in the words both fronts use. */
export function listenFailure(cause: NodeJS.ErrnoException | undefined, options: FrontOptions): Error {
  const host = options.host ?? (options.family === 'ipv4' ? '0.0.0.0' : '::')
  const address = `${isIPv6(host) ? `[${host}]` : host}:${options.port}`
  if (cause === undefined) return new Error(`cannot listen: ${address}`)
  if (cause.code === 'EADDRINUSE') return new Error(`address already in use: ${address}`, { cause })
  if (cause.code === 'EACCES') return new Error(`not permitted to listen: ${address}`, { cause })
  return new Error(`cannot listen: ${address} (${cause.message})`, { cause })
}
