// Three nodes and the etcd behind them, as real processes, with a network between them that can be cut: a node reaches
// the others and each member of etcd through doors only. Clients reach the nodes directly.
//
// Somebody looks after the nodes, as systemd would: one that ends by itself is started again, and what it has printed
// is kept.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { ClusterStatus } from '../../src/messages/cluster-status.js'
import { type BrokerProcess, freePort, spawnBroker, type Teardown, tempDir, untilReady } from './broker-process.js'
import type { Etcd } from './etcd.js'
import { Network } from './network.js'

export const nodeNames = ['a', 'b', 'c'] as const
export type NodeName = (typeof nodeNames)[number]

/** How long a node may take to start: it looks for the others, fetches what it lacks, and is given shards. */
const startMsMax = 60_000
/** How often a node may end by itself before that is taken for the test's failure. */
const endsMax = 20

/** What is started instead of the program, and with what in its environment. */
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
  /** Nodes that have ended by themselves: who, and the last lines of what they said. */
  readonly ended: string[] = []
  private readonly t: Teardown
  private readonly places: Readonly<Record<NodeName, Place>>
  private readonly processes = new Map<NodeName, BrokerProcess>()
  private readonly wanted = new Set<NodeName>()
  private lives = 0

  /** Starts the nodes over an etcd that is there; `main`: another program for each of them. */
  static async start(t: Teardown, etcd: Etcd, main?: (name: NodeName) => Program): Promise<ClusterScene> {
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
      places[name] = { dataDir: tempDir(t), port: await freePort(), args: [...words, ...shared], ...main?.(name) }
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

  /** What a node tells the operator. */
  async status(name: NodeName): Promise<ClusterStatus> {
    return (await (await fetch(`${this.baseUrl(name)}/cluster`)).json()) as ClusterStatus
  }

  dataDir(name: NodeName): string {
    return this.places[name].dataDir
  }

  /** Starts a node on what it has on disk, and looks after it from now on; resolves when it can be used. */
  async begin(name: NodeName): Promise<void> {
    this.wanted.add(name)
    await this.spawn(name)
    await this.untilReady(name)
  }

  /** As `kill -9`; nobody starts it again. */
  async kill(name: NodeName): Promise<void> {
    this.wanted.delete(name)
    await this.processes.get(name)?.kill('SIGKILL')
  }

  /** Ends a node as an operator does, and starts it again; resolves with its exit status when it can be used. */
  async restart(name: NodeName): Promise<number | null> {
    this.wanted.delete(name)
    const exit = await this.processes.get(name)?.kill('SIGTERM')
    await this.begin(name)
    return exit?.code ?? null
  }

  /** Stops it from running without ending it; resolves when it stands still. */
  async stop(name: NodeName): Promise<void> {
    const broker = this.processes.get(name)
    broker?.signal('SIGSTOP')
    await Promise.all((broker?.processes ?? []).map(untilStopped))
  }

  goOn(name: NodeName): void {
    this.processes.get(name)?.signal('SIGCONT')
  }

  /** Resolves when the process that runs now, or the one started after it, can be used. */
  private async untilReady(name: NodeName): Promise<void> {
    for (;;) {
      const broker = this.processes.get(name)
      if (!broker) throw new Error(`node ${name} has not been started`)
      try {
        return await untilReady(broker, startMsMax)
      } catch (error) {
        // The one that takes its place is there in a moment.
        await pause(lookMs)
        if (this.processes.get(name) === broker) throw error
      }
    }
  }

  private async spawn(name: NodeName): Promise<void> {
    const broker = await spawnBroker(this.t, this.places[name])
    this.processes.set(name, broker)
    // Whoever is killed by the end of the test is not to be started again: what comes last is torn down first.
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

/** What the network calls a member of etcd. */
export const memberName = (at: number): string => `etcd${at}`

/** Between two looks whether a process stands still. */
const lookMs = 5
/** It stands still when its threads have left what they do in the kernel. */
const stopMsMax = 10_000

/** Resolves when the kernel says that a process is stopped, with all its threads. */
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

/** Keeps what a process has printed in the directory CLUSTER_LOGS, if there is one. */
function keep(life: string, printed: string): void {
  const folder = process.env.CLUSTER_LOGS
  if (folder === undefined) return
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, `${life}.log`), printed)
}
