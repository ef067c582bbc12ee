// Questions between nodes about shards, apart from those of hosts: JSON, with bytes behind it where there are some.
//
//   u8 version | u32 length of the JSON | JSON | bytes
//
// A message of another version or kind, or with wrong fields, counts as none: a request is refused, and a reply counts
// as one that did not come. So a message from a node of any build does no harm. Fields that are not known are ignored:
// a later build may add some.

import { hashBytes } from './log-record.js'
import type { LogPosition } from './shard-host.js'

export type PeerRequest =
  /** The owner of the shard should hand it over to the asker; `to` is the asker's name and life. */
  | { readonly kind: 'handOver'; readonly shard: number; readonly to: string }
  /** Answered when the asked node has applied the record of this number. */
  | {
      readonly kind: 'reached'
      readonly shard: number
      readonly sequence: number
      /** The asker has lists that wait for shards at rest. Builds before this one do not read it. */
      readonly needsRest?: boolean | undefined
    }
  /** A page of a snapshot, behind a place; '': from the beginning. */
  | { readonly kind: 'snapshot'; readonly shard: number; readonly after: string }
  /** The asker's applied and flushed records: shard and number of the record. */
  | {
      readonly kind: 'standing'
      readonly owner: string
      readonly flushed: readonly (readonly [shard: number, sequence: number])[]
      /** Builds before this one neither send it nor read it. */
      readonly load?: LoadReport | undefined
    }
  /**
   * The asker wants to give a shard and to take another one for it; `from` is its name and life. Only nodes that report
   * their load know this request.
   */
  | { readonly kind: 'exchange'; readonly from: string; readonly gives: number; readonly takes: number }

/** The work of a node. */
export interface LoadReport {
  /** Its `balance`; a word that is not known here counts as `count`. */
  readonly balance: string
  /** The requests a second of each shard that it owns. */
  readonly shards: readonly (readonly [shard: number, load: number])[]
}

export type PeerReply =
  | { readonly kind: 'handedOver'; readonly epoch: number }
  | { readonly kind: 'done' }
  | { readonly kind: 'refused'; readonly reason: string }
  /** `next`: the place behind the page; undefined: it was the last. The bytes are its rows. */
  | { readonly kind: 'page'; readonly position: PositionText; readonly next?: string | undefined }

export interface PositionText {
  readonly sequence: number
  readonly epoch: number
  readonly hash: string
}

/** A message, and the bytes behind it, which share its memory. */
export interface Decoded<T> {
  readonly message: T
  readonly bytes: Buffer
}

export const textOf = ({ sequence, epoch, hash }: LogPosition): PositionText => ({
  sequence,
  epoch,
  hash: hash.toString('base64'),
})

export const positionFrom = ({ sequence, epoch, hash }: PositionText): LogPosition => ({
  sequence,
  epoch,
  hash: Buffer.from(hash, 'base64'),
})

/** The version of the form; a new one is needed when an older build would misread a message. */
const version = 1
const headBytes = 5
const none = Buffer.alloc(0)

export function encodePeerMessage(message: PeerRequest | PeerReply, bytes: Buffer = none): Buffer {
  const json = Buffer.from(JSON.stringify(message))
  const head = Buffer.allocUnsafe(headBytes)
  head[0] = version
  head.writeUInt32BE(json.length, 1)
  return Buffer.concat([head, json, bytes])
}

/** The request of these bytes; undefined: they are none that is known here. */
export const decodePeerRequest = (given: Buffer): Decoded<PeerRequest> | undefined => decoded(given, requestChecks)

/** The reply of these bytes; undefined: they are none that is known here. */
export const decodePeerReply = (given: Buffer): Decoded<PeerReply> | undefined => decoded(given, replyChecks)

/** The content of a reply; undefined: there was none. */
export const replyOf = (reply: Buffer | undefined): PeerReply | undefined => reply && decodePeerReply(reply)?.message

/** The fields of a message, not yet checked. */
type Fields = Readonly<Record<string, unknown>>
type Checks<T extends { readonly kind: string }> = Readonly<Record<T['kind'], (fields: Fields) => boolean>>

function decoded<T extends { readonly kind: string }>(given: Buffer, checks: Checks<T>): Decoded<T> | undefined {
  if (given.length < headBytes || given[0] !== version) return undefined
  const end = headBytes + given.readUInt32BE(1)
  if (end > given.length) return undefined
  const fields = fieldsOf(given.toString('utf8', headBytes, end))
  if (!fields || !Object.hasOwn(checks, String(fields.kind))) return undefined
  return checks[fields.kind as T['kind']](fields)
    ? { message: fields as unknown as T, bytes: given.subarray(end) }
    : undefined
}

function fieldsOf(json: string): Fields | undefined {
  try {
    const found: unknown = JSON.parse(json)
    return typeof found === 'object' && found !== null ? (found as Fields) : undefined
  } catch {
    return undefined
  }
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0
const isText = (value: unknown): boolean => typeof value === 'string'
const isStanding = (value: unknown): boolean => Array.isArray(value) && value.length === 2 && value.every(isCount)

const isAmount = (value: unknown): boolean => Number.isFinite(value) && (value as number) >= 0
const isShardLoad = (value: unknown): boolean =>
  Array.isArray(value) && value.length === 2 && isCount(value[0]) && isAmount(value[1])

function isLoad(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const { balance, shards } = value as Fields
  return isText(balance) && Array.isArray(shards) && shards.every(isShardLoad)
}

function isPosition(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const { sequence, epoch, hash } = value as Fields
  return (
    isCount(sequence) && isCount(epoch) && isText(hash) && Buffer.from(hash as string, 'base64').length === hashBytes
  )
}

const requestChecks: Checks<PeerRequest> = {
  handOver: ({ shard, to }) => isCount(shard) && isText(to),
  reached: ({ shard, sequence, needsRest }) =>
    isCount(shard) && isCount(sequence) && (needsRest === undefined || typeof needsRest === 'boolean'),
  snapshot: ({ shard, after }) => isCount(shard) && isText(after),
  standing: ({ owner, flushed, load }) =>
    isText(owner) && Array.isArray(flushed) && flushed.every(isStanding) && (load === undefined || isLoad(load)),
  exchange: ({ from, gives, takes }) => isText(from) && isCount(gives) && isCount(takes),
}

const replyChecks: Checks<PeerReply> = {
  handedOver: ({ epoch }) => isCount(epoch),
  done: () => true,
  refused: ({ reason }) => isText(reason),
  page: ({ position, next }) => isPosition(position) && (next === undefined || isText(next)),
}

/** Asks another node; undefined: no answer came in time, or never will. */
export type AskPeer = (
  node: string,
  request: Buffer,
  waitMs: number,
  onReply: (reply: Buffer | undefined) => void,
) => void
