// Several owners in one process, like the workers of a broker. Each has its own store and the shards of one remainder,
// and all except the first are asked through bytes.
//
// They share a clock but make stamps of their own, as processes do. A test can change the condition of an owner:
//
//   unreachable   nothing reaches it
//   lost          it executes requests, but its answers do not come back
//   slow          requests to it wait until `hold` releases them
//
// A test that asks about subscriptions first calls `open`.

import { keeper, type ShardMap, workerOf } from '../../src/domain/scope.js'
import type { ShardReply, ShardRequest, Shards } from '../../src/messages/messages.js'
import type { Clock } from '../../src/ports.js'
import type { ShardParts } from '../../src/shard/open-shards.js'
import type { LocalShards } from '../../src/shard/shards.js'
import { decodeReply, decodeRequest, encodeReply, encodeRequest } from '../../src/wire/wire.js'
import { localShards } from './local-shards.js'
import { MemoryStore } from './memory-store.js'

type Condition = 'well' | 'unreachable' | 'lost' | 'slow'

/** One life of an owner's process. */
interface Life {
  readonly shards: LocalShards
  /** Requests without an answer yet; each ends when the life ends. */
  readonly asked: Set<() => void>
  isOver: boolean
}

type Birth = (owner: number, store: MemoryStore) => Promise<Life>

interface Owner {
  readonly store: MemoryStore
  life: Life
  condition: Condition
  /** Requests that wait for a slow owner. */
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

  /** Lets the owners exchange their state of subscriptions; resolves when they have. */
  async open(): Promise<void> {
    await Promise.all(this.all.map((_, owner) => this.begin(owner)))
  }

  /**
   * Ends an owner as a kill does, and begins a new life with the rows of its store, or with those that `lose` leaves.
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

  /** An owner's own shards, asked directly. */
  one(owner: number): LocalShards {
    return this.all[owner]!.life.shards
  }

  ask(shard: number, request: ShardRequest, onReply: (reply: ShardReply) => void): void {
    const number = this.ownerOf(shard)
    const owner = this.all[number]!
    const bytes = number === 0 ? undefined : encodeRequest(request)
    const asked = bytes ? decodeRequest(bytes) : request
    const send = bytes ? (reply: ShardReply) => onReply(decodeReply(encodeReply(reply))) : onReply
    const lost: ShardReply = { kind: 'lost', reason: `owner ${number} is silent` }
    const { asked: open } = owner.life
    const end = (): void => once(lost)
    const once = (reply: ShardReply): void => {
      if (open.delete(end)) send(reply)
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

  /** Sets the condition of an owner. When it is well again, the document owner resumes its feed. */
  set(owner: number, condition: Condition): void {
    this.all[owner]!.condition = condition
    if (condition !== 'well') return
    for (const { life } of this.all) if (life.shards.parts.role.kind === 'keeper') life.shards.parts.role.feed.resume()
  }

  /** Makes an owner well, without notice to the others. */
  recover(owner: number): void {
    this.all[owner]!.condition = 'well'
  }

  /** Makes slow owners well; requests that wait for them continue when the returned function is called. */
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
