// The head of a request: everything before its body, checked in the order of
// docs/interface/requests.md#order-of-checks, and the payload after it.
//
// Headers of both vocabularies are read, and the answer uses the client's vocabulary. A vendor header that occurs
// twice, or in both vocabularies with different values, is refused: a proxy that checks rights may have read the other
// one. With `-compat fiware` only `Fiware-*` is read (docs/operations/trust.md#vendor-headers).

import type { X509Certificate } from 'node:crypto'
import type { Elsewhere } from '../broker/forwarded-reads.js'
import type { Outward } from '../broker/forwarding.js'
import type { Payload } from '../domain/entities/entity.js'
import { isLooped } from '../domain/providers/registration.js'
import { accepted, type Refusal, type Result, refusals, refused } from '../domain/refusal.js'
import { allPaths, parseServicePaths, parseTenant, type Scope, updatePath } from '../domain/scope.js'
import type { Origin } from '../messages/messages.js'
import type { AccessGuard, Permit } from './access-guard.js'
import type { AnswersInFlight } from './answers-in-flight.js'
import { parsedInTurnsFrom, parseJson } from './body.js'
import { Call, type CallWatch, type Correlators } from './call.js'
import { type Coding, requestCoding } from './codings.js'
import type { Compressor } from './compressor.js'
import type { Exchange } from './front.js'
import type { Inflater } from './inflater.js'
import { type ProxyHead, proxyHeadOf } from './proxy-head.js'
import { asksForFiware, type CorsSettings, corsHeaders, foreignOrigin, Reply, type Vocabulary } from './reply.js'
import { type Parameters, parseParameters, parsePath } from './url.js'

export interface HttpSettings {
  readonly bodyBytesMax: number
  /** Whether the tenant header selects data (`-multiservice`); its syntax is checked either way. */
  readonly tenants: boolean
  /** Whether requests may be forwarded now; undefined: never. Without providers a request costs only this call. */
  readonly forwards?: (() => boolean) | undefined
  /** undefined: no cross-origin headers. */
  readonly cors?: CorsSettings | undefined
  readonly answers?: AnswersInFlight | undefined
  /** The prefix of our headers in every answer; undefined: the prefix of the request. */
  readonly vocabulary?: Vocabulary | undefined
  /** undefined: no answer is compressed, and compressed bodies are refused. */
  readonly compression?: Compression | undefined
  /** undefined: there is no access control. */
  readonly access?: AccessGuard | undefined
  /** undefined: the paths of ngsi-proxy are not served. `isTls`: clients reach this broker over TLS. */
  readonly ngsiProxy?: { readonly isTls: boolean } | undefined
  /** Recognizes paths that another port of this broker serves; undefined: there is none. */
  readonly isElsewhere?: ((components: readonly string[]) => boolean) | undefined
}

export interface Compression {
  readonly compressor: Compressor
  readonly inflater: Inflater
}

const verbsWithBody = new Set(['POST', 'PUT', 'PATCH'])

/** In place of the type of a body that is passed on as it is. */
const anyType = '*/*'

/** The vendor headers of a request, and the reply that uses them. Each is read once: reading one costs 0.1 us. */
export interface Vendor {
  readonly reply: Reply
  /** As the client sent it; '' when absent. */
  readonly tenant: string
  readonly paths: string
  /** The refusal of an ambiguous header; undefined: all are unambiguous. */
  readonly conflict: Refusal | undefined
}

const vendorNames = ['Service', 'ServicePath', 'Correlator'] as const

const absent = { correlator: '', tenant: '', paths: '' } as const

/** Reads the vendor headers in both vocabularies. The answer uses the request's. `watching`: undefined, no watch. */
export function readVendor(
  exchange: Exchange,
  correlators: Correlators,
  settings: HttpSettings,
  watching?: CallWatch,
): Vendor {
  const hearsOwn = settings.vocabulary !== 'Fiware'
  const own = hearsOwn
    ? {
        correlator: exchange.header('ctx-correlator'),
        tenant: exchange.header('ctx-service'),
        paths: exchange.header('ctx-servicepath'),
      }
    : absent
  const other = {
    correlator: exchange.header('fiware-correlator'),
    tenant: exchange.header('fiware-service'),
    paths: exchange.header('fiware-servicepath'),
  }
  const spoken: Vocabulary = isSpoken(own) || !isSpoken(other) ? 'Ctx' : 'Fiware'
  const vocabulary = settings.vocabulary ?? spoken
  const correlator = own.correlator || other.correlator || correlators.next()
  const tenant = own.tenant || other.tenant
  const paths = own.paths || other.paths
  const call = watching && new Call(exchange, correlator, tenant, paths, watching)
  const reply = replyTo(exchange, vocabulary, correlator, settings, call)
  return { reply, tenant, paths, conflict: conflictIn(exchange, hearsOwn) }
}

// [hot] Six short loops for each request: 0.2 us.
function conflictIn(exchange: Exchange, hearsOwn: boolean): Refusal | undefined {
  for (const [index, name] of vendorNames.entries()) {
    const [own, other] = lowerCase[index]!
    const ownTimes = hearsOwn ? exchange.headerTimes(own) : 0
    const otherTimes = exchange.headerTimes(other)
    if (ownTimes > 1) return refusals.vendorHeaderTwice(`Ctx-${name}`)
    if (otherTimes > 1) return refusals.vendorHeaderTwice(`Fiware-${name}`)
    if (ownTimes > 0 && otherTimes > 0 && exchange.header(own) !== exchange.header(other))
      return refusals.vendorHeadersDiffer(name)
  }
  return undefined
}

const lowerCase = vendorNames.map(name => [`ctx-${name.toLowerCase()}`, `fiware-${name.toLowerCase()}`] as const)

function replyTo(
  exchange: Exchange,
  vocabulary: Vocabulary,
  correlator: string,
  { cors, answers }: HttpSettings,
  call: Call | undefined,
): Reply {
  if (!cors) return new Reply(exchange, vocabulary, correlator, call, undefined, answers)
  const wanted = exchange.method === 'OPTIONS' && asksForFiware(exchange) ? 'Fiware' : vocabulary
  return new Reply(exchange, wanted, correlator, call, corsHeaders(exchange, wanted, cors), answers)
}

const isSpoken = (headers: { correlator: string; tenant: string; paths: string }): boolean =>
  headers.correlator !== '' || headers.tenant !== '' || headers.paths !== ''

/** A request whose head has passed its checks. */
export interface Request {
  readonly method: string
  /** Path and query as the client sent them. */
  readonly path: string
  readonly query: string
  readonly components: readonly string[]
  readonly parameters: Parameters
  readonly accept: Accept
  /** Of the path /: the client prefers HTML to JSON, as browsers do. */
  readonly prefersHtml: boolean
  /** Without parameters; '' when there is no body. */
  readonly contentType: string
  readonly hasBody: boolean
  /** The coding of the body; undefined: it is not compressed. */
  readonly coding: Coding | undefined
  /** As the client sent it; checked only after the payload (docs/interface/requests.md#order-of-checks). */
  readonly tenantHeader: string
  /** Of a write: the rendering of a notification's entities (`Ngsiv2-AttrsFormat`); '' when the header is absent. */
  readonly notificationFormat: string
  /** Of /v2/stream: headers that only it reads. */
  readonly streamHead: StreamHead | undefined
  /** Of a request to a path of ngsi-proxy; undefined: it is to another path. */
  readonly proxied: ProxyHead | undefined
  /** Whether it is a custom notification of an entity that its subscription has patched (`Ctx-Notification-Kind`). */
  readonly isPatchedNotification: boolean
  /** Of a notification: the alteration of its entities (`Ctx-Alteration`, ours); '' when the header is absent. */
  readonly notifiedAlteration: string
  /**
   * Of a write, of a read that may be forwarded, and of a stream: `X-Auth-Token`; '' when absent. With access control
   * it is a proof for this broker alone: others must not get it.
   */
  readonly authToken: string
  /** Empty when the header was absent. */
  readonly paths: readonly string[]
  readonly tenants: boolean
  readonly bodyBytesMax: number
  /** Of a large body: the result of `parseJsonInTurns`. */
  parsed?: Result<Payload>
  readonly mayForward: boolean
  readonly call: Call | undefined
  /** What the rules allow; undefined: there is no access control, or the route needs no rule. */
  permit?: Permit
}

/** Headers of a request for a stream (docs/interface/live.md#request). */
export interface StreamHead {
  readonly acceptsEvents: boolean
  /** The cursor of a reader that comes back (`Last-Event-ID`); '' when absent. */
  readonly lastEventId: string
  readonly asksForWebSocket: boolean
  /** Whether its handshake can be answered. */
  readonly canUpgrade: boolean
  /** The subprotocols that the client offers. */
  readonly protocols: readonly string[]
  /** The origin of a page that may not read answers of this broker; '' for other clients. */
  readonly foreignOrigin: string
  /** The certificate of the connection; undefined: there is none. */
  readonly certificate: X509Certificate | undefined
}

function readStreamHead(exchange: Exchange, cors: CorsSettings | undefined): StreamHead {
  const protocols = exchange.header('sec-websocket-protocol')
  return {
    acceptsEvents: likesEvents(exchange.header('accept')),
    lastEventId: exchange.header('last-event-id'),
    asksForWebSocket: exchange.header('upgrade').toLowerCase() === 'websocket',
    canUpgrade: exchange.asksForWebSocket && exchange.header('sec-websocket-version') === '13',
    protocols: protocols === '' ? [] : protocols.split(',').map(name => name.trim()),
    foreignOrigin: foreignOrigin(exchange, cors),
    certificate: exchange.certificate,
  }
}

/** Reads and checks the head (docs/interface/requests.md#order-of-checks, checks 1 to 8). */
export function readHead(exchange: Exchange, vendor: Vendor, settings: HttpSettings): Result<Request> {
  const { method, path, query } = exchange
  const length = Number(exchange.header('content-length') || 0)
  if (length > settings.bodyBytesMax) return refused(refusals.payloadTooLarge(length, settings.bodyBytesMax))
  if (vendor.conflict) return refused(vendor.conflict)
  const components = parsePath(path)
  if (!components.ok) return components
  const paths = pathsOfHeader(vendor.paths, method)
  if (!paths.ok) return paths
  const isChunked = length === 0 && exchange.header('transfer-encoding') !== ''
  const hasBody = length > 0 || (isChunked && !needsNoBody(method, components.value))
  const proxied = settings.ngsiProxy && proxyHeadOf(exchange, components.value, settings.ngsiProxy.isTls)
  const typeHeader = exchange.header('content-type')
  const contentType = !hasBody
    ? accepted('')
    : proxied?.isNotification
      ? accepted(anyType)
      : readContentType(typeHeader)
  if (!contentType.ok) return contentType
  const coding = hasBody ? requestCoding(exchange, settings.compression !== undefined) : accepted(undefined)
  if (!coding.ok) return coding
  const parameters = parseParameters(query)
  if (!parameters.ok) return parameters
  const asksForPage = isRoot(components.value) && likesHtml(exchange.header('accept'))
  const isOfEvents = isStream(components.value)
  const acceptsAll = asksForPage || isOfEvents || proxied !== undefined || components.value[0] === 'console'
  const accept = acceptsAll ? accepted(acceptAll) : readAccept(exchange, mayBeText(components.value))
  if (!accept.ok) return accept
  if (!hasBody && (method === 'GET' || method === 'DELETE') && typeHeader !== '')
    return refused(refusals.contentTypeWithoutBody)
  if (!hasBody && verbsWithBody.has(method) && !needsNoBody(method, components.value))
    return refused(refusals.lengthRequired)
  const mayForward = settings.forwards?.() ?? false
  return accepted({
    method,
    path,
    query,
    components: components.value,
    parameters: parameters.value,
    accept: accept.value,
    prefersHtml: asksForPage,
    contentType: contentType.value,
    hasBody,
    coding: coding.value,
    tenantHeader: vendor.tenant,
    streamHead: isOfEvents ? readStreamHead(exchange, settings.cors) : undefined,
    proxied,
    notificationFormat: method === 'GET' ? '' : exchange.header('ngsiv2-attrsformat'),
    isPatchedNotification:
      method !== 'GET' && vendor.reply.correlator.includes(';') && kindOf(exchange, settings) === 'custom',
    notifiedAlteration: isNotification(components.value) ? alterationOf(exchange, settings) : '',
    authToken:
      settings.access || (method === 'GET' && !mayForward && !isOfEvents) ? '' : exchange.header('x-auth-token'),
    paths: paths.value,
    tenants: settings.tenants,
    bodyBytesMax: settings.bodyBytesMax,
    mayForward,
    call: vendor.reply.call,
  })
}

/**
 * A retry of deliveries needs only its path. So do commands about the log
 * (docs/interface/administration.md#log-settings), to a node, and for a backup, and a new event source. The path /
 * accepts no write at all, so a missing body is not the first error.
 */
function needsNoBody(method: string, components: readonly string[]): boolean {
  const [first, second] = components
  if (isRoot(components) || first === 'eventsource') return true
  if (first === 'log' || first === 'cluster' || (first === 'admin' && noBodyOfAdmin.has(second))) return true
  return method === 'POST' && components.length === 5 && components[4] === 'retry' && components[3] === 'deliveries'
}

const noBodyOfAdmin: ReadonlySet<string | undefined> = new Set(['log', 'backup'])

const isRoot = (components: readonly string[]): boolean => components.length === 1 && components[0] === ''

const isStream = ([version, resource, ...more]: readonly string[]): boolean =>
  version === 'v2' && resource === 'stream' && more.length === 0

/** A request without `Accept` accepts everything. */
const likesEvents = (accept: string): boolean => accept === '' || /text\/event-stream|text\/\*|\*\/\*/.test(accept)

const isNotification = ([, , operation]: readonly string[]): boolean => operation === 'notify'

const alterationOf = (exchange: Exchange, settings: HttpSettings): string => ownHeader('alteration', exchange, settings)

const kindOf = (exchange: Exchange, settings: HttpSettings): string =>
  ownHeader('notification-kind', exchange, settings)

const ownHeader = (name: string, exchange: Exchange, { vocabulary }: HttpSettings): string =>
  (vocabulary === 'Fiware' ? '' : exchange.header(`ctx-${name}`)) || exchange.header(`fiware-${name}`)

function pathsOfHeader(header: string, method: string): Result<readonly string[]> {
  if (header === '') return accepted([])
  const paths = parseServicePaths(header)
  if (!paths.ok) return paths
  if (method === 'PATCH' || method === 'DELETE') {
    const one = updatePath(paths.value, method)
    if (!one.ok) return one
  }
  return paths
}

/**
 * `text/plain` passes here. Operations that accept only JSON refuse it later
 * (docs/interface/requests.md#order-of-checks).
 */
function readContentType(header: string): Result<string> {
  if (header === '') return refused(refusals.noContentType)
  const semicolon = header.indexOf(';')
  const type = (semicolon < 0 ? header : header.slice(0, semicolon)).trim()
  if (type === 'application/json' || type === 'text/plain') return accepted(type)
  return refused(refusals.contentType(type))
}

/** Paths of a value, and of metrics. */
const mayBeText = (components: readonly string[]): boolean =>
  components.at(-1) === 'value' || (components.length === 1 && components[0] === 'metrics')

function readAccept(exchange: Exchange, mayBeText: boolean): Result<Accept> {
  const header = exchange.header('accept')
  if (header === '' && exchange.headerTimes('accept') === 0) return accepted(acceptAll)
  const accept = parseAccept(header)
  if (!accept.ok) return accept
  const { json } = accept.value
  return json || mayBeText ? accept : refused(refusals.acceptJson)
}

export function tenantOf(request: Request): Result<string> {
  const tenant = parseTenant(request.tenantHeader)
  if (!tenant.ok) return tenant
  return request.tenants ? tenant : accepted('')
}

/** The one scope of a write or a registration (docs/interface/tenants-and-paths.md#service-paths). */
export function oneScope(request: Request): Result<Scope> {
  const tenant = tenantOf(request)
  if (!tenant.ok) return tenant
  const path = updatePath(request.paths, request.method as 'POST' | 'PUT' | 'PATCH' | 'DELETE')
  return path.ok ? accepted({ tenant: tenant.value, path: path.value }) : path
}

/** The paths of a read: those of the header, or all paths of the tenant. */
export const readPaths = ({ paths }: Request): readonly string[] => (paths.length === 0 ? allPaths : paths)

/** The body of an operation that accepts only JSON. */
export function jsonPayload(request: Request, body: Uint8Array): Result<Payload> {
  if (request.contentType !== 'application/json') return refused(refusals.contentType(request.contentType))
  return parsedJson(request, body)
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const control = /[\x00-\x1f\x7f-\x9f]/g

export function parsedJson(request: Request, body: Uint8Array): Result<Payload> {
  const { call, parsed, bodyBytesMax } = request
  if (parsed) return parsed
  return call ? call.timed(() => parseJson(body, bodyBytesMax)) : parseJson(body, bodyBytesMax)
}

/** Whether the body is JSON, and so large that it is parsed before a handler gets it (`parseJsonInTurns`). */
export const isLargeJson = ({ contentType }: Request, body: Uint8Array): boolean =>
  body.length >= parsedInTurnsFrom && contentType === 'application/json'

/** Makes a header's value safe to send on: a request may contain tabs. */
const sendable = (value: string): string => (value.search(control) < 0 ? value : value.replace(control, ' '))

/** The origin of a write, for the owner of the shard. */
export function originOf(request: Request, reply: Reply): Origin {
  const correlator = sendable(reply.correlator)
  const semicolon = correlator.indexOf(';')
  return {
    correlatorRoot: semicolon < 0 ? correlator : correlator.slice(0, semicolon),
    correlator: semicolon < 0 ? undefined : correlator,
    authToken: request.authToken === '' ? undefined : sendable(request.authToken),
    isCustomNotification: request.notificationFormat === 'custom' || undefined,
    isPatchedNotification: request.isPatchedNotification || undefined,
    isPaced: request.parameters.options.has('flowControl') || undefined,
    // A request in a loop triggers no more notifications.
    numbering: isLooped(correlator) ? undefined : { next: 1, step: 1 },
  }
}

/**
 * The parts of a request that providers get; undefined: it is not forwarded (docs/interface/registrations.md#queries,
 * docs/interface/registrations.md#forwarded-requests).
 */
export function outwardOf(request: Request, reply: Reply): (() => Outward) | undefined {
  if (!request.mayForward || isLooped(reply.correlator)) return undefined
  return () => {
    const { method, path, query, paths, authToken } = request
    const tenant = parseTenant(request.tenantHeader)
    return {
      tenant: tenant.ok ? tenant.value : '',
      servicePath: paths.length === 0 ? '/' : paths.join(','),
      correlator: sendable(reply.correlator),
      authToken: authToken === '' ? undefined : sendable(authToken),
      line: `${method} ${path}${query === '' ? '' : `?${query}`}`,
    }
  }
}

const builtins: ReadonlySet<string> = new Set(['dateCreated', 'dateModified', 'dateExpires', 'servicePath'])

/** The parts of a read of these attributes that providers get; undefined: it is not forwarded. */
export function elsewhereOf(
  request: Request,
  reply: Reply,
  named: readonly string[] | undefined,
): Elsewhere | undefined {
  if (!request.mayForward || request.parameters.options.has('skipForwarding')) return undefined
  const attrs = named === undefined || named.includes('*') ? [] : named.filter(name => !builtins.has(name))
  // No provider has builtin attributes.
  if (attrs.length === 0 && named && named.length > 0 && !named.includes('*')) return undefined
  const outward = outwardOf(request, reply)
  return outward && { attrs, outward }
}

/**
 * Which of the two forms, JSON or plain text, a client accepts, and which it prefers
 * (docs/interface/requests.md#accept). Unknown ranges are skipped, and so are parameters after `q`. A first parameter
 * that is not `q` is an error in the reference, but no client depends on that; it is tolerated unless the parameter is
 * written as a broken `q`.
 */
export interface Accept {
  readonly json: boolean
  readonly text: boolean
  /** For a value that has both forms: the highest q wins, at a tie the first one; `*` means JSON. */
  readonly prefersText: boolean
}

export const acceptAll: Accept = { json: true, text: true, prefersText: false }

const acceptJson: Accept = { json: true, text: false, prefersText: false }

const ranges: Readonly<Record<string, Accept>> = {
  '*/*': acceptAll,
  'application/*': acceptJson,
  'application/json': acceptJson,
  'text/*': { json: false, text: true, prefersText: true },
  'text/plain': { json: false, text: true, prefersText: true },
}

/**
 * Whether an `Accept` names HTML, and with a higher q than JSON if it names that as well. Wildcards do not count:
 * browsers send them after HTML, and other clients send them alone.
 */
export function likesHtml(header: string): boolean {
  let html = 0
  let json = 0
  for (const item of header.split(',')) {
    const [name, ...parameters] = item.split(';').map(part => part.trim())
    const quality = parseQuality(parameters[0])
    if (!quality.ok) return false
    if (name === 'text/html') html = Math.max(html, quality.value)
    if (name === 'application/json') json = Math.max(json, quality.value)
  }
  return html > json
}

export function parseAccept(header: string): Result<Accept> {
  if (header === '*/*') return accepted(acceptAll)
  if (header === 'application/json') return accepted(acceptJson)
  if (header.trim() === '') return refused(refusals.acceptEmpty)
  let known = false
  let json = false
  let text = false
  let best = -1
  let prefersText = false
  for (const item of header.split(',')) {
    const [name = '', ...parameters] = item.split(';').map(part => part.trim())
    const quality = parseQuality(parameters[0])
    if (!quality.ok) return quality
    const range = Object.hasOwn(ranges, name) ? ranges[name] : undefined
    if (!range) continue
    known = true
    json ||= range.json
    text ||= range.text
    if (quality.value > best) {
      best = quality.value
      prefersText = range.prefersText
    }
  }
  return known ? accepted({ json, text, prefersText }) : refused(refusals.acceptNothingKnown)
}

function parseQuality(parameter: string | undefined): Result<number> {
  if (parameter === undefined) return accepted(1)
  const [name, ...values] = parameter.split('=')
  if (name?.trim() !== 'q') return accepted(1)
  if (values.length === 0) return refused(refusals.acceptQWithoutEqual)
  const value = values.join('=').trim()
  if (value === '') return refused(refusals.acceptQWithoutValue)
  return /^\d+(\.\d*)?$/.test(value) ? accepted(Number(value)) : refused(refusals.acceptQNotNumber)
}
