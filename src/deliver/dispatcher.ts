// Where the delivery of notifications begins: renders the message of each pending notification, offers it to the
// notifier, and keeps in order the notifications for which a lane has no room.
//
//   intent (shard/notify/trigger-event.ts)  ->  message (domain/subscriptions/message.ts)  ->  job (lane.ts)
//
// Notifications of one tick are rendered in the next, a few at a time. So replies leave first and the event loop has
// its turn. When a lane refuses a message, only the pending notification is kept. It is rendered again when the lane
// has room. First tries and later ones wait in separate lines, so that a receiver's failures do not hold back new
// notifications.
//
// For each line one of two things is true: the lane has refused the first notification and will report room, or the
// lane is in `hopeful` and its line is offered soon. So no notification waits for ever.
//
// A tenant may have a rate. Notifications beyond it wait, and are rendered when they are sent (paced.ts).
//
// Not here: lanes and retries (notifier.ts), pending notifications (shard/), transports (sender.ts lists what a new one
// touches).

import type { NotificationInput, NotificationMessage, NotificationOptions } from '../domain/subscriptions/message.js'
import { emptyMessage, messageOf } from '../domain/subscriptions/notification.js'
import type { Subscription } from '../domain/subscriptions/subscription.js'
import type { Deliverer, DeliveryOutcome, Logger, PendingNotification, SendWatch } from '../ports.js'
import { Fifo } from './fifo.js'
import { Notifier, type NotifierOptions, type NotifierPorts, type NotifierStats } from './notifier.js'
import { type NotificationPace, PacedNotifications } from './paced.js'

/** Messages rendered in one turn of the event loop: some 2 ms. */
const renderedPerTurn = 64

/** Messages rendered again in one turn for lanes that have room: some 20 ms at most, including the reads for them. */
const refilledPerTurn = 256

/** The notifications that wait for room in one lane. */
interface Line {
  /** The queue that its lane is part of (docs/interface/notifications.md#modes). */
  readonly queue: string
  /** Notifications that the lane gave back because the receiver does not answer. They come before the first tries. */
  readonly returned: Fifo<PendingNotification>
  readonly first: Fifo<PendingNotification>
  readonly later: Fifo<PendingNotification>
}

export type DispatcherPorts = Omit<NotifierPorts, 'onOutcome' | 'onRoom'> & {
  /** undefined: no tenant has a rate. */
  readonly pace?: NotificationPace | undefined
}

export class Dispatcher implements Deliverer {
  private readonly logger: Logger
  private readonly notifier: Notifier
  private readonly watch: SendWatch | undefined
  private readonly arrived = new Fifo<PendingNotification>()
  private readonly lines = new Map<string, Line>()
  /** Lanes that may have room for notifications in their lines. */
  private readonly hopeful = new Set<string>()
  /** undefined: no tenant has a rate. */
  private readonly paced: PacedNotifications | undefined
  private isScheduled = false
  private isStopped = false

  constructor(
    private readonly ports: DispatcherPorts,
    private readonly options: NotificationOptions,
    sending: NotifierOptions,
  ) {
    this.logger = ports.logger
    this.watch = ports.watch
    this.paced = ports.pace && new PacedNotifications(ports.pace, ports.clock, () => this.schedule())
    this.notifier = new Notifier(
      {
        ...ports,
        onOutcome: ({ subject, message }, outcome) => this.onOutcome(subject, message, outcome),
        onRoom: lane => this.onRoom(lane),
      },
      sending,
    )
  }

  deliver(pending: PendingNotification): void {
    this.arrived.push(pending)
    this.schedule()
  }

  prepare({ status, notification: { transport } }: Subscription): void {
    if (status !== 'inactive') this.notifier.prepare(emptyMessage(transport))
  }

  receiverOf({ notification: { transport } }: Subscription): string | undefined {
    return this.notifier.receiverOf(emptyMessage(transport))
  }

  queueLength(tenant: string): number {
    const queue = this.notifier.queueOf(tenant)
    let length = this.notifier.queueLength(tenant) + this.arrived.size
    for (const line of this.lines.values()) if (line.queue === queue) length += line.first.size
    for (const [other, waiting] of this.paced?.lengths() ?? [])
      if (this.notifier.queueOf(other) === queue) length += waiting
    return length
  }

  stats(): NotifierStats {
    return this.notifier.stats()
  }

  /** Accepts nothing more, and lets the messages in flight end, for `drainMs` at most. */
  async stop(drainMs: number): Promise<void> {
    this.isStopped = true
    await this.notifier.stop(drainMs)
  }

  private schedule(): void {
    if (this.isScheduled) return
    this.isScheduled = true
    this.ports.clock.endOfTick(() => {
      this.isScheduled = false
      this.renderSome()
    })
  }

  private renderSome(): void {
    for (let left = renderedPerTurn; left > 0 && this.arrived.first && !this.isStopped; left--)
      this.renderOrPace(this.arrived.shift()!)
    if (this.paced) this.renderPaced(this.paced)
    this.refillSome()
    if ((this.arrived.first || this.hopeful.size > 0 || this.paced?.hasDue) && !this.isStopped) this.schedule()
  }

  private renderOrPace(pending: PendingNotification): void {
    const { paced } = this
    if (!paced || paced.mayLeave(pending)) return this.render(pending)
    const { tenant } = pending
    if (this.notifier.hasRoomToWait(tenant, paced.lengthOf(tenant))) paced.add(pending)
    else pending.onOutcome({ kind: 'dropped', why: 'no room' })
  }

  private renderPaced(paced: PacedNotifications): void {
    for (let left = renderedPerTurn; left > 0 && !this.isStopped; left--) {
      const pending = paced.take()
      if (!pending) return
      this.render(pending)
    }
  }

  // [hot] Once per notification.
  private render(pending: PendingNotification): void {
    const input = pending.input()
    const message = input && this.messageOf(pending, input)
    if (input && message) this.send(pending, input, message)
  }

  private send(pending: PendingNotification, input: NotificationInput, message: NotificationMessage): void {
    if (this.lines.size > 0 && this.mustQueue(pending, message)) return
    if (!this.offer(pending, input, message)) this.await(pending, message)
  }

  /** Queues it in a line until its lane has room. */
  private await(pending: PendingNotification, message: NotificationMessage): void {
    fifoOf(this.lineOf(this.laneOf(pending, message), pending), pending).push(pending)
  }

  private lineOf(lane: string, { tenant }: PendingNotification): Line {
    let line = this.lines.get(lane)
    if (!line) {
      line = { queue: this.notifier.queueOf(tenant), returned: new Fifo(), first: new Fifo(), later: new Fifo() }
      this.lines.set(lane, line)
    }
    return line
  }

  private laneOf({ tenant }: PendingNotification, message: NotificationMessage): string {
    return this.notifier.laneOf(tenant, message) ?? ''
  }

  private messageOf(pending: PendingNotification, input: NotificationInput): NotificationMessage | undefined {
    const { id, notification } = input.subscription
    if (notification.attrsFormat === 'legacy')
      this.watch?.onDeprecated(
        'ngsiv1NotifFormat',
        `notification legacy format at notification sending (subId: ${id})`,
        contextOf(input),
      )
    const made = messageOf(input, this.options)
    if ('transport' in made) return made
    this.logger[made.level](made.text, contextOf(input))
    const attempts = pending.attempts + 1
    if (made.failure === undefined) pending.onOutcome({ kind: 'dropped', why: made.text })
    else {
      const { failure: reason } = made
      pending.onOutcome({ kind: 'dead', reason, cause: 'unsendable', code: undefined, sent: false, attempts })
    }
    return undefined
  }

  /** Queues it behind the notifications that wait for the same lane, if there are any. */
  private mustQueue(pending: PendingNotification, message: NotificationMessage): boolean {
    const line = this.lines.get(this.laneOf(pending, message))
    const fifo = line && fifoOf(line, pending)
    if (!fifo || !(fifo.first || (fifo === line.first && line.returned.first))) return false
    fifo.push(pending)
    return true
  }

  /** A lane has room; undefined: there is room for a new lane. */
  private onRoom(lane: string | undefined): void {
    if (lane !== undefined) this.hopeful.add(lane)
    else for (const name of this.lines.keys()) this.hopeful.add(name)
    this.schedule()
  }

  /** Continues the lines whose lanes have room, as far as one turn allows. */
  private refillSome(): void {
    let left = refilledPerTurn
    for (const name of this.hopeful) {
      if (left === 0 || this.isStopped) return
      this.hopeful.delete(name)
      const line = this.lines.get(name)
      if (!line) continue
      left = this.refill(name, line.returned, left)
      if (!line.returned.first) left = this.refill(name, line.first, left)
      left = this.refill(name, line.later, left)
      if (!line.returned.first && !line.first.first && !line.later.first) this.lines.delete(name)
      // The lane may have room for more after the others have had their turn.
      else if (left === 0) this.hopeful.add(name)
    }
  }

  /**
   * Offers the waiting notifications of a lane, in order, while it has room. Returns how many more this turn may offer.
   */
  private refill(lane: string, fifo: Fifo<PendingNotification>, most: number): number {
    let left = most
    for (; left > 0 && fifo.first && !this.isStopped; left--) {
      const pending = fifo.first
      const input = pending.input()
      const message = input && this.messageOf(pending, input)
      if (input && message) {
        // Its subscription may have another receiver by now.
        if (this.laneOf(pending, message) !== lane) this.send(pending, input, message)
        else if (!this.offer(pending, input, message)) break
      }
      fifo.shift()
    }
    return left
  }

  private onOutcome(pending: PendingNotification, message: NotificationMessage, outcome: DeliveryOutcome): void {
    pending.onOutcome(outcome)
    if (outcome.kind !== 'failed' || outcome.held) return
    // It was not offered, so its lane would not report room for it.
    const lane = this.laneOf(pending, message)
    const line = this.lineOf(lane, pending)
    if (outcome.nextAttemptMs === undefined) line.returned.push(pending)
    else line.later.push(pending)
    this.onRoom(lane)
  }

  /** Whether the notifier has accepted the message. */
  private offer(pending: PendingNotification, input: NotificationInput, message: NotificationMessage): boolean {
    const { entity, path } = input
    const order = `${pending.subscription} ${path} ${entity.type} ${entity.id}`
    const answer = this.notifier.offer(pending, message, order, contextOf(input))
    if (answer === 'dropped') pending.onOutcome({ kind: 'dropped', why: 'no room' })
    return answer !== 'full'
  }
}

/** A notification that was tried and has no due time has kept its place among the first tries. */
const fifoOf = ({ first, later }: Line, { dueMs }: PendingNotification): Fifo<PendingNotification> =>
  dueMs === undefined ? first : later

/** Each notification is a transaction of its own (docs/interface/administration.md#log-lines). */
const contextOf = ({ correlator, number, tenant, path }: NotificationInput) => ({
  correlator: `${correlator}; cbnotif=${number}`,
  tenant,
  path,
})
