// What bodies of subscriptions and registrations have in common, read and refused alike (subscriptions.md §3.2, §3.4, §12.3).
//
// A key that stands twice is refused wherever it stands: the interface says nothing of it, and one of two contradicting wishes
// would be lost without a word.

import type { Payload } from '../entities/entity.js'
import { hasIdentifierCharacters } from '../identifier.js'
import { hasForbiddenCharacters, isArray, type JsonObject } from '../json.js'
import { descriptionLengthMax, listLengthMax } from '../limits.js'
import { accepted, type Refusal, type Result, refusals, refused } from '../refusal.js'

/** The refusal of a body in which a key stands twice; undefined: none does. */
export function refuseDuplicateKeys({ duplicates }: Payload): Refusal | undefined {
  const found = duplicates[0]
  if (!found) return undefined
  const above = found.slice(0, -1).map(step => `${step}/`)
  return refusals.keyTwice(String(found.at(-1)), `/${above.join('')}`)
}

/** Why a text cannot be a description (subscriptions.md §3.2, §12.3); undefined when it can. */
export function checkDescription(text: string): Refusal | undefined {
  // A character beyond the basic plane has a length of two.
  if (text.length > descriptionLengthMax && [...text].length > descriptionLengthMax) return refusals.descriptionTooLong
  return hasForbiddenCharacters(text) ? refusals.charactersIn('description') : undefined
}

/** A list of names (subscriptions.md §3.4); empty when it is not there. */
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
