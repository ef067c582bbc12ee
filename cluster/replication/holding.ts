// One shard at one node, from following its log to owning it and back.
//
//   following --claim--> claiming --taken--> waiting --caught up--> activating --> active --handOver, lose--> sealing --> following
//       ^                                       |
//       +------------- superseded --------------+
//
// `lose`: another node has taken over. Nothing more is appended here in any case, so the host is done soon: what the
// log does not have is lost, and the copy follows again from what is written. The node and its other shards go on.
//
// The log says who owns the shard: its latest takeover. Nobody else is asked, so that nodes that cannot hear each other
// never both own it. Who takes over from one that may still answer reads waits until that one's lease is over; who is
// handed the shard need not, for the one before has sealed it first. A node is active only after a reading of the log,
// asked for after the wait, that has its own takeover as the latest.
//
// The lease: an active node answers as long as it was certain `leaseMs` ago that the latest takeover is its own.
// Appends need none: they happen only while it is, and do not lengthen it, since they say nothing of the register
// (replicator.ts).
//
// Not here: when to claim or hand over (duties.ts), appending (appender.ts).

import type { ShardLog, Takeover } from '../logs/shard-log.js'
import type { ClusterClock } from '../ports.js'
import { lossOf, type OwnedShard } from './appender.js'
import { nobody } from './owner.js'
import type { CaughtUp, Replica } from './replica.js'
import type { ReplicationOptions } from './replication-options.js'
import type { Loss, ShardHost } from './shard-host.js'

export type Phase = 'following' | 'claiming' | 'waiting' | 'activating' | 'active' | 'sealing'

export interface HoldingParts {
  readonly log: ShardLog
  readonly host: Pick<ShardHost, 'activate' | 'seal'>
  readonly clock: Pick<ClusterClock, 'monoMs' | 'after'>
  readonly options: Pick<ReplicationOptions, 'leaseMs' | 'leaseMargin' | 'retryMs'>
  /** What this node calls itself in takeovers. */
  readonly self: string
  /** The phase is another one now, or the latest takeover is. */
  readonly onChange: (shard: number) => void
  /** Another node has taken over what this node owned. */
  readonly onLost: (loss: Loss) => void
  /** The host could not do what it was told: the node must end. */
  readonly onFailure: (failure: Error) => void
}

export class Holding implements OwnedShard {
  readonly replica: Replica
  epoch = 0
  private readonly parts: HoldingParts
  private is: Phase = 'following'
  private takeover: Takeover | undefined
  private leaseUntilMs = Number.NEGATIVE_INFINITY
  /** A moment after the takeover, on this node's clock. */
  private takenMs = Number.POSITIVE_INFINITY
  /**
   * A claim of this life has had no answer: a takeover of our own may come at any time, without anybody having sealed.
   */
  private hasStrayPermits = false
  /** Whether another node has taken over since this node owned it last. */
  private isLost = false
  private isClosed = false

  constructor(replica: Replica, parts: HoldingParts) {
    this.replica = replica
    this.parts = parts
  }

  get shard(): number {
    return this.replica.shard
  }

  get phase(): Phase {
    return this.is
  }

  /** The latest takeover that is known. */
  get latest(): Takeover | undefined {
    return this.takeover
  }

  /** When this node was last certain to own it, on its clock. */
  get certainMs(): number {
    return this.leaseUntilMs - this.parts.options.leaseMs
  }

  /** Whether this node owns the shard and nobody is known to have taken it over. */
  get mayAppend(): boolean {
    return !this.isLost && this.replica.state === 'owned'
  }

  // [hot] Once per request.
  /**
   * Whether asks may be answered at this moment, by this node's clock. `registerMs`: when everything of the register
   * was asked for that is applied. Before the shard was taken over nobody waited for this node to know what the
   * register says (`Replicator.barrier`).
   */
  serves(nowMs: number, registerMs: number): boolean {
    return this.is === 'active' && nowMs < this.leaseUntilMs && registerMs >= this.takenMs
  }

  /** The latest takeover was certain to be ours at a moment not before this one, on this node's clock. */
  confirm(askedMs: number): void {
    this.leaseUntilMs = Math.max(this.leaseUntilMs, askedMs + this.parts.options.leaseMs)
  }

  /** The log tells of a takeover, perhaps of an old one. */
  onTakeover(takeover: Takeover): void {
    if (this.takeover && takeover.epoch <= this.takeover.epoch) return
    this.takeover = takeover
    if (this.mayAppend && takeover.epoch > this.epoch) {
      if (takeover.owner === this.parts.self) this.epoch = takeover.epoch
      else this.lose()
    }
    this.parts.onChange(this.shard)
  }

  /** Takes the shard over, whoever has it. */
  claim(): void {
    this.enter('claiming')
    this.parts.log.takeOver(this.shard, this.parts.self, outcome => {
      if (this.isClosed) return
      if (outcome.kind === 'unknown') {
        this.hasStrayPermits = true
        return this.enter('following')
      }
      const { epoch, before } = outcome
      this.onTakeover({ epoch, owner: this.parts.self })
      this.begin(epoch, before !== undefined && before.owner !== nobody)
    })
  }

  /**
   * There is a takeover of our own that nobody here has made in this phase: it was handed over, or is a claim without
   * an answer.
   */
  adopt({ epoch }: Takeover): void {
    this.begin(epoch, this.hasStrayPermits)
  }

  /** There is a takeover of our own, and no copy that could be gone on from: somebody else is to have the shard. */
  letGo({ epoch }: Takeover): void {
    this.epoch = epoch
    this.enter('sealing')
    this.release(nobody, () => {})
  }

  private begin(epoch: number, mustWait: boolean): void {
    const { options, clock } = this.parts
    this.epoch = epoch
    this.takenMs = clock.monoMs()
    this.enter('waiting')
    const waitMs = mustWait ? options.leaseMs * (1 + options.leaseMargin) : 0
    clock.after(waitMs, () => this.finish())
  }

  private finish(): void {
    if (this.isClosed) return
    this.replica.catchUp(caughtUp => {
      if (this.isClosed) return
      if (!caughtUp) return this.finishLater()
      const { takeover } = caughtUp
      if (takeover) this.onTakeover(takeover)
      if (takeover?.owner !== this.parts.self) return this.enter('following')
      this.epoch = takeover.epoch
      this.activate(caughtUp)
    })
  }

  /** What cannot follow the log cannot own the shard either: it is for others then. */
  private finishLater(): void {
    const { clock, options } = this.parts
    const { state } = this.replica
    if (state === 'following' || state === 'ahead') clock.after(options.retryMs, () => this.finish())
    else this.release(nobody, () => {})
  }

  private activate({ askedMs }: CaughtUp): void {
    this.replica.own()
    this.enter('activating')
    this.parts.host.activate(this.shard, failure => {
      if (this.isClosed) return
      if (failure) return this.parts.onFailure(failure)
      this.confirm(askedMs)
      this.enter('active')
      if (this.isLost) this.seal(() => this.enter('following'))
    })
  }

  /** Gives the shard to another node in good order; tells with which epoch, or that it did not come to that. */
  handOver(to: string, onDone: (epoch: number | undefined) => void): void {
    if (this.is !== 'active') return onDone(undefined)
    this.seal(() => {
      if (!this.isLost) return this.release(to, onDone)
      this.enter('following')
      onDone(undefined)
    })
  }

  private seal(onSealed: () => void): void {
    this.enter('sealing')
    this.parts.host.seal(this.shard, failure => {
      if (this.isClosed) return
      if (failure) return this.parts.onFailure(failure)
      this.replica.disown()
      onSealed()
    })
  }

  /** Nobody here answers for the shard any more: makes another node its owner. */
  private release(to: string, onDone: (epoch: number | undefined) => void): void {
    const { log } = this.parts
    log.retake(this.shard, this.epoch, to, outcome => {
      if (this.isClosed) return
      if (outcome.kind !== 'taken') return this.findOut(to, onDone)
      this.onTakeover({ epoch: outcome.epoch, owner: to })
      this.enter('following')
      onDone(outcome.epoch)
    })
  }

  private findOut(to: string, onDone: (epoch: number | undefined) => void): void {
    const { log, self } = this.parts
    log.takeovers(outcome => {
      if (this.isClosed) return
      const latest = outcome.kind === 'read' ? outcome.takeovers.get(this.shard) : undefined
      if (!latest) return this.later(() => this.findOut(to, onDone))
      this.onTakeover(latest)
      if (latest.owner === self) {
        this.epoch = latest.epoch
        return this.later(() => this.release(to, onDone))
      }
      this.enter('following')
      onDone(latest.owner === to ? latest.epoch : undefined)
    })
  }

  /** Another node has taken over: nothing more can be appended. */
  private lose(): void {
    const { clock, onLost } = this.parts
    this.isLost = true
    onLost(lossOf(this, clock.monoMs()))
    if (this.is === 'active') this.seal(() => this.enter('following'))
  }

  private later(run: () => void): void {
    this.parts.clock.after(this.parts.options.retryMs, () => {
      if (!this.isClosed) run()
    })
  }

  private enter(phase: Phase): void {
    this.is = phase
    if (phase === 'following') this.isLost = false
    this.parts.onChange(this.shard)
  }

  close(): void {
    this.isClosed = true
    this.is = 'following'
    this.replica.close()
  }
}
