// JSON text written straight into bytes. [hot] Every accepted change writes its whole entity.
//
// Putting the text together as strings first left 2 KB of garbage for an entity of 300 bytes, and the collector was a fifth of the
// processor time of a create; a loop over characters leaves none and takes about 1 ns a byte. Numbers are written in full precision;
// `asIs` tells whether what was written is also how the interface renders it (json.ts), so that it can be answered untouched.

import { isArray, isNumberRenderedAsIs, type Json } from './json.js'

const quote = 0x22
const backslash = 0x5c
const zero = 0x30

/** From so many bytes on, the runtime's own copying is worth the view it needs. */
const viewFrom = 128
/** Whole numbers below this are written digit by digit: as text they would have to be put together first, and take ten times as long. */
const digitsBelow = 1e9

export class JsonWriter {
  /** What has been written, up to `length`. Replaced by a larger one when it is full. */
  bytes = new Uint8Array(64 * 1024)
  length = 0
  /** Whether every number written so far is written as it is rendered. */
  asIs = true

  /** Begins anew, leaving `offset` bytes for the caller. */
  restart(offset: number): void {
    this.length = offset
    this.asIs = true
    this.reserve(0)
  }

  /** ASCII text as it is. */
  raw(text: string): void {
    this.reserve(text.length)
    const { bytes } = this
    let at = this.length
    for (let i = 0; i < text.length; i++) bytes[at++] = text.charCodeAt(i)
    this.length = at
  }

  /** Bytes that another writer wrote. */
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

  /** A string with its quotes. */
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

  /** Any text as UTF-8. Lone surrogates must have been escaped or refused before. */
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
