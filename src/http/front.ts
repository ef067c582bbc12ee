// The HTTP port: what a server must offer to the broker, and what both servers do alike: where a head ends, how long it
// may be, and the body of an answer in pieces. uws-front.ts and node-front.ts implement it, and one suite of tests runs
// both; where they cannot agree, the README's table says so.
//
// A front knows bytes, headers and connections. It knows no route, no status by name and no entity.

import { isIPv6, type ListenOptions, type Socket } from 'node:net'
import type { OnDropped } from './connections.js'
import type { CutOff } from './drain.js'

export type AnswerBody = string | Uint8Array | readonly Uint8Array[]

/** One request and its answer. Its address must be asked for before `onRequest` returns. */
export interface Exchange {
  /** Upper case. */
  readonly method: string
  /** As sent: percent-encoded, from the first `/` up to but without `?`. */
  readonly path: string
  /** As sent, without `?`; '' when there is none. */
  readonly query: string
  /** The value of a header, named in lower case; '' when it is absent or empty. */
  header(name: string): string
  /** How often a header is there, also with an empty value; 0: it is absent. */
  headerTimes(name: string): number
  clientAddress(): string
  /**
   * Answers, once; a second call and a call after the client has gone are ignored. Later than `onRequest` is fine.
   * `headers` is name, value, name, value, ... Content-Length is written by the front; a 204 has no body. What is large
   * is sent in pieces, as fast as the client takes it. `onSent` is called once: when the system has taken all of it, or
   * the client has gone.
   */
  reply(status: number, headers: readonly string[], body?: AnswerBody, onSent?: () => void): void
  /**
   * Answers with a body of unknown length, as fast as the client takes it. It asks for the next part when the system has
   * taken the one before, whose memory may then be used again. If `parts` fails, it closes the connection, so that the
   * client sees that the body is not whole. When the client has gone, it returns `parts`.
   */
  stream(status: number, headers: readonly string[], parts: AsyncGenerator<Uint8Array, void, void>): void
  /** As `reply`, and then closes the connection: for a request whose body is not wanted. */
  replyAndClose(status: number, headers: readonly string[], body?: Uint8Array | string): void
}

/** Takes the whole body of a request. The bytes are valid during the call only. */
export type BodyHandler = (body: Uint8Array) => void

export interface FrontHandler {
  /** The head of a request has arrived. Returns what takes its body; undefined: it is answered without one. */
  onRequest(exchange: Exchange): BodyHandler | undefined
}

export interface TlsFiles {
  readonly keyFile: string
  readonly certFile: string
  /** The oldest version that is spoken; uws cannot leave out 1.2. */
  readonly minVersion: '1.2' | '1.3'
}

export interface FrontOptions {
  /** 0 lets the system choose. */
  readonly port: number
  /** Where node:http listens besides, whatever serves at `port`; undefined: nowhere. 0 lets the system choose. */
  readonly http1Port?: number | undefined
  /** Address to listen on; undefined: all of the family. */
  readonly host?: string | undefined
  readonly family: 'both' | 'ipv4' | 'ipv6'
  /** Sibling processes listen on the same port, and connections are spread among them (`uws` only). */
  readonly shared?: boolean
  /**
   * Another process listens for several, and hands out connections (`node` only); undefined: the front listens by
   * itself.
   */
  readonly source?: ConnectionSource | undefined
  /** PEM files; undefined: plain HTTP. */
  readonly tls?: TlsFiles | undefined
  /** Client connections at a time; for a further one that makes room which has waited longest. */
  readonly connectionsMax: number
  /** Of one address; further ones are closed at once. 0: no limit. */
  readonly connectionsPerAddressMax: number
  /** Called for each connection that is closed without having ended. */
  readonly onDropped?: OnDropped | undefined
  /** Idle client connections are closed after this time; 0: the server's own default. */
  readonly idleTimeoutS: number
  /** Bytes of a body that are collected at most; the handler refuses longer ones by their Content-Length before. */
  readonly bodyBytesMax: number
  /** A client that takes no byte of its answer for so long is closed; undefined: 30 s. */
  readonly answerStallMs?: number | undefined
  readonly onStall?: (() => void) | undefined
}

/** Where a front gets connections from that another process has accepted. */
export interface ConnectionSource {
  /** Resolves with the port when that process listens there. */
  open(port: number, take: (socket: Socket) => void): Promise<number>
}

export interface Front {
  /** Where `FrontOptions.http1Port` listens, once `listen` has ended; undefined: nowhere. */
  readonly http1Port?: number | undefined
  /** Starts to listen; gives the port. Fails when the address is in use or may not be used. */
  listen(): Promise<number>
  /**
   * From now on each answer ends its connection, and new ones are taken: so clients are gone, each to where its
   * balancer sends it, before `close` ends what is left.
   */
  dismiss(): void
  /**
   * Takes the clients that have connected, and closes its listeners. From now on each answer ends its connection.
   * Answers are held back until `close`, which the caller calls at once: so all of several workers can stop listening
   * before any of them ends a connection.
   */
  unlisten(): Promise<void>
  /**
   * Stops accepting, answers the requests that still come on connections that are open, and closes all connections:
   * those that rest after `quietMs` (drain.ts), the last of them after `drainMs`. Resolves with what was cut off then;
   * undefined: all ended in order.
   */
  close(drainMs: number): Promise<CutOff | undefined>
}

/** Bytes of a request's line and headers together, for both servers. */
export const headBytesMax = 16 * 1024

/**
 * uWebSockets.js reads its limit, 4 KB by default, from the environment of the process when it loads. A thread has a
 * copy of that environment, so the main thread calls this before it starts one.
 */
export function setHeadLimit(): void {
  process.env.UWS_HTTP_MAX_HEADERS_SIZE ??= String(headBytesMax)
}

/**
 * Whether the headers, names (in any case) and values in turn, leave it open where the body ends or which host is
 * meant. A proxy that finds another end than this server takes a part of one client's body for the next client's
 * request. So such a request is refused, and its connection is closed before another byte of it is read
 * (docs/operations/http-servers.md#framing).
 */
export function isAmbiguous(headers: readonly string[]): boolean {
  let hosts = 0
  let lengths = 0
  let encodings = 0
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at]!
    // Few other names have these lengths: most headers cost one comparison of numbers.
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++
    else if (name.length === 14 && name.toLowerCase() === 'content-length') {
      if (!wholeNumber.test(headers[at + 1]!)) return true
      lengths++
    } else if (name.length === 17 && name.toLowerCase() === 'transfer-encoding') {
      if (headers[at + 1]!.toLowerCase() !== 'chunked') return true
      encodings++
    }
  }
  return hosts > 1 || lengths + encodings > 1
}

const wholeNumber = /^\d+$/

/** What such a request is answered with. */
export const ambiguousBody = '{"error":"BadRequest","description":"ambiguous length, transfer encoding or host"}'

/** So much of an unwanted body is read away, so that the client finishes sending and sees the answer. */
export const unwantedBytesMax = 16 * 1024 * 1024

/** Bytes of a piece. A TLS connection encrypts one piece at a time, and reports only whole ones as taken. */
export const pieceBytesMax = 64 * 1024

/**
 * The body of an answer in pieces, each sent as soon as the system has taken the one before. Its parts are never put
 * together: what has been sent is let go part by part.
 */
export class BodyPieces {
  readonly length: number
  private readonly parts: (Uint8Array | undefined)[]
  private part = 0
  /** Where that part begins. */
  private partAt = 0

  constructor(body: AnswerBody) {
    this.parts = typeof body === 'string' ? [Buffer.from(body)] : body instanceof Uint8Array ? [body] : [...body]
    this.length = lengthOf(body)
  }

  /** What begins at an offset, which never goes back: all of a piece, or what is left of its part. */
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

/** Bytes of a body. */
export function lengthOf(body: AnswerBody): number {
  if (typeof body === 'string') return Buffer.byteLength(body)
  return body instanceof Uint8Array ? body.length : body.reduce((sum, part) => sum + part.length, 0)
}

/** What no header may hold becomes `?`: a line end would let the client write headers of its own. */
export function headerText(value: string): string {
  return value.replace(/[^\t -~\x80-\xff]/g, '?')
}

/** Where to listen, in the words of node:net. */
export function listenOptions({ port, host, family }: Pick<FrontOptions, 'port' | 'host' | 'family'>): ListenOptions {
  const address = host ?? (family === 'ipv4' ? '0.0.0.0' : family === 'ipv6' ? '::' : undefined)
  return { port, host: address, ipv6Only: family === 'ipv6' }
}

/** The reason why an address cannot be listened on, in the words both fronts use. */
export function listenFailure(
  cause: NodeJS.ErrnoException | undefined,
  options: Pick<FrontOptions, 'port' | 'host' | 'family'>,
): Error {
  const host = options.host ?? (options.family === 'ipv4' ? '0.0.0.0' : '::')
  const address = `${isIPv6(host) ? `[${host}]` : host}:${options.port}`
  if (cause === undefined) return new Error(`cannot listen: ${address}`)
  if (cause.code === 'EADDRINUSE') return new Error(`address already in use: ${address}`, { cause })
  if (cause.code === 'EACCES') return new Error(`not permitted to listen: ${address}`, { cause })
  return new Error(`cannot listen: ${address} (${cause.message})`, { cause })
}
