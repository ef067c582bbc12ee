// Three nodes over an etcd, or several, that a test stops, fills or empties: their state, and the writes that clients
// know of.

import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Etcd3, IKeyValue } from 'etcd3'
import type { Test } from 'tap'
import type { ClusterStatus } from '../../src/messages/cluster-status.js'
import { type BrokerProcess, freePort, spawnBroker, startBroker, tempDir } from './broker-process.js'
import { type Etcd, startEtcd } from './etcd.js'
import { foundSmallCluster, smallPlacement } from './small-cluster.js'

export const names = ['a', 'b', 'c'] as const
export const entities = 12
/** The shards of entities, and the register. */
export const shardCount = smallPlacement.shards + 1
/** The bound of every wait, and the pause between two looks. */
export const waitMsMax = 60_000
const lookMs = 50
/** How long a client waits for an answer; without an answer a write is not acknowledged. */
const answerMsMax = 20_000

interface Place {
  readonly dataDir: string
  readonly port: number
  readonly args: readonly string[]
}

/** The value of the option that names these etcds. */
export const shardLogOf = (etcds: readonly Etcd[]): string =>
  etcds.map(etcd => `etcd://${etcd.address().members.join(',')}`).join(' ')

/** Three nodes over their etcds, and the writes that clients know of. */
export class Scene {
  readonly t: Test
  /** One, or those among which the shards are divided. */
  readonly etcds: readonly Etcd[]
  readonly nodes: BrokerProcess[] = []
  readonly acknowledged = new Map<string, number>()
  /** The addresses at which the nodes listen for each other. */
  readonly listen: readonly string[]
  private readonly places: readonly Place[]

  static async start(t: Test, etcdFolder: string, etcdArgs: readonly string[] = [], count = 1): Promise<Scene> {
    const etcds: Etcd[] = []
    for (let n = 0; n < count; n++) {
      const dataDir = n === 0 ? etcdFolder : join(etcdFolder, `etcd${n}`)
      etcds.push(await startEtcd(t, { dataDir, args: etcdArgs }))
    }
    await foundSmallCluster(...etcds)
    const listen: string[] = []
    for (const _ of names) listen.push(`127.0.0.1:${await freePort()}`)
    // Each node learns of the others from the first one.
    const shared = ['-clusterJoin', listen[0]!, '-shardLog', shardLogOf(etcds)]
    const places: Place[] = []
    for (const [at, name] of names.entries()) {
      const args = ['-nodeName', name, '-clusterListen', listen[at]!, ...shared]
      places.push({ dataDir: tempDir(t), port: await freePort(), args })
    }
    const scene = new Scene(t, etcds, places, listen)
    await Promise.all(names.map((_, index) => scene.begin(index)))
    await scene.writeAll(1)
    return scene
  }

  private constructor(t: Test, etcds: readonly Etcd[], places: readonly Place[], listen: readonly string[]) {
    this.t = t
    this.listen = listen
    this.etcds = etcds
    this.places = places
  }

  /** The first etcd, or the only one. */
  get etcd(): Etcd {
    return this.etcds[0]!
  }

  /** Starts a node on its data directory, and waits until it can be used. `more`: options besides those of its place. */
  async begin(index: number, ...more: string[]): Promise<void> {
    const place = this.places[index]!
    const args = [...place.args, ...more]
    this.nodes[index] = await startBroker(this.t, { ...place, args, readyWaitMs: waitMsMax })
  }

  /** Starts a node and does not wait. */
  async spawn(index: number): Promise<BrokerProcess> {
    const node = await spawnBroker(this.t, this.places[index]!)
    this.nodes[index] = node
    return node
  }

  /**
   * Starts a node that has left, in a place where it does not find the others; resolves with it at once. The others do
   * not look for one that has left.
   */
  async spawnAlone(index: number): Promise<BrokerProcess> {
    const { dataDir, port } = this.places[index]!
    const nobody = `127.0.0.1:${await freePort()}`
    const place = ['-nodeName', names[index]!, '-clusterListen', `127.0.0.1:${await freePort()}`]
    const args = [...place, '-clusterJoin', nobody, '-shardLog', shardLogOf(this.etcds)]
    const node = await spawnBroker(this.t, { dataDir, port, args })
    this.nodes[index] = node
    return node
  }

  async send(
    index: number,
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ readonly status: number; readonly text: string }> {
    const headers = { 'Content-Type': 'application/json' }
    const sent = body === undefined ? {} : { body: JSON.stringify(body), headers }
    const signal = AbortSignal.timeout(answerMsMax)
    try {
      const response = await fetch(`http://127.0.0.1:${this.places[index]!.port}${path}`, { method, signal, ...sent })
      return { status: response.status, text: await response.text() }
    } catch {
      return { status: 0, text: '' }
    }
  }

  /**
   * The status of a node's answer to a GET. Only while the shard is moving, as shards do among nodes that have just
   * begun, the request is repeated.
   */
  async settledStatus(index: number, path: string): Promise<number> {
    return this.until(`${path} to be answered`, async () => {
      const { status, text } = await this.send(index, 'GET', path)
      return status === 503 && /its owner is changing/.test(text) ? undefined : status
    })
  }

  async writeAll(value: number): Promise<void> {
    for (let number = 0; number < entities; number++) {
      const entity = { id: `lamp${number}`, type: 'Lamp', level: { value, type: 'Number' } }
      await this.until(`${entity.id} to be written`, async () => {
        const { status } = await this.send(number % names.length, 'POST', '/v2/entities?options=upsert', entity)
        return status === 201 || status === 204 ? true : undefined
      })
      this.acknowledged.set(entity.id, value)
    }
  }

  /** All entities, as a node lists them once it can answer. */
  async answersOf(index: number): Promise<ReadonlyMap<string, number>> {
    return this.until('a list', async () => {
      const { status, text } = await this.send(index, 'GET', '/v2/entities?options=keyValues&limit=1000')
      if (status !== 200) return undefined
      return new Map((JSON.parse(text) as { id: string; level: number }[]).map(({ id, level }) => [id, level]))
    })
  }

  async status(index: number): Promise<ClusterStatus> {
    return JSON.parse((await this.send(index, 'GET', '/cluster')).text) as ClusterStatus
  }

  /** Waits until all nodes know the same position of every log. */
  async untilAlike(): Promise<void> {
    await this.until('the copies to be alike', async () => {
      const statuses = await Promise.all(names.map((_, index) => this.status(index)))
      const known = statuses.map(({ shards }) => JSON.stringify(shards.map(shard => [shard.owner, shard.known])))
      return new Set(known).size === 1 ? true : undefined
    })
  }

  async untilReady(index: number, isReady: boolean): Promise<string> {
    return this.until(`node ${names[index]} to be ${isReady ? '' : 'not '}ready`, async () => {
      const { status, text } = await this.send(index, 'GET', '/health/ready')
      return status === (isReady ? 200 : 503) ? text : undefined
    })
  }

  /** Waits until a node is not ready for this reason; before, it may be unready for another one. */
  async untilUnready(index: number, reason: RegExp): Promise<void> {
    await this.until(`node ${names[index]} to be not ready: ${reason}`, async () => {
      const { status, text } = await this.send(index, 'GET', '/health/ready')
      return (status === 503 && reason.test(text)) || undefined
    })
  }

  /** Waits for the line of a node's log that says so; it may come later than an answer of the node. */
  async untilRaised(index: number, reason = /Raising/): Promise<void> {
    await this.until(`node ${names[index]} to raise the alarm: ${reason}`, async () => {
      const latest = this.alarms(index).at(-1) ?? ''
      return (/Raising/.test(latest) && reason.test(latest)) || undefined
    })
  }

  async until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
    const untilMs = performance.now() + waitMsMax
    for (;;) {
      const found = await look()
      if (found !== undefined) return found
      if (performance.now() > untilMs)
        throw new Error(
          `waited too long for ${what}\n${this.nodes.map(node => node.printed().slice(-3000)).join('\n')}`,
        )
      await pause(lookMs)
    }
  }

  /** All keys of the cluster in etcd, now or at a revision. */
  async keys(client: Etcd3, revision?: string): Promise<readonly IKeyValue[]> {
    const all = client.getAll().prefix('/orrery/')
    return (await (revision === undefined ? all : all.revision(revision)).exec()).kvs
  }

  /** The lines of a node's log about the alarm that its log engine raises. */
  alarms(index: number): readonly string[] {
    return this.lines(index, 'WARN').filter(line => /ing alarm ClusterLogError/.test(line))
  }

  /** The lines of a node's log at a level. */
  lines(index: number, level: string): readonly string[] {
    return this.nodes[index]!.printed()
      .split('\n')
      .filter(line => line.includes(`lvl=${level}`))
  }
}
