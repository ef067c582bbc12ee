// At which port a path is served when operators have one of their own (`-adminPort`,
// docs/interface/administration.md#the-port-for-operators). Elsewhere the path does not exist.
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
  '/v2/stream': 'main',
  '/eventsource': 'main',
  '/eventsource/{id}': 'main',
  '/callbacks': 'main',
  '/callbacks/{id}': 'main',
  '/metrics': 'both',
  '/statistics': 'admin',
  '/cache/statistics': 'admin',
  '/admin/log': 'admin',
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

export function isServedAt(port: PortRole, template: RouteTemplate): boolean {
  const served = portOfRoute[template]
  return port === 'only' || served === 'both' || served === port
}
