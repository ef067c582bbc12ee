// Keys in etcd: what stands where.
//
//   /orrery/<cluster>/owner/<shard>            the latest takeover: its owner; its revision is the epoch. Never deleted
//   /orrery/<cluster>/log/<shard>/<sequence>   a record; the last one is never deleted
//   /orrery/<cluster>/meta/<name>              what was created once
//   /orrery/<cluster>/heartbeat/<node>         the latest heartbeat of a node; one key for each name that a node has ever had
//
// Numbers have a fixed width, so that their order as text is their order. All of it is one range, which can be watched as one: what
// happens to a shard is told in order.

import assert from 'node:assert/strict'

/** Digits: as many as the largest safe integer has. */
const sequenceDigits = 16

const shardDigits = 5

export const shardsMax = 10 ** shardDigits

/** Characters of a cluster's id and of a name under `meta`. */
const nameLengthMax = 100

/** From a key up to, and without, another one. */
export interface KeyRange {
  readonly key: Buffer
  readonly range_end: Buffer
}

/** What a key is about. */
export type Place =
  | { readonly kind: 'owner'; readonly shard: number }
  | { readonly kind: 'record'; readonly shard: number; readonly sequence: number }
  | { readonly kind: 'heartbeat'; readonly node: string }

export class EtcdKeys {
  private readonly prefix: string

  constructor(cluster: string) {
    this.prefix = `/orrery/${named(cluster)}/`
  }

  /** Everything of this cluster. */
  get all(): KeyRange {
    return within(this.prefix)
  }

  get owners(): KeyRange {
    return within(`${this.prefix}owner/`)
  }

  owner(shard: number): Buffer {
    return Buffer.from(`${this.prefix}owner/${shardText(shard)}`)
  }

  record(shard: number, sequence: number): Buffer {
    return Buffer.from(this.logOf(shard) + sequenceText(sequence))
  }

  /** All records of a shard. */
  log(shard: number): KeyRange {
    return within(this.logOf(shard))
  }

  /** The records from a number on. */
  recordsFrom(shard: number, sequence: number): KeyRange {
    return { key: this.record(shard, sequence), range_end: this.log(shard).range_end }
  }

  /** The records from a number up to and with another one. */
  recordsBetween(shard: number, from: number, to: number): KeyRange {
    return { key: this.record(shard, from), range_end: this.record(shard, to + 1) }
  }

  meta(name: string): Buffer {
    return Buffer.from(`${this.prefix}meta/${named(name)}`)
  }

  heartbeat(node: string): Buffer {
    return Buffer.from(`${this.prefix}heartbeat/${named(node)}`)
  }

  /** Undefined for what is told of by nobody. */
  placeOf(key: Buffer): Place | undefined {
    const text = key.toString('latin1')
    if (!text.startsWith(this.prefix)) return undefined
    const [kind, shard, sequence] = text.slice(this.prefix.length).split('/')
    if (kind === 'owner') return { kind: 'owner', shard: Number(shard) }
    if (kind === 'log') return { kind: 'record', shard: Number(shard), sequence: Number(sequence) }
    if (kind === 'heartbeat' && shard !== undefined) return { kind: 'heartbeat', node: shard }
    return undefined
  }

  private logOf(shard: number): string {
    return `${this.prefix}log/${shardText(shard)}/`
  }
}

function within(prefix: string): KeyRange {
  assert(prefix.endsWith('/'))
  return { key: Buffer.from(prefix), range_end: Buffer.from(`${prefix.slice(0, -1)}0`) }
}

function named(name: string): string {
  assert(/^[A-Za-z0-9._-]+$/.test(name) && name.length <= nameLengthMax, `not a name: '${name}'`)
  return name
}

function shardText(shard: number): string {
  assert(Number.isInteger(shard) && shard >= 0 && shard < shardsMax, `not a shard: ${shard}`)
  return String(shard).padStart(shardDigits, '0')
}

function sequenceText(sequence: number): string {
  assert(Number.isSafeInteger(sequence) && sequence >= 0, `not a sequence: ${sequence}`)
  return String(sequence).padStart(sequenceDigits, '0')
}
