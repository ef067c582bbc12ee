// The body of an answer as a front sends it: in pieces, each as soon as the system has taken the one before.
//
// A body may come in parts, which are never put together: what has been sent is let go part by part.

import type { AnswerBody } from './front.js'

/** Bytes of a piece. A TLS connection encrypts one at a time, and tells only of whole ones that they have been taken. */
export const pieceBytesMax = 64 * 1024

export class BodyPieces {
  readonly length: number
  private readonly parts: (Uint8Array | undefined)[]
  private part = 0
  /** Where that part begins. */
  private partAt = 0

  constructor(body: AnswerBody) {
    this.parts = typeof body === 'string' ? [Buffer.from(body)] : body instanceof Uint8Array ? [body] : [...body]
    this.length = lengthOf(body)
  }

  /** What begins at an offset, which never goes back: all of a piece, or what is left of its part. */
  at(offset: number): Uint8Array {
    let part = this.parts[this.part]
    while (part && offset >= this.partAt + part.length) {
      this.parts[this.part] = undefined
      this.partAt += part.length
      part = this.parts[++this.part]
    }
    if (!part) return nothing
    const begin = offset - this.partAt
    return part.subarray(begin, begin + pieceBytesMax)
  }
}

const nothing = new Uint8Array(0)

/** Bytes of a body. */
export function lengthOf(body: AnswerBody): number {
  if (typeof body === 'string') return Buffer.byteLength(body)
  return body instanceof Uint8Array ? body.length : body.reduce((sum, part) => sum + part.length, 0)
}
