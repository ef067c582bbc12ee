// Three nodes as processes over a real etcd: they find each other, divide the shards, and lose nothing when one is
// killed, stopped or drained, or when hot shards move.

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { deadLinkMs } from '../../cluster/member-links.js'
import type { Teardown } from '../support/broker-process.js'
import { noEtcd, startEtcd } from '../support/etcd.js'
import type { Counter } from './counting-host.js'
import type { CountingAnswer, CountingOrder, CountingSetting } from './counting-main.js'

const skip = noEtcd()
/** How long a read is repeated: nodes on a busy machine are slow. */
const readMsMax = 20_000
const shards = 8
/** Longest time after which writes to all shards must be answered again. */
const failoverMsMax = 6000

/** Without tap in each child, which would cost a second each. */
const { NODE_OPTIONS: _, ...withoutTap } = process.env

type Ending = Extract<CountingAnswer, { readonly number: number }>

class NodeProcess {
  readonly child: ChildProcess
  private readonly waiting = new Map<number, (answer: Ending) => void>()
  private number = 0
  address = ''

  constructor() {
    const main = fileURLToPath(new URL('./counting-main.js', import.meta.url))
    this.child = fork(main, { env: withoutTap, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    this.child.on('message', (answer: CountingAnswer) => {
      if ('number' in answer) {
        this.waiting.get(answer.number)?.(answer)
        this.waiting.delete(answer.number)
      }
    })
    this.child.once('exit', () => {
      for (const [number, onAnswer] of this.waiting) onAnswer({ kind: 'unknown', number })
      this.waiting.clear()
    })
  }

  async start(setting: CountingSetting): Promise<void> {
    this.child.send({ kind: 'start', setting } satisfies CountingOrder)
    const [answer] = (await once(this.child, 'message')) as [CountingAnswer]
    if (answer.kind !== 'ready') throw new Error(JSON.stringify(answer))
    this.address = answer.address
  }

  ask(order: (number: number) => CountingOrder): Promise<Ending> {
    const number = ++this.number
    return new Promise(resolve => {
      this.waiting.set(number, resolve)
      if (this.child.connected) this.child.send(order(number))
      else resolve({ kind: 'refused', number })
    })
  }
}

/** Three nodes, and the acknowledged writes. */
class Scene {
  readonly nodes: NodeProcess[] = []
  private readonly settings: CountingSetting[]
  private lives = 0
  private written = 0
  /** The highest acknowledged value of each shard's counter, and the number of raises with unknown outcome. */
  readonly acknowledged = new Map<number, number>()
  readonly unknown = new Map<number, number>()

  constructor(t: Teardown, settings: readonly CountingSetting[]) {
    this.settings = [...settings]
    t.teardown(() => {
      for (const { child } of this.nodes) child.kill('SIGKILL')
    })
  }

  async start(index: number): Promise<void> {
    const node = new NodeProcess()
    this.nodes[index] = node
    const seeds = this.nodes.flatMap(({ address }, at) => (at !== index && address !== '' ? [address] : []))
    await node.start({ ...this.settings[index]!, life: `life${this.lives++}`, seeds })
  }

  /** Raises a shard's counter through any node, once; returns whether it certainly happened. */
  async raise(shard: number, at: number): Promise<boolean> {
    const by = `write${this.written++}`
    const answer = await this.nodes[at]!.ask(number => ({ kind: 'raise', number, shard, entity: 'counter', by }))
    if (answer.kind === 'unknown') this.unknown.set(shard, (this.unknown.get(shard) ?? 0) + 1)
    if (answer.kind !== 'done') return false
    const { value } = answer.counter as Counter
    this.acknowledged.set(shard, Math.max(value, this.acknowledged.get(shard) ?? 0))
    return true
  }

  /** Raises each counter through the given nodes until all are acknowledged; returns the time that this took. */
  async untilAnswered(nodes: readonly number[]): Promise<number> {
    const began = performance.now()
    await Promise.all(
      Array.from({ length: shards }, async (_, shard) => {
        for (let turn = shard; !(await this.raise(shard, nodes[turn % nodes.length]!)); turn++) {
          await pause(50)
          if (performance.now() - began > 30_000) throw new Error(`shard ${shard} is not answered for`)
        }
      }),
    )
    return performance.now() - began
  }

  /** The errors of the counters, as one node reads them. */
  async differences(at: number): Promise<string[]> {
    const wrong: string[] = []
    for (let shard = 0; shard < shards; shard++) {
      const value = await this.read(at, shard)
      const least = this.acknowledged.get(shard) ?? 0
      const most = least + (this.unknown.get(shard) ?? 0)
      if (!(value >= least && value <= most)) wrong.push(`shard ${shard} has ${value}, not ${least} to ${most}`)
    }
    return wrong
  }

  /** The counter of a shard as a node reads it; NaN: not in time. While a shard moves, it has no owner. */
  private async read(at: number, shard: number): Promise<number> {
    const untilMs = performance.now() + readMsMax
    while (performance.now() < untilMs) {
      const answer = await this.nodes[at]!.ask(number => ({ kind: 'read', number, shard, entity: 'counter', by: '' }))
      if (answer.kind === 'done') return answer.counter?.value ?? 0
      await pause(50)
    }
    return Number.NaN
  }

  async owned(at: number): Promise<readonly number[]> {
    return (await this.status(at))?.owned ?? []
  }

  private async status(at: number): Promise<Extract<Ending, { kind: 'status' }> | undefined> {
    const answer = await this.nodes[at]!.ask(number => ({ kind: 'status', number }))
    return answer.kind === 'status' ? answer : undefined
  }

  /** Resolves when a node has no link to another one. Returns the time that this took. */
  async untilUnlinked(at: number, name: string): Promise<number> {
    const began = performance.now()
    while ((await this.status(at))?.linked.includes(name)) await pause(50)
    return performance.now() - began
  }

  /** The shards that a node owns, without the register. */
  async ownedEntities(at: number): Promise<readonly number[]> {
    return (await this.owned(at)).filter(shard => shard < shards)
  }

  /** Whether each node owns shards and all shards are owned. */
  async areDivided(nodes: readonly number[] = [0, 1, 2]): Promise<boolean> {
    const owned = await Promise.all(nodes.map(at => this.owned(at)))
    return owned.every(some => some.length > 0) && owned.flat().length === shards + 1
  }

  /** Resolves when that is so. */
  async settled(nodes: readonly number[]): Promise<void> {
    for (let tries = 0; tries < 400; tries++) {
      if (await this.areDivided(nodes)) return
      await pause(50)
    }
    throw new Error('the shards are not divided')
  }
}

t.test('three nodes find each other, divide the shards, and lose nothing', { skip }, async t => {
  t.setTimeout(400_000)
  const etcd = await startEtcd(t)
  const settings = ['a', 'b', 'c'].map(name => ({
    name,
    life: '',
    listen: '127.0.0.1:0',
    seeds: [],
    etcd: etcd.address(),
    shards,
    options: { recordsKept: 20, trimMs: 500 },
  }))
  const scene = new Scene(t, settings)
  for (const index of [0, 1, 2]) await scene.start(index)
  await scene.untilAnswered([0, 1, 2])
  await scene.settled([0, 1, 2])
  t.pass('each node owns something')
  for (let round = 0; round < 10; round++) await scene.untilAnswered([0, 1, 2])
  t.strictSame(await scene.differences(0), [], 'every node tells the same')

  const killing = scene.nodes[1]!.child
  killing.kill('SIGKILL')
  await once(killing, 'exit')
  const unlinked = Promise.all([0, 2].map(at => scene.untilUnlinked(at, 'b')))
  const failoverMs = await scene.untilAnswered([0, 2])
  t.ok(failoverMs < failoverMsMax, `writes are answered again ${failoverMs.toFixed(0)} ms after a kill`)
  const unlinkedMs = Math.min(...(await unlinked))
  t.ok(unlinkedMs < deadLinkMs, `a link to it ended after ${unlinkedMs.toFixed(0)} ms: its machine refuses connections`)
  t.strictSame(await scene.differences(0), [], 'nothing is lost')

  await scene.start(1)
  await scene.settled([0, 1, 2])
  t.pass('it comes back with nothing, and is given shards')
  t.strictSame(await scene.differences(1), [], 'which it has fetched')

  const stopped = scene.nodes[2]!.child
  stopped.kill('SIGSTOP')
  await scene.untilAnswered([0, 1])
  stopped.kill('SIGCONT')
  for (let round = 0; round < 5; round++) await scene.untilAnswered([0, 1])
  t.strictSame(await scene.differences(0), [], 'who was stopped has done nothing that it must not')

  await scene.nodes[0]!.ask(number => ({ kind: 'drain', number }))
  const drainedMs = await scene.untilAnswered([1])
  t.ok(drainedMs < 2000, `${drainedMs.toFixed(0)} ms after one was drained all shards are answered for`)
  t.strictSame(await scene.differences(1), [], 'nothing is lost')
})

t.test('two hot shards of one node get different owners while clients write, and lose nothing', { skip }, async t => {
  t.setTimeout(120_000)
  const etcd = await startEtcd(t)
  const hot = { loadMs: 500, hotMs: 1_000, hotPauseMs: 1_000, exchangeMs: 1_000, hotRequestsMin: 10 }
  const settings = ['a', 'b', 'c'].map(name => ({
    ...{ name, life: '', listen: '127.0.0.1:0', seeds: [], etcd: etcd.address(), shards },
    options: { ...hot, recordsKept: 20, trimMs: 200 },
  }))
  const scene = new Scene(t, settings)
  for (const index of [0, 1, 2]) await scene.start(index)
  await scene.untilAnswered([0, 1, 2])
  await scene.settled([0, 1, 2])
  const [first, second] = (await scene.ownedEntities(0)) as [number, number]
  const began = performance.now()
  const isApart = async (): Promise<boolean> => {
    const owned = await scene.ownedEntities(0)
    return !(owned.includes(first) && owned.includes(second)) && (await scene.areDivided())
  }
  while (!(await isApart())) {
    if (performance.now() - began > 60_000) throw new Error('the hot shards stay at one node')
    await Promise.all([first, second].flatMap(shard => [0, 1, 2].map(at => scene.raise(shard, at))))
  }
  t.comment(`${(performance.now() - began).toFixed(0)} ms until the hot shards have different owners`)
  const counts = await Promise.all([0, 1, 2].map(async at => (await scene.ownedEntities(at)).length))
  t.ok(Math.max(...counts) - Math.min(...counts) <= 1, `the shares are equal: ${counts}`)
  await scene.untilAnswered([0, 1, 2])
  for (const at of [0, 1, 2]) t.strictSame(await scene.differences(at), [], 'nothing is lost')
})
