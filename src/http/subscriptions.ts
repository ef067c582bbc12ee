// Handlers of /v2/subscriptions, /v2/subscriptions/{id} (docs/interface/subscriptions.md#create) and our additions
// below it: /deliveries and /deliveries/retry.
//
// The order inside each is that of docs/interface/requests.md#order-of-checks: payload, tenant, path, operation. So the
// existence of the subscription is checked last. Only a retrieval and our additions distinguish an id of an impossible
// form from an id that is not found (docs/interface/subscriptions.md#change, docs/interface/subscriptions.md#read,
// docs/interface/subscriptions.md#remove).

import type { SubscriptionOperations } from '../broker/documents.js'
import type { Entities } from '../broker/entities.js'
import { refuseAction } from '../domain/access/grant.js'
import { renderDateTime } from '../domain/date-time.js'
import { checkIdentifier, type Entity, type Payload } from '../domain/entities/entity.js'
import { isObject } from '../domain/json.js'
import { accepted, type Result, refusals, refused } from '../domain/refusal.js'
import { explain } from '../domain/subscriptions/explanation.js'
import { checkSubscriptionId, watchedPath } from '../domain/subscriptions/subscription.js'
import { renderSubscription } from '../domain/subscriptions/subscription-json.js'
import {
  checkPatch,
  parseSubscription,
  type SubscriptionHead,
  subjectOfPatch,
} from '../domain/subscriptions/subscription-parser.js'
import { decodeEntity } from '../encoded-entity.js'
import type { DeliveryRecord, DeliveryReport, KnownSubscription } from '../messages/messages.js'
import type { Clock } from '../ports.js'
import { noteLegacyFormat } from './call.js'
import { isThere, readerOf } from './document-rights.js'
import { readScope } from './entity-rights.js'
import { replyWithList } from './list-body.js'
import type { Reply } from './reply.js'
import { jsonPayload, type Request, tenantOf } from './request.js'
import { refuseOfOwner, refuseSubscription, reportShownBy, shownBy } from './subscription-rights.js'

/** Whether messages may be sent to a URL, as far as the URL shows it (docs/operations/egress.md). */
export type MayReach = (url: string) => boolean

/** The tenant, the path and the id, which are filled in after the body has passed its checks. */
const noHead: SubscriptionHead = { id: '', tenant: '', servicePath: '' }

export class SubscriptionHandlers {
  /** `entities`: finds the entity for an explanation. */
  constructor(
    private readonly subscriptions: SubscriptionOperations,
    private readonly entities: Entities,
    private readonly clock: Pick<Clock, 'wallMs' | 'monoMs' | 'endOfTick'>,
    private readonly mayNotify: MayReach,
  ) {}

  create(request: Request, reply: Reply, body: Uint8Array): void {
    const payload = jsonPayload(request, body)
    if (!payload.ok) return reply.refuse(payload.refusal)
    const wanted = parseSubscription(payload.value, noHead)
    if (!wanted.ok) return reply.refuse(wanted.refusal)
    const { url } = wanted.value.notification.transport
    if (!this.mayNotify(url)) return reply.refuse(refusals.notificationUrlDenied(url))
    const tenant = tenantOf(request)
    if (!tenant.ok) return reply.refuse(tenant.refusal)
    const path = watchedPath(request.paths)
    if (!path.ok) return reply.refuse(path.refusal)
    const owner = request.permit && { owner: request.permit.asker.source }
    const subscription = { ...wanted.value, tenant: tenant.value, servicePath: path.value, ...owner }
    const refusal = refuseSubscription(request.permit, subscription)
    if (refusal) return reply.refuse(refusal)
    this.subscriptions.create(subscription, result => {
      if (!result.ok) return reply.refuse(result.refusal)
      noteLegacyFormat(wanted.value, 'creation', result.value, reply.call)
      reply.call?.audit?.created(result.value)
      reply.created(`/v2/subscriptions/${result.value}`, false)
    })
  }

  list(request: Request, reply: Reply): void {
    const tenant = tenantOf(request)
    if (!tenant.ok) return reply.refuse(tenant.refusal)
    const { limit, offset, options } = request.parameters
    // Only the first path of a list counts (docs/interface/subscriptions.md#list).
    const servicePath = request.paths[0]
    const reader = readerOf(request.permit, tenant.value)
    this.subscriptions.list({ tenant: tenant.value, servicePath, offset, limit, reader }, result => {
      if (!result.ok) return reply.refuse(result.refusal)
      const { subscriptions, total } = result.value
      const nowMs = this.clock.wallMs()
      for (const { subscription } of subscriptions)
        noteLegacyFormat(subscription, 'retrieval', subscription.id, reply.call)
      const render = (index: number): string => {
        const { subscription, progress } = subscriptions[index]!
        return renderSubscription(subscription, progress, nowMs)
      }
      replyWithList(reply, { length: subscriptions.length, render }, options.has('count') ? total : undefined)
    })
  }

  retrieve(request: Request, reply: Reply): void {
    if (request.parameters.options.has('explain')) return this.explain(request, reply)
    const named = namedSubscription(request)
    if (!named.ok) return reply.refuse(named.refusal)
    this.find(request, reply, named.value, ({ subscription, progress }) => {
      noteLegacyFormat(subscription, 'retrieval', subscription.id, reply.call)
      reply.json(renderSubscription(subscription, progress, this.clock.wallMs()))
    })
  }

  /** Calls back with the subscription, if it is there for the request; refuses the request otherwise. */
  private find(
    { permit }: Request,
    reply: Reply,
    { tenant, id }: NamedSubscription,
    onFound: (known: KnownSubscription) => void,
  ): void {
    this.subscriptions.retrieve(tenant, id, result => {
      if (!result.ok) return reply.refuse(result.refusal)
      if (!isThere(permit, result.value.subscription, tenant)) return reply.refuse(refusals.subscriptionNotFound)
      onFound(result.value)
    })
  }

  /** Retrieval with `options=explain`: how the subscription treats one stored entity. */
  private explain(request: Request, reply: Reply): void {
    const { values } = request.parameters
    const id = values.get('entity')
    if (id === undefined) return reply.refuse(refusals.explainWithoutEntity)
    const refusal = checkIdentifier('entity id', id)
    if (refusal) return reply.refuse(refusal)
    const named = namedSubscription(request)
    if (!named.ok) return reply.refuse(named.refusal)
    const scope = readScope(request)
    if (!scope.ok) return reply.refuse(scope.refusal)
    const { permit } = request
    const grant = permit?.asker.grant('subscribe', scope.value.tenant, scope.value.paths)
    if (grant?.kind === 'denied') return reply.refuse(refuseAction('subscribe', scope.value))
    const condition = grant?.kind === 'narrowed' ? grant.condition : undefined
    this.find(request, reply, named.value, known => {
      const target = { ...scope.value, id, type: values.get('type'), grant: condition }
      this.entities.retrieve(target, found => {
        if (!found.ok) return reply.refuse(found.refusal)
        const { encoded, path } = found.value
        const whole = decodeEntity(encoded)
        const seen = condition ? condition.seen(whole, path) : whole
        const entity = seen && shownBy(permit, known.subscription, seen, path)
        if (!entity) return reply.refuse(refusals.entityNotFound)
        reply.json(renderExplanation(known, entity, path, this.clock.wallMs()))
      })
    })
  }

  deliveries(request: Request, reply: Reply): void {
    const named = namedSubscription(request)
    if (!named.ok) return reply.refuse(named.refusal)
    const { tenant, id } = named.value
    const send = (shown: (report: DeliveryReport) => DeliveryReport): void =>
      this.subscriptions.deliveries(tenant, id, request.parameters.limit, result => {
        if (result.ok) reply.json(renderDeliveries(shown(result.value)))
        else reply.refuse(result.refusal)
      })
    const { permit } = request
    if (!permit) return send(report => report)
    this.find(request, reply, named.value, ({ subscription }) =>
      send(report => reportShownBy(permit, subscription, report)),
    )
  }

  retryDeliveries(request: Request, reply: Reply): void {
    const named = namedSubscription(request)
    if (!named.ok) return reply.refuse(named.refusal)
    const { tenant, id } = named.value
    const retry = (): void =>
      this.subscriptions.retryDeliveries(tenant, id, result => {
        if (result.ok) reply.json(JSON.stringify({ retried: result.value }))
        else reply.refuse(result.refusal)
      })
    this.ifThere(request, reply, named.value, retry)
  }

  change(request: Request, reply: Reply, body: Uint8Array): void {
    const payload = jsonPayload(request, body)
    if (!payload.ok) return reply.refuse(payload.refusal)
    const refusal = checkPatch(payload.value)
    if (refusal) return reply.refuse(refusal)
    const url = patchedUrl(payload.value)
    if (url !== undefined && !this.mayNotify(url)) return reply.refuse(refusals.notificationUrlDenied(url))
    const tenant = tenantOf(request)
    if (!tenant.ok) return reply.refuse(tenant.refusal)
    const path = watchedPath(request.paths)
    if (!path.ok) return reply.refuse(path.refusal)
    const id = request.components[2] as string
    const change = { tenant: tenant.value, id, servicePath: path.value, payload: payload.value }
    const carryOut = (): void => this.subscriptions.change(change, result => reply.conclude(result))
    const { permit } = request
    if (!permit) return carryOut()
    const place = { tenant: tenant.value, servicePath: path.value }
    const subject = subjectOfPatch(payload.value)
    const early = subject && refuseSubscription(permit, { ...subject, ...place })
    if (early) return reply.refuse(early)
    this.find(request, reply, { tenant: tenant.value, id }, ({ subscription }) => {
      const changed = { ...subscription, ...subject, ...place }
      const refusal = refuseSubscription(permit, changed) ?? refuseOfOwner(permit, changed)
      if (refusal) reply.refuse(refusal)
      else carryOut()
    })
  }

  remove(request: Request, reply: Reply): void {
    const tenant = tenantOf(request)
    if (!tenant.ok) return reply.refuse(tenant.refusal)
    const id = request.components[2] as string
    this.ifThere(request, reply, { tenant: tenant.value, id }, () =>
      this.subscriptions.remove(tenant.value, id, result => reply.conclude(result)),
    )
  }

  /** With access control, calls back only if the subscription is there for the request. */
  private ifThere(request: Request, reply: Reply, named: NamedSubscription, carryOut: () => void): void {
    if (request.permit) this.find(request, reply, named, carryOut)
    else carryOut()
  }
}

interface NamedSubscription {
  readonly tenant: string
  readonly id: string
}

/** The subscription in the path, if the id has a possible form (docs/interface/subscriptions.md#read). */
function namedSubscription(request: Request): Result<NamedSubscription> {
  const id = request.components[2] as string
  const refusal = checkSubscriptionId(id)
  if (refusal) return refused(refusal)
  const tenant = tenantOf(request)
  return tenant.ok ? accepted({ tenant: tenant.value, id }) : tenant
}

function renderExplanation(
  { subscription, progress }: KnownSubscription,
  entity: Entity,
  path: string,
  nowMs: number,
): string {
  const { id, type } = entity
  const about = { subscription: subscription.id, entity: { id, type, servicePath: path } }
  return JSON.stringify({ ...about, ...explain(subscription, progress, entity, path, nowMs) })
}

/** The URL in a patch; undefined: none. Its form was checked, or the owner will check it. */
function patchedUrl({ value }: Payload): string | undefined {
  const notification = isObject(value) ? value.notification : undefined
  if (!isObject(notification)) return undefined
  for (const kind of ['http', 'httpCustom', 'mqtt', 'mqttCustom']) {
    const transport = notification[kind]
    if (isObject(transport) && typeof transport.url === 'string') return transport.url
  }
  return undefined
}

/** A report on a subscription's notifications as JSON. Both lists begin with the latest. */
const renderDeliveries = ({ deliveries, deadLetters, deadCount }: DeliveryReport): string =>
  JSON.stringify({
    deliveries: deliveries.map(shown),
    deadLetters: deadLetters.map(letter => ({ ...shown(letter), ...shownReplay(letter) })),
    deadLettersCount: deadCount,
  })

/** Why it became a dead letter, and the earliest time at which the broker sends it again by itself. */
const shownReplay = ({ cause, nextReplayMs }: DeliveryRecord) => ({
  cause,
  nextReplay: nextReplayMs === undefined ? undefined : renderDateTime(nextReplayMs),
})

const shown = ({ atMs, id, type, path, notificationId, attempt, outcome, code, reason }: DeliveryRecord) => ({
  time: renderDateTime(atMs),
  entity: { id, type, servicePath: path },
  notificationId,
  attempt,
  outcome,
  code,
  reason: reason === '' ? undefined : reason,
})
