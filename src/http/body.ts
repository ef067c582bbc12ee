// Parses a body as JSON. It refuses some input that JSON.parse accepts: duplicate keys, unlimited nesting, numbers
// beyond a double, lone surrogates, bytes that are not UTF-8 (docs/interface/requests.md#bodies,
// docs/interface/entities.md#duplicate-names). It also spreads slow bodies over several turns of the event loop.
//
// One pass over the bytes, or the text if they are plain, counts structural colons and depth; one walk over the parsed
// value counts its keys. The two counts differ only when JSON.parse has dropped a duplicate key. Only then a slow
// parser looks for it. Nothing here recurses deeper than `documentDepthMax`, because deeper documents are refused
// before they are parsed.

import { isAscii, isUtf8 } from 'node:buffer'
import type { Payload } from '../domain/entities/entity.js'
import type { Json } from '../domain/json.js'
import { valueDepthMax, valuesMax } from '../domain/limits.js'
import { accepted, type Result, refusals, refused } from '../domain/refusal.js'
import type { Clock } from '../ports.js'

/** A value may nest 50 levels. The rest is for the entity, attribute, metadata and batch around it. */
const documentDepthMax = valueDepthMax + 10

const quote = 0x22
const comma = 0x2c
const backslash = 0x5c
const colon = 0x3a
const brace = 0x7b
const braceEnd = 0x7d
const bracket = 0x5b
const bracketEnd = 0x5d

interface Scan {
  readonly colons: number
  readonly depth: number
  readonly escapes: boolean
}

// [hot] Once per body, about 1 ns a byte.
function scan(bytes: Uint8Array): Scan {
  let colons = 0
  let depth = 0
  let deepest = 0
  let escapes = false
  const { length } = bytes
  for (let at = 0; at < length; at++) {
    const byte = bytes[at]!
    if (byte === quote) {
      for (at++; at < length; at++) {
        const inside = bytes[at]!
        if (inside === quote) break
        if (inside === backslash) {
          escapes = true
          at++
        }
      }
    } else if (byte === colon) {
      colons++
    } else if (byte === brace || byte === bracket) {
      if (++depth > deepest) deepest = depth
    } else if (byte === braceEnd || byte === bracketEnd) {
      depth--
    }
  }
  return { colons, depth: deepest, escapes }
}

// [hot] Most bodies are ASCII without a backslash. For these, `indexOf` finds the ends of strings, which takes two
// thirds of the time.
/** Like `scan`, for the text of such a body. */
function scanPlain(text: string): Scan {
  let colons = 0
  let depth = 0
  let deepest = 0
  const { length } = text
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) {
      at = text.indexOf('"', at + 1)
      if (at < 0) break
    } else if (code === colon) {
      colons++
    } else if (code === brace || code === bracket) {
      if (++depth > deepest) deepest = depth
    } else if (code === braceEnd || code === bracketEnd) {
      depth--
    }
  }
  return { colons, depth: deepest, escapes: false }
}

/** Counts commas, colons, and opening brackets and braces: about as many as there are values and names. */
function countValues(bytes: Uint8Array): number {
  let values = 0
  const { length } = bytes
  for (let at = 0; at < length; at++) {
    const byte = bytes[at]!
    if (byte === quote) for (at++; at < length && bytes[at] !== quote; at++) if (bytes[at] === backslash) at++
    if (byte === comma || byte === colon || byte === brace || byte === bracket) values++
  }
  return values
}

/** Parses the JSON of a body. `bytesMax`: the limit of a body, which also limits its number of values (`valuesMax`). */
export function parseJson(bytes: Uint8Array, bytesMax?: number): Result<Payload> {
  const text = readText(bytes, bytesMax)
  if (!text.ok) return text
  const value = makeValue(text.value)
  return value.ok ? payloadOf(value.value, text.value, count(value.value, text.value.scan.escapes), bytesMax) : value
}

/** Bodies from this size on are parsed in turns of their own. */
export const parsedInTurnsFrom = 256 * 1024

/**
 * Like `parseJson`, for a large body. It scans the bytes in one turn of the event loop, parses the values in the next,
 * and checks them in a third. At the limit each takes up to 40 ms. The bytes may be reused when this returns.
 */
export function parseJsonInTurns(
  bytes: Uint8Array,
  bytesMax: number,
  endOfTick: (run: () => void) => void,
  onPayload: (payload: Result<Payload>) => void,
): void {
  const text = readText(bytes, bytesMax)
  if (!text.ok) return endOfTick(() => onPayload(text))
  endOfTick(() => {
    const value = makeValue(text.value)
    if (!value.ok) return endOfTick(() => onPayload(value))
    endOfTick(() => {
      const counted = count(value.value, text.value.scan.escapes)
      endOfTick(() => onPayload(payloadOf(value.value, text.value, counted, bytesMax)))
    })
  })
}

interface Text {
  readonly text: string
  readonly scan: Scan
}

function readText(bytes: Uint8Array, bytesMax?: number): Result<Text> {
  const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const ascii = isAscii(buffer)
  const plain = ascii && !buffer.includes(backslash) ? buffer.toString('latin1') : undefined
  const scanned = plain === undefined ? scan(buffer) : scanPlain(plain)
  if (scanned.depth > documentDepthMax) return refused(refusals.nestedTooDeep(valueDepthMax))
  // [hot] Nearly all bodies are too short for so many values.
  if (bytesMax !== undefined && buffer.length > valuesMax(bytesMax)) {
    const values = countValues(buffer)
    if (values > valuesMax(bytesMax)) return refused(refusals.tooMany('values', values, valuesMax(bytesMax)))
  }
  if (!ascii && !isUtf8(buffer)) return refused(refusals.notJson)
  return accepted({ scan: scanned, text: plain ?? buffer.toString(ascii ? 'latin1' : 'utf8') })
}

function makeValue({ text }: Text): Result<Json> {
  try {
    return accepted(JSON.parse(text))
  } catch {
    return refused(refusals.notJson)
  }
}

interface Count {
  /** Keys at all depths; negative when there is a number beyond a double or a lone surrogate. */
  readonly keys: number
  /** Digits of large numbers when they are written out: `1e300` has 301. */
  readonly digits: number
}

function payloadOf(
  value: Json,
  { text, scan: { colons, depth } }: Text,
  { keys, digits }: Count,
  bytesMax?: number,
): Result<Payload> {
  if (keys < 0) return refused(refusals.notJson)
  if (bytesMax !== undefined && digits > bytesMax)
    return refused(refusals.tooMany('digits', Math.ceil(digits), bytesMax))
  return accepted({ value, duplicates: keys === colons ? [] : findDuplicates(text), deep: depth > valueDepthMax })
}

/** From here on JSON.parse accepts numbers with an exponent, which are rendered without one. */
const largeFrom = 1e21
/** The sum for the value that is being counted. */
let largeDigits = 0

function count(value: Json, checkStrings: boolean): Count {
  largeDigits = 0
  const keys = countKeys(value, checkStrings)
  return { keys, digits: largeDigits }
}

function countKeys(value: Json, checkStrings: boolean): number {
  if (typeof value === 'number') {
    if (value >= largeFrom || value <= -largeFrom) largeDigits += Math.log10(Math.abs(value))
    return Number.isFinite(value) ? 0 : Number.NEGATIVE_INFINITY
  }
  if (typeof value === 'string') return checkStrings && !value.isWellFormed() ? Number.NEGATIVE_INFINITY : 0
  if (typeof value !== 'object' || value === null) return 0
  let keys = 0
  if (Array.isArray(value)) {
    for (const item of value) keys += countKeys(item, checkStrings)
    return keys
  }
  // The result of JSON.parse has no inherited enumerable properties.
  const object = value as { readonly [key: string]: Json }
  for (const key in object) {
    if (checkStrings && !key.isWellFormed()) return Number.NEGATIVE_INFINITY
    keys += 1 + countKeys(object[key] as Json, checkStrings)
  }
  return keys
}

type Path = readonly (string | number)[]

/** The duplicate keys in a text that is valid JSON. A key that occurs more than twice is reported once. */
function findDuplicates(text: string): Path[] {
  const duplicates: Path[] = []
  /** The keys and indexes from the root to the present position. */
  const here: (string | number)[] = []
  let at = 0
  const skipBlanks = () => {
    while (text.charCodeAt(at) <= 0x20) at++
  }
  const readString = (): string => {
    const start = at
    let isEscaped = false
    for (at++; text.charCodeAt(at) !== quote; at++) {
      if (text.charCodeAt(at) !== backslash) continue
      isEscaped = true
      at++
    }
    at++
    return isEscaped ? JSON.parse(text.slice(start, at)) : text.slice(start + 1, at - 1)
  }
  const readValue = (): void => {
    skipBlanks()
    const first = text[at]
    if (first === '"') readString()
    else if (first === '{') readMembers()
    else if (first === '[') readItems()
    else while (at < text.length && !endsScalar(text.charCodeAt(at))) at++
    skipBlanks()
  }
  const readMembers = (): void => {
    const seen = new Map<string, 'once' | 'reported'>()
    at++
    skipBlanks()
    while (text[at] !== '}') {
      const key = readString()
      const known = seen.get(key)
      here.push(key)
      if (known === 'once') duplicates.push([...here])
      if (known !== 'reported') seen.set(key, known ? 'reported' : 'once')
      skipBlanks()
      at++
      readValue()
      here.pop()
      if (text[at] === ',') at++
      skipBlanks()
    }
    at++
  }
  const readItems = (): void => {
    at++
    skipBlanks()
    for (let index = 0; text[at] !== ']'; index++) {
      here.push(index)
      readValue()
      here.pop()
      if (text[at] === ',') at++
      skipBlanks()
    }
    at++
  }
  readValue()
  return duplicates
}

/** A comma, a closing bracket or brace, or a blank. */
const endsScalar = (code: number): boolean => code === 0x2c || code === 0x5d || code === 0x7d || code <= 0x20

type Handle = (body: Uint8Array) => void

/** How long slow bodies may use the event loop in one tick: as long as the batches of a shard (turn/batches.ts). */
const sliceMs = 10

/** Bodies from this size on share the slice: they cost some 0.2 ms. Smaller ones are handled when they arrive. */
export const sharedFrom = 8 * 1024

/**
 * Slow bodies share one slice of time in each tick of the event loop; the others wait as bytes. If all batches of one
 * tick were parsed at once, their entities would wait in memory for the slice of the shards (shard/turn/batches.ts),
 * and the garbage collector would copy them repeatedly: with 64 clients a batch cost 4 % more processor time. A body
 * that waits as bytes costs one copy, and is outside of the collector's heap.
 */
export class BodyTurns {
  private readonly endOfTick: (run: () => void) => void
  private waiting: { readonly body: Uint8Array; readonly handle: Handle }[] = []
  /** The end of this tick's slice; undefined: no body has begun one. */
  private endMs: number | undefined

  constructor(
    private readonly clock: Pick<Clock, 'monoMs'>,
    endOfTick: (run: () => void) => void = setImmediate,
  ) {
    this.endOfTick = endOfTick
  }

  /** Calls `handle`, which does not throw, now or in a later tick. The caller may reuse `body` when this returns. */
  take(body: Uint8Array, handle: Handle): void {
    if (this.waiting.length > 0 || this.clock.monoMs() >= this.slice())
      this.waiting.push({ body: Buffer.from(body), handle })
    else handle(body)
  }

  private slice(): number {
    if (this.endMs !== undefined) return this.endMs
    const endMs = this.clock.monoMs() + sliceMs
    this.endMs = endMs
    this.endOfTick(() => this.goOn())
    return endMs
  }

  private goOn(): void {
    this.endMs = undefined
    if (this.waiting.length === 0) return
    const endMs = this.slice()
    let taken = 0
    while (taken < this.waiting.length && (taken === 0 || this.clock.monoMs() < endMs)) {
      const { body, handle } = this.waiting[taken++]!
      handle(body)
    }
    this.waiting = this.waiting.slice(taken)
  }
}
