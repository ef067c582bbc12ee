// Delivers notifications: accepts their messages, sends them, and reports the outcome of each try.
//
// This is the shell around the lanes: it owns the senders, the timers and the log. It decides only which messages
// cannot be sent at all. Every accepted message ends with exactly one final outcome (delivered, simulated, dead,
// dropped, or failed and not held), unless the notifier is stopped first. Before that it may fail several times. In
// `bestEffort` there is one try, and a message that finds no room is lost. In `atLeastOnce` a message that finds no
// room stays with its owner, which gets a report when there is room.
//
// [hot] To one local uWebSockets.js receiver that shares its core, 20,000 to 26,000 notifications of 200 bytes a
// second: 35 us of this process each, of which 4 us are spent in this folder and 6 us in undici; the kernel has most of
// the rest.
//
// Not here: outbox, counters of subscriptions, last deliveries, alarms (the receiver of the outcomes).

import assert from 'node:assert/strict'
import type { NotificationMessage } from '../domain/subscriptions/message.js'
import { withoutSecretEntries, withoutUserinfo } from '../domain/subscriptions/secrets.js'
import type { Clock, DeliveryOutcome, LogContext, Logger, PendingNotification, SendWatch } from '../ports.js'
import type { Address } from './address.js'
import { type Job, type Lane, untried } from './lane.js'
import { Lanes } from './lanes.js'
import { type Limits, limitsByDefault, poolsOf, retrySendsMax } from './limits.js'
import { LazySender, type SendResult, type TransportEntry, type Transports } from './sender.js'
import { reasons } from './sockets/sockets.js'

export interface NotifierOptions {
  /** `-notifDelivery`. */
  readonly delivery: 'atLeastOnce' | 'bestEffort'
  /** `-notificationMode`, as the options have accepted it; limits.ts explains the modes. */
  readonly mode: string
  /** `-outReqMsgMaxSize`: larger messages are not sent. */
  readonly messageBytesMax: number
  /** `-simulatedNotification`: everything but the sending is done. */
  readonly simulated: boolean
  /** Bytes of a payload that the log shows. */
  readonly loggedBytesMax: number
  readonly limits?: Partial<Limits>
}

export interface NotifierPorts {
  readonly clock: Clock
  /** A number from 0 up to 1, without 1, for the spread of retries. */
  readonly fraction: () => number
  readonly logger: Logger
  /** Whether owners have little room left for waiting notifications; undefined: never. */
  readonly isCrowded?: (() => boolean) | undefined
  readonly transports: Transports
  /** The outcome of one try. Never called from inside `offer`. */
  readonly onOutcome: (job: Pick<Job<PendingNotification>, 'subject' | 'message'>, outcome: DeliveryOutcome) => void
  /** Gets a report of each try; undefined: no watch. */
  readonly watch?: SendWatch | undefined
  /** The lane of this name has room again (`laneOf`); undefined: there is room for receivers that got no lane. */
  readonly onRoom: (lane: string | undefined) => void
  /** A receiver (`receiverOf`) answers that had never answered, or not the last time; undefined: not reported. */
  readonly onAnswering?: ((receiver: string) => void) | undefined
}

/**
 * The numbers of /statistics (`queue` is `notifQueue`, docs/interface/administration.md#statistics) and /metrics
 * (observe/families.ts).
 */
export type NotifierStats = ReturnType<Notifier['stats']>

const drainStepMs = 10

interface Outlet {
  readonly entry: TransportEntry
  readonly sender: LazySender
  sent: number
}

type Notifying = Job<PendingNotification>
/** A message that has no lane yet. */
type Unsent = Pick<Notifying, 'subject' | 'message' | 'bodyBytes' | 'context'> & {
  readonly address: Address | undefined
}

export class Notifier {
  private readonly lanes: Lanes<PendingNotification>
  private readonly outlets = new Map<string, Outlet>()
  private readonly counters = { sentOk: 0, sentError: 0, simulated: 0, dropped: 0 }
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
      { mode: options.mode, retries, limits, fraction, isCrowded: ports.isCrowded },
      {
        send: job => this.send(job),
        settled: (job, outcome) => this.settled(job, outcome),
        room: lane => {
          if (!this.isStopping) ports.onRoom(lane)
        },
        wake: (lane, atMs) => this.wake(lane, atMs),
        later: () => clock.endOfTick(() => this.whileRunning(() => this.lanes.onLater())),
        changed: lane => this.logChange(lane),
        answers: ({ address }) => ports.onAnswering?.(address.receiver),
      },
    )
    // There is always an idle connection to close, because no more than these are ever busy.
    const busyMax = poolsOf(options.mode, limits).reduce(
      (sum, { sendsMax }) => sum + sendsMax + retrySendsMax(sendsMax),
      0,
    )
    for (const [name, entry] of ports.transports)
      this.outlets.set(name, { entry, sender: new LazySender(() => entry.load(clock, busyMax + 1)), sent: 0 })
  }

  // [hot] Once per notification. The job is the only object that it makes besides the address.
  /**
   * Accepts the message of a pending notification, or returns why not. `full`: its owner keeps it and gets a call of
   * `onRoom`; only in atLeastOnce, and always while stopping. `dropped`: it is lost, counted and logged; only in
   * bestEffort. `order`: the first tries of messages of one order go one after the other.
   */
  offer(
    pending: PendingNotification,
    message: NotificationMessage,
    order: string,
    context: LogContext,
  ): 'taken' | 'full' | 'dropped' {
    const { tenant, attempts: tries } = pending
    if (this.isStopping) return this.refuse(tenant, context)
    const { entry } = this.outletOf(message)
    const address = entry.addressOf(message)
    const bodyBytes = message.body === undefined ? 0 : Buffer.byteLength(message.body)
    const bytes = bodyBytes + entry.headBytes(message)
    const end = this.endAtOnce(message, address, bytes, tries, context)
    if (!address || end) {
      this.ports.clock.endOfTick(() =>
        this.whileRunning(() => this.endHere({ subject: pending, message, address, bodyBytes, context }, end!)),
      )
      return 'taken'
    }
    const lane = this.lanes.laneFor(tenant, address)
    if (!lane) return this.refuse(tenant, context)
    const job: Notifying = {
      subject: pending,
      message,
      address,
      lane,
      bytes,
      bodyBytes,
      order,
      context,
      endByMs: Number.POSITIVE_INFINITY,
      tries,
      sinceMs: this.ports.clock.monoMs(),
      ...untried,
      isReplay: pending.isReplay === true,
    }
    return this.lanes.offer(job, pending.dueMs) === 'taken' ? 'taken' : this.refuse(tenant, context)
  }

  private outletOf({ transport }: NotificationMessage): Outlet {
    const outlet = this.outlets.get(transport)
    assert(outlet, `there is no sender for ${transport}`)
    return outlet
  }

  /** Messages to this receiver are likely: prepares the sender, so that the first one need not wait for it. */
  prepare(message: NotificationMessage): void {
    if (!this.isStopping && !this.options.simulated) this.outletOf(message).sender.prepare(message)
  }

  private refuse(tenant: string, context: LogContext): 'full' | 'dropped' {
    if (this.options.delivery === 'atLeastOnce') return 'full'
    this.counters.dropped++
    this.ports.logger.error(`Runtime Error (${this.queueOf(tenant)} notification queue is full)`, context)
    return 'dropped'
  }

  /** Whether one more notification of a tenant may wait outside the lanes. If not, it is lost, counted and logged. */
  hasRoomToWait(tenant: string, waiting: number): boolean {
    if (this.options.delivery === 'atLeastOnce') return true
    if (waiting < this.lanes.table.poolOf(tenant).limits.queueMax) return true
    this.refuse(tenant, { tenant })
    return false
  }

  /** The outcome of a message that is not to be sent; undefined: it is to be sent. */
  private endAtOnce(
    { transport, url }: NotificationMessage,
    address: Address | undefined,
    bytes: number,
    tries: number,
    context: LogContext,
  ): DeliveryOutcome | undefined {
    if (!address) return { kind: 'dropped', why: `malformed URL: '${withoutUserinfo(url)}'` }
    if (bytes > this.options.messageBytesMax) {
      const what = transport.toUpperCase()
      this.ports.logger.error(`Runtime Error (${what} request to send is too large: ${bytes} bytes)`, context)
      const attempts = tries + 1
      return { kind: 'dead', reason: reasons.tooBig, cause: 'unsendable', code: undefined, sent: false, attempts }
    }
    return this.options.simulated ? { kind: 'simulated' } : undefined
  }

  private endHere(job: Unsent, outcome: DeliveryOutcome): void {
    if (outcome.kind === 'simulated') this.counters.simulated++
    if (outcome.kind === 'dead') this.reportTry(job, 0, outcome.reason)
    if (outcome.kind === 'dropped') {
      this.counters.dropped++
      this.ports.logger.error(`Runtime Error (not sending notification: ${outcome.why})`, job.context)
    }
    this.ports.onOutcome(job, outcome)
  }

  /** The lane that `onRoom` reports when there is room for a message of that tenant; undefined: it cannot be sent. */
  laneOf(tenant: string, message: NotificationMessage): string | undefined {
    const address = this.outletOf(message).entry.addressOf(message)
    return address && this.lanes.table.nameOf(tenant, address)
  }

  /** The name of the receiver of a message; undefined: its URL names none. */
  receiverOf(message: NotificationMessage): string | undefined {
    return this.outletOf(message).entry.addressOf(message)?.receiver
  }

  /** The name of the queue that a tenant uses (docs/interface/notifications.md#modes). */
  queueOf(tenant: string): string {
    return this.lanes.table.poolOf(tenant).limits.tenant ?? 'default'
  }

  /**
   * First tries that wait in the queue that the tenant uses: `size(queue of tenant)` of
   * docs/interface/notifications.md#flow-control.
   */
  queueLength(tenant: string): number {
    return this.lanes.table.poolOf(tenant).waiting
  }

  private send(job: Notifying): void {
    const outlet = this.outletOf(job.message)
    outlet.sent++
    outlet.sender.send(job, result => this.onSent(job, result, outlet.entry))
  }

  private onSent(job: Notifying, result: SendResult, entry: TransportEntry): void {
    if (this.isStopped) return
    if (entry.isInQueueStatistics) this.counters[result.kind === 'answered' ? 'sentOk' : 'sentError']++
    this.logEnd(job, result, entry)
    if (result.kind === 'answered') this.reportTry(job, result.bytes ?? 0, undefined)
    else this.reportTry(job, 0, result.reason)
    this.lanes.onEnd(job, result)
  }

  // [hot] Once per try.
  private reportTry(job: Unsent, responseBytes: number, failure: string | undefined): void {
    const { watch } = this.ports
    if (!watch) return
    const { message, address, context, bodyBytes: requestBytes, subject } = job
    watch.onEnded({
      what: this.outletOf(message).entry.what,
      tenant: subject.tenant,
      path: context.path ?? '',
      receiver: address ? `${address.host}:${address.port}${withoutSecretEntries(address.path)}` : message.url,
      requestBytes,
      responseBytes,
      failure,
    })
  }

  private settled(job: Notifying, outcome: DeliveryOutcome): void {
    if (outcome.kind === 'dead' && outcome.attempts > 1 && !job.isReplay)
      this.ports.logger.warn(
        `Notification (subId: ${job.subject.subscription}) given up after ${outcome.attempts} tries: ${outcome.reason}`,
        job.context,
      )
    this.ports.onOutcome(job, outcome)
  }

  private wake(lane: Lane<PendingNotification>, atMs: number): void {
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

  // [hot] A line is built only if the log level wants it.
  private logEnd(job: Notifying, result: SendResult, { lineOf }: TransportEntry): void {
    const { logger } = this.ports
    const { message, subject, context } = job
    const code = result.kind === 'answered' ? result.code : undefined
    if (code !== undefined && (code < 200 || code > 299))
      logger.warn(`Notification (subId: ${subject.subscription}) response NOT OK, http code: ${code}`, context)
    if (logger.level !== 'INFO' && logger.level !== 'DEBUG') return
    const line = lineOf(subject.subscription, job, this.shown(message.body), result)
    if (line !== undefined) logger.info(line, context)
  }

  private shown(body = ''): string {
    const { loggedBytesMax } = this.options
    const payload = Buffer.from(body)
    if (payload.length <= loggedBytesMax) return `payload (${payload.length} bytes): ${body}`
    return `payload (${payload.length} bytes): ${payload.subarray(0, loggedBytesMax)}(...)`
  }

  private logChange({ address, breaker, reason }: Lane<PendingNotification>): void {
    const { protocol, host, port } = address
    const receiver = `${protocol}//${host}:${port}`
    if (breaker.state === 'closed') this.ports.logger.warn(`Receiver ${receiver} answers again`)
    else this.ports.logger.warn(`Receiver ${receiver} does not answer, notifications to it are held back: ${reason}`)
  }

  /** Totals since the start, and present values. It walks over the lanes, so do not call it for every request. */
  stats() {
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
    for (const lane of this.lanes.table.all()) retrying += lane.retrying + lane.holding
    return {
      queue: { ...queue, sentOk, sentError },
      transports: Object.fromEntries(
        [...this.outlets].map(([name, { sender, sent }]) => [name, { sent, ...sender.stats() }]),
      ),
      ...counters,
      ...this.lanes.counters,
      sending,
      retrying,
      lanes: this.lanes.table.size,
    }
  }

  /**
   * Accepts nothing more, lets the messages in flight end, for `drainMs` at most, and closes everything. Waiting
   * messages are forgotten without an outcome, because their rows are in the outbox. In bestEffort there is no outbox,
   * so waiting messages are sent too, as far as the time allows.
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
    for (const { sender } of this.outlets.values()) sender.close()
  }

  private isBusy(): boolean {
    return this.lanes.table.pools.some(({ sending, resending, waiting }) => sending + resending + waiting > 0)
  }
}
