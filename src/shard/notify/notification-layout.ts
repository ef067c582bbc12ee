// Keys and rows of notifications that are pending or were given up: prefixes O, B and L of layout.ts.

import { assertVersion, Unreadable } from '../../domain/unreadable.js'
import type { Range } from '../../ports.js'
import { KeyReader, prefix, under, writer } from '../keys.js'

export interface OutboxKey {
  readonly shard: number
  /** The stamp of the turn: no other one of the shard has it. */
  readonly stamp: number
}

export const outboxKey = ({ shard, stamp }: OutboxKey): Buffer =>
  writer.begin(prefix.outbox).u16(shard).positive(stamp).key()

export function parseOutboxKey(key: Buffer): OutboxKey {
  const reader = new KeyReader(key)
  return { shard: reader.u16(), stamp: reader.positive() }
}

/** The range of rows of one shard. */
export const outboxRange = (shard: number): Range => under(writer.begin(prefix.outbox).u16(shard).key())

export const allOutbox = (): Range => under(Buffer.from([prefix.outbox]))

/** The key of several rows of the outbox as one, named after one of them. */
export const bundleKey = ({ shard, stamp }: OutboxKey): Buffer =>
  writer.begin(prefix.bundle).u16(shard).positive(stamp).key()

export const allBundles = (): Range => under(Buffer.from([prefix.bundle]))

export interface LetterKey {
  /** The shard of the letter's entity. */
  readonly shard: number
  readonly tenant: string
  readonly subscription: string
  /** When it was given up; no two of one owner have the same. */
  readonly stamp: number
}

export const letterKey = ({ shard, tenant, subscription, stamp }: LetterKey): Buffer =>
  writer.begin(prefix.letter).u16(shard).text(tenant).text(subscription).positive(stamp).key()

export function parseLetterKey(key: Buffer): LetterKey {
  const reader = new KeyReader(key)
  return { shard: reader.u16(), tenant: reader.text(), subscription: reader.text(), stamp: reader.positive() }
}

/** The range of dead letters of one shard. */
export const letterRange = (shard: number): Range => under(writer.begin(prefix.letter).u16(shard).key())

export const allLetters = (): Range => under(Buffer.from([prefix.letter]))

const letterVersion = 1
const letterHeadBytes = 5

/** The row of a dead letter: u8 version, u32 length of the head, the report (JSON), and the bytes to send it again. */
export function encodeLetterRow(head: string, message: Buffer): Buffer {
  const text = Buffer.from(head)
  const begin = Buffer.allocUnsafe(letterHeadBytes)
  begin[0] = letterVersion
  begin.writeUInt32BE(text.length, 1)
  return Buffer.concat([begin, text, message])
}

/** The parts of such a row; `message` shares its memory. Fails with `Unreadable` for one of another version. */
export function decodeLetterRow(row: Buffer): { readonly head: string; readonly message: Buffer } {
  assertVersion('a dead letter', row[0], letterVersion)
  const end = row.length < letterHeadBytes ? Number.POSITIVE_INFINITY : letterHeadBytes + row.readUInt32BE(1)
  if (end > row.length) throw new Unreadable('a dead letter is damaged')
  return { head: row.toString('utf8', letterHeadBytes, end), message: row.subarray(end) }
}
