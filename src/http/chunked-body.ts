// The body of a request that comes in chunks, put together as it comes.
//
// Nobody knows how long it will be. One buffer grows with it, twice as large each time, up to the limit of a body: a
// buffer for each chunk would take some 100 bytes for one of a single byte.
//
// Not here: where a chunk begins and ends (the servers' parsers), and what is answered when it is too much (server.ts).

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

  /** Copies a chunk, or a part of one. Once it has told of an excess it must not be called again. */
  add(chunk: Uint8Array): Excess | undefined {
    const bytes = this.#bytes + chunk.length
    if (bytes > this.#bytesMax) return 'bytes'
    if (++this.#chunks > this.#chunksMax) return 'chunks'
    if (bytes > this.#buffer.length) this.#grow(bytes)
    this.#buffer.set(chunk, this.#bytes)
    this.#bytes = bytes
    return undefined
  }

  /** All that has come. */
  whole(): Uint8Array {
    return this.#buffer.subarray(0, this.#bytes)
  }

  #grow(bytes: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(firstBytes, bytes, Math.min(2 * bytes, this.#bytesMax)))
    larger.set(this.whole())
    this.#buffer = larger
  }
}
