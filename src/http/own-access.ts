// Handler of /v2/access: what the client that asks may do (docs/interface/access.md#what-a-client-may-do).
//
// The answer has what the client could find out with requests of its own, and nothing else: an action counts as it
// would for a request with the same headers. So a page can offer what its reader may do, and needs no trials.
//
// Not here: the grants (domain/access/grant.ts), whether a request is allowed (request-authorizer.ts).

import { type AccessAction, accessActions } from '../domain/access/access-rule.js'
import type { RequestPlace } from '../domain/access/grant.js'
import { withoutBelow } from '../domain/access/path-patterns.js'
import type { Asker, Permit } from './access-guard.js'
import type { Reply } from './reply.js'
import { type Request, readPaths, tenantOf } from './request.js'

/** How much of a place an action is allowed for. */
type Extent = 'all' | 'narrowed' | 'denied'

/** `servesOperators`: whether the paths for operators are at the port of the request. */
export function replyWithOwnAccess(request: Request, reply: Reply, servesOperators: boolean): void {
  const tenant = tenantOf(request)
  if (!tenant.ok) return reply.refuse(tenant.refusal)
  const { permit } = request
  const place = { tenant: tenant.value, paths: readPaths(request) }
  const extents = accessActions.map(action => [action, extentOf(action, place, permit, servesOperators)] as const)
  const named = (wanted: (extent: Extent) => boolean): AccessAction[] =>
    extents.flatMap(([action, extent]) => (wanted(extent) ? action : []))
  const answer = {
    ...(permit && { principal: principalOf(permit) }),
    tenant: place.tenant,
    servicePath: place.paths.join(','),
    allowed: named(extent => extent !== 'denied'),
    narrowed: named(extent => extent === 'narrowed'),
  }
  reply.json(JSON.stringify(answer))
}

function principalOf({ asker: { source } }: Permit): { readonly name: string; readonly proof: string } {
  const { name, proof } = source
  return { name, proof }
}

function extentOf(
  action: AccessAction,
  place: RequestPlace,
  permit: Permit | undefined,
  servesOperators: boolean,
): Extent {
  if (action === 'admin') return extentOfAdmin(place.tenant, permit?.asker, servesOperators)
  if (!permit) return 'all'
  const { asker } = permit
  if (action === 'metrics') return asker.mayDoToBroker(action) ? 'all' : 'denied'
  return asker.grant(action, place.tenant, pathsOf(action, place.paths)).kind
}

/** With `admin` in one tenant, or at a port without the paths for operators, documents of the tenant are what is left. */
function extentOfAdmin(tenant: string, asker: Asker | undefined, servesOperators: boolean): Extent {
  const ofBroker = !asker || asker.mayDoToBroker('admin')
  if (ofBroker && servesOperators) return 'all'
  return ofBroker || asker.isAdminOf(tenant) ? 'narrowed' : 'denied'
}

/** The paths of a request that an action is about: a write, a subscription and a registration are in one path. */
function pathsOf(action: AccessAction, paths: readonly string[]): readonly string[] {
  switch (action) {
    case 'create':
    case 'update':
    case 'delete':
    case 'notify':
      return paths.slice(0, 1).map(withoutBelow)
    case 'subscribe':
    case 'register':
      return paths.slice(0, 1)
    default:
      return paths
  }
}
