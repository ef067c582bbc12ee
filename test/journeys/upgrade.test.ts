// An upgrade under load: three nodes and a real etcd run one build; node after node is replaced by another build, and
// then back again. Clients get only success and 503 with `Retry-After`, and no acknowledged value is lost, nor its
// notification.
//
// The older build comes from an archive (test/fixtures/README.md). `ORRERY_OLDER_MAIN` names the main.js of another
// one, for instance of a release.
//
// Clients leave a node before it is ended, as those behind a balancer do, and come back when it is ready.

import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { ClusterStatus } from '../../src/messages/cluster-status.js'
import { type BrokerProcess, freePort, startBroker, type Teardown, tempDir } from '../support/broker-process.js'
import { noEtcd, startEtcd } from '../support/etcd.js'
import { unpackOlderBuild } from '../support/older-build.js'
import { main } from '../support/project.js'
import { foundSmallCluster } from '../support/small-cluster.js'

const skip = noEtcd()
type Build = 'older' | 'current'

const names = ['a', 'b', 'c'] as const
const writers = 8
/** Each writer makes at least so many requests on each mix of builds. */
const roundsMin = 30
/** The pause of a writer between two rounds: shorter in the soak. */
const restMs = Number(process.env.UPGRADE_REST_MS ?? 50)
/** Longest wait for anything; below, the time between two checks. */
const waitMsMax = 60_000
const lookMs = 50
/** Most answers of 503 with `Retry-After`; more are a failure. */
const refusalsMax = 2_000

interface Place {
  readonly name: string
  readonly dataDir: string
  readonly listen: string
  readonly port: number
}

async function until<T>(what: string, look: () => Promise<T | undefined> | T | undefined): Promise<T> {
  const untilMs = performance.now() + waitMsMax
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    if (performance.now() > untilMs) throw new Error(`waited too long for ${what}`)
    await pause(lookMs)
  }
}

/** Three nodes, each of one build at a time. */
class Nodes {
  /** The nodes that clients may use. */
  readonly open = new Set<number>()
  private readonly running: BrokerProcess[] = []
  private readonly t: Teardown
  private readonly places: readonly Place[]
  private readonly shardLog: string
  private readonly mains: Readonly<Record<Build, string>>

  /** `mains`: the main.js of each build. */
  constructor(t: Teardown, places: readonly Place[], shardLog: string, mains: Readonly<Record<Build, string>>) {
    this.t = t
    this.places = places
    this.shardLog = shardLog
    this.mains = mains
  }

  url(index: number, path: string): URL {
    return new URL(path, `http://127.0.0.1:${this.places[index]!.port}`)
  }

  async start(index: number, build: Build): Promise<void> {
    const { name, dataDir, listen, port } = this.places[index]!
    const join = this.places.map(place => place.listen).join(',')
    const args = ['-nodeName', name, '-clusterListen', listen, '-clusterJoin', join, '-shardLog', this.shardLog]
    const options = { dataDir, port, args, main: this.mains[build], readyWaitMs: waitMsMax }
    this.running[index] = await startBroker(this.t, options)
    await until(`node ${name} to have its shards`, async () => {
      const { status } = await fetch(this.url(index, '/health/ready'))
      const cluster = (await (await fetch(this.url(index, '/cluster'))).json()) as ClusterStatus
      const isWhole = cluster.shards.every(({ owner }) => owner !== undefined)
      return (status === 200 && cluster.isJoined && isWhole) || undefined
    })
    this.open.add(index)
  }

  async replace(index: number, build: Build): Promise<void> {
    this.open.delete(index)
    const { code, stderr } = await this.running[index]!.kill('SIGTERM')
    assert.equal(code, 0, `node ${this.places[index]!.name} ends well: ${stderr}`)
    await this.start(index, build)
  }

  /** The messages that a node could not decode, with their sender: there must be none. */
  async undecodable(): Promise<readonly string[]> {
    const found: string[] = []
    for (const index of this.open) {
      const { node, members } = (await (await fetch(this.url(index, '/cluster'))).json()) as ClusterStatus
      for (const { name, undecodable } of members) if (undecodable) found.push(`${node}: ${undecodable} of ${name}`)
    }
    return found
  }

  printed(): string {
    return this.running.map(node => node.printed()).join('\n')
  }
}

/** Clients: each has an entity of its own that it counts up and reads, at one node after the other. */
class Load {
  readonly failures: string[] = []
  /** The acknowledged values of each entity. */
  readonly acknowledged = new Map<string, number[]>()
  refused = 0
  private readonly nodes: Nodes
  private readonly rounds = new Map<string, number>()
  private isOver = false
  private readonly ended: Promise<unknown>

  constructor(nodes: Nodes) {
    this.nodes = nodes
    this.ended = Promise.all(Array.from({ length: writers }, (_, number) => this.count(`lamp${number}`, number)))
  }

  /** Resolves when each writer has made `rounds` more rounds. */
  async more(rounds = roundsMin): Promise<void> {
    const before = new Map(this.rounds)
    const hasMore = ([id, now]: readonly [string, number]): boolean => now >= (before.get(id) ?? 0) + rounds
    await until('more of every writer', () => {
      if (this.failures.length > 0) return true
      return (this.rounds.size === writers && [...this.rounds].every(hasMore)) || undefined
    })
  }

  end(): Promise<unknown> {
    this.isOver = true
    return this.ended
  }

  private async count(id: string, seed: number): Promise<void> {
    const values: number[] = []
    this.acknowledged.set(id, values)
    for (let value = 1, turn = seed; !this.isOver && this.failures.length === 0; value++, turn++) {
      if (await this.succeeds(turn, 'PUT', `/v2/entities/${id}/attrs/level`, { type: 'Number', value }))
        values.push(value)
      const path = value % 10 === 0 ? '/v2/entities?type=Lamp&limit=100' : `/v2/entities/${id}?options=keyValues`
      await this.succeeds(turn + 1, 'GET', path)
      this.rounds.set(id, value)
      await pause(restMs)
    }
  }

  /** Whether a request has succeeded; any answer but success and 503 with `Retry-After` is a failure. */
  private async succeeds(turn: number, method: string, path: string, body?: object): Promise<boolean> {
    const open = [...this.nodes.open]
    const index = open[turn % open.length]!
    const sent = body && { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }
    try {
      const response = await fetch(this.nodes.url(index, path), { method, ...sent })
      const text = await response.text()
      if (response.ok) return true
      if (response.status === 503 && response.headers.has('retry-after')) {
        if (++this.refused > refusalsMax) this.failures.push('too many are told to come again')
        return false
      }
      this.failures.push(`${method} ${path} at node ${names[index]}: ${response.status} ${text}`)
    } catch (error) {
      this.failures.push(`${method} ${path} at node ${names[index]}: ${String((error as Error).cause ?? error)}`)
    }
    return false
  }
}

/** Opens a receiver that collects its notifications, as `id=level`. */
async function receiver(t: Teardown): Promise<{ readonly url: string; readonly received: ReadonlySet<string> }> {
  const received = new Set<string>()
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += String(chunk)
    const { data } = JSON.parse(text) as { data: { id: string; level: number }[] }
    for (const { id, level } of data) received.add(`${id}=${level}`)
    response.writeHead(204).end()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, received }
}

function olderMain(t: Test): string {
  const { main, commit } = unpackOlderBuild(t)
  t.comment(`the older build is commit ${commit}`)
  return main
}

t.test('nodes are replaced by those of another build and back, under load', { skip }, async t => {
  t.setTimeout(600_000)
  const older = process.env.ORRERY_OLDER_MAIN ?? olderMain(t)
  const { url, received } = await receiver(t)
  const etcd = await startEtcd(t, { args: ['--unsafe-no-fsync'] })
  await foundSmallCluster(etcd)
  const places: Place[] = []
  for (const name of names)
    places.push({ name, dataDir: tempDir(t), listen: `127.0.0.1:${await freePort()}`, port: await freePort() })
  const nodes = new Nodes(t, places, `etcd://${etcd.address().members.join(',')}`, { older, current: main })
  await Promise.all(names.map((_, index) => nodes.start(index, 'older')))

  const post = async (path: string, body: object): Promise<void> => {
    await until(`${path} to be created`, async () => {
      const headers = { 'Content-Type': 'application/json' }
      const { status } = await fetch(nodes.url(0, path), { method: 'POST', body: JSON.stringify(body), headers })
      assert(status === 201 || status === 503, `status ${status}`)
      return status === 201 || undefined
    })
  }
  for (let number = 0; number < writers; number++)
    await post('/v2/entities', { id: `lamp${number}`, type: 'Lamp', level: { type: 'Number', value: 0 } })
  const http = { url }
  const notification = { http, attrs: ['level'], attrsFormat: 'keyValues' }
  await post('/v2/subscriptions', { subject: { entities: [{ idPattern: '.*', type: 'Lamp' }] }, notification })

  const load = new Load(nodes)
  await load.more()
  for (const build of ['current', 'older'] as const)
    for (const [index, name] of names.entries()) {
      // From then on there are nodes of the older build alone: how these bear a busy machine is not our matter.
      const isLast = build === 'older' && index === names.length - 1
      if (isLast) await load.end()
      await nodes.replace(index, build)
      if (!isLast) await load.more()
      t.strictSame(load.failures, [], `nothing fails when node ${name} has become one of the ${build} build`)
      t.strictSame(await nodes.undecodable(), [], 'and the nodes understand each other')
    }
  await load.end()
  t.strictSame(load.failures, [])
  t.comment(`${load.refused} requests were told to come again`)

  for (const [id, values] of load.acknowledged) {
    const level = await until('a read', async () => {
      const response = await fetch(nodes.url(1, `/v2/entities/${id}/attrs/level/value`))
      return response.status === 200 ? Number(await response.text()) : undefined
    })
    t.ok(level >= values.at(-1)!, `${id} has at least the last value that was acknowledged`)
  }
  const lacking = (): string[] =>
    [...load.acknowledged].flatMap(([id, values]) =>
      values.flatMap(value => (received.has(`${id}=${value}`) ? [] : `${id}=${value}`)),
    )
  await until('all notifications', () => lacking().length === 0 || undefined).catch(() => {})
  t.strictSame(lacking(), [], 'every change that was acknowledged was notified')
  if (!t.passing()) t.comment(nodes.printed())
})
