// Renews the right of a node to answer: from time to time it confirms that the node has all of the register, and that
// its shards are still its own.
//
// All readings start at once, since a shard that has moved waits for them. The shards of a log wait for that log and
// for the register, and for no other log. Many shards that move at the same time share readings: those of a dead node
// would otherwise keep the engine and the nodes busy with one reading of all takeovers for each.
//
// Not here: how long a confirmation lasts (holding.ts).

import type { ShardLog, Takeover, Unknown } from '../logs/shard-log.js'
import type { ClusterClock } from '../ports.js'
import type { Holding } from './holding.js'
import type { LogChecks } from './log-checks.js'
import type { ReplicationOptions } from './replication-options.js'

type Takeovers = ReadonlyMap<number, Takeover>

/** A shared renewal waits so long for a slow log. Then the next one may begin. */
const sharedMs = 100

export interface RenewalParts {
  readonly logs: readonly ShardLog[]
  readonly clock: ClusterClock
  readonly options: Pick<ReplicationOptions, 'renewMs'>
  /** By shard. */
  readonly holdings: readonly Holding[]
  /** The shard that all nodes follow. */
  readonly register: number
  readonly check: Pick<LogChecks, 'isLost'>
  /** All takeovers of a log have been read. */
  readonly onTakeovers: (log: number, takeovers: Takeovers) => void
}

export class Renewal {
  /** Whether this node had all of the register once. */
  hasRegister = false
  /** When the reading of the register was asked for that is applied. */
  registerMs = Number.NEGATIVE_INFINITY
  /** For each log. */
  private readonly troubles: (Unknown | undefined)[] = []
  /** The renewal under way that others wait for; undefined: none, or it takes too long. */
  private shared: { isWantedAgain: boolean } | undefined
  private waiting: { readonly sinceMs: number; readonly run: () => void }[] = []
  private isClosed = false

  constructor(private readonly parts: RenewalParts) {}

  start(): void {
    const { clock, options } = this.parts
    const renewing = (): void => {
      if (this.isClosed) return
      this.renew()
      clock.after(options.renewMs, renewing)
    }
    renewing()
  }

  close(): void {
    this.isClosed = true
  }

  /** Calls back when a reading of the register is applied that was asked for at this moment or later. */
  whenRegisterIsKnown(sinceMs: number, run: () => void): void {
    if (this.registerMs >= sinceMs) run()
    else this.waiting.push({ sinceMs, run })
  }

  /** Why the latest reading of a log had no answer; undefined: it had one. */
  troubleOf(log: number): Unknown | undefined {
    return this.troubles[log]
  }

  /** Renews at once; or, while such a renewal is under way, once more after it. */
  renewSoon(): void {
    if (this.isClosed) return
    if (this.shared) {
      this.shared.isWantedAgain = true
      return
    }
    const own = { isWantedAgain: false }
    this.shared = own
    const end = (): void => {
      if (this.shared !== own) return
      this.shared = undefined
      if (own.isWantedAgain) this.renewSoon()
    }
    this.renew(end)
    this.parts.clock.after(sharedMs, end)
  }

  /** `onAnswered`: called when each log has answered or failed, and the register is read; not after `close`. */
  private renew(onAnswered: () => void = () => {}): void {
    const { logs, clock, holdings, register, onTakeovers } = this.parts
    const askedMs = clock.monoMs()
    const { replica } = holdings[register]!
    const isOwner = replica.state === 'owned'
    let hasRegister = false
    let unanswered = logs.length + (isOwner ? 0 : 1)
    const answered = (): void => {
      if (--unanswered === 0) onAnswered()
    }
    const read: Takeovers[] = []
    const confirm = (): void => {
      if (this.isClosed || !hasRegister) return
      this.hasRegister = true
      for (const takeovers of read) this.confirm(askedMs, takeovers)
    }
    if (!isOwner)
      replica.catchUp(caughtUp => {
        hasRegister = caughtUp !== undefined
        confirm()
        answered()
      })
    for (const [index, log] of logs.entries())
      log.takeovers(outcome => {
        this.troubles[index] = outcome.kind === 'unknown' ? outcome : undefined
        if (this.isClosed) return
        if (outcome.kind === 'unknown') return answered()
        const { takeovers } = outcome
        read.push(takeovers)
        onTakeovers(index, takeovers)
        // The register's owner knows all of it, as long as it is the owner.
        if (isOwner && this.ownsRegister(takeovers)) hasRegister = true
        confirm()
        answered()
      })
  }

  private ownsRegister(takeovers: Takeovers): boolean {
    const { holdings, register } = this.parts
    const { replica, epoch } = holdings[register]!
    return replica.state === 'owned' && takeovers.get(register)?.epoch === epoch
  }

  /** `askedMs`: these takeovers and the register were not asked for before that. */
  private confirm(askedMs: number, takeovers: Takeovers): void {
    if (this.parts.check.isLost) return
    this.noteRegister(askedMs)
    for (const holding of this.parts.holdings)
      if (takeovers.get(holding.shard)?.epoch === holding.epoch) holding.confirm(askedMs)
  }

  private noteRegister(askedMs: number): void {
    this.registerMs = Math.max(this.registerMs, askedMs)
    const { waiting, registerMs } = this
    this.waiting = waiting.filter(({ sinceMs }) => sinceMs > registerMs)
    for (const { sinceMs, run } of waiting) if (sinceMs <= registerMs) run()
  }
}
