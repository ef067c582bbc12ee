// All shards of one node: which of them it follows and owns, and the messages about them between it and other nodes.
//
// Gossip names the nodes, which is a hint; the logs have the truth. From time to time the replicator looks at every
// shard and does its duty there (duties.ts). Everything runs on events and a clock that are passed in, so that many
// nodes can be simulated in one process (test/cluster/replication-simulation.test.ts).
//
// Several engines may keep the logs, each those of some shards (divided-log.ts). While one is away, the shards of the
// others go on. All shards need the engine of the register, because leases do.
//
// All nodes follow the register, the shard behind the last one. An owner answers for a shard only if it has everything
// that the register's log had when its lease was last confirmed, and not before it took the shard over. So a change of
// the register counts as known everywhere when every owner has confirmed it, or its lease is over. After that no owner
// decides anything without the change (`barrier`): a later owner will have it.

import { logIndexOf, logOf } from '../logs/divided-log.js'
import type { ShardLog, Unknown } from '../logs/shard-log.js'
import type { ClusterClock } from '../ports.js'
import { Appender } from './appender.js'
import { Balancer, type BegunExchange } from './balancer.js'
import { Caretaker } from './caretaker.js'
import { Health, type Unhealthy } from './health.js'
import { Heartbeats } from './heartbeats.js'
import { Holding } from './holding.js'
import { Keepers } from './keepers.js'
import { KnownTakeovers, viewOfServed } from './known-takeovers.js'
import { type ClusterMark, LogCheck, type MissingRecords } from './log-check.js'
import { LogChecks } from './log-checks.js'
import { LogReports } from './log-reports.js'
import { nameOf, noOwner, ownerText } from './owner.js'
import { PeerAnswers } from './peer-answers.js'
import type { AskPeer } from './peer-messages.js'
import { RegisterBarrier } from './register-barrier.js'
import { Renewal } from './renewal.js'
import { Replica } from './replica.js'
import type { Balance, ReplicationOptions } from './replication-options.js'
import { Rests } from './rests.js'
import type { HostReplication, LogPosition, Loss, ShardHost, ShardPayload } from './shard-host.js'
import { Trimming } from './trimming.js'

/** A node as gossip reports it. */
export interface ViewMember {
  readonly name: string
  /** A word that is unique to each life of its process. */
  readonly life: string
  readonly domain: string
  /** Whether it should get shards. */
  readonly isJoined: boolean
  /** Whether it was silent lately. */
  readonly isSuspect: boolean
}

export interface ReplicatorParts {
  readonly name: string
  readonly life: string
  /** V: shards of entities. The register is the one with this number. */
  readonly shards: number
  /** The number of shards over which a service path is spread. */
  readonly spread: number
  /** One or several; `logIndexOf` tells which of them keeps a shard. */
  readonly logs: readonly ShardLog[]
  readonly host: ShardHost
  readonly clock: ClusterClock
  readonly options: ReplicationOptions
  /** For each log the mark by which its engine is recognised; undefined: there are none. */
  readonly marks?: readonly ClusterMark[] | undefined
  /** Asks another node; undefined: no answer came, or never will. */
  readonly ask: AskPeer
  /** Ownership of some shard has changed. */
  readonly onChange: () => void
  /** Whether another node can be asked at this moment. */
  readonly reachable: (node: string) => boolean
  /** Some shards cannot answer, or for another reason than before; undefined: all can. */
  readonly onHealth: (unhealthy: Unhealthy | undefined) => void
  /** A copy cannot continue (replica.ts): a message for the operator. */
  readonly onStopped: (shard: number, reason: string) => void
  /** This node may hold changes that never became durable, or its host has failed: it must end, and can start again. */
  readonly onFailure: (failure: Error) => void
  /** A node has sent something that the host cannot read. */
  readonly onUnreadable?: (node: string, reason: string) => void
  /** Other nodes have taken over shards that this node owned. */
  readonly onLost?: (losses: readonly Loss[]) => void
  /** This node exchanges a hot shard for a cold one. */
  readonly onExchange?: (exchange: BegunExchange) => void
}

export class Replicator implements HostReplication {
  private readonly parts: ReplicatorParts
  private readonly self: string
  private readonly holdings: Holding[]
  private readonly appender: Appender
  private readonly caretaker: Caretaker
  private readonly trimming: Trimming
  private readonly balancer: Balancer
  private readonly answers: PeerAnswers
  private readonly renewal: Renewal
  private readonly registerBarrier: RegisterBarrier
  private readonly check: LogChecks
  /** One for each log, as everything that asks an engine. */
  private readonly heartbeats: readonly Heartbeats[]
  private readonly health: Health
  private view: readonly ViewMember[] = []
  private readonly keepers: Keepers
  private readonly takeovers: KnownTakeovers
  private readonly reports: LogReports
  private readonly resting: Rests
  /** The losses of this tick. */
  private losses: Loss[] = []
  private isClosed = false

  constructor(parts: ReplicatorParts) {
    const { name, life, shards, spread, host, logs, clock, options, ask, onFailure } = parts
    this.parts = parts
    this.self = ownerText(name, life)
    this.takeovers = new KnownTakeovers(clock, options)
    this.keepers = new Keepers({
      shards,
      spread,
      replicas: options.replicas,
      // A shard that was given to no node counts as one whose owner has gone.
      presentOwner: shard => {
        const takeover = this.takeovers.of(shard)
        return takeover && nameOf(takeover.owner)
      },
    })
    this.holdings = Array.from({ length: shards + 1 }, (_, shard) => this.hold(shard, host.position(shard)))
    this.check = new LogChecks(logs.map((_, log) => this.checkOf(log)))
    this.renewal = new Renewal({
      logs,
      clock,
      options,
      holdings: this.holdings,
      register: this.register,
      check: this.check,
      onTakeovers: (log, read) => this.reports.noteAllRead(log, read),
    })
    this.registerBarrier = new RegisterBarrier({
      logs,
      clock,
      options,
      ask,
      takeovers: this.takeovers,
      others: nowMs => this.others(nowMs),
      troubleOf: log => this.renewal.troubleOf(log),
      onTakeovers: (log, read) => this.reports.noteAllRead(log, read),
    })
    this.heartbeats = logs.map(
      (log, index) =>
        new Heartbeats({
          name,
          log,
          clock,
          options,
          served: () => this.served(index),
          onProven: some => this.health.prove(some),
        }),
    )
    this.health = new Health({
      clock,
      options,
      self: name,
      shards: shards + 1,
      ownerOf: shard => this.ownerOf(shard),
      serves: shard => this.serves(shard),
      reachable: parts.reachable,
      loss: () => this.check.loss,
      diverged: () => this.holdings.filter(({ replica }) => replica.hasDiverged).map(({ shard }) => shard),
      logs: logs.length,
      trouble: log => this.troubleOf(log),
      onChange: parts.onHealth,
    })
    this.appender = new Appender({
      logs,
      clock,
      options,
      self: this.self,
      holding: shard => this.holdings[shard]!,
      onTakeover: (shard, takeover) => this.reports.noteRead(shard, takeover),
      onForsaken: log => this.forsake(log),
      mayAppend: () => !this.check.isLost,
      onLost: () => this.check.check(),
    })
    this.caretaker = new Caretaker({
      self: this.self,
      logs,
      host,
      clock,
      options,
      ask,
      onFailure,
      onUnreadable: (node, reason) => this.parts.onUnreadable?.(node, reason),
      holdings: this.holdings,
      renew: shard => this.hold(shard, undefined),
      keepers: shard => this.keepers.of(shard),
      mayAct: shard => this.check.isWhole(shard),
      checkFirst: (shard, onChecked) => this.check.checkFirst(shard, onChecked),
      onHandedOver: (shard, epoch) => this.reports.noteTakeover(shard, { epoch, owner: this.self }),
    })
    this.balancer = new Balancer({
      self: this.self,
      shards,
      host,
      clock,
      options,
      ask,
      keepers: this.keepers,
      holdings: this.holdings,
      ownerOf: shard => this.ownerOf(shard),
      mayAct: () => this.check.isWhole(shards),
      onPlan: () => this.caretaker.lookSoon(),
      onBegun: exchange => this.parts.onExchange?.(exchange),
    })
    this.trimming = new Trimming({
      self: this.self,
      logs,
      host,
      clock,
      options,
      ask,
      onFailure,
      holdings: this.holdings,
      mayTrim: () => !this.check.isLost,
      keepers: shard => this.livingKeepers(shard),
      others: () => this.others(clock.monoMs()),
      load: () => this.balancer.round(),
    })
    this.answers = new PeerAnswers({
      host,
      options,
      holdings: this.holdings,
      check: this.check,
      trimming: this.trimming,
      balancer: this.balancer,
      caretaker: this.caretaker,
      mayGet: (node, shard) => this.mayGet(node, shard),
    })
    this.reports = new LogReports({
      logs,
      clock,
      options,
      holdings: this.holdings,
      heartbeats: this.heartbeats,
      takeovers: this.takeovers,
      keepers: this.keepers,
      caretaker: this.caretaker,
      onChange: parts.onChange,
    })
    this.resting = new Rests({
      clock,
      options,
      ask,
      register: this.register,
      others: () => this.view.map(member => member.name).filter(other => other !== name),
      hold: () => this.caretaker.hold(),
    })
  }

  /** The shard that all nodes follow. */
  get register(): number {
    return this.parts.shards
  }

  /** Begins to follow the logs and to do its duties. */
  start(): void {
    this.reports.start()
    this.check.start()
    this.renewal.start()
    this.caretaker.start()
    this.trimming.start()
    for (const heartbeats of this.heartbeats) heartbeats.start()
    this.health.start()
  }

  /** The nodes of the cluster, this one among them. */
  setView(view: readonly ViewMember[]): void {
    this.view = view
    this.keepers.setView(view)
    this.balancer.setView(view)
    this.caretaker.setView(view)
  }

  // [hot] Once per request.
  /** Whether this node answers for a shard at this moment. */
  serves(shard: number): boolean {
    if (this.check.isLost) return false
    const nowMs = this.parts.clock.monoMs()
    const { registerMs } = this.renewal
    return nowMs < registerMs + this.parts.options.leaseMs && this.holdings[shard]!.serves(nowMs, registerMs)
  }

  /** The node that owns a shard, as far as is known. */
  ownerOf(shard: number): string | undefined {
    return this.takeovers.ownerOf(shard)
  }

  /** The epoch of a shard's latest takeover that is known; 0: there is none. */
  epochOf(shard: number): number {
    return this.takeovers.epochOf(shard)
  }

  /** Whether every shard has an owner, as far as is known. */
  get isWhole(): boolean {
    return this.holdings.every(({ shard }) => this.ownerOf(shard) !== undefined)
  }

  /**
   * A number that identifies all shards that a node owns as far as is known here, without the register. It changes
   * whenever these shards or their epochs change.
   */
  viewOf(node: string): number {
    return this.takeovers.viewOf(node, this.register)
  }

  /** The same number for the shards that this node answers for at this moment; undefined: see `viewOfServed`. */
  get ownView(): number | undefined {
    return viewOfServed(this.holdings.slice(0, this.register), shard => this.serves(shard))
  }

  append(parts: readonly ShardPayload[], onDone: (outcome: ReadonlyMap<number, LogPosition> | Error) => void): void {
    this.appender.append(parts, onDone)
  }

  /** The engine's losses, as far as is known here; undefined: none. */
  get loss(): MissingRecords | undefined {
    return this.check.loss
  }

  /** Why some shards cannot answer, as far as is known here; undefined: all could, in the last seconds. */
  get unhealthy(): Unhealthy | undefined {
    return this.health.unhealthy
  }

  /** The latest request of a kind that the engine of a log did not execute; undefined: it did. */
  troubleOf(log: number): Unknown | undefined {
    return this.appender.troubleOf(log) ?? this.heartbeats[log]!.trouble ?? this.renewal.troubleOf(log)
  }

  /** How long an append in flight has waited for an engine: the longest time; 0: there is none. */
  get stalledMs(): number {
    return this.appender.stalledMs
  }

  /** Whether this node has all of the register as of a moment ago. From then on it may get shards. */
  get knowsRegister(): boolean {
    return this.renewal.hasRegister
  }

  /**
   * Calls back when no node decides anything any more without having applied this record of a shard that all follow
   * (register-barrier.ts).
   */
  barrier(shard: number, sequence: number, onDone: () => void): void {
    this.registerBarrier.begin(shard, sequence, onDone)
  }

  /** This node has lists that wait for shards at rest: asks all nodes to begin no moves for a moment. */
  rest(): void {
    if (!this.isClosed) this.resting.ask()
  }

  /** How often lists of this node have made it ask for a rest. */
  get rests(): number {
    return this.resting.count
  }

  /** Answers a request of another node. */
  onAsk(given: Buffer, onReply: (reply: Buffer) => void): void {
    this.answers.onAsk(given, onReply)
  }

  /** Whether this node ought to have a copy of a shard, as owner or standby. */
  keeps(shard: number): boolean {
    return this.keepers.of(shard).includes(this.parts.name)
  }

  /** The node that ought to own a shard, as known here; undefined: no node has joined. */
  ownerWanted(shard: number): string | undefined {
    return this.keepers.of(shard)[0]
  }

  /** The requests a second of a node's shards; undefined: not known. */
  loadOf(node: string): number | undefined {
    return this.balancer.loadOf(node)
  }

  /** Exchanges for load that this node chose, and that were carried out. */
  get exchanges(): number {
    return this.balancer.exchanges
  }

  /** What moves shards between nodes that stay, as known here. */
  get balance(): Balance {
    return this.balancer.balance
  }

  /**
   * Whether nodes may live that gossip does not reach: the log reports their actions, or this node has not followed it
   * for `forMs` yet, and cannot know.
   */
  mayHaveOthers(forMs: number): boolean {
    const { logs } = this.parts
    return this.caretaker.seesOthers || logs.some(({ followedMs = forMs }) => followedMs < forMs)
  }

  /** Gives up every shard of which a living node has a copy: it has no owner until one takes it over. */
  giveUp(): void {
    for (const holding of this.holdings) if (this.trimming.isCopied(holding.shard)) holding.handOver(noOwner, () => {})
  }

  /** The node's knowledge of each shard, for people. */
  *standings(): Iterable<Holding> {
    yield* this.holdings
  }

  /** How many shards this node owns, the register counted. */
  get ownedCount(): number {
    return this.holdings.filter(({ phase }) => phase !== 'following').length
  }

  /** Whether the host is writing for this node's copies: its store must not be closed then. */
  get isWriting(): boolean {
    return this.caretaker.isCopying || this.holdings.some(({ replica }) => replica.isApplying)
  }

  /** Begins nothing more. */
  close(): void {
    this.isClosed = true
    this.reports.close()
    this.check.close()
    this.appender.close()
    this.caretaker.close()
    this.trimming.close()
    this.balancer.close()
    this.answers.close()
    this.renewal.close()
    for (const heartbeats of this.heartbeats) heartbeats.close()
    this.health.close()
    for (const holding of this.holdings) holding.close()
  }

  private hold(shard: number, position: LogPosition | undefined): Holding {
    const { logs, host, clock, options, onStopped, onFailure } = this.parts
    const log = logOf(logs, shard)
    const replica = new Replica(shard, position, {
      log,
      host,
      clock,
      options,
      onStopped,
      onFailure,
      onAhead: () => this.check.check(),
    })
    return new Holding(replica, {
      log,
      host,
      clock,
      options,
      self: this.self,
      // The register needs no other shard.
      whenRegisterIsKnown: (sinceMs, run) =>
        shard === this.register ? run() : this.renewal.whenRegisterIsKnown(sinceMs, run),
      onChange: () => {
        const phase = this.holdings[shard]?.phase
        if (phase === 'waiting') this.renewal.renewSoon()
        if (phase === 'active') logOf(this.heartbeats, shard).beatSoon()
        this.caretaker.lookSoon()
      },
      onLost: loss => this.noteLost(loss),
      onFailure,
    })
  }

  private checkOf(log: number): LogCheck {
    const { logs, clock, options, marks } = this.parts
    return new LogCheck({
      log: logs[log]!,
      clock,
      options,
      mark: marks?.[log],
      holdings: this.holdings,
      keeps: shard => this.isIn(log, shard),
      epochOf: shard => this.epochOf(shard),
      onChange: () => {
        this.parts.onChange()
        this.health.look()
      },
    })
  }

  /** Whether a log keeps a shard. */
  private isIn(log: number, shard: number): boolean {
    return logIndexOf(shard, this.parts.logs.length) === log
  }

  /** The engine of a log has been silent for long, and others work. */
  private forsake(log: number): void {
    for (const holding of this.holdings) if (this.isIn(log, holding.shard)) holding.forsake()
  }

  /** A node that was stopped learns of all its losses at once, so they are reported together. */
  private noteLost(loss: Loss): void {
    this.losses.push(loss)
    if (this.losses.length > 1) return
    this.parts.clock.endOfTick(() => {
      const { losses } = this
      this.losses = []
      if (!this.isClosed) this.parts.onLost?.(losses)
    })
  }

  /**
   * The shards of a log that this node answers for at this moment. None while its appends wait for the engine, since it
   * could not answer then.
   */
  private served(log: number): ReadonlyMap<number, number> {
    const served = new Map<number, number>()
    if (this.appender.stalledMsOf(log) < this.parts.options.healthMs)
      for (const { shard, epoch } of this.holdings)
        if (this.isIn(log, shard) && this.serves(shard)) served.set(shard, epoch)
    return served
  }

  /** A node that should have no shards gives one to any node that ought to keep it: the first may not come for it. */
  private mayGet(node: string, shard: number): boolean {
    const keepers = this.keepers.of(shard)
    const isLeaving = this.view.some(({ name, isJoined }) => name === this.parts.name && !isJoined)
    return isLeaving ? keepers.includes(node) : keepers[0] === node
  }

  private livingKeepers(shard: number): string[] {
    const keepers = this.keepers.of(shard)
    return this.view.flatMap(({ name, life }) => (keepers.includes(name) ? ownerText(name, life) : []))
  }

  /** Other nodes that may own something, now or soon, or may believe so. */
  private others(nowMs: number): string[] {
    const { name } = this.parts
    const names = new Set([...this.view.map(member => member.name), ...this.takeovers.owners(nowMs)])
    names.delete(name)
    return [...names]
  }
}
