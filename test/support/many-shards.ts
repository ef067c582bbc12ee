// Several owners in one process, as the workers of a broker will be: each has its own store and the shards of one
// remainder, and all but the first are asked through bytes.
//
// One clock, but stamps of their own, as processes have them. A test may take an owner away:
//
//   unreachable   nothing reaches it
//   lost          it is asked and does as it is told, but its answers do not come back
//   slow          what it is asked waits until it may go on (`hold`)
//
// Who asks about subscriptions lets them be opened first (`open`).

import { keeper, type ShardMap, workerOf } from '../../src/domain/scope.js'
import type { ShardReply, ShardRequest, Shards } from '../../src/messages/messages.js'
import type { Clock } from '../../src/ports.js'
import type { ShardParts } from '../../src/shard/open-shards.js'
import type { LocalShards } from '../../src/shard/shards.js'
import { decodeReply, decodeRequest, encodeReply, encodeRequest } from '../../src/wire/wire.js'
import { localShards } from './local-shards.js'
import { MemoryStore } from './memory-store.js'

type Condition = 'well' | 'unreachable' | 'lost' | 'slow'

/** One process of an owner. */
interface Life {
  readonly shards: LocalShards
  /** What was asked of it and has no answer: each ends with it. */
  readonly asked: Set<() => void>
  isOver: boolean
}

type Birth = (owner: number, store: MemoryStore) => Promise<Life>

interface Owner {
  readonly store: MemoryStore
  life: Life
  condition: Condition
  /** What waits for a slow owner. */
  waiting: (() => void)[]
}

export class ManyShards implements Shards {
  private readonly all: readonly Owner[]
  private readonly shardMap: ShardMap
  private readonly born: Birth

  private constructor(all: readonly Owner[], shardMap: ShardMap, born: Birth) {
    this.all = all
    this.shardMap = shardMap
    this.born = born
  }

  static async of(
    count: number,
    shardMap: ShardMap,
    clock: Clock,
    parts: Partial<ShardParts> = {},
  ): Promise<ManyShards> {
    const born: Birth = async (worker, store) => {
      const share = { kind: 'worker', worker, workers: count } as const
      return { shards: await localShards(store, shardMap, clock, { share, ...parts }), asked: new Set(), isOver: false }
    }
    const all: Owner[] = []
    for (let owner = 0; owner < count; owner++) {
      const store = new MemoryStore()
      all.push({ store, life: await born(owner, store), condition: 'well', waiting: [] })
    }
    return new ManyShards(all, shardMap, born)
  }

  /** Lets the owners tell each other what they know of subscriptions; ends when they have. */
  async open(): Promise<void> {
    await Promise.all(this.all.map((_, owner) => this.begin(owner)))
  }

  /**
   * Ends an owner as a kill does, and begins another one with what its store has, or with what `lose` leaves of that.
   */
  async restart(owner: number, lose: (store: MemoryStore) => Promise<void> = async () => {}): Promise<void> {
    const one = this.all[owner]!
    const { life } = one
    this.set(owner, 'unreachable')
    one.waiting = []
    life.isOver = true
    if (life.shards.parts.role.kind === 'keeper') life.shards.parts.role.feed.end()
    for (const end of life.asked) end()
    await life.shards.drain()
    await lose(one.store)
    one.life = await this.born(owner, one.store)
    this.set(owner, 'well')
    await this.begin(owner)
  }

  private begin(owner: number): Promise<void> | undefined {
    const { life } = this.all[owner]!
    const isWhole = () => this.all.every(({ condition }, other) => other === owner || condition !== 'unreachable')
    const asShards: Shards = {
      ask: (shard, request, onReply) => this.ask(shard, request, reply => life.isOver || onReply(reply)),
      owners: () => this.owners(),
      pathsOf: () => undefined,
      ownerOf: shard => this.ownerOf(shard),
    }
    const { role } = life.shards.parts
    if (role.kind === 'keeper') return role.feed.begin(asShards, isWhole)
    return role.kind === 'copy' ? new Promise(resolve => role.copy.whenFed(resolve)) : undefined
  }

  storeOf(owner: number): MemoryStore {
    return this.all[owner]!.store
  }

  /** What an owner knows by itself. */
  one(owner: number): LocalShards {
    return this.all[owner]!.life.shards
  }

  ask(shard: number, request: ShardRequest, onReply: (reply: ShardReply) => void): void {
    const number = this.ownerOf(shard)
    const owner = this.all[number]!
    const bytes = number === 0 ? undefined : encodeRequest(request)
    const asked = bytes ? decodeRequest(bytes) : request
    const tell = bytes ? (reply: ShardReply) => onReply(decodeReply(encodeReply(reply))) : onReply
    const lost: ShardReply = { kind: 'lost', reason: `owner ${number} is silent` }
    const { asked: open } = owner.life
    const end = (): void => once(lost)
    const once = (reply: ShardReply): void => {
      if (open.delete(end)) tell(reply)
    }
    switch (owner.condition) {
      case 'unreachable':
        return onReply({ kind: 'unreachable', reason: `owner ${number} is away` })
      case 'well':
        open.add(end)
        return owner.life.shards.ask(shard, asked, once)
      case 'lost':
        open.add(end)
        return owner.life.shards.ask(shard, asked, end)
      case 'slow':
        open.add(end)
        owner.waiting.push(() => owner.life.shards.ask(shard, asked, once))
    }
  }

  owners(): readonly number[] {
    return [...this.all.keys()]
  }

  pathsOf(): undefined {
    return undefined
  }

  ownerOf(shard: number): number {
    return shard === this.shardMap.register ? keeper : workerOf(shard, this.all.length)
  }

  /** How an owner fares from now on. When it is well again, the others notice. */
  set(owner: number, condition: Condition): void {
    this.all[owner]!.condition = condition
    if (condition !== 'well') return
    for (const { life } of this.all) if (life.shards.parts.role.kind === 'keeper') life.shards.parts.role.feed.resume()
  }

  /** Makes an owner well, and nobody notices. */
  recover(owner: number): void {
    this.all[owner]!.condition = 'well'
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
