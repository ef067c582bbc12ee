// A cluster in one process: nodes with real shards (simulated-node.ts) over an engine (simulated-log.ts), and all
// faults between them.
//
// A detector or the real gossip reports to each node which nodes are alive (simulated-views.ts). All events go into one
// hash, which shows whether two runs were the same.
//
// Not here: messages between nodes (simulated-network.ts), the choice of faults (simulated-faults.ts), the requests of
// clients (simulated-clients.ts).

import { createHash } from 'node:crypto'
import type { ClusterClock } from '../../cluster/ports.js'
import { ownerText } from '../../cluster/replication/owner.js'
import { completeReplicationOptions } from '../../cluster/replication/replication-options.js'
import type { Random } from '../support/random.js'
import { allRules, but, type NodeRules } from './replication-rules.js'
import { disturb, heal } from './simulated-faults.js'
import { SimulatedEngine, type SimulatedLog } from './simulated-log.js'
import { GossipViews } from './simulated-membership.js'
import { SimulatedNetwork } from './simulated-network.js'
import { SimulatedNode } from './simulated-node.js'
import { partOf } from './simulated-part.js'
import { Place } from './simulated-place.js'
import { Detector, type Views } from './simulated-views.js'
import { World } from './simulated-world.js'

const options = completeReplicationOptions({
  replicas: 2,
  recordsKept: 5,
  trimMs: 700,
  pageBytesMax: 1000,
  pendingBytesMax: 5000,
  dropAfterMs: 3000,
  signMs: 2000,
  lagMax: 10,
})

/** The limits of one append to the engine: small, so that commits are cut into several records. */
const appendLimits = { appendsMax: 3, appendBytesMax: 1500 }

/** The error of wall clocks. */
const skewMsMax = 200

/** The pause before a node that has ended begins anew, and between two looks of an operator after a loss. */
const renewMs = 500
const lookMs = 4000

/** The engine's mark of the cluster, from the beginning. */
const mark = { name: 'cluster', value: Buffer.from('simulated') }

/** A notification that a receiver has got. */
export interface Received {
  readonly subscription: string
  readonly notification: string
  /** The operation in its content. */
  readonly by: string
}

/** How nodes learn of each other, and among how many logs their shards are divided. */
export interface ClusterForm {
  readonly views: 'detector' | 'gossip'
  readonly logs: number
}

export class SimulatedCluster {
  readonly world: World
  readonly engine: SimulatedEngine
  readonly nodes: readonly Place[]
  readonly received: Received[] = []
  /** Copies that have stopped, and lines of logs that should not exist. */
  readonly stopped: string[] = []
  readonly losses: string[] = []
  /** Whether the engine has lost everything once, so that nodes may report losses. */
  hasLostLog = false
  readonly network: SimulatedNetwork
  readonly views: Views
  readonly logs: number
  readonly random: Random
  private readonly rules: NodeRules
  private readonly hash = createHash('sha256')
  private lives = 0

  constructor(random: Random, size: number, rules: NodeRules = allRules, form: Partial<ClusterForm> = {}) {
    this.random = random
    this.logs = form.logs ?? 1
    this.rules = rules
    this.world = new World(random)
    const { world } = this
    // A callback that is queued for `nextTick` by then runs when all settled promises have run their reactions.
    world.settled = () => new Promise(resolve => process.nextTick(resolve))
    const clock: ClusterClock = {
      monoMs: () => world.nowMs,
      wallMs: () => world.nowMs,
      after: (delayMs, run) => {
        let isWanted = true
        world.at(world.nowMs + delayMs, () => isWanted && run())
        return () => {
          isWanted = false
        }
      },
      endOfTick: run => world.at(world.nowMs, run),
    }
    this.engine = new SimulatedEngine(clock, random, { lateMsMax: 6000 })
    this.engine.fenced = rules.fenced
    this.engine.createOnce(mark.name, mark.value)
    this.nodes = Array.from(
      { length: size },
      (_, index) => new Place(`n${index}`, random.between(-skewMsMax, skewMsMax)),
    )
    const places = (): readonly Place[] => this.nodes
    this.network = new SimulatedNetwork(world, places)
    const parts = {
      world,
      network: this.network,
      places,
      note: (text: string) => this.note(text),
      onWrong: (text: string) => this.stopped.push(text),
    }
    this.views = form.views === 'gossip' ? new GossipViews(parts) : new Detector(parts)
    for (const node of this.nodes) this.start(node)
  }

  /** Records that something has happened. */
  note(text: string): void {
    this.hash.update(`${this.world.nowMs} ${text}\n`)
  }

  /** A hash of all that has happened. */
  get trace(): string {
    const hash = this.hash.copy()
    for (const event of this.engine.events) {
      const what = event.kind === 'takeover' ? event.takeover.owner : event.record.bytes.length
      hash.update(`${event.revision} ${event.kind} ${event.shard} ${what}\n`)
    }
    return hash.digest('hex')
  }

  private start(node: Place): void {
    const { rules, world } = this
    const process = world.process(node.name)
    const life = `life${this.lives++}`
    const owner = ownerText(node.name, life)
    const connections = Array.from({ length: this.logs }, () => this.engine.connect(process.clock))
    node.process = process
    node.connections = connections
    SimulatedNode.begin(
      {
        name: node.name,
        life,
        process,
        skewMs: node.skewMs,
        disk: node.disk,
        logs: connections.map((connection, index) => {
          const limited = rules.log(but(connection, appendLimits), owner)
          return this.logs === 1 ? limited : partOf(limited, index, this.logs)
        }),
        rules,
        options,
        mark,
        carry: (to, run, waitMs, onOutcome) => this.network.carry(process, to, run, waitMs, onOutcome),
        onReceived: ({ subscription: { id }, notificationId, entity }) => {
          const by = String(entity.attributes.get('by')?.value)
          this.received.push({ subscription: id, notification: notificationId, by })
          this.note(`received ${id} ${notificationId} ${by}`)
        },
        onLost: lost => this.losses.push(`${owner}: the log has lost shards ${lost.join(', ')}`),
        onStopped: (shard, reason) => this.stopped.push(`${owner}: shard ${shard}: ${reason}`),
        onError: line => this.stopped.push(`${owner}: ${line}`),
        onFailure: () => {
          if (node.process !== process) return
          this.note(`${owner} ends`)
          this.renew(node)
        },
      },
      begun => {
        node.now = begun
        node.view = ''
        this.note(`${owner} has begun`)
        this.views.begin(node, begun)
      },
    )
  }

  /** Begins the next life of a node that does not run. */
  restart(node: Place): void {
    if (!node.process) this.start(node)
  }

  /** Ends a node, and begins its next life a little later. */
  renew(node: Place): void {
    const { world } = this
    this.kill(node, false)
    world.at(world.nowMs + renewMs, () => this.restart(node))
  }

  /** Ends a node; a loss of power also loses unflushed rows. */
  kill(node: Place, isPowerLost: boolean): void {
    node.process?.kill()
    node.now?.replicator.close()
    this.views.end(node)
    for (const connection of node.connections) void connection.close()
    node.process = undefined
    node.connections = []
    node.now = undefined
    if (isPowerLost) node.disk.losePower(this.random)
  }

  /** Causes a random fault. */
  disturb(): void {
    disturb(this)
  }

  /**
   * The engine loses everything, and has it again after some time. An operator then starts those nodes anew that know
   * takeovers from between the loss and its discovery (docs/operations/log-lost.md#what-to-do).
   */
  loseLog(forMs: number): void {
    const { world } = this
    const bringBack = this.engine.lose()
    this.hasLostLog = true
    const look = (): void => {
      for (const node of this.nodes) if (node.now?.replicator.loss) this.renew(node)
      world.at(world.nowMs + lookMs, look)
    }
    world.at(world.nowMs + forMs, () => {
      bringBack()
      world.at(world.nowMs + lookMs, look)
    })
  }

  /** No node reaches one of the logs for some time. */
  cutLog(log: number, forMs: number): void {
    this.hinder(
      this.nodes.flatMap(({ connections }) => connections[log] ?? []),
      'cut',
      forMs,
    )
  }

  /** A fault between nodes and the engine. */
  hinder(connections: readonly SimulatedLog[], fault: SimulatedLog['fault'], forMs: number): void {
    for (const connection of connections) connection.fault = fault
    this.world.at(this.world.nowMs + forMs, () => {
      for (const connection of connections) connection.fault = 'none'
    })
  }

  /** Ends all faults. */
  heal(): void {
    heal(this)
  }
}
