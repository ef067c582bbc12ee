// The table of routes: every path and method, with its handler. The order of methods is that of the `Allow` header
// (docs/interface/requests.md#methods).
//
// What rules have to allow for a path and method is in domain/access/route-needs.ts. That table gives this one its type:
// a route without needs does not compile, and neither do needs without a route. The port that serves a path is in
// route-ports.ts.

import {
  type NeedsOfPath,
  type RequestNeed,
  type RouteTemplate,
  routeNeeds,
  type ServedMethod,
} from '../domain/access/route-needs.js'
import type { AdminHandlers, ClusterHandlers } from './admin.js'
import type { AttributeHandlers } from './attributes.js'
import type { BackupHandlers } from './backup.js'
import type { BatchHandlers } from './batch.js'
import type { ConsoleHandlers } from './console.js'
import type { EntityHandlers } from './entities.js'
import type { InnerRequests } from './inner-requests.js'
import type { ProxyHandlers } from './ngsi-proxy.js'
import { replyWithOwnAccess } from './own-access.js'
import type { RegistrationHandlers } from './registrations.js'
import type { Reply } from './reply.js'
import type { Request } from './request.js'
import { isServedAt, matches, type PortRole } from './route-ports.js'
import type { ServiceHandlers } from './service.js'
import type { StreamHandlers } from './streams.js'
import type { SubscriptionHandlers } from './subscriptions.js'
import type { TenantHandlers } from './tenants.js'
import type { TypeHandlers } from './types.js'

type Plain = (request: Request, reply: Reply, inner: InnerRequests) => void
export type WithBody = (request: Request, reply: Reply, body: Uint8Array) => void

/** Methods of one path. Those in `read` ignore a body. */
export interface Route {
  /** Its path in the table below. */
  readonly template: string
  readonly allow: string
  /**
   * The form of refusals that are made before its operations. Some administration paths have their own form
   * (docs/interface/administration.md, docs/interface/administration.md#log-settings), or answer a wrong verb with
   * headers alone.
   */
  readonly refusals: 'usual' | 'short' | 'silent405'
  readonly read: ReadonlyMap<string, Plain>
  readonly write: ReadonlyMap<string, WithBody>
  /** Whether its answers may be compressed. */
  readonly isCompressed: boolean
  /** What rules have to allow, by method. */
  readonly needs: NeedsOfPath
}

/**
 * The paths whose answers may be compressed. Answers of other paths may contain credentials next to text that a client
 * chose: subscriptions, registrations, logs, backups. The compressed length of such an answer would reveal information
 * about the credentials, also through TLS (docs/interface/compression.md#secrets).
 */
const compressedPaths = /^\/(?:$|v2$|v2\/(?:entities|types|op)(?:\/|$)|(?:version|metrics|statistics|admin\/metrics)$)/

/** The methods of a path, in the order of its `Allow` header. */
type Served<M extends ServedMethod> = { readonly [K in M]: K extends 'POST' | 'PUT' | 'PATCH' ? WithBody : Plain }

interface Entry<M extends ServedMethod = ServedMethod> {
  readonly served: Served<M>
  readonly methods: readonly M[]
  readonly refusals: Route['refusals']
}

/** The routes of some paths: each with the methods that have needs, and no others. */
type RoutesOf<T extends RouteTemplate> = {
  readonly [P in T]: Entry<Extract<keyof (typeof routeNeeds)[P], ServedMethod>>
}

type ClusterTemplate = Extract<RouteTemplate, `/cluster${string}`>
type ConsoleTemplate = Extract<RouteTemplate, `/console${string}`>
type ProxyTemplate = Extract<RouteTemplate, `/eventsource${string}` | `/callbacks${string}`>

const route = <M extends ServedMethod>(served: Served<M>, refusals: Route['refusals'] = 'usual'): Entry<M> => ({
  served,
  methods: Object.keys(served) as M[],
  refusals,
})

/** Like `route`, but the answer to a wrong verb has only headers. */
const silent = <M extends ServedMethod>(served: Served<M>): Entry<M> => route(served, 'silent405')

export type Router = (components: readonly string[]) => Route | undefined

export interface Handlers {
  readonly entities: EntityHandlers
  readonly attributes: AttributeHandlers
  readonly batch: BatchHandlers
  readonly types: TypeHandlers
  readonly subscriptions: SubscriptionHandlers
  readonly registrations: RegistrationHandlers
  readonly streams: StreamHandlers
  readonly service: ServiceHandlers
  readonly admin: AdminHandlers
  readonly backup: BackupHandlers
  readonly tenants: TenantHandlers
  /** undefined: there is no cluster. */
  readonly cluster?: ClusterHandlers | undefined
  /** undefined: `-noConsole` is set. */
  readonly console?: ConsoleHandlers | undefined
  /** undefined: `-ngsiProxy` is not set. */
  readonly proxy?: ProxyHandlers | undefined
}

/**
 * The routes of a broker at one of its ports. A component in braces matches any single component, also an empty one.
 */
export function routesOf(handlers: Handlers, port: PortRole): Router {
  const { entities, attributes, batch, types, subscriptions, registrations } = handlers
  const { streams, service, admin, backup, tenants, cluster, console, proxy } = handlers
  const table: RoutesOf<Exclude<RouteTemplate, ClusterTemplate | ConsoleTemplate | ProxyTemplate>> = {
    '/': route({
      GET: (request, reply) => service.root(request, reply),
      HEAD: (request, reply) => service.root(request, reply),
    }),
    '/v2': route({ GET: service.entryPoint }),
    '/v2/entities': route({
      POST: (request, reply, body) => entities.create(request, reply, body),
      GET: (request, reply) => entities.list(request, reply),
    }),
    '/v2/entities/{id}': route({
      GET: (request, reply) => entities.retrieve(request, reply),
      DELETE: (request, reply) => entities.remove(request, reply),
    }),
    '/v2/entities/{id}/attrs': route({
      GET: (request, reply) => entities.retrieve(request, reply),
      PATCH: (request, reply, body) => entities.update(request, reply, body),
      POST: (request, reply, body) => entities.append(request, reply, body),
      PUT: (request, reply, body) => entities.replace(request, reply, body),
    }),
    '/v2/entities/{id}/attrs/{name}': route({
      GET: (request, reply) => attributes.retrieve(request, reply),
      PUT: (request, reply, body) => attributes.update(request, reply, body),
      DELETE: (request, reply) => attributes.remove(request, reply),
    }),
    '/v2/entities/{id}/attrs/{name}/value': route({
      GET: (request, reply) => attributes.retrieveValue(request, reply),
      PUT: (request, reply, body) => attributes.updateValue(request, reply, body),
    }),
    '/v2/op/query': route({ POST: (request, reply, body) => batch.query(request, reply, body) }),
    '/v2/op/update': route({ POST: (request, reply, body) => batch.update(request, reply, body) }),
    '/v2/op/notify': route({ POST: (request, reply, body) => batch.notify(request, reply, body) }),
    '/v2/types': route({ GET: (request, reply) => types.list(request, reply) }),
    '/v2/types/{type}': route({ GET: (request, reply) => types.retrieve(request, reply) }),
    '/v2/subscriptions': route({
      POST: (request, reply, body) => subscriptions.create(request, reply, body),
      GET: (request, reply) => subscriptions.list(request, reply),
    }),
    '/v2/subscriptions/{id}': route({
      GET: (request, reply) => subscriptions.retrieve(request, reply),
      DELETE: (request, reply) => subscriptions.remove(request, reply),
      PATCH: (request, reply, body) => subscriptions.change(request, reply, body),
    }),
    '/v2/subscriptions/{id}/deliveries': route({ GET: (request, reply) => subscriptions.deliveries(request, reply) }),
    '/v2/subscriptions/{id}/deliveries/retry': route({
      POST: (request, reply) => subscriptions.retryDeliveries(request, reply),
    }),
    '/v2/registrations': route({
      POST: (request, reply, body) => registrations.create(request, reply, body),
      GET: (request, reply) => registrations.list(request, reply),
    }),
    '/v2/registrations/{id}': route({
      GET: (request, reply) => registrations.retrieve(request, reply),
      DELETE: (request, reply) => registrations.remove(request, reply),
      PATCH: (request, reply, body) => registrations.change(request, reply, body),
    }),
    '/v2/access': route({
      GET: (request, reply) => replyWithOwnAccess(request, reply, isServedAt(port, '/admin/log')),
    }),
    '/v2/stream': route({ GET: (request, reply, inner) => streams.stream(request, reply, inner) }),
    '/version': route({ GET: (request, reply) => service.version(request, reply) }),
    '/health/live': route({ GET: (request, reply) => service.live(request, reply) }),
    '/health/startup': route({ GET: (request, reply) => service.live(request, reply) }),
    '/health/ready': route({ GET: (request, reply) => service.ready(request, reply) }),
    '/metrics': route({ GET: (_request, reply) => admin.metrics(reply) }),
    '/statistics': silent({
      GET: (request, reply) => admin.statistics(request, reply),
      DELETE: (_request, reply) => admin.resetStatistics(reply),
    }),
    '/cache/statistics': silent({
      GET: (_request, reply) => admin.cacheStatistics(reply),
      DELETE: (_request, reply) => admin.resetCacheStatistics(reply),
    }),
    '/admin/log': route(
      {
        GET: (_request, reply) => admin.log(reply),
        PUT: (request, reply) => admin.changeLog(request, reply),
      },
      'short',
    ),
    '/admin/settings': route({ GET: (_request, reply) => admin.options(reply) }),
    '/log/trace': silent({
      GET: (_request, reply) => admin.traces(reply),
      DELETE: (_request, reply) => admin.clearTraces(reply),
    }),
    '/log/trace/{levels}': silent({
      PUT: (request, reply) => admin.setTraces(request, reply),
      DELETE: (request, reply) => admin.removeTraces(request, reply),
    }),
    '/admin/backup': route({ POST: (request, reply) => backup.backUp(request, reply) }),
    '/admin/tenants': route({ GET: (request, reply) => tenants.list(request, reply) }),
    '/admin/tenants/{name}': route({
      GET: (request, reply) => tenants.retrieve(request, reply),
      DELETE: (request, reply) => tenants.remove(request, reply),
    }),
    '/admin/sem': route({ GET: (_request, reply) => admin.semaphores(reply) }),
    '/admin/metrics': route({
      GET: (request, reply) => admin.serviceMetrics(request, reply),
      DELETE: (_request, reply) => admin.resetServiceMetrics(reply),
    }),
  }
  return router(
    {
      ...table,
      ...(cluster && routesOfCluster(cluster)),
      ...(console && routesOfConsole(console)),
      ...(proxy && routesOfProxy(proxy)),
    },
    port,
  )
}

const routesOfCluster = (cluster: ClusterHandlers): RoutesOf<ClusterTemplate> => ({
  '/cluster': route({ GET: (_request, reply) => cluster.status(reply) }),
  '/cluster/drain': route({
    POST: (_request, reply) => cluster.drain(reply),
    DELETE: (_request, reply) => cluster.resume(reply),
  }),
})

const routesOfConsole = (console: ConsoleHandlers): RoutesOf<ConsoleTemplate> => ({
  '/console': route({
    GET: (request, reply) => console.page(request, reply),
    HEAD: (request, reply) => console.page(request, reply),
  }),
  '/console/tiles/{file}': route({ GET: (request, reply) => console.tiles(request, reply) }),
  '/console/{build}/{file}': route({
    GET: (request, reply) => console.file(request, reply),
    HEAD: (request, reply) => console.file(request, reply),
  }),
  '/console/{build}/{folder}/{file}': route({
    GET: (request, reply) => console.file(request, reply),
    HEAD: (request, reply) => console.file(request, reply),
  }),
})

const routesOfProxy = (proxy: ProxyHandlers): RoutesOf<ProxyTemplate> => ({
  '/eventsource': route({ POST: (request, reply) => proxy.open(request, reply) }),
  '/eventsource/{id}': route({
    GET: (request, reply) => proxy.read(request, reply),
    DELETE: (request, reply) => proxy.close(request, reply),
  }),
  '/callbacks': route({ POST: (request, reply, body) => proxy.register(request, reply, body) }),
  '/callbacks/{id}': route({
    POST: (request, reply, body) => proxy.notify(request, reply, body),
    DELETE: (request, reply) => proxy.unregister(request, reply),
  }),
})

function router(table: Partial<RoutesOf<RouteTemplate>>, port: PortRole): Router {
  const byLength = new Map<number, { readonly pattern: readonly string[]; readonly route: Route }[]>()
  for (const [template, entry] of Object.entries(table) as [RouteTemplate, Entry][]) {
    if (!isServedAt(port, template)) continue
    const pattern = template.slice(1).split('/')
    const same = byLength.get(pattern.length) ?? []
    byLength.set(pattern.length, [...same, { pattern, route: routeAt(template, entry) }])
  }
  return components => byLength.get(components.length)?.find(({ pattern }) => matches(pattern, components))?.route
}

function routeAt(template: RouteTemplate, { served, methods, refusals }: Entry): Route {
  const { GET, HEAD, DELETE, ...write } = served as Partial<Served<ServedMethod>>
  const { POST, PUT, PATCH, ...read } = served as Partial<Served<ServedMethod>>
  return {
    template,
    allow: methods.join(', '),
    refusals,
    read: new Map(Object.entries(read)),
    write: new Map(Object.entries(write)),
    isCompressed: compressedPaths.test(template),
    needs: routeNeeds[template],
  }
}

/** What rules have to allow for a method of a path; another method than those served needs a principal. */
export const needOf = ({ needs }: Route, method: string): RequestNeed =>
  Object.hasOwn(needs, method) ? (needs[method as ServedMethod] ?? 'principal') : 'principal'
