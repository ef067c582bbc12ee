// The campaign: hostile requests against one running broker. Lanes send the requests of the generator, side by side. An
// honest client reads one entity again and again, and the owner of a tenant full of secrets continues to change it.
// Each answer is judged at once. After each thousand (`roundLength`) of requests:
//
// - the same processes run, no log line is forged, none reports an unexpected failure;
// - the honest client got its entity each time, and 999 of 1,000 times without many turns of others before it (measured
//   in processor time of the broker, so that a busy machine does not matter);
// - after a collection, and without the created data, the heap is no larger than after earlier rounds;
// - no prototype has changed, and a plain entity shows its stored content and nothing else;
// - no secret was in an answer, in a log line about others, or at a receiver of others; the owner's data is unchanged.

import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type BrokerProcess, freePort, startBroker, type Teardown, tempDir } from '../support/broker-process.js'
import type { HttpClient } from '../support/http-client.js'
import { Random } from '../support/random.js'
import type { Shot } from './draft.js'
import { HostileClient, type Observed } from './hostile-client.js'
import { HostileRequests } from './hostile-requests.js'
import { Inspector, isFailure, megabytes } from './inspector.js'
import { judge } from './judge.js'
import { vaultTenant } from './mutations.js'
import { PatientClient } from './patient-client.js'
import { HostileReceiver } from './receiver.js'
import { tenants } from './valid-requests.js'
import { Vault } from './vault.js'

export interface CampaignOptions {
  readonly server: 'node' | 'uws'
  readonly workers: number
  readonly requests: number
  readonly seed: number
}

export interface CampaignReport {
  /** The failures, at most `problemsMax` of them. */
  readonly problems: readonly string[]
  /** For a reader: figures about the requests and the answers. */
  readonly comments: readonly string[]
  readonly statuses: ReadonlyMap<number, number>
}

const roundLength = 1_000
const lanes = 12
/** Shots between two reads of the honest client; below, between two changes of the owner. */
const shotsPerProbe = 10
const shotsPerChange = 100
const problemsMax = 10
/** Processor time of the broker during one honest read: the 999th of 1,000. */
const probeMsMax = 500
/** Before that many shots the engine still compiles the code of the broker. */
const shotsUnmeasured = 1_000
/** Limit of the heap's growth after the rounds in which caches fill up. */
const growthBytesMax = 48 * 1024 * 1024
/** Share of the rounds in which caches fill up, such as the cache of recently used entities. */
const shareOfWarmUp = 0.1
const roundsOfWarmUpMin = 2
const pidTickMs = 10

interface Named {
  readonly id: string
  readonly type: string
}

const honest = { id: 'probe', type: 'Probe', name: 'ever the same' }
const plain = { id: 'plain', type: 'Plain', a: 1 }

export class Campaign {
  private readonly options: CampaignOptions
  private readonly problems: string[] = []
  private readonly comments: string[] = []
  private readonly statuses = new Map<number, number>()
  private readonly kinds = new Map<string, number>()
  private readonly waitsMs: number[] = []
  private readonly seenTenants = new Set<string>(tenants)
  private readonly seenPaths = new Set<string>(['/'])
  private readonly vault: Vault
  private readonly privateTexts: string[]
  private processes: readonly number[] = []
  private shots = 0
  private unknown = 0

  constructor(options: CampaignOptions) {
    this.options = options
    this.vault = new Vault(new Random(options.seed + 1))
    this.privateTexts = [this.vault.marker]
  }

  async run(t: Teardown): Promise<CampaignReport> {
    const { server, workers, seed } = this.options
    const directory = tempDir(t)
    const inspector = new Inspector(join(tempDir(t), 'inspection'), problem => this.report(problem))
    // Answers must not reveal where the broker keeps its data.
    this.privateTexts.push(directory)
    const ownReceiver = await openReceiver(t)
    const args = ['-multiservice', '-httpServer', server, '-workers', String(workers), '-durability', 'os']
    await this.plant(t, directory, args, ownReceiver)

    const receiver = new HostileReceiver(new Random(seed + 2), this.privateTexts)
    await receiver.open(t)
    const [port, nobody] = await Promise.all([freePort(), freePort()])
    const broker = await startBroker(t, {
      port,
      dataDir: directory,
      // Workers serve preflights; one node refuses them.
      args: [...args, ...optionsOfCampaign, ...(workers > 1 ? ['-corsOrigin', '__ALL'] : [])],
      ...inspector.process,
      readyWaitMs: 60_000,
    })
    broker.takeOutput()
    this.processes = broker.processes
    const targets = { receiver: receiver.port, nobody, broker: port }
    const generator = new HostileRequests(new Random(seed), targets, this.vault.subscriptionId)
    const beganMs = performance.now()
    await this.fire(broker, generator, receiver, inspector)
    this.summarize((performance.now() - beganMs) / 1000, receiver, inspector)
    await broker.kill('SIGTERM')
    return { problems: this.problems, comments: this.comments, statuses: this.statuses }
  }

  /** A first run of the broker stores the secrets, so that no log line of the second run is about that. */
  private async plant(t: Teardown, directory: string, args: readonly string[], ownReceiver: number): Promise<void> {
    const broker = await startBroker(t, { dataDir: directory, args, readyWaitMs: 60_000 })
    await this.vault.plant(broker.baseUrl, ownReceiver)
    const client = new PatientClient(broker.baseUrl)
    for (const entity of [honest, plain])
      await client.send('POST', '/v2/entities?options=keyValues', entity, { 'Ctx-Service': 'honest' })
    client.close()
    await broker.kill('SIGTERM')
  }

  private async fire(
    broker: BrokerProcess,
    generator: HostileRequests,
    receiver: HostileReceiver,
    inspector: Inspector,
  ): Promise<void> {
    const clients = Array.from({ length: lanes }, () => new HostileClient(broker.port))
    const owner = new PatientClient(broker.baseUrl)
    try {
      for (let left = this.options.requests; left > 0 && this.isGoingOn; left -= roundLength) {
        const until = this.shots + Math.min(left, roundLength)
        const lane = async (client: HostileClient): Promise<void> => {
          while (this.shots < until && this.isGoingOn) {
            this.shots++
            await this.one(client, generator)
          }
        }
        await Promise.all([this.probe(broker, owner, until), ...clients.map(lane)])
        if (this.isGoingOn) await this.look(broker, owner, receiver, inspector)
      }
    } catch (error) {
      this.report(`the broker cannot be reached: ${(error as Error).message}\n${broker.stderr.slice(-2_000)}`)
    } finally {
      for (const client of clients) client.close()
      owner.close()
    }
  }

  private get isGoingOn(): boolean {
    return this.problems.length < problemsMax
  }

  private report(problem: string): void {
    if (this.isGoingOn) this.problems.push(`after ${this.shots} requests: ${problem}`)
  }

  private async one(client: HostileClient, generator: HostileRequests): Promise<void> {
    const shot = generator.next()
    if (shot.tenant !== undefined) this.seenTenants.add(shot.tenant)
    for (const path of shot.servicePaths) if (/^(?:\/\w{1,50}){1,10}$/.test(path)) this.seenPaths.add(path)
    const observed = await client.fire(shot)
    const wrong = judge(shot, observed, this.privateTexts)
    if (wrong !== undefined) this.report(`${wrong}: ${shown(shot, observed)}`)
    const [first] = observed.answers
    add(this.kinds, shot.kind.split(' ')[0]!)
    if (!first) return
    add(this.statuses, first.status)
    if (first.status === 500 && first.text.includes('outcome is unknown')) this.unknown++
    const location = first.headers.get('location')
    if (first.status === 201 && location !== undefined) generator.learn(location)
  }

  /** The honest client reads and the owner of the vault writes while the lanes send. */
  private async probe(broker: BrokerProcess, owner: HttpClient, until: number): Promise<void> {
    const reader = new PatientClient(broker.baseUrl)
    let probes = 0
    for (let next = this.shots; this.shots < until && this.isGoingOn; next = this.shots + shotsPerProbe) {
      while (this.shots < Math.min(next, until) && this.isGoingOn) await pause(1)
      if (this.shots % shotsPerChange < shotsPerProbe) await this.vault.change(owner)
      // Every second read uses a new connection, which may go to another worker.
      const isNew = probes++ % 2 === 0
      const client = isNew ? new PatientClient(broker.baseUrl) : reader
      const spentBefore = this.spentMs()
      const beganMs = performance.now()
      const { text } = await client.get('/v2/entities/probe?options=keyValues', { 'Ctx-Service': 'honest' })
      const tookMs = performance.now() - beganMs
      const spent = this.spentMs().map((ms, index) => ms - (spentBefore[index] ?? 0))
      if (this.shots > shotsUnmeasured) this.waitsMs.push(Math.min(tookMs, Math.max(...spent)))
      if (text !== JSON.stringify(honest)) this.report(`the honest client got ${text.slice(0, 300)}`)
      if (isNew) client.close()
    }
    reader.close()
  }

  /** Processor time of each process of the broker so far. */
  private spentMs(): number[] {
    return this.processes.map(pid => {
      try {
        const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ')
        return (Number(fields[11]) + Number(fields[12])) * pidTickMs
      } catch {
        return Number.POSITIVE_INFINITY
      }
    })
  }

  /** The checks after a round. */
  private async look(
    broker: BrokerProcess,
    owner: HttpClient,
    receiver: HostileReceiver,
    inspector: Inspector,
  ): Promise<void> {
    const now = broker.processes
    if (now.join() !== this.processes.join()) this.report(`processes ${this.processes} became ${now}\n${broker.stderr}`)
    await this.tidy(owner)
    const live = await owner.get('/health/live')
    if (live.status !== 200) this.report(`/health/live answers ${live.status}`)
    const { text } = await owner.get('/v2/entities/plain?options=keyValues', { 'Ctx-Service': 'honest' })
    if (text !== JSON.stringify(plain)) this.report(`the plain entity became ${text.slice(0, 300)}`)
    const stolen = await this.vault.problem(owner)
    if (stolen !== undefined) this.report(stolen)
    for (const leak of receiver.leaks.splice(0)) this.report(`a secret was sent to a hostile receiver: ${leak}`)
    inspector.readLog(broker.takeOutput(), line => this.checkLine(line))
    await inspector.inspect()
    this.checkHeaps(inspector.heaps)
    const sorted = [...this.waitsMs].sort((a, b) => a - b)
    const wait = sorted[Math.ceil(sorted.length * 0.999) - 1] ?? 0
    if (wait > probeMsMax) this.report(`the honest client waited ${wait.toFixed(0)} ms of processor time`)
  }

  /** Removes the entities and documents of hostile requests, and resets the log settings. */
  private async tidy(owner: HttpClient): Promise<void> {
    await owner.send('DELETE', '/log/trace')
    await owner.send('PUT', '/admin/log?level=INFO&lineMaxSize=32768&infoPayloadMaxSize=5120&deprecate=false')
    for (const tenant of this.seenTenants) {
      if (!/^\w{0,50}$/.test(tenant) || tenant === vaultTenant) continue
      const headers: Record<string, string> = tenant === '' ? {} : { 'Ctx-Service': tenant }
      for (const documents of ['subscriptions', 'registrations']) {
        const { json } = await owner.get(`/v2/${documents}?limit=1000`, headers)
        for (const { id } of json as { id: string }[])
          await owner.send('DELETE', `/v2/${documents}/${id}`, undefined, headers)
      }
      await this.removeEntities(owner, headers)
    }
  }

  /** Removes entities path by path. The attribute `servicePath` does not help: a stored attribute may have its name. */
  private async removeEntities(owner: HttpClient, headers: Readonly<Record<string, string>>): Promise<void> {
    for (let left = 20; ; left--) {
      const { json } = await owner.get('/v2/entities?limit=1&options=keyValues', headers)
      if ((json as unknown[]).length === 0) return
      if (left === 0)
        return this.report(`entities of ${JSON.stringify(headers)} cannot be removed: ${JSON.stringify(json)}`)
      for (const path of this.seenPaths) {
        const there = { ...headers, 'Ctx-ServicePath': path }
        const found = (await owner.get('/v2/entities?limit=1000&options=keyValues', there)).json as Named[]
        if (found.length === 0) continue
        const entities = found.map(({ id, type }) => ({ id, type }))
        const answer = await owner.send('POST', '/v2/op/update', { actionType: 'delete', entities }, there)
        // After a 500 the outcome of some may be unknown: the next round finds them.
        if (answer.status !== 204 && answer.status !== 500)
          return this.report(`removing entities: ${answer.status} ${answer.text.slice(0, 300)}`)
      }
    }
  }

  private checkLine(line: string): void {
    if (line.includes(this.vault.marker) && !ofVault.test(line))
      this.report(`a secret in the log: ${line.slice(0, 500)}`)
    if (isFailure(line) && !ofMessages.test(line)) this.report(`the log says: ${line.slice(0, 1_000)}`)
  }

  private checkHeaps(heaps: readonly number[]): void {
    const rounds = Math.ceil(this.options.requests / roundLength)
    const warmUp = Math.max(roundsOfWarmUpMin, Math.floor(rounds * shareOfWarmUp))
    const first = Math.min(...heaps.slice(warmUp, warmUp + 3))
    const last = Math.min(...heaps.slice(-3))
    if (heaps.length > warmUp + 3 && last - first > growthBytesMax)
      this.report(`the heap has grown by ${megabytes(last - first)} MB: ${heaps.map(megabytes).join(' ')}`)
  }

  private summarize(seconds: number, receiver: HostileReceiver, inspector: Inspector): void {
    const { server, workers, seed } = this.options
    const sorted = [...this.waitsMs].sort((a, b) => a - b)
    const wait = (share: number): string => (sorted[Math.ceil(sorted.length * share) - 1] ?? 0).toFixed(0)
    this.comments.push(
      `${server}, ${workers} workers, SEED=${seed}: ${this.shots} requests in ${seconds.toFixed(0)} s`,
      `by status: ${shares(this.statuses)}; of ${this.unknown} the outcome is unknown`,
      `by kind: ${shares(this.kinds)}`,
      inspector.figures,
      `honest reads: ${sorted.length}, p50 ${wait(0.5)} ms, p99.9 ${wait(0.999)} ms; notifications to hostile receivers: ${receiver.received}`,
    )
  }
}

/** A line about the requests of the vault's owner. */
const ofVault = /^time=\S+ \| lvl=\w+ \| corr=[^|]* \| trans=[^|]* \| from=[^|]* \| srv=vault \| /

/**
 * The documented log lines about messages that cannot be sent (docs/interface/notifications.md#http,
 * docs/interface/notifications.md#custom-notifications, docs/interface/notifications.md#modes).
 */
const ofMessages =
  /\| msg=Runtime Error \((?:not sending notification: |\w+ request to send is too large: |\S+ notification queue is full)/

const optionsOfCampaign = [
  '-logLevel',
  'INFO',
  '-httpTimeout',
  '500',
  '-cprForwardLimit',
  '4',
  '-viewMemory',
  '16',
  '-statCounters',
  '-statSemWait',
  '-statTiming',
  '-statNotifQueue',
]

const add = <K>(counts: Map<K, number>, key: K): void => void counts.set(key, (counts.get(key) ?? 0) + 1)

const shares = (counts: ReadonlyMap<unknown, number>): string =>
  [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([key, count]) => `${key} ${count}`)
    .join(', ')

function shown(shot: Shot, observed: Observed): string {
  const sent = Buffer.concat(shot.pieces).toString('latin1')
  return `${shot.kind}\n  sent ${JSON.stringify(sent.slice(0, 1_500))}\n  got ${JSON.stringify(observed.raw.slice(0, 600))}`
}

/** Opens a receiver for the notifications of the vault's owner. */
async function openReceiver(t: Teardown): Promise<number> {
  const server = createServer((request, response) => {
    request.resume()
    request.on('end', () => response.end())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}
