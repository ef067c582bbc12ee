// The outcome of a change of the reference by the broker's own rules: for tests that compare both.

import {
  type Entity,
  parseAttributes,
  parseEntity,
  parseSingleAttribute,
  parseValue,
} from '../../src/domain/entities/entity.js'
import {
  appendAttributes,
  appendStrict,
  createEntity,
  deleteAttributes,
  deleteEntity,
  replaceAttributes,
  type UpdateOutcome,
  updateAttribute,
  updateAttributes,
  updateValue,
} from '../../src/domain/entities/update.js'
import type { Json } from '../../src/domain/json.js'
import { type Result, refusalText } from '../../src/domain/refusal.js'
import { stampOf } from '../../src/domain/stamp.js'
import type { Change as AnyChange } from './reference-entities.js'
import { changeRequest } from './reference-requests.js'

/** The value of a result that is not refused. */
export const demand = <T>(result: Result<T>): T => {
  if (result.ok) return result.value
  throw new Error(refusalText(result.refusal))
}

/** JSON as a body. */
export const payload = (text: string) => ({ value: JSON.parse(text) as Json, duplicates: [], deep: true })

/** The outcome of a change by the broker's own rules. */
export function decide(change: AnyChange, before: Entity | undefined, nowMs: number): UpdateOutcome {
  const body = payload(changeRequest(change).body ?? '{}')
  if (change.action === 'create' || (change.action === 'append' && change.creates)) {
    const wanted = demand(parseEntity(body, false))
    return before
      ? appendAttributes(before, wanted.attributes, optionsOf(change), nowMs)
      : createEntity(wanted, stampOf(nowMs))
  }
  const entity = before as Entity
  switch (change.action) {
    case 'append':
      return appendAttributes(entity, demand(parseAttributes(body, false)), optionsOf(change), nowMs)
    case 'appendStrict':
      return appendStrict(entity, demand(parseAttributes(body, false)), '', nowMs)
    case 'update':
      return updateAttributes(entity, demand(parseAttributes(body, false)), optionsOf(change), '', nowMs)
    case 'replace':
      return replaceAttributes(entity, demand(parseAttributes(body, false)), nowMs)
    case 'updateOne': {
      const wanted = demand(parseSingleAttribute(change.name, body))
      return updateAttribute(entity, change.name, wanted, optionsOf(change), nowMs)
    }
    case 'updateValue':
      return updateValue(entity, change.name, demand(parseValue(body)), optionsOf(change), nowMs)
    case 'deleteSome':
      return deleteAttributes(entity, change.names, '', nowMs)
    case 'deleteEntity':
      return deleteEntity(entity)
  }
}

const optionsOf = (change: AnyChange) => ({
  overrideMetadata: 'override' in change && change.override,
  forcedUpdate: 'forced' in change && change.forced,
})
