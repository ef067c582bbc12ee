// Three nodes and their etcd, as real processes, with a network between them that can be cut: a node reaches the others
// and each member of etcd through doors only. Clients reach the nodes directly.
//
// The scene looks after the nodes, as systemd would. It starts a node again that ended by itself, and keeps the output.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { ClusterStatus } from '../../src/messages/cluster-status.js'
import { type BrokerProcess, freePort, spawnBroker, type Teardown, tempDir, untilReady } from './broker-process.js'
import type { Etcd } from './etcd.js'
import { Network } from './network.js'
import { foundSmallCluster } from './small-cluster.js'

export const nodeNames = ['a', 'b', 'c'] as const
export type NodeName = (typeof nodeNames)[number]

/** How long a node may take to start: it looks for the others, fetches missing rows, and receives shards. */
const startMsMax = 60_000
/** How often a node may end by itself before the test fails. */
const endsMax = 20

/** A program that is started instead of the built one, and its additional environment. */
export interface Program {
  readonly main: string
  readonly env: Readonly<Record<string, string>>
}

interface Place extends Partial<Program> {
  readonly dataDir: string
  readonly port: number
  readonly args: readonly string[]
}

export class ClusterScene {
  readonly network: Network
  readonly etcd: Etcd
  /** One entry for each node that ended by itself: its name and the last lines of its output. */
  readonly ended: string[] = []
  private readonly t: Teardown
  private readonly places: Readonly<Record<NodeName, Place>>
  private readonly processes = new Map<NodeName, BrokerProcess>()
  private readonly wanted = new Set<NodeName>()
  private lives = 0

  /** Starts the nodes over a running etcd; `main`: another program for each of them; `more`: further start options. */
  static async start(
    t: Teardown,
    etcd: Etcd,
    main?: (name: NodeName) => Program,
    more: readonly string[] = [],
  ): Promise<ClusterScene> {
    await foundSmallCluster(etcd)
    const network = new Network(t)
    const doors: string[] = []
    for (const [at, { address }] of etcd.members.entries()) doors.push(await network.door(memberName(at), address))
    const listening: string[] = []
    const found: string[] = []
    for (const name of nodeNames) {
      const listen = `127.0.0.1:${await freePort()}`
      listening.push(listen)
      found.push(await network.door(name, listen))
    }
    const places: Partial<Record<NodeName, Place>> = {}
    for (const [at, name] of nodeNames.entries()) {
      const words = ['-nodeName', name, '-clusterListen', listening[at]!, '-clusterAddress', found[at]!]
      const shared = ['-clusterJoin', found.join(','), '-shardLog', `etcd://${doors.join(',')}`, '-replicas', '3']
      places[name] = {
        dataDir: tempDir(t),
        port: await freePort(),
        args: [...words, ...shared, ...more],
        ...main?.(name),
      }
    }
    const scene = new ClusterScene(t, network, etcd, places as Record<NodeName, Place>)
    await Promise.all(nodeNames.map(name => scene.begin(name)))
    return scene
  }

  private constructor(t: Teardown, network: Network, etcd: Etcd, places: Readonly<Record<NodeName, Place>>) {
    this.t = t
    this.network = network
    this.etcd = etcd
    this.places = places
    for (const name of nodeNames) network.name(name, () => this.processes.get(name)?.processes ?? [])
  }

  baseUrl(name: NodeName): string {
    return `http://127.0.0.1:${this.places[name].port}`
  }

  /** The node's state, as the operator sees it. */
  async status(name: NodeName): Promise<ClusterStatus> {
    return (await (await fetch(`${this.baseUrl(name)}/cluster`)).json()) as ClusterStatus
  }

  dataDir(name: NodeName): string {
    return this.places[name].dataDir
  }

  /** Starts a node on its data directory, and looks after it from now on; resolves when it can be used. */
  async begin(name: NodeName): Promise<void> {
    this.wanted.add(name)
    await this.spawn(name)
    await this.untilReady(name)
  }

  /** As `kill -9`; the scene does not start it again. */
  async kill(name: NodeName): Promise<void> {
    this.wanted.delete(name)
    await this.processes.get(name)?.kill('SIGKILL')
  }

  /** Ends a node as an operator does, and starts it again; resolves with the exit status when the node can be used. */
  async restart(name: NodeName): Promise<number | null> {
    this.wanted.delete(name)
    const exit = await this.processes.get(name)?.kill('SIGTERM')
    await this.begin(name)
    return exit?.code ?? null
  }

  /** Stops a node with SIGSTOP, without ending it; resolves when it is stopped. */
  async stop(name: NodeName): Promise<void> {
    const broker = this.processes.get(name)
    broker?.signal('SIGSTOP')
    await Promise.all((broker?.processes ?? []).map(untilStopped))
  }

  goOn(name: NodeName): void {
    this.processes.get(name)?.signal('SIGCONT')
  }

  /** Resolves when the running process, or the one started after it, can be used. */
  private async untilReady(name: NodeName): Promise<void> {
    for (;;) {
      const broker = this.processes.get(name)
      if (!broker) throw new Error(`node ${name} has not been started`)
      try {
        return await untilReady(broker, startMsMax)
      } catch (error) {
        // The process that replaces it is there in a moment.
        await pause(lookMs)
        if (this.processes.get(name) === broker) throw error
      }
    }
  }

  private async spawn(name: NodeName): Promise<void> {
    const broker = await spawnBroker(this.t, this.places[name])
    this.processes.set(name, broker)
    // Teardowns run last to first: this one runs before the one that kills, so a killed node is not started again.
    this.t.teardown(() => this.wanted.clear())
    const life = this.lives++
    void broker.exited.then(({ code, signal }) => {
      keep(`${name}-${life}`, broker.printed())
      if (!this.wanted.has(name) || this.processes.get(name) !== broker) return
      this.ended.push(
        `${name} ended with ${signal ?? code}: ${broker.printed().trimEnd().split('\n').slice(-3).join('\n')}`,
      )
      if (this.ended.length < endsMax) void this.spawn(name)
    })
  }
}

/** The name of a member of etcd in the network. */
export const memberName = (at: number): string => `etcd${at}`

/** The pause between two checks whether a process is stopped. */
const lookMs = 5
/** How long a process may take to stop: each thread first leaves its system call. */
const stopMsMax = 10_000

/** Resolves when the kernel reports that a process is stopped, with all its threads. */
export async function untilStopped(pid: number): Promise<void> {
  const untilMs = performance.now() + stopMsMax
  while (!isStopped(pid)) {
    if (performance.now() > untilMs) throw new Error(`process ${pid} does not stop`)
    await pause(lookMs)
  }
}

function isStopped(pid: number): boolean {
  const threads = readdirSync(`/proc/${pid}/task`)
  return threads.every(id => /^\d+ \(.*\) [Tt] /.test(readFileSync(`/proc/${pid}/task/${id}/stat`, 'utf8')))
}

/** Keeps the output of a process in the directory CLUSTER_LOGS, if that is set. */
function keep(life: string, printed: string): void {
  const folder = process.env.CLUSTER_LOGS
  if (folder === undefined) return
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, `${life}.log`), printed)
}
