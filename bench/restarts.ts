// Clients' view of a rolling restart on a machine that is busy with other work: each node in turn ends and starts again,
// while other processes use every core that they get.
//
// Each client sends one request after the other, to the nodes in turn: updates, reads of one entity, and lists of a type,
// which need all owners. It leaves a node before that is stopped, as a load balancer does, and comes back when the node
// is ready. So every request must be answered.

import { type ChildProcess, spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Nodes, startNodes } from './nodes.js'
import { atMost, type Finding, information, percentile, progress, thousands } from './report.js'
import type { Subject } from './servers.js'

/** Entities, and their types: a list has a part of them. */
const entities = 60
const types = 4
/** Processes that do nothing but use a core. With nodes, engine and clients that is a load of some 20. */
const burners = 16
const clients = 12
/** Of each client, between two requests. */
const pauseMs = 20
/** Until the load has settled, and between two restarts. */
const settleMs = 10_000
const restMs = 3_000
const lookMs = 100

type Kind = 'update' | 'read' | 'list'

interface Answer {
  readonly status: number
  readonly text: string
}

export async function restarts(subject: Subject, folder: string, rounds: number): Promise<Finding[]> {
  const dataDir = join(folder, 'restarts')
  const nodes = await startNodes(subject, dataDir, 3)
  const others: ChildProcess[] = []
  const load = new Load(nodes)
  const took: number[] = []
  const loads: number[] = []
  try {
    await load.fill()
    for (let n = 0; n < burners; n++) others.push(spawn('sh', ['-c', 'while :; do :; done']))
    await delay(settleMs)
    load.begin()
    for (let round = 1; round <= rounds; round++)
      for (const index of nodes.indexes) {
        await delay(restMs)
        const beganMs = performance.now()
        await load.leave(index)
        await nodes.end(index)
        const endedMs = performance.now()
        await nodes.start(index)
        while (!(await load.isReady(index))) await delay(lookMs)
        load.comeBack(index)
        took.push(performance.now() - beganMs)
        loads.push(loadavg()[0]!)
        const [stop, whole] = [endedMs - beganMs, took.at(-1)!].map(inSeconds)
        progress(`round ${round}, node ${nodes.nameOf(index)}: ended after ${stop}, back after ${whole}`)
      }
    await delay(restMs)
  } finally {
    await load.end()
    for (const other of others) other.kill('SIGKILL')
  }
  await nodes.stop()
  rmSync(dataDir, { recursive: true })
  for (const [what, count] of load.failures) progress(`${count} times: ${what}`)
  const failed = [...load.failures.values()].reduce((sum, count) => sum + count, 0)
  return [
    information('restart of a node on a busy machine', `worst ${inSeconds(Math.max(...took))}`),
    information(
      'load of the machine meanwhile',
      `${Math.min(...loads).toFixed(0)} to ${Math.max(...loads).toFixed(0)}`,
    ),
    ...[...load.waits].map(([kind, waits]) =>
      information(`${kind}s, of ${thousands(waits.length)}`, shares.map(share => waitAt(waits, share)).join(', ')),
    ),
    atMost('failed requests', `${thousands(failed)} of ${thousands(load.count)}`, failed, 0, ''),
  ]
}

const shares = [0.5, 0.99, 1]

const inSeconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`

const waitAt = (waits: readonly number[], share: number): string =>
  `${share === 1 ? 'worst' : `p${share * 100}`} ${percentile(waits, share).toFixed(0)} ms`

/** The clients, and what they have seen. */
class Load {
  readonly failures = new Map<string, number>()
  readonly waits = new Map<Kind, number[]>([
    ['update', []],
    ['read', []],
    ['list', []],
  ])
  private readonly agent = new Agent({ keepAlive: true, maxSockets: clients })
  /** Nodes that clients do not use now, and the number of requests under way at each. */
  private readonly left = new Set<number>()
  private readonly under: number[]
  private running: Promise<void>[] = []
  private isOver = false

  constructor(private readonly nodes: Nodes) {
    this.under = nodes.indexes.map(() => 0)
  }

  get count(): number {
    return [...this.waits.values()].reduce((sum, { length }) => sum + length, 0)
  }

  /** Creates the entities, before the machine is busy. */
  async fill(): Promise<void> {
    for (let n = 0; n < entities; n++) {
      const entity = { id: `E${n}`, type: typeOf(n), n: { value: 0 } }
      const { status, text } = await this.send(n % this.under.length, 'POST', '/v2/entities', entity)
      if (status !== 201) throw new Error(text)
    }
  }

  begin(): void {
    this.running = Array.from({ length: clients }, (_, client) => this.run(client))
  }

  async end(): Promise<void> {
    this.isOver = true
    await Promise.all(this.running)
    this.agent.destroy()
  }

  /** Resolves when no client waits for an answer of a node any more. */
  async leave(index: number): Promise<void> {
    this.left.add(index)
    while (this.under[index]! > 0) await delay(lookMs)
  }

  comeBack(index: number): void {
    this.left.delete(index)
  }

  async isReady(index: number): Promise<boolean> {
    const answer = await this.send(index, 'GET', '/health/ready').catch(() => undefined)
    return answer?.status === 200
  }

  private async run(client: number): Promise<void> {
    for (let n = client; !this.isOver; n += clients) {
      let index = n % this.under.length
      while (this.left.has(index)) index = (index + 1) % this.under.length
      this.under[index]!++
      await this.request(n, index)
      this.under[index]!--
      await delay(pauseMs)
    }
  }

  /** Two of five requests are updates, two are lists. */
  private async request(n: number, index: number): Promise<void> {
    const kind: Kind = n % 5 < 2 ? 'update' : n % 5 < 3 ? 'read' : 'list'
    const entity = `/v2/entities/E${n % entities}`
    const beganMs = performance.now()
    const answer = await (kind === 'update'
      ? this.send(index, 'PATCH', `${entity}/attrs`, { n: { value: n } })
      : this.send(index, 'GET', kind === 'read' ? entity : `/v2/entities?type=${typeOf(n)}`)
    ).catch((error: Error): Answer => ({ status: 0, text: error.message }))
    this.waits.get(kind)!.push(performance.now() - beganMs)
    const isRight = answer.status < 300 && (kind !== 'list' || isWhole(answer.text))
    if (answer.status > 0 && isRight) return
    const what = `${kind}: ${answer.status} ${answer.text.slice(0, 200)}`
    this.failures.set(what, (this.failures.get(what) ?? 0) + 1)
  }

  private send(index: number, method: string, path: string, body?: unknown): Promise<Answer> {
    const headers = body === undefined ? {} : { 'Content-Type': 'application/json' }
    return new Promise((resolve, reject) => {
      const sent = request(this.nodes.urls[index]! + path, { agent: this.agent, method, headers }, response => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (part: string) => {
          text += part
        })
        response.on('end', () => resolve({ status: response.statusCode!, text }))
        response.on('error', reject)
      })
      sent.on('error', reject)
      sent.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }
}

const typeOf = (n: number): string => `T${n % types}`

const isWhole = (text: string): boolean => (JSON.parse(text) as unknown[]).length === entities / types
