// The clients of a cluster that is hurt: writers, each with entities of its own, and readers, which ask every node for
// any of them.
//
// A writer has one request in flight. It asks the nodes in turn, but avoids a node that lets others wait. After an
// answer that nothing was done it asks another node. If the outcome is unknown, it waits until the request cannot take
// effect any more, reads the result, and continues from there. Readers compare the answers with the histories. They
// continue to ask a node that does not answer, so that a stopped node later finds many questions that are newer than
// its data.

import { setTimeout as pause } from 'node:timers/promises'
import type { ClusterScene, NodeName } from '../support/cluster-scene.js'
import { nodeNames } from '../support/cluster-scene.js'
import { type Answer, HttpClient } from '../support/http-client.js'
import type { Random } from '../support/random.js'
import { nextWrite, type State, type Write } from './crash-oracle.js'
import { type Entity, Histories, stateFrom } from './histories.js'

const writers = 12
const idsPerWriter = 3
/** Pause of a writer between two writes, which leaves the processor to the nodes. */
const restMs = 20
/** Before a writer repeats a request of which nothing was done. */
const retryMs = 50
/** A node that has not answered a request for so long gets few others meanwhile. */
const patienceMs = 400
/** Longest wait for an answer: longer than nodes are stopped. */
const answerMsMax = 40_000
/** Between two reads of one node. */
const readEveryMs = 25
/** Reads that wait for one node. */
const readsMax = 100
/**
 * From the end of a request until it cannot take effect any more: asks end in 2 s, and a node's clock may be read some
 * time before.
 */
const settleMs = 2_500
/** Longest time until a write is done. */
const writeMsMax = 120_000

type Outcome = 'done' | 'nothing done' | 'unknown' | { readonly surprise: string }

/** A node, as clients see it. */
interface Counter {
  readonly writing: HttpClient
  readonly reading: HttpClient
  /** The times at which the unanswered requests of writers were sent. */
  readonly waiting: Set<number>
}

export class ClusterLoad {
  readonly histories = new Histories()
  /** Failures of the cluster. */
  readonly problems: string[] = []
  acknowledged = 0
  /** Number of writes whose outcome was unknown. */
  unknown = 0
  read = 0
  /** Since when a write that is sent cannot be acknowledged; undefined: it can. */
  silentSinceMs: number | undefined
  /** Called with each acknowledged write. */
  onAcknowledged = (_write: Write): void => {}
  private readonly random: Random
  private readonly counters: Readonly<Record<NodeName, Counter>>
  private readonly ids = Array.from({ length: writers }, (_, writer) =>
    Array.from({ length: idsPerWriter }, (_, number) => `urn:thing:${writer}:${number}`),
  )
  private isRunning = false
  private running: Promise<unknown> = Promise.resolve()
  private turn = 0

  constructor(scene: ClusterScene, random: Random) {
    this.random = random
    const counter = (name: NodeName): Counter => ({
      writing: new HttpClient(scene.baseUrl(name), answerMsMax, 2 * writers),
      reading: new HttpClient(scene.baseUrl(name), answerMsMax, readsMax),
      waiting: new Set(),
    })
    this.counters = { a: counter('a'), b: counter('b'), c: counter('c') }
  }

  begin(): void {
    this.isRunning = true
    const working = [...this.ids.map(own => this.writeOn(own)), ...nodeNames.map(name => this.readOn(name))]
    this.running = Promise.all(working)
  }

  /** Stops, and waits until each write in flight is acknowledged. */
  async end(): Promise<void> {
    this.isRunning = false
    await this.running
  }

  /** Writes every entity; resolves when all have been acknowledged. */
  async writeAll(): Promise<void> {
    await Promise.all(
      this.ids.map(async own => {
        for (const id of own) await this.write([id], false)
      }),
    )
  }

  /**
   * The differences between a node's answers and the histories: for each entity by itself, and in lists. There must be
   * no writes meanwhile.
   */
  async differences(name: NodeName): Promise<string[]> {
    const wrong: string[] = []
    for (const id of this.ids.flat()) {
      const since = this.histories.seen(id)
      const problem = this.histories.see(id, stateOf(await this.untilRead(name, pathOf(id, true))), since)
      if (problem) wrong.push(`through ${name} ${problem}`)
    }
    const listed = await this.untilRead(name, { path: '/v2/entities?options=count&limit=1000', headers: {} })
    const shown = (listed.json as Entity[]).map(entity => `${entity.id} ${JSON.stringify(stateFrom(entity))}`).sort()
    const expected = this.histories.ids().map(id => `${id} ${JSON.stringify(this.histories.state(id))}`)
    wrong.push(...expected.filter(one => !shown.includes(one)).map(one => `the list of ${name} lacks ${one}`))
    wrong.push(...shown.filter(one => !expected.includes(one)).map(one => `the list of ${name} has ${one}`))
    if (new Set(shown).size !== shown.length) wrong.push(`the list of ${name} shows an entity twice`)
    const total = Number(listed.headers['ctx-total-count'])
    if (total !== expected.length) wrong.push(`the list of ${name} counts ${total}, ${expected.length} exist`)
    return wrong
  }

  close(): void {
    for (const { writing, reading } of Object.values(this.counters)) {
      writing.close()
      reading.close()
    }
  }

  // Writers

  private async writeOn(own: readonly string[]): Promise<void> {
    while (this.isRunning && this.problems.length === 0) {
      await this.write(own, true)
      await pause(restMs)
    }
  }

  /**
   * Repeats until one write, of one of these entities or of some, is acknowledged. It settles each unknown outcome
   * before the next try.
   */
  private async write(own: readonly string[], batches: boolean): Promise<void> {
    const untilMs = performance.now() + writeMsMax
    for (;;) {
      const write = nextWrite(this.histories, own, this.random, batches)
      this.histories.begin(write)
      const outcome = await this.untilTaken(write, untilMs)
      if (outcome === 'done') return
      if (outcome !== 'unknown') return void this.problems.push(outcome.surprise)
      this.unknown++
      await this.settle([...write.after.keys()])
    }
  }

  /** Sends a write to one node after the other until an answer differs from "nothing done". */
  private async untilTaken(write: Write, untilMs: number): Promise<Exclude<Outcome, 'nothing done'>> {
    for (;;) {
      const outcome = await this.send(write, this.nextNode())
      if (outcome !== 'nothing done') return outcome
      if (performance.now() > untilMs)
        return { surprise: `nobody does ${write.method} ${write.path} in ${writeMsMax} ms` }
      await pause(retryMs)
    }
  }

  private async send(write: Write, name: NodeName): Promise<Outcome> {
    const { writing, waiting } = this.counters[name]
    const note = (event: string): void => {
      for (const id of write.after.keys()) this.histories.note(id, `by ${name}: ${event}`)
    }
    const sentMs = performance.now()
    waiting.add(sentMs)
    let answer: Answer
    try {
      answer = await writing.send(write.method, write.path, write.body)
    } catch (error) {
      const { code = '', message } = error as NodeJS.ErrnoException
      note(message)
      return code === 'ECONNREFUSED' ? 'nothing done' : 'unknown'
    } finally {
      waiting.delete(sentMs)
    }
    if (answer.status === write.status) return this.onDone(write, name, sentMs)
    note(`${answer.status} ${answer.text}`)
    if (answer.status === 503 && /nothing was done|too many requests are waiting/.test(answer.text))
      return write.after.size === 1 ? 'nothing done' : 'unknown'
    if (answer.status === 503 || answer.status === 500) return 'unknown'
    return { surprise: `${write.method} ${write.path}: ${answer.status} ${answer.text}\n${this.storyOf(write)}` }
  }

  private storyOf({ after }: Write): string {
    return [...after.keys()].map(id => `${id}:\n${this.histories.story(id)}`).join('\n')
  }

  private onDone(write: Write, name: NodeName, sentMs: number): Outcome {
    this.histories.acknowledge(write)
    this.acknowledged++
    this.onAcknowledged(write)
    if (this.silentSinceMs !== undefined && sentMs > this.silentSinceMs)
      this.problems.push(`${name} has acknowledged what cannot be durable:\n${this.storyOf(write)}`)
    return 'done'
  }

  /** Finds out the outcome of the last write of these entities. */
  private async settle(ids: readonly string[]): Promise<void> {
    await pause(settleMs)
    for (const id of ids) {
      const since = this.histories.seen(id)
      const problem = this.histories.see(id, stateOf(await this.untilRead(undefined, pathOf(id, true))), since)
      if (problem) this.problems.push(problem)
      this.histories.settle(id)
    }
  }

  /** The next node, but seldom one that lets others wait. */
  private nextNode(): NodeName {
    const name = nodeNames[this.turn++ % nodeNames.length]!
    const isQuick = (one: NodeName): boolean => {
      const [oldestMs = Number.POSITIVE_INFINITY] = this.counters[one].waiting
      return performance.now() - oldestMs < patienceMs
    }
    if (isQuick(name) || this.random.fraction() < 0.1) return name
    return nodeNames.find(isQuick) ?? name
  }

  // Readers

  private async readOn(name: NodeName): Promise<void> {
    const reading = new Set<Promise<void>>()
    while (this.isRunning && this.problems.length === 0) {
      if (reading.size < readsMax) {
        const one: Promise<void> = this.readOne(name).finally(() => reading.delete(one))
        reading.add(one)
      }
      await pause(readEveryMs)
    }
    await Promise.all(reading)
  }

  private async readOne(name: NodeName): Promise<void> {
    const own = this.ids[this.random.between(0, writers - 1)]!
    const id = own[this.random.between(0, idsPerWriter - 1)]!
    const since = this.histories.seen(id)
    const path = pathOf(id, this.random.fraction() < 0.5)
    const answer = await this.get(name, path)
    if (!answer || answer.status === 503 || answer.status === 500) return
    this.read++
    const problem = isRead(answer)
      ? this.histories.see(id, stateOf(answer), since)
      : `GET ${path.path}: ${answer.status} ${answer.text}`
    if (problem) this.problems.push(`through ${name} ${problem}`)
  }

  private get(name: NodeName, { path, headers }: Path): Promise<Answer | undefined> {
    return this.counters[name].reading.get(path, headers).catch(() => undefined)
  }

  /** Reads through a node, or through any, until an answer is 200 or 404. */
  private async untilRead(name: NodeName | undefined, path: Path): Promise<Answer> {
    const untilMs = performance.now() + writeMsMax
    for (;;) {
      const answer = await this.get(name ?? this.nextNode(), path)
      if (answer && isRead(answer)) return answer
      if (performance.now() > untilMs)
        throw new Error(`GET ${path.path} is not answered: ${answer?.status} ${answer?.text}`)
      await pause(retryMs)
    }
  }
}

interface Path {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

/** With a service path the read asks one shard, without one all shards that may have the id. */
const pathOf = (id: string, isExact: boolean): Path => ({
  path: `/v2/entities/${encodeURIComponent(id)}`,
  headers: isExact ? { 'Ctx-ServicePath': '/' } : {},
})

const isRead = ({ status }: Answer): boolean => status === 200 || status === 404

const stateOf = ({ status, json }: Answer): State => (status === 404 ? undefined : stateFrom(json as Entity))
