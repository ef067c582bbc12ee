// Delivers notifications: takes them from who owns the outbox, sends them, and tells what became of each try.
//
// This is the shell around the lanes: it owns the senders, the timers and the log, and decides nothing but what cannot be sent at all.
// Every delivery that was taken ends with exactly one outcome that says so (delivered, simulated, dead, dropped, or failed and not held),
// unless the notifier is stopped first; before that it may fail several times. In `bestEffort` there is one try, and what finds no room
// is lost; in `atLeastOnce` what finds no room stays with its owner, who is told when to come back.
//
// [hot] To one local uWebSockets.js receiver that shares its core, 20,000 to 26,000 notifications of 200 bytes a second: 35 us of this
// process each, of which 4 us are spent in this folder and 6 us in undici; the kernel has most of the rest.
//
// Not here: outbox, counters of subscriptions, last deliveries, alarms (whoever gets the outcomes).

import type { Socket } from 'node:net'
import { withoutSecretEntries } from '../domain/subscriptions/secrets.js'
import type { Clock, DeliveryOutcome, Logger, SendWatch } from '../ports.js'
import { type Address, addressOf } from './address.js'
import { type Delivery, type Message, type MqttMessage, messageBytes, type SendResult } from './delivery.js'
import type { HttpSender } from './http-sender.js'
import type { Job, Lane } from './lane.js'
import { Lanes } from './lanes.js'
import { Lazy } from './lazy.js'
import { type Limits, limitsByDefault, poolsOf, retrySendsMax } from './limits.js'
import type { MqttSender } from './mqtt-sender.js'
import type { Egress } from './sockets/egress.js'
import { openSockets, reasons, type TlsOptions } from './sockets/sockets.js'

export interface NotifierOptions {
  /** `-notifDelivery`. */
  readonly delivery: 'atLeastOnce' | 'bestEffort'
  /** `-notificationMode`, as the options have accepted it; limits.ts says what it means. */
  readonly mode: string
  /** `-httpTimeout` and `-mqttTimeout`; above 0. */
  readonly httpTimeoutMs: number
  readonly mqttTimeoutMs: number
  /** `-mqttMaxAge`; 0: connections do not age. */
  readonly mqttIdleMsMax: number
  /** `-outReqMsgMaxSize`: larger messages are not sent. */
  readonly messageBytesMax: number
  /** Where messages may go; undefined: anywhere. */
  readonly egress?: Egress | undefined
  /** `-simulatedNotification`: everything happens but the sending. */
  readonly simulated: boolean
  /** Bytes of a payload that the log shows. */
  readonly loggedBytesMax: number
  readonly tls: TlsOptions
  readonly limits?: Partial<Limits>
}

export interface NotifierPorts {
  readonly clock: Clock
  /** A number from 0 up to but without 1, for the spread of retries. */
  readonly fraction: () => number
  readonly logger: Logger
  /** What became of one try. Never called from inside `offer`. */
  readonly onOutcome: (delivery: Delivery, outcome: DeliveryOutcome) => void
  /** Told of each try; undefined: nobody is. */
  readonly watch?: SendWatch | undefined
  /** The lane of this name has room again (`laneOf`); undefined: receivers that were refused without having one. */
  readonly onRoom: (lane: string | undefined) => void
}

/** The numbers of /statistics (`queue` is its `notifQueue`, operations.md §4.4) and /metrics. */
export interface NotifierStats {
  readonly queue: {
    readonly in: number
    readonly out: number
    readonly reject: number
    /** HTTP answers of any status, and tries without one. */
    readonly sentOk: number
    readonly sentError: number
    readonly timeInQueueMs: number
    readonly size: number
  }
  /** HTTP and MQTT messages that went out, further tries included. */
  readonly httpSent: number
  readonly mqttSent: number
  readonly mqttFailed: number
  readonly simulated: number
  /** Deliveries that ended well; tries that failed and have another one; further tries sent; ended for good. */
  readonly delivered: number
  readonly failed: number
  readonly retried: number
  readonly dead: number
  /** Lost for want of room (bestEffort), or because they could not be sent at all. */
  readonly dropped: number
  /** Tries that an open breaker has failed, and times that one has opened. */
  readonly heldBack: number
  readonly opened: number
  /** Now: tries under way, failed deliveries that wait in memory, receivers, sockets. */
  readonly sending: number
  readonly retrying: number
  readonly lanes: number
  readonly httpConnections: number
  readonly mqttConnections: number
  /** The longest lanes, at most `longestLanesMax`. */
  readonly longest: readonly LaneStats[]
}

export interface LaneStats {
  readonly name: string
  readonly waiting: number
  readonly retrying: number
  readonly breaker: 'closed' | 'open' | 'probing'
}

/** Lanes that `stats` lists. */
const longestLanesMax = 20

/** How often a stop looks whether what is under way has ended. */
const drainStepMs = 10

export class Notifier {
  private readonly lanes: Lanes
  /** Most processes use one of them, or none, and a start should not wait 0.1 s for each. */
  private readonly http: Lazy<HttpSender>
  private readonly mqtt: Lazy<MqttSender>
  private readonly counters = {
    sentOk: 0,
    sentError: 0,
    httpSent: 0,
    mqttSent: 0,
    mqttFailed: 0,
    simulated: 0,
    dropped: 0,
  }
  private isStopping = false
  private isStopped = false

  constructor(
    private readonly ports: NotifierPorts,
    private readonly options: NotifierOptions,
  ) {
    const { clock, fraction } = ports
    const limits = { ...limitsByDefault, ...options.limits }
    const retries = options.delivery === 'atLeastOnce'
    this.lanes = new Lanes(
      clock,
      { mode: options.mode, retries, limits, fraction },
      {
        send: job => this.send(job),
        settled: (job, outcome) => this.settled(job.delivery, outcome),
        room: lane => {
          if (!this.isStopping) ports.onRoom(lane)
        },
        wake: (lane, atMs) => this.wake(lane, atMs),
        later: () => clock.endOfTick(() => this.whileRunning(() => this.lanes.onLater())),
        changed: lane => this.logChange(lane),
      },
    )
    // There is always an idle connection to give way, because no more than these are ever busy.
    const busyMax = poolsOf(options.mode, limits).reduce(
      (sum, { sendsMax }) => sum + sendsMax + retrySendsMax(sendsMax),
      0,
    )
    const openSocket = openSockets(options.tls, options.egress)
    const { httpTimeoutMs, mqttTimeoutMs, mqttIdleMsMax: idleMsMax } = options
    const connectionsMax = busyMax + 1
    const { egress } = options
    const isOwn = egress && ((socket: Socket) => egress.isOwn(socket))
    this.http = new Lazy(async () => {
      const { HttpSender } = await import('./http-sender.js')
      return new HttpSender(clock, openSocket, { timeoutMs: httpTimeoutMs, connectionsMax, isOwn })
    })
    this.mqtt = new Lazy(async () => {
      const { MqttSender } = await import('./mqtt-sender.js')
      return new MqttSender(clock, openSocket, { timeoutMs: mqttTimeoutMs, idleMsMax, connectionsMax })
    })
  }

  /**
   * Takes a delivery over, or says why not. `full`: its owner keeps it and hears of `onRoom`; only in atLeastOnce, and always while
   * stopping. `dropped`: it is lost, counted and logged; only in bestEffort.
   */
  offer(delivery: Delivery): 'taken' | 'full' | 'dropped' {
    if (this.isStopping) return this.refuse(delivery)
    const { message } = delivery
    const address = addressOf(message)
    const end = address ? this.endAtOnce(delivery, address) : { kind: 'dropped' as const, why: malformed(message) }
    if (end || !address) {
      this.ports.clock.endOfTick(() => this.whileRunning(() => this.endHere(delivery, end!, address)))
      return 'taken'
    }
    return this.lanes.offer(delivery, address, messageBytes(message)) === 'taken' ? 'taken' : this.refuse(delivery)
  }

  /** Messages over HTTP are likely to come: the first one need not wait for what sends them. */
  prepareHttp(): void {
    if (!this.isStopping && !this.options.simulated) this.http.use(() => {})
  }

  /** Connects to the MQTT broker of a message that is likely to come: the first one need not wait for that. */
  prepareMqtt(message: MqttMessage): void {
    const address = this.isStopping || this.options.simulated ? undefined : addressOf(message)
    if (address) this.mqtt.use(sender => this.whileRunning(() => sender.prepare(address, message)))
  }

  private refuse({ tenant, context }: Delivery): 'full' | 'dropped' {
    if (this.options.delivery === 'atLeastOnce') return 'full'
    this.counters.dropped++
    this.ports.logger.error(`Runtime Error (${this.queueOf(tenant)} notification queue is full)`, context)
    return 'dropped'
  }

  /** The outcome of what is not to be sent. */
  private endAtOnce({ message, attempt, context }: Delivery, { protocol }: Address): DeliveryOutcome | undefined {
    const bytes = messageBytes(message)
    if (bytes > this.options.messageBytesMax) {
      const what = protocol.slice(0, 4).toUpperCase()
      this.ports.logger.error(`Runtime Error (${what} request to send is too large: ${bytes} bytes)`, context)
      return { kind: 'dead', reason: reasons.tooBig, code: undefined, sent: false, attempts: attempt + 1 }
    }
    if (message.transport === 'mqtt' && !isTopic(message.topic))
      return { kind: 'dropped', why: 'not a topic to publish to' }
    return this.options.simulated ? { kind: 'simulated' } : undefined
  }

  private endHere(delivery: Delivery, outcome: DeliveryOutcome, address: Address | undefined): void {
    if (outcome.kind === 'simulated') this.counters.simulated++
    if (outcome.kind === 'dead') this.tellOfTry(delivery, address, address?.path ?? '', 0, outcome.reason)
    if (outcome.kind === 'dropped') {
      this.counters.dropped++
      const { logger } = this.ports
      if (delivery.message.transport === 'http')
        logger.error(`Runtime Error (not sending notification: ${outcome.why})`, delivery.context)
      else logger.warn(`Notification (subId: ${delivery.subscription}) not sent: ${outcome.why}`, delivery.context)
    }
    this.ports.onOutcome(delivery, outcome)
  }

  /** The name that `onRoom` tells when a delivery of that tenant to that receiver finds room again; undefined: cannot be sent. */
  laneOf(tenant: string, message: Message): string | undefined {
    const address = addressOf(message)
    return address && this.lanes.table.nameOf(tenant, address)
  }

  /** The name of the queue that a tenant uses (subscriptions.md §11.2). */
  queueOf(tenant: string): string {
    return this.lanes.table.poolOf(tenant).limits.tenant ?? 'default'
  }

  /** First tries that wait in the queue that the tenant uses: `size(queue of tenant)` of subscriptions.md §11.3. */
  queueLength(tenant: string): number {
    return this.lanes.table.poolOf(tenant).waiting
  }

  private send(job: Job): void {
    const { message } = job.delivery
    if (message.transport === 'http') {
      this.counters.httpSent++
      this.http.use(sender =>
        this.whileRunning(() => sender.send(job.lane.address, job.path, message, result => this.onEnd(job, result))),
      )
    } else {
      this.counters.mqttSent++
      this.mqtt.use(sender =>
        this.whileRunning(() => sender.send(job.lane.address, message, result => this.onEnd(job, result))),
      )
    }
  }

  private onEnd(job: Job, result: SendResult): void {
    if (this.isStopped) return
    const isHttp = job.delivery.message.transport === 'http'
    if (isHttp && result.kind === 'answered') this.counters.sentOk++
    else if (isHttp) this.counters.sentError++
    else if (result.kind !== 'answered') this.counters.mqttFailed++
    this.logEnd(job, result)
    const { delivery, lane, path } = job
    if (result.kind === 'answered') this.tellOfTry(delivery, lane.address, path, result.bytes ?? 0, undefined)
    else this.tellOfTry(delivery, lane.address, path, 0, result.reason)
    this.lanes.onEnd(job, result)
  }

  // [hot] Once per try.
  private tellOfTry(
    { message, tenant, context }: Delivery,
    address: Address | undefined,
    path: string,
    responseBytes: number,
    failure: string | undefined,
  ): void {
    const { watch } = this.ports
    if (!watch) return
    const isHttp = message.transport === 'http'
    const receiver = address ? `${address.host}:${address.port}` : message.url
    watch.onEnded({
      what: isHttp ? 'notification' : 'mqttNotification',
      tenant,
      path: context.path ?? '',
      receiver: isHttp ? receiver + withoutSecretEntries(path) : receiver,
      requestBytes: (isHttp ? message.body?.length : message.payload.length) ?? 0,
      responseBytes,
      failure,
    })
  }

  private settled(delivery: Delivery, outcome: DeliveryOutcome): void {
    if (outcome.kind === 'dead' && outcome.attempts > 1)
      this.ports.logger.warn(
        `Notification (subId: ${delivery.subscription}) given up after ${outcome.attempts} tries: ${outcome.reason}`,
        delivery.context,
      )
    this.ports.onOutcome(delivery, outcome)
  }

  private wake(lane: Lane, atMs: number): void {
    if (lane.wakeAtMs <= atMs) return
    lane.cancelWake?.()
    lane.wakeAtMs = atMs
    lane.cancelWake = this.ports.clock.after(atMs - this.ports.clock.monoMs(), () => {
      lane.wakeAtMs = Number.POSITIVE_INFINITY
      this.whileRunning(() => this.lanes.onWake(lane))
    })
  }

  private whileRunning(run: () => void): void {
    if (!this.isStopped) run()
  }

  // [hot] No line is put together that nobody wants.
  private logEnd({ delivery, lane, path }: Job, result: SendResult): void {
    const { logger } = this.ports
    const { message, subscription, context } = delivery
    const code = result.kind === 'answered' ? result.code : undefined
    if (code !== undefined && (code < 200 || code > 299))
      logger.warn(`Notification (subId: ${subscription}) response NOT OK, http code: ${code}`, context)
    if (logger.level !== 'INFO' && logger.level !== 'DEBUG') return
    const { host, port } = lane.address
    if (message.transport === 'http') {
      const end = result.kind === 'answered' ? `response code: ${code}` : result.reason
      const target = withoutSecretEntries(path)
      const what = `${message.method} ${host}:${port}${target}, ${this.shown(message.body)}, ${end}`
      logger.info(`Notif delivered (subId: ${subscription}): ${what}`, context)
    } else if (result.kind === 'answered') {
      const what = `broker: ${host}:${port}, topic: ${message.topic}, ${this.shown(message.payload)}`
      logger.info(`MQTT Notif delivered (subId: ${subscription}): ${what}`, context)
    }
  }

  private shown(payload: Buffer | undefined): string {
    const { loggedBytesMax } = this.options
    if (!payload || payload.length <= loggedBytesMax) return `payload (${payload?.length ?? 0} bytes): ${payload ?? ''}`
    return `payload (${payload.length} bytes): ${payload.subarray(0, loggedBytesMax)}(...)`
  }

  private logChange({ address, breaker, reason }: Lane): void {
    const { protocol, host, port } = address
    const receiver = `${protocol}//${host}:${port}`
    if (breaker.state === 'closed') this.ports.logger.info(`Receiver ${receiver} answers again`)
    else this.ports.logger.warn(`Receiver ${receiver} does not answer, notifications to it are held back: ${reason}`)
  }

  /** What happened since the start, and what is now. Walks over the lanes: not for every request. */
  stats(): NotifierStats {
    const queue = { in: 0, out: 0, reject: 0, timeInQueueMs: 0, size: 0 }
    let sending = 0
    for (const { counters, waiting, sending: first, resending } of this.lanes.table.pools) {
      queue.in += counters.in
      queue.out += counters.out
      queue.reject += counters.reject
      queue.timeInQueueMs += counters.timeInQueueMs
      queue.size += waiting
      sending += first + resending
    }
    const { sentOk, sentError, ...counters } = this.counters
    let retrying = 0
    const longest: Lane[] = []
    for (const lane of this.lanes.table.all()) {
      retrying += lane.retrying
      if (lane.waiting + lane.retrying > 0) longest.push(lane)
    }
    longest.sort((a, b) => b.waiting + b.retrying - a.waiting - a.retrying)
    return {
      queue: { ...queue, sentOk, sentError },
      ...counters,
      ...this.lanes.counters,
      sending,
      retrying,
      lanes: this.lanes.table.size,
      httpConnections: this.http.loaded?.connectionCount ?? 0,
      mqttConnections: this.mqtt.loaded?.connectionCount ?? 0,
      longest: longest
        .slice(0, longestLanesMax)
        .map(({ name, waiting, retrying, breaker }) => ({ name, waiting, retrying, breaker: breaker.state })),
    }
  }

  /**
   * Takes nothing more, lets what is being sent end, for `drainMs` at most, and closes everything. What waits is forgotten without an
   * outcome, because its row is in the outbox; in bestEffort there is none, so what waits is sent, too, as far as the time allows.
   */
  async stop(drainMs: number): Promise<void> {
    const { clock } = this.ports
    this.isStopping = true
    if (this.options.delivery === 'atLeastOnce') this.lanes.clear()
    for (const untilMs = clock.monoMs() + drainMs; this.isBusy() && clock.monoMs() < untilMs; )
      await new Promise<void>(resolve => clock.after(drainStepMs, resolve))
    this.isStopped = true
    this.counters.dropped += this.lanes.table.pools.reduce((sum, { waiting }) => sum + waiting, 0)
    this.lanes.clear()
    this.http.loaded?.close()
    this.mqtt.loaded?.close()
  }

  private isBusy(): boolean {
    return this.lanes.table.pools.some(({ sending, resending, waiting }) => sending + resending + waiting > 0)
  }
}

function malformed({ transport, url }: Message): string {
  return transport === 'http' ? `malformed URL: '${url}'` : 'malformed URL'
}

/** Bytes of a topic on the wire, at most. */
const topicBytesMax = 65_535

function isTopic(topic: string): boolean {
  return topic !== '' && !/[+#\0]/.test(topic) && Buffer.byteLength(topic) <= topicBytesMax
}
