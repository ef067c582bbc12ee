// The nodes that ought to keep each shard, the owner first, as this node knows the members and the takeovers.
//
// They are computed when they are asked for, and only if something has changed. All nodes keep the register. Its owner
// follows from the members alone.

import { ownersWanted } from './owner-shares.js'
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

  of(shard: number): readonly string[] {
    if (shard === this.parts.shards) return this.ofRegister
    this.lists ??= this.compute()
    return this.lists[shard] ?? []
  }

  private compute(): readonly (readonly string[])[] {
    const { shards, spread, replicas, presentOwner } = this.parts
    const { ranking } = this
    const owners = ownersWanted({
      members: this.joined.map(({ name }) => name),
      present: Array.from({ length: shards }, (_, shard) => presentOwner(shard)),
      copies: shard => keepersOf(ranking[shard]!, undefined, replicas),
      spread,
    })
    return ranking.map((ranked, shard) => keepersOf(ranked, owners[shard], replicas))
  }
}
