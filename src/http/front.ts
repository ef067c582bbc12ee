// The HTTP port: what a server must offer to the broker, and the code that both servers share: where a head ends, how
// long it may be, and the body of an answer in pieces. uws-front.ts and node-front.ts implement it, and one test suite
// runs both. Where they cannot agree, the table in docs/operations/http-servers.md lists the difference.
//
// A front knows bytes, headers and connections. It knows no route, no status by name and no entity.

import type { X509Certificate } from 'node:crypto'
import { isIPv6, type ListenOptions, type Socket } from 'node:net'
import type { OnDropped } from './connections.js'
import type { CutOff } from './drain.js'

export type AnswerBody = string | Uint8Array | readonly Uint8Array[]

/** One request and its answer. Read its address before `onRequest` returns. */
export interface Exchange {
  /** Upper case. */
  readonly method: string
  /** As the client sent it: percent-encoded, from the first `/` up to the `?`, without it. */
  readonly path: string
  /** As the client sent it, without `?`; '' when there is none. */
  readonly query: string
  /** The value of a header, named in lower case; '' when it is absent or empty. */
  header(name: string): string
  /** How often a header occurs, also with an empty value; 0: it is absent. */
  headerTimes(name: string): number
  clientAddress(): string
  /**
   * The certificate that the client has shown at the beginning of the connection, and that TLS has verified: one object
   * for each connection. Absent or undefined: there is none.
   */
  readonly certificate?: X509Certificate | undefined
  /**
   * Answers, once. A second call, and a call after the client is gone, are ignored. It may be called after `onRequest`.
   * `headers` is name, value, name, value, ... The front writes Content-Length; a 204 has no body. A large body is sent
   * in pieces, as fast as the client reads it. `onSent` is called once: when the system has taken the whole body, or
   * when the client is gone.
   */
  reply(status: number, headers: readonly string[], body?: AnswerBody, onSent?: () => void): void
  /**
   * Answers with a body of unknown length, as fast as the client reads it. It requests the next part when the system
   * has taken the previous one, whose memory may then be reused. If `parts` fails, it closes the connection, so that
   * the client sees that the body is incomplete. When the client is gone, it returns `parts`.
   */
  stream(status: number, headers: readonly string[], parts: AsyncGenerator<Uint8Array, void, void>): void
  /**
   * Begins an answer that has no end of its own: events are written as they come. `onRoom` is called when the system
   * takes more after a `write` that returned false; `onGone` once, when the connection has ended. The connection of a
   * client that reads no byte for a minute is closed. undefined: the client is gone, and nothing is called.
   */
  events(status: number, headers: readonly string[], onRoom: () => void, onGone: () => void): EventAnswer | undefined
  /** Whether the client asks to speak WebSocket, with a handshake that this front can answer. */
  readonly asksForWebSocket: boolean
  /**
   * Answers 101 and speaks WebSocket, perhaps in a later turn. `protocol`: the chosen subprotocol, '' for none. It may
   * be called after `onRequest`. False: the client is gone, or has got another answer, and nothing is called.
   */
  webSocket(headers: readonly string[], protocol: string, listener: SocketListener): boolean
  /** Like `reply`, and then closes the connection: for a request whose body is not wanted. */
  replyAndClose(status: number, headers: readonly string[], body?: Uint8Array | string): void
}

/** An answer into which events are written. */
export interface EventAnswer {
  /** Writes a text. False: the system takes no more at the moment; the text is sent later. */
  write(text: string): boolean
  /** Ends the answer in order, and its connection. */
  end(): void
  /** Closes the connection at once. */
  close(): void
}

/** A connection that speaks WebSocket (RFC 6455). */
export interface MessageSocket {
  /** Sends messages of text, in order. False: the system takes no more at the moment; they are sent later. */
  send(texts: readonly string[]): boolean
  /**
   * Whether the client waits for answers: meanwhile a front that stops does not take the connection for an idle one.
   */
  expectsAnswers(isExpecting: boolean): void
  /**
   * Begins the closing handshake, behind the messages that were sent. A client that does not complete it is cut off.
   */
  close(code: number, reason: string): void
  /** Closes the connection at once. */
  destroy(): void
}

/** How a front speaks WebSocket. */
export interface SocketOptions {
  /** Paths at which a client may ask for it; elsewhere such a request is an ordinary one. */
  readonly paths: readonly string[]
  /** The limit of a message. */
  readonly messageBytesMax: number
  /** Whether messages are compressed, with clients that want it. */
  readonly compression: boolean
}

/** A connection over which nothing came for so long, not even an answer to a ping, is cut off. */
export const silenceSMax = 60

/** A client whose pings have so many answers waiting for it to read is cut off. */
export const pingsWaitingMax = 100

/** The end of a connection that has sent a binary message: RFC 6455, 7.4.1. */
export const noBinary = { code: 1003, reason: 'binary messages are not accepted' } as const

/** Receives what happens on such a connection. */
export interface SocketListener {
  /** The connection is open: called at most once, before everything else, perhaps before `webSocket` returns. */
  onOpen(socket: MessageSocket): void
  /** A whole message of text: UTF-8, valid during the call only. */
  onMessage(bytes: Uint8Array): void
  /** The system takes more, after a `send` that returned false. */
  onRoom(): void
  /** The connection has ended: called once, also if the client has gone before `onOpen`. */
  onGone(): void
}

/**
 * Receives the whole body of a request. The bytes are valid during the call only. `excess`: the body came in chunks and
 * was too large, so there are no bytes; the answer ends the connection.
 */
export type BodyHandler = (body: Uint8Array, excess?: Excess) => void

/** The limit that was exceeded: bytes (`FrontOptions.bodyBytesMax`), or chunks (`chunksMax`). */
export type Excess = 'bytes' | 'chunks'

export interface FrontHandler {
  /** The head of a request has arrived. Returns the receiver of its body; undefined: it is answered without one. */
  onRequest(exchange: Exchange): BodyHandler | undefined
}

export interface TlsFiles {
  readonly keyFile: string
  readonly certFile: string
  /** The oldest version that is accepted; uws cannot exclude 1.2. */
  readonly minVersion: '1.2' | '1.3'
  /** Clients are asked for certificates (`node` only); undefined: they are not. */
  readonly clients?: ClientTrust | undefined
}

/** Which certificates of clients are accepted. */
export interface ClientTrust {
  /** PEM file with the authorities. */
  readonly caFile: string
  /** Whether a client without a certificate is refused. */
  readonly isRequired: boolean
}

/** PEM texts. */
export interface TlsContents {
  readonly key: Buffer
  readonly cert: Buffer
  /** The authorities of clients; undefined: clients are not asked for certificates. */
  readonly clientCa?: Buffer | undefined
}

/** Where a front listens. */
export interface ListenAddress {
  /** 0 lets the system choose. */
  readonly port: number
  /** undefined: all addresses of the family. */
  readonly host?: string | undefined
  readonly family: 'both' | 'ipv4' | 'ipv6'
}

export interface FrontOptions extends ListenAddress {
  /** A second port for node:http, whichever server uses `port`; undefined: none. 0 lets the system choose. */
  readonly http1Port?: number | undefined
  /** Sibling processes listen on the same port, and the system spreads connections among them (`uws` only). */
  readonly shared?: boolean
  /**
   * Another process listens for several processes, and passes connections on (`node` only); undefined: the front
   * listens itself.
   */
  readonly source?: ConnectionSource | undefined
  /** PEM files; undefined: plain HTTP. */
  readonly tls?: TlsFiles | undefined
  /** The limit of client connections. At the limit, a new connection replaces the one that has waited longest. */
  readonly connectionsMax: number
  /** The limit per address; further connections are closed at once. 0: no limit. */
  readonly connectionsPerAddressMax: number
  /** Called for each connection that the server closes before its end. */
  readonly onDropped?: OnDropped | undefined
  /** Idle client connections are closed after this time; 0: the server's own default. */
  readonly idleTimeoutS: number
  /**
   * The limit of bytes of a body that are collected. The handler refuses longer bodies by their Content-Length before,
   * and gets an `excess` for those in chunks.
   */
  readonly bodyBytesMax: number
  /** The connection of a client that reads no byte of its answer for this time is closed; undefined: 30 s. */
  readonly answerStallMs?: number | undefined
  readonly onStall?: (() => void) | undefined
  /** undefined: the front does not speak WebSocket. */
  readonly sockets?: SocketOptions | undefined
  /** The connection of a reader of events that reads no byte for this time is closed; undefined: a minute. */
  readonly eventsStallMs?: number | undefined
}

/** The source of connections that another process has accepted. */
export interface ConnectionSource {
  /** Resolves with the port when that process listens there. */
  open(at: ListenAddress, take: (socket: Socket) => void): Promise<number>
}

/** The number of open client connections at one server. */
export interface OpenConnections {
  readonly server: 'uws' | 'node'
  readonly isTls: boolean
  readonly count: number
}

export interface Front {
  /** For each server that listens. */
  readonly connections: readonly OpenConnections[]
  /** The actual port for `FrontOptions.http1Port`, after `listen` has ended; undefined: none. */
  readonly http1Port?: number | undefined
  /** The actual port for operators, after `listen` has ended; undefined: none of its own. */
  readonly adminPort?: number | undefined
  /** Starts to listen, and returns the port. Fails when the address is in use or not permitted. */
  listen(): Promise<number>
  /**
   * New connections get this certificate, from the files that `FrontOptions.tls` names; open connections continue, apart
   * from those of clients whose certificates the new authorities do not verify. Without TLS it does nothing. If the
   * contents cannot be used, it fails with a clear message and continues with the old ones.
   */
  renewTls(contents: TlsContents): void
  /**
   * From now on each answer ends its connection, while new connections are still accepted. So clients leave, each to
   * the node that its balancer chooses, before `close` ends the remaining connections.
   */
  dismiss(): void
  /**
   * Accepts the clients that have connected, and closes its listeners. From now on each answer ends its connection.
   * Answers are held back until `close`, which the caller calls at once. So all of several workers can stop listening
   * before any of them ends a connection.
   */
  unlisten(): Promise<void>
  /**
   * Stops accepting, answers the requests that still come on open connections, and closes all connections: idle ones
   * after `quietMs` (drain.ts), the last of them after `drainMs`. Resolves with the connections and requests that were
   * cut off then; undefined: all ended in order.
   */
  close(drainMs: number): Promise<CutOff | undefined>
}

/** The limit of a request's line and headers together, in bytes, for both servers. */
export const headBytesMax = 16 * 1024

/**
 * uWebSockets.js reads its limit, 4 KB by default, from the environment of the process when it is loaded. A thread has
 * a copy of that environment, so the main thread calls this before it starts one.
 */
export function setHeadLimit(): void {
  process.env.UWS_HTTP_MAX_HEADERS_SIZE ??= String(headBytesMax)
}

/**
 * How the end of a request's body is determined: by a length (or there is no body), by its chunks, or ambiguously,
 * which is refused.
 */
export type Framing = 'length' | 'chunks' | 'ambiguous'

const withChunks: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])

/**
 * The framing of a request, by its headers: names (in any case) and values in turn. It is ambiguous if the end of the
 * body or the host is not clear. A proxy that finds another end than this server could take a part of one client's body
 * for the next client's request. So such a request is refused, and its connection is closed before another byte of it
 * is read (docs/operations/http-servers.md#framing). Only methods whose body means something may have chunks.
 */
export function framingOf(method: string, headers: readonly string[]): Framing {
  let hosts = 0
  let lengths = 0
  let encodings = 0
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at]!
    // Few other names have these lengths: most headers cost one comparison of numbers.
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++
    else if (name.length === 14 && name.toLowerCase() === 'content-length') {
      if (!wholeNumber.test(headers[at + 1]!)) return 'ambiguous'
      lengths++
    } else if (name.length === 17 && name.toLowerCase() === 'transfer-encoding') {
      if (headers[at + 1]!.toLowerCase() !== 'chunked' || !withChunks.has(method)) return 'ambiguous'
      encodings++
    }
  }
  if (hosts > 1 || lengths + encodings > 1) return 'ambiguous'
  return encodings > 0 ? 'chunks' : 'length'
}

/**
 * The limit of chunks of one body, as the server passes them on. Each chunk costs a call: without a limit a body of
 * single bytes would block the event loop for some 100 ms.
 */
export const chunksMax = (bodyBytesMax: number): number => 1024 + Math.floor(bodyBytesMax / 64)

const wholeNumber = /^\d+$/

/** The answer to such a request. */
export const ambiguousBody = '{"error":"BadRequest","description":"ambiguous length, transfer encoding or host"}'

/**
 * The number of bytes of an unwanted body that are discarded, so that the client finishes sending and sees the answer.
 */
export const unwantedBytesMax = 16 * 1024 * 1024

/** Bytes of a piece. A TLS connection encrypts one piece at a time, and reports only whole ones as taken. */
export const pieceBytesMax = 64 * 1024

/**
 * The body of an answer in pieces. Each piece is sent as soon as the system has taken the one before. Its parts are
 * never concatenated: each part is released after it was sent.
 */
export class BodyPieces {
  readonly length: number
  private readonly parts: (Uint8Array | undefined)[]
  private part = 0
  /** The offset of that part. */
  private partAt = 0

  constructor(body: AnswerBody) {
    this.parts = typeof body === 'string' ? [Buffer.from(body)] : body instanceof Uint8Array ? [body] : [...body]
    this.length = lengthOf(body)
  }

  /** The bytes at an offset, which never goes back: a whole piece, or the rest of its part. */
  at(offset: number): Uint8Array {
    let part = this.parts[this.part]
    while (part && offset >= this.partAt + part.length) {
      this.parts[this.part] = undefined
      this.partAt += part.length
      part = this.parts[++this.part]
    }
    if (!part) return nothing
    const begin = offset - this.partAt
    return part.subarray(begin, begin + pieceBytesMax)
  }
}

const nothing = new Uint8Array(0)

/** The number of bytes of a body. */
export function lengthOf(body: AnswerBody): number {
  if (typeof body === 'string') return Buffer.byteLength(body)
  return body instanceof Uint8Array ? body.length : body.reduce((sum, part) => sum + part.length, 0)
}

/** Replaces characters that no header may contain by `?`: a line end would let the client inject headers. */
export function headerText(value: string): string {
  return value.replace(/[^\t -~\x80-\xff]/g, '?')
}

/** The listen options of node:net. */
export function listenOptions({ port, host, family }: ListenAddress): ListenOptions {
  const address = host ?? (family === 'ipv4' ? '0.0.0.0' : family === 'ipv6' ? '::' : undefined)
  return { port, host: address, ipv6Only: family === 'ipv6' }
}

/** The error for an address that cannot be listened on, with the same text for both fronts. */
export function listenFailure(cause: NodeJS.ErrnoException | undefined, options: ListenAddress): Error {
  const host = options.host ?? (options.family === 'ipv4' ? '0.0.0.0' : '::')
  const address = `${isIPv6(host) ? `[${host}]` : host}:${options.port}`
  if (cause === undefined) return new Error(`cannot listen: ${address}`)
  if (cause.code === 'EADDRINUSE') return new Error(`address already in use: ${address}`, { cause })
  if (cause.code === 'EACCES') return new Error(`not permitted to listen: ${address}`, { cause })
  return new Error(`cannot listen: ${address} (${cause.message})`, { cause })
}
