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
/** It is asked again meanwhile, because an ask or its answer may be lost with a connection. */
const againMs = 300

export interface RegisterBarrierParts {
  readonly logs: readonly Pick<ShardLog, 'takeovers'>[]
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
    const { clock, options, takeovers, others } = this.parts
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
        this.askUntil(startedMs + reachMs, node, request, hasReached => {
          if (!hasReached) isLacking = true
          if (--missing === 0) end()
        })
    })
  }

  /** Asks a node until it has applied the record, or the time is over. */
  private askUntil(endMs: number, node: string, request: Buffer, onEnd: (hasReached: boolean) => void): void {
    const { clock, ask } = this.parts
    const askedMs = clock.monoMs()
    ask(node, request, Math.min(againMs, endMs - askedMs), reply => {
      if (replyOf(reply)?.kind === 'done') return onEnd(true)
      const nextMs = askedMs + againMs
      if (nextMs >= endMs) return onEnd(false)
      clock.after(Math.max(0, nextMs - clock.monoMs()), () => this.askUntil(endMs, node, request, onEnd))
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
