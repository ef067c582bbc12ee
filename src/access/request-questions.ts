// What rules have to allow for a request, as questions that can be explained: for `orrery access explain`.
//
//   PATCH /v2/entities/Lamp1/attrs?type=Lamp   ->  update of Lamp1 of type Lamp in / of the tenant
//
// The names of attributes in a body, and the action of a batch, are not known here.
//
// Not here: what each path needs (domain/access/route-needs.ts); the decision in a running broker, which has the body
// as well (http/request-authorizer.ts).

import type { AccessQuestion } from '../domain/access/access-explanation.js'
import {
  actionsOf,
  type NeedsOfPath,
  type RuleNeed,
  routeNeeds,
  type ServedMethod,
} from '../domain/access/route-needs.js'
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

/** What rules have to allow for a request. */
export function needsOf(request: AskedRequest): RequestNeeds {
  const [path = '', query = ''] = request.path.split('?', 2)
  const found = pathIn(path)
  if (!found) return { kind: 'unknown' }
  const { needs, names } = found
  const need = Object.hasOwn(needs, request.method) ? needs[request.method as ServedMethod] : undefined
  if (!need) return { kind: 'unknown' }
  if (typeof need === 'string') return { kind: need }
  const parameters = new URLSearchParams(query)
  const actions = actionsOf(need, isIn(parameters, 'upsert'))
  const about = aboutOf(request, need, found.template, names, parameters)
  return { kind: 'rules', questions: actions.map(action => ({ action, ...about })), note: need.note }
}

interface FoundPath {
  readonly template: string
  readonly needs: NeedsOfPath
  /** The parts of the path that its template names. */
  readonly names: Readonly<Record<string, string>>
}

function pathIn(path: string): FoundPath | undefined {
  const parts = (path.length > 1 ? path.replace(/\/$/, '') : path).split('/').map(decoded)
  for (const [template, needs] of Object.entries(routeNeeds)) {
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
  { about }: RuleNeed,
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
