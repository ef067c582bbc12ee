// A forwarded update: which part goes to which provider, and the outcome of the whole
// (docs/interface/registrations.md#updates-to-providers).
//
// Only attributes that are missing here are forwarded: an attribute that is stored here is never changed elsewhere.
// Each attribute goes to one provider, that of the first registration that names it, else the first one for whole
// entities; each provider is asked once.
//
// Not here: the local part (update.ts), sending (broker/forwarding.ts).

import type { WantedAttribute } from '../entities/entity.js'
import { type Refusal, refusals } from '../refusal.js'
import type { ProviderRefusal } from '../subscriptions/document-rules.js'
import type { ProviderIndex } from './provider-index.js'
import { isOpenTo, type Registration } from './registration.js'

/** The attributes of one entity that could not be updated here. */
export interface Undone {
  readonly id: string
  /**
   * Of the request, or of the stored entity. undefined: only registrations without a type match
   * (docs/interface/registrations.md#which-provider-is-asked).
   */
  readonly type: string | undefined
  readonly attributes: ReadonlyMap<string, WantedAttribute>
}

/** The update for one provider. `parts`: attribute names by the index of their entity in `undone`. */
export interface UpdateRequest {
  readonly registration: Registration
  readonly parts: ReadonlyMap<number, readonly string[]>
}

/**
 * The requests, in the order of the first registration of each. `path`: of the update. Attributes without a provider
 * are in none of them.
 */
export function updateRequests(
  index: ProviderIndex,
  path: string,
  undone: readonly Undone[],
  nowMs: number,
): readonly UpdateRequest[] {
  const requests = new Map<string, { registration: Registration; readonly parts: Map<number, string[]> }>()
  for (const [at, one] of undone.entries())
    for (const [name, registration] of providersOf(index, path, one, nowMs)) {
      const { url } = registration.provider
      let request = requests.get(url)
      if (!request) {
        request = { registration, parts: new Map() }
        requests.set(url, request)
      } else if (registration.id < request.registration.id) request.registration = registration
      const names = request.parts.get(at)
      if (names) names.push(name)
      else request.parts.set(at, [name])
    }
  return [...requests.values()].sort((a, b) => (a.registration.id < b.registration.id ? -1 : 1))
}

/** The registration for each attribute that has one. */
function providersOf(index: ProviderIndex, path: string, undone: Undone, nowMs: number): Map<string, Registration> {
  const { id, type, attributes } = undone
  const found = new Map<string, Registration>()
  let whole: Registration | undefined
  for (const { registration, entity, attrs } of index.ofId(id, new Set(type === undefined ? [] : [type]))) {
    if (entity.type !== undefined && entity.type !== type) continue
    if (registration.servicePath !== path || !isOpenTo(registration, 'update', nowMs)) continue
    if (attrs.size === 0) whole ??= registration
    for (const name of attributes.keys()) if (attrs.has(name) && !found.has(name)) found.set(name, registration)
    if (found.size === attributes.size) break
  }
  if (whole) for (const name of attributes.keys()) if (!found.has(name)) found.set(name, whole)
  return found
}

/**
 * The result of a provider's part, by the status of its answer (docs/interface/registrations.md#updates-to-providers):
 * only 204 means success.
 */
export type UpdateAnswer = 'updated' | 'refused' | 'failed'

export const updateAnswerOf = (status: number): UpdateAnswer =>
  status === 204 ? 'updated' : status === 404 || status === 422 ? 'refused' : 'failed'

/** Entities, with their attributes that no provider has updated. */
export interface Left {
  readonly id: string
  readonly type: string | undefined
  readonly names: readonly string[]
}

/**
 * The refusal of an update with a forwarded part; undefined: everything was updated
 * (docs/interface/registrations.md#updates-to-providers).
 */
export function forwardedOutcome(
  isAnyDone: boolean,
  left: readonly Left[],
  refusedBy: readonly ProviderRefusal[],
): Refusal | undefined {
  const remaining = left
    .filter(({ names }) => names.length > 0)
    .map(({ id, type, names }) => ({ entity: type === undefined ? id : `${id}-${type}`, names }))
  if (remaining.length === 0) return undefined
  const isRefused = refusedBy.length > 0
  if (!isAnyDone) return isRefused ? refusals.entityRefusedByProviders(refusedBy) : refusals.entityNotFound
  return isRefused ? refusals.partlyForwardedAndRefused(remaining, refusedBy) : refusals.partlyForwarded(remaining)
}

/**
 * The body of such a request (docs/interface/registrations.md#updates-to-providers). Providers always get the action
 * `update`, whatever the client requested.
 */
export function updateBody(undone: readonly Undone[], { parts }: UpdateRequest): string {
  const entities = [...parts].map(([at, names]) => renderEntity(undone[at]!, names))
  return `{"entities":[${entities.join(',')}],"actionType":"update"}`
}

function renderEntity({ id, type, attributes }: Undone, names: readonly string[]): string {
  const members = [`"id":${JSON.stringify(id)}`]
  if (type !== undefined) members.push(`"type":${JSON.stringify(type)}`)
  for (const name of names) members.push(`${JSON.stringify(name)}:${renderAttribute(attributes.get(name)!)}`)
  return `{${members.join(',')}}`
}

// Numbers keep full precision; the number format of the interface is only for clients.
function renderAttribute({ type, value, metadata }: WantedAttribute): string {
  const elements = [...(metadata ?? [])].map(([name, element]) => `${JSON.stringify(name)}:${JSON.stringify(element)}`)
  return `{"type":${JSON.stringify(type)},"value":${JSON.stringify(value)},"metadata":{${elements.join(',')}}}`
}
