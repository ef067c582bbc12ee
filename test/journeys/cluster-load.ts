// Those who use a cluster while it is hurt: writers, of which each has entities of its own, and readers, who ask every
// node for any of them.
//
// A writer has one request under way and asks the nodes in turn, but those that let others wait. It asks elsewhere when
// it is told that nothing was done. When nobody knows what became of a request, it waits until that cannot happen any
// more, reads, and goes on from there. Readers hold what they are shown against the histories; a node that does not
// answer is asked on, so that one which was stopped finds many questions that are newer than what it knows.

import { setTimeout as pause } from 'node:timers/promises'
import type { ClusterScene, NodeName } from '../support/cluster-scene.js'
import { nodeNames } from '../support/cluster-scene.js'
import { type Answer, HttpClient } from '../support/http-client.js'
import type { Random } from '../support/random.js'
import { nextWrite, type State, type Write } from './crash-oracle.js'
import { type Entity, Histories, stateFrom } from './histories.js'

const writers = 12
const idsPerWriter = 3
/** What a writer rests between two writes: the processor is for the nodes. */
const restMs = 20
/** Before it asks again who was told that nothing was done. */
const retryMs = 50
/** A node that lets somebody wait for so long is asked by few others meanwhile. */
const patienceMs = 400
/** How long clients wait for an answer: longer than nodes are stopped. */
const answerMsMax = 40_000
/** Between two reads of one node. */
const readEveryMs = 25
/** Reads that wait for one node. */
const readsMax = 100
/**
 * From the end of a request until it cannot happen any more: asks end in 2 s, and a node's clock may be read some time
 * before.
 */
const settleMs = 2_500
/** How long one write may take until somebody does it. */
const writeMsMax = 120_000

type Outcome = 'done' | 'nothing done' | 'unknown' | { readonly surprise: string }

/** A node, as clients see it. */
interface Counter {
  readonly writing: HttpClient
  readonly reading: HttpClient
  /** When the requests of writers were sent that it has yet to answer. */
  readonly waiting: Set<number>
}

export class ClusterLoad {
  readonly histories = new Histories()
  /** What must not be. */
  readonly problems: string[] = []
  acknowledged = 0
  /** Writes of which nobody knew what became. */
  unknown = 0
  read = 0
  /** Since when no write that is sent can be acknowledged; undefined: all can. */
  silentSinceMs: number | undefined
  /** Told each write that was acknowledged. */
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

  /** Ends what is under way, each write with a yes. */
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

  /** What is wrong with what a node tells: of each entity by itself, and in lists. Nothing is being written. */
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
   * Has one write, of one of these entities or of some, acknowledged, and whatever turned out unknown before it
   * settled.
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

  /** Asks the nodes for a write until one has not said that nothing was done. */
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

  /** Finds out what has become of the last write of these entities. */
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

  /** Reads through a node, or through any, until it is told. */
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

/** With a service path one shard is asked, without one all that may have the id. */
const pathOf = (id: string, isExact: boolean): Path => ({
  path: `/v2/entities/${encodeURIComponent(id)}`,
  headers: isExact ? { 'Ctx-ServicePath': '/' } : {},
})

const isRead = ({ status }: Answer): boolean => status === 200 || status === 404

const stateOf = ({ status, json }: Answer): State => (status === 404 ? undefined : stateFrom(json as Entity))
