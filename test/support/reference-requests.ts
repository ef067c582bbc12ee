// The queries and changes of the reference as HTTP requests.

import type { Change, GivenAttribute, Json, Named, Outcome } from './reference-entities.js'
import type { Query, Selector } from './reference-query.js'

export interface HttpRequest {
  readonly method: string
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  /** JSON; undefined: no body. */
  readonly body?: string
}

// Queries

export function queryRequest(query: Query): HttpRequest {
  const { paths, shown, orderBy, limit, offset, counted } = query
  const headers = paths ? { 'Ctx-ServicePath': paths.join(',') } : noHeaders
  const options = [...(shown.mode === 'normalized' ? [] : [shown.mode]), ...(counted ? ['count'] : [])]
  const page = {
    limit: limit?.toString(),
    offset: offset?.toString(),
    orderBy: orderBy?.map(({ name, descending }) => `${descending ? '!' : ''}${name}`).join(','),
    options: options.length === 0 ? undefined : options.join(','),
  }
  if (query.form === 'POST')
    return { method: 'POST', target: `/v2/op/query${parameters(page)}`, headers, body: JSON.stringify(payload(query)) }
  const [selector = {}] = query.selectors
  const given = {
    id: selector.ids?.join(','),
    idPattern: selector.idPattern,
    type: selector.types?.join(','),
    typePattern: selector.typePattern,
    ...expressionOf(query),
    attrs: shown.attrs?.join(','),
    metadata: shown.metadata?.join(','),
    ...page,
  }
  return { method: 'GET', target: `/v2/entities${parameters(given)}`, headers }
}

const noHeaders: Readonly<Record<string, string>> = {}

function payload(query: Query): Readonly<Record<string, unknown>> {
  const { selectors, attributes, shown } = query
  const expression = expressionOf(query)
  return {
    entities: selectors.map(payloadSelector),
    ...(Object.values(expression).some(text => text !== undefined) && { expression }),
    ...(attributes ? { attributes } : shown.attrs && { attrs: shown.attrs }),
    ...(shown.metadata && { metadata: shown.metadata }),
  }
}

/**
 * A selector of a payload names one id or a pattern, and one type, a pattern or none (docs/interface/batch.md#query).
 */
function payloadSelector({ ids, idPattern = '.*', types, typePattern }: Selector): Readonly<Record<string, unknown>> {
  const [id] = ids ?? []
  const [type] = types ?? []
  return {
    ...(id === undefined ? { idPattern } : { id }),
    ...(type !== undefined && { type }),
    ...(typePattern !== undefined && { typePattern }),
  }
}

const expressionOf = ({ q, mq, geo }: Query) => ({
  q: q?.map(({ text }) => text).join(';'),
  mq: mq?.map(({ text }) => text).join(';'),
  georel: geo?.georel,
  geometry: geo?.geometry,
  coords: geo?.coords,
})

function parameters(given: Readonly<Record<string, string | undefined>>): string {
  const words = Object.entries(given).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
  )
  return words.length === 0 ? '' : `?${words.join('&')}`
}

// Changes

/** One change by itself. `short`: as `keyValues`, if no part is lost by that. */
export function changeRequest(change: Change, short = false): HttpRequest {
  const { path, id, type } = change
  const headers = path === '/' ? noHeaders : { 'Ctx-ServicePath': path }
  const place = `/v2/entities/${encodeURIComponent(id)}`
  const isShort = short && 'given' in change && Array.isArray(change.given) && change.given.every(isBare)
  const asked = [
    ...(isShort ? ['keyValues'] : []),
    ...('override' in change && change.override ? ['overrideMetadata'] : []),
    ...('forced' in change && change.forced ? ['forcedUpdate'] : []),
  ]
  const request = (method: string, rest: string, body?: string, ...options: string[]): HttpRequest => {
    const all = [...options, ...asked].join(',')
    const target = place + rest + parameters({ type, options: all === '' ? undefined : all })
    return body === undefined ? { method, target, headers } : { method, target, headers, body }
  }
  const upserted = (...options: string[]): HttpRequest => {
    const all = [...options, ...asked].join(',')
    const target = `/v2/entities${parameters({ options: all === '' ? undefined : all })}`
    return { method: 'POST', target, headers, body: entityText(change, isShort) }
  }
  switch (change.action) {
    case 'create':
      return upserted()
    case 'append':
      if (change.creates) return upserted('upsert')
      return request('POST', '/attrs', attributesText(change.given, isShort))
    case 'appendStrict':
      return request('POST', '/attrs', attributesText(change.given, isShort), 'append')
    case 'update':
      return request('PATCH', '/attrs', attributesText(change.given, isShort))
    case 'replace':
      return request('PUT', '/attrs', attributesText(change.given, isShort))
    case 'updateOne':
      return request('PUT', `/attrs/${encodeURIComponent(change.name)}`, attributeText(change.given))
    case 'updateValue':
      return request('PUT', `/attrs/${encodeURIComponent(change.name)}/value`, JSON.stringify(change.value))
    case 'deleteSome':
      return request('DELETE', `/attrs/${encodeURIComponent(change.names[0] as string)}`)
    case 'deleteEntity':
      return request('DELETE', '')
  }
}

/** The status for the outcome of a single change. */
export function statusOf(change: Change, outcome: Outcome): number {
  switch (outcome) {
    case 'done':
      return change.action === 'create' ? 201 : 204
    case 'no entity':
      return 404
    case 'no attribute':
      return change.action === 'update' ? 422 : 404
    case 'second location':
      return 413
    case 'partly':
    case 'exists':
      return 422
  }
}

export type BatchAction = 'append' | 'appendStrict' | 'update' | 'replace' | 'delete'

/** Changes of one kind and path as one batch. */
export function batchRequest(actionType: BatchAction, changes: readonly Change[]): HttpRequest {
  const [first] = changes as readonly [Change]
  const headers = first.path === '/' ? noHeaders : { 'Ctx-ServicePath': first.path }
  const body = `{"actionType":"${actionType}","entities":[${changes.map(change => entityText(change, false)).join()}]}`
  const options = [
    ...('override' in first && first.override ? ['overrideMetadata'] : []),
    ...('forced' in first && first.forced ? ['forcedUpdate'] : []),
  ]
  const target = `/v2/op/update${parameters({ options: options.length === 0 ? undefined : options.join(',') })}`
  return { method: 'POST', target, headers, body }
}

function entityText(change: Change, short: boolean): string {
  const { id, type } = change
  const given = 'given' in change && Array.isArray(change.given) ? attributeMembers(change.given, short) : []
  const deleted = 'names' in change ? change.names.map(name => [name, '{"value":null}'] as const) : []
  return objectText([['id', JSON.stringify(id)], ['type', JSON.stringify(type)], ...given, ...deleted])
}

const attributesText = (given: Named<GivenAttribute>, short: boolean): string =>
  objectText(attributeMembers(given, short))

const attributeMembers = (given: Named<GivenAttribute>, short: boolean): Named<string> =>
  given.map(([name, one]) => [name, short ? JSON.stringify(one.value as Json) : attributeText(one)] as const)

function attributeText({ type, value, metadata }: GivenAttribute): string {
  const members: [string, string][] = []
  if (value !== undefined) members.push(['value', JSON.stringify(value)])
  if (type !== undefined) members.push(['type', JSON.stringify(type)])
  if (metadata) members.push(['metadata', objectText(metadata.map(([name, one]) => [name, attributeText(one)]))])
  return objectText(members)
}

const isBare = ([, { type, value, metadata }]: readonly [string, GivenAttribute]): boolean =>
  type === undefined && value !== undefined && metadata === undefined

const objectText = (members: Named<string>): string =>
  `{${members.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join()}}`
