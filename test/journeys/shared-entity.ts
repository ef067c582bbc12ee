// An entity that several clients of a cluster change and read at the same time, and the search for an order of their
// requests (support/linearizable.ts).
//
// A request of which nothing was done is left out. If the outcome is unknown, the request may take effect at any later
// time, so each client has only a few of these: with many the search would take too long.

import { setTimeout as pause } from 'node:timers/promises'
import { type ClusterScene, nodeNames } from '../support/cluster-scene.js'
import { type Answer, HttpClient } from '../support/http-client.js'
import {
  type CounterAnswer,
  type CounterCall,
  type CounterState,
  checkLinearizable,
  counterModel,
  type Operation,
  type Verdict,
} from '../support/linearizable.js'
import type { Random } from '../support/random.js'

const clients = 5
/** Pause of a client between two requests. */
const restMs = 20
/** Longest wait for an answer: longer than nodes are stopped. */
const answerMsMax = 40_000
/** Requests of a client whose outcome is unknown; after that it only reads. */
const unknownMax = 2
/** Longest time until the entity exists, or is deleted. */
const settleMsMax = 60_000
const headers = { 'Ctx-ServicePath': '/shared' }

type SharedOperation = Operation<CounterCall, CounterAnswer>

export class SharedEntity {
  private readonly path: string
  private readonly https: readonly HttpClient[]
  private readonly operations: SharedOperation[] = []
  private readonly initial: CounterState = { n: 0, text: 'none' }
  private isRunning = true
  private running: Promise<unknown> = Promise.resolve()
  private writes = 0

  constructor(
    scene: ClusterScene,
    private readonly random: Random,
    private readonly id: string,
  ) {
    this.path = `/v2/entities/${id}`
    this.https = nodeNames.map(name => new HttpClient(scene.baseUrl(name), answerMsMax, clients))
  }

  get count(): number {
    return this.operations.length
  }

  /** Creates the entity, and starts the clients. */
  async begin(): Promise<void> {
    const entity = { id: this.id, type: 'Shared', ...this.initial }
    await this.untilStatus([201, 422], () => this.ask('POST', '/v2/entities?options=keyValues', entity))
    this.running = Promise.all(Array.from({ length: clients }, () => this.client()))
  }

  /** Stops the clients, deletes the entity, and returns what the search has found. */
  async end(): Promise<Verdict<CounterCall, CounterAnswer>> {
    this.isRunning = false
    await this.running
    await this.untilStatus([204, 404], () => this.ask('DELETE', this.path))
    for (const http of this.https) http.close()
    return checkLinearizable(counterModel(this.initial), this.operations)
  }

  private async client(): Promise<void> {
    let unknown = 0
    while (this.isRunning) {
      const call = this.nextCall(unknown < unknownMax)
      const sentMs = performance.now()
      const answer = await this.execute(call)
      if (answer === 'unknown' && call.kind !== 'read') {
        unknown++
        this.operations.push({ call, sentMs, answer: undefined, answeredMs: Number.POSITIVE_INFINITY })
      } else if (typeof answer === 'object' || answer === 'done')
        this.operations.push({ call, sentMs, answer, answeredMs: performance.now() })
      await pause(restMs)
    }
  }

  private nextCall(mayWrite: boolean): CounterCall {
    const share = this.random.fraction()
    if (!mayWrite || share < 0.4) return { kind: 'read' }
    return share < 0.7 ? { kind: 'raise' } : { kind: 'write', text: `t${this.writes++}` }
  }

  private async execute(call: CounterCall): Promise<CounterAnswer | 'nothing done' | 'unknown'> {
    const answer = await this.send(call)
    if (typeof answer === 'string') return answer
    const { status, text, json } = answer
    if (status === 200) return json as CounterState
    if (status === 204) return 'done'
    return status === 503 && /nothing was done|too many requests are waiting/.test(text) ? 'nothing done' : 'unknown'
  }

  private send(call: CounterCall): Promise<Answer | 'nothing done' | 'unknown'> {
    const attributes = `${this.path}/attrs`
    switch (call.kind) {
      case 'read':
        return this.ask('GET', `${attributes}?options=keyValues`)
      case 'raise':
        return this.ask('PATCH', attributes, { n: { type: 'Number', value: { $inc: 1 } } })
      case 'write':
        return this.ask('PATCH', attributes, { text: { type: 'Text', value: call.text } })
    }
  }

  /** Asks any node. */
  private async ask(method: string, path: string, body?: object): Promise<Answer | 'nothing done' | 'unknown'> {
    const http = this.https[this.random.between(0, this.https.length - 1)]!
    try {
      return await http.send(method, path, body, headers)
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED' ? 'nothing done' : 'unknown'
    }
  }

  private async untilStatus(wanted: readonly number[], ask: () => Promise<Answer | string>): Promise<void> {
    const untilMs = performance.now() + settleMsMax
    for (;;) {
      const answer = await ask()
      if (typeof answer === 'object' && wanted.includes(answer.status)) return
      const found = typeof answer === 'object' ? `${answer.status} ${answer.text}` : answer
      if (performance.now() > untilMs) throw new Error(`${this.id}: ${found}, and not ${wanted.join(' or ')}`)
      await pause(10 * restMs)
    }
  }
}
