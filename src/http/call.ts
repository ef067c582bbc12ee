// One request under way, for those who count and log: what is noted on its way is told when it is answered.
//
// The head of a request is gone when `onRequest` returns. What has to be read from it for a line in the log or an alarm is read then only
// where somebody may want it: two looks at headers cost as much as all the rest of this.
//
// Not here: what is made of it (observe/traffic-watcher.ts).

import type { Refusal } from '../domain/refusal.js'
import type { DeprecatedFeature } from '../messages/admin.js'
import type { AnsweredRequest, Clock, RequestWatch } from '../ports.js'
import { lengthOf } from './body-pieces.js'
import type { AnswerBody, Exchange } from './front.js'

/** Who is told, and by which clock. */
export interface Watching {
  readonly watch: RequestWatch
  readonly clock: Pick<Clock, 'monoMs'>
}

/** A header may name anything as the client; longer is no address. */
const fromLengthMax = 200

export class Call implements AnsweredRequest {
  route = ''
  status = 0
  refusal: Refusal | undefined
  requestBytes = 0
  responseBytes = 0
  durationMs = 0
  payload: Buffer | undefined
  readonly correlator: string
  readonly tenant: string
  readonly paths: string
  private readonly exchange: Exchange
  private readonly watching: Watching
  private readonly startedMs: number
  /** What a proxy says of the client; undefined: not read yet. */
  private forwarded: string | undefined
  private hasHead = true
  private isEnded = false

  constructor(exchange: Exchange, correlator: string, tenant: string, paths: string, watching: Watching) {
    this.exchange = exchange
    this.correlator = correlator
    this.tenant = tenant
    this.paths = paths
    this.watching = watching
    this.startedMs = watching.clock.monoMs()
  }

  get method(): string {
    return this.exchange.method
  }

  get url(): string {
    const { path, query } = this.exchange
    return query === '' ? path : `${path}?${query}`
  }

  from(): string {
    this.noteOrigin()
    return this.forwarded || this.exchange.clientAddress()
  }

  /** Reads who the client is, as a proxy tells it: later it cannot be read. */
  noteOrigin(): void {
    if (this.forwarded !== undefined || !this.hasHead) return
    const told = this.exchange.header('x-real-ip') || this.exchange.header('x-forwarded-for')
    this.forwarded = told.slice(0, fromLengthMax)
  }

  /** A route has been found. */
  routed(route: string, contentType: string, hasBody: boolean): void {
    const { watch } = this.watching
    this.route = route
    watch.onRouted(route, this.method, !hasBody ? 'none' : contentType === 'text/plain' ? 'text' : 'json')
    if (hasBody || watch.wantsOrigin) this.noteOrigin()
  }

  /** The head will not be there any more. */
  leaveHead(): void {
    this.hasHead = false
  }

  /** The body has come. */
  onBody(body: Uint8Array): void {
    this.requestBytes = body.length
    const { payloadBytes } = this.watching.watch
    if (payloadBytes > 0) this.payload = Buffer.from(body.subarray(0, payloadBytes))
  }

  /** It uses what is deprecated. */
  deprecated(feature: DeprecatedFeature, usage: string): void {
    const { correlator, tenant, paths } = this
    this.watching.watch.onDeprecated(feature, usage, { correlator, tenant, path: paths, from: this.from() })
  }

  /** Runs what parses the body, and says how long that took to those who want to know. */
  timed<T>(parse: () => T): T {
    const { watch, clock } = this.watching
    if (!watch.isTimed) return parse()
    const startedMs = clock.monoMs()
    const parsed = parse()
    watch.onParsed(clock.monoMs() - startedMs)
    return parsed
  }

  /** It is being answered. */
  end(status: number, body: AnswerBody | undefined, refusal: Refusal | undefined): void {
    if (this.isEnded) return
    this.isEnded = true
    this.status = status
    this.refusal = refusal
    this.responseBytes = body === undefined ? 0 : lengthOf(body)
    this.durationMs = this.watching.clock.monoMs() - this.startedMs
    this.watching.watch.onAnswered(this)
  }
}
