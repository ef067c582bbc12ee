// One request in progress, for the code that counts and logs: its correlator, and facts that are noted on the way and
// reported with the answer.
//
// The head of a request is gone when `onRequest` returns. Values that a log line or an alarm needs are read before
// that, and only where they may be needed: reading two headers costs as much as all the rest of this.
//
// Not here: the counting and logging itself (observe/traffic-watcher.ts).

import type { WantedAttribute } from '../domain/entities/entity.js'
import type { Registration } from '../domain/providers/registration.js'
import type { Refusal } from '../domain/refusal.js'
import type { Subscription } from '../domain/subscriptions/subscription.js'
import type { DeprecatedFeature } from '../messages/admin.js'
import type { AnsweredRequest, AuditTrail, Chance, Clock, RequestWatch } from '../ports.js'
import { type AnswerBody, type Exchange, lengthOf } from './front.js'
import { RequestAudit } from './request-audit.js'

export interface CallWatch {
  readonly watch: RequestWatch
  readonly clock: Pick<Clock, 'monoMs'>
  /** undefined: there is no audit log. */
  readonly audit?: AuditTrail | undefined
}

/** The header is not trusted: a longer value is not an address. */
const fromLengthMax = 200

export class Call implements AnsweredRequest {
  route = ''
  status = 0
  refusal: Refusal | undefined
  requestBytes = 0
  responseBytes = 0
  durationMs = 0
  payload: Buffer | undefined
  /** undefined: there is no audit log. */
  readonly audit: RequestAudit | undefined
  private readonly startedMs: number
  /** The client's address from a proxy's header; undefined: not read yet. */
  private forwarded: string | undefined
  /** The address of the connection; undefined: not read yet. */
  private connected: string | undefined
  private hasHead = true
  private isEnded = false

  constructor(
    private readonly exchange: Exchange,
    readonly correlator: string,
    readonly tenant: string,
    readonly paths: string,
    private readonly watching: CallWatch,
  ) {
    this.startedMs = watching.clock.monoMs()
    this.audit = watching.audit && new RequestAudit(watching.audit)
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
    return this.forwarded || this.connection()
  }

  /** The address of the connection, if a header has named another one. */
  peer(): string | undefined {
    this.noteOrigin()
    return this.forwarded ? this.connection() : undefined
  }

  private connection(): string {
    return this.connected ?? this.exchange.clientAddress()
  }

  /** Reads the client's address from a proxy's header, while the head is still available. */
  noteOrigin(): void {
    if (this.forwarded !== undefined || !this.hasHead) return
    const client = this.exchange.header('x-real-ip') || this.exchange.header('x-forwarded-for')
    this.forwarded = client.slice(0, fromLengthMax)
  }

  routed(route: string, contentType: string, hasBody: boolean): void {
    const { watch } = this.watching
    this.route = route
    watch.onRouted(route, this.method, !hasBody ? 'none' : contentType === 'text/plain' ? 'text' : 'json')
    if (hasBody || watch.wantsOrigin) this.noteOrigin()
  }

  leaveHead(): void {
    // The client of a request that is answered later may be gone by then, and with it the address of its connection.
    if (this.audit?.mayBeLogged && !this.isEnded) {
      this.noteOrigin()
      this.connected = this.exchange.clientAddress()
    }
    this.hasHead = false
  }

  onBody(body: Uint8Array): void {
    this.requestBytes = body.length
    const { payloadBytes } = this.watching.watch
    if (payloadBytes > 0) this.payload = Buffer.from(body.subarray(0, payloadBytes))
  }

  deprecated(feature: DeprecatedFeature, usage: string): void {
    const { correlator, tenant, paths } = this
    this.watching.watch.onDeprecated(feature, usage, { correlator, tenant, path: paths, from: this.from() })
  }

  /** Runs `parse`, and reports its duration if that is wanted. */
  timed<T>(parse: () => T): T {
    const { watch, clock } = this.watching
    if (!watch.isTimed) return parse()
    const startedMs = clock.monoMs()
    const parsed = parse()
    watch.onParsed(clock.monoMs() - startedMs)
    return parsed
  }

  end(status: number, body: AnswerBody | undefined, refusal: Refusal | undefined): void {
    if (this.isEnded) return
    this.isEnded = true
    this.status = status
    this.refusal = refusal
    this.responseBytes = body === undefined ? 0 : lengthOf(body)
    this.durationMs = this.watching.clock.monoMs() - this.startedMs
    this.watching.watch.onAnswered(this)
    const { audit } = this
    if (audit?.isLogged(status)) this.addTo(audit, status)
  }

  private addTo(audit: RequestAudit, status: number): void {
    const { exchange, correlator, tenant, paths: servicePath } = this
    const { method, path, query } = exchange
    const address = this.from()
    audit.add({ address, peer: this.peer(), method, path, query, tenant, servicePath, status, correlator })
  }
}

const countMax = 2 ** 48

// [hot] Formatting all twelve digits for every request took 1 % of a create.
const lastDigits = Array.from({ length: 4096 }, (_, n) => n.toString(16).padStart(3, '0'))

/**
 * Correlators for requests that bring none: UUIDs (docs/interface/requests.md#correlator). A correlator has to be
 * unique, not secret. So one random UUID is drawn, and the last twelve digits count up from it: a fresh random UUID for
 * every request was 5 % of all garbage of a write.
 */
export class Correlators {
  private readonly start: string
  private count: number
  /** The start of the UUID without the last three digits, cached for the count without them (`headOf`). */
  private head = ''
  private headOf = -1

  constructor(chance: Pick<Chance, 'uuid'>) {
    const uuid = chance.uuid()
    this.start = uuid.slice(0, -12)
    this.count = Number.parseInt(uuid.slice(-12), 16)
  }

  /** A UUID that no other process and no earlier request has. */
  next(): string {
    this.count = (this.count + 1) % countMax
    const last = this.count % lastDigits.length
    const others = (this.count - last) / lastDigits.length
    if (others !== this.headOf) {
      this.headOf = others
      this.head = this.start + others.toString(16).padStart(9, '0')
    }
    return this.head + lastDigits[last]
  }
}

const letterG = 0x67
const oldLocation = /^geo:(point|line|box|polygon)$/

// [hot] Checks one character of each attribute's type first.
/** Reports locations in the deprecated forms before GeoJSON (docs/interface/administration.md#deprecated-usages). */
export function noteOldLocations(
  attributes: Iterable<readonly [name: string, attribute: WantedAttribute]>,
  call: Call | undefined,
): void {
  if (!call) return
  for (const [name, { type }] of attributes)
    if (type.charCodeAt(0) === letterG && oldLocation.test(type))
      call.deprecated(
        'geoFormat',
        `${type} detected in attribute ${name} at entity update, please use geo:json instead`,
      )
}

export function noteLegacyFormat(
  { notification }: Pick<Subscription, 'notification'>,
  when: 'creation' | 'retrieval',
  id: string,
  call: Call | undefined,
): void {
  if (notification.attrsFormat === 'legacy')
    call?.deprecated('ngsiv1NotifFormat', `notification legacy format at subscription ${when} (subId: ${id})`)
}

/** Reports a registration whose provider uses the interface's first version; `when` names the operation. */
export function noteLegacyForwarding(
  { provider }: Pick<Registration, 'provider'>,
  when: 'creation' | 'retrieval',
  id: string,
  call: Call | undefined,
): void {
  if (provider.legacyForwarding)
    call?.deprecated('ngsiv1Forwarding', `NGSIv1 forwarding at registration ${when} (regId: ${id})`)
}
