// Which ids certainly have no row: what need not be looked for in the store.
//
// A look that finds nothing costs 4 to 6 us, a tenth of what creating an entity costs in all, and whoever creates
// entities of new ids looks for each in vain. Here it costs 0.1 us: a Bloom filter over the keys of all rows, of which
// one may be taken for there that is not, and never the other way round. Keys are only added: one whose row has gone is
// looked for as before.
//
// The filter is of use once every key of the store is in it. A store that is not empty is read for that after the
// start, some thousands of keys at a time and on the reader thread where there is one, while new keys are added as they
// come; until then everything may be there. Too many keys for its memory, and it gives up: everything may be there
// again.

import type { Clock, StoreReader } from '../../ports.js'
import { rowsOf } from '../../rows.js'
import { allEntities } from '../layout.js'

/** A portion of the keys to be read. */
export interface KeyScan {
  /** Behind this key; undefined: from the beginning. */
  readonly after: Uint8Array | undefined
  readonly count: number
}

/** Keys as the filter knows them. */
export interface KeyHashes {
  /** Two 32-bit numbers a key. */
  readonly hashes: Uint32Array
  /** The last key; undefined when there is none behind `after`. */
  readonly last: Uint8Array | undefined
}

const rowsPerRead = 512

/** The hashes of the next keys; none at the end. `breathe` lets others have their turn. */
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

/** Whoever reads keys, apart from the turns of the event loop. */
export interface KeySource {
  keys(scan: KeyScan): Promise<KeyHashes>
}

/** Keys read at a time: adding them takes 1 ms. */
const keysPerScan = 8192
/** Pause between two portions: reading a million keys takes some 10 s, at a fifth of a core. */
const pauseMs = 50

export class KeyFilter {
  /** undefined: there are too many keys. */
  private filter: Filter | undefined = new Filter()
  /** The same once it has every key of the store. */
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
   * Reads what the store holds, in the background: everything may be there until that has ended. Rejects when the store
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

  /** Reads no further. */
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

// The hash of the key looked at last. Module-level registers instead of a returned object: this runs for every new id.
let h1 = 0
let h2 = 0

/**
 * Two multiplicative hashes of a key's bytes, mixed at the end (the finalizer of MurmurHash3). Kept nowhere: they may
 * change.
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
/** At 16 bits a key, one in 150 is taken for there that is not. */
const keysPerBlock = 32
const blocksFirst = 2048
/** The last layer that is added: 8 million keys in 32 MB, all layers together. */
const blocksMax = 2 ** 18

/** Layers, each twice as large as the one before: a full layer stays as it is. About the key that was hashed last. */
class Filter {
  private readonly layers: Uint32Array[] = [new Uint32Array(blocksFirst * wordsPerBlock)]
  private inLast = 0

  has(): boolean {
    for (const words of this.layers) if (stands(words)) return true
    return false
  }

  /** False when there is no room for it. */
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

/** Where the key's block begins. */
const blockOf = (words: Uint32Array): number => (h1 & (words.length / wordsPerBlock - 1)) * wordsPerBlock

/** Which of a block's 512 bits. */
const placeOf = (bit: number): number => (h2 >>> (bit * 9)) & 511

function stands(words: Uint32Array): boolean {
  const at = blockOf(words)
  for (let bit = 0; bit < bitsPerKey; bit++) {
    const place = placeOf(bit)
    if ((words[at + (place >>> 5)]! & (1 << (place & 31))) === 0) return false
  }
  return true
}
