// A node of a cluster: gossip, asks and replicated shards, put together.
//
// Gossip finds the members. This node opens links to them for asks, and passes them to the replicator. Asks of hosts
// and questions between replicators share the links; a view number that no host uses (`peerView`) marks the latter. A
// node takes shards as soon as it knows the register and has compared its clock with others, and until it drains. A
// node whose clock is unsafe gives its shards away, as one that drains.
//
// Not here: membership (gossip.ts), how asks travel (asks.ts), ownership of shards (replicator.ts).

import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { hostPort } from './asks/address.js'
import { type Asks, type NodeStats, openAsks } from './asks/asks.js'
import { type GrpcTransportOptions, grpcTransport } from './asks/grpc-transport.js'
import type { ClockState } from './clocks/clock-state.js'
import { ClockWatch } from './clocks/clock-watch.js'
import { Gossip, type GossipStats, type GossipTrouble } from './gossip/gossip.js'
import type { GossipOptions } from './gossip/gossip-options.js'
import { isHere, type Member } from './gossip/member.js'
import type { ShardLog } from './logs/shard-log.js'
import { MemberLinks } from './member-links.js'
import { type AskOptions, askOptionsDefault } from './options.js'
import type { AskHost, ClusterClock, OnOutcome } from './ports.js'
import type { BegunExchange } from './replication/balancer.js'
import type { Unhealthy } from './replication/health.js'
import type { ClusterMark } from './replication/log-check.js'
import { decodePeerReply, decodePeerRequest } from './replication/peer-messages.js'
import { completeReplicationOptions, type ReplicationOptions } from './replication/replication-options.js'
import { Replicator } from './replication/replicator.js'
import type { Loss, ShardHost } from './replication/shard-host.js'

export interface ClusterSetup {
  readonly name: string
  readonly listen: string
  /** The address at which other nodes find this one; undefined: the address on which it listens. */
  readonly advertised?: string | undefined
  readonly domain: string
  /** Nodes to ask for the others: `host:port`, where the host may have several addresses. */
  readonly seeds: readonly string[]
  readonly clusterId: string
  /** A word that no node has had before. */
  readonly life: string
  /** V: shards of entities. */
  readonly shards: number
  /** The number of shards over which a service path is spread. */
  readonly spread: number
  /** One or several; each keeps the logs of some shards (logs/divided-log.ts). */
  readonly logs: readonly ShardLog[]
  /** The mark that each log keeps of this cluster, as long as it has lost nothing. */
  readonly marks?: readonly ClusterMark[]
  readonly clock: ClusterClock
  readonly chance: () => number
  /** How far the wall clocks of nodes may be apart (clocks/clock-state.ts). */
  readonly clockSkewMaxMs?: number
  readonly transport?: GrpcTransportOptions
  readonly askOptions?: Partial<AskOptions>
  readonly gossipOptions?: Partial<GossipOptions>
  readonly replicationOptions?: Partial<ReplicationOptions>
  /** Some shards cannot answer, or for another reason than before; undefined: all can. */
  readonly onHealth?: (unhealthy: Unhealthy | undefined) => void
  /** Other nodes have taken over shards that this node owned. */
  readonly onLost?: (losses: readonly Loss[]) => void
  /** This node exchanges a hot shard for a cold one. */
  readonly onExchange?: (exchange: BegunExchange) => void
  /** The clocks of the cluster were compared. Called several times a second. */
  readonly onClock?: (state: ClockState) => void
  /** A message for the operator. */
  readonly onTrouble: (trouble: string) => void
  /** This node must end: it may hold changes that never became durable, or another node has its name. */
  readonly onFailure: (failure: Error) => void
}

/** The view that marks questions between replicators. */
const peerView = -1

/** Between two checks whether a condition holds. */
const lookMs = 100
/** How long a node may take to give up the shards that no other node has asked for. */
const givingUpMsMax = 6_000
/** How long pending writes may take when a node ends. */
const writeMsMax = 5_000
/**
 * How long a new node looks for others before it takes shards alone, and follows the log: that reports an owner in this
 * time, three times (heartbeats.ts).
 */
const aloneMs = 5_000
/** How long it waits for a comparison of clocks. Nodes of older builds do not send their time. */
const comparedMs = 5_000
const clockSkewMaxMsDefault = 500

/**
 * Listens, and returns a node that has not begun yet. Other nodes ask `askHost`. Fails with a sentence for the operator
 * when it cannot listen on the address.
 */
export async function startClusterNode(setup: ClusterSetup, host: ShardHost, askHost: AskHost): Promise<ClusterNode> {
  const { name, life, domain, clusterId, seeds, clock, chance, logs, shards, spread, marks, onFailure, onTrouble } =
    setup
  const transport = grpcTransport(setup.transport)
  const ownerListeners: (() => void)[] = []
  const options = completeReplicationOptions(setup.replicationOptions ?? {})
  const replicator = new Replicator({
    name,
    life,
    shards,
    spread,
    logs,
    host,
    clock,
    options,
    marks,
    ask: (node, request, waitMs, onReply) =>
      asks.ask(
        node,
        0,
        request,
        outcome => {
          const reply = outcome.kind === 'reply' ? outcome.reply : undefined
          const isReadable = !reply || decodePeerReply(reply) !== undefined
          if (!isReadable) asks.noteUndecodable(node, 'a reply about shards')
          onReply(isReadable ? reply : undefined)
        },
        waitMs > askDeadlineMs ? waitMs : undefined,
        peerView,
      ),
    onChange: () => {
      for (const listener of ownerListeners) listener()
    },
    reachable: node => asks.reachable(node),
    onHealth: unhealthy => setup.onHealth?.(unhealthy),
    onStopped: (shard, reason) => onTrouble(`the copy of shard ${shard} has stopped: ${reason}`),
    onFailure,
    onUnreadable: (node, reason) => asks.noteUndecodable(node, reason),
    onLost: losses => setup.onLost?.(losses),
    onExchange: exchange => setup.onExchange?.(exchange),
  })
  const { askDeadlineMs } = { ...askOptionsDefault, ...setup.askOptions }
  const both: AskHost = {
    onAsk: (shard, request, onReply, view, from) => {
      if (view !== peerView) return askHost.onAsk(shard, request, onReply, view, from)
      const bytes = Buffer.from(request.buffer, request.byteOffset, request.byteLength)
      if (!decodePeerRequest(bytes)) asks.noteUndecodable(from, 'a request about shards')
      replicator.onAsk(bytes, onReply)
    },
  }
  let gossip: Gossip | undefined
  const asks = await openAsks(
    transport,
    { name, address: setup.listen },
    life,
    [],
    both,
    clock,
    setup.askOptions ?? {},
    {
      onCall: (message, onReply) => gossip?.onCall(message, onReply),
      onUnreadableCall: () => gossip?.noteUnreadable('a question in gossip was ignored: its bytes are no packet'),
    },
  )
  asks.onTrouble(onTrouble)
  gossip = new Gossip(
    {
      self: { name, address: setup.advertised ?? asks.address, domain, life, isJoined: false },
      clusterId,
      seeds,
      options: setup.gossipOptions ?? {},
    },
    transport,
    clock,
    chance,
    resolveSeed,
  )
  const node = new ClusterNode(setup, asks, gossip, replicator, ownerListeners, () => transport.close())
  gossip.onTrouble(trouble => {
    if (trouble.kind === 'superseded') onFailure(new Error(trouble.reason))
    else onTrouble(inWords(trouble))
  })
  return node
}

const inWords = ({ kind, reason }: GossipTrouble): string =>
  kind === 'unresolved' ? `the address of a node cannot be found: ${reason}` : reason

export class ClusterNode {
  private begunMs = 0
  /** When it first knew others whose clocks it had not compared. */
  private foundMs: number | undefined
  private isDraining = false
  private isUnsafe = false
  private isClosed = false
  private readonly links: MemberLinks
  private readonly clocks: ClockWatch

  constructor(
    private readonly setup: ClusterSetup,
    private readonly asks: Asks,
    private readonly gossip: Gossip,
    readonly replicator: Replicator,
    private readonly ownerListeners: (() => void)[],
    private readonly closeTransport: () => void,
  ) {
    this.links = new MemberLinks(asks, setup.clock, name => gossip.isRefusing(name))
    this.clocks = new ClockWatch({
      clock: setup.clock,
      skewMaxMs: setup.clockSkewMaxMs ?? clockSkewMaxMsDefault,
      others: () => this.others().flatMap(({ name }) => asks.originOf(name) ?? []),
      onLook: state => this.onClock(state),
    })
  }

  get address(): string {
    return this.asks.address
  }

  /** Begins to look for the others and to do its duties. Call it once everything exists that other nodes may ask. */
  begin(): void {
    this.begunMs = this.setup.clock.monoMs()
    this.gossip.onChange(member => this.note(member))
    this.update()
    this.replicator.start()
    this.clocks.start()
    this.joinWhenReady()
  }

  /** Calls back when shards have other owners. */
  onOwners(listener: () => void): void {
    this.ownerListeners.push(listener)
  }

  /** Calls back when something about the members has changed. */
  onMembers(listener: () => void): void {
    this.gossip.onChange(listener)
  }

  gossipStats(): GossipStats {
    return this.gossip.stats()
  }

  members(): readonly Member[] {
    return this.gossip.members()
  }

  /** Asks the host of another node. `view` is not below 0. */
  ask(node: string, shard: number, request: Uint8Array, onOutcome: OnOutcome, waitMs?: number, view = 0): void {
    this.asks.ask(node, shard, request, onOutcome, waitMs, view)
  }

  /** Whether a frame of a node arrived lately. */
  reachable(node: string): boolean {
    return this.asks.reachable(node)
  }

  /** Counts a message of a node that the host could not decode, and reports it to the log and to that node. */
  noteUndecodable(node: string, what: string): void {
    this.asks.noteUndecodable(node, what)
  }

  /** Statistics of the link to another node; undefined: there is no link. */
  statsOf(node: string): NodeStats | undefined {
    return this.asks.statsOf(node)
  }

  get clockState(): ClockState {
    return this.clocks.state
  }

  /** How far the clock of another node is ahead of ours, in milliseconds; undefined: it was not measured. */
  clockAheadMs(node: string): number | undefined {
    const range = this.asks.originOf(node)
    return range && (range.earliestMs + range.latestMs) / 2 - this.clocks.ownMs
  }

  /** Resolves when every shard can answer, when the log has lost some, or when that takes longer than `waitMs`. */
  async settled(waitMs: number): Promise<void> {
    const { clock } = this.setup
    const untilMs = clock.monoMs() + waitMs
    while (this.replicator.unhealthy && !this.replicator.loss && clock.monoMs() < untilMs)
      await new Promise<void>(resolve => clock.after(lookMs, resolve))
  }

  /**
   * Gives all shards to other nodes, which ask for some at a time, so that each has a short pause. Resolves to true when
   * that is done or no other node can take them; to false after `waitMs`, or when the log has lost something.
   * `isLast`: this node ends. So it gives the rest up then, at once, as far as others have copies: they need not wait
   * for the end of a lease.
   */
  async drain(waitMs: number, isLast = false): Promise<boolean> {
    const { clock } = this.setup
    this.isDraining = true
    this.gossip.setJoined(false)
    const giveUpMs = clock.monoMs() + waitMs
    const untilMs = giveUpMs + (isLast ? givingUpMsMax : 0)
    // True when no other node could take the shards over.
    const isAlone = (): boolean =>
      !this.gossip.members().some(member => member.name !== this.setup.name && member.isJoined)
    while (this.replicator.ownedCount > 0 && !isAlone()) {
      const nowMs = clock.monoMs()
      if (nowMs >= untilMs || this.replicator.loss) return false
      if (nowMs >= giveUpMs) this.replicator.giveUp()
      await new Promise<void>(resolve => clock.after(lookMs, resolve))
    }
    return this.replicator.ownedCount === 0 || isAlone()
  }

  resume(): void {
    this.isDraining = false
    this.joinWhenReady()
  }

  /** Reports to the others that this node leaves, and ends everything but the log. */
  async close(): Promise<void> {
    if (this.isClosed) return
    this.isClosed = true
    this.clocks.close()
    this.replicator.close()
    this.links.close()
    await this.gossip.leave()
    this.gossip.close()
    await this.asks.close()
    this.closeTransport()
    const { clock } = this.setup
    const untilMs = clock.monoMs() + writeMsMax
    while (this.replicator.isWriting && clock.monoMs() < untilMs)
      await new Promise<void>(resolve => clock.after(lookMs / 10, resolve))
  }

  private note(member: Member): void {
    const { name } = member
    if (this.isClosed) return
    if (name !== this.setup.name) {
      this.links.note(member)
      if (member.status === 'dead') this.setup.onTrouble(`node ${name} does not answer`)
    }
    this.update()
  }

  private update(): void {
    const here = this.gossip.members().filter(isHere)
    this.replicator.setView(
      here.map(({ name, life, domain, isJoined, status }) => ({
        name,
        life,
        domain,
        isJoined,
        isSuspect: status === 'suspect',
      })),
    )
  }

  private others(): readonly Member[] {
    return this.gossip.members().filter(member => member.name !== this.setup.name && isHere(member))
  }

  /** A node with an unsafe clock gives its shards to others, and takes some again when its clock is right. */
  private onClock(state: ClockState): void {
    const isUnsafe = state.verdict === 'unsafe'
    if (isUnsafe !== this.isUnsafe) {
      this.isUnsafe = isUnsafe
      if (isUnsafe) this.gossip.setJoined(false)
      else this.joinWhenReady()
    }
    this.setup.onClock?.(state)
  }

  /**
   * A node takes shards once it knows the register, has looked for others, and has compared its clock with theirs. So
   * nodes that start together do not take the same shards, and a node with an unsafe clock takes none. While the log
   * reports others, a node that has found none of them takes none either: on a busy machine their answers take long.
   */
  private joinWhenReady(): void {
    const { clock, seeds } = this.setup
    if (this.isClosed || this.isDraining || this.isUnsafe) return
    const isAlone = seeds.length > 0 && this.gossip.members().length === 1
    const isUncompared = this.clocks.state.verdict === 'unknown' && this.others().length > 0
    const nowMs = clock.monoMs()
    if (isUncompared) this.foundMs ??= nowMs
    const waits =
      (isAlone && (nowMs - this.begunMs < aloneMs || this.replicator.mayHaveOthers(aloneMs))) ||
      (isUncompared && nowMs - (this.foundMs ?? nowMs) < comparedMs)
    if (this.replicator.knowsRegister && !waits) {
      this.gossip.setJoined(true)
      return
    }
    clock.after(lookMs, () => this.joinWhenReady())
  }
}

async function resolveSeed(seed: string): Promise<readonly string[]> {
  if (seed.startsWith('unix:')) return [seed]
  const { host, port } = hostPort(seed) ?? {}
  if (host === undefined) throw new Error(`not an address: ${seed}`)
  if (isIP(host)) return [seed]
  const found = await lookup(host, { all: true })
  return found.map(({ address, family }) => (family === 6 ? `[${address}]:${port}` : `${address}:${port}`))
}
