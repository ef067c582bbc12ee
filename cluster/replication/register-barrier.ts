// Waits until no node decides anything any more without having applied a record of a shard that all follow: every other
// node has confirmed that, or its lease is over.
//
// Not here: which changes wait for it (src/shard/replicate).

import type { ShardLog, Takeover, TakeoversOutcome, Unknown } from '../logs/shard-log.js'
import type { ClusterClock } from '../ports.js'
import { type KnownTakeovers, wholeLeaseMs } from './known-takeovers.js'
import { type AskPeer, encodePeerMessage, replyOf } from './peer-messages.js'
import type { ReplicationOptions } from './replication-options.js'

/** How long a node may take to apply a record. */
const reachMs = 1_000

export interface RegisterBarrierParts {
  readonly logs: readonly ShardLog[]
  readonly clock: ClusterClock
  readonly options: ReplicationOptions
  readonly ask: AskPeer
  readonly takeovers: Pick<KnownTakeovers, 'mayLackOwner'>
  /** Other nodes that may own something, now or soon, or may believe so. */
  readonly others: (nowMs: number) => readonly string[]
  /** Why the latest reading of a log had no answer. */
  readonly troubleOf: (log: number) => Unknown | undefined
  /** All takeovers of a log have been read. */
  readonly onTakeovers: (log: number, takeovers: ReadonlyMap<number, Takeover>) => void
}

export class RegisterBarrier {
  constructor(private readonly parts: RegisterBarrierParts) {}

  begin(shard: number, sequence: number, onDone: () => void): void {
    const { clock, options, ask, takeovers, others } = this.parts
    this.readOwners(areKnown => {
      const startedMs = clock.monoMs()
      // An owner that no event has named here may answer under a lease as well.
      let isLacking = !areKnown || takeovers.mayLackOwner(startedMs)
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

  /** Reads the takeovers of all logs. Calls back with whether each engine has answered. */
  private readOwners(onRead: (areKnown: boolean) => void): void {
    const { logs, clock, troubleOf, onTakeovers } = this.parts
    let left = logs.length
    let areKnown = true
    const end = (outcome: TakeoversOutcome, log: number): void => {
      if (outcome.kind === 'read') onTakeovers(log, outcome.takeovers)
      else areKnown = false
      if (--left === 0) onRead(areKnown)
    }
    for (const [index, log] of logs.entries()) {
      // One of several that is away would delay every change of the register until its deadline.
      const unknown = logs.length > 1 ? troubleOf(index) : undefined
      if (unknown) clock.endOfTick(() => end(unknown, index))
      else log.takeovers(outcome => end(outcome, index))
    }
  }
}
