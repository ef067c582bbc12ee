// The HTTP front over node:http and node:https: for platforms without the uWebSockets.js binary, and for HTTP/1.0.
//
// It behaves as uws-front.ts does, except where node cannot: methods that its parser does not know get a 400 from node
// itself. Where node would do more than the other front, it is restricted. Of a header sent twice the first one counts.
// Too many headers are a 431; node would drop the rest silently, perhaps the header that names the tenant.
//
// When it stops, it closes its own side of a connection first, and discards the bytes that the client still sends. So
// no connection is reset (drain.ts).
//
// Not here: routes and statuses (routes, reply); the choice of front (open-front).

import type { X509Certificate } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { WebSocketServer } from 'ws'
import { ClientCertificates, type RevocableConnection } from './client-certificates.js'
import type { ArrivingBody, WaitingConnection } from './connections.js'
import {
  Admission,
  answerStallMsDefault,
  BodyPace,
  eventsStallMsDefault,
  headMsMax,
  StallWatch,
} from './connections.js'
import { AnswerGate, Arrivals, type CutOff, firstRequestMsMax, lingerMsMax, lookMs, quietMs } from './drain.js'
import {
  ambiguousBody,
  type Front,
  type FrontHandler,
  type FrontOptions,
  framingOf,
  headBytesMax,
  headerText,
  listenFailure,
  listenOptions,
  type OpenConnections,
  type SocketOptions,
  type TlsContents,
} from './front.js'
import { announcesBody, NodeExchange, type NodeUpgrade, plainAddress } from './node-exchange.js'
import { NodeSockets, socketServer } from './node-socket.js'
import { checkTls, readTls } from './tls.js'

const headersMax = 100
/** How often node checks for heads that are late. */
const headCheckMs = 1000

/** A front over node:http. Fails when the TLS files cannot be used. */
export async function openNodeFront(options: FrontOptions, handler: FrontHandler): Promise<Front> {
  const limits = {
    maxHeaderSize: headBytesMax,
    headersTimeout: headMsMax,
    connectionsCheckingInterval: headCheckMs,
    requestTimeout: 0, // Bodies have a minimum pace instead.
  }
  const { tls } = options
  if (!tls) return new NodeFront(createServer(limits), options, handler)
  const { contents, options: secure } = readTls(tls)
  const { clients } = tls
  const asked = clients && { requestCert: true, rejectUnauthorized: clients.isRequired }
  const server = createTlsServer({ ...secure, ...asked, ...limits, handshakeTimeout: headMsMax })
  return new NodeFront(server, options, handler, contents.clientCa)
}

class NodeFront implements Front {
  draining = false
  readonly stalls: StallWatch
  readonly eventStalls: StallWatch
  readonly gate = new AnswerGate()
  readonly #server: Server | TlsServer
  readonly #options: FrontOptions
  readonly #admission: Admission
  readonly #pace: BodyPace
  readonly #connections = new Set<NodeConnection>()
  /** By the socket of requests: with TLS it is not the accepted socket. */
  readonly #bySocket = new WeakMap<Duplex, NodeConnection>()
  /** Connections whose last request had an ambiguous end. */
  readonly #refused = new WeakSet<Socket>()
  readonly #sockets: NodeSockets
  /** undefined: clients are not asked for certificates. */
  readonly #certificates: ClientCertificates | undefined
  #inFlight = 0
  readonly #arrivals = new Arrivals()
  #ended: Promise<void> | undefined
  #unlistened: Promise<void> | undefined
  #closed: Promise<CutOff | undefined> | undefined

  /** `clientCa`: the authorities of clients; undefined: they are not asked for certificates. */
  constructor(server: Server | TlsServer, options: FrontOptions, handler: FrontHandler, clientCa?: Buffer) {
    this.#server = server
    this.#options = options
    this.stalls = new StallWatch(options.answerStallMs ?? answerStallMsDefault, options.onStall ?? (() => {}))
    this.eventStalls = new StallWatch(options.eventsStallMs ?? eventsStallMsDefault, options.onStall ?? (() => {}))
    this.#sockets = new NodeSockets(this.eventStalls)
    this.#admission = new Admission(options)
    const isRequired = options.tls?.clients?.isRequired ?? true
    const onDropped = (): void => this.#admission.dropped('certificate')
    this.#certificates = clientCa && new ClientCertificates(clientCa, { isRequired, onDropped })
    this.#pace = new BodyPace(this.#admission.dropped)
    server.maxHeadersCount = 0
    // node's own close() calls this, and treats a connection as idle while its answer is still being sent.
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
    const { sockets } = options
    if (sockets) this.#serveSockets(sockets, handler)
    if (options.tls) this.#knowTlsSockets()
  }

  get connections(): readonly OpenConnections[] {
    return [{ server: 'node', isTls: this.#options.tls !== undefined, count: this.#connections.size }]
  }

  listen(): Promise<number> {
    const { source, port, host, family } = this.#options
    if (source) {
      this.#server.emit('listening') // From then on node checks for heads that are late.
      return source.open({ port, host, family }, socket => this.#onHanded(socket))
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

  renewTls(contents: TlsContents): void {
    const { tls } = this.#options
    if (!tls || !('setSecureContext' in this.#server)) return
    this.#server.setSecureContext(checkTls(tls, contents).options)
    if (contents.clientCa) this.#certificates?.trust(contents.clientCa)
  }

  certificateOf(socket: Duplex): X509Certificate | undefined {
    return this.#certificates?.of(socket)
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

  /** Treats the socket as if the server had accepted it itself. */
  #onHanded(socket: Socket): void {
    socket.allowHalfOpen = true
    socket.setNoDelay(true)
    this.#server.emit('connection', socket)
  }

  /**
   * node takes every request with an `Upgrade` header away from the server. Requests for a WebSocket at one of our
   * paths take the path of all others, and become one when their handler says so. The others, as the offer of HTTP/2 by
   * some clients, are ordinary requests: the server reads them once more, without that header.
   */
  #serveSockets(options: SocketOptions, handler: FrontHandler): void {
    const server = socketServer(options)
    this.#server.on('upgrade', (request, stream: Socket, behind: Buffer) => {
      const connection = this.#bySocket.get(stream)
      // An earlier request of the connection that is not answered yet: no client sends this one before.
      if (!connection?.isOpen || connection.requests > 0) return stream.destroy()
      if (isSocketRequest(request, options.paths)) this.#onUpgrade(server, request, stream, behind, handler)
      else this.#readAgain(request, stream, behind)
    })
  }

  #onUpgrade(
    server: WebSocketServer,
    request: IncomingMessage,
    stream: Socket,
    behind: Buffer,
    handler: FrontHandler,
  ): void {
    stream.on('error', () => {}) // The client is gone: `close` reports it.
    const response = new ServerResponse(request)
    response.shouldKeepAlive = false
    response.assignSocket(stream)
    response.once('finish', () => stream.destroySoon())
    const onUpgrade: NodeUpgrade = (headers, protocol, listener) => {
      response.detachSocket(stream)
      response.emit('close') // Its exchange is over, and the connection goes on.
      const connection = this.#bySocket.get(stream)
      if (connection) this.#admission.waitsNoMore(connection)
      request.headers['sec-websocket-protocol'] = protocol === '' ? undefined : protocol
      stream.setTimeout(0)
      const addHeaders = (lines: string[]): void => {
        for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at]}: ${headerText(headers[at + 1]!)}`)
      }
      stream.setDefaultEncoding('latin1') // One character of a header is one byte.
      let hasOpened = false
      server.on('headers', addHeaders)
      server.handleUpgrade(request, stream, behind, native => {
        hasOpened = true
        stream.setDefaultEncoding('utf8')
        this.#sockets.add(native, stream, listener, change => {
          this.#inFlight += change
          if (connection) connection.requests += change
        })
      })
      server.off('headers', addHeaders)
      stream.setDefaultEncoding('utf8')
      return hasOpened
    }
    this.#onRequest(request, response, handler, hasSocketKey(request) ? onUpgrade : undefined)
  }

  #readAgain(request: IncomingMessage, stream: Socket, behind: Buffer): void {
    const { method, url, httpVersion, rawHeaders } = request
    let head = `${method} ${url} HTTP/${httpVersion}\r\n`
    for (let at = 0; at < rawHeaders.length; at += 2)
      if (rawHeaders[at]!.toLowerCase() !== 'upgrade') head += `${rawHeaders[at]}: ${rawHeaders[at + 1]}\r\n`
    stream.unshift(Buffer.concat([Buffer.from(`${head}\r\n`, 'latin1'), behind]))
    this.#server.emit(this.#options.tls ? 'secureConnection' : 'connection', stream)
  }

  #onConnection(socket: Socket): void {
    if (this.#bySocket.has(socket)) return
    this.#arrivals.count++
    const address = plainAddress(socket.remoteAddress ?? '')
    if (!this.#admission.admits(this.#connections.size, address)) {
      socket.destroy()
      return
    }
    this.#admission.enter(address)
    const connection = new NodeConnection(socket, () => {
      this.#connections.delete(connection)
      this.#certificates?.remove(connection)
      this.#pace.delete(connection)
      this.#admission.waitsNoMore(connection)
      this.#admission.leave(address)
    })
    this.#connections.add(connection)
    if (this.draining) connection.linger()
    this.#bySocket.set(socket, connection)
    this.#admission.waits(connection)
  }

  /** Node does not expose the accepted socket below a TLS socket. The addresses and ports of both sides identify it. */
  #knowTlsSockets(): void {
    const accepted = new Map<string, NodeConnection>()
    const nameOf = ({ remoteAddress, remotePort, localAddress, localPort }: Socket): string =>
      `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
    this.#server.on('connection', (socket: Socket) => {
      const connection = this.#bySocket.get(socket)
      if (!connection) return
      const name = nameOf(socket)
      accepted.set(name, connection)
      socket.once('close', () => {
        if (accepted.get(name) === connection) accepted.delete(name)
      })
    })
    this.#server.on('secureConnection', (socket: TLSSocket) => {
      const connection = accepted.get(nameOf(socket))
      if (this.#bySocket.has(socket)) return
      if (!connection || this.#certificates?.admit(socket, connection) === false) {
        socket.destroy()
        return
      }
      connection.speaksOver(socket)
      this.#bySocket.set(socket, connection)
    })
    this.#server.on('tlsClientError', (error, socket) => this.#certificates?.onFailed(error, socket))
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
      if (--connection.requests > 0 || !connection.isOpen) return
      if (connection.isRevoked) connection.revoke()
      else this.#admission.waits(connection)
    })
  }

  #onRequest(request: IncomingMessage, response: ServerResponse, handler: FrontHandler, onUpgrade?: NodeUpgrade): void {
    const connection = this.#bySocket.get(request.socket)
    if (connection?.hasEnded || connection?.isRevoked) {
      request.resume()
      return
    }
    this.#arrivals.count++
    this.#inFlight++
    response.once('close', () => this.#inFlight--)
    this.#follow(request, response)
    const exchange = new NodeExchange(this, request, response, onUpgrade)
    if (request.rawHeaders.length > 2 * headersMax) {
      exchange.replyAndClose(431, [])
      return
    }
    const framing = framingOf(exchange.method, request.rawHeaders)
    // HTTP/1.0 has no chunks: such a proxy reads on until the end of the connection.
    const isClear = framing === 'length' || (framing === 'chunks' && request.httpVersion !== '1.0')
    if (!isClear || this.#refused.has(request.socket)) {
      this.#refuse(request, response)
      return
    }
    const onBody = handler.onRequest(exchange)
    if (onBody) exchange.collect(onBody, this.#options.bodyBytesMax)
    else if (announcesBody(request)) request.resume()
  }

  /** Node has parsed the following bytes of the same segment as another request, which is not served. */
  #refuse(request: IncomingMessage, response: ServerResponse): void {
    const isFirst = !this.#refused.has(request.socket)
    this.#refused.add(request.socket)
    if (!isFirst) return
    const headers = ['Content-Type', 'application/json', 'Content-Length', String(ambiguousBody.length)]
    response.writeHead(400, [...headers, 'Connection', 'close'])
    response.end(ambiguousBody, () => request.socket.destroySoon())
  }
}

/** Whether it asks for a WebSocket at one of these paths (RFC 6455, 4.2.1). */
function isSocketRequest(request: IncomingMessage, paths: readonly string[]): boolean {
  const { method, url = '', headers } = request
  const [path] = url.split('?', 1)
  const isAsked = method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket' && paths.includes(path ?? '')
  return isAsked && !announcesBody(request)
}

/** Whether its handshake can be answered. */
const hasSocketKey = ({ headers }: IncomingMessage): boolean =>
  /^[+/0-9A-Za-z]{22}==$/.test(headers['sec-websocket-key'] ?? '')

/** The longest time that requests in progress have when their connection is revoked. */
const revokedMsMax = 2_000

class NodeConnection implements WaitingConnection, ArrivingBody, RevocableConnection {
  isOpen = true
  requests = 0
  /** Its certificate does not count any more: no further request is served. */
  isRevoked = false
  /** Whether a request has come. */
  hasAsked = false
  /** The server has closed its side: no further answer is possible. */
  hasEnded = false
  readonly #socket: Socket
  /** The stream that is read and written; with TLS it is not the accepted socket. */
  #stream: Socket
  readonly #onEnd: () => void
  /** The time of the last received byte, or of the server's end; and the number of bytes received by then. */
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

  /** Called when its TLS socket exists. */
  speaksOver(stream: Socket): void {
    this.#stream = stream
    if (this.#isLingering) this.linger()
  }

  /** node would close a connection directly after its last answer. That resets it if the client still sends. */
  linger(): void {
    this.#isLingering = true
    this.#stream.destroySoon = () => this.#endSide()
  }

  revoke(): void {
    if (!this.isRevoked) setTimeout(() => this.close(), revokedMsMax).unref()
    this.isRevoked = true
    if (this.requests === 0) this.#stream.destroySoon()
  }

  /** From now on `look` is called. */
  drain(): void {
    this.#sinceMs = performance.now()
    this.#bytes = this.bytesCome()
  }

  /** Ends an idle connection (drain.ts), and closes it when the client does not end its side. */
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
    // Discards further bytes: node reads no more of a connection after its last answer.
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

/** Answers bytes that cannot be parsed, so there is no request to answer properly. */
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
