// Compresses the bodies of answers (docs/interface/compression.md).
//
// A short body is compressed at once: at the levels below, 16 KB take up to 0.1 ms. A longer one goes to zlib's threads
// in pieces, so that no thread is busy for longer than some 2 ms: the store needs them too. While `jobsMax` bodies or
// `jobBytesMax` bytes are being compressed, further long bodies are sent uncompressed: compression may save network
// traffic, but no client should wait for a processor because of it.
//
// Measured with lists of sensors (bytes left of 100, one core): 4 KB: br 4 13.0 in 0.03 ms, gzip 6 14.3 in 0.02 ms;
// 64 KB: br 3 8.3 in 0.14 ms, gzip 4 9.9 in 0.18 ms; 1 MB: br 2 8.2 in 3.5 ms, gzip 2 9.9 in 3.0 ms.
//
// Not here: the choice of coding (codings.ts), and the memory of the answer (answers-in-flight.ts).

import {
  type BrotliOptions,
  brotliCompressSync,
  constants,
  createBrotliCompress,
  createGzip,
  gzipSync,
  type ZlibOptions,
} from 'node:zlib'
import type { Coding } from './codings.js'

/** Bodies up to this size are sent uncompressed: they fit a packet or little more, and heads take as much. */
export const compressBytesMin = 1024
/** Bodies up to this size are compressed in the turn in which they are sent. */
export const compressNowBytesMax = 16 * 1024

export interface CompressorLimits {
  /** The limit of long bodies that are compressed at a time. */
  readonly jobsMax: number
  /** The limit of their bytes before compression. */
  readonly jobBytesMax: number
}

const limitsDefault: CompressorLimits = { jobsMax: 8, jobBytesMax: 64 * 1024 * 1024 }

/** Bytes that a thread compresses at a time. */
const pieceBytesMax = 64 * 1024

/** The level of each coding for bodies up to some size. The last line is for all longer ones. */
const levels: readonly { readonly bytesMax: number; readonly gzip: number; readonly br: number }[] = [
  { bytesMax: compressNowBytesMax, gzip: 6, br: 4 },
  { bytesMax: 256 * 1024, gzip: 4, br: 3 },
  { bytesMax: Number.POSITIVE_INFINITY, gzip: 2, br: 2 },
]

/** The window of brotli, as a power of two: a larger one takes megabytes for each body, and gains little. */
const brotliWindowMin = 10
const brotliWindowMax = 18

type OnCompressed = (parts: readonly Uint8Array[] | undefined) => void

export class Compressor {
  #jobs = 0
  #jobBytes = 0
  readonly #limits: CompressorLimits

  constructor(limits: CompressorLimits = limitsDefault) {
    this.#limits = limits
  }

  /** Compresses a body of up to `compressNowBytesMax`; undefined: the result is not shorter. */
  compressNow(body: Uint8Array, coding: Coding): Uint8Array | undefined {
    const { length } = body
    const compressed =
      coding === 'gzip' ? gzipSync(body, gzipOptions(length)) : brotliCompressSync(body, brotliOptions(length))
    return compressed.length < length ? compressed : undefined
  }

  /**
   * Begins to compress a body of `length` bytes. Returns false if there is no room; then `onCompressed` is not called.
   * Otherwise it is called later, with undefined if the result is not shorter.
   */
  compressLater(parts: readonly Uint8Array[], length: number, coding: Coding, onCompressed: OnCompressed): boolean {
    const { jobsMax, jobBytesMax } = this.#limits
    if (this.#jobs >= jobsMax || this.#jobBytes + length > jobBytesMax) return false
    this.#jobs++
    this.#jobBytes += length
    compressParts(parts, length, coding, compressed => {
      this.#jobs--
      this.#jobBytes -= length
      onCompressed(compressed)
    })
    return true
  }
}

/** Calls `onCompressed` once. */
function compressParts(parts: readonly Uint8Array[], length: number, coding: Coding, onCompressed: OnCompressed): void {
  const stream = coding === 'gzip' ? createGzip(gzipOptions(length)) : createBrotliCompress(brotliOptions(length))
  const compressed: Uint8Array[] = []
  let bytes = 0
  let isOver = false
  const end = (result: readonly Uint8Array[] | undefined): void => {
    if (isOver) return
    isOver = true
    stream.destroy()
    onCompressed(result)
  }
  stream.on('data', (piece: Uint8Array) => {
    bytes += piece.length
    if (bytes >= length) end(undefined)
    else compressed.push(piece)
  })
  stream.once('end', () => end(compressed))
  stream.on('error', () => end(undefined))
  for (const part of parts)
    for (let at = 0; at < part.length; at += pieceBytesMax) stream.write(part.subarray(at, at + pieceBytesMax))
  stream.end()
}

const levelOf = (length: number) => levels.find(({ bytesMax }) => length <= bytesMax)!

const gzipOptions = (length: number): ZlibOptions => ({ level: levelOf(length).gzip })

function brotliOptions(length: number): BrotliOptions {
  const window = Math.min(brotliWindowMax, Math.max(brotliWindowMin, Math.ceil(Math.log2(length))))
  const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_LGWIN, BROTLI_PARAM_SIZE_HINT } = constants
  return {
    params: {
      [BROTLI_PARAM_QUALITY]: levelOf(length).br,
      [BROTLI_PARAM_LGWIN]: window,
      [BROTLI_PARAM_SIZE_HINT]: length,
    },
  }
}
