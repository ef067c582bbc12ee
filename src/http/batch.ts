// Handlers of /v2/op/query, /v2/op/update and /v2/op/notify (docs/interface/batch.md).

import type { BatchOperations } from '../broker/batch.js'
import type { Entities } from '../broker/entities.js'
import type { WrittenEntity } from '../domain/access/writing.js'
import {
  type BatchItem,
  type BatchUpdate,
  parseBatchUpdate,
  parseNotification,
  parseQueryPayload,
} from '../domain/entities/batch.js'
import { parseOrder } from '../domain/queries/order.js'
import { compileSelection } from '../domain/queries/selection.js'
import type { Result } from '../domain/refusal.js'
import { noteOldLocations } from './call.js'
import { updateOptions } from './entities.js'
import { readScope, refuseFilters, scopeOfWrites, writeScope } from './entity-rights.js'
import { entityItems, replyWithList, viewOf } from './list-body.js'
import type { Reply } from './reply.js'
import { elsewhereOf, jsonPayload, originOf, outwardOf, type Request } from './request.js'

export class BatchHandlers {
  constructor(
    private readonly entities: Entities,
    private readonly batch: BatchOperations,
  ) {}

  query(request: Request, reply: Reply, body: Uint8Array): void {
    const payload = jsonPayload(request, body)
    if (!payload.ok) return reply.refuse(payload.refusal)
    const wanted = parseQueryPayload(payload.value)
    if (!wanted.ok) return reply.refuse(wanted.refusal)
    const selection = compileSelection(wanted.value.source)
    if (!selection.ok) return reply.refuse(selection.refusal)
    const scope = readScope(request)
    if (!scope.ok) return reply.refuse(scope.refusal)
    const { values, limit, offset, options } = request.parameters
    const order = parseOrder(values.get('orderBy'))
    if (!order.ok) return reply.refuse(order.refusal)
    const refusal = refuseFilters(request, scope.value, selection.value, order.value)
    if (refusal) return reply.refuse(refusal)
    const elsewhere = elsewhereOf(request, reply, wanted.value.attrs)
    const list = { ...scope.value, selection: selection.value, order: order.value, offset, limit }
    this.entities.listEverywhere(list, elsewhere, result => {
      if (!result.ok) return reply.refuse(result.refusal)
      const { entities, total } = result.value
      const view = viewOf(options, wanted.value.attrs, wanted.value.metadata)
      replyWithList(reply, entityItems(entities, view), options.has('count') ? total : undefined)
    })
  }

  update(request: Request, reply: Reply, body: Uint8Array): void {
    const payload = jsonPayload(request, body)
    if (!payload.ok) return reply.refuse(payload.refusal)
    const batch = parseBatchUpdate(payload.value, request.parameters.options.has('keyValues'))
    if (!batch.ok) return reply.refuse(batch.refusal)
    reply.call?.audit?.names(batch.value.items.length, batch.value.items[0]?.id)
    const scope = scopeOfWrites(request, () => writesOf(batch.value))
    if (!scope.ok) return reply.refuse(scope.refusal)
    for (const { attributes } of batch.value.items) noteOldLocations(attributes, reply.call)
    const onResult = (result: Result<undefined>): void => reply.conclude(result)
    const origin = originOf(request, reply)
    this.batch.update(scope.value, batch.value, updateOptions(request), origin, onResult, outwardOf(request, reply))
  }

  notify(request: Request, reply: Reply, body: Uint8Array): void {
    const payload = jsonPayload(request, body)
    if (!payload.ok) return reply.refuse(payload.refusal)
    const batch = parseNotification(payload.value, request.notificationFormat, request.notifiedAlteration)
    if (!batch.ok) return reply.refuse(batch.refusal)
    reply.call?.audit?.names(batch.value.items.length, batch.value.items[0]?.id)
    const kind = batch.value.action === 'delete' ? 'notifyDeletion' : 'notify'
    const scope = writeScope(request, kind, () => batch.value.items.map(writtenBy))
    if (!scope.ok) return reply.refuse(scope.refusal)
    this.batch.notify(scope.value, batch.value, originOf(request, reply), result => {
      if (result.ok) reply.taken()
      else reply.refuse(result.refusal)
    })
  }
}

const writtenBy = ({ id, type, attributes, names }: BatchItem): WrittenEntity => ({
  id,
  type,
  names: attributes.size > 0 ? [...attributes.keys()] : names,
})

const kindOfAction = { append: 'upsert', appendStrict: 'upsert', update: 'update', replace: 'replace' } as const

/** The writes of a batch in its order, by what rules have to allow for them. */
function* writesOf({ action, items }: BatchUpdate) {
  if (action !== 'delete') yield { kind: kindOfAction[action], entities: items.map(writtenBy) }
  else
    for (const item of items)
      yield { kind: item.names.length > 0 ? 'deleteAttributes' : 'deleteEntity', entities: [writtenBy(item)] } as const
}
