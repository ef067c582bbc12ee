// Writing and reading of keys of all kinds.
//
// A text ends in a zero byte, and the bytes 0 and 1 inside a text are escaped. So keys sort as their parts do, and no
// tenant, path or id can reach into the range of another one. Numbers are big-endian. Times are doubles, shifted to be
// positive: their bytes sort as they do.
//
// The first byte is the kind. Not here: the parts after it (layout.ts, document-layout.ts, notification-layout.ts, and
// for a node of a cluster shard/replicate/replicated-layout.ts).

import assert from 'node:assert/strict'
import type { Range } from '../ports.js'

/** The first byte of every kind of row. A new kind has to name the destination of its rows (`destinations`). */
export const prefix = {
  entity: 0x45,
  type: 0x54,
  id: 0x49,
  expiry: 0x58,
  directory: 0x44,
  attribute: 0x41,
  registration: 0x52,
  subscription: 0x53,
  progress: 0x50,
  outbox: 0x4f,
  bundle: 0x42,
  letter: 0x4c,
  meta: 0x4d,
  path: 0x4e,
} as const

/** Where rows go when shards move to another store. */
export type Destination = 'shard' | 'register' | 'progress' | 'paths' | 'anew' | 'split' | 'note'

/**
 * Where the rows of each kind go: when a data directory is divided or moves into a cluster and back (transfer.ts), and
 * in snapshots between nodes (replicate/snapshot.ts).
 *
 *   shard      with their shard, byte by byte
 *   register   with the register, byte by byte. Every store has all of them, and those of the register's keeper count
 *   progress   with the register. Several workers have parts, which become one in the store of the keeper
 *   paths      with the register. Stores that had none get them from the counts of entities
 *   anew       nowhere, they are made from the entities
 *   split      nowhere, rows of the outbox are made of them before anything moves
 *   note       nowhere, they are the store's own
 */
export const destinations = {
  entity: 'shard',
  type: 'anew',
  id: 'anew',
  expiry: 'anew',
  directory: 'anew',
  attribute: 'anew',
  registration: 'register',
  subscription: 'register',
  progress: 'progress',
  outbox: 'shard',
  bundle: 'split',
  letter: 'shard',
  meta: 'note',
  path: 'paths',
} as const satisfies Record<keyof typeof prefix, Destination>

/** The first bytes of all kinds whose rows go to one of these destinations, in ascending order. */
export const kindsThatGo = (...to: readonly Destination[]): readonly number[] =>
  (Object.keys(prefix) as (keyof typeof prefix)[])
    .filter(kind => to.includes(destinations[kind]))
    .map(kind => prefix[kind])
    .sort((a, b) => a - b)

/** Longer than any key: 11 path levels, an id, a type and a tenant, all escaped, and the numbers. */
const keyBytesMax = 8192
const scratch = Buffer.allocUnsafe(keyBytesMax)

/** Writes the parts of a key into one shared buffer, which the next key overwrites. */
export class KeyWriter {
  private at = 0

  begin(first: number): this {
    scratch[0] = first
    this.at = 1
    return this
  }

  // [hot] Some ten times per create. A loop over bytes is quicker than a call into the runtime.
  text(value: string): this {
    const { at } = this
    const { length } = value
    for (let i = 0; i < length; i++) {
      const code = value.charCodeAt(i)
      if (code < 0x20 || code > 0x7e) return this.escaped(value)
      scratch[at + i] = code
    }
    return this.end(at + length)
  }

  private escaped(value: string): this {
    let { at } = this
    for (const byte of Buffer.from(value)) {
      if (byte > 1) {
        scratch[at++] = byte
      } else {
        scratch[at++] = 1
        scratch[at++] = byte + 1
      }
    }
    return this.end(at)
  }

  private end(at: number): this {
    scratch[at] = 0
    this.at = at + 1
    return this
  }

  u16(value: number): this {
    this.at = scratch.writeUInt16BE(value, this.at)
    return this
  }

  positive(value: number): this {
    this.at = scratch.writeDoubleBE(value, this.at)
    return this
  }

  key(): Buffer {
    assert(this.at < keyBytesMax, 'a key is longer than its limit')
    return Buffer.from(scratch.subarray(0, this.at))
  }
}

export const writer = new KeyWriter()

/** Reads the parts of a key. */
export class KeyReader {
  private at = 1
  private readonly key: Buffer

  constructor(key: Buffer) {
    this.key = key
  }

  text(): string {
    const end = this.key.indexOf(0, this.at)
    assert(end >= 0, 'a text in a key has no end')
    const bytes = this.key.subarray(this.at, end)
    this.at = end + 1
    if (!bytes.includes(1)) return bytes.toString()
    const plain: number[] = []
    for (let i = 0; i < bytes.length; i++) plain.push(bytes[i] === 1 ? bytes[++i]! - 1 : bytes[i]!)
    return Buffer.from(plain).toString()
  }

  u16(): number {
    this.at += 2
    return this.key.readUInt16BE(this.at - 2)
  }

  positive(): number {
    this.at += 8
    return this.key.readDoubleBE(this.at - 8)
  }
}

/** The range of all keys that begin with the given bytes. */
export function under(start: Buffer): Range {
  const end = Buffer.from(start)
  let last = end.length - 1
  while (end[last] === 0xff) last--
  end[last]!++
  return { gte: start, lt: end.subarray(0, last + 1) }
}

/** The shard of a key. Keys of counts and the type index end with it; rows made from no other rows begin with it. */
export const shardOfKey = (key: Buffer): number =>
  key.readUInt16BE(endsWithShard.has(key[0]) ? key.length - shardBytes : 1)

const endsWithShard: ReadonlySet<number | undefined> = new Set([prefix.type, prefix.directory, prefix.attribute])
const shardBytes = 2

/** A number as the value of a row. */
export function encodeNumber(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(8)
  bytes.writeDoubleBE(value)
  return bytes
}

export const decodeNumber = (bytes: Buffer): number => bytes.readDoubleBE(0)
