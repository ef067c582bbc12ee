// Forwarding: asks context providers for entities and attributes that are not stored here
// (docs/interface/registrations.md#which-provider-is-asked), one request after the other.
//
// It happens outside of any turn, in the process that has the client's connection: a provider may write to the same
// entity meanwhile. The received data are not stored. If a provider does not answer, or answers wrongly, only its own
// part is missing, and the log of sent requests shows it.
//
// A provider that does not serve the requested path is asked at the other path, within the same deadline. That counts
// as one more of the allowed requests (docs/interface/forwarding.md).
//
// Not here: which provider is asked for what (domain/providers), the local part of a write (forwarded-updates.ts), the
// path of a provider (forwarded-paths.ts), connections (deliver).

import { defaultEntityType, type Entity } from '../domain/entities/entity.js'
import type { Json } from '../domain/json.js'
import { type ForwardedQuery, type QueryRequest, readProvidedEntities } from '../domain/providers/forwarded-query.js'
import { type Undone, type UpdateRequest, updateAnswerOf, updateBody } from '../domain/providers/forwarded-update.js'
import type { ProviderIndex } from '../domain/providers/provider-index.js'
import { type ForwardedKind, operationUrl, type Pathless, type Registration } from '../domain/providers/registration.js'
import type { ProviderRefusal } from '../domain/subscriptions/document-rules.js'
import { jsonType } from '../domain/subscriptions/notification-headers.js'
import { parseReceiverUrl } from '../domain/subscriptions/receiver-url.js'
import { withoutSecretEntries } from '../domain/subscriptions/secrets.js'
import type { Clock, Logger, ProviderAnswer, Providers, SendWatch } from '../ports.js'
import { ForwardedPaths, isFromElsewhere } from './forwarded-paths.js'

/** The parts of a client's request that are passed on to providers. */
export interface Outward {
  /** As the client sent it; '': it did not. */
  readonly tenant: string
  /** As the client sent it; `/` when it did not. */
  readonly servicePath: string
  readonly correlator: string
  /** undefined: there is none. Never logged. */
  readonly authToken: string | undefined
  /** Method and target, for the log. */
  readonly line: string
}

export interface ForwardingOptions {
  readonly vocabulary: 'Ctx' | 'Fiware'
  readonly userAgent: string
  /** The limit of requests to providers for one request of a client; 0: nothing is forwarded. */
  readonly requestsMax: number
  readonly pathless: Pathless
  /** Bytes of a payload that a log line shows. */
  readonly loggedBytesMax: number
}

export interface Registered {
  of(tenant: string): ProviderIndex | undefined
}

/** The attributes that were updated, by the index of their entity in `undone`. */
export type Updated = ReadonlyMap<number, ReadonlySet<string>>

/** Providers that have refused a part of the request. */
export type RefusedBy = readonly ProviderRefusal[]

/** Receives an answer. Returns a description of its fault, if it has one. */
type Take = (answer: ProviderAnswer) => string | undefined

export interface ForwardingPorts {
  readonly providers: Providers
  readonly clock: Pick<Clock, 'wallMs' | 'monoMs'>
  readonly logger: Pick<Logger, 'level' | 'info'>
  /** undefined: they are not counted. */
  readonly watch?: Pick<SendWatch, 'onEnded'> | undefined
}

export class Forwarding {
  private readonly paths: ForwardedPaths

  constructor(
    private readonly registered: Registered,
    private readonly ports: ForwardingPorts,
    readonly options: ForwardingOptions,
  ) {
    this.paths = new ForwardedPaths(ports.clock, options.pathless)
  }

  // [hot] Once per request. A tenant without registrations pays only for this.
  /** The registrations of a tenant; undefined when it has none. */
  of(tenant: string): ProviderIndex | undefined {
    return this.options.requestsMax === 0 ? undefined : this.registered.of(tenant)
  }

  nowMs(): number {
    return this.ports.clock.wallMs()
  }

  /** Sends all requests of a query to providers. Calls back when all have ended, or no more are allowed. */
  query(query: ForwardedQuery, outward: () => Outward, onDone: (refusedBy: RefusedBy) => void): void {
    const relay = new Relay(this.options, this.ports, this.paths, outward)
    const step = (): void => {
      const request = relay.mayAsk ? query.next() : undefined
      if (!request) return onDone(relay.refusedBy)
      const { registration, limit, offset, entity } = request
      const parameters = `?limit=${limit}&offset=${offset}&options=count`
      const take = (answer: ProviderAnswer): string | undefined => {
        if (answer.kind === 'failed') return answer.reason
        const entities = entitiesOf(answer.body, entity.type ?? defaultEntityType)
        if (!entities)
          return `${answer.body.length === 0 ? 'empty' : 'unexpected'} answer to a query, response code: ${answer.status}`
        query.take(entities, totalOf(answer), registration.servicePath)
        return undefined
      }
      relay.ask('query', registration, parameters, queryBody(request), take, step)
    }
    step()
  }

  /** Sends updates to their providers. Calls back with the updated attributes. */
  update(
    undone: readonly Undone[],
    requests: readonly UpdateRequest[],
    outward: () => Outward,
    onDone: (updated: Updated, refusedBy: RefusedBy) => void,
  ): void {
    const relay = new Relay(this.options, this.ports, this.paths, outward)
    const updated = new Map<number, Set<string>>()
    const left = [...requests].reverse()
    const step = (): void => {
      const request = relay.mayAsk ? left.pop() : undefined
      if (!request) return onDone(updated, relay.refusedBy)
      const take = (answer: ProviderAnswer): string | undefined => {
        if (answer.kind === 'failed') return answer.reason
        const ended = updateAnswerOf(answer.status)
        if (ended === 'updated')
          for (const [at, names] of request.parts) updated.set(at, new Set([...(updated.get(at) ?? []), ...names]))
        return ended === 'failed' ? `unexpected response code: ${answer.status}` : undefined
      }
      relay.ask('update', request.registration, '', updateBody(undone, request), take, step)
    }
    step()
  }
}

interface Asked {
  readonly kind: ForwardedKind
  readonly registration: Registration
  readonly parameters: string
  readonly body: string
  readonly take: Take
  readonly onTaken: () => void
  readonly sinceMs: number
}

/** The requests that one request of a client causes. They are numbered, and carry the client's headers. */
class Relay {
  readonly refusedBy: ProviderRefusal[] = []
  private known: Outward | undefined
  private count = 0

  constructor(
    private readonly options: ForwardingOptions,
    private readonly ports: ForwardingPorts,
    private readonly paths: ForwardedPaths,
    private readonly given: () => Outward,
  ) {}

  private get outward(): Outward {
    this.known ??= this.given()
    return this.known
  }

  /** Whether the request of the client may cause one more. */
  get mayAsk(): boolean {
    return this.count < this.options.requestsMax
  }

  ask(
    kind: ForwardedKind,
    registration: Registration,
    parameters: string,
    body: string,
    take: Take,
    onTaken: () => void,
  ): void {
    const sinceMs = this.ports.clock.monoMs()
    const [first, other] = this.paths.basesOf(registration)
    this.askAt(first, other, { kind, registration, parameters, body, take, onTaken, sinceMs })
  }

  /** Asks at one base, and then at the other if the provider does not serve the first. */
  private askAt(base: string, other: string | undefined, asked: Asked, isSecond = false): void {
    const { kind, registration, parameters, body, take, onTaken, sinceMs } = asked
    const { providers, logger } = this.ports
    if (this.count === 0 && this.isLogged()) logger.info(`Starting forwarding for ${this.outward.line}`, this.context())
    this.count++
    const url = operationUrl(base, kind)
    const askedMs = this.ports.clock.monoMs()
    const request = { url: url + parameters, headers: this.headers(), body, isRepeatable: kind === 'query', sinceMs }
    providers.ask(request, answer => {
      if (this.isLogged()) this.log(registration.id, request.url, body, answer)
      if (answer.kind === 'answered' && hasRefused(kind, answer.status))
        this.refusedBy.push({ url, status: answer.status })
      const isElsewhere = isFromElsewhere(answer)
      if (isElsewhere && other !== undefined && this.mayAsk) {
        this.reportEnded(registration.id, url, body, answer, undefined, askedMs)
        return this.askAt(other, undefined, asked, true)
      }
      const failure = take(answer)
      this.reportEnded(registration.id, url, body, answer, failure, askedMs)
      if (failure === undefined && !isElsewhere && (isSecond || other !== undefined))
        this.paths.learn(registration, base)
      onTaken()
    })
  }

  private reportEnded(
    registration: string,
    url: string,
    body: string,
    answer: ProviderAnswer,
    failure: string | undefined,
    askedMs: number,
  ): void {
    const { tenant, servicePath } = this.outward
    this.ports.watch?.onEnded({
      what: 'forward',
      tenant,
      path: servicePath,
      receiver: receiverOf(url),
      registration,
      requestBytes: Buffer.byteLength(body),
      responseBytes: answer.kind === 'answered' ? answer.body.length : 0,
      failure,
      durationMs: this.ports.clock.monoMs() - askedMs,
    })
  }

  /** The same headers as those of notifications (docs/interface/registrations.md#queries). */
  private headers(): readonly string[] {
    const { vocabulary, userAgent } = this.options
    const { tenant, servicePath, authToken, correlator } = this.outward
    const headers = ['User-Agent', userAgent]
    if (authToken !== undefined) headers.push('X-Auth-Token', authToken)
    headers.push('Accept', 'application/json', 'Content-Type', jsonType)
    // An agent that was made for the original broker reads only `Fiware-*`, whatever prefix our clients use.
    for (const prefix of vocabulary === 'Ctx' ? ['Ctx', 'Fiware'] : [vocabulary]) {
      if (tenant !== '') headers.push(`${prefix}-Service`, tenant)
      headers.push(`${prefix}-ServicePath`, servicePath)
      headers.push(`${prefix}-Correlator`, `${correlator}; cbfwd=${this.count}`)
    }
    return headers
  }

  private isLogged(): boolean {
    const { level } = this.ports.logger
    return level === 'INFO' || level === 'DEBUG'
  }

  private log(registration: string, url: string, body: string, answer: ProviderAnswer): void {
    const { loggedBytesMax } = this.options
    const end =
      answer.kind === 'answered'
        ? `response ${shown(answer.body, loggedBytesMax)}, response code: ${answer.status}`
        : answer.reason
    const what = `POST ${withoutSecretEntries(url)}, request ${shown(Buffer.from(body), loggedBytesMax)}, ${end}`
    this.ports.logger.info(`Request forwarded (regId: ${registration}): ${what}`, this.context())
  }

  private context() {
    const { correlator, tenant, servicePath } = this.outward
    return { correlator, tenant, path: servicePath }
  }
}

/**
 * Whether a status means that the provider does not have the requested entity or attributes
 * (docs/interface/registrations.md#updates-to-providers).
 */
const hasRefused = (kind: ForwardedKind, status: number): boolean =>
  status === 404 || (kind === 'update' && updateAnswerOf(status) === 'refused')

function shown(payload: Buffer, bytesMax: number): string {
  const text = payload.length <= bytesMax ? String(payload) : `${payload.subarray(0, bytesMax)}(...)`
  return `payload (${payload.length} bytes): ${text}`
}

const queryBody = ({ entity: { id, idPattern, type }, attrs }: QueryRequest): string =>
  JSON.stringify({ entities: [id === undefined ? { idPattern, type } : { id, type }], attrs })

function totalOf({ header }: Extract<ProviderAnswer, { kind: 'answered' }>): number | undefined {
  const text = header('ctx-total-count') ?? header('fiware-total-count') ?? ''
  return /^[0-9]{1,15}$/.test(text) ? Number(text) : undefined
}

/** The entities of an answer; undefined: the answer is not a list of entities. */
function entitiesOf(body: Buffer, type: string): readonly Entity[] | undefined {
  const json = body.length === 0 ? undefined : parse(body)
  return json === undefined ? undefined : readProvidedEntities(json, type)
}

/** The part of a URL that names the receiver, without the query. */
function receiverOf(url: string): string {
  const parts = parseReceiverUrl(url)
  return parts ? `${parts.host}:${parts.port}${parts.path}` : url
}

function parse(body: Buffer): Json | undefined {
  try {
    return JSON.parse(body.toString())
  } catch {
    return undefined
  }
}
