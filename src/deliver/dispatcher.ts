// The desk between who owes notifications and the notifier: makes the message of each, offers it, and keeps in order those for which a lane has
// no room.
//
// What is taken in one tick is made in the next, a few at a time, so that replies leave first and the event loop has its turn. What a lane
// refuses is let go of: only who owes it is remembered, and it is made again when the lane has room. First tries and later ones stand in
// lines of their own, so that a receiver's failures do not hold back what is new.
//
// Whoever is the first in a line has been refused by its lane, which tells when there is room, or is about to be offered (`hopeful`): so
// nobody waits for ever.
//
// Not here: lanes and retries (notifier.ts), what is owed (shard/).

import { notificationOf } from '../domain/subscriptions/notification.js'
import type {
  MqttNotification,
  NotificationMessage,
  NotificationOptions,
  Occasion,
} from '../domain/subscriptions/occasion.js'
import type { NamedText, Subscription } from '../domain/subscriptions/subscription.js'
import type { Clock, DeliveryOutcome, Despatch, Due, Logger, SendWatch } from '../ports.js'
import type { Delivery, Message, MqttMessage } from './delivery.js'
import { Fifo } from './fifo.js'
import { Notifier, type NotifierOptions, type NotifierStats } from './notifier.js'

/** Messages made in one turn of the event loop: some 2 ms. */
const madePerTurn = 64

/** Messages made again in one turn for lanes that have room: some 20 ms at most, with what is read for them. */
const refilledPerTurn = 256

interface DueDelivery extends Delivery {
  readonly due: Due
}

/** What waits for room in one lane. */
interface Line {
  /** The queue that its lane is part of (subscriptions.md §11.2). */
  readonly queue: string
  readonly first: Fifo<Due>
  readonly later: Fifo<Due>
}

export interface DispatcherPorts {
  readonly clock: Clock
  /** A number from 0 up to but without 1, for the spread of retries. */
  readonly fraction: () => number
  readonly logger: Logger
  /** Told of each try; undefined: nobody is. */
  readonly watch?: SendWatch | undefined
}

export class Dispatcher implements Despatch {
  private readonly clock: Clock
  private readonly logger: Logger
  private readonly options: NotificationOptions
  private readonly notifier: Notifier
  private readonly watch: SendWatch | undefined
  private readonly taken = new Fifo<Due>()
  private readonly lines = new Map<string, Line>()
  /** Lanes that may have room for those who stand in line. */
  private readonly hopeful = new Set<string>()
  private isScheduled = false
  private isStopped = false

  constructor(
    { clock, fraction, logger, watch }: DispatcherPorts,
    options: NotificationOptions,
    sending: NotifierOptions,
  ) {
    this.clock = clock
    this.logger = logger
    this.options = options
    this.watch = watch
    this.notifier = new Notifier(
      {
        clock,
        fraction,
        logger,
        watch,
        onOutcome: (delivery, outcome) => this.onOutcome(delivery as DueDelivery, outcome),
        onRoom: lane => this.onRoom(lane),
      },
      sending,
    )
  }

  take(due: Due): void {
    this.taken.push(due)
    this.schedule()
  }

  expect({ status, notification: { transport } }: Subscription): void {
    if (status === 'inactive') return
    if (transport.kind === 'http' || transport.kind === 'httpCustom') this.notifier.prepareHttp()
    else this.notifier.prepareMqtt(mqttMessage({ ...transport, kind: 'mqtt', payload: '' }))
  }

  queueLength(tenant: string): number {
    const queue = this.notifier.queueOf(tenant)
    let length = this.notifier.queueLength(tenant) + this.taken.size
    for (const line of this.lines.values()) if (line.queue === queue) length += line.first.size
    return length
  }

  stats(): NotifierStats {
    return this.notifier.stats()
  }

  /** Takes nothing more, and lets what is being sent end, for `drainMs` at most. */
  async stop(drainMs: number): Promise<void> {
    this.isStopped = true
    await this.notifier.stop(drainMs)
  }

  private schedule(): void {
    if (this.isScheduled) return
    this.isScheduled = true
    this.clock.endOfTick(() => {
      this.isScheduled = false
      this.makeSome()
    })
  }

  private makeSome(): void {
    for (let left = madePerTurn; left > 0 && this.taken.first && !this.isStopped; left--) this.make(this.taken.shift()!)
    this.refillSome()
    if ((this.taken.first || this.hopeful.size > 0) && !this.isStopped) this.schedule()
  }

  // [hot] Once per notification.
  private make(due: Due): void {
    const occasion = due.occasion()
    const message = occasion && this.messageOf(due, occasion)
    if (occasion && message) this.send(due, occasion, message)
  }

  private send(due: Due, occasion: Occasion, message: Message): void {
    if (this.lines.size > 0 && this.mustQueue(due, message)) return
    if (!this.offer(due, occasion, message)) this.await(due, message)
  }

  /** Lets it stand in line until its lane has room; gives the lane. */
  private await(due: Due, message: Message): string {
    const lane = this.laneOf(due, message)
    let line = this.lines.get(lane)
    if (!line) {
      line = { queue: this.notifier.queueOf(due.tenant), first: new Fifo(), later: new Fifo() }
      this.lines.set(lane, line)
    }
    fifoOf(line, due).push(due)
    return lane
  }

  private laneOf({ tenant }: Due, message: Message): string {
    return this.notifier.laneOf(tenant, message) ?? ''
  }

  private messageOf(due: Due, occasion: Occasion): Message | undefined {
    const { id, notification } = occasion.subscription
    if (notification.attrsFormat === 'legacy')
      this.watch?.onDeprecated(
        'ngsiv1NotifFormat',
        `notification legacy format at notification sending (subId: ${id})`,
        contextOf(occasion),
      )
    const made = notificationOf(occasion, this.options)
    if (made.kind !== 'notSent') return messageFrom(made)
    this.logger[made.level](made.text, contextOf(occasion))
    const attempts = due.attempts + 1
    if (made.failure === undefined) due.onOutcome({ kind: 'dropped', why: made.text })
    else due.onOutcome({ kind: 'dead', reason: made.failure, code: undefined, sent: false, attempts })
    return undefined
  }

  /** Stands behind those that wait for the same lane, if there are any. */
  private mustQueue(due: Due, message: Message): boolean {
    const line = this.lines.get(this.laneOf(due, message))
    const fifo = line && fifoOf(line, due)
    if (!fifo?.first) return false
    fifo.push(due)
    return true
  }

  /** A lane has room; undefined: there is room for lanes that could not be had. */
  private onRoom(lane: string | undefined): void {
    if (lane !== undefined) this.hopeful.add(lane)
    else for (const name of this.lines.keys()) this.hopeful.add(name)
    this.schedule()
  }

  /** Lets lines go on whose lanes have room, as far as one turn allows. */
  private refillSome(): void {
    let left = refilledPerTurn
    for (const name of this.hopeful) {
      if (left === 0 || this.isStopped) return
      this.hopeful.delete(name)
      const line = this.lines.get(name)
      if (!line) continue
      left = this.refill(name, line.first, left)
      left = this.refill(name, line.later, left)
      if (!line.first.first && !line.later.first) this.lines.delete(name)
      // It may have room for more, when the others have had their turn.
      else if (left === 0) this.hopeful.add(name)
    }
  }

  /** Offers what waits for room in a lane, in order, until there is none any more; gives how many more may be offered in this turn. */
  private refill(lane: string, fifo: Fifo<Due>, most: number): number {
    let left = most
    for (; left > 0 && fifo.first && !this.isStopped; left--) {
      const due = fifo.first
      const occasion = due.occasion()
      const message = occasion && this.messageOf(due, occasion)
      if (occasion && message) {
        // Its subscription may have another receiver by now.
        if (this.laneOf(due, message) !== lane) this.send(due, occasion, message)
        else if (!this.offer(due, occasion, message)) break
      }
      fifo.shift()
    }
    return left
  }

  private onOutcome({ due, message }: DueDelivery, outcome: DeliveryOutcome): void {
    due.onOutcome(outcome)
    if (outcome.kind !== 'failed' || outcome.held) return
    // It was not offered, so its lane has nobody to tell of room yet.
    this.onRoom(this.await(due, message))
  }

  /** Whether the notifier has taken it. */
  private offer(due: Due, occasion: Occasion, message: Message): boolean {
    const { entity, path } = occasion
    const delivery: DueDelivery = {
      due,
      key: due.id,
      subscription: due.subscription,
      tenant: due.tenant,
      entity: `${path} ${entity.type} ${entity.id}`,
      attempt: due.attempts,
      dueMs: due.dueMs,
      message,
      context: contextOf(occasion),
    }
    switch (this.notifier.offer(delivery)) {
      case 'taken':
        return true
      case 'dropped':
        due.onOutcome({ kind: 'dropped', why: 'no room' })
        return true
      case 'full':
        return false
    }
  }
}

const fifoOf = ({ first, later }: Line, { attempts }: Due): Fifo<Due> => (attempts === 0 ? first : later)

function messageFrom(made: Exclude<NotificationMessage, { kind: 'notSent' }>): Message {
  if (made.kind === 'mqtt') return mqttMessage(made)
  const { method, url, headers, body, timeoutMs, leavesScope } = made
  return {
    transport: 'http',
    method,
    url,
    headers: inTurn(headers),
    body: body === undefined ? undefined : Buffer.from(body),
    timeoutMs,
    leavesScope,
  }
}

// [hot] `flat` takes ten times as long.
/** Names and values, one after the other. */
function inTurn(headers: readonly NamedText[]): readonly string[] {
  const texts: string[] = []
  for (const header of headers) texts.push(header[0], header[1])
  return texts
}

function mqttMessage({ url, topic, payload, qos, retain, login }: MqttNotification): MqttMessage {
  const { user, passwd: password } = login ?? { user: undefined, passwd: undefined }
  return { transport: 'mqtt', url, topic, payload: Buffer.from(payload), qos, retain, user, password }
}

/** Each notification is a transaction of its own (operations.md §6.1). */
const contextOf = ({ correlator, number, tenant, path }: Occasion) => ({
  correlator: `${correlator}; cbnotif=${number}`,
  tenant,
  path,
})
