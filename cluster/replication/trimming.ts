// Deletes records from the log that are no longer needed: those that enough nodes have on their disks.
//
// Each node flushes its store now and then and reports its flushed positions to the others. The owner of a shard then
// trims its log up to the position that all living keepers have, except the last records. An absent node does not hold
// this up, since it will fetch a snapshot. But at least two copies must have the records (one, where `replicas` is
// one): until there are two, the log grows.

import { logOf } from '../logs/divided-log.js'
import type { ShardLog } from '../logs/shard-log.js'
import type { ClusterClock } from '../ports.js'
import type { Holding } from './holding.js'
import { nameOf } from './owner.js'
import { type AskPeer, encodePeerMessage, type LoadReport } from './peer-messages.js'
import type { ReplicationOptions } from './replication-options.js'
import type { ShardHost } from './shard-host.js'

/** Copies on disks without which nothing is trimmed. */
const copiesMin = 2
/** How long a node may take to reply to a report. */
const reportDeadlineMs = 2_000

export interface TrimmingParts {
  /** The name and life of this node: the next life of its process may have another disk. */
  readonly self: string
  readonly logs: readonly Pick<ShardLog, 'trim'>[]
  readonly host: Pick<ShardHost, 'sync' | 'position'>
  readonly clock: ClusterClock
  readonly options: ReplicationOptions
  readonly ask: AskPeer
  readonly onFailure: (failure: Error) => void
  readonly holdings: readonly Holding[]
  /** Whether the engine has everything: if not, nothing more is deleted from it. */
  readonly mayTrim: () => boolean
  /** The living nodes that ought to keep a shard, by name and life. */
  readonly keepers: (shard: number) => readonly string[]
  /** All other nodes. */
  readonly others: () => readonly string[]
  /** The load of this node, which travels with its positions. */
  readonly load: () => LoadReport
}

type Flushed = readonly (readonly [shard: number, sequence: number])[]

export class Trimming {
  private readonly parts: TrimmingParts
  /** The flushed position of each node, by shard; the names are those of `keepers`. */
  private readonly flushed = new Map<string, ReadonlyMap<number, number>>()
  private readonly trimmed = new Map<number, number>()
  private isClosed = false

  constructor(parts: TrimmingParts) {
    this.parts = parts
  }

  start(): void {
    const { clock, options } = this.parts
    clock.after(options.trimMs, () => {
      if (this.isClosed) return
      this.flush()
      this.start()
    })
  }

  close(): void {
    this.isClosed = true
  }

  /** Notes the report of a node. */
  note(owner: string, flushed: Flushed): void {
    for (const known of this.flushed.keys()) if (nameOf(known) === nameOf(owner)) this.flushed.delete(known)
    this.flushed.set(owner, new Map(flushed))
  }

  /** Whether another living node that ought to keep a shard has reported that it has a whole copy. */
  isCopied(shard: number): boolean {
    const { keepers, self } = this.parts
    return keepers(shard).some(owner => owner !== self && this.flushed.get(owner)?.has(shard))
  }

  private flush(): void {
    const { host, holdings, self, others, ask, mayTrim, onFailure, load } = this.parts
    const applied: Flushed = holdings
      .filter(({ replica }) => replica.state === 'following' || replica.state === 'owned')
      .map(({ shard }) => [shard, host.position(shard)?.sequence ?? 0])
    host.sync(failure => {
      if (this.isClosed) return
      if (failure) return onFailure(failure)
      this.note(self, applied)
      const request = encodePeerMessage({ kind: 'standing', owner: self, flushed: applied, load: load() })
      for (const node of others()) ask(node, request, reportDeadlineMs, () => {})
      if (!mayTrim()) return
      for (const { shard, phase } of holdings) if (phase === 'active') this.trim(shard)
    })
  }

  private trim(shard: number): void {
    const { keepers, options, logs } = this.parts
    const copies = keepers(shard).flatMap(owner => this.flushed.get(owner)?.get(shard) ?? [])
    if (copies.length < Math.min(copiesMin, options.replicas)) return
    const upTo = Math.min(...copies) - options.recordsKept
    const before = this.trimmed.get(shard) ?? 0
    if (upTo <= before) return
    this.trimmed.set(shard, upTo)
    logOf(logs, shard).trim(shard, upTo)
  }
}
