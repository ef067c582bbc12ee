// JSON values as the rules see them: equality, order, and the one way in which they are written out.
//
// Values come from a parser, so they hold own keys only, and any key is ordinary data, `__proto__` and `constructor`
// included: look keys up with `Object.hasOwn`, build objects with spread or `Object.fromEntries`, never by assignment.
// All functions recurse, which is safe because a value is at most `valueDepthMax` levels deep (limits.ts).
//
// `equal`, `compare` and `canonical` agree: two values are equal, compare as 0 and have one canonical text, or none of it.
//
// Not here: the limit on depth and the search for duplicate keys (they need the bytes), values as text (text-value.ts).
export type Json = null | boolean | number | string | readonly Json[] | JsonObject

export interface JsonObject {
  readonly [key: string]: Json
}

/** Whether the value is an array. Unlike `Array.isArray` it narrows readonly arrays. */
export function isArray(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value)
}

/** Whether the value is an object in the sense of JSON: neither null nor an array. */
export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether the value is an integer of 64 bits (subscriptions.md §3.2). */
export function isInteger(value: Json | undefined): value is number {
  return typeof value === 'number' && Number.isInteger(value) && Math.abs(value) <= integerMax
}

// The largest integers of 64 bits are no doubles: they are read as this power of two, which therefore passes.
const integerMax = 2 ** 63

/** Whether two values are the same: the order of keys is irrelevant, the order of elements is not (entities.md §14). */
export function equal(a: Json, b: Json): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (isArray(a)) return isArray(b) && a.length === b.length && a.every((element, at) => equal(element, b[at]!))
  if (isArray(b)) return false
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every(key => Object.hasOwn(b, key) && equal(a[key]!, b[key]!))
}

/**
 * The order of values (entities.md §9.2): missing or null, number, string, object, array, boolean. Negative, 0 or positive.
 *
 * The interface leaves the order among objects and among arrays open. Arrays compare element by element, and a beginning
 * of another array is lower. Objects compare likewise, as the list of their keys and values in the order of the keys.
 */
export function compare(a: Json | undefined, b: Json | undefined): number {
  if (a === b) return 0
  const rank = rankOf(a)
  const difference = rank - rankOf(b)
  if (difference !== 0) return difference
  switch (rank) {
    case rankNull:
      return 0
    case rankObject:
      return compareObjects(a as JsonObject, b as JsonObject)
    case rankArray:
      return compareArrays(a as readonly Json[], b as readonly Json[])
    default:
      // Numbers, strings (by code unit) and booleans (false before true), as the language orders them.
      return a! < b! ? -1 : a! > b! ? 1 : 0
  }
}

const rankNull = 0
const rankObject = 3
const rankArray = 4

function rankOf(value: Json | undefined): number {
  switch (typeof value) {
    case 'number':
      return 1
    case 'string':
      return 2
    case 'boolean':
      return 5
    default:
      return value === null || value === undefined ? rankNull : isArray(value) ? rankArray : rankObject
  }
}

function compareArrays(a: readonly Json[], b: readonly Json[]): number {
  const common = Math.min(a.length, b.length)
  for (let at = 0; at < common; at++) {
    const order = compare(a[at], b[at])
    if (order !== 0) return order
  }
  return a.length - b.length
}

function compareObjects(a: JsonObject, b: JsonObject): number {
  const keysOfA = Object.keys(a).sort()
  const keysOfB = Object.keys(b).sort()
  const common = Math.min(keysOfA.length, keysOfB.length)
  for (let at = 0; at < common; at++) {
    const key = keysOfA[at]!
    const order = compare(key, keysOfB[at]) || compare(a[key], b[key])
    if (order !== 0) return order
  }
  return keysOfA.length - keysOfB.length
}

/** A text that two values share exactly when they are `equal`: a key for sets and maps. */
export function canonical(value: Json): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (isArray(value)) return `[${value.map(canonical).join()}]`
  const members = Object.keys(value).sort()
  return `{${members.map(key => `${JSON.stringify(key)}:${canonical(value[key]!)}`).join()}}`
}

/** A number as the interface writes it (entities.md §2): at most nine decimals, never an exponent, never `-0`. */
export function renderNumber(n: number): string {
  // Measured from the integer towards zero, as the reference does: 42.000000001 is 42, yet 42.999999999 stays.
  const whole = Math.trunc(n)
  if (Math.abs(n - whole) < wholeDistance) return renderWhole(whole)
  const shortest = String(n)
  if (isPlainDecimal(shortest)) return shortest
  return n.toFixed(decimalsMax).replace(trailingZeros, '')
}

const wholeDistance = 1e-9
const decimalsMax = 9
const trailingZeros = /\.?0+$/

function renderWhole(n: number): string {
  const text = String(n)
  const exponentAt = text.indexOf('e')
  if (exponentAt < 0) return text
  // From 1e21 on the language writes `d.ddde+xx`. Digits beyond double precision become zeros, as they do below 1e21.
  const pointAt = text.indexOf('.')
  const mantissa = text.slice(0, exponentAt)
  const decimals = pointAt < 0 ? 0 : exponentAt - pointAt - 1
  return mantissa.replace('.', '') + '0'.repeat(Number(text.slice(exponentAt + 1)) - decimals)
}

// The shortest text that reads back as the same number is preferred to rounding: from 2^23 on, nine decimals are more than
// a double holds, and 123456789.123 would become 123456789.123000003.
function isPlainDecimal(text: string): boolean {
  return text.length - text.indexOf('.') - 1 <= decimalsMax && !text.includes('e')
}

/** Whether `JSON.stringify` writes the value exactly as `renderJson` does, so that stored bytes can be sent untouched. */
// [hot] Runs for every value that is stored. Whole numbers and strings, which are most values, never reach a text.
export function isRenderedAsIs(value: Json): boolean {
  switch (typeof value) {
    case 'number':
      return isNumberRenderedAsIs(value)
    case 'object':
      if (value === null) return true
      return isArray(value) ? value.every(isRenderedAsIs) : Object.values(value).every(isRenderedAsIs)
    default:
      return true
  }
}

const exponentFrom = 1e21

/** The same for a number alone. */
export function isNumberRenderedAsIs(n: number): boolean {
  if (Number.isInteger(n)) return Math.abs(n) < exponentFrom
  return Math.abs(n - Math.trunc(n)) >= wholeDistance && isPlainDecimal(String(n))
}

/** A value as compact JSON with the number format of the interface (entities.md §2). */
export function renderJson(value: Json): string {
  return isRenderedAsIs(value) ? JSON.stringify(value) : renderPart(value)
}

function renderPart(value: Json): string {
  if (typeof value === 'number') return renderNumber(value)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (isArray(value)) return `[${value.map(renderPart).join()}]`
  return `{${Object.keys(value)
    .map(key => `${JSON.stringify(key)}:${renderPart(value[key]!)}`)
    .join()}}`
}

const forbidden = /[<>"'=;()]/

/** Whether the text holds one of the general forbidden characters `< > " ' = ; ( )` (base.md "General forbidden characters"). */
export function hasForbiddenCharacters(text: string): boolean {
  return forbidden.test(text)
}

/** Whether a string or a key holds a forbidden character, at any depth (entities.md §3.2). */
export function valueHasForbiddenCharacters(value: Json): boolean {
  if (typeof value === 'string') return forbidden.test(value)
  if (typeof value !== 'object' || value === null) return false
  if (isArray(value)) return value.some(valueHasForbiddenCharacters)
  return Object.keys(value).some(key => forbidden.test(key) || valueHasForbiddenCharacters(value[key]!))
}
