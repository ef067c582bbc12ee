// Several owners in one process, as the workers of a broker will be: each has its own store and the shards of one remainder, and all but
// the first are asked through bytes.
//
// One clock, but stamps of their own, as processes have them. A test may take an owner away:
//
//   unreachable   nothing reaches it
//   lost          it is asked and does as it is told, but its answers do not come back
//   slow          what it is asked waits until it may go on (`hold`)
//
// Who asks about subscriptions lets them be opened first (`open`).

import type { ShardMap } from '../../src/domain/scope.js'
import {
  decodeReply,
  decodeRequest,
  encodeReply,
  encodeRequest,
  type ShardReply,
  type ShardRequest,
  type Shards,
} from '../../src/messages.js'
import type { Clock } from '../../src/ports.js'
import type { LocalShards, ShardParts } from '../../src/shard/shards.js'
import { MemoryStore } from '../../src/storage/memory-store.js'
import { localShards } from './local-shards.js'

type Condition = 'well' | 'unreachable' | 'lost' | 'slow'

interface Owner {
  readonly store: MemoryStore
  shards: LocalShards
  condition: Condition
  /** What waits for a slow owner. */
  waiting: (() => void)[]
}

export class ManyShards implements Shards {
  private readonly all: readonly Owner[]
  private readonly made: (owner: number, store: MemoryStore) => LocalShards

  constructor(count: number, shardMap: ShardMap, clock: Clock, parts: Partial<ShardParts> = {}) {
    this.made = (worker, store) => localShards(store, shardMap, clock, { part: { worker, workers: count }, ...parts })
    this.all = Array.from({ length: count }, (_, owner) => {
      const store = new MemoryStore()
      return { store, shards: this.made(owner, store), condition: 'well', waiting: [] }
    })
  }

  /** Loads what the owners know of subscriptions, and lets them tell each other; ends when they have. */
  async open(): Promise<void> {
    for (const { shards } of this.all) await shards.load()
    await Promise.all(this.all.map((_, owner) => this.begin(owner)))
  }

  /** Lets an owner that nobody can reach begin anew with what its store has, and with what `lose` leaves of that. */
  async restart(owner: number, lose: (store: MemoryStore) => Promise<void> = async () => {}): Promise<void> {
    const one = this.all[owner]!
    one.shards.sharing?.end()
    await one.shards.drain()
    await lose(one.store)
    one.shards = this.made(owner, one.store)
    await one.shards.load()
    this.set(owner, 'well')
    for (const { shards } of this.all) shards.sharing?.resume()
    await this.begin(owner)
  }

  private begin(owner: number): Promise<void> | undefined {
    const isWhole = () => this.all.every(({ condition }, other) => other === owner || condition !== 'unreachable')
    return this.all[owner]!.shards.sharing?.begin(this, isWhole)
  }

  /** What an owner knows by itself. */
  one(owner: number): LocalShards {
    return this.all[owner]!.shards
  }

  ask(shard: number, request: ShardRequest, onReply: (reply: ShardReply) => void): void {
    const number = this.ownerOf(shard)
    const owner = this.all[number]!
    const bytes = number === 0 ? undefined : encodeRequest(request)
    const asked = bytes ? decodeRequest(bytes) : request
    const tell = bytes ? (reply: ShardReply) => onReply(decodeReply(encodeReply(reply))) : onReply
    switch (owner.condition) {
      case 'well':
        return owner.shards.ask(shard, asked, tell)
      case 'unreachable':
        return onReply({ kind: 'unreachable', reason: `owner ${number} is away` })
      case 'lost':
        return owner.shards.ask(shard, asked, () => onReply({ kind: 'lost', reason: `owner ${number} is silent` }))
      case 'slow':
        owner.waiting.push(() => owner.shards.ask(shard, asked, tell))
    }
  }

  owners(): readonly number[] {
    return [...this.all.keys()]
  }

  pathsOf(): undefined {
    return undefined
  }

  ownerOf(shard: number): number {
    return shard % this.all.length
  }

  /** How an owner fares from now on. When it is well again, the others notice. */
  set(owner: number, condition: Condition): void {
    this.all[owner]!.condition = condition
    if (condition === 'well') for (const { shards } of this.all) shards.sharing?.resume()
  }

  /** Makes slow owners well; what waits for them goes on when the function given back says so. */
  hold(): () => void {
    const waiting = this.all.flatMap(owner => owner.waiting)
    for (const owner of this.all) {
      if (owner.condition === 'slow') owner.condition = 'well'
      owner.waiting = []
    }
    return () => {
      for (const ask of waiting) ask()
    }
  }
}
