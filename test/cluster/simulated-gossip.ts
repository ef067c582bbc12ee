// Members that gossip in a simulated world (simulated-world.ts): messages are lost, repeated, slow, or do not pass from
// one part of the network to another, as the test sets it.
//
// Each start is another life of a name. All changes of members that a node reports are kept, with the time.

import { Gossip, type GossipTrouble } from '../../cluster/gossip/gossip.js'
import type { GossipOptions } from '../../cluster/gossip/gossip-options.js'
import { isHere, type Member } from '../../cluster/gossip/member.js'
import type { CallFault, Transport } from '../../cluster/ports.js'
import type { Random } from '../support/random.js'
import { type Process, World } from './simulated-world.js'

export interface GossipNode {
  readonly name: string
  readonly address: string
  readonly life: string
  readonly process: Process
  readonly gossip: Gossip
  readonly changes: { readonly atMs: number; readonly member: Member }[]
  readonly troubles: GossipTrouble[]
}

export interface StartSettings {
  readonly seeds?: readonly string[]
  readonly address?: string
  readonly clusterId?: string
  readonly options?: Partial<GossipOptions>
}

export class GossipWorld {
  readonly world: World
  /** The probabilities that a message is lost, and that a question or an answer comes twice. */
  readonly faults = { lost: 0, repeated: 0 }
  /** The parts of the network; undefined: there is one. */
  partOf: ((name: string) => number) | undefined
  /** The time that one message takes. */
  delayMs: () => number
  /** The latest life of each name. */
  readonly nodes = new Map<string, GossipNode>()
  /** The addresses that the names of seeds resolve to. */
  readonly names = new Map<string, readonly string[]>()
  private readonly listeners = new Map<string, GossipNode>()
  /** Dead ones whose machine refuses connections. */
  private readonly refusing = new Set<GossipNode>()
  private lives = 0

  constructor(random: Random) {
    this.world = new World(random)
    this.delayMs = () => this.world.delayMs()
  }

  /** Begins the (next) life of a name. The seeds are the addresses of all others so far, unless they are given. */
  start(name: string, settings: StartSettings = {}): GossipNode {
    const process = this.world.process(name)
    const address = settings.address ?? `${name}:1`
    // In random order: nothing may depend on later lives having later names.
    const life = `${this.world.random.between(1000, 9999)}-${this.lives++}`
    const seeds =
      settings.seeds ?? [...this.nodes.values()].filter(node => node.name !== name).map(node => node.address)
    const gossip = new Gossip(
      {
        self: { name, address, domain: '', life, isJoined: true },
        clusterId: settings.clusterId ?? 'c',
        seeds,
        options: settings.options ?? {},
      },
      this.wire(process),
      process.clock,
      () => this.world.random.fraction(),
      async seed => {
        const addresses = this.names.get(seed) ?? (seed.includes(':') ? [seed] : undefined)
        if (!addresses) throw new Error('no such name')
        return addresses
      },
    )
    const node: GossipNode = { name, address, life, process, gossip, changes: [], troubles: [] }
    gossip.onChange(member => node.changes.push({ atMs: this.world.nowMs, member }))
    gossip.onTrouble(trouble => node.troubles.push(trouble))
    this.nodes.set(name, node)
    this.listeners.set(address, node)
    return node
  }

  /** Starts many nodes that know each other; resolves `settleMs` after the last has come. */
  async startAll(
    names: readonly string[],
    settleMs = 5000,
    options: Partial<GossipOptions> = {},
  ): Promise<GossipNode[]> {
    const nodes: GossipNode[] = []
    for (const name of names) {
      const first = nodes[0]
      nodes.push(this.start(name, { seeds: first ? [first.address] : [], options }))
      await this.world.run(50)
    }
    await this.world.run(settleMs)
    return nodes
  }

  /** Ends a process without a goodbye, or `with its machine`: then nothing answers at its address. */
  kill(node: GossipNode, how: 'alone' | 'with its machine' = 'with its machine'): void {
    node.process.alive = false
    node.gossip.close()
    if (how === 'alone') this.refusing.add(node)
  }

  get running(): GossipNode[] {
    return [...this.nodes.values()].filter(({ process }) => process.alive)
  }

  /** The members that a node takes to be present, with its belief about each, in the order of names. */
  view(node: GossipNode): Member[] {
    return node.gossip.members().filter(isHere).sort(byName)
  }

  /** The correct view: each running member as it describes itself. */
  truth(): Member[] {
    return this.running.map(({ gossip }) => gossip.members()[0]!).sort(byName)
  }

  private wire(from: Process): Pick<Transport, 'call'> {
    const { world } = this
    return {
      call: (address, message, deadlineMs, onReply) => {
        let isDone = false
        const finish = (reply: Buffer | undefined, fault?: CallFault) => {
          if (isDone) return
          isDone = true
          if (reply) onReply(reply, '')
          else onReply(undefined, fault ?? 'no answer in time', fault)
        }
        from.at(world.nowMs + deadlineMs, () => finish(undefined))
        this.carry(from.name, this.listeners.get(address)?.name, () => {
          const to = this.listeners.get(address)!
          if (this.refusing.has(to)) return from.at(world.nowMs + this.delayMs(), () => finish(undefined, 'refused'))
          to.process.at(world.nowMs, () =>
            to.gossip.onCall(message as Buffer, reply =>
              this.carry(to.name, from.name, () => from.at(world.nowMs, () => finish(reply))),
            ),
          )
        })
      },
    }
  }

  private carry(from: string, to: string | undefined, arrive: () => void): void {
    const { world, faults, partOf } = this
    if (to === undefined || (partOf && partOf(from) !== partOf(to))) return
    if (!world.chance(faults.lost)) world.at(world.nowMs + this.delayMs(), arrive)
    if (world.chance(faults.repeated)) world.at(world.nowMs + this.delayMs() * 5, arrive)
  }
}

function byName(one: Member, other: Member): number {
  return one.name < other.name ? -1 : 1
}
