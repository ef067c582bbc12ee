// Three nodes of a cluster and the etcd that keeps its log, or several with slow disks, each a process of its own on
// this machine. More nodes may join.
//
// A shard is at home when no other node is about to own it. So the cluster is back in its normal state when all nodes
// are alive and joined, all shards are at home, and the nodes' shares of them differ by one at most. Nodes keep their
// names, directories and ports when they are started again.
//
// Not here: the load on them (planned-moves, failovers, replicated-rates, joining).

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { ClusterStatus } from '../src/messages/cluster-status.js'
import { type Etcd, startEtcd } from '../test/support/etcd.js'
import { type Exposition, parseExposition } from '../test/support/exposition-parser.js'
import { cpuSeconds, cpuSecondsOfAll } from './machine.js'
import { progress } from './report.js'
import { freePort, type Server, type Subject, start } from './servers.js'
import { openSlowDisk, type SlowDisk } from './slow-disk.js'

/** Owners by shard, of those of entities. */
export type Owners = readonly (string | undefined)[]

export interface Cpu {
  readonly nodes: number
  /** Of all members. */
  readonly etcd: number
  /** Of each member. */
  readonly etcdMembers: readonly number[]
}

/** Nodes with which a cluster begins, and the names of those and of nodes that join later. */
const nodesAtFirst = 3
const names = ['a', 'b', 'c', 'd'] as const
/** How long the cluster may take to return to its normal state. */
const placedMsMax = 180_000
/** Between two looks. */
const lookMs = 50
/** Log lines in which a node that ends itself gives the reason. */
const failureLine = /lvl=(FATAL|ERROR)/

interface Engines {
  readonly etcds: readonly Etcd[]
  readonly disks: readonly SlowDisk[]
  /** The option that names them. */
  readonly log: string
}

interface Place {
  readonly port: number
  readonly listen: string
}

/**
 * Starts the etcd and the nodes on directories in `folder`; resolves when all shards are at home. `slowEngines`: so
 * many etcds divide the shards among them, each behind a disk that can be made slow.
 */
export async function startNodes(
  subject: Subject,
  folder: string,
  etcdMembers: 1 | 3,
  slowEngines?: number,
): Promise<Nodes> {
  const ends: (() => unknown)[] = []
  const etcds: Etcd[] = []
  const logs: string[] = []
  const disks: SlowDisk[] = []
  for (let n = 0; n < (slowEngines ?? 1); n++) {
    const dataDir = n === 0 ? folder : join(folder, `etcd${n}`)
    const etcd = await startEtcd({ teardown: run => void ends.push(run) }, { members: etcdMembers, dataDir })
    etcds.push(etcd)
    const own: SlowDisk[] = []
    if (slowEngines !== undefined) for (const { address } of etcd.members) own.push(await openSlowDisk(address))
    for (const disk of own) ends.push(() => disk.close())
    disks.push(...own)
    logs.push(`etcd://${(own.length > 0 ? own : etcd.members).map(({ address }) => address).join(',')}`)
  }
  const places: Place[] = []
  for (let n = 0; n < nodesAtFirst; n++) places.push(await freePlace())
  const nodes = new Nodes(subject, folder, { etcds, disks, log: logs.join(' ') }, places, ends)
  await Promise.all(nodes.indexes.map(index => nodes.start(index)))
  await nodes.untilPlaced()
  return nodes
}

const freePlace = async (): Promise<Place> => ({
  port: await freePort(),
  listen: `127.0.0.1:${await freePort()}`,
})

export class Nodes {
  private readonly servers: Server[] = []
  private readonly subject: Subject
  private readonly folder: string
  private readonly engines: Engines
  /** By the nodes' indexes. */
  private readonly places: Place[]
  private readonly ends: readonly (() => unknown)[]
  /** Shards of entities; 0 until a node has reported the number: another build may have another one. */
  private shardCount = 0

  constructor(subject: Subject, folder: string, engines: Engines, places: Place[], ends: readonly (() => unknown)[]) {
    this.subject = subject
    this.folder = folder
    this.engines = engines
    this.places = places
    this.ends = ends
  }

  /** The first etcd, or the only one. */
  get etcd(): Etcd {
    return this.engines.etcds[0]!
  }

  slowDisksDown(bytesPerSecond: number): void {
    for (const disk of this.engines.disks) disk.slowDown(bytesPerSecond)
  }

  /** Of the nodes. */
  get indexes(): readonly number[] {
    return this.places.map((_, index) => index)
  }

  nameOf(index: number): string {
    return names[index]!
  }

  /** Number of shards that hold entities. */
  get shards(): number {
    return this.shardCount
  }

  /** URLs by the nodes' indexes. */
  get urls(): readonly string[] {
    return this.servers.map(({ url }) => url)
  }

  /** Starts a node, again if need be; resolves when it answers. */
  async start(index: number): Promise<void> {
    const { port, listen } = this.places[index]!
    const name = this.nameOf(index)
    const seeds = this.places.map(one => one.listen).join(',')
    const args = ['-durability', 'replicated', '-nodeName', name, '-clusterListen', listen]
    this.servers[index] = await start(this.subject, join(this.folder, name), 'anywhere', {
      port,
      args: [...args, '-clusterJoin', seeds, '-shardLog', this.engines.log],
      onLine: line => {
        if (failureLine.test(line)) progress(`node ${name}: ${line}`)
      },
    })
  }

  /** Starts one more node, which joins the others; resolves with its index when it answers. */
  async add(): Promise<number> {
    const index = this.places.length
    assert(index < names.length, 'there is no name for one more node')
    this.places.push(await freePlace())
    await this.start(index)
    return index
  }

  /** Kills all its processes, like a machine that dies. */
  kill(index: number): Promise<void> {
    return this.servers[index]!.kill()
  }

  /** Ends a node in good order, and fails unless it ends well. */
  end(index: number): Promise<void> {
    return this.servers[index]!.stop()
  }

  /** Orders a node to give its shards away; resolves when it has. */
  async drain(index: number): Promise<void> {
    await this.ask(index, 'POST', '/cluster/drain')
  }

  /** Orders a node to take shards again. */
  async resume(index: number): Promise<void> {
    await this.ask(index, 'DELETE', '/cluster/drain')
  }

  /** The owner of each shard, as a node knows it. */
  async owners(index: number): Promise<Owners> {
    return ownersIn(await this.status(index))
  }

  /**
   * Resolves when every node reports that all are alive and joined, that no shard is about to have another owner, and
   * that shares are equal. A node that does not answer may be starting again.
   */
  async untilPlaced(): Promise<void> {
    const untilMs = performance.now() + placedMsMax
    for (const index of this.indexes)
      while (
        !(await this.status(index).then(
          status => this.isPlaced(status),
          () => false,
        ))
      ) {
        if (performance.now() > untilMs)
          throw new Error(`node ${this.nameOf(index)} does not see all shards at home after ${placedMsMax} ms`)
        await delay(lookMs)
      }
  }

  /** A counter of the log by kind of request, the sum over all nodes. */
  async logCounter(name: string, kind: string): Promise<number> {
    const all = await Promise.all(this.indexes.map(index => this.metrics(index)))
    return all.reduce((sum, metrics) => sum + metrics.value(`orrery_cluster_log_${name}_total`, { kind }), 0)
  }

  /** CPU seconds used so far. */
  cpuSeconds(): Cpu {
    const etcdMembers = this.engines.etcds.flatMap(({ members }) => members).map(({ pid }) => cpuSeconds(pid))
    return {
      nodes: this.servers.reduce((sum, { pid }) => sum + cpuSecondsOfAll(pid), 0),
      etcd: etcdMembers.reduce((sum, one) => sum + one, 0),
      etcdMembers,
    }
  }

  /** One node after the other, and then the etcd. Fails unless all nodes end well. */
  async stop(): Promise<void> {
    for (const server of this.servers) await server.stop()
    for (const end of [...this.ends].reverse()) await end()
  }

  private isPlaced(status: ClusterStatus): boolean {
    const owners = ownersIn(status)
    this.shardCount = owners.length
    const here = status.members.filter(member => member.status === 'alive' && member.isJoined)
    const shares = here.map(({ name }) => owners.filter(owner => owner === name).length)
    const isOwned = status.shards.every(({ owner }) => here.some(({ name }) => name === owner))
    const isAtHome = isOwned && status.shards.every(({ next }) => next === undefined)
    return here.length === this.places.length && isAtHome && Math.max(...shares) - Math.min(...shares) <= 1
  }

  private async status(index: number): Promise<ClusterStatus> {
    return (await this.ask(index, 'GET', '/cluster')).json() as Promise<ClusterStatus>
  }

  private async metrics(index: number): Promise<Exposition> {
    return parseExposition(await (await this.ask(index, 'GET', '/metrics')).text())
  }

  private async ask(index: number, method: string, path: string): Promise<Response> {
    const response = await fetch(this.urls[index]! + path, { method })
    if (!response.ok)
      throw new Error(`${method} ${path} at node ${this.nameOf(index)}: ${response.status} ${await response.text()}`)
    return response
  }
}

/** The register comes last. */
const ownersIn = (status: ClusterStatus): Owners => status.shards.slice(0, -1).map(({ owner }) => owner)
