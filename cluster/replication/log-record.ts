// One record of a shard's log, as bytes, and the chain that all records of a shard make.
//
//   u8 version | u8 flags | u16 shard | u64 epoch | u64 sequence | 16 bytes hash before | payload
//
// Each record carries the hash of the chain up to the one before, and its own hash covers that. So a node at a position
// can check that a record belongs right behind it, and that both have the same past. A payload that is too long for one
// record continues in the next ones; together they are one step. If its owner is superseded in the middle, the step is
// void: the next record begins a new one.
//
// Not here: the content of a payload (the host's), where records are kept (shard-log.ts).

import { hash } from 'node:crypto'
import type { LogPosition } from './shard-host.js'

const version = 1
/** The payload continues in the next record; it began in the one before. */
const flag = { continues: 1, continuesPrevious: 2 } as const
const headBytes = 36
export const hashBytes = 16

/** The bytes of a record besides its payload. */
export const recordOverheadBytes = headBytes

export interface DecodedRecord {
  readonly shard: number
  readonly epoch: number
  readonly sequence: number
  /** The hash of the chain up to the record before. */
  readonly before: Buffer
  readonly fragment: Fragment
  /** Shares the memory of the record. */
  readonly payload: Buffer
}

/** Which part of a payload a record holds. */
export interface Fragment {
  /** Whether it continues in the next record. */
  readonly continues: boolean
  /** Whether it began in the record before. */
  readonly continuesPrevious: boolean
}

/** The position before the first record of every log. */
export const beginning: LogPosition = { sequence: 0, epoch: 0, hash: Buffer.alloc(hashBytes) }

/** The bytes of the record right behind a position. */
export function encodeRecord(
  shard: number,
  epoch: number,
  { sequence, hash: before }: LogPosition,
  payload: Buffer,
  { continues, continuesPrevious }: Fragment,
): Buffer {
  const bytes = Buffer.allocUnsafe(headBytes + payload.length)
  bytes[0] = version
  bytes[1] = (continues ? flag.continues : 0) | (continuesPrevious ? flag.continuesPrevious : 0)
  bytes.writeUInt16BE(shard, 2)
  bytes.writeBigUInt64BE(BigInt(epoch), 4)
  bytes.writeBigUInt64BE(BigInt(sequence + 1), 12)
  before.copy(bytes, 20)
  payload.copy(bytes, headBytes)
  return bytes
}

/** undefined: these bytes are no record of a version that is known here (`unreadable` gives the reason). */
export function decodeRecord(bytes: Buffer): DecodedRecord | undefined {
  if (bytes.length < headBytes || bytes[0] !== version) return undefined
  const flags = bytes[1] as number
  return {
    shard: bytes.readUInt16BE(2),
    epoch: Number(bytes.readBigUInt64BE(4)),
    sequence: Number(bytes.readBigUInt64BE(12)),
    before: bytes.subarray(20, headBytes),
    fragment: { continues: (flags & flag.continues) !== 0, continuesPrevious: (flags & flag.continuesPrevious) !== 0 },
    payload: bytes.subarray(headBytes),
  }
}

/** Why bytes in a log are no record, in words. */
export const unreadable = (sequence: number, bytes: Buffer): string =>
  bytes.length < headBytes
    ? `record ${sequence} has ${bytes.length} bytes, which is too few`
    : `record ${sequence} has version ${bytes[0]}, and this build reads version ${version}: start the build that wrote it`

/** The position of a record: the chain up to it. */
export function positionOf(bytes: Buffer, { epoch, sequence }: Pick<DecodedRecord, 'epoch' | 'sequence'>): LogPosition {
  return { sequence, epoch, hash: hash('sha256', bytes, 'buffer').subarray(0, hashBytes) }
}

/** Why a record does not belong right behind a position, in words; undefined: it does. */
export function misfit(shard: number, at: LogPosition, record: DecodedRecord): string | undefined {
  if (record.shard !== shard) return `record ${record.sequence} is of shard ${record.shard}`
  if (record.sequence !== at.sequence + 1) return `record ${record.sequence} follows record ${at.sequence}`
  if (record.epoch < at.epoch) return `record ${record.sequence} has epoch ${record.epoch} after ${at.epoch}`
  if (!record.before.equals(at.hash))
    return `record ${record.sequence} was appended to another past than the one known here`
  return undefined
}
