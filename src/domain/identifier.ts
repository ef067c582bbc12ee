// The syntax of entity ids, entity types, and names and types of attributes and metadata (entities.md §3.1).
//
// An identifier is 1 to 256 printable ASCII characters without white space, without & ? / # and without the eight characters that
// are forbidden everywhere. A backslash is legal, so identifiers still need escaping inside JSON.

import { identifierLengthMax } from './limits.js'
import { ownText } from './recent.js'
import { type IdentifierPlace, type Refusal, refusals } from './refusal.js'

const syntax = /^[!$%*+,\-.0-9:@A-Z[\\\]^_`a-z{|}~]*$/

/** Why the text cannot be an identifier; undefined when it can. */
export function checkIdentifier(place: IdentifierPlace, text: string): Refusal | undefined {
  // [hot] Some ten times per entity. Names and types are few, and to find one that was legal takes a quarter of what looking at it takes.
  if (legal.has(text)) return undefined
  if (text.length === 0) return refusals.identifierTooShort(place)
  if (!syntax.test(text)) return refusals.identifierCharacters(place)
  if (text.length > identifierLengthMax) return refusals.identifierTooLong(place, text.length, identifierLengthMax)
  if (place !== 'entity id') remember(text)
  return undefined
}

/** Names and types that were legal. */
const legal = new Set<string>()
/** Texts remembered; all are forgotten at once when there are more. */
const legalMax = 2000

function remember(text: string): void {
  if (legal.size >= legalMax) legal.clear()
  // It may be cut out of a list, and hold on to that.
  legal.add(ownText(text))
}

/** Whether all characters are legal in an identifier, whatever the length. */
export const hasIdentifierCharacters = (text: string): boolean => syntax.test(text)
