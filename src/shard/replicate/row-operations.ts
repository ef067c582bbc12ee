// Row operations: the operations of one commit on the rows of one shard, as the bytes of a record of its log; and rows
// of a snapshot, which are the same without deletions.
//
//   u8 version   f64 the last stamp of the writer   then of each operation
//   u8 1   u16 length   key   u32 length   value        a row is put
//   u8 2   u16 length   key                             a row is deleted
//
// They are idempotent: applied twice, or to a store that has some of them already, they lead to the same rows. The code
// that applies them need not know their meaning.

import { assertVersion, Unreadable } from '../../domain/unreadable.js'
import type { RowSink } from '../../ports.js'
import { mayBeOf } from './replicated-layout.js'

/** Version 1 had counts in other rows. */
const version = 2
const headBytes = 9
const putByte = 1
const delByte = 2
const firstBytes = 4096

/** One of them; without a value the row is deleted. */
export interface RowOperation {
  readonly key: Buffer
  readonly value: Buffer | undefined
}

export interface RowOperations {
  readonly stamp: number
  readonly operations: readonly RowOperation[]
}

/** Writes operations one after the other. */
export class OperationWriter implements RowSink {
  private bytes = Buffer.allocUnsafe(firstBytes)
  private at = headBytes

  /** Bytes so far. */
  get length(): number {
    return this.at
  }

  // [hot] For every row of every change of a node of a cluster.
  put(key: Uint8Array, value: Uint8Array): void {
    this.key(putByte, key, 4 + value.length)
    this.at = this.bytes.writeUInt32BE(value.length, this.at)
    this.bytes.set(value, this.at)
    this.at += value.length
  }

  del(key: Uint8Array): void {
    this.key(delByte, key, 0)
  }

  private key(kind: number, key: Uint8Array, behind: number): void {
    const end = this.at + 3 + key.length + behind
    if (end > this.bytes.length) this.grow(end)
    this.bytes[this.at] = kind
    const at = this.bytes.writeUInt16BE(key.length, this.at + 1)
    this.bytes.set(key, at)
    this.at = at + key.length
  }

  private grow(needed: number): void {
    const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.bytes.length))
    this.bytes.copy(larger, 0, 0, this.at)
    this.bytes = larger
  }

  /** The bytes. They change when more is put. */
  end(stamp: number): Buffer {
    this.bytes[0] = version
    this.bytes.writeDoubleBE(stamp, 1)
    return this.bytes.subarray(0, this.at)
  }
}

/**
 * The operations in such bytes, which share their memory. Fails with `Unreadable` when the bytes are incomplete, of
 * another version, or about another shard: then nothing of them may be applied.
 */
export function decodeOperations(bytes: Buffer, shard: number): RowOperations {
  if (bytes.length < headBytes) throw damaged(shard, 'it ends too early')
  assertVersion(`a record of shard ${shard}`, bytes[0], version)
  const stamp = bytes.readDoubleBE(1)
  if (!Number.isSafeInteger(stamp) || stamp < 0) throw damaged(shard, 'its stamp is none')
  const operations: RowOperation[] = []
  let at = headBytes
  const read = (length: number): Buffer => {
    if (at + length > bytes.length) throw damaged(shard, 'it ends too early')
    at += length
    return bytes.subarray(at - length, at)
  }
  while (at < bytes.length) {
    const [kind] = read(1)
    if (kind !== putByte && kind !== delByte) throw damaged(shard, `it has an operation ${kind}`)
    const key = read(read(2).readUInt16BE())
    if (!mayBeOf(key, shard)) throw damaged(shard, `it has a row of another shard, key ${key.toString('hex')}`)
    operations.push({ key, value: kind === putByte ? read(read(4).readUInt32BE()) : undefined })
  }
  return { stamp, operations }
}

const damaged = (shard: number, why: string): Error =>
  new Unreadable(`a record of shard ${shard} cannot be read: ${why}`)
