// A Bloom filter over the keys of all rows. It knows which ids certainly have no row, so the store is not searched for
// them.
//
// A search that finds nothing costs 4 to 6 us, a tenth of the cost of creating an entity, and every creation under a
// new id needs one. The filter costs 0.1 us. It may report a row that does not exist, never the other way round. Keys
// are only added: a key whose row was deleted is searched for as before.
//
// The filter is useful once it has every key of the store. If the store is not empty, its keys are read after the
// start: some thousands at a time, on the reader thread where there is one. New keys are added meanwhile. Until the end
// of that, every key may exist. When there are too many keys for its memory the filter gives up, and every key may
// exist again.

import type { Clock, StoreReader } from '../../ports.js'
import { rowsOf } from '../../rows.js'
import { allEntities } from '../layout.js'

/** One portion of the keys to read. */
export interface KeyScan {
  /** Keys after this one; undefined: from the beginning. */
  readonly after: Uint8Array | undefined
  readonly count: number
}

/** The hashes of some keys. */
export interface KeyHashes {
  /** Two 32-bit numbers a key. */
  readonly hashes: Uint32Array
  /** The last key; undefined when there is none after `after`. */
  readonly last: Uint8Array | undefined
}

const rowsPerRead = 512

/** The hashes of the next keys; none at the end. `breathe` gives other work its turn. */
export async function readKeys(
  store: StoreReader,
  { after, count }: KeyScan,
  breathe: () => Promise<void>,
): Promise<KeyHashes> {
  const { gte, lt } = allEntities()
  const range = { gte: after ? Buffer.concat([after, zero]) : gte, lt }
  const hashes = new Uint32Array(2 * count)
  let last: Uint8Array | undefined
  let read = 0
  for await (const rows of rowsOf(store, range, { parts: 'keys', rowsPerRead: Math.min(rowsPerRead, count) })) {
    for (const { key } of rows.slice(0, count - read)) {
      hash(key)
      hashes[2 * read] = h1
      hashes[2 * read + 1] = h2
      last = key
      read++
    }
    await breathe()
    if (read === count) break
  }
  return { hashes: hashes.slice(0, 2 * read), last }
}

const zero = Buffer.alloc(1)

/** Reads keys apart from the turns of the event loop. */
export interface KeySource {
  keys(scan: KeyScan): Promise<KeyHashes>
}

/** Keys read at a time: adding them takes 1 ms. */
const keysPerScan = 8192
/** Pause between two portions. Reading a million keys takes some 10 s, at a fifth of a core. */
const pauseMs = 50

export class KeyFilter {
  /** undefined: there are too many keys. */
  private filter: Filter | undefined = new Filter()
  /** The same filter once it has every key of the store. */
  private whole: Filter | undefined
  private stopped = false
  private wake = (): void => {}

  // [hot] Once per entity that is not in memory.
  /** Whether the store may have a row of this key; false is certain. */
  mayHold(key: Uint8Array): boolean {
    const { whole } = this
    if (!whole) return true
    hash(key)
    return whole.has()
  }

  /** Notes that a row of this key has been staged. */
  add(key: Uint8Array): void {
    if (!this.filter) return
    hash(key)
    this.addHashed()
  }

  /**
   * Reads the keys of the store in the background; until that has ended, every key may exist. Rejects when the store
   * cannot be read.
   */
  async learn(store: StoreReader, source: KeySource, clock: Pick<Clock, 'after'>): Promise<void> {
    let after: Uint8Array | undefined
    // A new store needs no thread.
    let isRead = (await readKeys(store, { after, count: 1 }, async () => {})).last === undefined
    while (!isRead) {
      const { hashes, last } = await source.keys({ after, count: keysPerScan })
      for (let i = 0; i < hashes.length; i += 2) {
        h1 = hashes[i]!
        h2 = hashes[i + 1]!
        this.addHashed()
      }
      if (!this.filter || this.stopped) return
      isRead = last === undefined
      after = last
      if (!isRead) await this.pause(clock)
    }
    this.whole = this.filter
  }

  /** Stops the reading of keys. */
  stop(): void {
    this.stopped = true
    this.wake()
  }

  private pause(clock: Pick<Clock, 'after'>): Promise<void> {
    return new Promise(resolve => {
      const cancel = clock.after(pauseMs, resolve)
      this.wake = () => {
        cancel()
        resolve()
      }
    })
  }

  private addHashed(): void {
    if (!this.filter || this.filter.add()) return
    this.filter = undefined
    this.whole = undefined
  }
}

// The hash of the last key. Variables of the module instead of a returned object, because this runs for every new id.
let h1 = 0
let h2 = 0

/**
 * Two multiplicative hashes of a key's bytes, mixed at the end (the finalizer of MurmurHash3). They are not stored, so
 * the function may change.
 */
function hash(key: Uint8Array): void {
  let a = 0x9747b28c ^ key.length
  let b = 0x1b873593
  for (let i = 0; i < key.length; i++) {
    a = Math.imul(a ^ key[i]!, 0x01000193)
    b = Math.imul((b << 5) ^ (b >>> 27) ^ key[i]!, 0x85ebca6b)
  }
  h1 = mixed(a)
  h2 = mixed(b)
}

function mixed(value: number): number {
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35)
  return (value ^ (value >>> 16)) >>> 0
}

/** A key sets this many bits of one block, and a block is a line of the processor's cache. */
const bitsPerKey = 3
const wordsPerBlock = 16
/** At 16 bits a key, the filter reports one in 150 missing keys as existing. */
const keysPerBlock = 32
const blocksFirst = 2048
/** The last layer that is added: 8 million keys in 32 MB, all layers together. */
const blocksMax = 2 ** 18

/**
 * Layers, each twice as large as the one before; a full layer does not change. Methods use the hash of the last key.
 */
class Filter {
  private readonly layers: Uint32Array[] = [new Uint32Array(blocksFirst * wordsPerBlock)]
  private inLast = 0

  has(): boolean {
    for (const words of this.layers) if (hasAllBits(words)) return true
    return false
  }

  /** Adds the key. Returns false when there is no room for it. */
  add(): boolean {
    if (this.has()) return true
    let last = this.layers.at(-1)!
    let blocks = last.length / wordsPerBlock
    if (this.inLast >= blocks * keysPerBlock) {
      blocks *= 2
      if (blocks > blocksMax) return false
      last = new Uint32Array(blocks * wordsPerBlock)
      this.layers.push(last)
      this.inLast = 0
    }
    const at = blockOf(last)
    for (let bit = 0; bit < bitsPerKey; bit++) {
      const place = placeOf(bit)
      last[at + (place >>> 5)]! |= 1 << (place & 31)
    }
    this.inLast++
    return true
  }
}

/** The index at which the key's block begins. */
const blockOf = (words: Uint32Array): number => (h1 & (words.length / wordsPerBlock - 1)) * wordsPerBlock

/** The position of a bit among the 512 of a block. */
const placeOf = (bit: number): number => (h2 >>> (bit * 9)) & 511

function hasAllBits(words: Uint32Array): boolean {
  const at = blockOf(words)
  for (let bit = 0; bit < bitsPerKey; bit++) {
    const place = placeOf(bit)
    if ((words[at + (place >>> 5)]! & (1 << (place & 31))) === 0) return false
  }
  return true
}
