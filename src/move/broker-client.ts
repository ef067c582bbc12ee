// Sends requests to a running broker over HTTP, one at a time, and repeats those that failed.
//
// Headers go out in both vocabularies, ours and that of other brokers. After a failure that may be temporary (no
// answer, 408, 429, 5xx) the request is tried again three times, with growing pauses. A request that must not arrive
// twice is repeated only if the broker certainly did not accept it. undici does the work, loaded when the first broker
// is asked.

import { setTimeout as pause } from 'node:timers/promises'
import type { Client as UndiciClient } from 'undici'
import { connectorTo, type Endpoint, type OpenSocket, reasonOf } from '../deliver/sockets/sockets.js'
import { isObject } from '../domain/json.js'
import { parseJson } from '../http/body.js'
import { MoveError } from './moved.js'

export interface BrokerOptions {
  /** Sent as `X-Auth-Token` and as a bearer token; never shown. */
  readonly token: string | undefined
  readonly openSocket: OpenSocket
  /** Pause before the second try; it doubles for each further one. */
  readonly retryPauseMs?: number
  /** Maximal bytes of an answer. */
  readonly answerBytesMax?: number
}

export interface BrokerRequest {
  readonly method: 'GET' | 'POST' | 'PATCH'
  /** The part after `/v2`. */
  readonly path: string
  readonly tenant: string
  readonly servicePath: string | undefined
  readonly body?: unknown
  /** Whether it may arrive twice. */
  readonly isRepeatable: boolean
  /** The request, for sentences: `page 3 of the entities of tenant "a"`. */
  readonly what: string
}

export interface BrokerAnswer {
  readonly status: number
  readonly body: Buffer
  /** `*-Total-Count`; undefined: there is none. */
  readonly total: number | undefined
  /** The location of the created document; undefined: the broker does not return it. */
  readonly location: string | undefined
}

const retriesMax = 3
const retryPauseMsDefault = 1_000
/** Time of one request, its answer included: a page at a deep offset may take long. */
const requestMsMax = 120_000
/** A larger answer is requested again in smaller pages. */
const answerBytesMaxDefault = 64 * 1024 * 1024

/** The text by which a broker of ours refuses an answer for its size (docs/operations/answers.md). */
const tooLarge = /^answer size: /

/** The answer has more than `answerBytesMax`, or more than the broker sends. */
export class AnswerTooLarge extends Error {}

export class BrokerClient {
  readonly name: string
  private readonly url: URL
  private client: UndiciClient | undefined

  constructor(
    url: string,
    private readonly options: BrokerOptions,
  ) {
    this.url = new URL(url)
    this.name = this.url.href.replace(/\/+$/, '')
  }

  /** The answer, whatever its status. Rejects with a MoveError when there was none, or only failures. */
  async ask(request: BrokerRequest): Promise<BrokerAnswer> {
    const { retryPauseMs = retryPauseMsDefault } = this.options
    for (let tries = 0; ; tries++) {
      const outcome = await this.once(request)
      const isFailure = typeof outcome === 'string'
      if (!isFailure && !mayPass(outcome.status)) return outcome
      const why = isFailure ? outcome : `answered ${outcome.status}`
      const isAgain = request.isRepeatable || (!isFailure && wasNotTaken(outcome.status))
      if (tries >= retriesMax || !isAgain) throw new MoveError(`${this.name}, ${request.what}: ${why}`)
      await pause(retryPauseMs * 2 ** tries)
    }
  }

  /** The answer, which must have this status. Otherwise rejects with the broker's description. */
  async expect(request: BrokerRequest, status: number): Promise<BrokerAnswer> {
    const answer = await this.ask(request)
    if (answer.status === status) return answer
    if (answer.status === 400 && tooLarge.test(reasonIn(answer))) throw new AnswerTooLarge()
    throw new MoveError(`${this.name}, ${request.what}: answered ${answer.status}: ${reasonIn(answer)}`)
  }

  private async once(request: BrokerRequest): Promise<BrokerAnswer | string> {
    const { Client } = await import('undici')
    this.client ??= new Client(this.url.origin, {
      connect: connectorTo(endpointOf(this.url), this.options.openSocket, () => {}),
      headersTimeout: requestMsMax,
      bodyTimeout: requestMsMax,
    })
    try {
      const answer = await this.client.request({
        method: request.method,
        path: `${this.url.pathname.replace(/\/+$/, '')}/v2${request.path}`,
        headers: headersOf(request, this.options.token),
        body: request.body === undefined ? null : JSON.stringify(request.body),
        signal: AbortSignal.timeout(requestMsMax),
      })
      const chunks: Buffer[] = []
      let bytes = 0
      for await (const chunk of answer.body as AsyncIterable<Buffer>) {
        bytes += chunk.length
        if (bytes > (this.options.answerBytesMax ?? answerBytesMaxDefault)) throw new AnswerTooLarge()
        chunks.push(chunk)
      }
      const { location } = answer.headers
      const total = answer.headers['ctx-total-count'] ?? answer.headers['fiware-total-count']
      return {
        status: answer.statusCode,
        body: Buffer.concat(chunks),
        total: typeof total === 'string' && /^\d{1,15}$/.test(total) ? Number(total) : undefined,
        location: typeof location === 'string' ? location : undefined,
      }
    } catch (error) {
      if (error instanceof AnswerTooLarge) throw error
      return reasonOf(error as Error)
    }
  }

  async close(): Promise<void> {
    await this.client?.destroy()
  }
}

const mayPass = (status: number): boolean => status === 408 || status === 429 || status >= 500
const wasNotTaken = (status: number): boolean => status === 429 || status === 503

function headersOf({ tenant, servicePath, body }: BrokerRequest, token: string | undefined): Record<string, string> {
  return {
    accept: 'application/json',
    ...(tenant !== '' && { 'Ctx-Service': tenant, 'Fiware-Service': tenant }),
    ...(servicePath !== undefined && { 'Ctx-ServicePath': servicePath, 'Fiware-ServicePath': servicePath }),
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...(token !== undefined && { 'X-Auth-Token': token, Authorization: `Bearer ${token}` }),
  }
}

const reasonLengthMax = 300

/** The broker's description of a refusal. */
export function reasonIn({ body }: Pick<BrokerAnswer, 'body'>): string {
  const payload = parseJson(body)
  const json = payload.ok ? payload.value.value : null
  const said = isObject(json) && typeof json.description === 'string' ? json.description : body.toString()
  return said.slice(0, reasonLengthMax)
}

/** The text of a refusal, for sentences. */
export const refusedBy = (name: string, answer: BrokerAnswer): string =>
  `${name} answered ${answer.status}: ${reasonIn(answer)}`

/** The endpoint of a URL. */
export function endpointOf({ protocol, hostname, port }: URL): Endpoint {
  const isTls = protocol === 'https:'
  return {
    protocol: isTls ? 'https:' : 'http:',
    host: hostname,
    port: port === '' ? (isTls ? 443 : 80) : Number(port),
  }
}
