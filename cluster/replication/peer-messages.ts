// What nodes ask each other about shards, apart from what hosts ask: JSON, with bytes behind it where there are some.
//
//   u32 length of the JSON | JSON | bytes

import type { Position } from './shard-host.js'

export type PeerRequest =
  /** The owner of the shard is to hand it over to the asker, who calls itself `to`. */
  | { readonly kind: 'handOver'; readonly shard: number; readonly to: string }
  /** Replied to when the asked node has applied the record of this number. */
  | { readonly kind: 'reached'; readonly shard: number; readonly sequence: number }
  /** A page of a snapshot, behind a place; '': from the beginning. */
  | { readonly kind: 'snapshot'; readonly shard: number; readonly after: string }
  /** What the asker has applied and flushed: shard and number of the record. */
  | {
      readonly kind: 'standing'
      readonly owner: string
      readonly flushed: readonly (readonly [shard: number, sequence: number])[]
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

export const textOf = ({ sequence, epoch, hash }: Position): PositionText => ({
  sequence,
  epoch,
  hash: hash.toString('base64'),
})

export const positionFrom = ({ sequence, epoch, hash }: PositionText): Position => ({
  sequence,
  epoch,
  hash: Buffer.from(hash, 'base64'),
})

const none = Buffer.alloc(0)

export function encodePeerMessage(message: PeerRequest | PeerReply, bytes: Buffer = none): Buffer {
  const json = Buffer.from(JSON.stringify(message))
  const head = Buffer.allocUnsafe(4)
  head.writeUInt32BE(json.length)
  return Buffer.concat([head, json, bytes])
}

/** The message and the bytes behind it, which share its memory; undefined: this is none. The kind is one of those that the other side sends. */
export function decodePeerMessage<T extends PeerRequest | PeerReply>(
  given: Buffer,
): { readonly message: T; readonly bytes: Buffer } | undefined {
  if (given.length < 4) return undefined
  const end = 4 + given.readUInt32BE(0)
  if (end > given.length) return undefined
  try {
    return { message: JSON.parse(given.toString('utf8', 4, end)) as T, bytes: given.subarray(end) }
  } catch {
    return undefined
  }
}

/** What a reply says; undefined: there was none. */
export const replyOf = (reply: Buffer | undefined): PeerReply | undefined =>
  reply && decodePeerMessage<PeerReply>(reply)?.message

/** Asks another node; undefined: no answer came in time, or never will. */
export type AskPeer = (
  node: string,
  request: Buffer,
  waitMs: number,
  onReply: (reply: Buffer | undefined) => void,
) => void
