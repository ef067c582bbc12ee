// The table of contents: every path and method that is served, and who serves it. The order of methods is that of the `Allow` header
// (entities.md §1.7).

import type { AdminHandlers, ClusterHandlers } from './admin.js'
import type { AttributeHandlers } from './attributes.js'
import type { BatchHandlers } from './batch.js'
import type { EntityHandlers } from './entities.js'
import type { RegistrationHandlers } from './registrations.js'
import type { Reply } from './reply.js'
import type { Request } from './request.js'
import type { ServiceHandlers } from './service.js'
import type { SubscriptionHandlers } from './subscriptions.js'
import type { TypeHandlers } from './types.js'

type Plain = (request: Request, reply: Reply) => void
export type WithBody = (request: Request, reply: Reply, body: Uint8Array) => void

/** Methods of one path. Those in `read` look at no body. */
export interface Route {
  /** Its path in the table below. */
  readonly template: string
  readonly allow: string
  /** How refusals are told that its operations do not decide: some administration paths have forms of their own (operations.md §3, §5.1). */
  readonly refusals: 'usual' | 'short' | 'silent405'
  readonly read: ReadonlyMap<string, Plain>
  readonly write: ReadonlyMap<string, WithBody>
}

type Served = readonly [method: string, serve: Plain | WithBody]

/** Methods whose handlers take the body; all others are answered without one. */
const methodsWithBody = new Set(['POST', 'PUT', 'PATCH'])

type Entry = Omit<Route, 'template'>

function route(...served: Served[]): Entry {
  return {
    refusals: 'usual',
    allow: served.map(([method]) => method).join(', '),
    read: new Map(served.filter((one): one is readonly [string, Plain] => !methodsWithBody.has(one[0]))),
    write: new Map(served.filter(one => methodsWithBody.has(one[0]))),
  }
}

export type Router = (components: readonly string[]) => Route | undefined

/** The routes of a broker. A component in braces stands for any single component, the empty one included. */
export function routesOf(
  entities: EntityHandlers,
  attributes: AttributeHandlers,
  batch: BatchHandlers,
  types: TypeHandlers,
  subscriptions: SubscriptionHandlers,
  registrations: RegistrationHandlers,
  service: ServiceHandlers,
  admin: AdminHandlers,
  cluster?: ClusterHandlers,
): Router {
  const table: Readonly<Record<string, Entry>> = {
    '/v2': route(['GET', service.entryPoint]),
    '/v2/entities': route(
      ['POST', (request: Request, reply: Reply, body: Uint8Array) => entities.create(request, reply, body)],
      ['GET', (request: Request, reply: Reply) => entities.list(request, reply)],
    ),
    '/v2/entities/{id}': route(
      ['GET', (request: Request, reply: Reply) => entities.retrieve(request, reply)],
      ['DELETE', (request: Request, reply: Reply) => entities.remove(request, reply)],
    ),
    '/v2/entities/{id}/attrs': route(
      ['GET', (request: Request, reply: Reply) => entities.retrieve(request, reply)],
      ['PATCH', (request: Request, reply: Reply, body: Uint8Array) => entities.update(request, reply, body)],
      ['POST', (request: Request, reply: Reply, body: Uint8Array) => entities.append(request, reply, body)],
      ['PUT', (request: Request, reply: Reply, body: Uint8Array) => entities.replace(request, reply, body)],
    ),
    '/v2/entities/{id}/attrs/{name}': route(
      ['GET', (request: Request, reply: Reply) => attributes.retrieve(request, reply)],
      ['PUT', (request: Request, reply: Reply, body: Uint8Array) => attributes.update(request, reply, body)],
      ['DELETE', (request: Request, reply: Reply) => attributes.remove(request, reply)],
    ),
    '/v2/entities/{id}/attrs/{name}/value': route(
      ['GET', (request: Request, reply: Reply) => attributes.retrieveValue(request, reply)],
      ['PUT', (request: Request, reply: Reply, body: Uint8Array) => attributes.updateValue(request, reply, body)],
    ),
    '/v2/op/query': route([
      'POST',
      (request: Request, reply: Reply, body: Uint8Array) => batch.query(request, reply, body),
    ]),
    '/v2/op/update': route([
      'POST',
      (request: Request, reply: Reply, body: Uint8Array) => batch.update(request, reply, body),
    ]),
    '/v2/op/notify': route([
      'POST',
      (request: Request, reply: Reply, body: Uint8Array) => batch.notify(request, reply, body),
    ]),
    '/v2/types': route(['GET', (request: Request, reply: Reply) => types.list(request, reply)]),
    '/v2/types/{type}': route(['GET', (request: Request, reply: Reply) => types.retrieve(request, reply)]),
    '/v2/subscriptions': route(
      ['POST', (request: Request, reply: Reply, body: Uint8Array) => subscriptions.create(request, reply, body)],
      ['GET', (request: Request, reply: Reply) => subscriptions.list(request, reply)],
    ),
    '/v2/subscriptions/{id}': route(
      ['GET', (request: Request, reply: Reply) => subscriptions.retrieve(request, reply)],
      ['DELETE', (request: Request, reply: Reply) => subscriptions.remove(request, reply)],
      ['PATCH', (request: Request, reply: Reply, body: Uint8Array) => subscriptions.change(request, reply, body)],
    ),
    '/v2/subscriptions/{id}/deliveries': route([
      'GET',
      (request: Request, reply: Reply) => subscriptions.deliveries(request, reply),
    ]),
    '/v2/subscriptions/{id}/deliveries/retry': route([
      'POST',
      (request: Request, reply: Reply) => subscriptions.retryDeliveries(request, reply),
    ]),
    '/v2/registrations': route(
      ['POST', (request: Request, reply: Reply, body: Uint8Array) => registrations.create(request, reply, body)],
      ['GET', (request: Request, reply: Reply) => registrations.list(request, reply)],
    ),
    '/v2/registrations/{id}': route(
      ['GET', (request: Request, reply: Reply) => registrations.retrieve(request, reply)],
      ['DELETE', (request: Request, reply: Reply) => registrations.remove(request, reply)],
      ['PATCH', (request: Request, reply: Reply, body: Uint8Array) => registrations.change(request, reply, body)],
    ),
    '/version': route(['GET', (request: Request, reply: Reply) => service.version(request, reply)]),
    '/health/live': route(['GET', (request: Request, reply: Reply) => service.live(request, reply)]),
    '/health/ready': route(['GET', (request: Request, reply: Reply) => service.ready(request, reply)]),
    '/metrics': route(['GET', (_request: Request, reply: Reply) => admin.metrics(reply)]),
    '/statistics': silent(
      ['GET', (request: Request, reply: Reply) => admin.statistics(request, reply)],
      ['DELETE', (_request: Request, reply: Reply) => admin.resetStatistics(reply)],
    ),
    '/cache/statistics': silent(
      ['GET', (_request: Request, reply: Reply) => admin.cacheStatistics(reply)],
      ['DELETE', (_request: Request, reply: Reply) => admin.resetCacheStatistics(reply)],
    ),
    '/admin/log': {
      ...route(
        ['GET', (_request: Request, reply: Reply) => admin.log(reply)],
        ['PUT', (request: Request, reply: Reply) => admin.changeLog(request, reply)],
      ),
      refusals: 'short',
    },
    '/log/trace': silent(
      ['GET', (_request: Request, reply: Reply) => admin.traces(reply)],
      ['DELETE', (_request: Request, reply: Reply) => admin.clearTraces(reply)],
    ),
    '/log/trace/{levels}': silent(
      ['PUT', (request: Request, reply: Reply) => admin.setTraces(request, reply)],
      ['DELETE', (request: Request, reply: Reply) => admin.removeTraces(request, reply)],
    ),
    '/admin/sem': route(['GET', (_request: Request, reply: Reply) => admin.semaphores(reply)]),
    '/admin/metrics': route(
      ['GET', (request: Request, reply: Reply) => admin.serviceMetrics(request, reply)],
      ['DELETE', (_request: Request, reply: Reply) => admin.resetServiceMetrics(reply)],
    ),
    ...(cluster && routesOfCluster(cluster)),
  }
  return router(table)
}

const routesOfCluster = (cluster: ClusterHandlers): Readonly<Record<string, Entry>> => ({
  '/cluster': route(['GET', (_request: Request, reply: Reply) => cluster.status(reply)]),
  '/cluster/drain': route(
    ['POST', (_request: Request, reply: Reply) => cluster.drain(reply)],
    ['DELETE', (_request: Request, reply: Reply) => cluster.resume(reply)],
  ),
})

/** As `route`, but a wrong verb is told by headers alone. */
const silent = (...served: Served[]): Entry => ({ ...route(...served), refusals: 'silent405' })

function router(table: Readonly<Record<string, Entry>>): Router {
  const byLength = new Map<number, { readonly pattern: readonly string[]; readonly route: Route }[]>()
  for (const [template, served] of Object.entries(table)) {
    const pattern = template.slice(1).split('/')
    const same = byLength.get(pattern.length) ?? []
    byLength.set(pattern.length, [...same, { pattern, route: { ...served, template } }])
  }
  return components => byLength.get(components.length)?.find(({ pattern }) => matches(pattern, components))?.route
}

function matches(pattern: readonly string[], components: readonly string[]): boolean {
  for (const [index, component] of pattern.entries())
    if (component !== components[index] && !component.startsWith('{')) return false
  return true
}
