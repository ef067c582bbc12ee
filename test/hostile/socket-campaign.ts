// The campaign against WebSockets: lanes send the shots of the generator to one running broker, side by side. A
// well-behaved neighbour watches one entity, which an honest client changes all the time. After each round:
//
// - the broker runs, prints nothing on standard error, and its log reports no failure;
// - the neighbour has received every change, once and in order;
// - when the hostile clients have gone, only the streams, filters and connections of the neighbour are left;
// - after a collection the heap is no larger than after the first rounds, and no prototype has changed.

import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type BrokerProcess, startBroker, type Teardown, tempDir } from '../support/broker-process.js'
import { Random } from '../support/random.js'
import { type SocketMessage, StreamSocketClient } from '../support/stream-socket-client.js'
import { HostileSocket } from './hostile-socket.js'
import { Inspector, isFailure, megabytes } from './inspector.js'
import { PatientClient } from './patient-client.js'
import { type SocketShot, SocketShots } from './socket-shots.js'

export interface SocketCampaignOptions {
  readonly server: 'node' | 'uws'
  readonly shots: number
  readonly seed: number
}

export interface SocketCampaignReport {
  /** The failures, at most `problemsMax` of them. */
  readonly problems: readonly string[]
  /** For a reader: figures about the shots. */
  readonly comments: readonly string[]
  /** How many shots of each kind were sent. */
  readonly kinds: ReadonlyMap<string, number>
}

const roundLength = 500
const lanes = 8
/** Shots between two changes of the neighbour's entity. */
const shotsPerChange = 5
/** Connections that a hostile client has left half-used. */
const halvesMax = 30
const problemsMax = 10
const settledWaitMs = 60_000
/** Rounds in which caches fill up, and the limit of the heap's growth after them. */
const roundsOfWarmUp = 2
const growthBytesMax = 48 * 1024 * 1024

/** The broker's numbers of connections when only the neighbour and the honest client are left. */
const settled: Readonly<Record<string, (value: number) => boolean>> = {
  'orrery_streams{transport="websocket"}': value => value === 1,
  orrery_stream_filters: value => value === 1,
  orrery_stream_waiting_bytes: value => value === 0,
  orrery_http_connections: value => value <= 2,
}

export class SocketCampaign {
  private readonly problems: string[] = []
  private readonly kinds = new Map<string, number>()
  private readonly halves: HostileSocket[] = []
  private shots = 0
  private connections = 0
  private changes = 0
  private longestMs = 0

  constructor(private readonly options: SocketCampaignOptions) {}

  async run(t: Teardown): Promise<SocketCampaignReport> {
    const { server, shots, seed } = this.options
    const inspector = new Inspector(join(tempDir(t), 'inspection'), problem => this.report(problem))
    // A small buffer of changes is full after the first rounds, so that the heap grows no more.
    const args = [
      '-multiservice',
      '-httpServer',
      server,
      '-durability',
      'os',
      '-streamBuffer',
      '2',
      '-logLevel',
      'INFO',
    ]
    const broker = await startBroker(t, { args, ...inspector.process })
    broker.takeOutput()
    const honest = new PatientClient(broker.baseUrl)
    const neighbour = await StreamSocketClient.open(t, `ws://127.0.0.1:${broker.port}/v2/stream?tenant=neighbour`)
    await neighbour.watch('n', { type: 'Neighbour', options: 'keyValues' })
    const generator = new SocketShots(new Random(seed))
    const beganMs = performance.now()
    try {
      for (let left = shots; left > 0 && this.isGoingOn; left -= roundLength) {
        const until = this.shots + Math.min(left, roundLength)
        const lane = (): Promise<void> => this.lane(broker.port, generator, until)
        await Promise.all([this.change(honest, neighbour, until), ...Array.from({ length: lanes }, lane)])
        await this.look(broker, honest, neighbour, inspector)
      }
    } catch (error) {
      this.report(`the broker cannot be reached: ${(error as Error).message}\n${broker.stderr.slice(-2_000)}`)
    }
    honest.close()
    const comments = this.figures((performance.now() - beganMs) / 1000, inspector)
    if (this.isGoingOn) {
      const { code } = await broker.kill('SIGTERM')
      if (code !== 0) this.report(`the broker ended with ${code}`)
    }
    return { problems: this.problems, comments, kinds: this.kinds }
  }

  private get isGoingOn(): boolean {
    return this.problems.length < problemsMax
  }

  private report(problem: string): void {
    if (this.isGoingOn) this.problems.push(`after ${this.shots} shots: ${problem}`)
  }

  /** One client: a connection serves for as many shots as it survives. */
  private async lane(port: number, generator: SocketShots, until: number): Promise<void> {
    let line: HostileSocket | undefined
    while (this.shots < until && this.isGoingOn) {
      this.shots++
      const shot = generator.next()
      this.kinds.set(shot.kind, (this.kinds.get(shot.kind) ?? 0) + 1)
      const isOwn = shot.then === 'handshake'
      const isNew = isOwn || !line || line.isOver
      if (isNew) this.connections++
      const one: HostileSocket = isOwn ? await HostileSocket.to(port) : isNew ? await HostileSocket.open(port) : line!
      const wrong = await one.fire(shot)
      if (wrong !== undefined) this.report(`${wrong}: ${shown(shot)}`)
      if (isOwn) one.leave()
      else line = shot.then === 'goes on' ? one : this.finish(one, shot)
    }
    line?.leave()
  }

  /** Ends the connection of such a shot; some stay as they are for a while. */
  private finish(one: HostileSocket, { then }: SocketShot): undefined {
    if (then !== 'half' && then !== 'fin') return one.leave() as undefined
    this.halves.push(one)
    if (this.halves.length > halvesMax) this.halves.shift()!.leave()
    return undefined
  }

  /** The honest client changes the entity of the neighbour while the lanes send. */
  private async change(honest: PatientClient, neighbour: StreamSocketClient, until: number): Promise<void> {
    const headers = { 'Ctx-Service': 'neighbour' }
    for (let next = this.shots; this.shots < until && this.isGoingOn; next += shotsPerChange) {
      while (this.shots < Math.min(next, until) && this.isGoingOn) await pause(1)
      const level = ++this.changes
      const entity = { id: 'n', type: 'Neighbour', level }
      const beganMs = performance.now()
      const { status } = await honest.send('POST', '/v2/entities?options=upsert,keyValues', entity, headers)
      if (status >= 300) this.report(`the honest client got ${status}`)
      await neighbour.until('a change', () => neighbour.events('n').length >= level, settledWaitMs)
      this.longestMs = Math.max(this.longestMs, performance.now() - beganMs)
    }
  }

  /** The checks after a round. */
  private async look(
    broker: BrokerProcess,
    honest: PatientClient,
    neighbour: StreamSocketClient,
    inspector: Inspector,
  ): Promise<void> {
    for (const half of this.halves.splice(0)) half.leave()
    if (broker.gone) return this.report(`the broker has ended\n${broker.printed().slice(-3_000)}`)
    if (broker.stderr !== '') this.report(`standard error: ${broker.stderr.slice(0, 1_000)}`)
    inspector.readLog(broker.takeOutput(), line => {
      if (isFailure(line)) this.report(`the log says: ${line.slice(0, 1_000)}`)
    })
    const levels = neighbour.events('n').map((event: SocketMessage) => event.data?.[0]?.level)
    const isWhole = levels.length === this.changes && levels.every((level, at) => level === at + 1)
    if (!isWhole) this.report(`the neighbour has received ${levels.join().slice(0, 2_000)}`)
    if ((await neighbour.ask({ op: 'ping' })).op !== 'pong') this.report('the neighbour is not answered')
    if ((await honest.get('/health/live')).status !== 200) this.report('/health/live is not answered')
    await this.settle(honest)
    await inspector.inspect()
    this.checkHeaps(inspector.heaps)
  }

  private async settle(honest: PatientClient): Promise<void> {
    const untilMs = performance.now() + settledWaitMs
    for (;;) {
      const { text } = await honest.get('/metrics')
      const wrong = Object.entries(settled)
        .map(([name, isSo]) => ({ name, isSo, value: metricOf(text, name) }))
        .filter(({ isSo, value }) => !isSo(value))
      if (wrong.length === 0) return
      if (performance.now() > untilMs) return this.report(wrong.map(({ name, value }) => `${name} is ${value}`).join())
      await pause(50)
    }
  }

  private checkHeaps(heaps: readonly number[]): void {
    const growth = heaps.at(-1)! - (heaps[roundsOfWarmUp - 1] ?? Number.POSITIVE_INFINITY)
    if (growth > growthBytesMax) this.report(`the heap has grown: ${heaps.map(megabytes).join(' ')} MB`)
  }

  private figures(seconds: number, inspector: Inspector): string[] {
    const { server, seed } = this.options
    const kinds = [...this.kinds].sort(([, a], [, b]) => b - a).map(([kind, count]) => `${kind} ${count}`)
    return [
      `${server}, SEED=${seed}: ${this.shots} shots on ${this.connections} connections in ${seconds.toFixed(0)} s`,
      `by kind: ${kinds.join(', ')}`,
      inspector.figures,
      `${this.changes} changes for the neighbour, each within ${this.longestMs.toFixed(0)} ms of its request`,
    ]
  }
}

/** The sum of a metric, or of one with labels. */
function metricOf(metrics: string, name: string): number {
  const values = metrics
    .split('\n')
    .filter(line => line.startsWith(`${name} `) || (!name.includes('{') && line.startsWith(`${name}{`)))
    .map(line => Number(line.slice(line.lastIndexOf(' '))))
  return values.length === 0 ? Number.NaN : values.reduce((sum, value) => sum + value, 0)
}

function shown({ kind, pieces }: SocketShot): string {
  const bytes = Buffer.concat(pieces)
  return `${kind}, ${bytes.length} bytes in ${pieces.length} pieces: ${bytes.toString('base64').slice(0, 1_500)}`
}
