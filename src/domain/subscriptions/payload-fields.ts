// The common parts of the bodies of subscriptions and registrations: names, descriptions, and the entities that are
// watched or provided (docs/interface/subscriptions.md#subject, docs/interface/errors.md#subscriptions,
// docs/interface/errors.md#registrations-and-providers).
//
// A duplicate key is refused everywhere: the interface does not mention it, and one of the two values would be lost
// silently.
//
// Not here: whether the list of entities may be empty, and the parts of it that a registration does not accept
// (registration-parser.ts).

import { parseDateTime } from '../date-time.js'
import { hasIdentifierCharacters, type Payload } from '../entities/entity.js'
import { hasForbiddenCharacters, isArray, isObject, type Json, type JsonObject } from '../json.js'
import {
  descriptionLengthMax,
  identifierLengthMax,
  listLengthMax,
  selectionPatternsMax,
  selectionStepsMax,
} from '../limits.js'
import { compilePattern, type Pattern } from '../queries/pattern.js'
import { accepted, done, type Refusal, type Result, refusals, refused } from '../refusal.js'
import type { SubjectEntity } from './subscription.js'

/** The members of a body. `notObject`: the refusal of anything but an object. */
export function topLevel({ value: json, duplicates }: Payload, notObject: Refusal): Result<JsonObject> {
  if (!isObject(json)) return refused(notObject)
  const found = duplicates[0]
  if (found) {
    const above = found.slice(0, -1).map(step => `${step}/`)
    return refused(refusals.keyTwice(String(found.at(-1)), `/${above.join('')}`))
  }
  return Object.keys(json).length === 0 ? refused(refusals.emptyPayload) : accepted(json)
}

/** Parses a member; undefined when it is absent. */
export const optional = <T>(json: Json | undefined, parse: (json: Json) => Result<T>): Result<T | undefined> =>
  json === undefined ? accepted(undefined) : parse(json)

/**
 * A description (docs/interface/errors.md#subscriptions, docs/interface/errors.md#registrations-and-providers).
 * `notText`: the refusal of anything but a text.
 */
export function parseDescription(json: Json, notText: Refusal): Result<string> {
  if (typeof json !== 'string') return refused(notText)
  // A character beyond the basic plane has a length of two.
  if (json.length > descriptionLengthMax && [...json].length > descriptionLengthMax)
    return refused(refusals.descriptionTooLong)
  return hasForbiddenCharacters(json) ? refused(refusals.charactersIn('description')) : accepted(json)
}

/** The expiry time; an empty text means never. */
export interface ExpiryField {
  readonly ms: number | undefined
}

/** The member `expires`. `notDate`: the refusal of a text that is not a date. */
export function parseExpiry(json: Json, notDate: Refusal): Result<ExpiryField> {
  if (typeof json !== 'string') return refused(refusals.fieldNotString('expires'))
  if (json === '') return accepted({ ms: undefined })
  const ms = parseDateTime(json)
  return ms === undefined ? refused(notDate) : accepted({ ms })
}

/** A list of names (docs/interface/errors.md#subscriptions); empty when it is absent. */
export function parseNames(parent: JsonObject, field: string): Result<readonly string[]> {
  const json = parent[field]
  if (json === undefined) return accepted([])
  if (!isArray(json)) return refused(refusals.listNotArray(field))
  if (json.length > listLengthMax) return refused(refusals.tooMany('names', json.length, listLengthMax))
  const names = new Set<string>()
  for (const name of json) {
    if (typeof name !== 'string') return refused(refusals.nameNotString(field))
    if (names.has(name)) return refused(refusals.nameTwice(name))
    if (!hasIdentifierCharacters(name)) return refused(refusals.charactersIn('attribute name'))
    if (name === '') return refused(refusals.nameEmpty(field))
    names.add(name)
  }
  return accepted([...names])
}

/** The elements of an array, equal ones once (docs/interface/errors.md#subscriptions). */
export function parseSubjectEntities(json: Json): Result<readonly SubjectEntity[]> {
  if (!isArray(json)) return refused(refusals.subjectEntitiesNotArray)
  if (json.length > listLengthMax) return refused(refusals.tooMany('entities', json.length, listLengthMax))
  const patterns = new PatternBudget()
  const entities = new Map<string, SubjectEntity>()
  for (const item of json) {
    const entity = parseEntity(item, patterns)
    if (!entity.ok) return entity
    const { id, idPattern, type, typePattern } = entity.value
    entities.set(JSON.stringify([id, idPattern, type, typePattern]), entity.value)
  }
  return accepted([...entities.values()])
}

/**
 * Limits all regular expressions of a subject together, like those of a query: each change may have to run all of them.
 */
class PatternBudget {
  private count = 0
  private steps = 0

  spend(pattern: Pattern): Refusal | undefined {
    if (++this.count > selectionPatternsMax) return refusals.selectionPatternsTooMany(selectionPatternsMax)
    this.steps += pattern.steps
    return this.steps > selectionStepsMax ? refusals.selectionPatternsTooLarge(selectionStepsMax) : undefined
  }
}

function parseEntity(json: Json, patterns: PatternBudget): Result<SubjectEntity> {
  if (!isObject(json)) return refused(refusals.fieldNotObject('/entities/ vector item'))
  const { id, idPattern, type, typePattern } = json
  if (id === undefined && idPattern === undefined) return refused(refusals.subjectEntityWithoutId)
  if (id !== undefined && idPattern !== undefined) return refused(refusals.subjectEntityBothIds)
  if (type !== undefined && typePattern !== undefined) return refused(refusals.subjectEntityBothTypes)
  const checkedId = id === undefined ? checkPattern('idPattern', idPattern as Json, patterns) : checkId(id)
  if (!checkedId.ok) return checkedId
  if (type !== undefined) {
    const checked = checkType(type)
    if (!checked.ok) return checked
  } else if (typePattern !== undefined) {
    const checked = checkPattern('typePattern', typePattern, patterns)
    if (!checked.ok) return checked
  }
  const given = Object.entries({ id, idPattern, type, typePattern }).filter(([, text]) => text !== undefined)
  return accepted(Object.fromEntries(given) as SubjectEntity)
}

function checkId(json: Json): Result<undefined> {
  if (typeof json !== 'string') return refused(refusals.fieldNotString('/entities/ vector item /id/'))
  if (json === '') return refused(refusals.fieldEmpty('/entities/ element id'))
  return checkIdentifierOf('id', json)
}

function checkType(json: Json): Result<undefined> {
  if (typeof json !== 'string') return refused(refusals.fieldNotString('/entities/ vector item type'))
  if (json === '') return refused(refusals.identifierTooShort('entity type'))
  return checkIdentifierOf('type', json)
}

function checkIdentifierOf(field: 'id' | 'type', text: string): Result<undefined> {
  if (!hasIdentifierCharacters(text)) return refused(refusals.charactersIn(`/entities/ vector item /${field}/`))
  return text.length > identifierLengthMax ? refused(refusals.subjectEntityTooLong(field)) : done
}

function checkPattern(field: 'idPattern' | 'typePattern', json: Json, patterns: PatternBudget): Result<undefined> {
  if (typeof json !== 'string') return refused(refusals.fieldNotString(`/entities/ vector item /${field}/`))
  if (json === '') return refused(refusals.fieldEmpty(`/entities/ vector item /${field}/`))
  const pattern = compilePattern(json)
  if (!pattern) return refused(refusals[field])
  const refusal = patterns.spend(pattern)
  return refusal ? refused(refusal) : done
}
