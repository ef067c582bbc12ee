// The tenant and the path of a stream (docs/interface/live.md#request).

import { accepted, type Result, refusals, refused } from '../domain/refusal.js'
import { parseServicePaths, parseTenant } from '../domain/scope.js'
import type { WatchScope } from '../domain/streams/watch-parser.js'
import { watchedPath } from '../domain/subscriptions/subscription.js'
import { type Request, tenantOf } from './request.js'

/** The tenant and the path, of headers or of parameters: a browser cannot set headers. */
export function streamScope(request: Request): Result<WatchScope> {
  const tenant = tenantOfParameter(request)
  if (!tenant.ok) return tenant
  const path = pathOfParameter(request)
  return path.ok ? accepted({ tenant: tenant.value, servicePath: path.value }) : path
}

function tenantOfParameter(request: Request): Result<string> {
  const named = request.parameters.values.get('tenant')
  if (named === undefined) return tenantOf(request)
  const tenant = parseTenant(named)
  if (!tenant.ok) return tenant
  if (request.tenantHeader !== '' && request.tenantHeader.toLowerCase() !== tenant.value)
    return refused(refusals.streamScope('tenant', 'Ctx-Service'))
  return request.tenants ? tenant : accepted('')
}

function pathOfParameter(request: Request): Result<string> {
  const named = request.parameters.values.get('path')
  if (named === undefined) return watchedPath(request.paths)
  const paths = parseServicePaths(named)
  if (!paths.ok) return paths
  if (request.paths.length > 0 && request.paths.join() !== paths.value.join())
    return refused(refusals.streamScope('path', 'Ctx-ServicePath'))
  return watchedPath(paths.value)
}
