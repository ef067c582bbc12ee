// Does the duties of a node for its shards: from time to time, and after changes, it determines the duty for each shard
// (duties.ts) and begins it. Work in flight is not begun again, and its amount is limited.

import { logIndexOf, logOf } from '../logs/divided-log.js'
import type { ShardLog } from '../logs/shard-log.js'
import type { ClusterClock } from '../ports.js'
import { type Duty, dutyOf, type OwnerSort } from './duties.js'
import type { Holding } from './holding.js'
import type { OnChecked } from './log-check.js'
import { MoveRounds } from './move-rounds.js'
import { nameOf, noOwner, ownerText } from './owner.js'
import { type AskPeer, encodePeerMessage, replyOf } from './peer-messages.js'
import type { ReplicationOptions } from './replication-options.js'
import { ShardHeartbeats } from './shard-heartbeats.js'
import type { ShardHost } from './shard-host.js'
import { fetchShard } from './snapshot-fetch.js'

/** How long an owner may take to hand a shard over. */
const handOverMs = 5_000
/** How long a page of a snapshot may take. */
const pageMs = 10_000

export interface CaretakerParts {
  /** The name and life of this node, as in takeovers. */
  readonly self: string
  readonly logs: readonly ShardLog[]
  readonly host: ShardHost
  readonly clock: ClusterClock
  readonly options: ReplicationOptions
  readonly ask: AskPeer
  readonly onFailure: (failure: Error) => void
  /** A node has sent something that the host cannot read. */
  readonly onUnreadable: (node: string, reason: string) => void
  /** By shard. One whose copy was dropped is replaced here. */
  readonly holdings: Holding[]
  /** Returns a new holding, for a shard of which the store has nothing. */
  readonly renew: (shard: number) => Holding
  /** The names of the nodes that ought to keep a shard, the owner first. */
  readonly keepers: (shard: number) => readonly string[]
  /**
   * Whether the engines have everything, and that of a shard has answered. While they have lost something, or it was
   * not asked yet, nothing is begun.
   */
  readonly mayAct: (shard: number) => boolean
  /** Asks the engine of a shard anew whether it has everything, and calls back once. */
  readonly checkFirst: (shard: number, onChecked: OnChecked) => void
  /** Another node has made this one the owner of a shard, with that epoch. */
  readonly onHandedOver: (shard: number, epoch: number) => void
}

/** The facts about a node that matter here. */
interface Known {
  readonly name: string
  readonly life: string
  /** Whether it should get shards. */
  readonly isJoined: boolean
  /** Whether it was silent lately. */
  readonly isSuspect: boolean
}

export class Caretaker {
  private readonly parts: CaretakerParts
  private readonly name: string
  /** The names and lives of living nodes, as in takeovers. */
  private living: ReadonlySet<string> = new Set()
  /** Those among them that should have no shards. */
  private leaving: ReadonlySet<string> = new Set()
  private readonly signs: ShardHeartbeats
  private isJoined = false
  /** Since when a shard has had no living owner, and since when this node ought not to keep it. */
  private readonly orphanedSince = new Map<number, number>()
  private readonly strandedSince = new Map<number, number>()
  /** Since when its owner should have no shards. */
  private readonly leavingSince = new Map<number, number>()
  /** Shards that this node is about to claim, once the engine has answered. */
  private readonly claiming = new Set<number>()
  /** Shards that were asked for, and those that were asked for in vain a moment ago. */
  private readonly asking = new Set<number>()
  private readonly refused = new Set<number>()
  private readonly rounds: MoveRounds
  private mayAsk = false
  /** Shards that are being fetched or dropped. */
  private readonly copying = new Set<number>()
  /** Shards that were fetched and do not have the rest of their log yet. */
  private readonly catchingUp = new Set<number>()
  /** Shards of which the store has no row, because this node has deleted them since it started. */
  private readonly empty = new Set<number>()
  /** The logs of which all takeovers are known. */
  private readonly known = new Set<number>()
  private willLook = false
  private isClosed = false

  constructor(parts: CaretakerParts) {
    this.parts = parts
    this.name = nameOf(parts.self)
    this.signs = new ShardHeartbeats(parts.options.signMs)
    this.rounds = new MoveRounds(parts.clock, parts.options, () => this.lookSoon())
  }

  start(): void {
    const { clock, options } = this.parts
    const looking = (): void => {
      if (this.isClosed) return
      this.look()
      clock.after(options.lookMs, looking)
    }
    looking()
  }

  close(): void {
    this.isClosed = true
  }

  /** Whether the host is installing or deleting a copy. */
  get isCopying(): boolean {
    return this.copying.size > 0
  }

  setView(members: readonly Known[]): void {
    const ownersOf = (some: readonly Known[]): Set<string> =>
      new Set(some.map(({ name, life }) => ownerText(name, life)))
    this.living = ownersOf(members)
    this.signs.setReachable(ownersOf(members.filter(({ isSuspect }) => !isSuspect)), this.living)
    this.isJoined = members.some(({ name, isJoined }) => name === this.name && isJoined)
    this.leaving = ownersOf(members.filter(({ isJoined }) => !isJoined))
    this.lookSoon()
  }

  /** The log reports something that a node has just done. */
  noteSign(owner: string): void {
    this.signs.note(owner, this.parts.clock)
  }

  /** Whether the log reports actions of nodes that gossip does not reach. */
  get seesOthers(): boolean {
    return this.signs.others(this.parts.clock.monoMs()) > 0
  }

  /** A shard has got another owner. */
  noteTakeover(): void {
    this.rounds.noteTakeover()
  }

  /** A node has lists that wait for shards at rest. */
  hold(): void {
    this.rounds.hold()
  }

  /** All existing takeovers of a log have been reported: a shard of it without any has never had an owner. */
  knowsTakeovers(log: number): void {
    this.known.add(log)
  }

  lookSoon(): void {
    if (this.willLook) return
    this.willLook = true
    this.parts.clock.endOfTick(() => {
      this.willLook = false
      if (!this.isClosed) this.look()
    })
  }

  private look(): void {
    if (!this.living.has(this.parts.self)) return
    const { clock, holdings, keepers, mayAct } = this.parts
    const nowMs = clock.monoMs()
    this.mayAsk = this.rounds.isOpen(this.moving)
    for (const shard of this.catchingUp) if (!isCatchingUp(holdings[shard]!)) this.catchingUp.delete(shard)
    const fetches: Holding[] = []
    for (const holding of holdings) {
      if (!this.knows(holding.shard) || !mayAct(holding.shard)) continue
      const duty = this.dutyFor(holding, nowMs)
      if (duty === 'fetch' && keepers(holding.shard)[0] !== this.name) fetches.push(holding)
      else this.begin(duty, holding)
    }
    // Last: a shard that this node should own moves to it only when the copy is here.
    for (const holding of fetches) this.fetch(holding)
  }

  private knows(shard: number): boolean {
    return this.known.has(logIndexOf(shard, this.parts.logs.length))
  }

  private dutyFor(holding: Holding, nowMs: number): Duty {
    const { shard, replica, phase } = holding
    const { options } = this.parts
    const keepers = this.parts.keepers(shard)
    const rank = keepers.indexOf(this.name)
    const owner = this.ownerSort(holding, nowMs)
    return dutyOf({
      isJoined: this.isJoined,
      rank,
      keepers: keepers.length,
      phase,
      replica: replica.state,
      owner,
      orphanedMs: since(this.orphanedSince, shard, owner === 'gone', nowMs),
      leavingMs: since(this.leavingSince, shard, owner === 'leaving', nowMs),
      strandedMs: since(this.strandedSince, shard, rank < 0, nowMs),
      mayHoldRows: !this.empty.has(shard),
      isClose: replica.isWithin(options.lagMax),
      options,
    })
  }

  private ownerSort({ latest, isForsaken }: Holding, nowMs: number): OwnerSort {
    if (!latest || latest.owner === noOwner) return 'gone'
    // An append of the epoch that was given up may be on its way: a takeover ends it.
    if (latest.owner === this.parts.self) return isForsaken ? 'gone' : 'self'
    if (this.leaving.has(latest.owner)) return 'leaving'
    return this.living.has(latest.owner) || this.signs.spares(latest.owner, nowMs) ? 'other' : 'gone'
  }

  private begin(duty: Duty, holding: Holding): void {
    switch (duty) {
      case 'claim':
        return this.claim(holding)
      case 'adopt':
        return holding.adopt(holding.latest!)
      case 'release':
        return holding.relinquish(holding.latest!)
      case 'ask':
        return this.askFor(holding)
      case 'fetch':
        return this.fetch(holding)
      case 'drop':
        return this.drop(holding)
      case 'nothing':
    }
  }

  /** The engine is asked first: its latest answer may be from before an older backup was restored. */
  private claim(holding: Holding): void {
    const { shard } = holding
    if (this.claiming.has(shard)) return
    this.claiming.add(shard)
    this.parts.checkFirst(shard, isWhole => {
      this.claiming.delete(shard)
      if (!isWhole || this.isClosed || this.parts.holdings[shard] !== holding) return
      // It may have got an owner meanwhile.
      if (this.dutyFor(holding, this.parts.clock.monoMs()) === 'claim') holding.claim()
    })
  }

  /** Shards on their way to this node. */
  private get moving(): number {
    const arriving = this.parts.holdings.filter(({ phase }) => phase === 'waiting' || phase === 'activating')
    return this.asking.size + arriving.length
  }

  private askFor({ shard, latest }: Holding): void {
    const { ask, self, options, clock, onHandedOver } = this.parts
    if (!this.mayAsk || this.asking.has(shard) || this.refused.has(shard) || this.moving >= options.movesMax) return
    this.asking.add(shard)
    const request = encodePeerMessage({ kind: 'handOver', shard, to: self })
    ask(nameOf(latest!.owner), request, handOverMs, reply => {
      if (this.isClosed) return
      const decoded = replyOf(reply)
      this.asking.delete(shard)
      if (decoded?.kind === 'handedOver') return onHandedOver(shard, decoded.epoch)
      // Other shards need not wait behind one that its owner keeps.
      this.refused.add(shard)
      clock.after(options.retryMs, () => this.refused.delete(shard))
      this.lookSoon()
    })
  }

  /** Whether one more shard may be fetched or dropped. Each engine has its own limit: one that is away stops no other. */
  private mayCopy(shard: number): boolean {
    const { logs, options } = this.parts
    const log = logIndexOf(shard, logs.length)
    const busy = [...this.copying, ...this.catchingUp].filter(one => logIndexOf(one, logs.length) === log)
    return busy.length < options.fetchesMax
  }

  private fetch({ shard, replica, latest }: Holding): void {
    const { options, clock, onFailure, ask } = this.parts
    if (replica.isBusy || this.copying.has(shard) || !this.mayCopy(shard)) return
    this.copying.add(shard)
    this.empty.delete(shard)
    const source = this.sourceOf(shard, latest?.owner)
    fetchShard(
      shard,
      {
        ...this.parts,
        log: logOf(this.parts.logs, shard),
        onUnreadable: reason => source !== undefined && this.parts.onUnreadable(source, reason),
        ask: (request, onReply) => (source === undefined ? onReply(undefined) : ask(source, request, pageMs, onReply)),
      },
      outcome => {
        if (this.isClosed) return void this.copying.delete(shard)
        if (outcome instanceof Error) return onFailure(outcome)
        if (typeof outcome === 'string') return void clock.after(options.retryMs, () => this.copying.delete(shard))
        this.copying.delete(shard)
        this.catchingUp.add(shard)
        replica.restart(outcome, () => this.lookSoon())
      },
    )
  }

  /** The node from which to fetch a shard: its owner, or else one that ought to keep it. */
  private sourceOf(shard: number, owner: string | undefined): string | undefined {
    if (owner !== undefined && owner !== this.parts.self && this.living.has(owner)) return nameOf(owner)
    const others = this.parts.keepers(shard).filter(name => name !== this.name)
    // Another one each time: not all of them need have a copy.
    return others[Math.floor(this.parts.clock.monoMs() / pageMs) % Math.max(1, others.length)]
  }

  private drop({ shard, replica }: Holding): void {
    const { host, holdings, renew, onFailure } = this.parts
    if (replica.isBusy || this.copying.has(shard) || !this.mayCopy(shard)) return
    this.copying.add(shard)
    replica.close()
    host.drop(shard, failure => {
      this.copying.delete(shard)
      if (this.isClosed) return
      if (failure) return onFailure(failure)
      this.empty.add(shard)
      const { latest } = holdings[shard]!
      holdings[shard] = renew(shard)
      if (latest) holdings[shard].onTakeover(latest)
      this.lookSoon()
    })
  }
}

const isCatchingUp = ({ replica }: Holding): boolean => replica.state === 'following' && !replica.hasBeenCurrent

/** How long a condition has been true. */
function since(times: Map<number, number>, shard: number, isSo: boolean, nowMs: number): number {
  if (!isSo) {
    times.delete(shard)
    return 0
  }
  const sinceMs = times.get(shard) ?? nowMs
  times.set(shard, sinceMs)
  return nowMs - sinceMs
}
