// What the logs report to a node: takeovers, records and signs of life. The events of a log arrive in order. After a
// gap the node reads its takeovers and records again.
//
// A reading may have a takeover that no event has reported. Then other nodes may have taken the shard over before, and
// this node does not know their names: they may answer until their leases are over.
//
// Not here: what is remembered of takeovers (known-takeovers.ts), and what a shard does about one (holding.ts).

import { logIndexOf } from '../logs/divided-log.js'
import type { ShardLog, Takeover } from '../logs/shard-log.js'
import type { ClusterClock } from '../ports.js'
import type { Caretaker } from './caretaker.js'
import type { Heartbeats } from './heartbeats.js'
import type { Holding } from './holding.js'
import type { Keepers } from './keepers.js'
import type { KnownTakeovers } from './known-takeovers.js'
import { nameOf, noOwner } from './owner.js'
import type { ReplicationOptions } from './replication-options.js'

export interface LogReportsParts {
  readonly logs: readonly ShardLog[]
  readonly clock: Pick<ClusterClock, 'after'>
  readonly options: Pick<ReplicationOptions, 'retryMs'>
  /** By shard. */
  readonly holdings: readonly Holding[]
  /** By log. */
  readonly heartbeats: readonly Pick<Heartbeats, 'onHeartbeat'>[]
  readonly takeovers: Pick<KnownTakeovers, 'of' | 'epochOf' | 'note' | 'noteUnknownOwners'>
  readonly keepers: Pick<Keepers, 'noteTakeover'>
  readonly caretaker: Pick<Caretaker, 'noteSign' | 'noteTakeover' | 'knowsTakeovers'>
  /** Ownership of some shard has changed. */
  readonly onChange: () => void
}

export class LogReports {
  private isClosed = false

  constructor(private readonly parts: LogReportsParts) {}

  /** Begins to follow the logs, and reads what they have already. */
  start(): void {
    const { logs } = this.parts
    for (const log of logs.keys()) this.follow(log)
    for (const log of logs.keys()) this.readAll(log)
  }

  close(): void {
    this.isClosed = true
  }

  /** A takeover that an event has reported, or that this node has made itself. */
  noteTakeover(shard: number, takeover: Takeover): void {
    const { takeovers, keepers, caretaker, holdings, onChange } = this.parts
    if (!takeovers.note(shard, takeover)) return
    keepers.noteTakeover()
    caretaker.noteTakeover()
    holdings[shard]?.onTakeover(takeover)
    onChange()
  }

  /** A takeover from a reading. */
  noteRead(shard: number, takeover: Takeover): void {
    const { takeovers } = this.parts
    if (takeover.epoch > takeovers.epochOf(shard)) takeovers.noteUnknownOwners()
    this.noteTakeover(shard, takeover)
  }

  /** All takeovers of a log, from a reading. */
  noteAllRead(log: number, read: ReadonlyMap<number, Takeover>): void {
    for (const [shard, takeover] of read) this.noteRead(shard, takeover)
    this.parts.caretaker.knowsTakeovers(log)
  }

  // [hot] `onRecord`: once per record of the shards that are followed.
  private follow(log: number): void {
    const { logs, holdings, heartbeats, takeovers, caretaker } = this.parts
    logs[log]!.follow(shard => holdings[shard]?.replica.state === 'following', {
      onRecord: (shard, record) => {
        caretaker.noteSign(takeovers.of(shard)?.owner ?? noOwner)
        holdings[shard]?.replica.onRecord(record)
      },
      onTakeover: (shard, takeover) => {
        caretaker.noteSign(takeover.owner)
        this.noteTakeover(shard, takeover)
      },
      onHeartbeat: (node, bytes) => {
        const [shard] = heartbeats[log]!.onHeartbeat(bytes)
        const owner = shard === undefined ? undefined : takeovers.of(shard)?.owner
        if (owner !== undefined && nameOf(owner) === node) caretaker.noteSign(owner)
      },
      onGap: () => {
        takeovers.noteUnknownOwners()
        this.readAll(log)
      },
    })
  }

  /** Reads takeovers and records of a log that may have been missed. */
  private readAll(log: number): void {
    const { logs, clock, options, holdings } = this.parts
    logs[log]!.takeovers(outcome => {
      if (this.isClosed) return
      if (outcome.kind === 'unknown') return void clock.after(options.retryMs, () => this.readAll(log))
      this.noteAllRead(log, outcome.takeovers)
      for (const { shard, replica } of holdings) if (logIndexOf(shard, logs.length) === log) replica.read()
    })
  }
}
