// Shards as if they were on another machine: every request and every reply goes through its bytes.
//
// Code that behaves the same over this as without it can run over a network, too: no part of a request or reply is lost
// on the way.

import type { ShardReply, ShardRequest, Shards } from '../../src/messages/messages.js'
import { decodeReply, decodeRequest, encodeReply, encodeRequest } from '../../src/wire/wire.js'

export class Loopback implements Shards {
  private readonly inner: Shards

  constructor(inner: Shards) {
    this.inner = inner
  }

  ask(shard: number, request: ShardRequest, onReply: (reply: ShardReply) => void): void {
    this.inner.ask(shard, decodeRequest(encodeRequest(request)), reply => onReply(decodeReply(encodeReply(reply))))
  }

  owners(): readonly number[] {
    return this.inner.owners()
  }

  pathsOf(tenant: string): Iterable<string> | undefined {
    return this.inner.pathsOf(tenant)
  }

  ownerOf(shard: number): number {
    return this.inner.ownerOf(shard)
  }
}
