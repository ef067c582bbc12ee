// Brokers that use one data directory one after the other, their writers, subscribers and receivers.
//
// The state of each entity at a start decides which earlier writes have happened. The oracle makes the requests and the
// expectations (notification-oracle.ts); the test decides how many kills there are.

import { setTimeout as pause } from 'node:timers/promises'
import type { Test } from 'tap'
import { until } from '../deliver/receivers.js'
import { type BrokerProcess, startBroker, tempDir, within } from '../support/broker-process.js'
import { HttpClient } from '../support/http-client.js'
import { KeptAlive } from '../support/kept-alive.js'
import { MoodyReceiver, type ReceivedRequest } from '../support/moody-receiver.js'
import { Random } from '../support/random.js'
import { chance, dayMs, paths } from '../support/random-entity.js'
import { bodyOf, type Expressions, nextSubscription, someExpressions } from '../support/random-watch.js'
import { keyOf } from '../support/reference-entities.js'
import type { Statement } from '../support/reference-query.js'
import { idsPerStem, NotificationOracle, type Watch, type Write } from './notification-oracle.js'

const tenant = 'oracle'
const tenantHeader = { 'Ctx-Service': tenant }
const writers = 6
const watchesWanted = 30
const watchesMax = 45
/** Timeout of a subscription whose receiver may stall. */
const timeoutMs = 500
/** Updates after which an eager kill happens without an early notification. */
const eagerMax = 40
const answerMsMax = 10_000
/** The most subscriptions that one answer lists. */
const pageMax = 1000
/** Entities whose notifications follow all pending ones: enough that each worker has some. */
const markersEach = 16
/** Longest time for all deliveries that receivers have delayed. */
const putOffMsMax = 150_000
/** Longest time for all pending deliveries to receivers that are well. */
const arriveMsMax = 20_000

/** One data directory, the brokers that use it one after the other, and their receivers. */
export class Story {
  readonly oracle: NotificationOracle
  private readonly t: Test
  private readonly random: Random
  private readonly workers: number
  private readonly dataDir: string
  private readonly receivers: readonly MoodyReceiver[]
  private broker!: BrokerProcess
  private expressions: Expressions | undefined
  private named = 0
  private markers = 0
  /** Called for a notification of an update that is not acknowledged yet. */
  private onEarly = () => {}

  constructor(t: Test, random: Random, workers: number) {
    this.t = t
    this.random = random
    this.workers = workers
    this.dataDir = tempDir(t)
    this.oracle = new NotificationOracle(random)
    // The moods of receivers do not depend on the order of packets.
    this.receivers = [1, 2, 3].map(n => new MoodyReceiver(t, new Random(random.seed + n), one => this.onReceived(one)))
  }

  private onReceived({ path, headers, body }: ReceivedRequest): void {
    if (path === '/marker') return void this.markers++
    const correlator = headers['ctx-correlator'] ?? ''
    if (this.oracle.isUnderWay(correlator)) this.onEarly()
    this.oracle.arrive({
      watch: path.slice(1),
      correlator,
      notificationId: headers['ctx-notification-id'] ?? '',
      path: headers['ctx-servicepath'] ?? '',
      format: headers['ngsiv2-attrsformat'] ?? '',
      body,
    })
  }

  /** Starts the broker; its data decides the outcome of all writes that were in flight. */
  async start(): Promise<void> {
    for (const receiver of this.receivers) await receiver.open()
    const { t, dataDir, workers, oracle } = this
    this.broker = await startBroker(t, { dataDir, args: ['-multiservice', '-workers', String(workers)] })
    const client = new HttpClient(this.broker.baseUrl, answerMsMax)
    const found = new Map<string, string>()
    for (const path of new Set(paths)) {
      const list = await client.get('/v2/entities?limit=1000', { ...tenantHeader, 'Ctx-ServicePath': path })
      for (const text of elementsOf(list.text)) {
        const { id, type } = JSON.parse(text) as { id: string; type: string }
        found.set(keyOf({ path, id, type }), text)
      }
    }
    oracle.settle(found)
    const stored = new Map((await subscriptions(client)).map(one => [one.notification.http.url.split('/').at(-1), one]))
    for (const watch of oracle.watches.values()) {
      const one = stored.get(watch.name)
      watch.id ??= one?.id
      const isThere = watch.plain.status === 'active' && one !== undefined && one.status !== 'inactive'
      if (watch.fires !== 'perhaps' && isThere !== (watch.fires === 'yes'))
        oracle.problems.push(`subscription ${watch.name} is ${one?.status}, and should fire: ${watch.fires}`)
      oracle.settleWatch(watch, isThere)
    }
    client.close()
  }

  async liveAndDie(): Promise<void> {
    const { random, broker, oracle } = this
    const client = new HttpClient(broker.baseUrl, answerMsMax)
    // Short runs test the recovery of a recovery, long runs fill the outbox: both shall occur often.
    const instant = Math.floor(300 * random.fraction() ** 2)
    // Or the kill comes as soon as an update is notified before it is acknowledged: it must be durable then.
    const isEager = chance(random, 0.4)
    let acknowledged = 0
    let isKilled = false
    const kill = () => {
      this.onEarly = () => {}
      isKilled = true
      broker.signal('SIGKILL')
    }
    const writer = async (lane: number): Promise<void> => {
      const connection = new KeptAlive([broker.port], 1)
      while (!isKilled) {
        const write = oracle.begin(id => laneOf(id) === lane)
        const answer = await within(
          answerMsMax,
          connection.send(write.request, tenant).catch(() => undefined),
        )
        if (!answer || (isKilled && answer.status >= 500)) {
          if (!isKilled) this.report(write, 'no answer')
          break
        }
        if (!write.statuses.includes(answer.status)) {
          this.report(write, `${answer.status} ${answer.text}`)
          break
        }
        oracle.acknowledge(write)
        acknowledged++
        if (acknowledged === instant && isEager) this.onEarly = kill
        else if (acknowledged >= instant + (isEager ? eagerMax : 0)) kill()
        if (acknowledged % 20 === 0) await this.changeMoods()
      }
      if (oracle.problems.length > 0) kill()
      connection.close()
    }
    const subscriber = async (): Promise<void> => {
      while (!isKilled && oracle.problems.length === 0 && (await this.changeSubscription(client))) await pause(10)
    }
    await this.subscribeAll(client)
    for (const receiver of this.receivers.slice(1)) receiver.isWell = chance(random, 0.3)
    const all = [subscriber(), ...Array.from({ length: writers }, (_, lane) => writer(lane))]
    if (instant === 0 && isEager) this.onEarly = kill
    else if (instant === 0) kill()
    await Promise.all(all)
    await broker.exited
    client.close()
  }

  private report({ request }: Write, what: string): void {
    const { method, target, body } = request
    this.oracle.problems.push(`${method} ${target} ${body ?? ''}: ${what}\n${this.broker.printed()}`)
  }

  /** Closes the third receiver, or opens it again. */
  private async changeMoods(): Promise<void> {
    const mortal = this.receivers[2]!
    if (!chance(this.random, 0.3)) return
    if (mortal.isOpen) await mortal.close()
    else await mortal.open()
  }

  // Subscriptions

  private async subscribeAll(client: HttpClient): Promise<void> {
    const alive = () => [...this.oracle.watches.values()].filter(({ fires }) => fires === 'yes').length
    while (alive() < watchesWanted && (await this.subscribe(client)));
  }

  /** Creates a subscription, switches one off, or removes one; false when the broker does not answer. */
  private changeSubscription(client: HttpClient): Promise<boolean> {
    const { random, oracle } = this
    const all = [...oracle.watches.values()].filter(({ id, fires }) => id !== undefined && fires !== 'no')
    const one = all[random.between(0, all.length - 1)]
    const draw = random.fraction()
    if (!one || (draw < 0.5 && all.length < watchesMax)) return this.subscribe(client)
    return draw < 0.75 ? this.switchOff(client, one) : this.unsubscribe(client, one)
  }

  private async subscribe(client: HttpClient): Promise<boolean> {
    const { random, oracle } = this
    const name = `w${++this.named}`
    const at = random.between(0, this.receivers.length - 1)
    const stock = { entities: [...oracle.reference.entities], idsPerStem }
    if (!this.expressions && stock.entities.length > 20) this.expressions = timeless(someExpressions(random, stock, 20))
    const drawn = nextSubscription(random, this.expressions ?? none, name, stock.idsPerStem, Date.now())
    // The oracle has no common clock with the broker, so results must not depend on time.
    const plain = {
      ...drawn,
      ...(drawn.expiresMs !== undefined && { expiresMs: Date.now() + (chance(random, 0.3) ? -1 : 1) * dayMs }),
      status: drawn.status === 'inactive' ? 'inactive' : 'active',
      throttlingSeconds: 0,
      sentAttrs: drawn.sentAttrs.filter(name => !name.startsWith('date')),
      exceptAttrs: drawn.exceptAttrs.filter(name => !name.startsWith('date')),
    } as const
    const watch: Watch = { name, plain, isSteady: at === 0, id: undefined, fires: 'no' }
    const body = JSON.parse(bodyOf(plain))
    body.notification.http = {
      url: `${this.receivers[at]!.url}/${name}`,
      ...(at > 0 && { timeout: timeoutMs }),
    }
    oracle.beginWatch(watch)
    const answer = await client
      .send('POST', '/v2/subscriptions', body, { ...tenantHeader, 'Ctx-ServicePath': plain.path })
      .catch(() => undefined)
    if (!answer || answer.status >= 500) return false
    if (answer.status !== 201) {
      oracle.problems.push(`POST /v2/subscriptions ${JSON.stringify(body)}: ${answer.status} ${answer.text}`)
      return false
    }
    watch.id = answer.headers.location!.split('/').at(-1)
    oracle.settleWatch(watch, plain.status === 'active')
    return true
  }

  /** After a PATCH the subscription has the path of that request, so the request needs the same path. */
  private async switchOff(client: HttpClient, watch: Watch): Promise<boolean> {
    const { path, expiresMs } = watch.plain
    // The status of an expired subscription is always shown as expired.
    if ((path !== '/#' && path.endsWith('#')) || expiresMs !== undefined) return true
    this.oracle.beginWatch(watch)
    const headers: Record<string, string> = path === '/#' ? tenantHeader : { ...tenantHeader, 'Ctx-ServicePath': path }
    const target = `/v2/subscriptions/${watch.id}`
    const answer = await client.send('PATCH', target, { status: 'inactive' }, headers).catch(() => undefined)
    if (answer?.status !== 204) return false
    this.oracle.settleWatch(watch, false)
    return true
  }

  private async unsubscribe(client: HttpClient, watch: Watch): Promise<boolean> {
    this.oracle.beginRemoval(watch)
    const answer = await client
      .send('DELETE', `/v2/subscriptions/${watch.id}`, undefined, tenantHeader)
      .catch(() => undefined)
    if (answer?.status !== 204) return false
    this.oracle.settleWatch(watch, false)
    return true
  }

  // The end

  /** All receivers are well, and the pending notifications arrive. After that, none arrives again. */
  async end(): Promise<void> {
    const { oracle, receivers } = this
    for (const receiver of receivers) receiver.isWell = true
    await this.start()
    for (const untilMs = performance.now() + arriveMsMax; oracle.missing().length > 0; await pause(20))
      if (performance.now() > untilMs || oracle.problems.length > 0) break
    await this.passMarkers()
    await this.untilNothingWaits()
    await this.broker.kill('SIGTERM')
    const { arrivals } = oracle
    await this.start()
    await this.passMarkers()
    await this.broker.kill('SIGTERM')
    this.t.equal(oracle.arrivals, arrivals, 'what was delivered does not come again')
  }

  /** A receiver that has answered 503 gets the next try at its time, also after a start. */
  private async untilNothingWaits(): Promise<void> {
    const client = new HttpClient(this.broker.baseUrl, answerMsMax)
    for (const untilMs = performance.now() + putOffMsMax; performance.now() < untilMs; await pause(100)) {
      const { text } = await client.get('/metrics')
      if (/^orrery_outbox_rows(\{.*\})? 0$/m.test(text)) break
    }
    client.close()
  }

  /**
   * Sends each receiver marker notifications, which follow all those that were pending at the start, on every worker.
   */
  private async passMarkers(): Promise<void> {
    const client = new HttpClient(this.broker.baseUrl, answerMsMax)
    const headers = { 'Ctx-Service': 'marker' }
    const expected = this.markers + this.receivers.length * markersEach
    const type = `Round${expected}`
    for (const { url } of this.receivers) {
      const subject = { entities: [{ idPattern: '.*', type }] }
      const body = { subject, notification: { http: { url: `${url}/marker` } } }
      await client.send('POST', '/v2/subscriptions', body, headers)
    }
    const entities = Array.from({ length: markersEach }, (_, n) => ({ id: `marker${n}`, type, n: { value: 1 } }))
    await client.send('POST', '/v2/op/update', { actionType: 'append', entities }, headers)
    await until(() => this.markers >= expected, 'the arrival of markers')
    client.close()
  }
}

interface StoredWatch {
  readonly id: string
  readonly status: string
  readonly notification: { readonly http: { readonly url: string } }
}

/** All of them, page by page: a long story leaves more than one page of those that are switched off. */
async function subscriptions(client: HttpClient): Promise<StoredWatch[]> {
  const all: StoredWatch[] = []
  for (;;) {
    const { json } = await client.get(`/v2/subscriptions?limit=${pageMax}&offset=${all.length}`, tenantHeader)
    const page = json as StoredWatch[]
    all.push(...page)
    if (page.length < pageMax) return all
  }
}

const none: Expressions = { q: [], mq: [], geo: [] }

/** Without the expressions that contain dates, which depend on the current time. */
function timeless({ q, mq, geo }: Expressions): Expressions {
  const isTimeless = (statements: readonly Statement[]) =>
    statements.every(({ tokens }) => !tokens.some(token => token.startsWith('date')))
  return { q: q.filter(isTimeless), mq: mq.filter(isTimeless), geo }
}

/** The writer of an id. */
const laneOf = (id: string): number => [...id].reduce((sum, sign) => sum + sign.charCodeAt(0), 0) % writers

/** The texts of the elements of a list of objects, unchanged. */
function elementsOf(list: string): string[] {
  const elements: string[] = []
  let depth = 0
  let isText = false
  let began = 0
  for (let at = 0; at < list.length; at++) {
    const sign = list[at]
    if (isText) {
      if (sign === '\\') at++
      else if (sign === '"') isText = false
    } else if (sign === '"') isText = true
    else if (sign === '{' || sign === '[') {
      if (depth++ === 1) began = at
    } else if ((sign === '}' || sign === ']') && --depth === 1) elements.push(list.slice(began, at + 1))
  }
  return elements
}
