// The HTTP front over uWebSockets.js. [hot] Every request passes here.
//
// Processor time against the barest server on the same binary: 1.04 for a GET answered at once, 1.01 for a POST of 250 bytes
// answered late (wrk, 64 connections; medians of 11 pairs of runs on a busy machine, middle halves 0.99-1.08, 0.94-1.07).
//
// What the binary does by itself, and we rely on: it writes Date, answers `Expect: 100-continue`, reads away a body that no handler
// has asked for, and keeps connections alive. What it decides alone, and we can only document (docs/operations/http-servers.md): it closes
// an idle connection after some 10 s, and a body slower than 16 KB/s; it cuts bytes from 0x80 on from both ends of a header's
// value, so that a tenant `café` arrives as `caf`, and `é` as none; it refuses HTTP/1.0, garbage and over 98 headers; it closes a connection
// when a second request comes before the first one was answered; it answers 505 to a first line cut at one of eleven places.
//
// The build is `uws-pack` 20.0.8. `uwebsockets` 3.0.6, which served before, answered 505 to 50 of 103 cuts of a GET and stayed silent to header
// names such as `X_A`. The cost per request of both is alike.
//
// A handler may keep the exchange and read headers later: they are copied once, in one pass, which costs as much as eleven looks at the native
// request (2 us with six headers, less with two). A body chunk is a window into the receive buffer and lives inside its call only.
// After the end of an answer the native object throws when touched: `#open` says whether it may be.
//
// There are two applications, and the system's socket belongs to the first. While there is room it serves what it takes in, and knows of a
// connection only that it is there. The last tenth of the places, and all of them where addresses are counted, go to the second one, which
// knows each of its connections and can close it to make room (uws-connection, docs/operations/connections.md).
//
// Not here: the same over node:http (node-front), which one is used (open-front), routes and statuses.

import type { HttpRequest, HttpResponse, TemplatedApp, us_listen_socket } from 'uWebSockets.js'
import { readFileSync } from 'node:fs'
import { STATUS_CODES } from 'node:http'
import { createServer } from 'node:net'
import { BodyPieces, lengthOf } from './body-pieces.js'
import { Admission, type ArrivingBody, BodyPace, type Waiting } from './connections.js'
import { ambiguousBody, isAmbiguous } from './framing.js'
import type { AnswerBody, BodyHandler, Exchange, Front, FrontHandler, FrontOptions } from './front.js'
import { setHeadLimit } from './head-limit.js'
import { headerText, listenFailure, readTls, suites12, unwantedBytesMax } from './node-front.js'
import { answerStallMsDefault, type SlowAnswer, StallWatch } from './stall-watch.js'
import { type ConnectionRequest, type Heads, UwsConnection } from './uws-connection.js'

/** The binary is not there, or not for this platform. */
export class UwsMissing extends Error {}

/** A front over uWebSockets.js. Fails with UwsMissing where its binary does not load, and when the TLS files cannot be used. */
export async function openUwsFront(options: FrontOptions, handler: FrontHandler): Promise<Front> {
  const uws = await load()
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

/** What the package exports; its own types lack some of it. */
type OnListen = (socket: us_listen_socket | false) => void
type App = Omit<TemplatedApp, 'listen'> & {
  listen(port: number, options: number, onListen: OnListen): void
  listen(host: string, port: number, options: number, onListen: OnListen): void
  /** Names this application to `addChildAppDescriptor`. */
  getDescriptor(): number
  /** From now on what this application accepts is served by the other one. */
  addChildAppDescriptor(descriptor: number): void
  removeChildAppDescriptor(descriptor: number): void
}
interface Uws {
  App(): App
  SSLApp(options: { key_file_name: string; cert_file_name: string; ssl_ciphers: string }): App
  us_listen_socket_close(socket: us_listen_socket): void
  us_socket_local_port(socket: us_listen_socket): number
  LIBUS_LISTEN_EXCLUSIVE_PORT: number
  _cfg(key: string): void
}

async function load(): Promise<Uws> {
  setHeadLimit()
  try {
    const uws = (await import('uWebSockets.js')) as unknown as Uws
    uws._cfg('silent') // No `uWebSockets` header.
    return uws
  } catch (cause) {
    const platform = `${process.platform} ${process.arch}, Node.js ${process.version}`
    const [reason] = (cause as Error).message
      .split('\n')
      .filter(line => line !== '')
      .slice(-1)
    throw new UwsMissing(`uWebSockets.js cannot be loaded on this machine (${platform}: ${reason})`, { cause })
  }
}

/** Which build of which package has been loaded, for the log. */
export function loadedUws(): string {
  const binary = `uws_${process.platform}_${process.arch}_${process.versions.modules}`
  const manifest = new URL('../package.json', import.meta.resolve('uWebSockets.js'))
  const { name, version } = JSON.parse(readFileSync(manifest, 'utf8')) as { name: string; version: string }
  return `uWebSockets.js (${name} ${version}, ${binary})`
}

/** Of ten places so many are for connections that the server knows, and always one. */
const knownOfTen = 1

class UwsFront implements Front, Heads<UwsExchange> {
  draining = false
  readonly stalls: StallWatch
  readonly bodyBytesMax: number
  readonly admission: Admission
  readonly pace: BodyPace
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
  #drained: () => void = () => {}
  #closed: Promise<void> | undefined

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

  close(drainMs: number): Promise<void> {
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
    if (--this.#inFlight === 0) this.#drained()
  }

  async #drain(drainMs: number): Promise<void> {
    this.dismiss()
    if (this.#listenSocket) this.#uws.us_listen_socket_close(this.#listenSocket)
    if (this.#inFlight > 0) {
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, drainMs)
        this.#drained = () => {
          clearTimeout(timer)
          setImmediate(resolve) // The last answer is still in the cork buffer.
        }
      })
    }
    this.#isClosed = true
    this.#app.close()
    this.#knowing.close()
  }

  #onConnection(connection: HttpResponse, change: number): void {
    this.#connections += change
    this.#choose()
    if (change > 0 && this.#isUnwanted(connection)) connection.close()
  }

  #onKnownConnection(connection: HttpResponse, change: number): void {
    this.#dropHead(change > 0)
    if (change < 0) {
      this.#connections--
      this.knownEnds++
      this.#choose()
      return
    }
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

class UwsExchange implements Exchange, ConnectionRequest, ArrivingBody, Waiting, SlowAnswer {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly #front: UwsFront
  readonly #response: HttpResponse
  /** Names in lower case and values in turn. Copied at once: one pass costs less than the looks that follow, and the request is gone after them. */
  readonly #headers: readonly string[]
  /** The native response may be touched. */
  #open = true
  #answered = false
  /** The answer is out, the rest of the body is being read away. */
  #lingering = false
  /** We are inside a call of the binary for this connection, which collects what is written. */
  #corked = true
  #bodyArriving = false
  #bodyRead = false
  #onBody: BodyHandler | undefined
  #chunks: Buffer[] | undefined
  #bytes = 0
  /** What is being sent. */
  #pieces: BodyPieces | undefined
  #onSent: (() => void) | undefined
  /** The rest of the body is awaited. */
  #isPaced = false
  /** The handler has been asked, where the connection is known. */
  #hasBegun = false
  /** Where it is known. */
  #connection: UwsConnection | undefined

  constructor(front: UwsFront, response: HttpResponse, request: HttpRequest) {
    this.#front = front
    this.#response = response
    this.#headers = headersOf(request)
    this.method = request.getCaseSensitiveMethod()
    this.path = asSent(request.getUrl())
    this.query = asSent(request.getQuery() ?? '')
  }

  start(handler: FrontHandler): void {
    this.#response.onAborted(() => this.onAborted())
    if (isAmbiguous(this.#headers)) {
      this.#refuseAndClose()
      return
    }
    const onBody = handler.onRequest(this)
    if (onBody && !this.#answered && this.#announcesNothing()) {
      this.#bodyRead = true
      onBody(new Uint8Array())
      this.#corked = false
      return
    }
    this.#corked = false
    if (!onBody || this.#answered) return
    this.#onBody = onBody
    this.#bodyArriving = true
    this.#response.onData((chunk, isLast) => this.onChunk(chunk, isLast))
  }

  linked(connection: UwsConnection): void {
    this.#connection = connection
    this.#bodyArriving = true
    if (isAmbiguous(this.#headers)) this.#refuseAndClose()
    this.#corked = false
  }

  /** As `start`, where the connection is known. The body, or the first part of it, has come. */
  begin(handler: FrontHandler): void {
    if (this.#answered || !this.#open) return
    this.#hasBegun = true
    this.#onBody = handler.onRequest(this)
    if (!this.#onBody || this.#answered) return
    if (this.#bytes > this.#front.bodyBytesMax) this.close()
    else if (this.#bodyRead) this.#deliver()
  }

  /** Its connection is closed, because nobody can say which one it is. */
  drop(mayAnswer: boolean): void {
    this.#open = false
    const [status, body] = isAmbiguous(this.#headers) ? [400, ambiguousBody] : [411, withoutLength]
    const headers = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close`
    const answer = `${statusLine(status)}\r\n${headers}\r\n\r\n${body}`
    if (mayAnswer) this.#response.cork(() => this.#response.writeStatus(answer))
    this.#response.close()
  }

  onAborted(): void {
    if (this.#isPaced) this.#endPace()
    this.#settle()
  }

  bytesCome(): number {
    return this.#bytes
  }

  /** The binary would close a body slower than 16 KB/s. To resume starts its timer of 10 s anew. */
  goesOn(): void {
    if (!this.#open) return
    this.#response.pause()
    this.#response.resume()
  }

  close(): void {
    if (this.#open) this.#response.close()
  }

  header(name: string): string {
    const headers = this.#headers
    for (let at = 0; at < headers.length; at += 2) if (headers[at] === name) return asSent(headers[at + 1]!)
    return ''
  }

  headerTimes(name: string): number {
    const headers = this.#headers
    let times = 0
    for (let at = 0; at < headers.length; at += 2) if (headers[at] === name) times++
    return times
  }

  clientAddress(): string {
    return this.#open ? addressText(new Uint8Array(this.#response.getRemoteAddress())) : ''
  }

  reply(status: number, headers: readonly string[], body?: AnswerBody, onSent?: () => void): void {
    if (this.#answered || !this.#open) {
      onSent?.()
      return
    }
    // Of a connection that is known the next request must not come before the body of this one has ended.
    if (this.#connection && !this.#bodyRead) {
      this.replyAndClose(status, headers, bodyInOne(body))
      onSent?.()
      return
    }
    this.#answered = true
    this.#onSent = onSent
    if (this.#corked) this.#write(status, headers, body, this.#front.draining)
    else this.#response.cork(() => this.#write(status, headers, body, this.#front.draining))
  }

  replyAndClose(status: number, headers: readonly string[], body?: Uint8Array | string): void {
    if (this.#answered || !this.#open) return
    const arriving = !this.#bodyRead && (this.#bodyArriving || (this.#corked && this.#announcesBody()))
    this.#answered = true
    const write =
      arriving || hasNoLength(status) || this.method === 'HEAD'
        ? () => this.#writeAndLinger(status, headers, body, arriving)
        : () => this.#write(status, headers, body, true)
    if (this.#corked) write()
    else this.#response.cork(write)
  }

  #announcesBody(): boolean {
    return Number(this.header('content-length')) > 0 || this.header('transfer-encoding') !== ''
  }

  /** Of a head in two pieces with `Content-Length: 0` the binary never tells that its body is over. */
  #announcesNothing(): boolean {
    return /^0+$/.test(this.header('content-length'))
  }

  /**
   * The answer is left unfinished on purpose: the binary would read what follows in the same segment as the next request, and a request behind an
   * unfinished answer makes it close the connection instead.
   */
  #refuseAndClose(): void {
    this.#answered = true
    this.#writeAndLinger(400, ['Content-Type', 'application/json'], ambiguousBody, false)
    this.#corked = false
  }

  onChunk(chunk: ArrayBuffer, isLast: boolean): void {
    if (!this.#open) return
    this.#bytes += chunk.byteLength
    if (this.#lingering) {
      if (isLast || this.#bytes > unwantedBytesMax) this.#closeSoon()
      return
    }
    const isTooLong = this.#bytes > this.#front.bodyBytesMax
    // A request that has not begun may want no body: then its length is all the same.
    if (isTooLong && (!this.#connection || (this.#hasBegun && this.#onBody))) {
      this.#response.close()
      return
    }
    if (!isLast) {
      this.#awaitRest()
      if (chunk.byteLength === 0 || isTooLong) return // The body comes in a segment of its own: the usual case of one chunk after all.
      this.#chunks ??= []
      this.#chunks.push(Buffer.from(chunk.slice(0)))
      return
    }
    this.#bodyArriving = false
    this.#bodyRead = true
    if (this.#isPaced) this.#endPace()
    if (this.#connection) {
      if (isTooLong) return
      this.#chunks ??= []
      this.#chunks.push(Buffer.from(chunk.slice(0)))
      if (this.#onBody) setImmediate(() => this.#deliver())
      return
    }
    const onBody = this.#onBody
    if (!onBody || this.#answered) return
    this.#onBody = undefined
    const last = Buffer.from(chunk)
    const body = this.#chunks ? Buffer.concat([...this.#chunks, last]) : last
    this.#chunks = undefined
    this.#corked = true
    onBody(body)
    this.#corked = false
  }

  #deliver(): void {
    const onBody = this.#onBody
    if (!onBody || this.#answered || !this.#open) return
    this.#onBody = undefined
    const chunks = this.#chunks ?? []
    this.#chunks = undefined
    onBody(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
  }

  /** A part of the body is still to come. */
  #awaitRest(): void {
    if (this.#isPaced) return
    this.#isPaced = true
    this.#front.pace.add(this)
    if (!this.#connection) this.#front.admission.waits(this)
  }

  #endPace(): void {
    this.#isPaced = false
    this.#front.pace.delete(this)
    if (!this.#connection) this.#front.admission.waitsNoMore(this)
  }

  #write(status: number, headers: readonly string[], body: AnswerBody | undefined, close: boolean): void {
    const response = this.#response
    response.writeStatus(statusLines[status] ?? statusLine(status))
    for (let i = 0; i + 1 < headers.length; i += 2) response.writeHeader(headers[i]!, wireValue(headers[i + 1]!))
    const isHead = this.method === 'HEAD'
    const ends = this.#front.knownEnds
    if (isHead || hasNoLength(status)) {
      // endWithoutBody(length) would wait for that many bytes, and the next request would end the connection.
      if (!hasNoLength(status)) response.writeHeader('Content-Length', String(lengthOf(body ?? '')))
      if (close) response.writeHeader('Connection', 'close')
      response.endWithoutBody()
      this.#ended(ends, false)
    } else {
      const small = smallOf(body)
      if (small !== undefined && !close && small.length > 0) {
        if (!this.#writeSmall(small)) this.#writeLarge(new BodyPieces(small))
        return
      }
      if (small === undefined && (!close || this.#front.draining)) {
        if (close) response.writeHeader('Connection', 'close')
        this.#writeLarge(new BodyPieces(body ?? ''))
        return
      }
      response.end(bodyInOne(body), close)
      this.#ended(ends, close)
    }
  }

  /** The answer has ended: the native object must not be touched any more. `endsBefore`: ends of known connections before that call. */
  #ended(endsBefore: number, isClosing: boolean): void {
    this.#settle()
    // The binary may have closed the connection in that call, and does not tell: the answer has made it forget our handlers.
    this.#connection?.answered(this.#front.knownEnds > endsBefore ? 'closed' : isClosing ? 'closing' : 'open')
  }

  /**
   * False: the system takes no more. What `end` could not write the binary would keep, whatever it has already, and go on with the next request:
   * a client that asks and does not read would fill the memory. An answer that has not ended makes it close the connection instead.
   */
  #writeSmall(body: string | Uint8Array): boolean {
    const ends = this.#front.knownEnds
    const [, ended] = this.#response.tryEnd(body, typeof body === 'string' ? Buffer.byteLength(body) : body.length)
    if (ended) this.#ended(ends, false)
    return ended
  }

  /** The exchange is over. */
  #settle(): void {
    if (this.#pieces) this.#front.stalls.remove(this)
    this.#pieces = undefined
    this.#open = false
    this.#front.settled()
    const onSent = this.#onSent
    this.#onSent = undefined
    onSent?.()
  }

  /** A large answer counts as in flight until the system has taken all of it: closing must not cut it. */
  #writeLarge(pieces: BodyPieces): void {
    this.#pieces = pieces
    this.#response.onWritable(() => this.#writePieces())
    this.#writePieces()
    if (this.#pieces) this.#front.stalls.add(this)
  }

  /** Gives the system what it takes; false: it takes no more now. */
  #writePieces(): boolean {
    const pieces = this.#pieces
    if (!pieces) return true
    const beginning = this.#response.getWriteOffset()
    const ends = this.#front.knownEnds
    for (;;) {
      const offset = this.#response.getWriteOffset()
      if (offset - beginning > turnBytesMax) {
        setImmediate(() => this.retry())
        return true
      }
      const [ok, ended] = this.#response.tryEnd(pieces.at(offset), pieces.length)
      if (ended) {
        this.#ended(ends, false)
        return true
      }
      if (!ok) return false
    }
  }

  taken(): number {
    return this.#open ? this.#response.getWriteOffset() : 0
  }

  /** The binary closes a connection 10 s after a write that failed, and the system tells of room only when a third of its buffer is free. */
  retry(): void {
    if (this.#pieces) this.#response.cork(() => this.#writePieces())
  }

  giveUp(): void {
    if (this.#open) this.#response.close()
  }

  /**
   * Answers at once, reads away the rest of the body, and then closes: to close with bytes unread resets the connection,
   * which may cost the client the answer. The binary cannot go on reading after an answer, so it is told all of it as a
   * status line. It adds an empty line, which no client looks at after `Connection: close`.
   */
  #writeAndLinger(
    status: number,
    headers: readonly string[],
    body: Uint8Array | string | undefined,
    bodyArriving: boolean,
  ): void {
    let head = statusLines[status] ?? statusLine(status)
    for (let i = 0; i + 1 < headers.length; i += 2) head += `\r\n${headers[i]}: ${headerText(headers[i + 1]!)}`
    head += `\r\nDate: ${new Date().toUTCString()}\r\nConnection: close`
    if (hasNoLength(status)) {
      this.#response.writeStatus(Buffer.from(`${head}\r\n`, 'latin1'))
    } else {
      const content = Buffer.from(body ?? '')
      const ahead = Buffer.from(`${head}\r\nContent-Length: ${content.length}\r\n\r\n`, 'latin1')
      this.#response.writeStatus(this.method === 'HEAD' ? ahead.subarray(0, -2) : Buffer.concat([ahead, content]))
    }
    this.#lingering = true
    if (!bodyArriving) this.#closeSoon()
    else if (!this.#bodyArriving) this.#response.onData((chunk, isLast) => this.onChunk(chunk, isLast))
  }

  /** Not at once: what has been written is still in the cork buffer. */
  #closeSoon(): void {
    setImmediate(() => {
      if (this.#open) this.#response.close()
    })
  }
}

/** Answers up to this size are handed over in one piece: nearly always the system's send buffer takes them. */
const smallBytesMax = 16 * 1024
/** Bytes given to the system in one turn of the event loop. */
const turnBytesMax = 1024 * 1024

/** The body, unless it is large. */
const smallOf = (body: AnswerBody = ''): string | Uint8Array | undefined =>
  (typeof body === 'string' || body instanceof Uint8Array) && body.length <= smallBytesMax ? body : undefined

const bodyInOne = (body: AnswerBody | undefined): string | Uint8Array =>
  typeof body === 'string' || body instanceof Uint8Array ? body : Buffer.concat(body ?? [])

/** A head whose body comes in chunks later. */
const withoutLength =
  '{"error":"ContentLengthRequired","description":"Zero/No Content-Length in PUT/POST/PATCH request"}'

const statusLines: (string | undefined)[] = []

function statusLine(status: number): string {
  const line = `${status} ${STATUS_CODES[status] ?? 'Unknown'}`
  statusLines[status] = line
  return line
}

/** Such an answer has no body, and says nothing of a length. */
function hasNoLength(status: number): boolean {
  return status === 204 || status === 304
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: what is not ASCII is looked for
const notAscii = /[^\x00-\x7f]/

/** One character for each byte, as node:http gives it. The binary reads UTF-8; bytes that are none have become U+FFFD there. */
function asSent(text: string): string {
  return notAscii.test(text) ? Buffer.from(text).toString('latin1') : text
}

let collected: string[] = []

const collect = (name: string, value: string): void => {
  collected.push(name, value)
}

function headersOf(request: HttpRequest): readonly string[] {
  collected = []
  request.forEach(collect)
  return collected
}

const unusual = /[^\t -~]/

/** The binary writes strings as UTF-8: what came in must go out the same. */
function wireValue(value: string): string | Buffer {
  return unusual.test(value) ? Buffer.from(headerText(value), 'latin1') : value
}

/** Whether 4 or 16 bytes are an IPv4 address, perhaps in the clothes of IPv6. */
function isIPv4(address: Uint8Array): boolean {
  return address.length === 4 || address.every((byte, i) => i >= 12 || byte === (i < 10 ? 0 : 255))
}

function addressText(address: Uint8Array): string {
  if (isIPv4(address)) return address.subarray(-4).join('.')
  const groups: string[] = []
  for (let i = 0; i < address.length; i += 2) groups.push(((address[i]! << 8) | address[i + 1]!).toString(16))
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
}

/** Asks the system by way of node why it would not listen: the binary only says no. */
function whyNot(port: number, host: string | undefined): Promise<Error | undefined> {
  return new Promise(resolve => {
    const probe = createServer()
    probe.once('error', resolve)
    probe.listen({ port, host, exclusive: true }, () => probe.close(() => resolve(undefined)))
  })
}
