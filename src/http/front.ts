// The HTTP port: what a server must offer to the broker. uws-front.ts and node-front.ts implement it, and one suite of
// tests runs both; where they cannot agree, the README's table says so.
//
// A front knows bytes, headers and connections. It knows no route, no status by name and no entity.

import type { OnDropped } from './connections.js'

/** The body of an answer: a text, bytes, or parts that follow each other. */
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
  /** The client's address as text. */
  clientAddress(): string
  /**
   * Answers, once; a second call and a call after the client has gone are ignored. Later than `onRequest` is fine.
   * `headers` is name, value, name, value, ... Content-Length is written by the front; a 204 has no body. What is large is sent in pieces, as fast as
   * the client takes it. `onSent` is called once: when the system has taken all of it, or the client has gone.
   */
  reply(status: number, headers: readonly string[], body?: AnswerBody, onSent?: () => void): void
  /** As `reply`, and then closes the connection: for a request whose body nobody wants to read. */
  replyAndClose(status: number, headers: readonly string[], body?: Uint8Array | string): void
}

/** Takes the whole body of a request. The bytes are valid during the call only. */
export type BodyHandler = (body: Uint8Array) => void

/** What the broker does with a request. */
export interface FrontHandler {
  /** The head of a request has arrived. Returns what takes its body, or nothing when it will be answered without one. */
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
  /** Sibling processes listen on the same port, and connections are spread among them. */
  readonly shared?: boolean
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
  /** Told of each such client. */
  readonly onStall?: (() => void) | undefined
}

export interface Front {
  /** Where `FrontOptions.http1Port` listens, once `listen` has ended; undefined: nowhere. */
  readonly http1Port?: number | undefined
  /** Starts to listen; gives the port. Fails when the address is in use or may not be used. */
  listen(): Promise<number>
  /**
   * From now on each answer ends its connection, and new ones are taken: so clients are gone, each to where its balancer sends it, before `close` ends
   * what is left.
   */
  dismiss(): void
  /** Stops accepting, lets what is in flight be answered for `drainMs` at most, closes all connections. */
  close(drainMs: number): Promise<void>
}
