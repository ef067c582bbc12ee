// Bodies of requests that come compressed (docs/interface/compression.md#requests).
//
// The limit of a body counts for what it inflates to, while it is being inflated: a bomb ends at the limit, and costs
// no more than a body of that size. Above `freeBytes` a body may also not inflate to more than `ratioMax` times its
// size, so that a large limit does not let few bytes on the wire cost much memory.
//
// Short bodies are inflated at once, up to `nowBytesMax`. The rest goes to zlib's threads, `jobsMax` at a time; others
// wait, as they came, up to `waitingBytesMax`. So bombs that come together take the memory of `jobsMax` bodies.
//
// Not here: which codings there are (codings.ts), how long a body may be on the wire (request.ts, front.ts).

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

/** What a compressed body may inflate to, whatever its ratio. */
const freeBytes = 1024 * 1024
/** Bodies of readings that repeat each other reach some 50. */
export const inflateRatioMax = 250

/** Compressed bodies up to this size are tried at once, and given up for a thread beyond so many inflated bytes. */
const triedBytesMax = 16 * 1024
const nowBytesMax = 64 * 1024
/** Bytes inflated in one go. */
const chunkSize = 64 * 1024

export interface InflaterLimits {
  /** Bodies that threads inflate at a time. */
  readonly jobsMax: number
  /** Bytes of bodies that wait for that, as they came; one may wait whatever its size. */
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

/** What zlib gives with `info`; its types leave it out. */
interface Inflated {
  readonly buffer: Uint8Array
  /** What it has read: less than it was given when something stands behind the end. */
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

  /** Calls `onInflated` once, now or later. The caller may reuse `body` when this returns. `bytesMax`: of a body. */
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
    // Brotli does not take the trouble to name `info` among its options, and has it.
    const options = { maxOutputLength: limitOf(body, bytesMax), chunkSize, info: true }
    if (coding === 'gzip') gunzip(body, options as ZlibOptions, onDone)
    else brotliDecompress(body, options as BrotliOptions, onDone)
  }
}

/** undefined: it is too long for that. */
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

/** At least 1: zlib takes no 0. */
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
