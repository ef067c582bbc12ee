// Handlers of /v2/entities, /v2/entities/{id} and /v2/entities/{id}/attrs (docs/interface/queries.md#lists,
// docs/interface/updates.md#one-entity).
//
// A handler reads the parameters of its operation, asks the broker, and passes the result to the reply. The order
// inside each is that of docs/interface/requests.md#order-of-checks: path identifiers, payload, tenant and scope,
// operation.

import type { Entities } from '../broker/entities.js'
import type { WriteKind } from '../domain/access/writing.js'
import { checkIdentifier, hasIdentifierCharacters, parseAttributes, parseEntity } from '../domain/entities/entity.js'
import type { UpdateOptions } from '../domain/entities/update.js'
import { parseOrder } from '../domain/queries/order.js'
import { compileSelection, type SelectionSource } from '../domain/queries/selection.js'
import { accepted, type Refusal, type Result, refusals, refused } from '../domain/refusal.js'
import type { AttributesRequest, EntityTarget } from '../messages/messages.js'
import { noteOldLocations } from './call.js'
import { readScope, refuseFilters, writeScope } from './entity-rights.js'
import { attributesItem, entityItem, entityItems, replyWithItem, replyWithList, viewOfParameters } from './list-body.js'
import type { Reply } from './reply.js'
import { elsewhereOf, jsonPayload, originOf, outwardOf, type Request } from './request.js'
import { listParameter, type Parameters } from './url.js'

const plainUpdate: UpdateOptions = { overrideMetadata: false, forcedUpdate: false }

export function updateOptions({ parameters: { options } }: Request): UpdateOptions {
  const overrideMetadata = options.has('overrideMetadata')
  const forcedUpdate = options.has('forcedUpdate')
  return overrideMetadata || forcedUpdate ? { overrideMetadata, forcedUpdate } : plainUpdate
}

/** The id of the path (docs/interface/requests.md#paths). */
export function pathId(request: Request): Result<string> {
  const id = request.components[2] as string
  if (id !== '' && !hasIdentifierCharacters(id)) return refused(refusals.charactersInPath)
  const refusal = checkIdentifier('entity id', id)
  return refusal ? refused(refusal) : accepted(id)
}

/** The entity that a write names: id of the path, `type` parameter, scope. `names`: the attributes that it names. */
export function writeTarget(
  request: Request,
  id: string,
  kind: WriteKind,
  names: Iterable<string>,
): Result<EntityTarget> {
  const type = request.parameters.values.get('type')
  const scope = writeScope(request, kind, () => [{ id, type, names: [...names] }])
  return scope.ok ? accepted({ ...scope.value, id, type }) : scope
}

export class EntityHandlers {
  constructor(private readonly entities: Entities) {}

  create(request: Request, reply: Reply, body: Uint8Array): void {
    const { options } = request.parameters
    const payload = jsonPayload(request, body)
    if (!payload.ok) return reply.refuse(payload.refusal)
    const entity = parseEntity(payload.value, options.has('keyValues'))
    if (!entity.ok) return reply.refuse(entity.refusal)
    const upsert = options.has('upsert')
    const { id, type, attributes } = entity.value
    reply.call?.audit?.names(1, id)
    const written = () => [{ id, type, names: [...attributes.keys()] }]
    const scope = writeScope(request, upsert ? 'upsert' : 'create', written)
    if (!scope.ok) return reply.refuse(scope.refusal)
    noteOldLocations(attributes, reply.call)
    this.entities.create(
      scope.value,
      entity.value,
      upsert,
      updateOptions(request),
      originOf(request, reply),
      result => {
        if (result.ok) reply.created(`/v2/entities/${id}?type=${type}`, upsert)
        else reply.refuse(result.refusal)
      },
    )
  }

  list(request: Request, reply: Reply): void {
    const { parameters } = request
    const { values, limit, offset, options } = parameters
    const conflict = incompatible(values)
    if (conflict) return reply.refuse(conflict)
    const selection = compileSelection(selectionOf(parameters))
    if (!selection.ok) return reply.refuse(selection.refusal)
    const scope = readScope(request)
    if (!scope.ok) return reply.refuse(scope.refusal)
    const order = parseOrder(values.get('orderBy'))
    if (!order.ok) return reply.refuse(order.refusal)
    const refusal = refuseFilters(request, scope.value, selection.value, order.value)
    if (refusal) return reply.refuse(refusal)
    const wanted = { ...scope.value, selection: selection.value, order: order.value, offset, limit }
    const elsewhere = elsewhereOf(request, reply, listParameter(parameters, 'attrs'))
    this.entities.listEverywhere(wanted, elsewhere, result => {
      if (!result.ok) return reply.refuse(result.refusal)
      const { entities, total } = result.value
      replyWithList(
        reply,
        entityItems(entities, viewOfParameters(parameters)),
        options.has('count') ? total : undefined,
      )
    })
  }

  retrieve(request: Request, reply: Reply): void {
    const id = pathId(request)
    if (!id.ok) return reply.refuse(id.refusal)
    const scope = readScope(request)
    if (!scope.ok) return reply.refuse(scope.refusal)
    const { parameters } = request
    const type = parameters.values.get('type')
    const elsewhere = elsewhereOf(request, reply, listParameter(parameters, 'attrs'))
    this.entities.retrieveEverywhere({ ...scope.value, id: id.value, type }, elsewhere, result => {
      if (!result.ok) return reply.refuse(result.refusal)
      const shown = result.value
      const itemOf = request.components.length === 3 ? entityItem : attributesItem
      replyWithItem(reply, itemOf(shown, viewOfParameters(parameters)))
    })
  }

  append(request: Request, reply: Reply, body: Uint8Array): void {
    this.changeAttributes(request.parameters.options.has('append') ? 'appendStrict' : 'append', request, reply, body)
  }

  update(request: Request, reply: Reply, body: Uint8Array): void {
    this.changeAttributes('update', request, reply, body)
  }

  replace(request: Request, reply: Reply, body: Uint8Array): void {
    this.changeAttributes('replace', request, reply, body)
  }

  private changeAttributes(kind: AttributesRequest['kind'], request: Request, reply: Reply, body: Uint8Array): void {
    const id = pathId(request)
    if (!id.ok) return reply.refuse(id.refusal)
    const payload = jsonPayload(request, body)
    if (!payload.ok) return reply.refuse(payload.refusal)
    const attributes = parseAttributes(payload.value, request.parameters.options.has('keyValues'))
    if (!attributes.ok) return reply.refuse(attributes.refusal)
    const names = attributes.value.keys()
    const target = writeTarget(request, id.value, kind === 'replace' ? 'replace' : 'update', names)
    if (!target.ok) return reply.refuse(target.refusal)
    const options = updateOptions(request)
    noteOldLocations(attributes.value, reply.call)
    const onResult = (result: Result<undefined>): void => reply.conclude(result)
    const outward = outwardOf(request, reply)
    const origin = originOf(request, reply)
    this.entities.changeAttributes(kind, target.value, attributes.value, options, origin, onResult, outward)
  }

  remove(request: Request, reply: Reply): void {
    const id = pathId(request)
    if (!id.ok) return reply.refuse(id.refusal)
    const target = writeTarget(request, id.value, 'deleteEntity', [])
    if (!target.ok) return reply.refuse(target.refusal)
    this.entities.remove(target.value, originOf(request, reply), result => reply.conclude(result))
  }
}

/** The selection that URL parameters describe (docs/interface/queries.md#lists). */
export function selectionOf(parameters: Parameters): SelectionSource {
  const { values } = parameters
  const ids = listParameter(parameters, 'id')
  const types = listParameter(parameters, 'type')
  const idPattern = values.get('idPattern')
  const typePattern = values.get('typePattern')
  const isAny = !ids && !types && idPattern === undefined && typePattern === undefined
  const selectors = isAny ? [] : [{ ids, types, idPattern, typePattern }]
  const geo = { georel: values.get('georel'), geometry: values.get('geometry'), coords: values.get('coords') }
  return { selectors, q: values.get('q'), mq: values.get('mq'), geo, from: 'url' }
}

/** Parameters that exclude each other (docs/interface/queries.md#lists). */
function incompatible(values: ReadonlyMap<string, string>): Refusal | undefined {
  if (values.has('id') && values.has('idPattern')) return refusals.idAndIdPattern
  if (values.has('type') && values.has('typePattern')) return refusals.typeAndTypePattern
  return undefined
}
