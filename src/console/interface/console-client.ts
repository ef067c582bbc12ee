// The way to the broker: requests with the proof of the person, and whether the broker can be reached.
//
// When a request finds no broker, the client asks every two seconds for /health/live, which needs no proof. When the
// broker answers again, `returns` changes, and each view reads anew what it shows.

import type { Json } from '../../domain/json.js'
import { Observable } from '../state/observable.js'
import type { ProofHolder } from '../state/proof.js'
import type { ConsoleScope } from '../state/scope.js'
import { type ConsoleRequest, curlOf, type HeaderPrefix, requestHeaders, requestUrl } from './console-request.js'
import { readAnswer, type TypedAnswer } from './typed-answer.js'
import {
  curlOfTyped,
  isBelow,
  type RequestReading,
  type RequestText,
  readRequest,
  type TypedRequest,
} from './typed-request.js'

/** A request that did not succeed, as a person has to see it. */
export interface RequestProblem {
  /** undefined: there was no answer. */
  readonly status: number | undefined
  readonly error: string
  readonly text: string
  readonly request: ConsoleRequest
}

/** `Shape`: what the interface answers, which is not checked: the page and the broker are of one build. */
export type ConsoleAnswer<Shape> =
  | { readonly ok: true; readonly json: Shape; readonly text: string; readonly total: number | undefined }
  | { readonly ok: false; readonly problem: RequestProblem }

/** Whether the broker can be reached. */
export type BrokerReach = { readonly kind: 'reached' } | { readonly kind: 'gone'; readonly sinceMs: number }

/** An answer that takes longer counts as none. */
const answerMsMax = 60_000
const probeMs = 2_000

const reached: BrokerReach = { kind: 'reached' }

export class ConsoleClient {
  readonly reach = new Observable<BrokerReach>(reached)
  /** How often the broker has come back, or another person has begun to ask. */
  readonly returns = new Observable(0)
  /** Whether an answer has asked for a key or a token. */
  readonly asksForProof = new Observable(false)
  private prefix: HeaderPrefix = 'Ctx'

  /** `base`: the URL below which the interface is. */
  constructor(
    readonly base: URL,
    private readonly holder: ProofHolder,
  ) {
    holder.proof.follow(() => {
      this.asksForProof.set(false)
      this.returns.set(this.returns.value + 1)
    })
  }

  /** The key or token that is shown. */
  get proof(): Observable<string> {
    return this.holder.proof
  }

  async ask<Shape = Json>(request: ConsoleRequest, signal?: AbortSignal): Promise<ConsoleAnswer<Shape>> {
    try {
      const response = await this.send(request, {}, signal, answerMsMax)
      const text = await response.text()
      if (!response.ok) return { ok: false, problem: problemOf(request, response.status, text) }
      const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false
      const count = response.headers.get(`${this.prefix}-Total-Count`)
      const json = (isJson && text !== '' ? JSON.parse(text) : null) as Shape
      return { ok: true, json, text, total: count === null ? undefined : Number(count) }
    } catch {
      if (signal?.aborted) return { ok: false, problem: { status: undefined, error: '', text: 'cancelled', request } }
      this.lose()
      return {
        ok: false,
        problem: { status: undefined, error: 'No answer', text: 'the broker does not answer', request },
      }
    }
  }

  /** Sends a request; an answer that is not a success is an answer. Fails when there is none. */
  async send(
    request: ConsoleRequest,
    more: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
    timeoutMs?: number,
  ): Promise<Response> {
    const headers = new Headers([...requestHeaders(request, this.prefix), ...Object.entries(more)])
    const { value: proof } = this.holder.proof
    if (proof !== '') headers.set('Authorization', `Bearer ${proof}`)
    const signals = [...(signal ? [signal] : []), ...(timeoutMs === undefined ? [] : [AbortSignal.timeout(timeoutMs)])]
    const response = await fetch(requestUrl(request, this.base), {
      method: request.method,
      headers,
      body: request.body === undefined ? null : JSON.stringify(request.body),
      signal: AbortSignal.any(signals),
      credentials: 'omit',
      cache: 'no-store',
    })
    if (response.status === 401) this.asksForProof.set(true)
    return response
  }

  /** Reads what a person has typed. */
  read(text: RequestText, scope: ConsoleScope): RequestReading {
    return readRequest(text, scope, this.base, this.prefix)
  }

  /** Sends it, with the key or token unless it has another one. undefined: there was no answer. */
  async exchange({ method, url, headers, body }: TypedRequest): Promise<TypedAnswer | undefined> {
    if (!isBelow(url, this.base)) throw new Error('a request must stay at this broker')
    const all = new Headers()
    for (const [name, value] of headers) all.append(name, value)
    const { value: proof } = this.holder.proof
    if (proof !== '' && !all.has('Authorization')) all.set('Authorization', `Bearer ${proof}`)
    const sinceMs = performance.now()
    try {
      const signal = AbortSignal.timeout(answerMsMax)
      const options = { method, headers: all, body: body ?? null, signal } as const
      const response = await fetch(url, { ...options, credentials: 'omit', cache: 'no-store' })
      return await readAnswer(response, sinceMs)
    } catch {
      this.lose()
      return undefined
    }
  }

  /** Learns which headers this broker reads: with `-compat fiware` it answers in that vocabulary, whatever was asked. */
  async begin(): Promise<void> {
    try {
      const response = await this.send({ method: 'GET', path: 'version' }, {}, undefined, answerMsMax)
      this.prefix = response.headers.has('Fiware-Correlator') ? 'Fiware' : 'Ctx'
    } catch {
      this.lose()
    }
  }

  curl(request: ConsoleRequest): string {
    return curlOf(request, this.base, this.prefix, this.holder.proof.value !== '')
  }

  curlOfTyped(request: TypedRequest): string {
    return curlOfTyped(request, this.holder.proof.value !== '')
  }

  /** Something got no answer: the broker is gone until it answers again. */
  lose(): void {
    if (this.reach.value.kind === 'gone') return
    this.reach.set({ kind: 'gone', sinceMs: Date.now() })
    this.probeLater()
  }

  private probeLater(): void {
    setTimeout(() => this.probe(), probeMs)
  }

  private async probe(): Promise<void> {
    try {
      const response = await fetch(new URL('health/live', this.base), {
        signal: AbortSignal.timeout(probeMs),
        cache: 'no-store',
      })
      if (!response.ok) return this.probeLater()
      await this.begin()
      this.reach.set(reached)
      this.returns.set(this.returns.value + 1)
    } catch {
      this.probeLater()
    }
  }
}

function problemOf(request: ConsoleRequest, status: number, text: string): RequestProblem {
  try {
    const { error, description } = JSON.parse(text) as { error?: string; description?: string }
    return { status, error: plain(error ?? ''), text: plain(description ?? ''), request }
  } catch {
    return { status, error: '', text, request }
  }
}

/** The interface sends eight characters of texts as HTML entities (docs/interface/errors.md#form). */
const plain = (text: string): string => text.replace(/&(?:lt|gt|quot|#\d\d);/g, one => characterOf[one] ?? one)

const characterOf: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&#40;': '(',
  '&#41;': ')',
  '&#61;': '=',
  '&#59;': ';',
  '&#39;': "'",
  '&quot;': '"',
}
