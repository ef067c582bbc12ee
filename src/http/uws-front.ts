// The HTTP front over uWebSockets.js. [hot] Every request passes here.
//
// Processor time against the barest server on the same binary: 1.04 for a GET answered at once, 1.01 for a POST of 250
// bytes answered late (wrk, 64 connections; medians of 11 pairs of runs on a busy machine, middle halves 0.99-1.08,
// 0.94-1.07).
//
// The front relies on this behaviour of the binary: it writes Date, answers `Expect: 100-continue`, discards a body
// that no handler wants, and keeps connections alive. The rest can only be documented
// (docs/operations/http-servers.md). It closes an idle connection after some 10 s, and a body slower than 16 KB/s. It
// refuses HTTP/1.0, garbage and over 98 headers. It closes a connection when a second request comes before the first
// one was answered. It answers 505 to a first line cut at one of eleven places.
//
// The build is `uws-pack` 20.0.8, with two corrections (uws-addon). The earlier package, `uwebsockets` 3.0.6, answered
// 505 to 50 of 103 cuts of a GET and did not answer header names such as `X_A`. The cost per request of both is alike.
//
// There are two applications. The system's socket belongs to the first one. While there is room, it serves the
// connections that it accepts, and knows only their number. The last tenth of the places go to the second application;
// with a limit per address, all places do. It tracks each of its connections and can close it to make room
// (uws-connection, docs/operations/connections.md).
//
// An application keeps its certificate forever. So a new certificate makes two new applications. The first application
// keeps the socket, and passes accepted connections on to them. The binary passes a connection on before the first byte
// of TLS, so none is refused. Applications with an old certificate serve their open connections; the binary keeps their
// memory (`certificatesMax`).
//
// Not here: one request and its answer (uws-exchange), the same over node:http (node-front), the choice of front
// (open-front), routes and statuses.
import type { HttpResponse, us_listen_socket } from 'uWebSockets.js'
import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import {
  Admission,
  addressText,
  answerStallMsDefault,
  BodyPace,
  eventsStallMsDefault,
  isIPv4,
  StallWatch,
} from './connections.js'
import { AnswerGate, Arrivals, type CutOff, firstRequestMsMax, lookMs, quietMs } from './drain.js'
import {
  type Front,
  type FrontHandler,
  type FrontOptions,
  listenFailure,
  type OpenConnections,
  type TlsContents,
} from './front.js'
import { checkTls, readTls, suites12 } from './tls.js'
import { type App, loadUws, type Uws } from './uws-binary.js'
import { type RequestHeads, UwsConnection } from './uws-connection.js'
import { UwsExchange } from './uws-exchange.js'
import { TlsReads, uwsSockets } from './uws-socket.js'

/**
 * A front over uWebSockets.js. Fails with UwsMissing where its binary does not load, and when the TLS files cannot be
 * used.
 */
export async function openUwsFront(options: FrontOptions, handler: FrontHandler): Promise<Front> {
  const { uws } = await loadUws()
  if (!options.tls) return new UwsFront(uws, () => uws.App(), options, handler)
  assert(!options.tls.clients, 'uWebSockets.js cannot require certificates of clients')
  readTls(options.tls) // The binary would report only "App construction failed".
  const { keyFile, certFile } = options.tls
  return new UwsFront(
    uws,
    () => uws.SSLApp({ key_file_name: keyFile, cert_file_name: certFile, ssl_ciphers: suites12.join(':') }),
    options,
    handler,
  )
}

/**
 * The limit of certificates that a front serves in its life. The binary never frees an application: two of them, for
 * one certificate, take 75 KB. A larger number lasts longer and takes more memory: this one lasts 166 days with a new
 * certificate every hour, and takes 300 MB.
 */
const certificatesMax = 4_000

/**
 * Connections that the system may have ready for one turn of the event loop; the binary lets so many wait. A connection
 * that is passed on is counted only in a later turn. So from then on the server begins to track connections earlier, by
 * that number, and never has too many that it cannot close.
 */
const acceptedAtOnceMax = 512

/** The share of places, in tenths, for tracked connections. There is always at least one. */
const knownOfTen = 1

class UwsFront implements Front, RequestHeads<UwsExchange> {
  draining = false
  readonly stalls: StallWatch
  readonly eventStalls: StallWatch
  readonly bodyBytesMax: number
  readonly admission: Admission
  readonly pace: BodyPace
  readonly gate = new AnswerGate()
  /** The number of tracked connections that have ended. */
  knownEnds = 0
  readonly #uws: Uws
  readonly #openApp: () => App
  readonly #handler: FrontHandler
  /** The application that has the system's socket. */
  readonly #app: App
  /** Serves untracked connections: `#app` itself, until there is another certificate. */
  #unknowing: App
  /** Serves the tracked connections. */
  #knowing: App
  /** Serves the next connection. */
  #next: App
  /** The number of open connections of each application; those without a connection are not in it. */
  readonly #served = new Map<App, number>()
  #certificates = 1
  readonly #options: FrontOptions
  readonly #tlsReads: TlsReads | undefined
  /** From this number of connections on, further ones are tracked. */
  #unknownMax: number
  #isClosed = false
  /** A head on a tracked connection, until its connection is known. */
  #head: UwsExchange | undefined
  #listenSocket: us_listen_socket | undefined
  #connections = 0
  #inFlight = 0
  readonly #arrivals = new Arrivals()
  /** The time when a connection was last accepted. */
  #openedMs = 0
  #unlistened: Promise<void> | undefined
  #closed: Promise<CutOff | undefined> | undefined

  constructor(uws: Uws, openApp: () => App, options: FrontOptions, handler: FrontHandler) {
    this.#uws = uws
    this.#openApp = openApp
    this.#handler = handler
    this.#options = options
    this.#tlsReads = options.tls ? new TlsReads() : undefined
    this.bodyBytesMax = options.bodyBytesMax
    this.stalls = new StallWatch(options.answerStallMs ?? answerStallMsDefault, options.onStall ?? (() => {}))
    this.eventStalls = new StallWatch(options.eventsStallMs ?? eventsStallMsDefault, options.onStall ?? (() => {}))
    this.admission = new Admission(options)
    this.pace = new BodyPace(this.admission.dropped)
    const { connectionsMax } = options
    this.#unknownMax = this.admission.countsAddresses ? 0 : Math.floor((connectionsMax * (10 - knownOfTen)) / 10)
    if (this.#unknownMax >= connectionsMax) this.#unknownMax = connectionsMax - 1
    this.#app = this.#openUnknowing()
    this.#unknowing = this.#app
    this.#next = this.#app
    this.#knowing = this.#openKnowing()
    this.#choose()
  }

  #openUnknowing(): App {
    const [app, handler] = [this.#openApp(), this.#handler]
    app.filter((connection, change) => this.#onConnection(app, connection, Number(change)))
    const serve = (exchange: UwsExchange): void => {
      this.#inFlight++
      this.#arrivals.count++
      exchange.start(handler)
    }
    this.#serveSockets(app, serve)
    app.any('/*', (response, request) => serve(new UwsExchange(this, response, request)))
    return app
  }

  #openKnowing(): App {
    const [app, handler] = [this.#openApp(), this.#handler]
    app.filter((connection, change) => this.#onKnownConnection(app, connection, Number(change)))
    this.#serveSockets(app, exchange => this.#onHead(exchange, handler))
    app.any('/*', (response, request) => this.#onHead(new UwsExchange(this, response, request), handler))
    return app
  }

  /** Requests for a WebSocket take the path of all others, and become one when their handler says so. */
  #serveSockets(app: App, serve: (exchange: UwsExchange) => void): void {
    const { sockets } = this.#options
    if (!sockets) return
    const onEnd = (isTracked: boolean): void => this.#onSocketEnd(app, isTracked)
    const { behavior, begin } = uwsSockets(
      sockets,
      this.#uws.SHARED_COMPRESSOR,
      this.eventStalls,
      this.#tlsReads,
      (response, request, context) => serve(new UwsExchange(this, response, request, { context, begin, onEnd })),
    )
    for (const path of sockets.paths) app.ws(path, behavior)
  }

  /** The filters of the applications do not report this end. */
  #onSocketEnd(app: App, isTracked: boolean): void {
    this.#arrivals.count++
    this.#connections--
    if (isTracked) this.knownEnds++
    this.#count(app, -1)
    this.#choose()
  }

  get connections(): readonly OpenConnections[] {
    return [{ server: 'uws', isTls: this.#options.tls !== undefined, count: this.#connections }]
  }

  async listen(): Promise<number> {
    const { port, host, family } = this.#options
    // The binary has two signatures, and would take an empty host for the port.
    const address = host ?? (family === 'ipv4' ? '0.0.0.0' : family === 'ipv6' ? '::' : undefined)
    const exclusive = this.#options.shared ? 0 : this.#uws.LIBUS_LISTEN_EXCLUSIVE_PORT
    const socket = await new Promise<us_listen_socket | false>(resolve => {
      if (address === undefined) this.#app.listen(port, exclusive, resolve)
      else this.#app.listen(address, port, exclusive, resolve)
    })
    if (!socket) throw listenFailure(await whyNot(port, address), this.#options)
    this.#listenSocket = socket
    return this.#uws.us_socket_local_port(socket)
  }

  /** The binary reads the files again. If they have changed meanwhile, the watcher of the files calls this again. */
  renewTls(contents: TlsContents): void {
    const { tls } = this.#options
    if (!tls || this.#isClosed) return
    checkTls(tls, contents)
    if (this.#certificates >= certificatesMax)
      throw new Error(
        `${certificatesMax} certificates have been served, and each keeps some memory: a restart is needed`,
      )
    const isFirst = this.#certificates === 1
    const unknownMax = isFirst ? Math.max(0, this.#unknownMax - acceptedAtOnceMax) : this.#unknownMax
    const knowing = this.#openKnowing()
    this.#certificates++
    this.#unknowing = unknownMax > 0 ? this.#openUnknowing() : knowing
    this.#knowing = knowing
    this.#unknownMax = unknownMax
    this.#choose()
  }

  dismiss(): void {
    this.draining = true
  }

  unlisten(): Promise<void> {
    this.#unlistened ??= this.#stopListening(Number.POSITIVE_INFINITY)
    return this.#unlistened
  }

  close(drainMs: number): Promise<CutOff | undefined> {
    this.#closed ??= this.#drain(drainMs)
    return this.#closed
  }

  take(): UwsExchange | undefined {
    const head = this.#head
    this.#head = undefined
    if (head) this.#inFlight++
    return head
  }

  /** An exchange was answered, or its client is gone. */
  settled(): void {
    this.#inFlight--
    this.#arrivals.count++
  }

  /** A WebSocket whose client waits for answers counts as a request. */
  expecting(change: 1 | -1): void {
    this.#inFlight += change
    this.#arrivals.count++
  }

  async #stopListening(waitMs: number): Promise<void> {
    if (!this.#listenSocket) return
    this.gate.shut()
    await this.#arrivals.still(waitMs)
    this.dismiss()
    this.#uws.us_listen_socket_close(this.#listenSocket)
  }

  async #drain(drainMs: number): Promise<CutOff | undefined> {
    const untilMs = performance.now() + drainMs
    this.#unlistened ??= this.#stopListening(drainMs)
    await this.#unlistened
    this.dismiss()
    this.gate.open()
    const isInOrder = await this.#quiet(untilMs)
    // The last answer is still in the cork buffer. Also, a connection with unread bytes would be reset.
    await this.#arrivals.still(isInOrder ? Number.POSITIVE_INFINITY : 0)
    const cutOff = isInOrder ? undefined : { connections: this.#connections, requests: this.#inFlight }
    this.#isClosed = true
    for (const app of new Set([this.#app, ...this.#served.keys()])) app.close()
    return cutOff
  }

  /**
   * Resolves with true when no connection is left, or all of them are idle (drain.ts); which ones are idle is not
   * known. False: that was not so until `untilMs`.
   */
  async #quiet(untilMs: number): Promise<boolean> {
    let before = this.#arrivals.count
    let sinceMs = performance.now()
    for (;;) {
      const nowMs = performance.now()
      if (this.#inFlight > 0 || this.#arrivals.count !== before) {
        before = this.#arrivals.count
        sinceMs = nowMs
      }
      const areQuiet = nowMs - sinceMs >= quietMs && nowMs - this.#openedMs >= firstRequestMsMax
      if (this.#inFlight === 0 && (this.#connections === 0 || areQuiet)) return true
      if (nowMs >= untilMs) return false
      await new Promise<void>(resolve => setTimeout(resolve, Math.min(lookMs, untilMs - nowMs)))
    }
  }

  #onConnection(app: App, connection: HttpResponse, change: number): void {
    this.#connections += change
    this.#arrivals.count++
    this.#count(app, change)
    if (change > 0) this.#openedMs = performance.now()
    this.#choose()
    if (change < 0) return
    const isTooMany = this.#connections > this.#options.connectionsMax
    if (isTooMany) this.admission.dropped('full')
    if (this.#isClosed || isTooMany || this.#isUnwanted(connection)) connection.close()
  }

  #onKnownConnection(app: App, connection: HttpResponse, change: number): void {
    this.#arrivals.count++
    this.#dropHead(change > 0)
    this.#count(app, change)
    if (change < 0) {
      this.#connections--
      this.knownEnds++
      this.#choose()
      return
    }
    this.#openedMs = performance.now()
    const others = this.#connections
    this.#connections++
    const address = addressText(new Uint8Array(connection.getRemoteAddress()))
    if (this.#isClosed || this.#isUnwanted(connection) || !this.admission.admits(others, address)) connection.close()
    else new UwsConnection(connection, address, this, this.admission)
    this.#choose()
  }

  #count(app: App, change: number): void {
    const count = (this.#served.get(app) ?? 0) + change
    if (count === 0) this.#served.delete(app)
    else this.#served.set(app, count)
  }

  /** Chooses the application that serves the next connection. */
  #choose(): void {
    const next = this.#connections >= this.#unknownMax ? this.#knowing : this.#unknowing
    if (next === this.#next) return
    if (this.#next !== this.#app) this.#app.removeChildAppDescriptor(this.#next.getDescriptor())
    if (next !== this.#app) this.#app.addChildAppDescriptor(next.getDescriptor())
    this.#next = next
  }

  #isUnwanted(connection: HttpResponse): boolean {
    return this.#options.family === 'ipv6' && isIPv4(new Uint8Array(connection.getRemoteAddress()))
  }

  /**
   * A head has come on a tracked connection. Nothing is served before the following call has named the connection, and
   * nothing is answered in that call: after it the binary drops its body handler.
   */
  #onHead(exchange: UwsExchange, handler: FrontHandler): void {
    this.#arrivals.count++
    this.#dropHead(true)
    this.#head = exchange
    setImmediate(() => {
      if (this.#head === exchange) this.#dropHead(true)
      else exchange.begin(handler)
    })
  }

  /**
   * Drops a head whose connection no call has named: its body comes in chunks, and the first has not arrived. Its
   * connection is closed at the first moment after it: later it might have ended without notice.
   */
  #dropHead(mayAnswer: boolean): void {
    const head = this.#head
    this.#head = undefined
    head?.drop(mayAnswer)
  }
}

/** Finds out through node why the system refuses to listen: the binary reports no reason. */
function whyNot(port: number, host: string | undefined): Promise<Error | undefined> {
  return new Promise(resolve => {
    const probe = createServer()
    probe.once('error', resolve)
    probe.listen({ port, host, exclusive: true }, () => probe.close(() => resolve(undefined)))
  })
}
