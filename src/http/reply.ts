// Results as HTTP answers: the only place that knows status codes and the shape of an error body (entities.md §1.2, §2, §20).
//
// Texts may echo what a client sent, so the eight forbidden characters leave as HTML entities.

import type { Refusal, RefusalKind } from '../domain/refusal.js'
import type { Call } from './call.js'
import type { Exchange } from './front.js'

const statusOf = {
  ParseError: 400,
  BadRequest: 400,
  NotFound: 404,
  MethodNotAlowed: 405,
  NotAcceptable: 406,
  TooManyResults: 409,
  ContentLengthRequired: 411,
  NoResourceAvailable: 413,
  RequestEntityTooLarge: 413,
  UnsupportedMediaType: 415,
  Unprocessable: 422,
  PartialUpdate: 422,
  InternalServerError: 500,
  NotImplemented: 501,
  Unavailable: 503,
} as const satisfies Record<RefusalKind, number>

const entityOf: Readonly<Record<string, string>> = {
  '<': '&lt;',
  '>': '&gt;',
  '(': '&#40;',
  ')': '&#41;',
  '=': '&#61;',
  ';': '&#59;',
  "'": '&#39;',
  '"': '&quot;',
}

const escaped = (text: string): string => text.replace(/[<>()=;'"]/g, character => entityOf[character]!)

/** The names of the vendor headers: ours, or those of clients that come from elsewhere. */
export type Vocabulary = 'Ctx' | 'Fiware'

/** Answers one request. Every answer carries the correlator. */
export class Reply {
  private readonly exchange: Exchange
  private readonly vocabulary: Vocabulary
  readonly correlator: string
  /** undefined: nobody counts. */
  readonly call: Call | undefined

  constructor(exchange: Exchange, vocabulary: Vocabulary, correlator: string, call?: Call) {
    this.exchange = exchange
    this.vocabulary = vocabulary
    this.correlator = correlator
    this.call = call
  }

  /** 200 with JSON; `total` becomes the header of `options=count`. */
  json(body: Uint8Array | string, total?: number): void {
    const headers = this.headers('Content-Type', 'application/json')
    if (total !== undefined) headers.push(`${this.vocabulary}-Total-Count`, String(total))
    this.send(200, headers, body)
  }

  /** 200 with plain text, or another kind of text. */
  text(body: string, type = 'text/plain'): void {
    this.send(200, this.headers('Content-Type', type), body)
  }

  /** 201 for what was created, or 204 for an entity that `POST /v2/entities` may have updated. */
  created(location: string, upsert: boolean): void {
    this.send(upsert ? 204 : 201, this.headers('Location', location))
  }

  /** 200 without a body: a notification was taken, a setting changed. */
  taken(): void {
    this.send(200, this.headers())
  }

  /** 204: done, nothing to say. */
  done(): void {
    this.send(204, this.headers())
  }

  /** The status of the refusal, and what it says. */
  refuse(refusal: Refusal, allow?: string): void {
    const body = JSON.stringify({ error: escaped(refusal.kind), description: escaped(refusal.description) })
    const headers = this.headers('Content-Type', 'application/json')
    if (allow !== undefined) headers.push('Allow', allow)
    if (refusal.kind === 'Unavailable') headers.push('Retry-After', '1')
    const status = statusOf[refusal.kind]
    if (refusal.kind === 'RequestEntityTooLarge') {
      this.call?.end(status, body, refusal)
      this.exchange.replyAndClose(status, headers, body)
    } else this.send(status, headers, body, refusal)
  }

  /** As `refuse`, in the form of /admin/log: the text is the error (operations.md §5.1). Given as it is when it is none of the client's. */
  refuseInShort(refusal: Refusal, text = escaped(refusal.description)): void {
    const body = JSON.stringify({ error: text })
    this.send(statusOf[refusal.kind], this.headers('Content-Type', 'application/json'), body, refusal)
  }

  /** As `refuse`, without a body (operations.md §3). */
  refuseInSilence(refusal: Refusal, allow: string): void {
    this.send(statusOf[refusal.kind], this.headers('Allow', allow), undefined, refusal)
  }

  private send(status: number, headers: readonly string[], body?: Uint8Array | string, refusal?: Refusal): void {
    this.call?.end(status, body, refusal)
    this.exchange.reply(status, headers, body)
  }

  private headers(...more: string[]): string[] {
    return [`${this.vocabulary}-Correlator`, this.correlator, ...more]
  }
}
