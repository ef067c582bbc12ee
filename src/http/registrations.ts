// Handlers of /v2/registrations and /v2/registrations/{id} (docs/interface/registrations.md#registration-operations).
//
// The order inside each is that of docs/interface/requests.md#order-of-checks: payload, tenant, path, operation. An id
// of an impossible form gets the same answer as an id that is not found.

import type { AdminOperations } from '../broker/admin.js'
import type { RegistrationOperations } from '../broker/documents.js'
import type { Payload } from '../domain/entities/entity.js'
import { isObject } from '../domain/json.js'
import { type ForwardingOutcome, joinOutcomes } from '../domain/providers/forwarding-outcome.js'
import { type Registration, renderRegistration } from '../domain/providers/registration.js'
import {
  checkRegistrationPatch,
  parseRegistration,
  providedByPatch,
  type RegistrationHead,
} from '../domain/providers/registration-parser.js'
import { refusals } from '../domain/refusal.js'
import { noteLegacyForwarding } from './call.js'
import { isThere, readerOf, refuseProviding, refuseProvidingOfOwner } from './document-rights.js'
import { replyWithList } from './list-body.js'
import type { Reply } from './reply.js'
import { jsonPayload, oneScope, type Request, tenantOf } from './request.js'
import type { MayReach } from './subscriptions.js'

/** The tenant, the path and the id, which are filled in after the body has passed its checks. */
const noHead: RegistrationHead = { id: '', tenant: '', servicePath: '' }

export class RegistrationHandlers {
  constructor(
    private readonly registrations: RegistrationOperations,
    private readonly mayAsk: MayReach,
    private readonly processes: Pick<AdminOperations, 'all'>,
  ) {}

  create(request: Request, reply: Reply, body: Uint8Array): void {
    const payload = jsonPayload(request, body)
    if (!payload.ok) return reply.refuse(payload.refusal)
    const wanted = parseRegistration(payload.value, noHead)
    if (!wanted.ok) return reply.refuse(wanted.refusal)
    const { url } = wanted.value.provider
    if (!this.mayAsk(url)) return reply.refuse(refusals.providerUrlDenied(url))
    const scope = oneScope(request)
    if (!scope.ok) return reply.refuse(scope.refusal)
    const { tenant, path } = scope.value
    const { permit } = request
    const registration = {
      ...wanted.value,
      tenant,
      servicePath: path,
      ...(permit && { owner: permit.asker.source }),
    }
    const refusal = refuseProviding(permit, registration)
    if (refusal) return reply.refuse(refusal)
    this.registrations.create(registration, result => {
      if (!result.ok) return reply.refuse(result.refusal)
      noteLegacyForwarding(wanted.value, 'creation', result.value, reply.call)
      reply.call?.audit?.created(result.value)
      reply.created(`/v2/registrations/${result.value}`, false)
    })
  }

  list(request: Request, reply: Reply): void {
    const tenant = tenantOf(request)
    if (!tenant.ok) return reply.refuse(tenant.refusal)
    const { limit, offset, options } = request.parameters
    // Only the first path of a list counts (docs/interface/subscriptions.md#list).
    const servicePath = request.paths[0]
    const reader = readerOf(request.permit, tenant.value)
    this.registrations.list({ tenant: tenant.value, servicePath, offset, limit, reader }, result => {
      if (!result.ok) return reply.refuse(result.refusal)
      const { registrations, total } = result.value
      for (const one of registrations) noteLegacyForwarding(one, 'retrieval', one.id, reply.call)
      this.withOutcomes(registrations, outcomes => {
        const render = (at: number): string => {
          const registration = registrations[at]!
          return renderRegistration(registration, outcomes.get(registration.id))
        }
        replyWithList(reply, { length: registrations.length, render }, options.has('count') ? total : undefined)
      })
    })
  }

  retrieve(request: Request, reply: Reply): void {
    const tenant = tenantOf(request)
    if (!tenant.ok) return reply.refuse(tenant.refusal)
    this.find(request, reply, tenant.value, registration => {
      noteLegacyForwarding(registration, 'retrieval', registration.id, reply.call)
      this.withOutcomes([registration], outcomes =>
        reply.json(renderRegistration(registration, outcomes.get(registration.id))),
      )
    })
  }

  /** Adds what the processes have counted. Without registrations none is asked. */
  private withOutcomes(
    registrations: readonly Registration[],
    onOutcomes: (outcomes: ReadonlyMap<string, ForwardingOutcome>) => void,
  ): void {
    const outcomes = new Map<string, ForwardingOutcome>()
    if (registrations.length === 0) return onOutcomes(outcomes)
    this.processes.all({ what: 'forwarding', registrations: registrations.map(({ id }) => id) }, parts => {
      for (const outcome of parts.flat()) {
        const known = outcomes.get(outcome.registration)
        outcomes.set(outcome.registration, known ? joinOutcomes(known, outcome) : outcome)
      }
      onOutcomes(outcomes)
    })
  }

  /** Calls back with the registration, if it is there for the request; refuses the request otherwise. */
  private find(
    { permit, components }: Request,
    reply: Reply,
    tenant: string,
    onFound: (found: Registration) => void,
  ): void {
    this.registrations.retrieve(tenant, components[2] as string, result => {
      if (!result.ok) return reply.refuse(result.refusal)
      if (!isThere(permit, result.value, tenant)) return reply.refuse(refusals.registrationNotFound)
      onFound(result.value)
    })
  }

  change(request: Request, reply: Reply, body: Uint8Array): void {
    const payload = jsonPayload(request, body)
    if (!payload.ok) return reply.refuse(payload.refusal)
    const refusal = checkRegistrationPatch(payload.value)
    if (refusal) return reply.refuse(refusal)
    const url = patchedProvider(payload.value)
    if (url !== undefined && !this.mayAsk(url)) return reply.refuse(refusals.providerUrlDenied(url))
    const tenant = tenantOf(request)
    if (!tenant.ok) return reply.refuse(tenant.refusal)
    const id = request.components[2] as string
    const change = { tenant: tenant.value, id, payload: payload.value }
    const carryOut = (): void => this.registrations.change(change, result => reply.conclude(result))
    const { permit } = request
    if (!permit) return carryOut()
    const given = providedByPatch(payload.value)
    this.find(request, reply, tenant.value, registration => {
      const changed = given ? { ...registration, dataProvided: given } : registration
      const refusal = refuseProviding(permit, changed) ?? refuseProvidingOfOwner(permit, changed)
      if (refusal) reply.refuse(refusal)
      else carryOut()
    })
  }

  remove(request: Request, reply: Reply): void {
    const tenant = tenantOf(request)
    if (!tenant.ok) return reply.refuse(tenant.refusal)
    const id = request.components[2] as string
    const remove = (): void => this.registrations.remove(tenant.value, id, result => reply.conclude(result))
    if (request.permit) this.find(request, reply, tenant.value, remove)
    else remove()
  }
}

/** The URL in a patch; undefined: none. The owner checks its form. */
function patchedProvider({ value }: Payload): string | undefined {
  const provider = isObject(value) ? value.provider : undefined
  const http = isObject(provider) ? provider.http : undefined
  return isObject(http) && typeof http.url === 'string' ? http.url : undefined
}
