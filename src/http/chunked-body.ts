// The body of a request that comes in chunks, assembled as it comes.
//
// Its length is unknown in advance. One buffer doubles its size as needed, up to the limit of a body. A buffer for each
// chunk would take some 100 bytes for a chunk of a single byte.
//
// Not here: the boundaries of chunks (the servers' parsers), the answer to a body that is too large (server.ts).

import { chunksMax, type Excess } from './front.js'

const firstBytes = 4 * 1024

export class ChunkedBody {
  readonly #bytesMax: number
  readonly #chunksMax: number
  #buffer = Buffer.alloc(0)
  #bytes = 0
  #chunks = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
    this.#chunksMax = chunksMax(bytesMax)
  }

  /** Copies a chunk, or a part of one. After it has returned an excess it must not be called again. */
  add(chunk: Uint8Array): Excess | undefined {
    const bytes = this.#bytes + chunk.length
    if (bytes > this.#bytesMax) return 'bytes'
    if (++this.#chunks > this.#chunksMax) return 'chunks'
    if (bytes > this.#buffer.length) this.#grow(bytes)
    this.#buffer.set(chunk, this.#bytes)
    this.#bytes = bytes
    return undefined
  }

  /** The bytes received so far. */
  whole(): Uint8Array {
    return this.#buffer.subarray(0, this.#bytes)
  }

  #grow(bytes: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(firstBytes, bytes, Math.min(2 * bytes, this.#bytesMax)))
    larger.set(this.whole())
    this.#buffer = larger
  }
}
