// One life of a simulated node: the real shards over a store on the simulated disk, the real replicator, and the real
// router to the shards of others, put together as src/process does it. A list replaces the receivers of notifications.
//
// The router's asks and the replicator's questions travel by `carry`, which may lose them (simulated-cluster.ts).

import assert from 'node:assert/strict'
import { logIndexOf } from '../../cluster/logs/divided-log.js'
import type { ShardLog } from '../../cluster/logs/shard-log.js'
import type { ReplicationOptions } from '../../cluster/replication/replication-options.js'
import { Replicator } from '../../cluster/replication/replicator.js'
import type { ShardHost } from '../../cluster/replication/shard-host.js'
import { AskDeadlines } from '../../src/broker/ask-deadlines.js'
import { ClusteredShards, type Nodes } from '../../src/broker/clustered-shards.js'
import { ShardClient } from '../../src/broker/shard-client.js'
import { HybridClock } from '../../src/clock.js'
import { ShardMap } from '../../src/domain/scope.js'
import type { NotificationInput } from '../../src/domain/subscriptions/message.js'
import type { Clock, Deliverer, PendingNotification } from '../../src/ports.js'
import { lastStamp } from '../../src/shard/commit/commit-log.js'
import { StepwiseScanner } from '../../src/shard/read/scans.js'
import { Ownership } from '../../src/shard/replicate/ownership.js'
import type { Replication } from '../../src/shard/replicate/replication.js'
import type { LocalShards } from '../../src/shard/shards.js'
import type { AskOutcome } from '../../src/wire/exchange.js'
import { localShards } from '../support/local-shards.js'
import type { NodeRules } from './replication-rules.js'
import { type SimulatedDisk, SimulatedStore } from './simulated-disk.js'
import type { Process } from './simulated-world.js'

export const shards = 4
/** Entities of one path are spread over all shards. */
export const shardMap = new ShardMap({ shards, spread: shards })
export const { register } = shardMap

/** How long a node waits for the owner of a shard. */
const ownerWaitMs = 2_500
const listMs = 2_000
/** How long a receiver takes to answer, and the pause after a failure. */
const receiveMsMax = 30
const againMs = 300
/** The probability that a receiver fails. */
const receiverFails = 0.1

/** Sends a request to another node, and brings the answer back. */
export type Carry = (
  to: string,
  run: (life: SimulatedNode, onReply: (reply: Uint8Array) => void) => void,
  waitMs: number,
  onOutcome: (outcome: AskOutcome) => void,
) => void

export interface NodeParts {
  readonly name: string
  /** A name of its own for this life. */
  readonly life: string
  readonly process: Process
  /** The error of its wall clock. */
  readonly skewMs: number
  readonly disk: SimulatedDisk
  readonly logs: readonly ShardLog[]
  readonly rules: NodeRules
  readonly options: ReplicationOptions
  readonly mark: { readonly name: string; readonly value: Buffer }
  readonly carry: Carry
  /** A receiver has got a notification. */
  readonly onReceived: (input: NotificationInput) => void
  readonly onLost: (shards: readonly number[]) => void
  readonly onStopped: (shard: number, reason: string) => void
  /** Reports a line that should not be in a log. */
  readonly onError: (line: string) => void
  /** The node must end, and can begin anew. */
  readonly onFailure: (failure: Error) => void
}

/** A node whose store has been read. */
export class SimulatedNode {
  readonly life: string
  readonly process: Process
  readonly local: LocalShards
  readonly ownership: Ownership
  readonly replicator: Replicator
  readonly router: ClusteredShards
  /** For requests of clients. */
  readonly client: ShardClient
  readonly host: ShardHost
  isJoined = false

  /** Reads the store and begins; `onBegun` is not called if the process has been killed meanwhile. */
  static begin(parts: NodeParts, onBegun: (node: SimulatedNode) => void): void {
    const { process, disk, skewMs, onFailure, onError, rules, logs } = parts
    process.wallAheadMs = skewMs
    const fineWallMs = (): number => process.clock.wallMs()
    const clock: Clock = { ...process.clock, fineWallMs, wallMs: () => Math.floor(fineWallMs()) }
    const store = new SimulatedStore(disk, process)
    const stamps = new HybridClock(clock, lastStamp(store))
    const requestClock = new HybridClock(clock)
    const ownership = new Ownership(shards)
    const scanner = new StepwiseScanner(store, shardMap, clock, ownership.owned)
    let node: SimulatedNode | undefined
    const replication: Replication = rules.replication({
      engines: logs.length,
      engineOf: shard => logIndexOf(shard, logs.length),
      append: (some, onDone) => node!.replicator.append(some, onDone),
    })
    const begin = async (): Promise<void> => {
      const local = await localShards(store, shardMap, clock, {
        stamps,
        scanner,
        onFailure,
        logger: { info: () => {}, warn: () => {}, error: onError },
        share: {
          kind: 'node',
          ownership,
          replication,
          requestClock,
          // Half of the nodes, by chance, are busy, so their commits have gaps.
          utilization: () => (skewMs > 0 ? 1 : 0),
          barrier: (shard, sequence, onDone) =>
            rules.barriers ? node!.replicator.barrier(shard, sequence, () => onDone()) : clock.endOfTick(onDone),
        },
      })
      node = new SimulatedNode(parts, { clock, local, ownership, requestClock })
      onBegun(node)
      void local.parts.keyFilter.learn(store, scanner, clock)
      await local.parts.notifications.begin(new Receivers(parts, clock), node.router)
    }
    begin().catch((error: Error) => onError(`${error.stack}`))
  }

  private constructor(
    parts: NodeParts,
    given: {
      readonly clock: Clock
      readonly local: LocalShards
      readonly ownership: Ownership
      readonly requestClock: HybridClock
    },
  ) {
    const { name, life, process, logs, rules, options, mark, carry } = parts
    const { clock, local, ownership, requestClock } = given
    this.life = life
    this.process = process
    this.local = local
    this.ownership = ownership
    const { role } = local.parts
    assert(role.kind === 'node', 'the shards of a node')
    this.host = rules.host(role.host, run => clock.endOfTick(run))
    const ownerListeners: (() => void)[] = []
    this.replicator = new Replicator({
      name,
      life,
      shards,
      spread: shards,
      logs,
      host: this.host,
      clock: process.clock,
      options,
      marks: logs.map(() => mark),
      ask: (to, request, waitMs, onReply) =>
        carry(
          to,
          (other, onReply) => other.replicator.onAsk(request, onReply),
          waitMs,
          outcome => onReply(outcome.kind === 'reply' ? outcome.reply : undefined),
        ),
      onChange: () => {
        for (const listener of ownerListeners) listener()
      },
      reachable: () => true,
      onHealth: unhealthy => {
        if (unhealthy?.kind === 'lost') parts.onLost(unhealthy.shards)
      },
      onStopped: parts.onStopped,
      onFailure: parts.onFailure,
    })
    const { replicator } = this
    const serves = (shard: number): boolean => (rules.leases ? replicator.serves(shard) : ownership.admits(shard))
    const nodes: Nodes = {
      self: name,
      ownerOf: shard => replicator.ownerOf(shard),
      serves,
      get isLost() {
        return replicator.loss !== undefined
      },
      viewOf: node => replicator.viewOf(node),
      get ownView() {
        return rules.leases ? replicator.ownView : replicator.viewOf(name)
      },
      ask: (to, shard, request, onOutcome, waitMs, view) => {
        // A copy, since the caller may change its bytes later.
        const bytes = Buffer.from(request)
        carry(to, (other, onReply) => other.router.onAsk(shard, bytes, onReply, view, name), waitMs, onOutcome)
      },
      noteUndecodable: (node, what) => parts.onError(`${what}, of ${node}`),
      onChange: listener => void ownerListeners.push(listener),
    }
    const times = { waitMs: ownerWaitMs, listWaitMs: listMs, stalledMs: () => replicator.stalledMs }
    this.router = new ClusteredShards({
      local: new AskDeadlines(local, clock, times),
      nodes,
      shardMap,
      clock,
      pathsOf: tenant => role.paths.few(tenant),
      ownerWaitMs,
      listWaitMs: listMs,
    })
    this.client = new ShardClient(this.router, shardMap, requestClock, {
      clock,
      rest: () => replicator.rest(),
      stillMs: () => this.router.stillMs,
    })
    replicator.start()
  }

  /** Whether it answers for a shard, and can. */
  serves(shard: number): boolean {
    return this.replicator.serves(shard) && this.ownership.admits(shard) && !this.local.parts.commit.failed
  }
}

/** Receivers of notifications, which sometimes fail and are tried again. */
class Receivers implements Deliverer {
  private readonly parts: NodeParts
  private readonly clock: Clock

  constructor(parts: NodeParts, clock: Clock) {
    this.parts = parts
    this.clock = clock
  }

  deliver(pending: PendingNotification): void {
    const { world } = this.parts.process
    this.clock.after(world.random.fraction() * receiveMsMax, () => this.send(pending, pending.attempts))
  }

  prepare(): void {}

  receiverOf(): undefined {
    return undefined
  }

  queueLength(): number {
    return 0
  }

  private send(pending: PendingNotification, attempts: number): void {
    const { process, onReceived } = this.parts
    const input = pending.input()
    if (!input) return
    if (!process.world.chance(receiverFails)) {
      onReceived(input)
      return pending.onOutcome({ kind: 'delivered', code: 204 })
    }
    const nextAttemptMs = this.clock.wallMs() + againMs
    const failure = { reason: 'it is ill', code: undefined, sent: true, attempts: attempts + 1 }
    pending.onOutcome({ kind: 'failed', ...failure, nextAttemptMs, held: true })
    this.clock.after(againMs, () => this.send(pending, attempts + 1))
  }
}
