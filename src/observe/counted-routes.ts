// The names under which requests are counted for `GET /statistics` (operations.md §4.3): those of the reference, which tools look for.
//
// Not here: the counts (statistics.ts), our own routes (http/routes.ts).

import type { RequestCounts } from '../messages/admin.js'

/**
 * Routes and verbs that `options=fullCounters` shows whether or not they were used, as the reference names them (§4.3); tools look for them. Two of
 * our routes may share a name. `/exit` and `/leak` are there in the reference's debug builds only, and never here.
 */
export const shownRoutes: RequestCounts = zeros({
  '/v2': ['GET', 'OPTIONS'],
  '/v2/entities': ['POST', 'GET', 'OPTIONS'],
  '/v2/entities/{id}[/attrs]': ['GET', 'DELETE', 'POST', 'PUT', 'PATCH', 'OPTIONS'],
  '/v2/entities/{id}/attrs/{name}': ['GET', 'PUT', 'DELETE', 'OPTIONS'],
  '/v2/entities/{id}/attrs/{name}/value': ['GET', 'PUT', 'OPTIONS'],
  '/v2/types': ['GET', 'OPTIONS'],
  '/v2/types/{type}': ['GET', 'OPTIONS'],
  '/v2/subscriptions': ['POST', 'GET', 'OPTIONS'],
  '/v2/subscriptions/{id}': ['GET', 'DELETE', 'PATCH', 'OPTIONS'],
  '/v2/registrations': ['POST', 'GET', 'OPTIONS'],
  '/v2/registrations/{id}': ['GET', 'DELETE', 'PATCH', 'OPTIONS'],
  '/v2/op/query': ['POST', 'OPTIONS'],
  '/v2/op/update': ['POST', 'OPTIONS'],
  '/v2/op/notify': ['POST'],
  '/admin/log': ['GET', 'PUT'],
  '/admin/metrics': ['GET', 'DELETE'],
  '/admin/sem': ['GET'],
  '/cache/statistics': ['GET', 'DELETE'],
  '/log/trace[/{level}]': ['GET', 'PUT', 'DELETE'],
  '/statistics': ['GET', 'DELETE'],
  '/version': ['GET'],
  '/exit[/*]': ['GET'],
  '/leak[/*]': ['GET'],
})

/** The same of the interface's first version, of which there is nothing here. */
export const shownLegacyRoutes: RequestCounts = zeros({
  '/v1/queryContext': ['POST'],
  '/v1/updateContext': ['POST'],
  '/v1/contextEntities/{id}': ['PUT', 'DELETE'],
  '/v1/contextEntities/{id}/attributes/{name}': ['GET'],
  '/ngsi10/queryContext': ['POST'],
  '/ngsi10/updateContext': ['POST'],
})

function zeros(routes: Readonly<Record<string, readonly string[]>>): RequestCounts {
  const counts = Object.entries(routes).map(([route, verbs]) => [route, verbs.map(verb => [verb, 0] as const)] as const)
  return Object.fromEntries(counts.map(([route, verbs]) => [route, Object.fromEntries(verbs)]))
}

/** Routes of ours that are counted under another name. */
const namesOfRoutes: Readonly<Record<string, string>> = {
  '/v2/entities/{id}': '/v2/entities/{id}[/attrs]',
  '/v2/entities/{id}/attrs': '/v2/entities/{id}[/attrs]',
  '/log/trace': '/log/trace[/{level}]',
  '/log/trace/{levels}': '/log/trace[/{level}]',
}

/** The name under which a route of ours is counted. */
export const countedAs = (route: string): string => namesOfRoutes[route] ?? route
