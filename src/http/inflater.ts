// Inflates compressed bodies of requests (docs/interface/compression.md#requests).
//
// The limit of a body applies to the inflated bytes, while they are produced. So a decompression bomb ends at the
// limit, and costs no more than a body of that size. Above `freeBytes` a body may also not inflate to more than
// `ratioMax` times its size, so that a large limit does not let few bytes on the wire cost much memory.
//
// Short bodies are inflated at once, up to `nowBytesMax`. The others go to zlib's threads, `jobsMax` at a time; the
// rest wait compressed, up to `waitingBytesMax`. So several bombs at a time take the memory of `jobsMax` bodies.
//
// Not here: the list of codings (codings.ts), the limit of a body on the wire (request.ts, front.ts).

import {
  type BrotliOptions,
  brotliDecompress,
  brotliDecompressSync,
  gunzip,
  gunzipSync,
  type ZlibOptions,
} from 'node:zlib'
import { accepted, type Refusal, type Result, refusals, refused } from '../domain/refusal.js'
import type { Coding } from './codings.js'

/** The size to which a compressed body may inflate, whatever its ratio. */
const freeBytes = 1024 * 1024
/** Bodies of similar readings reach a ratio of some 50. */
export const inflateRatioMax = 250

/**
 * Compressed bodies up to this size are inflated at once; beyond `nowBytesMax` inflated bytes a thread starts again.
 */
const triedBytesMax = 16 * 1024
const nowBytesMax = 64 * 1024
/** Bytes that are inflated in one step. */
const chunkSize = 64 * 1024

export interface InflaterLimits {
  /** Bodies that threads inflate at a time. */
  readonly jobsMax: number
  /** The limit of compressed bytes that wait for a thread. One body may wait whatever its size. */
  readonly waitingBytesMax: number
}

const limitsDefault: InflaterLimits = { jobsMax: 4, waitingBytesMax: 16 * 1024 * 1024 }

type OnInflated = (body: Result<Uint8Array>) => void

interface Waiting {
  readonly body: Uint8Array
  readonly coding: Coding
  readonly bytesMax: number
  readonly onInflated: OnInflated
}

/** The result of zlib with `info`, which its types lack. */
interface Inflated {
  readonly buffer: Uint8Array
  /** Bytes that it has read: fewer than it received when there are bytes after the end. */
  readonly engine: { readonly bytesWritten: number }
}

export class Inflater {
  #jobs = 0
  #waitingBytes = 0
  #waiting: Waiting[] = []
  readonly #limits: InflaterLimits

  constructor(limits: InflaterLimits = limitsDefault) {
    this.#limits = limits
  }

  /**
   * Calls `onInflated` once, now or later. The caller may reuse `body` when this returns. `bytesMax`: the limit of a
   * body.
   */
  inflate(body: Uint8Array, coding: Coding, bytesMax: number, onInflated: OnInflated): void {
    const { jobsMax, waitingBytesMax } = this.#limits
    if (body.length <= triedBytesMax) {
      const inflated = inflateNow(body, coding, bytesMax)
      if (inflated) return onInflated(inflated)
    }
    if (this.#waiting.length > 0 && this.#waitingBytes + body.length > waitingBytesMax)
      return onInflated(refused(refusals.requestsTooMany))
    this.#waiting.push({ body: Buffer.from(body), coding, bytesMax, onInflated })
    this.#waitingBytes += body.length
    if (this.#jobs < jobsMax) this.#begin()
  }

  /** Begins with the body that has waited longest. */
  #begin(): void {
    const next = this.#waiting.shift()
    if (!next) return
    const { body, coding, bytesMax, onInflated } = next
    this.#waitingBytes -= body.length
    this.#jobs++
    const onDone = (error: Error | null, inflated: unknown): void => {
      this.#jobs--
      this.#begin()
      onInflated(error ? refused(refusalOf(error, body, coding, bytesMax)) : whole(inflated, body, coding))
    }
    // The types of brotli lack `info`, but it accepts the option.
    const options = { maxOutputLength: limitOf(body, bytesMax), chunkSize, info: true }
    if (coding === 'gzip') gunzip(body, options as ZlibOptions, onDone)
    else brotliDecompress(body, options as BrotliOptions, onDone)
  }
}

/** undefined: the inflated body is too long for that. */
function inflateNow(body: Uint8Array, coding: Coding, bytesMax: number): Result<Uint8Array> | undefined {
  const limit = limitOf(body, bytesMax)
  const options = { maxOutputLength: Math.min(limit, nowBytesMax), info: true }
  try {
    const inflated: unknown =
      coding === 'gzip'
        ? gunzipSync(body, options as ZlibOptions)
        : brotliDecompressSync(body, options as BrotliOptions)
    return whole(inflated, body, coding)
  } catch (error) {
    if (isTooLong(error as Error) && limit > nowBytesMax) return undefined
    return refused(refusalOf(error as Error, body, coding, bytesMax))
  }
}

/** At least 1: zlib does not accept 0. */
const limitOf = ({ length }: Uint8Array, bytesMax: number): number =>
  Math.max(1, Math.min(bytesMax, Math.max(freeBytes, length * inflateRatioMax)))

const isTooLong = (error: NodeJS.ErrnoException): boolean => error.code === 'ERR_BUFFER_TOO_LARGE'

function refusalOf(error: Error, body: Uint8Array, coding: Coding, bytesMax: number): Refusal {
  if (!isTooLong(error)) return refusals.notInflated(coding)
  return limitOf(body, bytesMax) < bytesMax
    ? refusals.payloadInflates(inflateRatioMax)
    : refusals.payloadBeyond(bytesMax)
}

function whole(inflated: unknown, body: Uint8Array, coding: Coding): Result<Uint8Array> {
  const { buffer, engine } = inflated as Inflated
  return engine.bytesWritten === body.length ? accepted(buffer) : refused(refusals.notInflated(coding))
}
