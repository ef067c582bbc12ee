// A value written as plain text: the body of `PUT .../attrs/{name}/value` with `text/plain` (entities.md §12.5).
//
// The kind of a value shows in its first characters, and nothing is guessed: text without quotes is refused, not stored
// as a string. Blanks are not cut off, a line break at the end included.
//
// Not here: the check for forbidden characters, which depends on the stored type and is that of any value (json.ts).
import type { Json } from '../json.js'
import { accepted, type Result, refusals, refused } from '../refusal.js'

/** The value that a text stands for (entities.md §12.5). No escapes: what is between the outer quotes is the string. */
export function parseTextValue(text: string): Result<Json> {
  if (text.startsWith('"')) {
    if (text.length < 2 || !text.endsWith('"')) return refused(refusals.textUnclosed)
    return accepted(text.slice(1, -1))
  }
  const word = words.get(text)
  if (word !== undefined) return accepted(word)
  if (!jsonNumber.test(text)) return refused(refusals.textUnknown)
  const n = Number(text)
  return Number.isFinite(n) ? accepted(n) : refused(refusals.textUnknown)
}

const words: ReadonlyMap<string, Json> = new Map<string, Json>([
  ['true', true],
  ['True', true],
  ['TRUE', true],
  ['false', false],
  ['False', false],
  ['FALSE', false],
  ['null', null],
  ['Null', null],
  ['NULL', null],
])

const jsonNumber = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/
