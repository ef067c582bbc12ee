// The requests of the campaign as their meaning, and as HTTP.
//
// Not here: the random choice of requests (random-access-request), the expected answers (reference-answers).

import type { Change, JsonObject } from '../support/reference-entities.js'
import type { Query, Selector } from '../support/reference-query.js'
import {
  type BatchAction,
  batchRequest,
  changeRequest,
  type HttpRequest,
  queryRequest,
} from '../support/reference-requests.js'
import type { Element, Subscription } from '../support/reference-subscriptions.js'
import { providedTarget } from './access-provider.js'

/** A change, and whether the request names the type of its entity. Without a type, `change.type` has no meaning. */
export interface WantedChange {
  readonly change: Change
  readonly isTyped: boolean
}

export interface WantedRegistration {
  readonly elements: readonly Element[]
  readonly attrs: readonly string[]
}

/** An operation on one of the subscriptions or registrations that the reference has; `at`: its number there. */
type DocumentRequest =
  | { readonly kind: 'list subscriptions' }
  | { readonly kind: 'list registrations' }
  | { readonly kind: 'subscription'; readonly at: number }
  | { readonly kind: 'unsubscribe'; readonly at: number }
  | { readonly kind: 'registration'; readonly at: number }
  | { readonly kind: 'unregister'; readonly at: number }
  | { readonly kind: 'subscribe'; readonly subscription: Subscription; readonly isCustom: boolean }
  | {
      readonly kind: 'change subscription'
      readonly at: number
      readonly subscription: Subscription
      readonly isCustom: boolean
    }
  | { readonly kind: 'register'; readonly registration: WantedRegistration }

export type AccessRequest = {
  readonly tenant: string
  /** Items of the header; undefined: no header. */
  readonly paths?: readonly string[] | undefined
} & (
  | { readonly kind: 'entities'; readonly query: Query }
  | {
      readonly kind: 'entity'
      readonly id: string
      readonly type?: string | undefined
      readonly attrs?: readonly string[] | undefined
      readonly part: 'entity' | 'attributes'
    }
  | {
      readonly kind: 'attribute'
      readonly id: string
      readonly type?: string | undefined
      readonly name: string
      readonly part: 'attribute' | 'value'
    }
  | { readonly kind: 'types'; readonly detail: 'all' | 'values' | 'noAttrDetail' }
  | { readonly kind: 'type'; readonly type: string }
  | ({ readonly kind: 'change' } & WantedChange)
  | { readonly kind: 'batch'; readonly action: BatchAction; readonly changes: readonly WantedChange[] }
  | { readonly kind: 'notify'; readonly deletes: boolean; readonly changes: readonly WantedChange[] }
  | { readonly kind: 'provided'; readonly form: 'entity' | 'list' | 'query'; readonly isTyped: boolean }
  | { readonly kind: 'look'; readonly at: number; readonly part: 'explain' | 'deliveries'; readonly id: string }
  | DocumentRequest
  | { readonly kind: 'plain'; readonly target: string; readonly needs: 'nothing' | 'principal' | 'admin' | 'metrics' }
)

/** The requests of some kinds. */
export type RequestOf<K extends AccessRequest['kind']> = Extract<AccessRequest, { readonly kind: K }>

/** Facts that only the test knows: ids that the broker has made, and the address of the receiver. */
export interface Known {
  /** The broker's id of the subscription or registration with this number. */
  idOf(at: number): string
  /** The URL for the notifications of the next subscription, or of the one with this number. */
  urlOf(at: number | undefined): string
}

export function httpOf(request: AccessRequest, known: Known): HttpRequest {
  const { method, target, headers, body } = plainHttpOf(request, known)
  const { paths, tenant } = request
  return {
    method,
    target,
    headers: {
      ...headers,
      ...(paths && { 'Ctx-ServicePath': paths.join(',') }),
      ...(tenant !== '' && { 'Ctx-Service': tenant }),
    },
    ...(body !== undefined && { body }),
  }
}

function plainHttpOf(request: AccessRequest, known: Known): HttpRequest {
  const get = (target: string): HttpRequest => ({ method: 'GET', target, headers: {} })
  switch (request.kind) {
    case 'entities':
      return queryRequest(request.query)
    case 'entity': {
      const { id, type, attrs, part } = request
      const words = [type === undefined ? '' : `type=${type}`, attrs ? `attrs=${attrs.join(',')}` : '']
      const parameters = words.filter(word => word !== '').join('&')
      return get(`/v2/entities/${id}${part === 'entity' ? '' : '/attrs'}${parameters === '' ? '' : `?${parameters}`}`)
    }
    case 'attribute': {
      const { id, type, name, part } = request
      const target = `/v2/entities/${id}/attrs/${name}${part === 'value' ? '/value' : ''}`
      return get(type === undefined ? target : `${target}?type=${type}`)
    }
    case 'types':
      return get(`/v2/types?limit=1000&options=count${request.detail === 'all' ? '' : `,${request.detail}`}`)
    case 'type':
      return get(`/v2/types/${request.type}`)
    case 'change':
      return changeHttp(request)
    case 'batch':
      return batchHttp(request.action, request.changes)
    case 'notify':
      return notifyHttp(request.deletes, request.changes)
    case 'plain':
      return get(request.target)
    case 'provided':
      return providedHttp(request)
    case 'look': {
      const target = `/v2/subscriptions/${known.idOf(request.at)}`
      return get(
        request.part === 'deliveries' ? `${target}/deliveries` : `${target}?options=explain&entity=${request.id}`,
      )
    }
    default:
      return documentHttp(request, known)
  }
}

function changeHttp({ change, isTyped }: WantedChange): HttpRequest {
  const { body, ...request } = changeRequest(change)
  const isInBody = change.action === 'create' || ('creates' in change && change.creates)
  if (isTyped) return body === undefined ? request : { ...request, body }
  if (isInBody) return { ...request, body: JSON.stringify(withoutType(JSON.parse(body as string))) }
  const target = request.target.replace(`type=${change.type}`, '').replace(/\?$/, '').replace('?&', '?')
  return { ...request, target, ...(body !== undefined && { body }) }
}

const withoutType = ({ type: _type, ...rest }: JsonObject): JsonObject => rest

/** The items of a batch, each with or without its type. */
function itemsOf(changes: readonly WantedChange[]): {
  readonly request: HttpRequest
  readonly items: readonly JsonObject[]
} {
  const request = batchRequest(
    'append',
    changes.map(({ change }) => change),
  )
  const { entities } = JSON.parse(request.body as string) as { entities: readonly JsonObject[] }
  return { request, items: entities.map((one, at) => (changes[at]!.isTyped ? one : withoutType(one))) }
}

function batchHttp(actionType: BatchAction, changes: readonly WantedChange[]): HttpRequest {
  const { request, items } = itemsOf(changes)
  return { ...request, body: JSON.stringify({ actionType, entities: items }) }
}

function notifyHttp(deletes: boolean, changes: readonly WantedChange[]): HttpRequest {
  const { request, items } = itemsOf(changes)
  const body = JSON.stringify({ subscriptionId: '0'.repeat(24), data: items })
  const headers = { ...request.headers, ...(deletes && { 'Ctx-Alteration': 'entityDelete' }) }
  return { method: 'POST', target: '/v2/op/notify', headers, body }
}

function providedHttp({ form, isTyped }: RequestOf<'provided'>): HttpRequest {
  const { id, type } = providedTarget
  const parameter = isTyped ? `type=${type}` : ''
  if (form === 'entity')
    return { method: 'GET', target: `/v2/entities/${id}?${parameter}`.replace(/\?$/, ''), headers: {} }
  if (form === 'list')
    return { method: 'GET', target: `/v2/entities?id=${id}&${parameter}`.replace(/&$/, ''), headers: {} }
  const body = JSON.stringify({ entities: [{ id, ...(isTyped && { type }) }] })
  return { method: 'POST', target: '/v2/op/query', headers: {}, body }
}

function documentHttp(request: DocumentRequest, known: Known): HttpRequest {
  const of = (method: string, target: string, body?: unknown): HttpRequest => ({
    method,
    target,
    headers: {},
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  switch (request.kind) {
    case 'list subscriptions':
      return of('GET', '/v2/subscriptions?limit=1000&options=count')
    case 'list registrations':
      return of('GET', '/v2/registrations?limit=1000&options=count')
    case 'subscription':
      return of('GET', `/v2/subscriptions/${known.idOf(request.at)}`)
    case 'registration':
      return of('GET', `/v2/registrations/${known.idOf(request.at)}`)
    case 'unsubscribe':
      return of('DELETE', `/v2/subscriptions/${known.idOf(request.at)}`)
    case 'unregister':
      return of('DELETE', `/v2/registrations/${known.idOf(request.at)}`)
    case 'subscribe':
      return of('POST', '/v2/subscriptions', subscriptionBody(request, known.urlOf(undefined)))
    case 'change subscription':
      return of(
        'PATCH',
        `/v2/subscriptions/${known.idOf(request.at)}`,
        subscriptionBody(request, known.urlOf(request.at)),
      )
    case 'register':
      return of('POST', '/v2/registrations', registrationBody(request.registration, known.urlOf(undefined)))
  }
}

/** The template of custom notifications: two attributes by name, which the lists of the subscription do not concern. */
export const templateNames = ['a', 'b'] as const

function subscriptionBody(
  { subscription, isCustom }: { readonly subscription: Subscription; readonly isCustom: boolean },
  url: string,
): unknown {
  const { elements, attrs, alterationTypes, q, mq, sentAttrs, exceptAttrs, onlyChangedAttrs } = subscription
  const expression = {
    ...(q && { q: q.map(({ text }) => text).join(';') }),
    ...(mq && { mq: mq.map(({ text }) => text).join(';') }),
  }
  const json = Object.fromEntries(['id', ...templateNames].map(name => [name, `\${${name}}`]))
  const lists = exceptAttrs.length > 0 ? { exceptAttrs } : { attrs: sentAttrs }
  return {
    subject: {
      entities: elements,
      condition: {
        attrs,
        alterationTypes,
        notifyOnMetadataChange: subscription.notifyOnMetadataChange,
        ...((q || mq) && { expression }),
      },
    },
    notification: { ...(isCustom ? { httpCustom: { url, json } } : { http: { url } }), ...lists, onlyChangedAttrs },
  }
}

const registrationBody = ({ elements, attrs }: WantedRegistration, url: string): unknown => ({
  dataProvided: { entities: elements, attrs },
  provider: { http: { url }, supportedForwardingMode: 'none' },
})

/** A selector of a list for each element of a subscription. */
export const selectorOf = ({ id, idPattern, type, typePattern }: Element): Selector => ({
  ...(id !== undefined && { ids: [id] }),
  ...(idPattern !== undefined && { idPattern }),
  ...(type !== undefined && { types: [type] }),
  ...(typePattern !== undefined && { typePattern }),
})
