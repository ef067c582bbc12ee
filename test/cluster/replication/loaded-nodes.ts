// Nodes whose shards have loads that a test sets: real replicators over a simulated engine, for hours of simulated time.
//
// Nodes have whole copies of all shards from the beginning. Leases are long, so that an hour takes few events.

import { beginning } from '../../../cluster/replication/log-record.js'
import { decodePeerRequest, encodePeerMessage } from '../../../cluster/replication/peer-messages.js'
import { type Balance, completeReplicationOptions } from '../../../cluster/replication/replication-options.js'
import { Replicator, type ViewMember } from '../../../cluster/replication/replicator.js'
import type { Random } from '../../support/random.js'
import { CountingHost } from '../counting-host.js'
import { SimulatedEngine } from '../simulated-log.js'
import { type Process, World } from '../simulated-world.js'

export const shards = 64
const spread = 16

const optionsFor = (balance: Balance) =>
  completeReplicationOptions({
    balance,
    leaseMs: 20_000,
    renewMs: 6_000,
    heartbeatMs: 6_000,
    healthMs: 30_000,
    checkMs: 10_000,
    lookMs: 1_000,
    claimStepMs: 1_000,
  })

/** By shard: requests a second. */
export type Loads = (shard: number) => number

/** A host that counts the requests of a load while it owns a shard. */
class LoadedHost extends CountingHost {
  private readonly process: Process
  private readonly loads: Loads
  private readonly totals = new Map<number, number>()
  private readonly lastMs = new Map<number, number>()

  constructor(process: Process, loads: Loads) {
    super(run => process.clock.endOfTick(run))
    this.process = process
    this.loads = loads
  }

  override requests(shard: number): number {
    const nowMs = this.process.world.nowMs
    const passedMs = nowMs - (this.lastMs.get(shard) ?? nowMs)
    this.lastMs.set(shard, nowMs)
    const more = this.isActive(shard) ? (this.loads(shard) * passedMs) / 1000 : 0
    const total = (this.totals.get(shard) ?? 0) + more
    this.totals.set(shard, total)
    return total
  }
}

export interface LoadedNode {
  readonly name: string
  readonly balance?: Balance
  /** Whether it is of a build that neither reports loads nor knows exchanges. */
  readonly isOld?: boolean
}

export class LoadedCluster {
  readonly world: World
  readonly nodes = new Map<string, Replicator>()
  /** The nodes that chose an exchange, in their order. */
  readonly chosen: string[] = []
  /** Called when a node has answered a request of another one, before that one has the reply. */
  onAnswered: (request: Buffer) => void = () => {}
  /** By node: what it is in the eyes of gossip, if not joined and well. */
  readonly states = new Map<string, Partial<ViewMember>>()
  private readonly engine: SimulatedEngine
  private readonly loads: Loads

  constructor(random: Random, loads: Loads) {
    this.world = new World(random)
    this.engine = new SimulatedEngine(this.world.process('engine').clock, random)
    this.loads = loads
  }

  /** Starts nodes. The shards have owners when this resolves. */
  static async of(random: Random, given: readonly LoadedNode[], loads: Loads): Promise<LoadedCluster> {
    const cluster = new LoadedCluster(random, loads)
    for (const node of given) await cluster.start(node)
    cluster.inform()
    await cluster.minutes(1)
    return cluster
  }

  async start({ name, balance = 'load', isOld = false }: LoadedNode): Promise<void> {
    const process = this.world.process(name)
    const host = new LoadedHost(process, this.loads)
    for (let shard = 0; shard <= shards; shard++) host.apply(shard, [], beginning, () => {})
    await this.world.run(1)
    const { clock } = process
    const replicator = new Replicator({
      name,
      life: 'life',
      shards,
      spread,
      logs: [this.engine.connect(clock)],
      host,
      clock,
      options: optionsFor(balance),
      ask: (to, request, _, onReply) => {
        const sent = isOld ? withoutLoad(request) : request
        const answer = (reply: Buffer): void => {
          this.onAnswered(request)
          clock.endOfTick(() => onReply(reply))
        }
        clock.endOfTick(() => this.nodes.get(to)?.onAsk(sent, answer))
      },
      onChange: () => {},
      reachable: () => true,
      onHealth: () => {},
      onStopped: (_, reason) => fail(new Error(reason)),
      onFailure: fail,
      onExchange: () => this.chosen.push(name),
    })
    host.begin(replicator, fail)
    this.nodes.set(name, replicator)
    replicator.start()
  }

  /** Gossip reports the nodes to each of them. */
  inform(): void {
    const view = [...this.nodes.keys()].map(name => ({
      ...{ name, life: 'life', domain: '', isJoined: true, isSuspect: false },
      ...this.states.get(name),
    }))
    for (const replicator of this.nodes.values()) replicator.setView(view)
  }

  /** Lets time pass. Returns how often a shard got another owner. */
  async minutes(count: number): Promise<number> {
    let moves = 0
    let before = this.owners()
    for (let seconds = 0; seconds < count * 60; seconds += 5) {
      await this.world.run(5_000)
      const now = this.owners()
      moves += now.filter((owner, shard) => owner !== before[shard]).length
      before = now
    }
    return moves
  }

  owners(): readonly (string | undefined)[] {
    const [some] = this.nodes.values()
    return Array.from({ length: shards }, (_, shard) => some!.ownerOf(shard))
  }

  shardsOf(name: string): readonly number[] {
    return this.owners().flatMap((owner, shard) => (owner === name ? [shard] : []))
  }

  /** The number of shards of each node, and the requests a second for them, as the test sets them. */
  get counts(): readonly number[] {
    return [...this.nodes.keys()].map(name => this.shardsOf(name).length)
  }

  get work(): readonly number[] {
    return [...this.nodes.keys()].map(name => this.shardsOf(name).reduce((sum, shard) => sum + this.loads(shard), 0))
  }
}

/** A message as the build before sends it. */
function withoutLoad(request: Buffer): Buffer {
  const decoded = decodePeerRequest(request)
  return decoded?.message.kind === 'standing' ? encodePeerMessage({ ...decoded.message, load: undefined }) : request
}

function fail(failure: Error): never {
  throw failure
}
