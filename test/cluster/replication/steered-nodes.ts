// Nodes in a schedule that the test decides: real replicators over a simulated engine, with counters as shards.
//
// No node has joined, so none takes a shard over by itself. The test decides who does so, which nodes know each other,
// which requests and answers of the engine are late, and which events do not arrive. The seed is fixed, so each run is
// the same.
//
// Not here: schedules by chance (replication-run.ts).

import type { ShardLog } from '../../../cluster/logs/shard-log.js'
import type { Holding } from '../../../cluster/replication/holding.js'
import { beginning } from '../../../cluster/replication/log-record.js'
import { ownerText } from '../../../cluster/replication/owner.js'
import {
  completeReplicationOptions,
  type ReplicationOptions,
} from '../../../cluster/replication/replication-options.js'
import { Replicator } from '../../../cluster/replication/replicator.js'
import { Random } from '../../support/random.js'
import { CountingHost } from '../counting-host.js'
import { but } from '../replication-rules.js'
import { SimulatedEngine, type SimulatedLog } from '../simulated-log.js'
import { type Process, World } from '../simulated-world.js'

/** The only shard of entities, and the one that all nodes follow. */
export const shard = 0
export const register = 1

const options = completeReplicationOptions({ trimMs: 1_000, recordsKept: 1 })
const { leaseMs, leaseMargin } = options
/** How long a new owner waits for the lease of the one before. */
export const wholeLeaseMs = leaseMs * (1 + leaseMargin)
/** Enough for a few requests to the engine, and less than the time between two renewals of a lease. */
export const momentMs = 60

/** A request to the engine, as far as a test selects by it. */
interface Request {
  readonly kind: 'read' | 'takeovers' | 'takeOver'
  readonly shard?: number
}

export class SteeredCluster {
  readonly world = new World(new Random(1))
  readonly engine = new SimulatedEngine(this.world.process('engine').clock, this.world.random)
  readonly nodes = new Map<string, SteeredNode>()
  readonly options: ReplicationOptions

  private constructor(given: ReplicationOptions) {
    this.options = given
  }

  /** Starts nodes that know each other. The first one owns all shards. */
  static of(...names: readonly string[]): Promise<SteeredCluster> {
    return SteeredCluster.withClocks(Object.fromEntries(names.map(name => [name, undefined])))
  }

  /** The same, with the rate of each node's clock; `margin`: the part of a lease that new owners wait in addition. */
  static async withClocks(
    rates: Readonly<Record<string, number | undefined>>,
    margin = leaseMargin,
  ): Promise<SteeredCluster> {
    const cluster = new SteeredCluster({ ...options, leaseMargin: margin })
    const names = Object.keys(rates)
    for (const name of names) await cluster.start(name, rates[name])
    const [first] = cluster.all
    for (const node of cluster.all) node.know(names)
    await cluster.world.run(1_500)
    for (const one of [register, shard]) first!.holding(one).claim()
    await cluster.world.run(1_500)
    return cluster
  }

  /** Each copy begins with the log. */
  private async start(name: string, rate: number | undefined): Promise<void> {
    const process = this.world.process(name, rate)
    const host = new CountingHost(run => process.clock.endOfTick(run))
    for (const one of [shard, register]) host.apply(one, [], beginning, () => {})
    await this.world.run(1)
    this.nodes.set(name, new SteeredNode(this, process, host))
  }

  get all(): SteeredNode[] {
    return [...this.nodes.values()]
  }

  node(name: string): SteeredNode {
    return this.nodes.get(name)!
  }

  /** Lets a moment pass. */
  settle(): Promise<void> {
    return this.world.run(momentMs)
  }

  /** Lets time pass until something is so; returns whether it became so within `forMs`. */
  async until(isSo: () => boolean, forMs = 10_000): Promise<boolean> {
    const endMs = this.world.nowMs + forMs
    while (!isSo() && this.world.nowMs < endMs) await this.world.run(1)
    return isSo()
  }

  /** The names of all nodes that answer for a shard at this moment. */
  answering(one = shard): readonly string[] {
    return this.all.flatMap(node => (node.answers(one) ? [node.name] : []))
  }
}

export class SteeredNode {
  readonly name: string
  readonly owner: string
  readonly process: Process
  readonly link: SimulatedLog
  readonly host: CountingHost
  readonly replicator: Replicator
  /** Whether no message between this node and other nodes arrives. */
  isAlone = false
  /** The events of logs that do not arrive. A heartbeat has no shard. */
  isUnheard: (shard: number | undefined, kind: 'record' | 'takeover' | 'heartbeat') => boolean = () => false
  /** The requests that arrive late. Their answers come never. */
  isLate: (request: Request) => boolean = () => false
  /** The requests whose answers arrive late. */
  isAnsweredLate: (request: Request) => boolean = () => false
  private readonly late: (() => void)[] = []
  private readonly lateAnswers: (() => void)[] = []
  private readonly cluster: SteeredCluster

  constructor(cluster: SteeredCluster, process: Process, host: CountingHost) {
    this.cluster = cluster
    this.name = process.name
    this.owner = ownerText(this.name, 'life')
    this.process = process
    this.host = host
    this.link = cluster.engine.connect(process.clock)
    this.replicator = this.replicate(this.steered())
    this.host.begin(this.replicator, fail)
    this.replicator.start()
  }

  private replicate(log: ShardLog): Replicator {
    return new Replicator({
      name: this.name,
      life: 'life',
      shards: register,
      spread: register,
      logs: [log],
      host: this.host,
      clock: this.process.clock,
      options: this.cluster.options,
      ask: (to, request, waitMs, onReply) => this.ask(this.cluster.node(to), request, waitMs, onReply),
      onChange: () => {},
      reachable: () => true,
      onHealth: () => {},
      onStopped: (_, reason) => fail(new Error(reason)),
      onFailure: fail,
    })
  }

  private steered(): ShardLog {
    const { link } = this
    const { clock } = this.process
    return but(link, {
      takeOver: (one, owner, onDone) => {
        if (!this.isLate({ kind: 'takeOver', shard: one })) return link.takeOver(one, owner, onDone)
        this.late.push(() => this.cluster.engine.takeOver(one, owner))
        clock.after(this.cluster.engine.faults.deadlineMs, () => onDone({ kind: 'unknown', reason: 'no answer' }))
      },
      read: (one, after, bytesMax, onDone) =>
        link.read(one, after, bytesMax, outcome => this.deliver({ kind: 'read', shard: one }, () => onDone(outcome))),
      takeovers: onDone => link.takeovers(outcome => this.deliver({ kind: 'takeovers' }, () => onDone(outcome))),
      follow: (wanted, follower) =>
        link.follow(wanted, {
          onRecord: (one, record) => this.isUnheard(one, 'record') || follower.onRecord(one, record),
          onTakeover: (one, takeover) => this.isUnheard(one, 'takeover') || follower.onTakeover(one, takeover),
          onHeartbeat: (node, bytes) => this.isUnheard(undefined, 'heartbeat') || follower.onHeartbeat(node, bytes),
          onGap: reason => follower.onGap(reason),
        }),
    })
  }

  private deliver(request: Request, run: () => void): void {
    if (this.isAnsweredLate(request)) this.lateAnswers.push(run)
    else run()
  }

  private ask(to: SteeredNode, request: Buffer, waitMs: number, onReply: (reply: Buffer | undefined) => void): void {
    const { clock } = this.process
    let isOver = false
    const end = (reply: Buffer | undefined): void => {
      if (!isOver) onReply(reply)
      isOver = true
    }
    clock.after(waitMs, () => end(undefined))
    if (this.isAlone || to.isAlone) return
    to.process.clock.endOfTick(() =>
      to.replicator.onAsk(request, reply => clock.endOfTick(() => end(Buffer.from(reply)))),
    )
  }

  /** The late requests happen now. */
  arrive(): void {
    for (const happen of this.late.splice(0)) happen()
  }

  /** The late answers come now. */
  hear(): void {
    this.isAnsweredLate = () => false
    for (const run of this.lateAnswers.splice(0)) run()
  }

  /** It reaches neither the engine nor other nodes, and gets nothing from them. */
  cutOff(): void {
    this.isAlone = true
    this.link.fault = 'cut'
  }

  /** Its process ends, and its disk is lost. */
  end(): void {
    this.process.kill()
    this.replicator.close()
    this.isAlone = true
  }

  /** Gossip reports these nodes to it, the first one as the first in line. */
  know(names: readonly string[]): void {
    this.replicator.setView(names.map(name => ({ name, life: 'life', domain: '', isJoined: false, isSuspect: false })))
  }

  holding(one: number): Holding {
    return [...this.replicator.standings()][one]!
  }

  /** Whether it answers for a shard at this moment. */
  answers(one = shard): boolean {
    return this.replicator.serves(one) && this.host.isActive(one)
  }

  /** The value of a counter in its copy of a shard. */
  value(one: number): number {
    let value = 0
    this.host.read(one, 'counter', counter => {
      value = counter?.value ?? 0
    })
    return value
  }

  /** Raises the counter of a shard; returns whether that was acknowledged. */
  async raise(one: number): Promise<boolean> {
    let isDone = false
    this.host.raise(one, 'counter', this.name, () => {
      isDone = true
    })
    return this.cluster.until(() => isDone, 1_000)
  }
}

function fail(failure: Error): never {
  throw failure
}
