// Results as HTTP answers: the only place that knows status codes, the shape of an error body
// (docs/interface/requests.md#answers, docs/interface/errors.md#form, docs/interface/errors.md) and the headers with
// which a browser shows an answer to a page of another origin
// (docs/interface/browsers.md#pages-from-other-origins-cors).
//
// Texts may echo input of a client, so the eight forbidden characters are sent as HTML entities.
//
// Cross-origin headers are off unless origins are configured. A request with another `Origin` gets the same answer
// without these headers; this is not access control. Credentials are never allowed.

import { type Refusal, type RefusalKind, type Result, refusals, refusalText } from '../domain/refusal.js'
import { type AnswersInFlight, unlimitedAnswers } from './answers-in-flight.js'
import type { Call } from './call.js'
import { answerCoding, varying } from './codings.js'
import { type Compressor, compressBytesMin, compressNowBytesMax } from './compressor.js'
import { type AnswerBody, type EventAnswer, type Exchange, lengthOf, type SocketListener } from './front.js'
import type { ServedFile } from './served-file.js'

/** The prefix of the vendor headers: ours, or that of the original broker. Every request may use either. */
export type Vocabulary = 'Ctx' | 'Fiware'

export interface CorsSettings {
  /** Origins of pages that may read answers, compared as text; `all`: every page may. */
  readonly origins: readonly string[] | 'all'
  /** How long a browser may keep the answer to a preflight. */
  readonly maxAgeS: number
}

/** The status of each kind of refusal; docs/interface/errors.md lists them. */
export const statusOf = {
  ParseError: 400,
  BadRequest: 400,
  Unauthorized: 401,
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
  PartlyForwarded: 404,
  InternalServerError: 500,
  NotImplemented: 501,
  Unavailable: 503,
  InsufficientStorage: 507,
  Forbidden: 403,
  Conflict: 409,
  QuotaExceeded: 403,
  TooManyRequests: 429,
} as const satisfies Record<RefusalKind, number>

const nameOf = (kind: RefusalKind): string => (kind === 'PartlyForwarded' ? 'PartialUpdate' : kind)

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

/** The body of an answer with a refusal (docs/interface/errors.md#form). */
export const errorText = (refusal: Refusal): string =>
  JSON.stringify({ error: escaped(nameOf(refusal.kind)), description: escaped(refusalText(refusal)) })

const escaped = (text: string): string => text.replace(/[<>()=;'"]/g, character => entityOf[character]!)

/** A text has up to three bytes for each of its characters. */
const smallLengthMax = 21 * 1024

/** Whether compression may be worth it; a text is measured in characters. */
const isLong = (body: AnswerBody): boolean =>
  (typeof body === 'string' || body instanceof Uint8Array ? body.length : lengthOf(body)) > compressBytesMin

const mayBeCounted = (body: AnswerBody): boolean =>
  typeof body === 'string' || body instanceof Uint8Array ? body.length > smallLengthMax : true

/** Answers one request. Every answer carries the correlator. */
export class Reply {
  /** undefined: no headers about origins. */
  private readonly cors: CorsAnswer | undefined
  /** undefined: there is no watch. */
  readonly call: Call | undefined
  readonly answers: AnswersInFlight
  /** undefined: the answer is sent uncompressed (routes.ts). */
  compressor: Compressor | undefined

  constructor(
    private readonly exchange: Exchange,
    private readonly vocabulary: Vocabulary,
    readonly correlator: string,
    call?: Call,
    cors?: CorsAnswer | undefined,
    answers = unlimitedAnswers,
  ) {
    this.answers = answers
    this.call = call
    this.cors = cors
  }

  /** 200 with JSON; `total` becomes the header of `options=count`. */
  json(body: AnswerBody, total?: number): void {
    const headers = this.headers('Content-Type', 'application/json')
    if (total !== undefined) headers.push(`${this.vocabulary}-Total-Count`, String(total))
    this.send(200, headers, body)
  }

  /** 200 with plain text, or another kind of text. */
  text(body: string, type = 'text/plain'): void {
    this.content(body, type, [])
  }

  /** 200 with content of a type, and further headers. */
  content(body: string, type: string, headers: readonly string[]): void {
    this.send(200, this.headers('Content-Type', type, ...headers), body)
  }

  /** 200 with a file, in the best form that the client accepts; 304: the client has it. */
  file({ plain, br, gzip, tag, headers }: ServedFile): void {
    const all = this.headers('ETag', tag, 'Vary', 'Accept-Encoding', ...headers)
    if (hasTag(this.exchange.header('if-none-match'), tag)) return this.sendPlain(304, all)
    const coding = this.exchange.headerTimes('accept-encoding') > 0 ? answerCoding(this.exchange) : undefined
    const coded = coding === 'br' ? br : coding === 'gzip' ? gzip : undefined
    if (coding && coded) this.sendPlain(200, [...all, 'Content-Encoding', coding], coded)
    else this.sendPlain(200, all, plain)
  }

  /** The header `Range` of the request; an empty text: there is none. */
  get askedRange(): string {
    return this.exchange.header('range')
  }

  /** 206 with the part of a file that the request has asked for. */
  part(bytes: Uint8Array, headers: readonly string[]): void {
    this.sendPlain(206, this.headers(...headers), bytes)
  }

  /** 308: the resource is at another path, relative to this one. */
  redirect(location: string): void {
    this.send(308, this.headers('Location', location))
  }

  /** 200 with a body that comes in parts, and that no cache may store. */
  stream(parts: AsyncGenerator<Uint8Array, void, void>, type: string): void {
    this.call?.end(200, undefined, undefined)
    this.exchange.stream(200, this.headers('Content-Type', type, 'Cache-Control', 'no-store'), parts)
  }

  /** 200 with events, which are written as they come; undefined: the client is gone. */
  events(onRoom: () => void, onGone: () => void): EventAnswer | undefined {
    this.call?.end(200, undefined, undefined)
    // Proxies that buffer answers would hold events back.
    const headers = this.headers(
      'Content-Type',
      'text/event-stream',
      'Cache-Control',
      'no-store',
      'X-Accel-Buffering',
      'no',
    )
    return this.exchange.events(200, headers, onRoom, onGone)
  }

  /** Speaks WebSocket from now on. False: the client is gone, and nothing is called. */
  webSocket(protocol: string, listener: SocketListener): boolean {
    this.call?.end(101, undefined, undefined)
    return this.exchange.webSocket(this.headers(), protocol, listener)
  }

  /** 201 for a created resource, or 204 for an entity that `POST /v2/entities` may have updated. */
  created(location: string, upsert: boolean): void {
    this.send(upsert ? 204 : 201, this.headers('Location', location))
  }

  /** 201 for a created resource that the body describes. */
  createdWith(location: string, json: string): void {
    const headers = this.headers('Location', location, 'Content-Type', 'application/json', 'Cache-Control', 'no-store')
    this.send(201, headers, json)
  }

  /** 202: the operation has begun and continues. */
  begun(json: string): void {
    this.send(202, this.headers('Content-Type', 'application/json'), json)
  }

  /** 200 without a body: a notification was accepted, a setting changed. */
  taken(): void {
    this.send(200, this.headers())
  }

  /** 200 to a preflight, with headers only if the origin matches. */
  preflight(allow: string, settings: CorsSettings): void {
    this.send(200, this.headers(...(this.cors?.isMatch ? preflightHeaders(allow, this.vocabulary, settings) : [])))
  }

  done(): void {
    this.send(204, this.headers())
  }

  /** 204, or the refusal. */
  conclude(result: Result<unknown>): void {
    if (result.ok) this.done()
    else this.refuse(result.refusal)
  }

  /** Answers with the status and the text of the refusal. */
  refuse(refusal: Refusal): void {
    this.answers.onRefused(refusal)
    const body = errorText(refusal)
    const headers = this.headers('Content-Type', 'application/json')
    if (refusal.kind === 'Unavailable') headers.push('Retry-After', '1')
    if (refusal.code === 'rateUsedUp') headers.push('Retry-After', String(refusal.seconds))
    if (refusal.code === 'contentCoding') headers.push('Accept-Encoding', refusal.supported)
    const status = statusOf[refusal.kind]
    // The following bytes are not a request: they are the rest of a body that was too long, or of unknown length.
    if (refusal.kind === 'RequestEntityTooLarge' || refusal.kind === 'ContentLengthRequired') {
      this.call?.end(status, body, refusal)
      this.exchange.replyAndClose(status, headers, body)
    } else this.send(status, headers, body, refusal)
  }

  /** Refuses a request that does not show who asks. `challenge`: the value of `WWW-Authenticate`; undefined: none. */
  refuseUnidentified(refusal: Refusal, challenge: string | undefined): void {
    if (challenge === undefined) return this.refuse(refusal)
    const headers = this.headers('Content-Type', 'application/json', 'WWW-Authenticate', challenge)
    this.send(statusOf[refusal.kind], headers, errorText(refusal), refusal)
  }

  /**
   * Like `refuse`, in the form of /admin/log (docs/interface/administration.md#log-settings). A text without input of
   * the client may be sent verbatim.
   */
  refuseInShort(refusal: Refusal, as: 'escaped' | 'verbatim' = 'escaped'): void {
    const text = refusalText(refusal)
    const body = JSON.stringify({ error: as === 'escaped' ? escaped(text) : text })
    this.send(statusOf[refusal.kind], this.headers('Content-Type', 'application/json'), body, refusal)
  }

  /**
   * 405 with the allowed methods, and a body unless `isSilent` (docs/interface/administration.md,
   * docs/interface/requests.md#methods).
   */
  refuseMethod(allow: string, isSilent: boolean): void {
    const { kind } = refusals.method
    const headers = [`${this.vocabulary}-Correlator`, this.correlator, 'Allow', allow]
    if (isSilent) return this.send(statusOf[kind], headers, undefined, refusals.method)
    headers.push('Content-Type', 'application/json')
    this.send(
      statusOf[kind],
      headers,
      JSON.stringify({ error: kind, description: refusalText(refusals.method) }),
      refusals.method,
    )
  }

  private send(status: number, headers: readonly string[], body?: AnswerBody, refusal?: Refusal): void {
    if (body !== undefined && this.compressor && isLong(body) && this.exchange.headerTimes('accept-encoding') > 0)
      this.sendCoded(this.compressor, status, headers, body, refusal)
    else this.sendPlain(status, headers, body, refusal)
  }

  /**
   * For a client that sends `Accept-Encoding`: compresses if the client accepts it, there is room, and it saves bytes.
   */
  private sendCoded(
    compressor: Compressor,
    status: number,
    headers: readonly string[],
    body: AnswerBody,
    refusal?: Refusal,
  ): void {
    const plain = varying(headers)
    const coding = answerCoding(this.exchange)
    if (!coding) return this.sendPlain(status, plain, body, refusal)
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    const length = lengthOf(bytes)
    const sendEither = (compressed: Uint8Array | readonly Uint8Array[] | undefined): void => {
      if (compressed) this.sendPlain(status, [...plain, 'Content-Encoding', coding], compressed, refusal)
      else this.sendPlain(status, plain, bytes, refusal)
    }
    if (bytes instanceof Uint8Array && length <= compressNowBytesMax)
      return sendEither(compressor.compressNow(bytes, coding))
    const { answers } = this
    if (length > answers.answerBytesMax) return this.refuse(answers.tooLarge)
    const hold = answers.open()
    if (!hold.take(length)) return this.refuse(refusals.answersTooMany)
    const parts = bytes instanceof Uint8Array ? [bytes] : bytes
    const hasRoom = compressor.compressLater(parts, length, coding, compressed => {
      hold.release()
      sendEither(compressed)
    })
    if (hasRoom) return
    hold.release()
    sendEither(undefined)
  }

  private sendPlain(status: number, headers: readonly string[], body?: AnswerBody, refusal?: Refusal): void {
    if (body !== undefined && mayBeCounted(body)) return this.sendCounted(status, headers, body, refusal)
    this.call?.end(status, body, refusal)
    this.exchange.reply(status, headers, body)
  }

  /**
   * Sends a body that is not small. It refuses if the body is too large or the budget has no room. The body counts in
   * the budget until it was sent.
   */
  private sendCounted(status: number, headers: readonly string[], body: AnswerBody, refusal?: Refusal): void {
    const { answers } = this
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    const length = lengthOf(bytes)
    if (length > answers.answerBytesMax) return this.refuse(answers.tooLarge)
    const hold = answers.open()
    if (!hold.take(length)) return this.refuse(refusals.answersTooMany)
    this.call?.end(status, bytes, refusal)
    this.exchange.reply(status, headers, bytes, () => hold.release())
  }

  private headers(...more: string[]): string[] {
    const headers = [`${this.vocabulary}-Correlator`, this.correlator, ...more]
    if (this.cors) headers.push(...this.cors.headers)
    return headers
  }
}

/** Whether `If-None-Match` has the tag. A proxy that compresses may have made a weak one of it. */
const hasTag = (header: string, tag: string): boolean =>
  header === '*' || header.split(',').some(one => one.trim().replace(/^W\//, '') === tag)

/** Whether cross-origin headers apply to a path. */
export const hasCors = (path: string): boolean => /^\/((v2|eventsource|callbacks)(\/|$)|version\/?$)/.test(path)

/** The cross-origin headers of the answers to one request. */
export interface CorsAnswer {
  /** Whether the request has an allowed origin. */
  readonly isMatch: boolean
  /** The headers of every answer but a 405. */
  readonly headers: readonly string[]
}

const byOrigin = ['Vary', 'Origin'] as const
const noMatch: CorsAnswer = { isMatch: false, headers: byOrigin }

/**
 * The headers of the answers to a request; undefined: there are none. If single origins are configured, an answer
 * depends on `Origin`, also on its absence, and a cache must know that (docs/interface/browsers.md).
 */
export function corsHeaders(
  exchange: Exchange,
  vocabulary: Vocabulary,
  { origins }: CorsSettings,
): CorsAnswer | undefined {
  if (!hasCors(exchange.path)) return undefined
  const asked = exchange.header('origin')
  const isAll = origins === 'all'
  if (asked === '' || !(isAll || origins.includes(asked))) return isAll ? undefined : noMatch
  const headers = [
    'Access-Control-Allow-Origin',
    isAll ? '*' : asked,
    'Access-Control-Expose-Headers',
    `${vocabulary}-Correlator, ${vocabulary}-Total-Count, Location`,
    ...(isAll ? [] : byOrigin),
  ]
  return { isMatch: true, headers }
}

/**
 * The origin of a page that may not read answers of this broker; '' for its own pages, for those of `-corsOrigin`, and
 * for other clients. Browsers open a WebSocket for any page, so the server has to check this
 * (docs/interface/live.md#websocket).
 */
export function foreignOrigin(exchange: Exchange, cors: CorsSettings | undefined): string {
  const origin = exchange.header('origin')
  if (origin === '' || cors?.origins === 'all' || cors?.origins.includes(origin)) return ''
  return origin.replace(/^https?:\/\//, '').toLowerCase() === exchange.header('host').toLowerCase() ? '' : origin
}

/** The further headers of a preflight; `allow` are the methods of the route, in the order of its `Allow` header. */
function preflightHeaders(allow: string, vocabulary: Vocabulary, { maxAgeS }: CorsSettings): readonly string[] {
  const methods = allow.split(', ').filter(method => method !== 'GET')
  const own = `${vocabulary}-Service, ${vocabulary}-Servicepath, Ngsiv2-AttrsFormat, ${vocabulary}-Correlator`
  return [
    'Access-Control-Allow-Methods',
    [...(allow.includes('GET') ? ['GET'] : []), ...methods, 'OPTIONS'].join(', '),
    'Access-Control-Allow-Headers',
    `Content-Type, ${own}, X-Forwarded-For, X-Real-IP, X-Auth-Token, Authorization`,
    'Access-Control-Max-Age',
    String(maxAgeS),
  ]
}

/** A preflight has no vendor headers yet: it lists those of the request to come. */
export const asksForFiware = (exchange: Exchange): boolean =>
  /(^|[\s,])fiware-/i.test(exchange.header('access-control-request-headers'))
