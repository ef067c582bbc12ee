// The loads of all nodes, shard by shard: those of this node as it measures them, and those that others report.
//
// A load is a number of requests a second, smoothed over `loadMs`. This node compares the counters of its host with
// those of the round before. Other nodes report theirs with their positions (trimming.ts). A report that is older than
// a few rounds counts as none.

import type { ClusterClock } from '../ports.js'
import type { NodeLoad } from './load-exchange.js'
import { nameOf } from './owner.js'
import type { LoadReport } from './peer-messages.js'
import { type Balance, balances, type ReplicationOptions } from './replication-options.js'
import type { ShardHost } from './shard-host.js'

export interface ShardLoadsParts {
  /** The name and life of this node. */
  readonly self: string
  /** Shards of entities. */
  readonly shards: number
  readonly host: Pick<ShardHost, 'requests'>
  readonly clock: Pick<ClusterClock, 'monoMs'>
  readonly options: Pick<ReplicationOptions, 'loadMs' | 'trimMs' | 'balance'>
}

interface Reported {
  readonly atMs: number
  readonly balance: Balance
  readonly shards: ReadonlyMap<number, number>
}

/** Rounds after which a report counts as none. */
const roundsMax = 4

export class ShardLoads {
  private readonly parts: ShardLoadsParts
  private readonly counted: number[]
  private measuredMs: number | undefined
  private own: ReadonlyMap<number, number> = new Map()
  /** By name and life. */
  private readonly reported = new Map<string, Reported>()

  constructor(parts: ShardLoadsParts) {
    this.parts = parts
    this.counted = Array.from({ length: parts.shards }, (_, shard) => parts.host.requests(shard))
  }

  /** Measures the loads of these shards, which this node owns. A shard that was not measured before has its present load. */
  measure(owned: readonly number[]): void {
    const { clock, options, host } = this.parts
    const nowMs = clock.monoMs()
    const passedMs = nowMs - (this.measuredMs ?? nowMs)
    this.measuredMs = nowMs
    const loads = new Map<number, number>()
    for (let shard = 0; shard < this.parts.shards; shard++) {
      const counted = host.requests(shard)
      const rate = passedMs > 0 ? ((counted - this.counted[shard]!) * 1000) / passedMs : 0
      this.counted[shard] = counted
      if (!owned.includes(shard)) continue
      const before = this.own.get(shard) ?? rate
      loads.set(shard, before + (rate - before) * (1 - Math.exp(-passedMs / options.loadMs)))
    }
    this.own = loads
  }

  /** What this node reports to the others. */
  report(): LoadReport {
    const shards = [...this.own].map(([shard, load]) => [shard, Math.round(load * 100) / 100] as const)
    return { balance: this.parts.options.balance, shards }
  }

  /** Notes the report of a node; undefined: it is of a build that reports none. */
  note(owner: string, report: LoadReport | undefined): void {
    for (const known of this.reported.keys()) if (nameOf(known) === nameOf(owner)) this.reported.delete(known)
    if (!report) return
    const balance = balances.find(word => word === report.balance) ?? 'count'
    const shards = new Map(report.shards.filter(([shard]) => shard < this.parts.shards))
    this.reported.set(owner, { atMs: this.parts.clock.monoMs(), balance, shards })
  }

  /** Forgets all nodes but these. */
  keepOnly(owners: ReadonlySet<string>): void {
    for (const owner of this.reported.keys()) if (!owners.has(owner)) this.reported.delete(owner)
  }

  /** The load of a node; undefined: it has reported none lately. */
  of(owner: string): NodeLoad | undefined {
    if (owner === this.parts.self) return { name: nameOf(owner), shards: this.own }
    const reported = this.reported.get(owner)
    const { clock, options } = this.parts
    if (!reported || clock.monoMs() - reported.atMs > roundsMax * options.trimMs) return undefined
    return { name: nameOf(owner), shards: reported.shards }
  }

  /** The least setting of these nodes. A node that reports none moves shards as `count` does, and counts as this one. */
  balanceOf(owners: Iterable<string>): Balance {
    let least = balances.indexOf(this.parts.options.balance)
    for (const owner of owners) {
      const balance = this.reported.get(owner)?.balance
      if (balance !== undefined) least = Math.min(least, balances.indexOf(balance))
    }
    return balances[least]!
  }
}
