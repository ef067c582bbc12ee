// Three nodes of a cluster as the broker of lives. A node is killed and comes back, is restarted, or hands its shards
// over and takes some back. Clients use the nodes that run.

import { setTimeout as pause } from 'node:timers/promises'
import type { Teardown } from '../support/broker-process.js'
import { ClusterScene, type NodeName, nodeNames } from '../support/cluster-scene.js'
import { startEtcd } from '../support/etcd.js'
import type { Random } from '../support/random.js'
import { isSettled } from '../support/three-nodes.js'
import type { LifePlace } from './feed-life.js'

const settledMsMax = 120_000
const drainedMsMax = 60_000
const lookMs = 50
/** A node's streams may learn so late that owners have changed. */
const noticedMsMax = 1_500

export const nodeDisturbances = ['kill', 'drain', 'restart'] as const
export type NodeDisturbance = (typeof nodeDisturbances)[number]

export class NodesPlace implements LifePlace {
  /** How long an ask between nodes may take, and a little more. */
  readonly settleMs = 2_500
  readonly forgets = false
  readonly lagMsMax = Number.POSITIVE_INFINITY
  /** The next disturbance. */
  next: NodeDisturbance = 'kill'
  private isQuiet = true
  private disturbedMs = 0
  private readonly down = new Set<NodeName>()

  private constructor(private readonly scene: ClusterScene) {}

  static async start(t: Teardown): Promise<NodesPlace> {
    const etcd = await startEtcd(t, { args: ['--unsafe-no-fsync'] })
    const place = new NodesPlace(await ClusterScene.start(t, etcd, undefined, ['-multiservice']))
    await place.settle()
    return place
  }

  /** From the first disturbance until the cluster has settled, shards may move at any time: the last such moment. */
  get disturbances(): number {
    if (!this.isQuiet) this.disturbedMs = Math.ceil(performance.now())
    return this.disturbedMs
  }

  url(random: Random): string {
    const up = nodeNames.filter(name => !this.down.has(name)) as [NodeName, ...NodeName[]]
    return this.scene.baseUrl(random.pick(up))
  }

  async disturb(random: Random): Promise<string> {
    const name = random.pick(nodeNames)
    this.isQuiet = false
    const { scene, down, next } = this
    down.add(name)
    if (next === 'kill') {
      await scene.kill(name)
      await pause(random.between(0, 2_500))
      await scene.begin(name)
    } else if (next === 'restart') await scene.restart(name)
    else {
      down.delete(name)
      await this.drain(name)
      await pause(random.between(0, 500))
      await this.expect(204, 'DELETE', name)
    }
    down.delete(name)
    return `${next} of ${name}`
  }

  /** Waits until every shard has the owner that it should have. */
  async settle(): Promise<void> {
    const untilMs = performance.now() + settledMsMax
    for (;;) {
      const views = await Promise.all(nodeNames.map(name => this.scene.status(name)))
      if (views.every(isSettled)) break
      if (performance.now() > untilMs) throw new Error('the nodes have not settled')
      await pause(lookMs)
    }
    await pause(noticedMsMax)
    this.disturbedMs = Math.ceil(performance.now())
    this.isQuiet = true
  }

  /** The node answers 503 until it has handed everything over. */
  private async drain(name: NodeName): Promise<void> {
    const untilMs = performance.now() + drainedMsMax
    while ((await this.ask('POST', name)) !== 204) {
      if (performance.now() > untilMs) throw new Error(`node ${name} is not drained`)
      await pause(lookMs)
    }
  }

  private async expect(status: number, method: string, name: NodeName): Promise<void> {
    const found = await this.ask(method, name)
    if (found !== status) throw new Error(`${method} /cluster/drain of ${name}: ${found}`)
  }

  private async ask(method: string, name: NodeName): Promise<number> {
    const response = await fetch(`${this.scene.baseUrl(name)}/cluster/drain`, { method })
    await response.arrayBuffer()
    return response.status
  }
}
