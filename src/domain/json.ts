// JSON values: equality, order, and writing them as text and as bytes.
//
// Values come from a parser, so they have only own keys, and any key is ordinary data, `__proto__` included. Look keys
// up with `Object.hasOwn`. Build objects with spread or `Object.fromEntries`, never by assignment. Functions recurse: a
// value has at most `valueDepthMax` levels. `equal`, `compare` and `canonical` agree.
//
// Not here: the limit on depth and the search for duplicate keys, which need the bytes (http/body.ts).

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

/** Whether the value is an integer of 64 bits (docs/interface/errors.md#subscriptions). */
export function isInteger(value: Json | undefined): value is number {
  return typeof value === 'number' && Number.isInteger(value) && Math.abs(value) <= integerMax
}

// The largest 64-bit integers cannot be represented as doubles. They are read as this power of two, so it is accepted.
const integerMax = 2 ** 63

/**
 * Whether two values are the same. The order of keys does not matter, the order of elements does
 * (docs/interface/entities.md#changes).
 */
export function equal(a: Json, b: Json): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (isArray(a)) return isArray(b) && a.length === b.length && a.every((element, at) => equal(element, b[at]!))
  if (isArray(b)) return false
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every(key => Object.hasOwn(b, key) && equal(a[key]!, b[key]!))
}

/**
 * The order of values (docs/interface/queries.md#order): missing or null, number, string, object, array, boolean.
 * Negative, 0 or positive.
 *
 * The interface leaves the order among arrays and among objects open. Here arrays compare element by element, and a
 * prefix is lower. Objects compare as the list of their keys and values in the order of the keys.
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

/** A text that is the same for two values exactly when they are `equal`: a key for sets and maps. */
export function canonical(value: Json): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (isArray(value)) return `[${value.map(canonical).join()}]`
  const members = Object.keys(value).sort()
  return `{${members.map(key => `${JSON.stringify(key)}:${canonical(value[key]!)}`).join()}}`
}

/**
 * Renders a number as the interface writes it (docs/interface/errors.md#form): at most nine decimals, never an
 * exponent, never `-0`.
 */
export function renderNumber(n: number): string {
  // Measured from the integer towards zero, as the reference does: 42.000000001 becomes 42, but 42.999999999 stays.
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
  // From 1e21 on, JavaScript writes `d.ddde+xx`. Digits beyond double precision become zeros, as they do below 1e21.
  const pointAt = text.indexOf('.')
  const mantissa = text.slice(0, exponentAt)
  const decimals = pointAt < 0 ? 0 : exponentAt - pointAt - 1
  return mantissa.replace('.', '') + '0'.repeat(Number(text.slice(exponentAt + 1)) - decimals)
}

// From 2^23 on, nine decimals are more than a double has: 123456789.123 would become 123456789.123000003.
function isPlainDecimal(text: string): boolean {
  return text.length - text.indexOf('.') - 1 <= decimalsMax && !text.includes('e')
}

/** Whether `JSON.stringify` writes the value exactly as `renderJson` does. Then stored bytes can be sent unchanged. */
// [hot] Runs for every value that is stored. Whole numbers and strings, which are most values, are not converted to
// text.
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

/** The same for a single number. */
export function isNumberRenderedAsIs(n: number): boolean {
  if (Number.isInteger(n)) return Math.abs(n) < exponentFrom
  return Math.abs(n - Math.trunc(n)) >= wholeDistance && isPlainDecimal(String(n))
}

/** Renders a value as compact JSON with the number format of the interface (docs/interface/errors.md#form). */
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

/**
 * Whether the text contains one of the general forbidden characters `< > " ' = ; ( )`
 * (docs/interface/entities.md#forbidden-characters).
 */
export function hasForbiddenCharacters(text: string): boolean {
  return forbidden.test(text)
}

/**
 * Whether a string or a key contains a forbidden character, at any depth
 * (docs/interface/entities.md#forbidden-characters).
 */
export function valueHasForbiddenCharacters(value: Json): boolean {
  if (typeof value === 'string') return forbidden.test(value)
  if (typeof value !== 'object' || value === null) return false
  if (isArray(value)) return value.some(valueHasForbiddenCharacters)
  return Object.keys(value).some(key => forbidden.test(key) || valueHasForbiddenCharacters(value[key]!))
}

// Writes JSON text directly into bytes. [hot] Every accepted change writes its whole entity.
//
// A loop over characters takes about 1 ns a byte. Building strings first left 2 KB of garbage for an entity of 300
// bytes, and the garbage collector took a fifth of the time of a create. Numbers are written in full precision.

const quote = 0x22
const backslash = 0x5c
const zero = 0x30

/** From this number of bytes on, the runtime's own copying is worth the view that it needs. */
const viewFrom = 128
/** Whole numbers below this are written digit by digit, which takes a tenth of the time of a text. */
const digitsBelow = 1e9

export class JsonWriter {
  /** The written bytes, up to `length`. Replaced by a larger array when it is full. */
  bytes = new Uint8Array(64 * 1024)
  length = 0
  /** Whether the stored form of every number so far equals its rendered form. */
  asIs = true

  /** Starts again, with `offset` bytes left free for the caller. */
  restart(offset: number): void {
    this.length = offset
    this.asIs = true
    this.reserve(0)
  }

  /** Writes ASCII text unchanged. */
  raw(text: string): void {
    this.reserve(text.length)
    const { bytes } = this
    let at = this.length
    for (let i = 0; i < text.length; i++) bytes[at++] = text.charCodeAt(i)
    this.length = at
  }

  /** Copies bytes of another writer. */
  copy(from: Uint8Array, begin: number, end: number): void {
    this.reserve(end - begin)
    const { bytes } = this
    let at = this.length
    if (end - begin < viewFrom) for (let i = begin; i < end; i++) bytes[at++] = from[i]!
    else {
      bytes.set(from.subarray(begin, end), at)
      at += end - begin
    }
    this.length = at
  }

  /** Writes a string with its quotes. */
  string(text: string): void {
    this.reserve(text.length + 2)
    const { bytes } = this
    let at = this.length
    bytes[at++] = quote
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i)
      if (code < 0x20 || code > 0x7e || code === quote || code === backslash) return this.utf8(JSON.stringify(text))
      bytes[at++] = code
    }
    bytes[at++] = quote
    this.length = at
  }

  /** Writes any text as UTF-8. Lone surrogates must have been escaped or refused before. */
  utf8(text: string): void {
    this.reserve(text.length * 3)
    const { bytes } = this
    let at = this.length
    let i = 0
    for (; i < text.length; i++) {
      const code = text.charCodeAt(i)
      if (code >= 0x80) break
      bytes[at++] = code
    }
    for (; i < text.length; i++) {
      const code = text.codePointAt(i) as number
      if (code < 0x80) {
        bytes[at++] = code
      } else if (code < 0x800) {
        bytes[at++] = 0xc0 | (code >> 6)
        bytes[at++] = 0x80 | (code & 0x3f)
      } else if (code < 0x10000) {
        bytes[at++] = 0xe0 | (code >> 12)
        bytes[at++] = 0x80 | ((code >> 6) & 0x3f)
        bytes[at++] = 0x80 | (code & 0x3f)
      } else {
        bytes[at++] = 0xf0 | (code >> 18)
        bytes[at++] = 0x80 | ((code >> 12) & 0x3f)
        bytes[at++] = 0x80 | ((code >> 6) & 0x3f)
        bytes[at++] = 0x80 | (code & 0x3f)
        i++
      }
    }
    this.length = at
  }

  value(value: Json): void {
    if (typeof value === 'string') this.string(value)
    else if (typeof value === 'number') this.number(value)
    else if (typeof value !== 'object' || value === null) this.raw(String(value))
    else if (isArray(value)) this.items(value)
    else this.members(value)
  }

  private number(n: number): void {
    if (n >= 0 && n < digitsBelow && Math.trunc(n) === n) return this.digits(n)
    if (this.asIs && !isNumberRenderedAsIs(n)) this.asIs = false
    this.raw(String(n))
  }

  private digits(n: number): void {
    let count = 1
    for (let power = 10; power <= n; power *= 10) count++
    this.reserve(count)
    const { bytes } = this
    const begin = this.length
    for (let at = begin + count - 1; at >= begin; at--) {
      const rest = (n / 10) | 0
      bytes[at] = zero + n - rest * 10
      n = rest
    }
    this.length = begin + count
  }

  private items(items: readonly Json[]): void {
    this.raw('[')
    for (let i = 0; i < items.length; i++) {
      if (i > 0) this.raw(',')
      this.value(items[i] as Json)
    }
    this.raw(']')
  }

  private members(object: { readonly [key: string]: Json }): void {
    let separator = '{'
    for (const key of Object.keys(object)) {
      this.raw(separator)
      this.string(key)
      this.raw(':')
      this.value(object[key] as Json)
      separator = ','
    }
    this.raw(separator === '{' ? '{}' : '}')
  }

  private reserve(more: number): void {
    if (this.length + more <= this.bytes.length) return
    const larger = new Uint8Array(Math.max(this.bytes.length * 2, this.length + more))
    larger.set(this.bytes)
    this.bytes = larger
  }
}
