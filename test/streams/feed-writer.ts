// A writer of a tenant: random changes of its own entities, one by one and in batches, over HTTP and over WebSocket,
// with one request in flight. A change is in the tenant's model before its request is sent.
//
// After an answer that nothing was done, and after a connection that could not be made, the model goes back. If the
// outcome is unknown, the writer reads the entities before it continues.

import { setTimeout as pause } from 'node:timers/promises'
import { type Answer, HttpClient } from '../support/http-client.js'
import type { Random } from '../support/random.js'
import { batchAction, batchChanges, nextChange, type Scene } from '../support/random-change.js'
import { chance } from '../support/random-entity.js'
import type { Change, Entity } from '../support/reference-entities.js'
import { batchRequest, changeRequest, type HttpRequest, statusOf } from '../support/reference-requests.js'
import type { TenantModel, Version } from './tenant-model.js'
import { sortedJson } from './tenant-model.js'
import { UpdateSocket } from './update-socket.js'

/** The broker, as a writer sees it. */
export interface WrittenTo {
  /** A process that may answer now. */
  url(random: Random): string
  /** How long a request without an answer may still take effect. */
  readonly settleMs: number
}

export interface WriterPlan {
  readonly random: Random
  readonly model: TenantModel
  readonly name: string
  /** Which ids are its own. */
  readonly isMine: (id: string) => boolean
  readonly idsPerStem: number
  /** The length of a text that many entities have; 0: none. */
  readonly padLength: number
  /** The longest pause between two requests. */
  readonly restMsMax: number
}

type Outcome = Pick<Answer, 'status' | 'text'> | 'nothing done' | 'unknown'

/** How long until an entity is read, or has expired. */
const patienceMs = 60_000
const againMs = 30

export class FeedWriter {
  acknowledged = 0
  unknown = 0
  private readonly clients = new Map<string, HttpClient>()
  private socket: UpdateSocket | undefined
  private requests = 0

  constructor(
    private readonly plan: WriterPlan,
    private readonly broker: WrittenTo,
  ) {}

  /** Writes until `stop`, or so many requests. */
  async write(isOver: () => boolean, requests = Number.POSITIVE_INFINITY): Promise<void> {
    const { random, restMsMax, model } = this.plan
    for (let left = requests; left > 0 && !isOver() && model.problems.length === 0; left--) {
      await this.step()
      if (restMsMax > 0) await pause(random.between(0, restMsMax))
    }
  }

  close(): void {
    for (const client of this.clients.values()) client.close()
    this.socket?.close()
  }

  private async step(): Promise<void> {
    const { random } = this.plan
    const draw = random.fraction()
    if (draw < 0.01) await this.expire()
    else if (draw < 0.25) await this.batch()
    else await this.single(this.draw(() => nextChange(this.scene())))
  }

  private scene(): Scene {
    const { random, model, isMine, idsPerStem } = this.plan
    return { reference: model.reference, random, nowMs: Date.now(), idsPerStem, isMine, creates: true }
  }

  private draw(next: () => Change): Change {
    for (;;) {
      const change = next()
      if (isAllowed(change)) return this.padded(change)
    }
  }

  /** The change with a long text, if it gives an entity all its attributes. */
  private padded(change: Change): Change {
    const { padLength, random } = this.plan
    if (padLength === 0 || !('given' in change) || !Array.isArray(change.given)) return change
    if (change.action !== 'replace' && change.action !== 'create' && !('creates' in change && change.creates))
      return change
    const pad = { type: 'Text', value: 'x'.repeat(padLength) + random.between(0, 999) }
    return { ...change, given: [...change.given.filter(([name]) => name !== 'pad'), ['pad', pad]] } as Change
  }

  private async single(change: Change): Promise<void> {
    const correlator = this.nextCorrelator()
    const { outcome, version } = this.plan.model.begin(change, correlator)
    const answer = await this.send(changeRequest(change, chance(this.plan.random, 0.3)), correlator)
    await this.conclude(version ? [version] : [], answer, [statusOf(change, outcome)], JSON.stringify(change))
  }

  private async batch(): Promise<void> {
    const { random, model } = this.plan
    const isOverSocket = chance(random, 0.4)
    const correlator = isOverSocket ? undefined : this.nextCorrelator()
    const changes = new Map<string, Change>()
    const versions: Version[] = []
    let isDone = true
    const action = batchAction(random)
    for (const drawn of batchChanges(this.scene(), action)) {
      if (!isAllowed(drawn) || changes.has(`${drawn.id} ${drawn.type}`)) continue
      const change = this.padded(drawn)
      changes.set(`${change.id} ${change.type}`, change)
      const { outcome, version } = model.begin(change, correlator)
      if (outcome !== 'done') isDone = false
      if (version) versions.push(version)
    }
    if (changes.size === 0) return
    const request = batchRequest(action, [...changes.values()])
    const answer = await (correlator === undefined ? this.sendOverSocket(request) : this.send(request, correlator))
    const outcome = answer === 'nothing done' && versions.length > 1 ? 'unknown' : answer
    await this.conclude(versions, outcome, isDone ? [204] : [404, 413, 422], request.body ?? '')
  }

  private nextCorrelator(): string {
    return `${this.plan.name}-${this.requests++}`
  }

  private async conclude(
    versions: readonly Version[],
    outcome: Outcome,
    statuses: readonly number[],
    request: string,
  ): Promise<void> {
    const { model } = this.plan
    if (outcome === 'nothing done') for (const version of [...versions].reverse()) model.undo(version)
    else if (outcome === 'unknown') {
      this.unknown++
      await pause(this.broker.settleMs)
      for (const version of versions) model.settle(version, await this.found(version.happening.entity))
    } else if (!statuses.includes(outcome.status)) {
      model.problems.push(`status ${outcome.status} ${outcome.text}, not ${statuses}: ${request}`)
    } else {
      this.acknowledged++
      for (const version of versions) model.done(version)
    }
  }

  /** Lets the broker remove an entity, and waits until it has done that. */
  private async expire(): Promise<void> {
    const { random, model, isMine } = this.plan
    const mine = [...model.reference.entities].filter(({ id }) => isMine(id))
    const entity = mine[random.between(0, mine.length - 1)]
    if (!entity) return
    const { path, id, type } = entity
    const past = { type: 'DateTime', value: new Date(Date.now() - 60_000).toISOString() }
    const plain = { override: false, forced: false, creates: false }
    const change: Change = { action: 'append', path, id, type, given: [['dateExpires', past]], ...plain }
    const correlator = this.nextCorrelator()
    const { version } = model.begin(change, correlator)
    const removal = model.beginExpiry(model.reference.get(change) as Entity)
    const answer = await this.send(changeRequest(change), correlator)
    if (typeof answer === 'object' && answer.status !== 204) {
      model.problems.push(`status ${answer.status} ${answer.text}: ${JSON.stringify(change)}`)
      return
    }
    if (answer === 'unknown') await pause(this.broker.settleMs)
    if (typeof answer !== 'object' && (await this.found(entity, 'dateExpires'))?.includes('dateExpires') === false) {
      model.undo(removal)
      return model.undo(version as Version)
    }
    for (const untilMs = performance.now() + patienceMs; (await this.found(entity)) !== undefined; ) {
      if (performance.now() > untilMs) return void model.problems.push(`${id} ${type} does not expire`)
      await pause(againMs)
    }
    model.done(version as Version)
    model.done(removal)
  }

  /** The stored entity; undefined: there is none. */
  private async found({ id, type, path }: Entity, attrs?: string): Promise<string | undefined> {
    const untilMs = performance.now() + patienceMs
    const more = attrs === undefined ? '' : `&attrs=${attrs}`
    const target = `/v2/entities/${encodeURIComponent(id)}?type=${encodeURIComponent(type)}${more}`
    for (;;) {
      const answer = await this.send({ method: 'GET', target, headers: { 'Ctx-ServicePath': path } }, 'reads')
      if (typeof answer === 'object' && answer.status === 404) return undefined
      if (typeof answer === 'object' && answer.status === 200) return sortedJson(answer.text)
      if (performance.now() > untilMs) throw new Error(`GET ${target} is not answered: ${JSON.stringify(answer)}`)
      await pause(againMs)
    }
  }

  private async send({ method, target, headers, body }: HttpRequest, correlator: string): Promise<Outcome> {
    const url = this.broker.url(this.plan.random)
    const client = this.clients.get(url) ?? new HttpClient(url)
    this.clients.set(url, client)
    const all = { ...headers, 'Ctx-Service': this.plan.model.tenant, 'Ctx-Correlator': correlator }
    try {
      const answer = await client.send(method, target, body === undefined ? undefined : JSON.parse(body), all)
      if (answer.status < 500) return answer
      const isNothing = answer.status === 503 && /nothing was done|too many requests are waiting/.test(answer.text)
      return isNothing ? 'nothing done' : 'unknown'
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED' ? 'nothing done' : 'unknown'
    }
  }

  private async sendOverSocket({ headers, body, target }: HttpRequest): Promise<Outcome> {
    this.socket ??= await UpdateSocket.open(this.broker.url(this.plan.random), this.plan.model.tenant)
    const { socket } = this
    const options = new URLSearchParams(target.split('?')[1]).get('options')
    const done = await socket?.update({
      path: headers['Ctx-ServicePath'] ?? '/',
      body: JSON.parse(body as string),
      ...(options !== null && { options }),
    })
    if (!done) {
      this.socket = undefined
      return socket ? 'unknown' : 'nothing done'
    }
    return done.status >= 500 ? 'unknown' : done
  }
}

/** The service path of an id. */
export function homePath(id: string): string {
  return ['/', '/a', '/a/b', '/ab'][sumOf(id) % 4] as string
}

/** A number that spreads ids. */
export const sumOf = (id: string): number =>
  [...id].reduce((sum, character) => 31 * sum + character.charCodeAt(0), 7) % 65_521

/** Whether the result can be foreseen: no times of the broker, and no other service path. */
function isAllowed(change: Change): boolean {
  if (change.path !== homePath(change.id)) return false
  const given = 'given' in change && Array.isArray(change.given) ? change.given.map(([name]) => name as string) : []
  const names = [...given, ...('names' in change ? change.names : []), ...('name' in change ? [change.name] : [])]
  return !names.some(name => /^(date(Expires|Created|Modified)|servicePath)$/.test(name))
}
