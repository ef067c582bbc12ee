// The nodes that ought to keep each shard, the owner first, as this node knows the members and the takeovers.
//
// They are computed when they are asked for, and only if something has changed. All nodes keep the register. Its owner
// follows from the members alone.

import { freeShards, ownersWanted, type PresentOwners } from './owner-shares.js'
import { type Candidate, keepersOf, type Ranking, rank, rankOne } from './placement.js'

export interface KeepersParts {
  /** Shards of entities. The register comes behind them. */
  readonly shards: number
  /** The number of shards over which a service path is spread. */
  readonly spread: number
  readonly replicas: number
  /** The owner by the latest takeover; undefined: the shard never had one. */
  readonly presentOwner: (shard: number) => string | undefined
}

interface Member extends Candidate {
  readonly isJoined: boolean
}

export class Keepers {
  private readonly parts: KeepersParts
  private joined: readonly Candidate[] = []
  private ranking: Ranking = []
  private ofRegister: readonly string[] = []
  private isFixed = false
  /** Shards of an exchange, with the nodes that get them: they count as the owners already. */
  private exchanged: ReadonlyMap<number, string> = new Map()
  /** undefined: they have to be computed. */
  private lists: readonly (readonly string[])[] | undefined

  constructor(parts: KeepersParts) {
    this.parts = parts
  }

  setView(view: readonly Member[]): void {
    const { shards } = this.parts
    const joined = view.filter(({ isJoined }) => isJoined).map(({ name, domain }) => ({ name, domain }))
    if (JSON.stringify(joined) !== JSON.stringify(this.joined)) this.ranking = rank(shards, joined)
    this.joined = joined
    // Where no node has joined yet, each may be the register's first owner.
    const first = rankOne(shards, joined)[0]?.name
    const others = view.map(({ name }) => name).filter(name => name !== first)
    this.ofRegister = first === undefined ? others : [first, ...others]
    this.lists = undefined
  }

  /** Some shard has another owner. */
  noteTakeover(): void {
    this.lists = undefined
  }

  /** Whether only shards without a joined owner move. */
  setFixed(isFixed: boolean): void {
    if (isFixed !== this.isFixed) this.lists = undefined
    this.isFixed = isFixed
  }

  /**
   * These shards are about to move to these nodes. The plans of other nodes do not know that, and move nothing
   * meanwhile: a node below its share has to ask for a shard, and the nodes of an exchange do not.
   */
  setExchanged(exchanged: ReadonlyMap<number, string>): void {
    this.exchanged = exchanged
    this.lists = undefined
  }

  /** Whether no shard ought to move once these have moved to these nodes. */
  isAtRest(moved: ReadonlyMap<number, string>): boolean {
    const given = this.given(moved)
    return ownersWanted(given).every((owner, shard) => owner === given.present[shard])
  }

  /** The shards that may be exchanged for others (owner-shares.ts). */
  freeShards(): ReadonlySet<number> {
    return freeShards(this.given(this.exchanged))
  }

  of(shard: number): readonly string[] {
    if (shard === this.parts.shards) return this.ofRegister
    this.lists ??= this.compute()
    return this.lists[shard] ?? []
  }

  private compute(): readonly (readonly string[])[] {
    const owners = ownersWanted(this.given(this.exchanged))
    return this.ranking.map((ranked, shard) => keepersOf(ranked, owners[shard], this.parts.replicas))
  }

  private given(moved: ReadonlyMap<number, string>): PresentOwners {
    const { shards, spread, replicas, presentOwner } = this.parts
    return {
      members: this.joined.map(({ name }) => name),
      present: Array.from({ length: shards }, (_, shard) => moved.get(shard) ?? presentOwner(shard)),
      copies: shard => keepersOf(this.ranking[shard]!, undefined, replicas),
      spread,
      isFixed: this.isFixed,
    }
  }
}
