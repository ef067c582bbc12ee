// A cluster as a simulation of discrete events: how many single updates a second its nodes take when each has a machine
// of its own, and each etcd, too.
//
// The rules are the real ones: the shard of an entity, the owner and the standbys of a shard, the etcd of a shard, what a
// commit takes and when it begins (GroupCommit), and the gaps of a busy node. What they cost is given. A client has one
// update in flight; the same number of clients asks each node. An update passes these stations:
//
//   client -> node asked -> owner: turn, commit -> its etcd -> owner -> node asked -> client
//                                                  its etcd -> every node: records; standbys apply them
//
// A node has one processor, which takes work in the order of its arrival. An etcd, which stands for its member that
// works most, has several, and a disk that takes one append after the other. A flush holds nothing up, because etcd
// flushes what has arrived meanwhile together.
//
// The model leaves out: variation of costs, garbage collection, compaction of the stores, the threads beside the event
// loop (their processor time counts as that of the loop), elections, trims, heartbeats, loads that differ between
// shards by more than chance, and limits of the network other than its delay.
//
// Not here: events and queues (stations.ts), the costs (update-costs.ts), and the clusters that are compared
// (nine-nodes.ts).

import assert from 'node:assert/strict'
import { logIndexOf } from '../cluster/logs/divided-log.js'
import { ownersWanted } from '../cluster/replication/owner-shares.js'
import { keepersOf, rank } from '../cluster/replication/placement.js'
import { replicationOptionsDefault } from '../cluster/replication/replication-options.js'
import { placementDefault, ShardMap } from '../src/domain/scope.js'
import { LoopUtilization } from '../src/observe/loop-utilization.js'
import type { RowSink } from '../src/ports.js'
import { GroupCommit } from '../src/shard/commit/commit.js'
import { type CommitLog, noTimes, type OpenBatch } from '../src/shard/commit/commit-log.js'
import type { PathCounts } from '../src/shard/commit/counts.js'
import { shardOfKey } from '../src/shard/keys.js'
import { entityKey } from '../src/shard/layout.js'
import { commitGapMs } from '../src/shard/replicate/commit-gap.js'
import { commitsInFlightMax } from '../src/shard/replicate/replicated-log.js'
import { Random } from '../test/support/random.js'
import { Agenda, Station } from './stations.js'

/** Times in ms. Those of nodes and of etcd's processors are processor time. */
export interface Costs {
  /** At the node that the client asks: the request, and the answer. */
  readonly request: number
  /** An ask, half of it at each of the two nodes. */
  readonly ask: number
  /** At the owner: the turn, and its share of a commit. */
  readonly turn: number
  /** At the owner, for each append. */
  readonly append: number
  /** At every node, for each record of any shard: etcd reports all of them. */
  readonly received: number
  /** At a standby, for each update. */
  readonly apply: number
  /** At an etcd, for each append; for each record; for each record and node that follows. */
  readonly etcdAppend: number
  readonly etcdRecord: number
  readonly etcdReport: number
  /** From an append to its answer, when etcd has nothing else to do. */
  readonly etcdLatency: number
  /** In the log. */
  readonly bytesPerUpdate: number
}

/** What does not come from a measurement. */
export interface Machines {
  readonly etcdCores: number
  readonly etcdDiskBytesPerSecond: number
  /** One way, between any two machines. */
  readonly networkMs: number
}

export interface ModelOptions {
  readonly nodes: number
  readonly etcds: number
  readonly clientsPerNode: number
  readonly costs: Costs
  readonly machines: Machines
  /** Simulated time that does not count, and that counts. */
  readonly warmUpMs: number
  readonly runMs: number
}

export interface Modelled {
  readonly perSecond: number
  /** Updates in an append, and records. */
  readonly updates: number
  readonly records: number
  readonly appendsPerSecond: number
  readonly meanMs: number
  /** The busiest node and the busiest etcd: shares of what they have. */
  readonly nodeBusy: number
  readonly etcdBusy: number
}

const names = (nodes: number): readonly string[] => Array.from({ length: nodes }, (_, node) => `node${node}`)

/** Runs the simulation. The same options give the same result. */
export const simulate = (options: ModelOptions): Modelled => new Model(options).run()

/** The updates of one shard in one commit. */
class Staged implements OpenBatch {
  length = 0
  readonly rows: RowSink = { put: () => void this.length++, del: () => void this.length++ }

  constructor(readonly shard: number) {}

  rowsOf(): RowSink {
    return this.rows
  }

  orderedOf(): RowSink {
    return this.rows
  }
}

/** Updates change no counts. */
const noCounts: PathCounts = {
  count() {},
  flush() {},
  settle() {},
  mustForget: false,
  paths: () => undefined,
  load: async () => new Map(),
  has: async () => false,
  emptied: false,
}

const placement = placementDefault
/** Of the row that an update changes, by shard. */
const keys = Array.from({ length: placement.shards }, (_, shard) => entityKey(shard, '', '/', 'E'))
const row = Buffer.from('x')
/** Service paths, and entities in each: all shards have some. */
const paths = 256
const entitiesPerPath = 100

class Model {
  private readonly options: ModelOptions
  private readonly agenda = new Agenda()
  private readonly map = new ShardMap(placement)
  private readonly nodes: readonly Station[]
  private readonly commits: readonly GroupCommit[]
  private readonly etcds: readonly { readonly processors: Station; readonly disk: Station }[]
  /** By shard: the numbers of its nodes, the owner first. */
  private readonly keepers: readonly (readonly number[])[]
  private readonly random = new Random(1)
  private sent = 0
  private answered = 0
  private appends = 0
  private records = 0
  private logged = 0
  private waitedMs = 0

  constructor(options: ModelOptions) {
    this.options = options
    const { nodes, etcds, machines } = options
    this.nodes = Array.from({ length: nodes }, () => new Station(this.agenda, 1))
    this.etcds = Array.from({ length: etcds }, () => ({
      processors: new Station(this.agenda, machines.etcdCores),
      disk: new Station(this.agenda, 1),
    }))
    this.keepers = keepersIn(nodes)
    this.commits = this.nodes.map((_, node) => this.commitOf(node))
  }

  run(): Modelled {
    const { nodes, clientsPerNode, warmUpMs, runMs } = this.options
    for (let node = 0; node < nodes; node++) for (let n = 0; n < clientsPerNode; n++) this.send(node)
    this.agenda.runUntil(warmUpMs)
    const before = this.numbers()
    this.agenda.runUntil(warmUpMs + runMs)
    const after = this.numbers()
    // Each client waits for one update, and every answered one is in the log.
    assert.equal(this.sent - this.answered, nodes * clientsPerNode, 'an update was lost, or was answered twice')
    assert(this.answered <= this.logged && this.logged <= this.sent, 'an update was answered that is not in the log')
    const more = (of: (numbers: Numbers) => number): number => of(after) - of(before)
    const busiest = (of: (numbers: Numbers) => readonly number[]): number =>
      Math.max(...of(after).map((busyMs, place) => (busyMs - of(before)[place]!) / runMs))
    return {
      perSecond: (more(({ answered }) => answered) / runMs) * 1000,
      appendsPerSecond: (more(({ appends }) => appends) / runMs) * 1000,
      updates: more(({ logged }) => logged) / more(({ appends }) => appends),
      records: more(({ records }) => records) / more(({ appends }) => appends),
      meanMs: more(({ waitedMs }) => waitedMs) / more(({ answered }) => answered),
      nodeBusy: busiest(({ nodeMs }) => nodeMs),
      etcdBusy: busiest(({ etcdMs }) => etcdMs),
    }
  }

  private numbers() {
    const { answered, appends, records, logged, waitedMs, nodes, etcds } = this
    return {
      ...{ answered, appends, records, logged, waitedMs },
      nodeMs: nodes.map(({ busyMs }) => busyMs),
      etcdMs: etcds.map(({ processors, disk }) => Math.max(processors.busyMs / processors.places, disk.busyMs)),
    }
  }

  /** A client sends an update to a node, and the next one when it has the answer. */
  private send(asked: number): void {
    this.sent++
    const { request, ask } = this.options.costs
    const sentMs = this.agenda.nowMs
    const shard = this.shardByChance()
    const owner = this.keepers[shard]![0]!
    const answer = (): void => this.later(() => this.onAnswer(asked, sentMs))
    const station = this.nodes[asked]!
    if (owner === asked) this.later(() => station.work(request, () => this.turn(owner, shard, answer)))
    else {
      const reply = (): void => this.later(answer)
      const onAsk = (): void => this.nodes[owner]!.work(ask / 2, () => this.turn(owner, shard, reply))
      this.later(() => station.work(request + ask / 2, () => this.later(onAsk)))
    }
  }

  private onAnswer(asked: number, sentMs: number): void {
    this.answered++
    this.waitedMs += this.agenda.nowMs - sentMs
    this.send(asked)
  }

  private turn(owner: number, shard: number, answer: () => void): void {
    this.nodes[owner]!.work(this.options.costs.turn, () => {
      const commit = this.commits[owner]!
      const number = commit.write(keys[shard]!, row)
      commit.afterCommit(number, failure => {
        assert(!failure, 'a commit has failed')
        answer()
      })
    })
  }

  private commitOf(node: number): GroupCommit {
    const { etcds } = this.options
    const station = this.nodes[node]!
    const monoMs = (): number => this.agenda.nowMs
    const use = new LoopUtilization({ monoMs }, () => ({ active: station.busyMs, idle: monoMs() - station.busyMs }))
    const log: CommitLog = {
      times: noTimes(),
      wholeLane: placement.shards,
      groups: etcds,
      inFlightMax: commitsInFlightMax,
      get gapMs() {
        return commitGapMs(use.share)
      },
      isFull: false,
      laneOf: shard => shard,
      groupOf: lane => logIndexOf(lane, etcds),
      laneOfKey: shardOfKey,
      open: shard => new Staged(shard),
      commit: (batches, onDone) => this.append(node, batches.map(asStaged), onDone),
    }
    const clock = {
      monoMs,
      after: (ms: number, run: () => void) => {
        this.agenda.at(this.agenda.nowMs + ms, run)
        return () => assert.fail('no timer of a commit is cancelled')
      },
      // After everything that has arrived at the node by now.
      endOfTick: (run: () => void) => station.work(0, run),
    }
    const onFailure = (failure: Error): void => assert.fail(failure)
    return new GroupCommit({ log, clock, directory: noCounts, attributes: noCounts, onFailure })
  }

  private append(node: number, parts: readonly Staged[], onDone: () => void): void {
    const { costs } = this.options
    const filled = parts.filter(({ length }) => length > 0)
    assert(filled.length > 0, 'a commit has nothing')
    const etcd = this.etcds[logIndexOf(filled[0]!.shard, this.etcds.length)]!
    const updates = filled.reduce((sum, { length }) => sum + length, 0)
    const end = (): void => {
      this.appends++
      this.records += filled.length
      this.logged += updates
      this.report(filled)
      this.later(() => this.nodes[node]!.work(0, onDone))
    }
    const flush = (): void => this.agenda.at(this.agenda.nowMs + costs.etcdLatency, end)
    const toDisk = (): void =>
      etcd.disk.work((updates * costs.bytesPerUpdate * 1000) / this.options.machines.etcdDiskBytesPerSecond, flush)
    const perRecord = costs.etcdRecord + costs.etcdReport * this.nodes.length
    this.nodes[node]!.work(costs.append, () =>
      this.later(() => etcd.processors.work(costs.etcdAppend + filled.length * perRecord, toDisk)),
    )
  }

  /** All nodes get all records, and the standbys apply theirs. */
  private report(parts: readonly Staged[]): void {
    const { received, apply } = this.options.costs
    for (const [node, station] of this.nodes.entries()) {
      const applied = parts.filter(({ shard }) => this.keepers[shard]!.indexOf(node) > 0)
      const updates = applied.reduce((sum, { length }) => sum + length, 0)
      this.later(() => station.work(parts.length * received + updates * apply))
    }
  }

  /** Runs something when a message has arrived at another machine. */
  private later(run: () => void): void {
    this.agenda.at(this.agenda.nowMs + this.options.machines.networkMs, run)
  }

  private shardByChance(): number {
    const path = Math.floor(this.random.fraction() * paths)
    return this.map.shardOf('', `/p${path}`, `urn:entity:${Math.floor(this.random.fraction() * entitiesPerPath)}`)
  }
}

type Numbers = ReturnType<Model['numbers']>

function asStaged(batch: OpenBatch): Staged {
  assert(batch instanceof Staged, 'a commit has batches of this log')
  return batch
}

/** As in a cluster whose nodes have joined, and whose shards are at home. */
function keepersIn(nodes: number): readonly (readonly number[])[] {
  const members = names(nodes)
  const { replicas } = replicationOptionsDefault
  const ranking = rank(
    placement.shards,
    members.map(name => ({ name, domain: '' })),
  )
  const owners = ownersWanted({
    members,
    present: Array(placement.shards).fill(undefined),
    copies: shard => keepersOf(ranking[shard]!, undefined, replicas),
    spread: placement.spread,
  })
  return ranking.map((ranked, shard) => keepersOf(ranked, owners[shard], replicas).map(name => members.indexOf(name)))
}
