// Gets a report of every request and of each try to send, and passes it on to counters, alarms and the log.
//
// [hot] Once per request and once per try: nothing is made here that is not needed. A line of a request shows the
// beginning of its body, but never a value whose name marks it as a secret.
//
// Not here: the lines of notifications, which the notifier writes.

import { type RefusalKind, refusalText } from '../domain/refusal.js'
import { hasHiddenName, withoutSecretMembers } from '../domain/subscriptions/secrets.js'
import type { DeprecatedFeature, LogSettings } from '../messages/admin.js'
import type { AnsweredRequest, EndedTry, LogContext, Logger, RequestWatch, SendWatch } from '../ports.js'
import type { AlarmKind, Alarms, Summary } from './alarms.js'
import type { ForwardingTallies, TenantTallies } from './label-tallies.js'
import type { RegistrationTallies } from './registration-tallies.js'
import type { RequestTallies } from './request-tallies.js'
import type { ServiceTallies } from './service-metrics.js'
import type { StatisticsBook } from './statistics.js'

export interface WatcherParts {
  readonly logger: Logger
  readonly log: Readonly<LogSettings>
  readonly requests: RequestTallies
  /** Requests by tenant; undefined as `services`. */
  readonly tenants: TenantTallies | undefined
  readonly forwarding: ForwardingTallies
  readonly registrations: RegistrationTallies
  readonly statistics: StatisticsBook
  /** undefined: nothing is counted by tenant (`-disableMetrics`). */
  readonly services: ServiceTallies | undefined
  readonly alarms: Alarms
  readonly summary: Summary
}

/** Trace levels of our lines at DEBUG (docs/operations/logs.md). */
const traced = { request: 20 } as const

/** Refusals for the content of a request, before its operation was reached. */
const badInput: ReadonlySet<RefusalKind> = new Set([
  'ParseError',
  'BadRequest',
  'MethodNotAlowed',
  'NotAcceptable',
  'ContentLengthRequired',
  'RequestEntityTooLarge',
  'UnsupportedMediaType',
])

const alarmOf = {
  notification: 'NotificationError',
  mqttNotification: 'MqttConnectionError',
  forward: 'ForwardingError',
} as const satisfies Record<EndedTry['what'], AlarmKind>

export class TrafficWatcher implements RequestWatch, SendWatch {
  readonly isTimed: boolean

  constructor(private readonly parts: WatcherParts) {
    this.isTimed = parts.statistics.blocks.timing
  }

  get wantsOrigin(): boolean {
    return this.isLogged || this.parts.alarms.isActive('BadInput')
  }

  get payloadBytes(): number {
    // One more than is shown, to know whether there is more.
    return this.isLogged ? this.parts.log.infoPayloadBytesMax + 1 : 0
  }

  /** Whether there is a line for each request. */
  private get isLogged(): boolean {
    const { level } = this.parts.log
    return level === 'INFO' || level === 'DEBUG'
  }

  onRouted(route: string, method: string, payload: 'json' | 'text' | 'none'): void {
    this.parts.statistics.onRouted(route, method, payload)
  }

  // [hot] Once per request.
  onAnswered(request: AnsweredRequest): void {
    const { requests, tenants, services, statistics, summary, alarms } = this.parts
    requests.onAnswered(request)
    tenants?.onAnswered(request)
    services?.onAnswered(request)
    statistics.onAnswered(request)
    summary.transactions++
    const { refusal } = request
    const isBad = refusal && badInput.has(refusal.kind)
    if (!this.isLogged && !isBad && !alarms.isActive('BadInput')) return
    const context = contextOf(request)
    if (this.isLogged) this.logRequest(request, context)
    if (isBad) alarms.raise('BadInput', request.from(), refusalText(refusal), context)
    else alarms.release('BadInput', request.from(), context)
  }

  onParsed(ms: number): void {
    this.parts.statistics.onParsed(ms)
  }

  // [hot] Once per try.
  onEnded(ended: EndedTry): void {
    const { services, forwarding, registrations, summary, alarms } = this.parts
    services?.onEnded(ended)
    forwarding.onEnded(ended)
    registrations.onEnded(ended)
    summary.transactions++
    const kind = alarmOf[ended.what]
    if (ended.failure !== undefined) alarms.raise(kind, ended.receiver, ended.failure)
    else if (alarms.isActive(kind)) alarms.release(kind, ended.receiver)
  }

  onDeprecated(feature: DeprecatedFeature, usage: string, context: LogContext): void {
    this.parts.statistics.onDeprecated(feature)
    if (this.parts.log.deprecate) this.parts.logger.warn(`Deprecated usage of ${usage}`, context)
  }

  private logRequest(request: AnsweredRequest, context: LogContext): void {
    const { logger, log } = this.parts
    const { method, url, status, requestBytes, payload } = request
    const hasBody = payload && requestBytes > 0 && method !== 'GET' && method !== 'DELETE'
    const body = hasBody ? `, request ${this.shownPayload(request, payload)}` : ''
    logger.info(`Request received: ${method} ${url}${body}, response code: ${status}`, context)
    if (log.level !== 'DEBUG' || !log.traces.has(traced.request)) return
    const { durationMs, responseBytes, route } = request
    logger.debug(
      `${method} ${route || 'no route'}: ${durationMs.toFixed(3)} ms, ${responseBytes} bytes answered`,
      context,
    )
  }

  private shownPayload({ requestBytes, route }: AnsweredRequest, payload: Buffer): string {
    const bytesMax = this.parts.log.infoPayloadBytesMax
    const text = shownText(payload.toString('utf8', 0, bytesMax), route)
    return `payload (${requestBytes} bytes): ${text}${requestBytes > bytesMax ? '(...)' : ''}`
  }
}

const contextOf = (request: AnsweredRequest): LogContext => ({
  correlator: request.correlator,
  from: request.from(),
  tenant: request.tenant,
  path: request.paths,
})

/** A body, perhaps cut, without values that are secret by their names (domain/subscriptions/secrets.ts). */
function shownText(text: string, route: string): string {
  const isDocument = route.startsWith('/v2/subscriptions') || route.startsWith('/v2/registrations')
  return isDocument && hasHiddenName(text) ? '(not shown)' : withoutSecretMembers(text)
}
