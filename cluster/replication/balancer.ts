// Moves hot shards: two nodes exchange a hot shard for a cold one when loads were unequal for a while.
//
// Loads are unequal if that of some node differs by more than `hotPart` from the mean. After `hotMs` of that the node
// with the highest load chooses an exchange (load-exchange.ts) and asks the other node. That one checks it against its
// own knowledge. Both plans then count the shards as moved, and the duties of both nodes move them as they move any
// shard. So there are two moves, and the numbers of shards stay as they were. If the nodes do not complete it within
// `exchangeMs`, or a node joins or leaves meanwhile, their plans go by the takeovers again: otherwise they would differ
// from those of other nodes, and moves that are due would wait.
//
// A node takes part if it has been joined for `hotMs`, is not suspect, and reports its load. Nodes of the build before
// report none. After an exchange both nodes pause, so loads are measured anew. Nothing moves while any shard is about to
// move for another reason.
//
// The least `balance` of all joined nodes applies to all of them. Otherwise two plans would disagree for good.
//
// Not here: the choice (load-exchange.ts), loads (shard-loads.ts), the moves (duties.ts, caretaker.ts).

import type { ClusterClock } from '../ports.js'
import type { Holding } from './holding.js'
import type { Keepers } from './keepers.js'
import {
  exchangeFor,
  hottest,
  isGain,
  isUneven,
  loadOf,
  meanLoad,
  type NodeLoad,
  type ShardExchange,
} from './load-exchange.js'
import { nameOf, ownerText } from './owner.js'
import { type AskPeer, encodePeerMessage, type LoadReport, replyOf } from './peer-messages.js'
import type { Balance, ReplicationOptions } from './replication-options.js'
import type { ShardHost } from './shard-host.js'
import { ShardLoads } from './shard-loads.js'

/** How long the other node may take to agree. */
const agreeMs = 2_000

/** An exchange that has begun, with the requests a second at that time. */
export interface BegunExchange extends ShardExchange {
  readonly givesLoad: number
  readonly takesLoad: number
  readonly ownLoad: number
  readonly otherLoad: number
  readonly meanLoad: number
}

export interface BalancerParts {
  /** The name and life of this node. */
  readonly self: string
  /** Shards of entities. */
  readonly shards: number
  readonly host: Pick<ShardHost, 'requests'>
  readonly clock: ClusterClock
  readonly options: ReplicationOptions
  readonly ask: AskPeer
  readonly keepers: Keepers
  readonly holdings: readonly Holding[]
  readonly ownerOf: (shard: number) => string | undefined
  /** Whether the engine has everything. */
  readonly mayAct: () => boolean
  /** The plan of this node has changed. */
  readonly onPlan: () => void
  /** This node has begun an exchange that it chose. */
  readonly onBegun: (exchange: BegunExchange) => void
}

interface Known {
  readonly name: string
  readonly life: string
  readonly isJoined: boolean
  readonly isSuspect: boolean
}

interface Agreed {
  /** The name and life of the other node. */
  readonly with: string
  readonly moves: ReadonlyMap<number, string>
  readonly untilMs: number
  readonly isChosenHere: boolean
}

export class Balancer {
  private readonly parts: BalancerParts
  private readonly name: string
  private readonly loads: ShardLoads
  private view: readonly Known[] = []
  /** Since when nodes have been joined, by name and life. Another map whenever one joins or leaves. */
  private joinedMs: ReadonlyMap<string, number> = new Map()
  private unevenSinceMs: number | undefined
  private pausedUntilMs = Number.NEGATIVE_INFINITY
  private agreed: Agreed | undefined
  private isAsking = false
  private done = 0
  private isClosed = false

  constructor(parts: BalancerParts) {
    this.parts = parts
    this.name = nameOf(parts.self)
    this.loads = new ShardLoads(parts)
    this.applyBalance()
  }

  close(): void {
    this.isClosed = true
  }

  /** Exchanges that this node chose, and that were carried out. */
  get exchanges(): number {
    return this.done
  }

  /** The setting that applies. */
  get balance(): Balance {
    return this.loads.balanceOf(this.joinedMs.keys())
  }

  /** The requests a second of a node's shards; undefined: not known. */
  loadOf(name: string): number | undefined {
    const member = this.view.find(one => one.name === name)
    const load = member && this.loads.of(ownerText(name, member.life))
    return load && loadOf(load)
  }

  setView(view: readonly Known[]): void {
    const nowMs = this.parts.clock.monoMs()
    const joined = view.filter(({ isJoined }) => isJoined).map(({ name, life }) => ownerText(name, life))
    const hasChanged = joined.length !== this.joinedMs.size || joined.some(owner => !this.joinedMs.has(owner))
    this.view = view
    if (hasChanged) this.joinedMs = new Map(joined.map(owner => [owner, this.joinedMs.get(owner) ?? nowMs]))
    this.loads.keepOnly(new Set(view.map(({ name, life }) => ownerText(name, life))))
    if (hasChanged || (this.agreed && !this.isPresent(this.agreed.with))) this.end()
    this.applyBalance()
  }

  note(owner: string, report: LoadReport | undefined): void {
    this.loads.note(owner, report)
    this.applyBalance()
  }

  /** Measures the load of this node, and exchanges a shard if that is due. Called once in `trimMs`. */
  round(): LoadReport {
    this.loads.measure(this.parts.holdings.filter(({ phase }) => phase === 'active').map(({ shard }) => shard))
    const nowMs = this.parts.clock.monoMs()
    if (this.agreed && (nowMs >= this.agreed.untilMs || this.isCarriedOut(this.agreed))) this.end()
    if (this.isDue(nowMs)) this.choose(nowMs)
    return this.loads.report()
  }

  /** Another node wants to give a shard for one of this node. Returns why not; undefined: agreed. */
  onExchange(from: string, gives: number, takes: number): string | undefined {
    const nowMs = this.parts.clock.monoMs()
    const { shards, holdings, ownerOf, clock, keepers } = this.parts
    if (gives >= shards || takes >= shards) return 'these are no shards of entities'
    if (this.isBusy(nowMs)) return 'this node does not exchange shards at this moment'
    const nodes = this.participants(nowMs)
    const [own, other] = [nodes.find(({ name }) => name === this.name), nodes.find(({ name }) => name === nameOf(from))]
    if (!own || !other || !this.isPresent(from)) return 'one of the nodes does not exchange shards, as known here'
    if (ownerOf(gives) !== other.name || holdings[takes]?.phase !== 'active' || !this.hasCopy(gives))
      return 'the shards are not where they were, or there is no recent copy here'
    const difference = (other.shards.get(gives) ?? 0) - (own.shards.get(takes) ?? 0)
    if (!isGain(loadOf(other), loadOf(own), difference, 0)) return 'this node has too much work itself'
    const moves = movesOf({ node: this.name, gives, takes }, other.name)
    if (!keepers.isAtRest(new Map()) || !keepers.isAtRest(moves)) return 'other shards are about to move'
    this.agree({ with: from, moves, untilMs: clock.monoMs() + this.parts.options.exchangeMs, isChosenHere: false })
    return undefined
  }

  private isBusy(nowMs: number): boolean {
    return this.balance !== 'load' || !this.parts.mayAct() || this.isAsking || nowMs < this.pausedUntilMs
  }

  /** Nodes that may give and get shards. */
  private participants(nowMs: number): readonly NodeLoad[] {
    return this.view.flatMap(({ name, life, isSuspect }) => {
      const owner = ownerText(name, life)
      const joinedMs = this.joinedMs.get(owner)
      if (joinedMs === undefined || nowMs - joinedMs < this.parts.options.hotMs || isSuspect) return []
      return this.loads.of(owner) ?? []
    })
  }

  private isPresent(owner: string): boolean {
    return this.view.some(
      ({ name, life, isJoined, isSuspect }) => isJoined && !isSuspect && ownerText(name, life) === owner,
    )
  }

  /** Whether this node ought to choose an exchange now. */
  private isDue(nowMs: number): boolean {
    const nodes = this.participants(nowMs)
    if (this.isBusy(nowMs) || !isUneven(nodes, this.parts.options)) {
      this.unevenSinceMs = undefined
      return false
    }
    this.unevenSinceMs ??= nowMs
    return nowMs - this.unevenSinceMs >= this.parts.options.hotMs && hottest(nodes) === this.name
  }

  private choose(nowMs: number): void {
    const { keepers, options } = this.parts
    if (!keepers.isAtRest(new Map())) return
    const nodes = this.participants(nowMs)
    const free = keepers.freeShards()
    const exchange = exchangeFor({
      self: this.name,
      nodes,
      limits: options,
      mayGive: (shard, node) => free.has(shard) && keepers.of(shard).includes(node),
      mayTake: shard => free.has(shard) && this.hasCopy(shard),
      isStable: one => keepers.isAtRest(movesOf(one, this.name)),
    })
    if (exchange) this.propose(exchange, nodes)
  }

  private propose(exchange: ShardExchange, nodes: readonly NodeLoad[]): void {
    const { ask, self, clock, options, onBegun } = this.parts
    const member = this.view.find(({ name }) => name === exchange.node)!
    const begun = withLoads(exchange, this.name, nodes)
    const { node, gives, takes } = exchange
    const { joinedMs } = this
    this.isAsking = true
    ask(node, encodePeerMessage({ kind: 'exchange', from: self, gives, takes }), agreeMs, reply => {
      this.isAsking = false
      if (this.isClosed || replyOf(reply)?.kind !== 'done' || this.joinedMs !== joinedMs) return
      this.agree({
        with: ownerText(node, member.life),
        moves: movesOf(exchange, this.name),
        untilMs: clock.monoMs() + options.exchangeMs,
        isChosenHere: true,
      })
      onBegun(begun)
    })
  }

  private agree(agreed: Agreed): void {
    const { clock, keepers, options, onPlan } = this.parts
    this.agreed = agreed
    this.pausedUntilMs = clock.monoMs() + options.hotPauseMs
    keepers.setExchanged(agreed.moves)
    onPlan()
  }

  private isCarriedOut({ moves }: Agreed): boolean {
    return [...moves].every(([shard, node]) => this.parts.ownerOf(shard) === node)
  }

  private end(): void {
    if (!this.agreed) return
    if (this.agreed.isChosenHere && this.isCarriedOut(this.agreed)) this.done++
    this.agreed = undefined
    this.parts.keepers.setExchanged(new Map())
    this.parts.onPlan()
  }

  /** Whether this node has a copy of a shard that is near the end of its log. */
  private hasCopy(shard: number): boolean {
    const replica = this.parts.holdings[shard]?.replica
    return replica?.state === 'following' && replica.isWithin(this.parts.options.lagMax)
  }

  private applyBalance(): void {
    this.parts.keepers.setFixed(this.balance === 'off')
  }
}

/** By shard: the node that gets it. */
const movesOf = ({ node, gives, takes }: ShardExchange, self: string): ReadonlyMap<number, string> =>
  new Map([
    [gives, node],
    [takes, self],
  ])

function withLoads(exchange: ShardExchange, self: string, nodes: readonly NodeLoad[]): BegunExchange {
  const [own, other] = [self, exchange.node].map(wanted => nodes.find(({ name }) => name === wanted)!)
  return {
    ...exchange,
    givesLoad: own!.shards.get(exchange.gives) ?? 0,
    takesLoad: other!.shards.get(exchange.takes) ?? 0,
    ownLoad: loadOf(own!),
    otherLoad: loadOf(other!),
    meanLoad: meanLoad(nodes),
  }
}
