// What rules have to allow for each path and method of the broker (docs/interface/access.md#who-asks,
// docs/interface/access.md#actions). It is the only source: the type of the table of routes comes from this table, so
// a route without a row here does not compile. `orrery access explain` reads it as well.
//
// Not here: the decision about a request (http/request-authorizer.ts), what a body names (writing.ts, providing.ts).

import type { AccessAction } from './access-rule.js'
import type { BrokerAction } from './grant.js'
import { writeKinds } from './writing.js'

/** Actions that rules have to allow for everything that a request is about. */
export type RuleNeed =
  /** In the tenant. `reading`: in all paths by default. `writing`: in `/` by default. */
  | {
      readonly about: 'reading' | 'writing'
      readonly actions: readonly AccessAction[]
      /** Which of the actions count depends on the body, which this sentence says; undefined: all of them count. */
      readonly note?: string
    }
  /** In all tenants. */
  | { readonly about: 'broker'; readonly actions: readonly BrokerAction[]; readonly note?: undefined }

/** `nothing`: a client needs no proof. `principal`: it needs a proof, and no rule. */
export type RequestNeed = 'nothing' | 'principal' | RuleNeed

export type ServedMethod = 'GET' | 'HEAD' | 'DELETE' | 'POST' | 'PUT' | 'PATCH'

const writing = (actions: readonly AccessAction[], note?: string): RuleNeed => ({
  actions,
  about: 'writing',
  ...(note !== undefined && { note }),
})

const { create, update, replace, deleteAttributes, deleteEntity, notify } = writeKinds
const read: RuleNeed = { actions: ['read'], about: 'reading' }
const stream: RuleNeed = { actions: ['stream'], about: 'reading' }
const subscribe: RuleNeed = { actions: ['subscribe'], about: 'reading' }
const register = writing(['register'])
const listRegistrations: RuleNeed = { actions: ['register'], about: 'reading' }
const admin: RuleNeed = { actions: ['admin'], about: 'broker' }
const metrics: RuleNeed = { actions: ['metrics'], about: 'broker' }
const backup: RuleNeed = { actions: ['admin', 'read'], about: 'broker' }
const batchNote =
  'a batch needs those of its actionType: append, appendStrict: create and update; update: update; replace: update and delete; delete: delete'

/** By path, with names in braces, and by method. */
export const routeNeeds = {
  '/': { GET: 'principal', HEAD: 'principal' },
  '/v2': { GET: 'principal' },
  '/version': { GET: 'principal' },
  '/health/live': { GET: 'nothing' },
  '/health/startup': { GET: 'nothing' },
  '/health/ready': { GET: 'nothing' },
  '/console': { GET: 'nothing', HEAD: 'nothing' },
  '/console/tiles/{file}': { GET: 'nothing' },
  '/console/{build}/{file}': { GET: 'nothing', HEAD: 'nothing' },
  '/console/{build}/{folder}/{file}': { GET: 'nothing', HEAD: 'nothing' },
  '/v2/entities': { POST: writing(create.actions), GET: read },
  '/v2/entities/{id}': { GET: read, DELETE: writing(deleteEntity.actions) },
  '/v2/entities/{id}/attrs': {
    GET: read,
    PATCH: writing(update.actions),
    POST: writing(update.actions),
    PUT: writing(replace.actions),
  },
  '/v2/entities/{id}/attrs/{name}': {
    GET: read,
    PUT: writing(update.actions),
    DELETE: writing(deleteAttributes.actions),
  },
  '/v2/entities/{id}/attrs/{name}/value': { GET: read, PUT: writing(update.actions) },
  '/v2/op/query': { POST: read },
  '/v2/op/update': { POST: writing(['create', 'update', 'delete'], batchNote) },
  '/v2/op/notify': { POST: writing(notify.actions) },
  '/v2/types': { GET: read },
  '/v2/types/{type}': { GET: read },
  '/v2/subscriptions': { POST: subscribe, GET: subscribe },
  '/v2/subscriptions/{id}': { GET: subscribe, DELETE: subscribe, PATCH: subscribe },
  '/v2/subscriptions/{id}/deliveries': { GET: subscribe },
  '/v2/subscriptions/{id}/deliveries/retry': { POST: subscribe },
  '/v2/registrations': { POST: register, GET: listRegistrations },
  '/v2/registrations/{id}': { GET: register, DELETE: register, PATCH: register },
  '/v2/access': { GET: 'principal' },
  '/v2/stream': { GET: stream },
  '/eventsource': { POST: stream },
  '/eventsource/{id}': { GET: stream, DELETE: stream },
  '/callbacks': { POST: stream },
  '/callbacks/{id}': { POST: stream, DELETE: stream },
  '/metrics': { GET: metrics },
  '/statistics': { GET: admin, DELETE: admin },
  '/cache/statistics': { GET: admin, DELETE: admin },
  '/admin/log': { GET: admin, PUT: admin },
  '/admin/settings': { GET: admin },
  '/log/trace': { GET: admin, DELETE: admin },
  '/log/trace/{levels}': { PUT: admin, DELETE: admin },
  '/admin/backup': { POST: backup },
  '/admin/tenants': { GET: admin },
  '/admin/tenants/{name}': { GET: admin, DELETE: admin },
  '/admin/sem': { GET: admin },
  '/admin/metrics': { GET: admin, DELETE: admin },
  '/cluster': { GET: admin },
  '/cluster/drain': { POST: admin, DELETE: admin },
} as const satisfies Readonly<Record<string, Readonly<Partial<Record<ServedMethod, RequestNeed>>>>>

export type RouteTemplate = keyof typeof routeNeeds

/** The needs of a path, by method. */
export type NeedsOfPath = Readonly<Partial<Record<ServedMethod, RequestNeed>>>

/** The actions of a request: `POST /v2/entities` with `upsert` also changes what exists. */
export const actionsOf = ({ actions }: RuleNeed, isUpsert: boolean): readonly AccessAction[] =>
  isUpsert && actions === create.actions ? writeKinds.upsert.actions : actions
