// The latest permit of each asker. [hot] Most clients send the same kind of request about the same tenant and paths again
// and again; then the decision is a lookup of 100 ns.
//
// An asker is one object under one access file, so a permit is never older than the rules. One permit for each asker is
// kept, as long as the asker itself is.
//
// Not here: the decision (request-authorizer.ts). What does not depend on the rules alone, as the rate of a tenant, is no
// part of a permit.

import type { RequestNeed } from '../domain/access/route-needs.js'
import type { Result } from '../domain/refusal.js'
import type { Asker, Permit } from './access-guard.js'
import type { Request } from './request.js'

/** The decision about a request that the rules allow. */
export type PermitDecision = Extract<Result<Permit>, { readonly ok: true }>

interface LatestPermit {
  readonly need: RequestNeed
  readonly tenantHeader: string
  readonly paths: readonly string[]
  readonly isUpsert: boolean
  readonly permit: PermitDecision
}

export class LatestPermits {
  private readonly ofAskers = new WeakMap<Asker, LatestPermit>()

  /** The permit for a request of the same kind, tenant and paths; undefined: the latest one was for another. */
  of(asker: Asker, request: Request, need: RequestNeed): PermitDecision | undefined {
    const latest = this.ofAskers.get(asker)
    return latest?.need === need && isAlike(latest, request) ? latest.permit : undefined
  }

  /** A stream may name its tenant and path elsewhere. */
  set(request: Request, need: RequestNeed, permit: PermitDecision): void {
    if (request.streamHead) return
    const { tenantHeader, paths } = request
    this.ofAskers.set(permit.value.asker, { need, tenantHeader, paths, isUpsert: isUpsert(request), permit })
  }
}

function isAlike(latest: LatestPermit, request: Request): boolean {
  const { paths } = request
  if (request.streamHead || latest.tenantHeader !== request.tenantHeader || latest.isUpsert !== isUpsert(request))
    return false
  return (
    latest.paths === paths ||
    (latest.paths.length === paths.length && latest.paths.every((path, at) => path === paths[at]))
  )
}

const isUpsert = ({ parameters }: Request): boolean => parameters.options.has('upsert')
