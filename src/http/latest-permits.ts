// Remembers the latest permit of each asker. [hot] Most clients send the same kind of request about one tenant and path
// again and again. Then a lookup decides, in 100 ns.
//
// An asker is one object under one access file, so a permit is never older than the rules. An asker has one permit at
// most. It holds one service path, so ten thousand remembered tokens do not keep long headers in memory.
//
// Not here: the decision (request-authorizer.ts), and what depends on more than the rules, such as the rate of a tenant.

import type { RequestNeed } from '../domain/access/route-needs.js'
import type { Result } from '../domain/refusal.js'
import type { Asker, Permit } from './access-guard.js'
import type { Request } from './request.js'

/** A permit, with the tenant whose rate its requests use. */
export interface DecidedPermit {
  readonly permit: Permit
  /** undefined: they use no rate. */
  readonly tenant: string | undefined
}

type Allowed = Extract<Result<DecidedPermit>, { readonly ok: true }>

interface LatestPermit {
  readonly need: RequestNeed
  readonly tenantHeader: string
  /** undefined: the request named none. */
  readonly path: string | undefined
  readonly isUpsert: boolean
  readonly allowed: Allowed
}

export class LatestPermits {
  private readonly ofAskers = new WeakMap<Asker, LatestPermit>()

  /** The permit for a request of the same kind, tenant and path; undefined: the latest one was for another. */
  of(asker: Asker, request: Request, need: RequestNeed): Allowed | undefined {
    const latest = this.ofAskers.get(asker)
    return latest?.need === need && isAlike(latest, request) ? latest.allowed : undefined
  }

  set(request: Request, need: RequestNeed, decided: DecidedPermit): void {
    if (!isPlain(request)) return
    const { tenantHeader, paths } = request
    const kind = { need, tenantHeader, path: paths[0], isUpsert: isUpsert(request) }
    this.ofAskers.set(decided.permit.asker, { ...kind, allowed: { ok: true, value: decided } })
  }
}

const isAlike = (latest: LatestPermit, request: Request): boolean =>
  isPlain(request) &&
  latest.path === request.paths[0] &&
  latest.tenantHeader === request.tenantHeader &&
  latest.isUpsert === isUpsert(request)

/** Whether its headers name its tenant and one path at most. A stream may name them in its parameters. */
const isPlain = ({ streamHead, paths }: Request): boolean => streamHead === undefined && paths.length <= 1

const isUpsert = ({ parameters }: Request): boolean => parameters.options.has('upsert')
