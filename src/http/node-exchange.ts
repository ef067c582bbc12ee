// One request and its answer over node:http: its head, the body as a whole, and an answer in one piece, in pieces, or
// as a stream.
//
// Not here: connections, and the admission of requests (node-front.ts).

import type { X509Certificate } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { ownText } from '../domain/recent.js'
import { ChunkedBody } from './chunked-body.js'
import type { SlowAnswer, StallWatch } from './connections.js'
import type { AnswerGate } from './drain.js'
import {
  type AnswerBody,
  type BodyHandler,
  BodyPieces,
  type EventAnswer,
  type Excess,
  type Exchange,
  headerText,
  lengthOf,
  pieceBytesMax,
  type SocketListener,
  unwantedBytesMax,
} from './front.js'
import { cutFromMax } from './url.js'

/** The time limit for a body that is not wanted. */
const unwantedTimeoutMs = 10_000

/** The parts of the front that an exchange uses. */
export interface NodeExchangeFront {
  /** Whether each answer is to close its connection. */
  readonly draining: boolean
  readonly stalls: StallWatch
  /** The same for answers with events. */
  readonly eventStalls: StallWatch
  readonly gate: AnswerGate
  /** The certificate of the client at the other end of a connection; undefined: it has shown none. */
  certificateOf(socket: Duplex): X509Certificate | undefined
}

/**
 * Answers 101 with these headers and the subprotocol, and speaks WebSocket. False: the client is gone, or has sent a
 * header that cannot be used, and nothing is called.
 */
export type NodeUpgrade = (headers: readonly string[], protocol: string, listener: SocketListener) => boolean

/** A request that node:http has read, and its answer. */
export class NodeExchange implements Exchange, SlowAnswer {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly #front: NodeExchangeFront
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #upgrade: NodeUpgrade | undefined
  #answered = false
  #onBody: BodyHandler | undefined
  #pieces: BodyPieces | undefined
  #offset = 0

  /** `upgrade`: the client asks to speak WebSocket, and this makes it so. */
  constructor(front: NodeExchangeFront, request: IncomingMessage, response: ServerResponse, upgrade?: NodeUpgrade) {
    this.#upgrade = upgrade
    this.#front = front
    this.#request = request
    this.#response = response
    this.method = request.method ?? ''
    request.on('error', () => {}) // The client is gone: 'close' of the response reports it.
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

  get certificate(): X509Certificate | undefined {
    return this.#front.certificateOf(this.#request.socket)
  }

  /** An answer before the last chunk ends the connection: the number of bytes to discard is unknown. */
  reply(status: number, headers: readonly string[], body?: AnswerBody, onSent?: () => void): void {
    const { gate } = this.#front
    if (gate.isShut) return gate.hold(() => this.reply(status, headers, body, onSent))
    const response = this.#response
    if (this.#answered || response.destroyed || response.closed) {
      onSent?.()
      return
    }
    if (onSent) response.once('close', onSent)
    this.#reply(status, headers, body, isChunked(this.#request) && !this.#request.complete)
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

  get asksForWebSocket(): boolean {
    return this.#upgrade !== undefined
  }

  webSocket(headers: readonly string[], protocol: string, listener: SocketListener): boolean {
    const response = this.#response
    if (this.#answered || response.destroyed || response.closed || !this.#upgrade) return false
    this.#answered = true
    return this.#upgrade(headers, protocol, listener)
  }

  events(status: number, headers: readonly string[], onRoom: () => void, onGone: () => void): EventAnswer | undefined {
    const response = this.#response
    if (this.#answered || response.destroyed || response.closed) return undefined
    this.#answered = true
    const { eventStalls } = this.#front
    const head = [...headers, 'Connection', 'close']
    response.writeHead(
      status,
      head.map((text, i) => (i % 2 === 0 ? text : headerText(text))),
    )
    response.flushHeaders()
    response.socket?.setTimeout(0)
    response.once('close', () => {
      eventStalls.remove(this)
      onGone()
    })
    let isFull = false
    response.on('drain', () => {
      isFull = false
      eventStalls.remove(this)
      onRoom()
    })
    return {
      write: text => {
        if (response.destroyed || response.closed) return false
        const isTaken = response.write(text, () => {
          this.#offset += text.length
        })
        if (!isTaken && !isFull) {
          isFull = true
          eventStalls.add(this)
        }
        return isTaken
      },
      end: () => response.end(),
      close: () => this.giveUp(),
    }
  }

  async #writeParts(parts: AsyncGenerator<Uint8Array, void, void>): Promise<void> {
    const response = this.#response
    const { stalls } = this.#front
    const isGone = (): boolean => response.destroyed || response.closed
    // The loop also runs for a client that is gone: a generator that has not begun does not notice `return`.
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

  /**
   * Passes the whole body to `onBody`. It never does so when the client leaves before, or sends more than it announced.
   */
  collect(onBody: BodyHandler, bytesMax: number): void {
    this.#onBody = onBody
    if (isChunked(this.#request)) {
      this.#collectChunks(bytesMax)
      return
    }
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

  #collectChunks(bytesMax: number): void {
    const body = new ChunkedBody(bytesMax)
    const give = (excess?: Excess): void => {
      const taker = this.#onBody
      this.#onBody = undefined
      taker?.(excess ? noBytes : body.whole(), excess)
    }
    this.#request.on('data', (chunk: Buffer) => {
      const excess = this.#onBody && body.add(chunk)
      if (excess) give(excess)
    })
    this.#request.once('end', () => give())
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
    // The socket still carries an earlier answer.
    if (!this.#response.socket) this.#watch()
  }

  /** Called when the system has not taken the answer at once. */
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

  /** Unknown while an earlier answer of the connection is being sent. */
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

  /** Closing with unread bytes resets the connection, and the client may lose the answer that it has not read yet. */
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

const noBytes = new Uint8Array()

export const isChunked = ({ headers }: IncomingMessage): boolean => headers['transfer-encoding'] !== undefined

/** Whether a body follows the head of a request. */
export function announcesBody(request: IncomingMessage): boolean {
  return isChunked(request) || Number(request.headers['content-length'] ?? 0) > 0
}

/** `http://host/path`, as a proxy would send it, means the same as `/path`. */
function originForm(target: string): string {
  if (target.startsWith('/')) return target
  const scheme = target.indexOf('://')
  if (scheme < 0) return target
  const slash = target.indexOf('/', scheme + 3)
  return slash < 0 ? '/' : target.slice(slash)
}

/** Returns the IPv4 form for an IPv4 client of a dual-stack socket. */
export function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}
