// One shard at one node, from following its log to owning it and back.
//
//   following --claim--> claiming --taken--> waiting --caught up--> activating --> active --handOver, lose--> sealing --> following
//       ^                                       |
//       +------------- superseded --------------+
//
// `lose`: another node has taken over. Nothing more can be appended here, so the host is sealed soon: changes that the
// log does not have are lost, and the copy follows again from the written position. The node and its other shards go
// on.
//
// The log alone decides the owner: it is in the latest takeover. So two nodes that cannot reach each other never both
// own the shard. A node that takes over from an owner that may still answer reads waits until that one's lease is over.
// A handoff needs no wait, since the former owner has sealed the shard first. A node becomes active only after a
// reading of the log, asked for after the wait, that has its own takeover as the latest, and a reading of the register,
// asked for after that takeover.
//
// The lease: an active node may answer for `leaseMs` after the last moment at which it knew that the latest takeover
// was its own. Only renewals extend it, counted from the request (renewal.ts). Appends need no lease: they happen
// only while the takeover is the latest. They do not extend it, since they prove nothing about the register.
//
// `lose` also follows when the node gives the shard up, because the engine of its log has been silent for long while
// other engines work (`forsake`). An append of this node may then still be on its way. So the node takes the shard over
// once more before it owns it again, which ends that append.
//
// Not here: when to claim or hand over (duties.ts), appending (appender.ts).

import type { ShardLog, Takeover } from '../logs/shard-log.js'
import type { ClusterClock } from '../ports.js'
import { lossOf, type OwnedShard } from './appender.js'
import { noOwner } from './owner.js'
import type { Replica } from './replica.js'
import type { ReplicationOptions } from './replication-options.js'
import type { Loss, ShardHost } from './shard-host.js'

export type Phase = 'following' | 'claiming' | 'waiting' | 'activating' | 'active' | 'sealing'

export interface HoldingParts {
  readonly log: ShardLog
  readonly host: Pick<ShardHost, 'activate' | 'seal'>
  readonly clock: Pick<ClusterClock, 'monoMs' | 'after'>
  readonly options: Pick<ReplicationOptions, 'leaseMs' | 'leaseMargin' | 'retryMs'>
  /** The name and life of this node, as in takeovers. */
  readonly self: string
  /**
   * Calls back when a reading of the register is applied that was asked for at this moment or later. The host needs the
   * subscriptions for its first step: it sends notifications that an owner before has left.
   */
  readonly whenRegisterIsKnown: (sinceMs: number, run: () => void) => void
  /** The phase or the latest takeover has changed. */
  readonly onChange: (shard: number) => void
  /** Another node has taken over a shard that this node owned. */
  readonly onLost: (loss: Loss) => void
  /** The host could not activate or seal: the node must end. */
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
   * A claim of this life has had no answer: a takeover of our own may come at any time, and no node has sealed the
   * shard for it.
   */
  private hasStrayTakeovers = false
  /** The epoch in which this node has given the shard up; undefined: it never has. */
  private forsakenEpoch: number | undefined
  /**
   * Whether another node has taken over, or this node has given it up, since this node owned it last.
   */
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

  get isForsaken(): boolean {
    return this.forsakenEpoch !== undefined && (this.takeover?.epoch ?? 0) <= this.forsakenEpoch
  }

  /** When this node was last certain to own it, on its clock. */
  get certainMs(): number {
    return this.leaseUntilMs - this.parts.options.leaseMs
  }

  /** Whether a read of everything that this node has may count the shard, also when the node does not answer for it. */
  get mayBeCounted(): boolean {
    return this.is === 'activating' || this.is === 'active' || this.is === 'sealing'
  }

  /** Whether this node owns the shard and no takeover by another node is known. */
  get mayAppend(): boolean {
    return !this.isLost && this.replica.state === 'owned'
  }

  // [hot] Once per request.
  /**
   * Whether asks may be answered at this moment, by this node's clock. `registerMs`: when the reading of the register
   * was asked for that is applied. It must not be before the takeover: until then no barrier waited for this node to
   * have the register (`Replicator.barrier`).
   */
  serves(nowMs: number, registerMs: number): boolean {
    return this.is === 'active' && nowMs < this.leaseUntilMs && registerMs >= this.takenMs
  }

  /** The latest takeover was certain to be ours at a moment not before this one, on this node's clock. */
  confirm(askedMs: number): void {
    this.leaseUntilMs = Math.max(this.leaseUntilMs, askedMs + this.parts.options.leaseMs)
  }

  /** The log reports a takeover, perhaps an old one. */
  onTakeover(takeover: Takeover): void {
    if (this.takeover && takeover.epoch <= this.takeover.epoch) return
    this.takeover = takeover
    if (this.mayAppend && takeover.epoch > this.epoch) {
      if (takeover.owner === this.parts.self) this.epoch = takeover.epoch
      else this.lose()
    }
    this.parts.onChange(this.shard)
  }

  /** Takes the shard over from any owner. */
  claim(): void {
    this.enter('claiming')
    this.parts.log.takeOver(this.shard, this.parts.self, outcome => {
      if (this.isClosed) return
      if (outcome.kind === 'unknown') {
        this.hasStrayTakeovers = true
        return this.enter('following')
      }
      const { epoch, before } = outcome
      this.onTakeover({ epoch, owner: this.parts.self })
      this.begin(epoch, before !== undefined && before.owner !== noOwner)
    })
  }

  /**
   * There is a takeover of our own that this node has not made in this phase: it was handed over, or is a claim without
   * an answer.
   */
  adopt({ epoch }: Takeover): void {
    this.begin(epoch, this.hasStrayTakeovers)
  }

  /**
   * There is a takeover of our own, and no copy from which to continue: another node should get the shard. That node
   * will not wait, so the lease of the owner before must be over by then.
   */
  relinquish({ epoch }: Takeover): void {
    this.epoch = epoch
    this.enter('sealing')
    this.whenFree(this.hasStrayTakeovers, () => this.release(noOwner, () => {}))
  }

  private begin(epoch: number, mustWait: boolean): void {
    this.epoch = epoch
    this.takenMs = this.parts.clock.monoMs()
    this.enter('waiting')
    this.whenFree(mustWait, () => this.finish())
  }

  /** Continues when the owner before answers no more: at once, or when its lease is over. */
  private whenFree(mustWait: boolean, run: () => void): void {
    const { options, clock } = this.parts
    clock.after(mustWait ? options.leaseMs * (1 + options.leaseMargin) : 0, () => {
      if (!this.isClosed) run()
    })
  }

  private finish(): void {
    if (this.isClosed) return
    this.replica.catchUp(caughtUp => {
      if (this.isClosed) return
      if (!caughtUp) return this.finishLater()
      const read = caughtUp.takeover
      if (read) this.onTakeover(read)
      // A later takeover may have been reported while the log was read.
      const latest = this.takeover
      if (latest?.owner !== this.parts.self) return this.enter('following')
      if (latest.epoch !== read?.epoch) return this.finish()
      this.epoch = latest.epoch
      this.parts.whenRegisterIsKnown(this.takenMs, () => this.activateAs(latest))
    })
  }

  /** `takeover`: the latest one before the register was read. */
  private activateAs({ epoch }: Takeover): void {
    if (this.isClosed) return
    if (this.takeover?.epoch === epoch) this.activate()
    else this.finish()
  }

  /** A copy that cannot follow the log cannot own the shard either, so it is released for other nodes. */
  private finishLater(): void {
    const { clock, options } = this.parts
    const { state } = this.replica
    if (state === 'following' || state === 'ahead') clock.after(options.retryMs, () => this.finish())
    else this.release(noOwner, () => {})
  }

  private activate(): void {
    this.replica.own()
    this.enter('activating')
    this.parts.host.activate(this.shard, failure => {
      if (this.isClosed) return
      if (failure) return this.parts.onFailure(failure)
      this.enter('active')
      if (this.isLost) this.seal(() => this.enter('following'))
    })
  }

  /**
   * Gives the shard to another node by handoff, or to none. Calls back with the epoch, or with undefined if that failed.
   */
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

  /** No turn here uses the shard any more: makes another node its owner. */
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

  /** Gives the shard up if this node appends to it: what was appended without an answer may happen or not. */
  forsake(): void {
    if (!this.mayAppend) return
    this.forsakenEpoch = this.epoch
    this.lose()
  }

  /** Nothing more can be appended in this epoch. */
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
