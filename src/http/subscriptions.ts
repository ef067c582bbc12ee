// Handlers of /v2/subscriptions and /v2/subscriptions/{id} (subscriptions.md §2).
//
// The order inside each is that of entities.md §1.1: payload, tenant, path, operation. So whether there is such a subscription is asked last,
// and only a retrieval tells an id that none can have from one that none has (§2.3, §2.4, §2.6).

import type { SubscriptionOperations } from '../broker/subscriptions.js'
import { checkSubscriptionId, watchedPath } from '../domain/subscription.js'
import { renderSubscription } from '../domain/subscription-json.js'
import { checkPatch, parseSubscription, type SubscriptionHead } from '../domain/subscription-parser.js'
import type { Clock } from '../ports.js'
import type { Reply } from './reply.js'
import { jsonPayload, type Request, tenantOf } from './request.js'

/** Whose it is, where it watches and what it is called is looked at when its body is right. */
const noHead: SubscriptionHead = { id: '', tenant: '', servicePath: '' }

export class SubscriptionHandlers {
  private readonly subscriptions: SubscriptionOperations
  private readonly clock: Pick<Clock, 'wallMs'>

  constructor(subscriptions: SubscriptionOperations, clock: Pick<Clock, 'wallMs'>) {
    this.subscriptions = subscriptions
    this.clock = clock
  }

  create(request: Request, reply: Reply, body: Uint8Array): void {
    const payload = jsonPayload(request, body)
    if (!payload.ok) return reply.refuse(payload.refusal)
    const wanted = parseSubscription(payload.value, noHead)
    if (!wanted.ok) return reply.refuse(wanted.refusal)
    const tenant = tenantOf(request)
    if (!tenant.ok) return reply.refuse(tenant.refusal)
    const path = watchedPath(request.paths)
    if (!path.ok) return reply.refuse(path.refusal)
    this.subscriptions.create({ ...wanted.value, tenant: tenant.value, servicePath: path.value }, result => {
      if (result.ok) reply.created(`/v2/subscriptions/${result.value}`, false)
      else reply.refuse(result.refusal)
    })
  }

  list(request: Request, reply: Reply): void {
    const tenant = tenantOf(request)
    if (!tenant.ok) return reply.refuse(tenant.refusal)
    const { limit, offset, options } = request.parameters
    // Of a list of paths the first one counts (§2.5).
    const servicePath = request.paths[0]
    this.subscriptions.list({ tenant: tenant.value, servicePath, offset, limit }, result => {
      if (!result.ok) return reply.refuse(result.refusal)
      const { subscriptions, total } = result.value
      const nowMs = this.clock.wallMs()
      const items = subscriptions.map(({ subscription, progress }) => renderSubscription(subscription, progress, nowMs))
      reply.json(`[${items.join(',')}]`, options.has('count') ? total : undefined)
    })
  }

  retrieve(request: Request, reply: Reply): void {
    const id = request.components[2] as string
    const refusal = checkSubscriptionId(id)
    if (refusal) return reply.refuse(refusal)
    const tenant = tenantOf(request)
    if (!tenant.ok) return reply.refuse(tenant.refusal)
    this.subscriptions.retrieve(tenant.value, id, result => {
      if (!result.ok) return reply.refuse(result.refusal)
      const { subscription, progress } = result.value
      reply.json(renderSubscription(subscription, progress, this.clock.wallMs()))
    })
  }

  change(request: Request, reply: Reply, body: Uint8Array): void {
    const payload = jsonPayload(request, body)
    if (!payload.ok) return reply.refuse(payload.refusal)
    const refusal = checkPatch(payload.value)
    if (refusal) return reply.refuse(refusal)
    const tenant = tenantOf(request)
    if (!tenant.ok) return reply.refuse(tenant.refusal)
    const path = watchedPath(request.paths)
    if (!path.ok) return reply.refuse(path.refusal)
    const id = request.components[2] as string
    const change = { tenant: tenant.value, id, servicePath: path.value, payload: payload.value }
    this.subscriptions.change(change, result => {
      if (result.ok) reply.done()
      else reply.refuse(result.refusal)
    })
  }

  remove(request: Request, reply: Reply): void {
    const tenant = tenantOf(request)
    if (!tenant.ok) return reply.refuse(tenant.refusal)
    this.subscriptions.remove(tenant.value, request.components[2] as string, result => {
      if (result.ok) reply.done()
      else reply.refuse(result.refusal)
    })
  }
}
