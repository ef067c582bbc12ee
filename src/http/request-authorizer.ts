// The one decision point about a request: who asks, and whether the rules allow it (docs/interface/access.md).
//
//   head -> route -> what it needs -> who asks -> the grant for each action, in the tenant and paths of the request
//
// A request is decided before its body is read, unless a token has to be verified first: then the body is kept until
// the client is identified (held-bodies.ts). For some actions (`narrowable`) a grant may cover a part of the request
// only: later code applies its condition. For the others it has to cover everything.
//
// Not here: proofs (access/), what each route needs (domain/access/route-needs.ts).

import type { AccessAction } from '../domain/access/access-rule.js'
import { type AllowedGrant, type RequestPlace, refuseAction } from '../domain/access/grant.js'
import { actionsOf, type RequestNeed, type RuleNeed } from '../domain/access/route-needs.js'
import { accepted, type Refusal, type Result, refusals, refused } from '../domain/refusal.js'
import { allPaths } from '../domain/scope.js'
import type { AccessGuard, Asker, AskerResult, Permit } from './access-guard.js'
import type { BodyHandler, Exchange } from './front.js'
import { HeldBodies, HeldBody } from './held-bodies.js'
import { type DecidedPermit, LatestPermits } from './latest-permits.js'
import type { Reply } from './reply.js'
import { type Request, tenantOf } from './request.js'
import { streamScope } from './stream-scope.js'

/** A request whose head has passed its checks. */
export interface CandidateRequest {
  readonly exchange: Exchange
  readonly request: Request
  readonly reply: Reply
  readonly need: RequestNeed
  /** Whether a body follows that the handler wants. */
  readonly awaitsBody: boolean
}

export class RequestAuthorizer {
  private readonly bodies = new HeldBodies()
  private readonly latest = new LatestPermits()

  constructor(readonly access: AccessGuard) {}

  /**
   * Calls `serve` once it is known that the request is allowed, or refuses it. Returns the receiver of its body;
   * undefined: it is answered without one.
   */
  admit(
    candidate: CandidateRequest,
    serve: (permit: Permit | undefined) => BodyHandler | undefined,
  ): BodyHandler | undefined {
    if (candidate.need === 'nothing') return serve(undefined)
    const { exchange } = candidate
    let body: HeldBody | undefined
    const now = this.access.identify(exchange, exchange.certificate, later => {
      if (body && !body.isRefused) body.give(this.serveOrRefuse(candidate, later, serve))
    })
    if (now) return this.serveOrRefuse(candidate, now, serve)
    body = new HeldBody(this.bodies, () => {
      this.access.onBusy()
      candidate.reply.refuse(refusals.verificationsTooMany)
    })
    return body.handlerNow(candidate.awaitsBody)
  }

  private serveOrRefuse(
    candidate: CandidateRequest,
    identification: AskerResult,
    serve: (permit: Permit | undefined) => BodyHandler | undefined,
  ): BodyHandler | undefined {
    const permit = this.permitOrRefuse(candidate, identification)
    return permit && serve(permit)
  }

  /**
   * The permit of a request on a connection whose client was identified earlier: by its rules of now. undefined: the
   * request was refused.
   */
  admitInner(request: Request, reply: Reply, need: RequestNeed, asker: Asker | undefined): Permit | undefined {
    if (asker) reply.call?.audit?.identified(asker.source)
    const now = asker?.now()
    const permit = now ? this.permitOf(request, need, now) : refused(refusals.proofExpired)
    if (permit.ok) return permit.value
    reply.refuse(permit.refusal)
    return undefined
  }

  private permitOrRefuse({ request, reply, need }: CandidateRequest, identification: AskerResult): Permit | undefined {
    const audit = reply.call?.audit
    if (!identification.ok) {
      audit?.unidentified(identification.shown)
      reply.refuseUnidentified(identification.refusal, identification.challenge)
      return undefined
    }
    audit?.identified(identification.asker.source)
    const permit = this.permitOf(request, need, identification.asker)
    if (permit.ok) return permit.value
    reply.refuse(permit.refusal)
    return undefined
  }

  private permitOf(request: Request, need: RequestNeed, asker: Asker): Result<Permit> {
    const decided = this.latest.of(asker, request, need) ?? this.decide(request, need, asker)
    if (!decided.ok) return decided
    const { permit, tenant } = decided.value
    // A request that the rules refuse takes nothing from the rate of its tenant: other principals need it.
    const refusal = tenant === undefined ? undefined : this.access.refusalByRate(tenant)
    return refusal ? refused(refusal) : accepted(permit)
  }

  private decide(request: Request, need: RequestNeed, asker: Asker): Result<DecidedPermit> {
    const onForbidden = (): void => this.access.onForbidden()
    const grants = typeof need === 'string' ? accepted({}) : grantsFor(request, need, asker)
    if (!grants.ok) {
      if (grants.refusal.kind === 'Forbidden') onForbidden()
      return grants
    }
    const isWhole = typeof need !== 'string' && areAllWhole(actionsMeant(request, need), grants.value)
    const permit = { asker, grants: grants.value, isWhole, onForbidden }
    const decided = { permit, tenant: tenantPaced(request, need) }
    this.latest.set(request, need, decided)
    return accepted(decided)
  }
}

/** The tenant whose rate a request is counted in; undefined: it is counted in none. */
function tenantPaced(request: Request, need: RequestNeed): string | undefined {
  if (typeof need === 'string' || need.about === 'broker') return undefined
  const tenant = tenantMeant(request)
  return tenant.ok ? tenant.value : undefined
}

/** The tenant that a request is about. A stream may name it in its parameters. */
function tenantMeant(request: Request): Result<string> {
  if (!request.streamHead) return tenantOf(request)
  const scope = streamScope(request)
  return scope.ok ? accepted(scope.value.tenant) : scope
}

/** The grants that a request needs, or its refusal. Of a batch, the body decides which of them have to be there. */
function grantsFor(request: Request, need: RuleNeed, asker: Asker): Result<Permit['grants']> {
  if (need.about === 'broker') {
    const missing = need.actions.find(action => !asker.mayDoToBroker(action))
    return missing ? refused(refusals.brokerNotAllowed(missing)) : accepted({})
  }
  const grants: Partial<Record<AccessAction, AllowedGrant>> = {}
  let refusal: Refusal | undefined
  for (const action of actionsMeant(request, need)) {
    const place = placeOf(request, need.about, action)
    if (!place.ok) return place
    const grant = asker.grant(action, place.value.tenant, place.value.paths)
    if (grant.kind === 'all' || (grant.kind === 'narrowed' && isNarrowable(action, request))) grants[action] = grant
    else refusal ??= refuseAction(action, place.value)
  }
  const isEnough = need.note === undefined ? refusal === undefined : Object.keys(grants).length > 0
  return refusal && !isEnough ? refused(refusal) : accepted(grants)
}

const actionsMeant = (request: Request, need: RuleNeed): readonly AccessAction[] =>
  actionsOf(need, request.parameters.options.has('upsert'))

const areAllWhole = (actions: readonly AccessAction[], grants: Permit['grants']): boolean =>
  actions.every(action => grants[action]?.kind === 'all')

/** The actions whose conditions are applied further on. */
const narrowable: ReadonlySet<AccessAction> = new Set([
  'read',
  'create',
  'update',
  'delete',
  'notify',
  'subscribe',
  'register',
])

/** Of the paths with streams only the live feed is narrowed. */
const isNarrowable = (action: AccessAction, { streamHead }: Request): boolean =>
  narrowable.has(action) || (action === 'stream' && streamHead !== undefined)

/** The refusal of an asker that may not do something to everything in a place; undefined: it may. */
export const refuseNarrowed = (asker: Asker, action: AccessAction, place: RequestPlace): Refusal | undefined =>
  asker.grant(action, place.tenant, place.paths).kind === 'all' ? undefined : refuseAction(action, place)

/**
 * What a request is about. Of subscriptions and registrations it is the first path: that of the document, or the one
 * that lists filter by.
 */
function placeOf(request: Request, about: 'reading' | 'writing', action: AccessAction): Result<RequestPlace> {
  if (action === 'stream' && request.streamHead) return placeOfStream(request)
  const tenant = tenantOf(request)
  if (!tenant.ok) return tenant
  const named = request.paths.length > 0 ? request.paths : about === 'writing' ? rootPath : allPaths
  return accepted({ tenant: tenant.value, paths: pathsMeant(action, named) })
}

/** Of the paths that a request names, those that an action is about. */
function pathsMeant(action: AccessAction, named: readonly string[]): readonly string[] {
  switch (action) {
    case 'subscribe':
    case 'register':
      return named.slice(0, 1)
    case 'stream':
      return allPaths
    default:
      return named
  }
}

const rootPath: readonly string[] = ['/']

function placeOfStream(request: Request): Result<RequestPlace> {
  const scope = streamScope(request)
  return scope.ok ? accepted({ tenant: scope.value.tenant, paths: [scope.value.servicePath] }) : scope
}
