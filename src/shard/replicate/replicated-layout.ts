// Additional keys and rows of a node of a cluster; workers have the first.
//
//   N register tenant path                   -> ''          which service paths there are, of all nodes
//   M 'position' shard                       -> this store's position in the log of the shard
//
// All rows of a shard begin with their kind and its number, and are one range of keys for each kind. Exceptions are the
// indexes T, I and X and the counts D and A, which are made from the entities, and the position, which is the store's
// own.
//
// Subscriptions, registrations and their progress have the number of the register as document owner.

import type { Range } from '../../ports.js'
import { KeyReader, kindsThatGo, prefix, shardOfKey, under, writer } from '../keys.js'
import type { FollowedPosition } from './replication.js'

/** The kinds whose rows begin with their shard, in the order of a snapshot. */
const rangeKinds = kindsThatGo('shard', 'register', 'progress', 'paths')

/** The range of the rows of one such kind. */
export const kindRange = (kind: number, shard: number): Range => under(writer.begin(kind).u16(shard).key())

/** The ranges of a shard's rows, without its indexes and counts. */
export const shardRanges = (shard: number): readonly Range[] => rangeKinds.map(kind => kindRange(kind, shard))

/** The ranges of those rows of the register that all owners have alike, in ascending order. */
export const registerRanges = (register: number): readonly Range[] =>
  kindsThatGo('paths', 'register').map(kind => kindRange(kind, register))

const kindsOfShards: ReadonlySet<number> = new Set(rangeKinds)

/** Whether a key can be that of a row of a shard. Keys of the id index do not contain theirs. */
export function mayBeOf(key: Buffer, shard: number): boolean {
  const [kind] = key
  if (kind === undefined || key.length < shardKeyBytes) return false
  if (kindsOfShards.has(kind)) return key.readUInt16BE(1) === shard
  switch (kind) {
    case prefix.id:
      return true
    case prefix.type:
    case prefix.directory:
    case prefix.attribute:
      return shardOfKey(key) === shard
    case prefix.expiry:
      return key.length > expiryShardAt + 2 && key.readUInt16BE(expiryShardAt) === shard
    default:
      return false
  }
}

const shardKeyBytes = 3
/** After the kind and the date. */
const expiryShardAt = 1 + 8

// Service paths

export const pathKey = (register: number, tenant: string, path: string): Buffer =>
  writer.begin(prefix.path).u16(register).text(tenant).text(path).key()

export const pathRange = (register: number): Range => under(writer.begin(prefix.path).u16(register).key())

/** The range of one tenant. */
export const pathsOfTenant = (register: number, tenant: string): Range =>
  under(writer.begin(prefix.path).u16(register).text(tenant).key())

export function parsePathKey(key: Buffer): { readonly tenant: string; readonly path: string } {
  const reader = new KeyReader(key)
  reader.u16()
  return { tenant: reader.text(), path: reader.text() }
}

// Positions

export const positionKey = (shard: number): Buffer => writer.begin(prefix.meta).text('position').u16(shard).key()

export const allPositions = (): Range => under(writer.begin(prefix.meta).text('position').key())

/** The shard of a position's key. */
export function parsePositionKey(key: Buffer): number {
  const reader = new KeyReader(key)
  reader.text()
  return reader.u16()
}

const positionHeadBytes = 16

/** f64 sequence, f64 epoch, and the hash. */
export function encodePosition({ sequence, epoch, hash }: FollowedPosition): Buffer {
  const head = Buffer.allocUnsafe(positionHeadBytes)
  head.writeDoubleBE(sequence, 0)
  head.writeDoubleBE(epoch, 8)
  return Buffer.concat([head, hash])
}

export const decodePosition = (row: Buffer): FollowedPosition => ({
  sequence: row.readDoubleBE(0),
  epoch: row.readDoubleBE(8),
  hash: row.subarray(positionHeadBytes),
})
