// Parses the bodies of POST and PATCH on registrations (docs/interface/registrations.md).
//
// One function parses both: a POST requires, and a PATCH replaces, members of the top level. The refusal names the
// first mistake, in the order of docs/interface/errors.md#registrations-and-providers. Unknown fields are ignored,
// `id`, `forwardingInformation` and `expression` among them.
//
// Not here: unparsable bodies (http/body.ts), checks of headers, the JSON of an answer (registration.ts).

import type { Payload } from '../entities/entity.js'
import { hasForbiddenCharacters, isObject, type Json } from '../json.js'
import { accepted, allOf, type Refusal, type Result, refusals, refused } from '../refusal.js'
import {
  type ExpiryField,
  optional,
  parseDescription,
  parseExpiry,
  parseNames,
  parseSubjectEntities,
  topLevel,
} from '../subscriptions/payload-fields.js'
import { parseReceiverUrl } from '../subscriptions/receiver-url.js'
import type {
  DataProvided,
  ForwardingMode,
  ProvidedEntity,
  Provider,
  Registration,
  RegistrationStatus,
} from './registration.js'

/** The members of a new registration that are not in its body. */
export type RegistrationHead = Pick<Registration, 'id' | 'tenant' | 'servicePath'>

/**
 * Parses a POST body to a registration, or returns a refusal for the first mistake
 * (docs/interface/errors.md#registrations-and-providers).
 */
export function parseRegistration(payload: Payload, head: RegistrationHead): Result<Registration> {
  const members = parseMembers(payload, true)
  if (!members.ok) return members
  const { description = '', expiry, status = 'active' } = members.value
  const dataProvided = members.value.dataProvided as DataProvided
  const provider = members.value.provider as Provider
  return accepted({ ...head, description, expiresMs: expiry?.ms, dataProvided, provider, status })
}

/** The first mistake in the body of a PATCH, for any registration; undefined: there is none. */
export function checkRegistrationPatch(payload: Payload): Refusal | undefined {
  const members = parseMembers(payload, false)
  return members.ok ? undefined : members.refusal
}

/** What a PATCH provides, which has passed `checkRegistrationPatch`; undefined: the registration keeps its own. */
export function providedByPatch(payload: Payload): DataProvided | undefined {
  const members = parseMembers(payload, false)
  return members.ok ? members.value.dataProvided : undefined
}

/**
 * The registration after a PATCH: given members are replaced as a whole
 * (docs/interface/registrations.md#registration-operations). Its path stays.
 */
export function patchRegistration(existing: Registration, payload: Payload): Result<Registration> {
  const members = parseMembers(payload, false)
  if (!members.ok) return members
  const { description, expiry, dataProvided, provider, status } = members.value
  return accepted({
    ...existing,
    description: description ?? existing.description,
    expiresMs: expiry ? expiry.ms : existing.expiresMs,
    dataProvided: dataProvided ?? existing.dataProvided,
    provider: provider ?? existing.provider,
    status: status ?? existing.status,
  })
}

/** The members of a body; undefined: not given. */
interface Members {
  readonly description: string | undefined
  readonly dataProvided: DataProvided | undefined
  readonly provider: Provider | undefined
  readonly expiry: ExpiryField | undefined
  readonly status: RegistrationStatus | undefined
}

function parseMembers(payload: Payload, isComplete: boolean): Result<Members> {
  const top = topLevel(payload, refusals.payloadNotObject)
  if (!top.ok) return top
  const json = top.value
  const needed = <T>(name: string, parse: (json: Json) => Result<T>): Result<T | undefined> =>
    isComplete && json[name] === undefined ? refused(refusals.fieldMissingInPayload(name)) : optional(json[name], parse)
  return allOf<Members>({
    description: () => optional(json.description, text => parseDescription(text, refusals.descriptionKind)),
    dataProvided: () => needed('dataProvided', parseDataProvided),
    provider: () => needed('provider', parseProvider),
    expiry: () => optional(json.expires, text => parseExpiry(text, refusals.registrationExpires)),
    status: () => optional(json.status, parseStatus),
  })
}

function parseDataProvided(json: Json): Result<DataProvided> {
  if (!isObject(json)) return refused(refusals.fieldNotJsonObject('dataProvided'))
  if (Object.keys(json).length === 0) return refused(refusals.dataProvidedEmpty)
  const { entities } = json
  return allOf<DataProvided>({
    entities: () => (entities === undefined ? accepted([]) : parseProvided(entities)),
    attrs: () => parseNames(json, 'attrs'),
  })
}

const anyId = '.*'

function parseProvided(json: Json): Result<readonly ProvidedEntity[]> {
  const parsed = parseSubjectEntities(json)
  if (!parsed.ok) return parsed
  const subjects = parsed.value
  if (subjects.some(({ idPattern = anyId }) => idPattern !== anyId)) return refused(refusals.providedIdPattern)
  if (subjects.some(({ typePattern }) => typePattern !== undefined)) return refused(refusals.providedTypePattern)
  // The only remaining pattern is that of every id.
  return accepted(subjects as readonly ProvidedEntity[])
}

function parseProvider(json: Json): Result<Provider> {
  if (!isObject(json)) return refused(refusals.fieldNotJsonObject('provider'))
  if (Object.keys(json).length === 0) return refused(refusals.providerEmpty)
  const { http, supportedForwardingMode = 'all', legacyForwarding = false } = json
  if (http === undefined) return refused(refusals.fieldNotFoundIn('provider', 'http'))
  if (!isObject(http)) return refused(refusals.fieldNotJsonObject('http'))
  const url = parseUrl(http.url)
  if (!url.ok) return url
  if (typeof supportedForwardingMode !== 'string') return refused(refusals.forwardingModeKind)
  if (!isForwardingMode(supportedForwardingMode)) return refused(refusals.forwardingMode)
  if (typeof legacyForwarding !== 'boolean') return refused(refusals.legacyForwarding)
  return accepted({ url: url.value, supportedForwardingMode, legacyForwarding })
}

function parseUrl(json: Json | undefined): Result<string> {
  if (json === undefined) return refused(refusals.fieldNotFoundIn('http', 'url'))
  if (typeof json !== 'string') return refused(refusals.providerUrl('must be a JSON string'))
  if (json === '') return refused(refusals.providerUrl('cannot be the empty string'))
  const url = hasForbiddenCharacters(json) ? undefined : parseReceiverUrl(json)
  return url && url.scheme !== 'mqtt' ? accepted(json) : refused(refusals.providerUrl('is invalid'))
}

const modes = { all: true, none: true, query: true, update: true } as const satisfies Record<ForwardingMode, true>

const isForwardingMode = (text: string): text is ForwardingMode => Object.hasOwn(modes, text)

function parseStatus(json: Json): Result<RegistrationStatus> {
  if (typeof json !== 'string') return refused(refusals.registrationStatusKind)
  return json === 'active' || json === 'inactive' ? accepted(json) : refused(refusals.registrationStatus)
}
