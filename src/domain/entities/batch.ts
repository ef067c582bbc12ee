// The payloads of the batch operations: op/update, op/query and op/notify (docs/interface/batch.md), parsed and
// checked.
//
// A batch has the same effect on each entity as the single operations (update.ts).

import { isArray, isObject, type Json, type JsonObject } from '../json.js'
import { attributesMax, listLengthMax } from '../limits.js'
import type { SelectionSource, SelectorSource } from '../queries/selection.js'
import { accepted, type BatchPart, type Refusal, type Result, refusals, refused } from '../refusal.js'
import { isAlterationType } from '../subscriptions/subscription.js'
import {
  checkIdentifier,
  defaultEntityType,
  type Payload,
  parseEach,
  refuseDuplicates,
  type WantedAttribute,
} from './entity.js'
import { entityLabel } from './update.js'

export type BatchAction = 'append' | 'appendStrict' | 'update' | 'delete' | 'replace'

/** The names of actions; the deprecated names match in any case (docs/interface/batch.md#update). */
const actions: Readonly<Record<string, BatchAction>> = {
  append: 'append',
  appendstrict: 'appendStrict',
  append_strict: 'appendStrict',
  update: 'update',
  delete: 'delete',
  replace: 'replace',
}

/** The entity that an item of a batch is about. */
export interface BatchIdentity {
  readonly id: string
  /** undefined: the item names none. */
  readonly type: string | undefined
}

/** One entity of a batch. */
export interface BatchItem extends BatchIdentity {
  readonly attributes: ReadonlyMap<string, WantedAttribute>
  /** Of a `delete`, which uses only this: the attribute names in the order of the payload. */
  readonly names: readonly string[]
}

export interface BatchUpdate {
  readonly action: BatchAction
  readonly items: readonly BatchItem[]
}

/** The payload of `POST /v2/op/update` (docs/interface/batch.md#update). */
export function parseBatchUpdate(payload: Payload, keyValues: boolean): Result<BatchUpdate> {
  const json = topLevel(payload, ['actionType', 'entities'])
  if (!json.ok) return json
  const { actionType, entities } = json.value
  if (entities === undefined) return refused(refusals.payloadFieldMissing('entities'))
  if (actionType === undefined) return refused(refusals.payloadFieldMissing('actionType'))
  const name = typeof actionType === 'string' ? actionType.toLowerCase() : ''
  const action = Object.hasOwn(actions, name) ? actions[name] : undefined
  if (!action) return refused(refusals.batchAction)
  if (!isArray(entities)) return refused(refusals.entitiesNotArray)
  if (entities.length === 0) return refused(refusals.entitiesEmpty)
  const duplicate = duplicatesWithin(payload, 'entities', keyValues)
  if (duplicate) return refused(duplicate)
  const items = parseItems(entities, refusals.entityNotObject, payload.deep, keyValues, action === 'delete')
  return items.ok ? accepted({ action, items: items.value }) : items
}

/**
 * The payload of `POST /v2/op/notify`: entities to be appended, of type Thing when they name none
 * (docs/interface/batch.md#notify). With `alteration` `entityDelete` (ours, `notification.propagateDeletes`) they are
 * deleted; then only identities count. `format` and `alteration` are headers, '' when absent.
 */
export function parseNotification(payload: Payload, format: string, alteration = ''): Result<BatchUpdate> {
  if (format !== '' && format !== 'normalized') return refused(refuseFormat(format))
  if (alteration !== '' && !isAlterationType(alteration)) return refused(refusals.notifiedAlteration)
  const json = topLevel(payload, ['subscriptionId', 'data'])
  if (!json.ok) return json
  const { subscriptionId, data } = json.value
  if (subscriptionId === undefined) return refused(refusals.subscriptionIdMissing)
  if (typeof subscriptionId !== 'string') return refused(refusals.subscriptionIdKind)
  if (data === undefined) return refused(refusals.payloadFieldMissing('data'))
  if (!isArray(data)) return refused(refusals.notifiedDataNotArray)
  const duplicate = duplicatesWithin(payload, 'data', false)
  if (duplicate) return refused(duplicate)
  const isDeletion = alteration === 'entityDelete'
  const items = parseItems(data, refusals.notifiedItemNotObject, payload.deep, false, isDeletion)
  if (!items.ok) return items
  return accepted({
    action: isDeletion ? 'delete' : 'append',
    // With attribute names, only these would be deleted, not the entity.
    items: items.value.map(item => ({ ...item, type: item.type ?? defaultEntityType, names: [] })),
  })
}

const refuseFormat = (format: string): Refusal =>
  ['keyValues', 'uniqueValues', 'custom'].includes(format)
    ? refusals.notifiedFormatUnsupported(format)
    : refusals.notifiedFormat

/** The content of a `POST /v2/op/query` (docs/interface/batch.md#query). */
export interface QueryPayload {
  readonly source: SelectionSource
  readonly attrs: readonly string[] | undefined
  readonly metadata: readonly string[] | undefined
}

const queryFields = ['entities', 'attrs', 'attributes', 'metadata', 'expression']

/** The payload of `POST /v2/op/query`. `compileSelection` checks `q`, `mq`, geography and patterns. */
export function parseQueryPayload(payload: Payload): Result<QueryPayload> {
  const json = topLevel(payload, queryFields)
  if (!json.ok) return json
  const fields = json.value
  if (!queryFields.some(name => name !== 'metadata' && name in fields)) return refused(refusals.payloadNothingRelevant)
  const selectors = parseSelectors(fields['entities'])
  if (!selectors.ok) return selectors
  const lists: Record<string, readonly string[] | undefined> = {}
  for (const name of ['attrs', 'attributes', 'metadata']) {
    const list = parseList(name, fields[name])
    if (!list.ok) return list
    lists[name] = list.value
  }
  const expression = parseExpression(fields['expression'])
  if (!expression.ok) return expression
  const { q, mq, georel, geometry, coords } = expression.value
  const anyAttribute = lists['attributes']?.length ? lists['attributes'] : undefined
  const attrs = lists['attrs']?.length ? lists['attrs'] : anyAttribute
  const metadata = lists['metadata']?.length ? lists['metadata'] : undefined
  const geo = { georel, geometry, coords }
  return accepted({
    source: { selectors: selectors.value, q, mq, geo, anyAttribute, from: 'payload' },
    attrs,
    metadata,
  })
}

/** The fields of an object. An unknown field is refused. */
function topLevel(payload: Payload, known: readonly string[]): Result<JsonObject> {
  const json = payload.value
  if (!isObject(json)) return refused(refusals.notJson)
  const names = Object.keys(json)
  if (names.length === 0) return refused(refusals.emptyPayload)
  const unknown = names.find(name => !known.includes(name))
  if (unknown !== undefined) return refused(refusals.payloadField(unknown))
  const twice = payload.duplicates.find(path => path.length === 1)
  return twice ? refused(refusals.keyTwice(String(twice[0]), '/')) : accepted(json)
}

/** The refusal for duplicate keys inside the entities of a field. */
function duplicatesWithin(payload: Payload, field: string, keyValues: boolean): Refusal | undefined {
  const duplicates = payload.duplicates.filter(path => path[0] === field && path.length > 2).map(path => path.slice(2))
  return refuseDuplicates({ duplicates }, 'entity', keyValues)
}

function parseItems(
  entities: readonly Json[],
  notObject: Refusal,
  deep: boolean,
  keyValues: boolean,
  namesOnly: boolean,
): Result<readonly BatchItem[]> {
  if (entities.length > listLengthMax) return refused(refusals.tooMany('entities', entities.length, listLengthMax))
  const items: BatchItem[] = []
  for (const entity of entities) {
    const item = isObject(entity) ? parseItem(entity, deep, keyValues, namesOnly) : refused(notObject)
    if (!item.ok) return item
    items.push(item.value)
  }
  return accepted(items)
}

function parseItem(json: JsonObject, deep: boolean, keyValues: boolean, namesOnly: boolean): Result<BatchItem> {
  if (Object.hasOwn(json, 'idPattern')) return refused(refusals.batchIdPattern)
  const identity = parseIdentity(json)
  if (!identity.ok) return identity
  const { id, type } = identity.value
  if (namesOnly) {
    const names = Object.keys(json).filter(name => name !== 'id' && name !== 'type')
    if (names.length > attributesMax) return refused(refusals.tooMany('attributes', names.length, attributesMax))
    for (const name of names) {
      const refusal = checkIdentifier('attribute name', name)
      if (refusal) return refused(refusal)
    }
    return accepted({ id, type, attributes: new Map(), names })
  }
  const attributes = parseEach(json, Object.keys(json), deep, keyValues)
  return attributes.ok ? accepted({ id, type, attributes: attributes.value, names: [] }) : attributes
}

function parseIdentity(json: JsonObject): Result<{ readonly id: string; readonly type: string | undefined }> {
  if (!Object.hasOwn(json, 'id')) return refused(refusals.noId)
  const id = json['id'] as Json
  if (typeof id !== 'string') return refused(refusals.entityIdKind)
  const type = json['type']
  if (type !== undefined && typeof type !== 'string') return refused(refusals.entityTypeKind)
  const refusal =
    checkIdentifier('entity id', id) ?? (type === undefined ? undefined : checkIdentifier('entity type', type))
  return refusal ? refused(refusal) : accepted({ id, type })
}

const selectorFields = ['id', 'idPattern', 'type', 'typePattern'] as const

function parseSelectors(json: Json | undefined): Result<readonly SelectorSource[]> {
  if (json === undefined) return accepted([])
  if (!isArray(json)) return refused(refusals.entitiesNotArray)
  if (json.length > listLengthMax) return refused(refusals.tooMany('entities', json.length, listLengthMax))
  const selectors: SelectorSource[] = []
  for (const item of json) {
    if (!isObject(item)) return refused(refusals.entityNotObject)
    const selector = parseSelector(item)
    if (!selector.ok) return selector
    selectors.push(selector.value)
  }
  return accepted(selectors)
}

function parseSelector(json: JsonObject): Result<SelectorSource> {
  const { id, idPattern, type, typePattern } = json
  if (id !== undefined && idPattern !== undefined) return refused(refusals.idAndIdPatternInPayload)
  if (type !== undefined && typePattern !== undefined) return refused(refusals.typeAndTypePatternInPayload)
  if (id === undefined && idPattern === undefined) return refused(refusals.noId)
  if (Object.keys(json).some(key => !(selectorFields as readonly string[]).includes(key)))
    return refused(refusals.attributesInSelector)
  for (const field of selectorFields)
    if (json[field] !== undefined && typeof json[field] !== 'string') return refused(refusals.selectorKind(field))
  const refusal =
    (id === undefined ? undefined : checkIdentifier('entity id', id as string)) ??
    (type === undefined ? undefined : checkIdentifier('entity type', type as string))
  if (refusal) return refused(refusal)
  return accepted({
    ids: id === undefined ? undefined : [id as string],
    idPattern: idPattern as string | undefined,
    types: type === undefined ? undefined : [type as string],
    typePattern: typePattern as string | undefined,
  })
}

function parseList(name: string, json: Json | undefined): Result<readonly string[] | undefined> {
  if (json === undefined) return accepted(undefined)
  if (!isArray(json)) return refused(refusals.listNotArray(name))
  if (json.length > listLengthMax) return refused(refusals.tooMany('names', json.length, listLengthMax))
  for (const item of json) if (typeof item !== 'string') return refused(refusals.listNotStrings(name))
  return accepted(json as readonly string[])
}

const expressionFields = ['q', 'mq', 'georel', 'geometry', 'coords'] as const

type Expression = { readonly [name in (typeof expressionFields)[number]]?: string }

function parseExpression(json: Json | undefined): Result<Expression> {
  if (json === undefined) return accepted({})
  if (!isObject(json)) return refused(refusals.fieldNotObject('expression'))
  if (Object.keys(json).length === 0) return refused(refusals.fieldEmpty('expression'))
  const found: { [name: string]: string } = {}
  for (const name of expressionFields) {
    const text = json[name]
    if (text === undefined) continue
    if (typeof text !== 'string') return refused(refusals.fieldNotString(name))
    if (text === '') return refused(refusals.fieldEmpty(name))
    found[name] = text
  }
  return accepted(found)
}

/**
 * The refusal for a batch, from the refusal of each item in order (undefined: it succeeded). Returns undefined when all
 * succeeded (docs/interface/batch.md#outcome). If there is a refusal for another reason than missing or existing names,
 * the last such refusal is the result.
 */
export function batchOutcome(
  action: BatchAction,
  items: readonly BatchIdentity[],
  outcomes: readonly (Refusal | undefined)[],
): Refusal | undefined {
  const parts: BatchPart[] = []
  let other: Refusal | undefined
  let successes = 0
  let missing = 0
  const what = action === 'appendStrict' ? 'existing' : 'missing'
  for (const [index, refusal] of outcomes.entries()) {
    if (!refusal) {
      successes++
    } else if (refusal.code === 'entityNotFound') {
      missing++
      const { id, type } = items[index] as BatchIdentity
      parts.push({ entity: entityLabel(id, type), names: null })
    } else if (refusal.code === (what === 'existing' ? 'attributesExist' : 'attributesMissing')) {
      if (refusal.kind === 'PartialUpdate') successes++
      parts.push({
        entity: refusal.entity,
        names: refusal.code === 'attributesExist' ? refusal.existing : refusal.missing,
      })
    } else {
      other = refusal
    }
  }
  if (other) return other
  if (parts.length === 0) return undefined
  const kind = missing === outcomes.length ? 'NotFound' : successes > 0 ? 'PartialUpdate' : 'Unprocessable'
  return refusals.batch(kind, what, parts)
}
