// At which port a path is served when operators have one of their own (`-adminPort`,
// docs/interface/administration.md#the-port-for-operators). At the other port the path is a 404.
//
// The table has a row for each path of the broker: a path without one does not compile.
//
// Not here: the handlers of the paths (routes.ts), what rules have to allow (domain/access/route-needs.ts).

import type { RouteTemplate } from '../domain/access/route-needs.js'

/** A port with paths: `main` for clients, `admin` for operators; `only`: there is one port for both. */
export type PortRole = 'only' | 'main' | 'admin'

export const portOfRoute = {
  '/': 'main',
  '/v2': 'main',
  '/version': 'both',
  '/health/live': 'both',
  '/health/startup': 'both',
  '/health/ready': 'both',
  // The page uses the interface below /v2 of its own port.
  '/console': 'main',
  '/console/tiles/{file}': 'main',
  '/console/{build}/{file}': 'main',
  '/console/{build}/{folder}/{file}': 'main',
  '/v2/entities': 'main',
  '/v2/entities/{id}': 'main',
  '/v2/entities/{id}/attrs': 'main',
  '/v2/entities/{id}/attrs/{name}': 'main',
  '/v2/entities/{id}/attrs/{name}/value': 'main',
  '/v2/op/query': 'main',
  '/v2/op/update': 'main',
  '/v2/op/notify': 'main',
  '/v2/types': 'main',
  '/v2/types/{type}': 'main',
  '/v2/subscriptions': 'main',
  '/v2/subscriptions/{id}': 'main',
  '/v2/subscriptions/{id}/deliveries': 'main',
  '/v2/subscriptions/{id}/deliveries/retry': 'main',
  '/v2/registrations': 'main',
  '/v2/registrations/{id}': 'main',
  '/v2/access': 'main',
  '/v2/stream': 'main',
  '/eventsource': 'main',
  '/eventsource/{id}': 'main',
  '/callbacks': 'main',
  '/callbacks/{id}': 'main',
  '/metrics': 'both',
  '/statistics': 'admin',
  '/cache/statistics': 'admin',
  '/admin/log': 'admin',
  '/admin/settings': 'admin',
  '/log/trace': 'admin',
  '/log/trace/{levels}': 'admin',
  '/admin/backup': 'admin',
  '/admin/tenants': 'admin',
  '/admin/tenants/{name}': 'admin',
  '/admin/sem': 'admin',
  '/admin/metrics': 'admin',
  '/cluster': 'admin',
  '/cluster/drain': 'admin',
} as const satisfies Readonly<Record<RouteTemplate, 'main' | 'admin' | 'both'>>

/** Recognizes the paths that are served at the other port alone. */
export function elsewhereOf(port: PortRole): (components: readonly string[]) => boolean {
  const patterns = (Object.keys(portOfRoute) as RouteTemplate[])
    .filter(template => !isServedAt(port, template))
    .map(template => template.slice(1).split('/'))
  return components => patterns.some(pattern => pattern.length === components.length && matches(pattern, components))
}

/** Whether a path has a pattern of as many components. A component in braces matches any one, also an empty one. */
export function matches(pattern: readonly string[], components: readonly string[]): boolean {
  for (const [index, component] of pattern.entries())
    if (component !== components[index] && !component.startsWith('{')) return false
  return true
}

export function isServedAt(port: PortRole, template: RouteTemplate): boolean {
  const served = portOfRoute[template]
  return port === 'only' || served === 'both' || served === port
}
