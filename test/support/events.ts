// Events for tests, made of client requests: the entity R1 of type Room, and one request about it.

import {
  type Entity,
  parseAttributes,
  parseEntity,
  parseSingleAttribute,
  parseValue,
} from '../../src/domain/entities/entity.js'
import {
  appendAttributes,
  createEntity,
  deleteAttribute,
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
import { type Event, eventOf } from '../../src/domain/subscriptions/event.js'

export const createdMs = Date.UTC(2024, 4, 1)
export const updatedMs = createdMs + 5000

const payload = (text: string) => ({ value: JSON.parse(text) as Json, duplicates: [], deep: true })

function demand<T>(result: Result<T>): T {
  if (result.ok) return result.value
  throw new Error(refusalText(result.refusal))
}

/** The room of a body, which is in normalized form when it contains `"value"`, otherwise in `keyValues` form. */
export const room = (attributes: string, id = 'R1', type = 'Room'): Entity =>
  created(attributes, id, type).change!.after!

function created(attributes: string, id: string, type: string): UpdateOutcome {
  const value = { id, type, ...(JSON.parse(attributes) as Record<string, Json>) }
  const wanted = demand(parseEntity({ value, duplicates: [], deep: true }, !attributes.includes('"value"')))
  return createEntity(wanted, stampOf(createdMs))
}

/**
 * The event of a request: `POST`, `PATCH`, `PUT`, `DELETE`, then an optional attribute `name` or `name/value`, then
 * optional options. Bodies are in normalized form when they contain `"value"`, otherwise in `keyValues` form. Without
 * an entity before, a POST creates it.
 */
export function eventAfter(before: Entity | undefined, request: string, body = '', path = '/'): Event {
  const { change } = outcomeOf(before, request, body)
  if (!change) throw new Error(`refused: ${request} ${body}`)
  return eventOf(change, { tenant: '', path })
}

function outcomeOf(before: Entity | undefined, request: string, body: string): UpdateOutcome {
  const [verb, ...words] = request.split(' ')
  const options = {
    forcedUpdate: words.includes('forcedUpdate'),
    overrideMetadata: words.includes('overrideMetadata'),
  }
  const [name, part] = words.find(word => !(word in options))?.split('/') ?? []
  const attributes = () => demand(parseAttributes(payload(body), !body.includes('"value"')))
  if (!before) return created(body, 'R1', 'Room')
  if (verb === 'POST') return appendAttributes(before, attributes(), options, updatedMs)
  if (verb === 'PATCH') return updateAttributes(before, attributes(), options, 'R1', updatedMs)
  if (verb === 'DELETE') return name === undefined ? deleteEntity(before) : deleteAttribute(before, name, updatedMs)
  if (name === undefined) return replaceAttributes(before, attributes(), updatedMs)
  if (part === 'value') return updateValue(before, name, demand(parseValue(payload(body))), options, updatedMs)
  const wanted = demand(parseSingleAttribute(name, payload(body)))
  return updateAttribute(before, name, wanted, options, updatedMs)
}
