// The HTTP front over uWebSockets.js. [hot] Every request passes here.
//
// Processor time against the barest server on the same binary: 1.04 for a GET answered at once, 1.01 for a POST of 250 bytes
// answered late (wrk, 64 connections; medians of 11 pairs of runs on a busy machine, middle halves 0.99-1.08, 0.94-1.07).
//
// What the binary does by itself, and we rely on: it writes Date, answers `Expect: 100-continue`, reads away a body that
// no handler has asked for, and keeps connections alive. What it decides alone, and we can only document
// (docs/operations/http-servers.md): it closes an idle connection after some 10 s, and a body slower than 16 KB/s; it
// refuses HTTP/1.0, garbage and over 98 headers; it closes a connection when a second request comes before the first
// one was answered; it answers 505 to a first line cut at one of eleven places.
//
// The build is `uws-pack` 20.0.8, with one correction (uws-addon). `uwebsockets` 3.0.6, which served before, answered
// 505 to 50 of 103 cuts of a GET and stayed silent to header names such as `X_A`. The cost per request of both is alike.
//
// There are two applications, and the system's socket belongs to the first. While there is room it serves what it takes in, and knows of a
// connection only that it is there. The last tenth of the places, and all of them where addresses are counted, go to the second one, which
// knows each of its connections and can close it to make room (uws-connection, docs/operations/connections.md).
//
// Not here: one request and its answer (uws-exchange), the same over node:http (node-front), which one is used (open-front), routes and statuses.
import type { HttpResponse, us_listen_socket } from 'uWebSockets.js'
import { createServer } from 'node:net'
import { Admission, addressText, answerStallMsDefault, BodyPace, isIPv4, StallWatch } from './connections.js'
import { AnswerGate, Arrivals, type CutOff, firstRequestMsMax, lookMs, quietMs } from './drain.js'
import { type Front, type FrontHandler, type FrontOptions, listenFailure } from './front.js'
import { readTls, suites12 } from './node-front.js'
import { type App, loadUws, type Uws } from './uws-binary.js'
import { type Heads, UwsConnection } from './uws-connection.js'
import { UwsExchange } from './uws-exchange.js'

/** A front over uWebSockets.js. Fails with UwsMissing where its binary does not load, and when the TLS files cannot be used. */
export async function openUwsFront(options: FrontOptions, handler: FrontHandler): Promise<Front> {
  const { uws } = await loadUws()
  if (!options.tls) return new UwsFront(uws, () => uws.App(), options, handler)
  readTls(options.tls) // The binary would say "App construction failed" and no more.
  const { keyFile, certFile } = options.tls
  return new UwsFront(
    uws,
    () => uws.SSLApp({ key_file_name: keyFile, cert_file_name: certFile, ssl_ciphers: suites12.join(':') }),
    options,
    handler,
  )
}

/** Of ten places so many are for connections that the server knows, and always one. */
const knownOfTen = 1

class UwsFront implements Front, Heads<UwsExchange> {
  draining = false
  readonly stalls: StallWatch
  readonly bodyBytesMax: number
  readonly admission: Admission
  readonly pace: BodyPace
  readonly gate = new AnswerGate()
  /** Ends of connections that are known, so far. */
  knownEnds = 0
  readonly #uws: Uws
  readonly #app: App
  /** Serves the connections that are known. */
  readonly #knowing: App
  readonly #options: FrontOptions
  /** At so many connections further ones become known ones. */
  readonly #unknownMax: number
  #isKnowing = false
  #isClosed = false
  /** A head that came on a connection that is known, until it is known which one that is. */
  #head: UwsExchange | undefined
  #listenSocket: us_listen_socket | undefined
  #connections = 0
  #inFlight = 0
  readonly #arrivals = new Arrivals()
  /** When a connection was accepted last. */
  #openedMs = 0
  #unlistened: Promise<void> | undefined
  #closed: Promise<CutOff | undefined> | undefined

  constructor(uws: Uws, openApp: () => App, options: FrontOptions, handler: FrontHandler) {
    this.#uws = uws
    this.#options = options
    this.bodyBytesMax = options.bodyBytesMax
    this.stalls = new StallWatch(options.answerStallMs ?? answerStallMsDefault, options.onStall ?? (() => {}))
    this.admission = new Admission(options)
    this.pace = new BodyPace(this.admission.dropped)
    const { connectionsMax } = options
    this.#unknownMax = this.admission.countsAddresses ? 0 : Math.floor((connectionsMax * (10 - knownOfTen)) / 10)
    if (this.#unknownMax >= connectionsMax) this.#unknownMax = connectionsMax - 1
    this.#app = openApp()
    this.#app.filter((connection, change) => this.#onConnection(connection, Number(change)))
    this.#app.any('/*', (response, request) => {
      this.#inFlight++
      this.#arrivals.count++
      const exchange = new UwsExchange(this, response, request)
      exchange.start(handler)
    })
    this.#knowing = openApp()
    this.#knowing.filter((connection, change) => this.#onKnownConnection(connection, Number(change)))
    this.#knowing.any('/*', (response, request) => this.#onHead(new UwsExchange(this, response, request), handler))
    this.#choose()
  }

  async listen(): Promise<number> {
    const { port, host, family } = this.#options
    // An empty host would be taken for the port: two signatures.
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

  /** An exchange has been answered, or its client has gone. */
  settled(): void {
    this.#inFlight--
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
    // The last answer is still in the cork buffer. And a connection with bytes unread would be reset.
    await this.#arrivals.still(isInOrder ? Number.POSITIVE_INFINITY : 0)
    const cutOff = isInOrder ? undefined : { connections: this.#connections, requests: this.#inFlight }
    this.#isClosed = true
    this.#app.close()
    this.#knowing.close()
    return cutOff
  }

  /**
   * Resolves when no connection is left, or all of them rest (drain.ts): which of them does is not known. False: that
   * did not come to be until `untilMs`.
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

  #onConnection(connection: HttpResponse, change: number): void {
    this.#connections += change
    this.#arrivals.count++
    if (change > 0) this.#openedMs = performance.now()
    this.#choose()
    if (change > 0 && this.#isUnwanted(connection)) connection.close()
  }

  #onKnownConnection(connection: HttpResponse, change: number): void {
    this.#arrivals.count++
    this.#dropHead(change > 0)
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

  /** Decides which application serves the next connection. */
  #choose(): void {
    const isKnowing = this.#connections >= this.#unknownMax
    if (isKnowing === this.#isKnowing) return
    this.#isKnowing = isKnowing
    const descriptor = this.#knowing.getDescriptor()
    if (isKnowing) this.#app.addChildAppDescriptor(descriptor)
    else this.#app.removeChildAppDescriptor(descriptor)
  }

  #isUnwanted(connection: HttpResponse): boolean {
    return this.#options.family === 'ipv6' && isIPv4(new Uint8Array(connection.getRemoteAddress()))
  }

  /**
   * A head has come on a connection that is known. Nothing is served before the call that follows has named the connection, and nothing is
   * answered in that call: the binary forgets its handler for bodies after it.
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
   * A head that no call named a connection for: its body comes in chunks, and the first is not there yet. Its connection is closed, at the first
   * moment after it: later it might have ended without our knowing.
   */
  #dropHead(mayAnswer: boolean): void {
    const head = this.#head
    this.#head = undefined
    head?.drop(mayAnswer)
  }
}

/** Asks the system by way of node why it would not listen: the binary only says no. */
function whyNot(port: number, host: string | undefined): Promise<Error | undefined> {
  return new Promise(resolve => {
    const probe = createServer()
    probe.once('error', resolve)
    probe.listen({ port, host, exclusive: true }, () => probe.close(() => resolve(undefined)))
  })
}
