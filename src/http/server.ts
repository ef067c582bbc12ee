// Passes an exchange of the front to its handler: head, route, body (docs/interface/requests.md#order-of-checks).
// Failures end here, are logged once, and become a 500.
//
// [hot] Reporting a request to the counters costs 0.2 to 0.3 us (bench/watch.ts).

import type { Payload } from '../domain/entities/entity.js'
import { isLooped } from '../domain/providers/registration.js'
import { type Refusal, type Result, refusals } from '../domain/refusal.js'
import type { Chance, Logger } from '../ports.js'
import type { Asker } from './access-guard.js'
import { BodyTurns, parseJsonInTurns, sharedFrom } from './body.js'
import { type CallWatch, Correlators } from './call.js'
import { type BodyHandler, chunksMax, type Excess, type Exchange, type FrontHandler } from './front.js'
import type { InnerRequests } from './inner-requests.js'
import { hasCors, type Reply } from './reply.js'
import { type HttpSettings, isLargeJson, type Request, readHead, readVendor, type Vendor } from './request.js'
import { RequestAuthorizer } from './request-authorizer.js'
import { needOf, type Route, type Router, type WithBody } from './routes.js'
import { parsePath } from './url.js'

const noBytes = new Uint8Array()

const chunksTooMany = (bodyBytesMax: number): Refusal => {
  const countMax = chunksMax(bodyBytesMax)
  return refusals.tooMany('chunks', countMax + 1, countMax)
}

/** Refuses a request that would change something while the audit log cannot be written; false: it may be carried out. */
function isUnaudited(reply: Reply): boolean {
  if (!reply.call?.audit?.mustBeRefused()) return false
  reply.refuse(refusals.auditUnwritable)
  return true
}

export class Server implements FrontHandler, InnerRequests {
  private readonly correlators: Correlators
  private readonly watching: CallWatch | undefined
  private readonly turns: BodyTurns
  /** undefined: there is no access control. */
  private readonly authorizer: RequestAuthorizer | undefined

  /** `watching`: the receiver of a report on each request; undefined: none. */
  constructor(
    private readonly route: Router,
    private readonly settings: HttpSettings,
    chance: Chance,
    private readonly logger: Logger,
    watching?: CallWatch,
  ) {
    this.correlators = new Correlators(chance)
    this.watching = watching
    this.authorizer = settings.access && new RequestAuthorizer(settings.access)
    this.turns = new BodyTurns(watching?.clock ?? { monoMs: () => performance.now() })
  }

  // [hot] Once per request.
  onRequest(exchange: Exchange): BodyHandler | undefined {
    const vendor = readVendor(exchange, this.correlators, this.settings, this.watching)
    const { reply } = vendor
    try {
      return this.serve(exchange, vendor)
    } catch (error) {
      this.fail(reply, error as Error)
      return undefined
    } finally {
      reply.call?.leaveHead()
    }
  }

  /** Serves a write whose body is parsed already, as if it had come with a front. `asker`: as it was identified. */
  serveParsed(exchange: Exchange, payload: Result<Payload>, asker: Asker | undefined): void {
    const vendor = readVendor(exchange, this.correlators, this.settings, this.watching)
    const { reply } = vendor
    try {
      const head = readHead(exchange, vendor, this.settings)
      if (!head.ok) return reply.refuse(head.refusal)
      const request = head.value
      const route = this.route(request.components)
      const write = route?.write.get(request.method)
      if (!route || !write) return this.refusePath(request, reply)
      const need = needOf(route, request.method)
      reply.call?.routed(route.template, request.contentType, request.hasBody)
      const audit = reply.call?.audit
      if (audit) audit.isMessage = true
      audit?.routed(route.template, need, request.method, request.components)
      if (this.authorizer) {
        const permit = this.authorizer.admitInner(request, reply, need, asker)
        if (!permit) return
        request.permit = permit
      }
      request.parsed = payload
      if (!isUnaudited(reply)) write(request, reply, noBytes)
    } catch (error) {
      this.fail(reply, error as Error)
    } finally {
      reply.call?.leaveHead()
    }
  }

  private serve(exchange: Exchange, vendor: Vendor): BodyHandler | undefined {
    const { reply } = vendor
    const { call } = reply
    const head = readHead(exchange, vendor, this.settings)
    if (!head.ok) {
      this.refuseHead(exchange, reply, head.refusal)
      return undefined
    }
    const request = head.value
    if (isLooped(reply.correlator))
      this.logger.warn('A request goes in a circle: it is neither forwarded nor notified of', {
        correlator: reply.correlator,
      })
    const route = this.route(request.components)
    if (route) {
      const { method, components } = request
      call?.routed(route.template, request.contentType, request.hasBody)
      call?.audit?.routed(route.template, needOf(route, method), method, components)
    }
    return this.authorizer
      ? this.admit(this.authorizer, exchange, route, request, reply)
      : this.handle(route, request, reply)
  }

  /** Handles the request once it is known that it is allowed. */
  private admit(
    authorizer: RequestAuthorizer,
    exchange: Exchange,
    route: Route | undefined,
    request: Request,
    reply: Reply,
  ): BodyHandler | undefined {
    const audit = reply.call?.audit
    if (audit) audit.isGuarded = true
    const isPreflight = request.method === 'OPTIONS' && this.settings.cors !== undefined
    const need = isPreflight ? 'nothing' : route ? needOf(route, request.method) : 'principal'
    const awaitsBody = route?.write.has(request.method) ?? false
    return authorizer.admit({ exchange, request, reply, need, awaitsBody }, permit => {
      if (permit) request.permit = permit
      try {
        return this.handle(route, request, reply)
      } catch (error) {
        this.fail(reply, error as Error)
        return undefined
      }
    })
  }

  private handle(route: Route | undefined, request: Request, reply: Reply): BodyHandler | undefined {
    if (!route) {
      this.refusePath(request, reply)
      return undefined
    }
    if (route.isCompressed) reply.compressor = this.settings.compression?.compressor
    const write = route.write.get(request.method)
    if (write) return (body, excess) => this.onBody(write, request, reply, body, excess)
    const read = route.read.get(request.method)
    if (!read) this.otherMethod(request.method, route, reply)
    else if (!isUnaudited(reply)) read(request, reply, this)
    return undefined
  }

  private refusePath({ components }: Request, reply: Reply): void {
    reply.refuse(this.settings.isElsewhere?.(components) ? refusals.pathElsewhere : refusals.unknownPath)
  }

  private onBody(write: WithBody, request: Request, reply: Reply, body: Uint8Array, excess?: Excess): void {
    const { coding, hasBody, bodyBytesMax } = request
    const { compression } = this.settings
    if (excess) reply.refuse(excess === 'bytes' ? refusals.payloadBeyond(bodyBytesMax) : chunksTooMany(bodyBytesMax))
    else if (hasBody && body.length === 0) reply.refuse(refusals.lengthRequired)
    else if (!coding || !compression) this.onPlainBody(write, request, reply, body)
    else
      compression.inflater.inflate(body, coding, bodyBytesMax, inflated => {
        if (inflated.ok) this.onPlainBody(write, request, reply, inflated.value)
        else reply.refuse(inflated.refusal)
      })
  }

  private onPlainBody(write: WithBody, request: Request, reply: Reply, body: Uint8Array): void {
    reply.call?.onBody(body)
    if (isLargeJson(request, body)) this.writeLater(write, request, reply, body)
    else if (body.length < sharedFrom) this.write(write, request, reply, body)
    else this.turns.take(body, bytes => this.write(write, request, reply, bytes))
  }

  private write(write: WithBody, request: Request, reply: Reply, body: Uint8Array): void {
    try {
      if (!isUnaudited(reply)) write(request, reply, body)
    } catch (error) {
      this.fail(reply, error as Error)
    }
  }

  /** A large body is parsed before the handler runs. */
  private writeLater(write: WithBody, request: Request, reply: Reply, body: Uint8Array): void {
    parseJsonInTurns(body, request.bodyBytesMax, setImmediate, payload => {
      request.parsed = payload
      this.write(write, request, reply, noBytes)
    })
  }

  private otherMethod(method: string, { template, allow, refusals: form }: Route, reply: Reply): void {
    const cors = hasCors(template) ? this.settings.cors : undefined
    if (cors && method === 'OPTIONS') return reply.preflight(allow, cors)
    // `Allow` does not list it for /version, although it is served (docs/interface/requests.md#methods).
    reply.refuseMethod(cors && template !== '/version' ? `${allow}, OPTIONS` : allow, form === 'silent405')
  }

  private refuseHead(exchange: Exchange, reply: Reply, refusal: Refusal): void {
    const components = parsePath(exchange.path)
    const route = components.ok ? this.route(components.value) : undefined
    if (route && reply.call) {
      reply.call.route = route.template
      const path = components.ok ? components.value : []
      reply.call.audit?.routed(route.template, needOf(route, exchange.method), exchange.method, path)
    }
    if (route?.refusals === 'short' && refusal.kind === 'BadRequest') reply.refuseInShort(refusal)
    else reply.refuse(refusal)
  }

  /** A broken invariant or a failed read: this request ends, the others continue. */
  private fail(reply: Reply, error: Error): void {
    this.logger.error(`Runtime Error (${error.stack ?? error.message})`, { correlator: reply.correlator })
    reply.refuse(refusals.failure('internal error'))
  }
}
