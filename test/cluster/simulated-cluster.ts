// A cluster in one process: nodes that replicate counters (simulated-host.ts) over an engine (simulated-log.ts), clients that raise and read them
// anywhere, and all that can go wrong between.
//
// Who is alive is told to each node by a detector that is late and sometimes wrong. What clients were told is kept for replication-checker.ts.

import type { ShardLog } from '../../cluster/logs/shard-log.js'
import type { ClusterClock } from '../../cluster/ports.js'
import { ownerText } from '../../cluster/replication/owner.js'
import { completeReplicationOptions, type ReplicationOptions } from '../../cluster/replication/replication-options.js'
import { Replicator, type ViewMember } from '../../cluster/replication/replicator.js'
import type { Random } from '../support/random.js'
import { type Counter, CountingHost, Disk } from './simulated-host.js'
import { SimulatedEngine, type SimulatedLog } from './simulated-log.js'
import { type Process, World } from './simulated-world.js'

export const shards = 4
const entitiesPerShard = 16

/** What a client asked, and what it was told. */
export interface Operation {
  readonly id: string
  /** `observe`: reads the register wherever any shard is answered for. */
  readonly kind: 'raise' | 'read' | 'observe'
  readonly shard: number
  readonly entity: string
  readonly askedMs: number
  /** `refused`: it certainly had no effect. Without an answer nobody knows. */
  outcome: 'done' | 'refused' | undefined
  answeredMs: number
  counter: Counter | undefined
}

/** What of a node may be switched off, to see that it matters. */
export interface NodeRules {
  /** Reads are answered under a lease only. */
  leases: boolean
  /** Stands between a node and its log. */
  log: (log: ShardLog, owner: string) => ShardLog
  /** Stands between a node and its clock. */
  after: (delayMs: number, options: ReplicationOptions) => number
  /** Flushes are flushes. */
  flushes: boolean
  /** What is sealed is done with. */
  seals: boolean
  /** Changes of the register are told of when no owner decides without them. */
  barriers: boolean
  /** An append looks at the latest takeover. */
  fenced: boolean
}

export const allRules: NodeRules = {
  leases: true,
  log: log => log,
  after: delayMs => delayMs,
  flushes: true,
  seals: true,
  barriers: true,
  fenced: true,
}

const options = completeReplicationOptions({
  replicas: 2,
  recordsKept: 5,
  trimMs: 700,
  pageBytesMax: 500,
  pendingBytesMax: 2000,
  dropAfterMs: 3000,
  signMs: 2000,
  lagMax: 10,
})

/** What the engine has of the cluster from the beginning. */
const mark = { name: 'cluster', value: Buffer.from('simulated') }

interface Life {
  readonly process: Process
  readonly life: string
  readonly host: CountingHost
  readonly replicator: Replicator
  readonly connection: SimulatedLog
  isJoined: boolean
}

/** One node, from life to life. */
class Node {
  readonly name: string
  disk = new Disk()
  now: Life | undefined
  /** It is to give its shards away, and to take none. */
  isDraining = false
  /** Names of nodes that it takes for dead although they are not. */
  readonly wronged = new Set<string>()

  constructor(name: string) {
    this.name = name
  }
}

export class SimulatedCluster {
  readonly world: World
  readonly engine: SimulatedEngine
  readonly nodes: readonly Node[]
  readonly operations: Operation[] = []
  readonly stopped: string[] = []
  readonly losses: string[] = []
  /** Pairs of nodes that do not hear each other. */
  readonly cuts = new Set<string>()
  /** How likely a message between nodes is lost, and a living node is taken for dead. */
  readonly faults = { lost: 0, mistaken: 0 }
  private readonly rules: NodeRules
  private readonly random: Random
  private lives = 0
  private asked = 0

  constructor(random: Random, size: number, rules: NodeRules = allRules) {
    this.random = random
    this.rules = rules
    this.world = new World(random)
    const { world } = this
    const clock: ClusterClock = {
      monoMs: () => world.nowMs,
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
    this.nodes = Array.from({ length: size }, (_, index) => new Node(`n${index}`))
    for (const node of this.nodes) this.start(node)
  }

  start(node: Node): void {
    const { rules, world } = this
    const process = world.process(node.name)
    const life = `life${this.lives++}`
    const owner = ownerText(node.name, life)
    const host = new CountingHost(node.disk, run => process.at(world.nowMs, run))
    if (!rules.flushes) host.sync = onDone => process.at(world.nowMs, onDone)
    if (!rules.seals) host.seal = (_shard, onDone) => process.at(world.nowMs, onDone)
    const clock = {
      ...process.clock,
      after: (delayMs: number, run: () => void) => process.clock.after(rules.after(delayMs, options), run),
    }
    const connection = this.engine.connect(process.clock)
    const log = rules.log(but(connection, { appendsMax: 3, appendBytesMax: 600 }), owner)
    const end = (): void => {
      if (node.now?.process !== process) return
      this.kill(node, false)
      world.at(world.nowMs + 500, () => {
        if (!node.now) this.start(node)
      })
    }
    const replicator = new Replicator({
      name: node.name,
      life,
      shards,
      log,
      host,
      clock,
      options,
      mark,
      ask: (target, request, waitMs, onReply) => this.carry(node, target, request, waitMs, onReply),
      onChange: () => {},
      reachable: () => true,
      onHealth: unhealthy => {
        if (unhealthy?.kind === 'lost')
          this.losses.push(`${owner}: the log has lost shards ${unhealthy.shards.join(', ')}`)
      },
      onStopped: (shard, reason) => this.stopped.push(`${owner}: shard ${shard}: ${reason}`),
      onFailure: end,
    })
    host.begin(replicator, end)
    node.now = { process, life, host, replicator, connection, isJoined: false }
    const detecting = (): void => {
      if (node.now?.process !== process) return
      replicator.setView(this.viewOf(node))
      if (replicator.knowsRegister) node.now.isJoined = !node.isDraining
      process.clock.after(100 + random(this.random, 300), detecting)
    }
    detecting()
    replicator.start()
  }

  /** Ends a node; a loss of power takes what was not flushed. */
  kill(node: Node, isPowerLost: boolean): void {
    node.now?.process.kill()
    node.now?.replicator.close()
    void node.now?.connection.close()
    node.now = undefined
    if (isPowerLost) node.disk.losePower()
  }

  private viewOf(node: Node): ViewMember[] {
    return this.nodes.flatMap(({ name, now }) => {
      if (!now) return []
      const isSelf = name === node.name
      const isHeard = !this.cuts.has(pair(name, node.name)) && !now.process.isStopped && !node.wronged.has(name)
      if (!isSelf && (!isHeard || this.world.chance(this.faults.mistaken))) return []
      return [
        {
          name,
          life: now.life,
          domain: '',
          isJoined: now.isJoined,
          isSuspect: this.random.fraction() < this.faults.mistaken,
        },
      ]
    })
  }

  /** A message between two nodes, and its answer. */
  private carry(
    from: Node,
    to: string,
    request: Buffer,
    waitMs: number,
    onReply: (reply: Buffer | undefined) => void,
  ): void {
    const process = from.now!.process
    let isOver = false
    const end = (reply: Buffer | undefined): void => {
      if (isOver) return
      isOver = true
      onReply(reply)
    }
    process.clock.after(waitMs, () => end(undefined))
    this.deliver(from.name, to, life =>
      life.replicator.onAsk(request, reply =>
        this.deliver(to, from.name, back => {
          if (back.process === process) end(reply)
        }),
      ),
    )
  }

  private deliver(from: string, to: string, run: (life: Life) => void): void {
    const { world } = this
    if (world.chance(this.faults.lost)) return
    world.at(world.nowMs + world.delayMs(), () => {
      const life = this.nodes.find(({ name }) => name === to)?.now
      if (!life || this.cuts.has(pair(from, to))) return
      life.process.at(world.nowMs, () => run(life))
    })
  }

  // Clients

  /** A client asks any node, which asks the owner if it knows one. */
  operate(): void {
    const shard = this.random.between(0, shards)
    const entity = `e${this.random.between(1, entitiesPerShard)}`
    const operation: Operation = {
      id: `op${this.asked++}`,
      kind:
        this.random.fraction() < 0.6 ? 'raise' : shard === shards && this.random.fraction() < 0.7 ? 'observe' : 'read',
      shard,
      entity,
      askedMs: this.world.nowMs,
      outcome: undefined,
      answeredMs: Number.POSITIVE_INFINITY,
      counter: undefined,
    }
    this.operations.push(operation)
    const at = this.random.pick(this.nodes as [Node, ...Node[]])
    if (operation.kind === 'observe') return this.observe(at, operation)
    const owner = at.now?.replicator.ownerOf(shard)
    if (owner === undefined || !at.now) return this.answer(operation, 'refused', undefined)
    if (owner === at.name) this.perform(at.now, operation)
    else this.deliver(at.name, owner, life => this.perform(life, operation))
  }

  private perform(life: Life, operation: Operation): void {
    const { host, replicator } = life
    const { shard, entity, id, kind } = operation
    const serves = this.rules.leases ? replicator.serves(shard) : host.isActive(shard)
    if (!serves || !host.isActive(shard)) return this.answer(operation, 'refused', undefined)
    const onReply = (counter: Counter | undefined): void => {
      // Some answers get lost.
      if (!this.world.chance(this.faults.lost)) this.answer(operation, 'done', counter)
    }
    const onRaised = (counter: Counter, sequence: number): void => {
      if (shard !== shards || !this.rules.barriers) onReply(counter)
      else replicator.barrier(shard, sequence, () => onReply(counter))
    }
    if (kind === 'raise') host.raise(shard, entity, id, onRaised)
    else host.read(shard, entity, onReply)
  }

  /** What a node that answers for any shard knows of the register. */
  private observe({ now }: Node, operation: Operation): void {
    const serves = (shard: number): boolean => now?.replicator.serves(shard) ?? false
    const isOwner = Array.from({ length: shards }, (_, shard) => shard).some(serves)
    if (!now || now.process.isStopped || !isOwner || now.host.failed)
      return this.answer(operation, 'refused', undefined)
    this.answer(operation, 'done', now.host.peek(operation.shard, operation.entity))
  }

  private answer(operation: Operation, outcome: 'done' | 'refused', counter: Counter | undefined): void {
    operation.outcome = outcome
    operation.answeredMs = this.world.nowMs
    operation.counter = counter
  }

  // Misfortune

  /** Something happens. */
  disturb(): void {
    const { random, world, engine } = this
    const node = random.pick(this.nodes as [Node, ...Node[]])
    const other = random.pick(this.nodes as [Node, ...Node[]])
    const forMs = random.between(200, 6000)
    const soon = (run: () => void): void => world.at(world.nowMs + forMs, run)
    switch (random.between(0, 10)) {
      case 0:
      case 1: {
        this.kill(node, random.fraction() < 0.5)
        return soon(() => {
          if (!node.now) this.start(node)
        })
      }
      case 2:
      case 3: {
        const process = node.now?.process
        process?.stop()
        return soon(() => process?.goOn())
      }
      case 4:
        this.cuts.add(pair(node.name, other.name))
        return soon(() => this.cuts.delete(pair(node.name, other.name)))
      case 5:
        return this.hinder(node, 'cut', forMs)
      case 6:
        engine.goAway()
        return soon(() => engine.comeBack())
      case 7:
        node.wronged.add(other.name)
        return soon(() => node.wronged.delete(other.name))
      case 8:
        return this.hinder(node, 'mute', forMs)
      case 9: {
        // It is alone with its clients.
        this.hinder(node, 'cut', forMs)
        const pairs = this.nodes.map(({ name }) => pair(node.name, name))
        for (const one of pairs) this.cuts.add(one)
        return soon(() => {
          for (const one of pairs) this.cuts.delete(one)
        })
      }
      case 10: {
        // It is drained, and comes back.
        const { now } = node
        if (now) now.isJoined = false
        return
      }
    }
  }

  /** Something is wrong with a node's way to the engine. */
  private hinder({ now }: Node, fault: SimulatedLog['fault'], forMs: number): void {
    if (!now) return
    now.connection.fault = fault
    this.world.at(this.world.nowMs + forMs, () => {
      now.connection.fault = 'none'
    })
  }

  /** Everything works again. */
  heal(): void {
    this.cuts.clear()
    this.engine.comeBack()
    Object.assign(this.engine.faults, { lost: 0, answerLost: 0, late: 0, followLost: 0 })
    Object.assign(this.faults, { lost: 0, mistaken: 0 })
    for (const node of this.nodes) {
      node.wronged.clear()
      node.now?.process.goOn()
      if (node.now) node.now.connection.fault = 'none'
      if (!node.now) this.start(node)
    }
  }
}

/** A log that does most as the given one does. */
export const but = (log: ShardLog, change: Partial<ShardLog>): ShardLog => ({
  takeOver: (shard, owner, onDone) => log.takeOver(shard, owner, onDone),
  retake: (shard, epoch, owner, onDone) => log.retake(shard, epoch, owner, onDone),
  append: (appends, onDone) => log.append(appends, onDone),
  heartbeat: (heartbeat, onDone) => log.heartbeat(heartbeat, onDone),
  read: (shard, after, bytesMax, onDone) => log.read(shard, after, bytesMax, onDone),
  takeovers: onDone => log.takeovers(onDone),
  follow: (wanted, follower) => log.follow(wanted, follower),
  trim: (shard, upTo) => log.trim(shard, upTo),
  lacking: (ends, onDone) => log.lacking(ends, onDone),
  named: (name, onDone) => log.named(name, onDone),
  keepHistory: isOn => log.keepHistory(isOn),
  createOnce: (name, value, onDone) => log.createOnce(name, value, onDone),
  close: () => log.close(),
  appendsMax: log.appendsMax,
  appendBytesMax: log.appendBytesMax,
  ...change,
})

const pair = (a: string, b: string): string => (a < b ? `${a} ${b}` : `${b} ${a}`)

const random = (source: Random, most: number): number => source.between(0, most)
