// All shards, wherever they are: those of this node are asked directly, those of others through their bytes.
//
// Whoever asks cannot tell the difference, but for two replies: `unreachable` when the owner was certainly not asked, `lost` when nobody
// here knows what became of it.
//
// Not here: how bytes get there (cluster/), who owns what (the placement is handed in).

import {
  decodeReply,
  decodeRequest,
  encodeReply,
  encodeRequest,
  type ShardReply,
  type ShardRequest,
  type Shards,
} from '../messages.js'
import type { AskOutcome, Owners } from '../ports.js'

export class RemoteShards implements Shards {
  private readonly local: Shards
  private readonly self: number
  private readonly others: Owners
  /** The owner of each shard. */
  private readonly placement: readonly number[]
  private readonly asked: readonly number[]

  private readonly listWaitMs: number

  /** `placement` names the owner of each shard; this node is owner `self`. `listWaitMs`: how long a list may take. */
  constructor(local: Shards, self: number, placement: readonly number[], listWaitMs: number, others: Owners) {
    this.local = local
    this.listWaitMs = listWaitMs
    this.self = self
    this.placement = placement
    this.others = others
    this.asked = [...new Set(placement)].map(owner => placement.indexOf(owner))
  }

  // [hot] Once per request.
  ask(shard: number, request: ShardRequest, onReply: (reply: ShardReply) => void): void {
    const owner = this.placement[shard] as number
    if (owner === this.self) return this.local.ask(shard, request, onReply)
    const onOutcome = (outcome: AskOutcome): void => onReply(replyOf(outcome))
    const waitMs = request.kind === 'list' ? this.listWaitMs : undefined
    this.others.ask(owner, shard, encodeRequest(request), onOutcome, waitMs)
  }

  owners(): readonly number[] {
    return this.asked
  }

  ownerOf(shard: number): number {
    return this.placement[shard] as number
  }
}

function replyOf(outcome: AskOutcome): ShardReply {
  switch (outcome.kind) {
    case 'reply':
      return decodeReply(outcome.reply)
    case 'unavailable':
      return { kind: 'unreachable', reason: outcome.reason }
    case 'unknown':
      return { kind: 'lost', reason: outcome.reason }
  }
}

/** What other nodes ask of this one's shards, through bytes. */
export function answerFor(local: Shards) {
  return (shard: number, request: Uint8Array, onReply: (reply: Uint8Array) => void): void => {
    const bytes = Buffer.from(request.buffer, request.byteOffset, request.byteLength)
    let decoded: ShardRequest
    try {
      decoded = decodeRequest(bytes)
    } catch (error) {
      return onReply(encodeReply({ kind: 'failed', reason: `a request that is none: ${(error as Error).message}` }))
    }
    local.ask(shard, decoded, reply => onReply(encodeReply(reply)))
  }
}
