// One request over uWebSockets.js, and its answer. [hot] Every request passes here.
//
// A handler may keep the exchange and read headers later. They are copied once, in one pass, which costs as much as
// eleven reads of the native request (2 us with six headers, less with two). A body chunk is a window into the receive
// buffer and is valid only during its call. After the end of an answer the native object throws when it is used:
// `#open` shows whether it may be.
//
// The binary parses chunks leniently. It accepts `:` and `G` as digits and any bytes between two chunks as a line end.
// It reads the bytes after the last chunk as the next request, trailers included. A proxy may parse them differently.
// So a request with chunks is the last one of its connection: it is answered in a later turn, the connection ends with
// its answer, and nothing after its last chunk is ever served (docs/operations/http-servers.md#chunks).
//
// On a tracked connection (uws-connection.ts), no answer may be sent inside the call that brings the body.
//
// Not here: connections, and their admission (uws-front.ts).

import type { HttpRequest, HttpResponse, us_socket_context_t } from 'uWebSockets.js'
import { STATUS_CODES } from 'node:http'
import { ChunkedBody } from './chunked-body.js'
import type { Admission, ArrivingBody, BodyPace, SlowAnswer, StallWatch, WaitingConnection } from './connections.js'
import { addressText } from './connections.js'
import type { AnswerGate } from './drain.js'
import type {
  AnswerBody,
  BodyHandler,
  EventAnswer,
  Excess,
  Exchange,
  Framing,
  FrontHandler,
  SocketListener,
} from './front.js'
import { ambiguousBody, BodyPieces, framingOf, headerText, lengthOf, unwantedBytesMax } from './front.js'
import type { ConnectionRequest, UwsConnection } from './uws-connection.js'
import { UwsEvents } from './uws-events.js'
import type { SocketData } from './uws-socket.js'

/** What a request needs to become a WebSocket. */
export interface UwsUpgrade {
  readonly context: us_socket_context_t
  /** Called when it is a WebSocket. */
  readonly begin: (data: SocketData) => void
  /** The connection has ended. `isTracked`: it was a tracked one. */
  readonly onEnd: (isTracked: boolean) => void
}

/** The parts of the front that an exchange uses. */
export interface UwsExchangeFront {
  readonly draining: boolean
  readonly bodyBytesMax: number
  readonly stalls: StallWatch
  /** The same for answers with events. */
  readonly eventStalls: StallWatch
  readonly admission: Admission
  readonly pace: BodyPace
  readonly gate: AnswerGate
  /** The number of tracked connections that have ended. */
  readonly knownEnds: number
  /** An exchange was answered, or its client is gone. */
  settled(): void
  /** The number of WebSockets whose clients wait for answers has changed. */
  expecting(change: 1 | -1): void
}

export class UwsExchange implements Exchange, ConnectionRequest, ArrivingBody, WaitingConnection, SlowAnswer {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly #front: UwsExchangeFront
  readonly #response: HttpResponse
  /**
   * Names in lower case and values in turn. Copied at once: one pass costs less than the later reads, and the request
   * is no longer valid after the call.
   */
  readonly #headers: readonly string[]
  readonly #framing: Framing
  readonly #upgrade: UwsUpgrade | undefined
  /** Whether the native response may be used. */
  #open = true
  #answered = false
  /** The answer was sent, and the rest of the body is being discarded. */
  #lingering = false
  /** The binary is calling for this connection, and collects the bytes that are written. */
  #corked = true
  #bodyArriving = false
  #bodyRead = false
  #onBody: BodyHandler | undefined
  #chunks: Buffer[] | undefined
  /** Of a request with chunks: the received body, and the limit that it exceeded. */
  #chunked: ChunkedBody | undefined
  #excess: Excess | undefined
  #bytes = 0
  /** The body that is being sent. */
  #pieces: BodyPieces | undefined
  #onSent: (() => void) | undefined
  /** Of a body of unknown length: the bytes that the system has taken, and the callback for when it takes more. */
  #streamed = 0
  #goOn: (() => void) | undefined
  /** The rest of the body is expected. */
  #isPaced = false
  /** The handler was called, on a tracked connection. */
  #hasBegun = false
  /** The connection, if it is tracked. */
  #connection: UwsConnection | undefined

  /** `upgrade`: the client asks to speak WebSocket. */
  constructor(front: UwsExchangeFront, response: HttpResponse, request: HttpRequest, upgrade?: UwsUpgrade) {
    this.#front = front
    this.#upgrade = upgrade
    this.#response = response
    this.#headers = headersOf(request)
    this.method = request.getCaseSensitiveMethod()
    this.#framing = framingOf(this.method, this.#headers)
    this.path = asSent(request.getUrl())
    this.query = asSent(request.getQuery() ?? '')
  }

  start(handler: FrontHandler): void {
    this.#response.onAborted(() => this.onAborted())
    if (this.#framing === 'ambiguous') {
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
    // Bytes that begin a chunk but are not its content reach no handler: without this a client could send them forever.
    if (this.#framing === 'chunks') this.#awaitRest()
  }

  linked(connection: UwsConnection): void {
    this.#connection = connection
    this.#bodyArriving = true
    if (this.#framing === 'ambiguous') this.#refuseAndClose()
    this.#corked = false
  }

  /** Like `start`, for a tracked connection. The body, or its first part, has come. */
  begin(handler: FrontHandler): void {
    if (this.#answered || !this.#open) return
    this.#hasBegun = true
    this.#onBody = handler.onRequest(this)
    if (!this.#onBody || this.#answered) return
    if (this.#framing === 'chunks') {
      if (this.#excess || this.#bodyRead) this.#deliver()
    } else if (this.#bytes > this.#front.bodyBytesMax) this.close()
    else if (this.#bodyRead) this.#deliver()
  }

  /** Closes its connection, because the connection could not be identified. */
  drop(mayAnswer: boolean): void {
    this.#open = false
    const [status, body] = this.#framing === 'ambiguous' ? [400, ambiguousBody] : [411, withoutLength]
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

  /** The binary would close a body slower than 16 KB/s. A resume restarts its timer of 10 s. */
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
    const { gate } = this.#front
    if (gate.isShut) return gate.hold(() => this.reply(status, headers, body, onSent))
    if (this.#answered || !this.#open) {
      onSent?.()
      return
    }
    // On a tracked connection, the next request must not come before the body of this one has ended.
    if ((this.#connection || this.#framing === 'chunks') && !this.#bodyRead) {
      this.replyAndClose(status, headers, bodyInOne(body))
      onSent?.()
      return
    }
    this.#answered = true
    this.#onSent = onSent
    const write = (): void => {
      if (this.#framing === 'chunks') this.#writeLast(status, headers, body)
      else this.#write(status, headers, body, this.#front.draining)
    }
    if (this.#corked) write()
    else this.#response.cork(write)
  }

  stream(status: number, headers: readonly string[], parts: AsyncGenerator<Uint8Array, void, void>): void {
    const isOver = this.#answered || !this.#open
    this.#answered = true
    if (!isOver) {
      const isLast = this.#framing === 'chunks'
      const begin = (): void => this.#writeHead(status, isLast ? [...headers, 'Connection', 'close'] : headers)
      if (this.#corked) begin()
      else this.#response.cork(begin)
      this.#response.onWritable(() => {
        this.#goOn?.()
        return true
      })
    }
    this.#writeParts(parts).catch(() => this.giveUp())
  }

  get asksForWebSocket(): boolean {
    return this.#upgrade !== undefined && this.header('upgrade').toLowerCase() === 'websocket'
  }

  webSocket(headers: readonly string[], protocol: string, listener: SocketListener): boolean {
    if (this.#answered || !this.#open || !this.#upgrade) return false
    this.#answered = true
    this.#onSent = () => listener.onGone()
    // In this turn the binary would drop the bytes behind the head. In a later one it has read them as the next request
    // by then, and has ended the connection.
    setImmediate(() => this.#switchOver(headers, protocol, listener))
    return true
  }

  #switchOver(headers: readonly string[], protocol: string, listener: SocketListener): void {
    const upgrade = this.#upgrade
    if (!this.#open || !upgrade) return
    this.#onSent = undefined
    this.#connection?.upgraded()
    this.#settle()
    const key = this.header('sec-websocket-key')
    const extensions = this.header('sec-websocket-extensions')
    const onExpecting = (change: 1 | -1): void => this.#front.expecting(change)
    const data: SocketData = { listener, onExpecting, onEnd: () => this.#socketEnded() }
    this.#response.cork(() => {
      this.#writeHead(101, headers)
      this.#response.upgrade({ data }, key, protocol, extensions, upgrade.context)
    })
    upgrade.begin(data)
  }

  /** The binary reports the end of a WebSocket only here. */
  #socketEnded(): void {
    this.#connection?.ended()
    this.#upgrade?.onEnd(this.#connection !== undefined)
  }

  events(status: number, headers: readonly string[], onRoom: () => void, onGone: () => void): EventAnswer | undefined {
    if (this.#answered || !this.#open) return undefined
    this.#answered = true
    const response = this.#response
    const events = new UwsEvents(response, this.#front.eventStalls, {
      onRoom,
      isCorked: () => this.#corked,
      goesOn: () => this.goesOn(),
      end: () => this.#endEvents(),
      close: () => this.giveUp(),
    })
    this.#onSent = () => {
      events.gone()
      onGone()
    }
    const begin = (): void => this.#writeHead(status, [...headers, 'Connection', 'close'])
    if (this.#corked) begin()
    else response.cork(begin)
    return events
  }

  #endEvents(): void {
    if (!this.#open) return
    const ends = this.#front.knownEnds
    this.#hearNoMore()
    this.#response.cork(() => this.#response.end(undefined, true))
    this.#ended(ends, true)
  }

  async #writeParts(parts: AsyncGenerator<Uint8Array, void, void>): Promise<void> {
    // The loop also runs for a client that is gone: a generator that has not begun does not notice `return`.
    for await (const part of parts) {
      if (!this.#open) return
      let isTaken = true
      this.#response.cork(() => {
        isTaken = this.#response.write(part)
      })
      if (!isTaken) await this.#untilTaken()
      if (!this.#open) return
      this.#streamed += part.length
    }
    if (!this.#open) return
    const ends = this.#front.knownEnds
    this.#hearNoMore()
    this.#response.cork(() => this.#response.end())
    this.#ended(ends, false)
  }

  /** Waits until the system has taken the written bytes, or the client is gone. */
  async #untilTaken(): Promise<void> {
    this.#front.stalls.add(this)
    await new Promise<void>(resolve => {
      this.#goOn = resolve
    })
    this.#goOn = undefined
    this.#front.stalls.remove(this)
  }

  replyAndClose(status: number, headers: readonly string[], body?: Uint8Array | string): void {
    if (this.#answered || !this.#open) return
    const arriving = !this.#bodyRead && (this.#bodyArriving || (this.#corked && this.#announcesBody()))
    this.#answered = true
    const write =
      arriving || hasNoLength(status) || this.method === 'HEAD' || this.#framing === 'chunks'
        ? () => this.#writeAndLinger(status, headers, body, arriving)
        : () => this.#write(status, headers, body, true)
    if (this.#corked) write()
    else this.#response.cork(write)
  }

  #announcesBody(): boolean {
    return Number(this.header('content-length')) > 0 || this.header('transfer-encoding') !== ''
  }

  /** For a head in two segments with `Content-Length: 0`, the binary never reports the end of the body. */
  #announcesNothing(): boolean {
    return /^0+$/.test(this.header('content-length'))
  }

  /**
   * The answer is left unfinished on purpose. The binary would read the following bytes of the same segment as the next
   * request; after an unfinished answer such a request makes it close the connection instead.
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
    if (this.#framing === 'chunks') {
      this.#onPiece(chunk, isLast)
      return
    }
    const isTooLong = this.#bytes > this.#front.bodyBytesMax
    // A request that has not begun may want no body: then the length of the body does not matter.
    if (isTooLong && (!this.#connection || (this.#hasBegun && this.#onBody))) {
      this.#response.close()
      return
    }
    if (!isLast) {
      this.#awaitRest()
      if (chunk.byteLength === 0 || isTooLong) return // The body follows in its own segment, mostly as one chunk.
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

  /** A chunk, or a part of one. */
  #onPiece(piece: ArrayBuffer, isLast: boolean): void {
    if (this.#excess === undefined) {
      this.#chunked ??= new ChunkedBody(this.#front.bodyBytesMax)
      this.#excess = this.#chunked.add(new Uint8Array(piece))
      if (this.#excess || isLast) setImmediate(() => this.#deliver())
    }
    if (!isLast) {
      this.#awaitRest()
      return
    }
    this.#bodyArriving = false
    this.#bodyRead = true
    if (this.#isPaced) this.#endPace()
  }

  #deliver(): void {
    const onBody = this.#onBody
    if (!onBody || this.#answered || !this.#open) return
    this.#onBody = undefined
    if (this.#chunked) {
      const body = this.#chunked
      this.#chunked = undefined
      onBody(this.#excess ? new Uint8Array() : body.whole(), this.#excess)
      return
    }
    const chunks = this.#chunks ?? []
    this.#chunks = undefined
    onBody(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
  }

  /** A part of the body has yet to come. */
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
    this.#writeHead(status, headers)
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

  /**
   * The answer to a request with chunks. A short one is left unfinished, like that of `#refuseAndClose`. While a longer
   * one is being sent, the binary ends the connection if any bytes come. After it was sent, nothing more is read, and
   * the binary's timer of 10 s ends the connection if the client does not.
   */
  #writeLast(status: number, headers: readonly string[], body: AnswerBody | undefined): void {
    const small = smallOf(body)
    if (small !== undefined || hasNoLength(status)) {
      this.#writeAndLinger(status, headers, small, false)
      return
    }
    this.#writeHead(status, [...headers, 'Connection', 'close'])
    this.#writeLarge(new BodyPieces(body ?? ''))
  }

  /**
   * Leaves bytes after a request with chunks unread in the system. Called before each write that may end the answer.
   */
  #hearNoMore(): void {
    if (this.#framing === 'chunks') this.#response.pause()
  }

  #writeHead(status: number, headers: readonly string[]): void {
    const response = this.#response
    response.writeStatus(statusLines[status] ?? statusLine(status))
    for (let i = 0; i + 1 < headers.length; i += 2) response.writeHeader(headers[i]!, wireValue(headers[i + 1]!))
  }

  /**
   * The answer has ended, so the native object must not be used any more. `endsBefore`: the number of tracked
   * connections that had ended before that call.
   */
  #ended(endsBefore: number, isClosing: boolean): void {
    this.#settle()
    // The binary may have closed the connection in that call without a report: the answer has removed our handlers.
    this.#connection?.answered(this.#front.knownEnds > endsBefore ? 'closed' : isClosing ? 'closing' : 'open')
  }

  /**
   * False: the system takes no more. With `end` the binary would keep the unsent bytes, whatever it has already, and
   * continue with the next request: a client that sends requests and does not read would fill the memory. After an
   * answer that has not ended, it closes the connection instead.
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
    this.#goOn?.()
  }

  /** A large answer counts as in flight until the system has taken all of it: closing must not cut it. */
  #writeLarge(pieces: BodyPieces): void {
    this.#pieces = pieces
    this.#response.onWritable(() => this.#writePieces())
    this.#writePieces()
    if (this.#pieces) this.#front.stalls.add(this)
  }

  /** Passes bytes to the system while it takes them; false: it takes no more now. */
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
      this.#hearNoMore()
      const [ok, ended] = this.#response.tryEnd(pieces.at(offset), pieces.length)
      if (ended) {
        this.#ended(ends, false)
        return true
      }
      if (!ok) return false
    }
  }

  taken(): number {
    if (!this.#pieces) return this.#streamed
    return this.#open ? this.#response.getWriteOffset() : 0
  }

  /**
   * The binary closes a connection 10 s after a write that failed, and the system reports room only when a third of its
   * buffer is free.
   */
  retry(): void {
    if (this.#pieces) this.#response.cork(() => this.#writePieces())
    else this.goesOn()
  }

  giveUp(): void {
    if (this.#open) this.#response.close()
  }

  /**
   * Answers at once, discards the rest of the body, and then closes. Closing with unread bytes resets the connection,
   * and the client may lose the answer. The binary cannot read on after an answer, so the whole answer is passed to it
   * as a status line. It adds an empty line, which no client reads after `Connection: close`.
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

  /** Not at once: the written bytes are still in the cork buffer. */
  #closeSoon(): void {
    setImmediate(() => {
      if (this.#open) this.#response.close()
    })
  }
}

/** Answers up to this size are passed to the system in one piece: its send buffer nearly always takes them. */
const smallBytesMax = 16 * 1024
/** Bytes passed to the system in one turn of the event loop. */
const turnBytesMax = 1024 * 1024

/** The body, unless it is large. */
const smallOf = (body: AnswerBody = ''): string | Uint8Array | undefined =>
  (typeof body === 'string' || body instanceof Uint8Array) && body.length <= smallBytesMax ? body : undefined

const bodyInOne = (body: AnswerBody | undefined): string | Uint8Array =>
  typeof body === 'string' || body instanceof Uint8Array ? body : Buffer.concat(body ?? [])

/** The answer to a head whose body comes in chunks later. */
const withoutLength =
  '{"error":"ContentLengthRequired","description":"Zero/No Content-Length in PUT/POST/PATCH request"}'

const statusLines: (string | undefined)[] = []

function statusLine(status: number): string {
  const line = `${status} ${STATUS_CODES[status] ?? 'Unknown'}`
  statusLines[status] = line
  return line
}

/** Such an answer has no body and no length. */
function hasNoLength(status: number): boolean {
  return status === 204 || status === 304
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: what is not ASCII is looked for
const notAscii = /[^\x00-\x7f]/

/**
 * One character for each byte, as node:http returns it. The binary reads UTF-8, and has replaced other bytes by U+FFFD.
 */
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

/** The binary writes strings as UTF-8. Received bytes must be sent unchanged. */
function wireValue(value: string): string | Buffer {
  return unusual.test(value) ? Buffer.from(headerText(value), 'latin1') : value
}
