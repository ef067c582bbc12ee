// Waits until no node decides anything any more without having applied a record of a shard that all follow: every other
// node has confirmed that, or its lease is over.
//
// Not here: which changes wait for it (src/shard/replicate).

import type { ShardLog, Takeover } from '../logs/shard-log.js'
import type { ClusterClock } from '../ports.js'
import { type KnownTakeovers, wholeLeaseMs } from './known-takeovers.js'
import { type AskPeer, encodePeerMessage, replyOf } from './peer-messages.js'
import type { ReplicationOptions } from './replication-options.js'

/** How long a node may take to apply a record. */
const reachMs = 1_000

export interface RegisterBarrierParts {
  readonly log: Pick<ShardLog, 'takeovers'>
  readonly clock: ClusterClock
  readonly options: ReplicationOptions
  readonly ask: AskPeer
  readonly takeovers: Pick<KnownTakeovers, 'mayLackOwner'>
  /** Other nodes that may own something, now or soon, or may believe so. */
  readonly others: (nowMs: number) => readonly string[]
  /** All takeovers have been read. */
  readonly onTakeovers: (takeovers: ReadonlyMap<number, Takeover>) => void
}

export class RegisterBarrier {
  constructor(private readonly parts: RegisterBarrierParts) {}

  begin(shard: number, sequence: number, onDone: () => void): void {
    const { log, clock, options, ask, takeovers, others, onTakeovers } = this.parts
    log.takeovers(outcome => {
      const startedMs = clock.monoMs()
      if (outcome.kind === 'read') onTakeovers(outcome.takeovers)
      // An owner that no event has named here may answer under a lease as well.
      let isLacking = outcome.kind === 'unknown' || takeovers.mayLackOwner(startedMs)
      const end = (): void => {
        if (!isLacking) return onDone()
        clock.after(Math.max(0, startedMs + wholeLeaseMs(options) - clock.monoMs()), onDone)
      }
      const nodes = others(startedMs)
      let missing = nodes.length
      if (missing === 0) return end()
      const request = encodePeerMessage({ kind: 'reached', shard, sequence })
      for (const node of nodes)
        ask(node, request, reachMs, reply => {
          if (replyOf(reply)?.kind !== 'done') isLacking = true
          if (--missing === 0) end()
        })
    })
  }
}
