// A cluster in one process: nodes with real shards (simulated-node.ts) over an engine (simulated-log.ts), and all
// faults between them.
//
// A detector reports to each node which nodes are alive; it is late and sometimes wrong. The requests of clients are in
// simulated-clients.ts. All events go into one hash, which shows whether two runs were the same.

import { createHash } from 'node:crypto'
import type { ClusterClock } from '../../cluster/ports.js'
import { ownerText } from '../../cluster/replication/owner.js'
import { completeReplicationOptions } from '../../cluster/replication/replication-options.js'
import type { ViewMember } from '../../cluster/replication/replicator.js'
import type { AskOutcome } from '../../src/wire/exchange.js'
import type { Random } from '../support/random.js'
import { allRules, but, type NodeRules } from './replication-rules.js'
import { SimulatedDisk } from './simulated-disk.js'
import { SimulatedEngine, type SimulatedLog } from './simulated-log.js'
import { SimulatedNode } from './simulated-node.js'
import { partOf } from './simulated-part.js'
import { type Process, World } from './simulated-world.js'

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

/** The engine's mark of the cluster, from the beginning. */
const mark = { name: 'cluster', value: Buffer.from('simulated') }

/** A notification that a receiver has got. */
export interface Received {
  readonly subscription: string
  readonly notification: string
  /** The operation in its content. */
  readonly by: string
}

/** One node, from life to life. */
export class Place {
  readonly name: string
  readonly skewMs: number
  readonly disk = new SimulatedDisk()
  process: Process | undefined
  /** One for each log. */
  connections: readonly SimulatedLog[] = []
  /** undefined: it does not run, or still reads its store. */
  now: SimulatedNode | undefined
  /** The members that it was last informed of. */
  view = ''
  /** It should give its shards away, and take none. */
  isDraining = false
  /** Names of nodes that it takes for dead although they are not. */
  readonly wronged = new Set<string>()

  constructor(name: string, skewMs: number) {
    this.name = name
    this.skewMs = skewMs
  }
}

export class SimulatedCluster {
  readonly world: World
  readonly engine: SimulatedEngine
  readonly nodes: readonly Place[]
  readonly received: Received[] = []
  /** Copies that have stopped, and lines of logs that should not exist. */
  readonly stopped: string[] = []
  readonly losses: string[] = []
  /** Messages from one node to another that do not arrive. */
  readonly cuts = new Set<string>()
  /** The probabilities that a message between nodes is lost, and that a living node is taken for dead. */
  readonly faults = { lost: 0, mistaken: 0 }
  readonly random: Random
  private readonly rules: NodeRules
  private readonly logs: number
  private readonly hash = createHash('sha256')
  private lives = 0

  /** `logs`: how many logs the shards are divided among. */
  constructor(random: Random, size: number, rules: NodeRules = allRules, logs = 1) {
    this.random = random
    this.logs = logs
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
        carry: (to, run, waitMs, onOutcome) => this.carry(process, to, run, waitMs, onOutcome),
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
          this.kill(node, false)
          world.at(world.nowMs + 500, () => this.restart(node))
        },
      },
      begun => {
        node.now = begun
        node.view = ''
        this.note(`${owner} has begun`)
        this.detect(node, begun)
      },
    )
  }

  private restart(node: Place): void {
    if (!node.process) this.start(node)
  }

  /** Informs a node repeatedly about which nodes are alive. */
  private detect(node: Place, life: SimulatedNode): void {
    if (node.now !== life) return
    const { replicator, process } = life
    const view = this.viewOf(node)
    const text = JSON.stringify(view)
    if (text !== node.view) replicator.setView(view)
    node.view = text
    if (replicator.knowsRegister) life.isJoined = !node.isDraining
    process.clock.after(100 + this.random.between(0, 300), () => this.detect(node, life))
  }

  /** Ends a node; a loss of power also loses unflushed rows. */
  kill(node: Place, isPowerLost: boolean): void {
    node.process?.kill()
    node.now?.replicator.close()
    for (const connection of node.connections) void connection.close()
    node.process = undefined
    node.connections = []
    node.now = undefined
    if (isPowerLost) node.disk.losePower(this.random)
  }

  private viewOf(node: Place): ViewMember[] {
    return this.nodes.flatMap(({ name, now }) => {
      if (!now) return []
      const isSelf = name === node.name
      const isReachable =
        !this.cuts.has(way(name, node.name)) &&
        !this.cuts.has(way(node.name, name)) &&
        !now.process.isStopped &&
        !node.wronged.has(name)
      if (!isSelf && (!isReachable || this.world.chance(this.faults.mistaken))) return []
      const isSuspect = this.world.chance(this.faults.mistaken)
      return [{ name, life: now.life, domain: '', isJoined: now.isJoined, isSuspect }]
    })
  }

  /** A message between two nodes, and its answer. */
  private carry(
    from: Process,
    to: string,
    run: (life: SimulatedNode, onReply: (reply: Uint8Array) => void) => void,
    waitMs: number,
    onOutcome: (outcome: AskOutcome) => void,
  ): void {
    if (!from.alive) return
    let isOver = false
    const end = (outcome: AskOutcome): void => {
      if (isOver) return
      isOver = true
      onOutcome(outcome)
    }
    from.clock.after(waitMs, () => end({ kind: 'unknown', reason: 'no answer in time' }))
    // Sometimes it is known that the message will not arrive.
    if (!this.node(to)?.now && this.random.fraction() < 0.5)
      return from.clock.endOfTick(() => end({ kind: 'unavailable', reason: `${to} is not there` }))
    this.deliver(from.name, to, life =>
      run(life, reply => {
        // A copy, since the caller may change its bytes later.
        const bytes = Buffer.from(reply)
        this.deliver(to, from.name, back => {
          if (back.process === from) end({ kind: 'reply', reply: bytes })
        })
      }),
    )
  }

  private deliver(from: string, to: string, run: (life: SimulatedNode) => void): void {
    const { world } = this
    if (world.chance(this.faults.lost)) return
    world.at(world.nowMs + world.delayMs(), () => {
      const life = this.node(to)?.now
      if (!life || this.cuts.has(way(from, to))) return
      life.process.at(world.nowMs, () => run(life))
    })
  }

  private node(name: string): Place | undefined {
    return this.nodes.find(node => node.name === name)
  }

  // Faults

  /** Causes a random fault. */
  disturb(): void {
    const { random, world, engine } = this
    const node = random.pick(this.nodes as [Place, ...Place[]])
    const other = random.pick(this.nodes as [Place, ...Place[]])
    const forMs = random.between(200, 6000)
    const soon = (run: () => void): void => world.at(world.nowMs + forMs, run)
    if (this.logs > 1 && random.fraction() < 0.25) return this.cutLog(random.between(0, this.logs - 1), 2 * forMs)
    switch (random.between(0, 12)) {
      case 0:
      case 1: {
        this.kill(node, random.fraction() < 0.5)
        return soon(() => this.restart(node))
      }
      case 2:
      case 3: {
        const { process } = node
        process?.stop()
        return soon(() => process?.goOn())
      }
      case 4: {
        const both = [way(node.name, other.name), way(other.name, node.name)]
        return this.cut(random.pick([both, both.slice(1)]), forMs)
      }
      case 5:
        return this.hinder(node, random.pick(['cut', 'deaf', 'dumb']), forMs)
      case 6:
        engine.goAway()
        return soon(() => engine.comeBack())
      case 7:
        node.wronged.add(other.name)
        return soon(() => node.wronged.delete(other.name))
      case 8:
        return this.hinder(node, 'mute', forMs)
      case 9: {
        // The node is alone with its clients.
        this.hinder(node, 'cut', forMs)
        return this.cut(
          this.nodes.flatMap(({ name }) => [way(node.name, name), way(name, node.name)]),
          forMs,
        )
      }
      case 10: {
        // The node is drained, and comes back.
        const { now } = node
        if (now) now.isJoined = false
        return
      }
      case 11: {
        // The power fails for all of them at once.
        for (const one of this.nodes) this.kill(one, true)
        return soon(() => {
          for (const one of this.nodes) this.restart(one)
        })
      }
      case 12:
        engine.isFull = true
        return soon(() => {
          engine.isFull = false
        })
    }
  }

  /** Messages on these ways are lost for some time. */
  private cut(ways: readonly string[], forMs: number): void {
    for (const one of ways) this.cuts.add(one)
    this.world.at(this.world.nowMs + forMs, () => {
      for (const one of ways) this.cuts.delete(one)
    })
  }

  /** A fault between a node and the engine. */
  private hinder({ connections }: Place, fault: SimulatedLog['fault'], forMs: number): void {
    const some =
      connections.length > 1 ? [this.random.pick(connections as [SimulatedLog, ...SimulatedLog[]])] : connections
    this.hinderAll(some, fault, forMs)
  }

  /** No node reaches one of the logs for some time. */
  cutLog(log: number, forMs: number): void {
    this.hinderAll(
      this.nodes.flatMap(({ connections }) => connections[log] ?? []),
      'cut',
      forMs,
    )
  }

  private hinderAll(connections: readonly SimulatedLog[], fault: SimulatedLog['fault'], forMs: number): void {
    for (const connection of connections) connection.fault = fault
    this.world.at(this.world.nowMs + forMs, () => {
      for (const connection of connections) connection.fault = 'none'
    })
  }

  /** Ends all faults. */
  heal(): void {
    this.cuts.clear()
    this.engine.comeBack()
    this.engine.isFull = false
    Object.assign(this.engine.faults, { lost: 0, answerLost: 0, late: 0, followLost: 0 })
    Object.assign(this.faults, { lost: 0, mistaken: 0 })
    for (const node of this.nodes) {
      node.wronged.clear()
      node.process?.goOn()
      for (const connection of node.connections) connection.fault = 'none'
      this.restart(node)
    }
  }
}

const way = (from: string, to: string): string => `${from} ${to}`
