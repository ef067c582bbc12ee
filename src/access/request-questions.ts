// What rules have to allow for a request, as questions that can be explained: for `orrery access explain`.
//
//   PATCH /v2/entities/Lamp1/attrs?type=Lamp   ->  update of Lamp1 of type Lamp in / of the tenant
//
// The table has every path of the broker; a test compares it with the routes. The names of attributes in a body, and the
// action of a batch, are not known here.
//
// Not here: the decision in a running broker, which has the body as well (http).

import type { AccessQuestion } from '../domain/access/access-explanation.js'
import type { AccessAction } from '../domain/access/access-rule.js'
import { writeKinds } from '../domain/access/writing.js'
import { allPaths } from '../domain/scope.js'

/** A request, as the command line has it. */
export interface AskedRequest {
  readonly method: string
  /** With its query. */
  readonly path: string
  readonly tenant: string
  /** Empty: it names none. */
  readonly servicePaths: readonly string[]
  readonly type: string | undefined
  readonly id: string | undefined
}

export type RequestNeeds =
  | { readonly kind: 'rules'; readonly questions: readonly AccessQuestion[]; readonly note: string | undefined }
  /** Any principal may do it. */
  | { readonly kind: 'principal' }
  /** Any client may do it. */
  | { readonly kind: 'nothing' }
  /** The broker has no such path or method. */
  | { readonly kind: 'unknown' }

/** `reading`: in all paths by default. `writing`: in `/` by default. `broker`: about the whole broker. */
interface Need {
  readonly actions: readonly AccessAction[]
  readonly about: 'reading' | 'writing' | 'broker'
  readonly note?: string
}

type NeedOfPath = 'principal' | 'nothing' | Readonly<Record<string, Need>>

const reading = (action: AccessAction): Need => ({ actions: [action], about: 'reading' })
const writing = (actions: readonly AccessAction[], note?: string): Need => ({
  actions,
  about: 'writing',
  ...(note !== undefined && { note }),
})
const ofBroker = (action: 'admin' | 'metrics'): Need => ({ actions: [action], about: 'broker' })

const { create, update, replace, deleteAttributes, deleteEntity, notify } = writeKinds
const read = reading('read')
const subscribe = reading('subscribe')
const stream = reading('stream')
const register = writing(['register'])
const admin = ofBroker('admin')
const batchNote =
  'a batch needs those of its actionType: append, appendStrict: create and update; update: update; replace: update and delete; delete: delete'

/** By path, with names in braces, and by method. */
export const needsOfPaths: Readonly<Record<string, NeedOfPath>> = {
  '/': 'principal',
  '/v2': 'principal',
  '/version': 'principal',
  '/health/live': 'nothing',
  '/health/startup': 'nothing',
  '/health/ready': 'nothing',
  '/v2/entities': { GET: read, POST: writing(create.actions) },
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
  '/v2/subscriptions': { GET: subscribe, POST: subscribe },
  '/v2/subscriptions/{id}': { GET: subscribe, DELETE: subscribe, PATCH: subscribe },
  '/v2/subscriptions/{id}/deliveries': { GET: subscribe },
  '/v2/subscriptions/{id}/deliveries/retry': { POST: subscribe },
  '/v2/registrations': { GET: register, POST: register },
  '/v2/registrations/{id}': { GET: register, DELETE: register, PATCH: register },
  '/v2/stream': { GET: stream },
  '/eventsource': { POST: stream },
  '/eventsource/{id}': { GET: stream, DELETE: stream },
  '/callbacks': { POST: stream },
  '/callbacks/{id}': { POST: stream, DELETE: stream },
  '/metrics': { GET: ofBroker('metrics') },
  '/statistics': { GET: admin, DELETE: admin },
  '/cache/statistics': { GET: admin, DELETE: admin },
  '/admin/log': { GET: admin, PUT: admin },
  '/log/trace': { GET: admin, DELETE: admin },
  '/log/trace/{levels}': { PUT: admin, DELETE: admin },
  '/admin/backup': { POST: admin },
  '/admin/tenants': { GET: admin },
  '/admin/tenants/{name}': { GET: admin, DELETE: admin },
  '/admin/sem': { GET: admin },
  '/admin/metrics': { GET: admin, DELETE: admin },
  '/cluster': { GET: admin },
  '/cluster/drain': { POST: admin, DELETE: admin },
}

/** What rules have to allow for a request. */
export function needsOf(request: AskedRequest): RequestNeeds {
  const [path = '', query = ''] = request.path.split('?', 2)
  const found = pathIn(path)
  if (!found) return { kind: 'unknown' }
  const { needs, names } = found
  if (typeof needs === 'string') return { kind: needs }
  const need = Object.hasOwn(needs, request.method) ? needs[request.method] : undefined
  if (!need) return { kind: 'unknown' }
  const parameters = new URLSearchParams(query)
  const isUpsert = found.template === '/v2/entities' && request.method === 'POST' && isIn(parameters, 'upsert')
  const actions = isUpsert ? writeKinds.upsert.actions : need.actions
  const about = aboutOf(request, need, found.template, names, parameters)
  return { kind: 'rules', questions: actions.map(action => ({ action, ...about })), note: need.note }
}

interface FoundPath {
  readonly template: string
  readonly needs: NeedOfPath
  /** The parts of the path that its template names. */
  readonly names: Readonly<Record<string, string>>
}

function pathIn(path: string): FoundPath | undefined {
  const parts = (path.length > 1 ? path.replace(/\/$/, '') : path).split('/').map(decoded)
  for (const [template, needs] of Object.entries(needsOfPaths)) {
    const pattern = template.split('/')
    if (pattern.length !== parts.length) continue
    if (!pattern.every((part, at) => part === parts[at] || part.startsWith('{'))) continue
    const named = pattern.flatMap((part, at) => (part.startsWith('{') ? [[part.slice(1, -1), parts[at]!]] : []))
    return { template, needs, names: Object.fromEntries(named) as Record<string, string> }
  }
  return undefined
}

function aboutOf(
  { tenant, servicePaths, type, id }: AskedRequest,
  { about }: Need,
  template: string,
  names: Readonly<Record<string, string>>,
  parameters: URLSearchParams,
): Omit<AccessQuestion, 'action'> {
  if (about === 'broker') return { place: 'broker' }
  const byDefault = about === 'writing' ? ['/'] : allPaths
  const place = { tenant, paths: servicePaths.length > 0 ? servicePaths : byDefault }
  const isEntity = template.startsWith('/v2/entities')
  return {
    place,
    type: type ?? (isEntity ? oneIn(parameters, 'type') : names.type),
    id: id ?? (isEntity ? (names.id ?? oneIn(parameters, 'id')) : undefined),
    attributes: isEntity && names.name !== undefined ? [names.name] : [],
  }
}

/** The value of a parameter; undefined: it is absent, or a list. */
function oneIn(parameters: URLSearchParams, name: string): string | undefined {
  const value = parameters.get(name)
  return value === null || value.includes(',') ? undefined : value
}

const isIn = (parameters: URLSearchParams, option: string): boolean =>
  (parameters.get('options') ?? '').split(',').includes(option)

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
