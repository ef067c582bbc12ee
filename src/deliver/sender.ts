// A sender sends the messages of one transport. A transport entry holds the facts about it that are needed before its
// library is loaded.
//
// Everything else in this folder works alike for all transports. It finds the sender by the name in
// `message.transport`: no queue, retry, breaker or counter names one. A new transport, here X, touches eight files:
//
//   domain/subscriptions/  subscription.ts, transport-parser.ts, subscription-json.ts   how a subscription asks for it
//                          receiver-url.ts                                              the scheme of its URLs
//                          message.ts, notification.ts                                  its message, and how that is rendered
//   deliver/               X-sender.ts, transports.ts                                   its sender, and its entry in the table
//
// test/deliver/new-transport.test.ts adds one and checks that notifications arrive.

import type { NotificationMessage } from '../domain/subscriptions/message.js'
import type { Clock, EndedTry } from '../ports.js'
import type { Address } from './address.js'

/** The part of a lane's job that a sender needs. */
export interface Sendable<M extends NotificationMessage = NotificationMessage> {
  readonly message: M
  readonly address: Address
  /** Monotonic time at which it fails at the latest; Infinity: the message or the options set the time of a try. */
  readonly endByMs: number
}

/** How one try ended. */
export type SendResult =
  /** The receiver has it. `code` is the status of the HTTP answer, `bytes` the announced length of its body. */
  | { readonly kind: 'answered'; readonly code: number | undefined; readonly bytes?: number; readonly answer?: Answer }
  | { readonly kind: 'failed'; readonly reason: string }
  /** Every further try would fail as well: the fault is in the message. */
  | { readonly kind: 'unsendable'; readonly reason: string }

/** A whole answer, for senders whose caller needs it. */
interface Answer {
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

export type OnSent = (result: SendResult) => void

/** Methods, so that a sender of one kind of message is assignable where messages of all kinds are routed by name. */
export interface Sender<M extends NotificationMessage = NotificationMessage> {
  /** Sends a message and reports the result once, later. */
  send(job: Sendable<M>, onSent: OnSent): void
  /** Messages to the same receiver are likely: the sender does its slow preparations now. */
  prepare(message: M): void
  stats(): SenderStats
  /** Closes all connections; no result is reported for messages in flight. */
  close(): void
}

export interface SenderStats {
  /** Open connections, idle ones included. */
  readonly connections: number
}

/** A transport whose sender may not be loaded yet. */
export interface TransportEntry<M extends NotificationMessage = NotificationMessage> {
  /** The name under which its tries are counted. */
  readonly what: EndedTry['what']
  /**
   * Whether its tries count in `sentOk` and `sentError` of the queue's statistics
   * (docs/interface/notifications.md#simulation).
   */
  readonly isInQueueStatistics: boolean
  /** undefined: the URL is malformed, or of another transport. */
  addressOf(message: M): Address | undefined
  /** Approximate bytes of a message on the wire besides its body. */
  headBytes(message: M): number
  /** The log line at INFO for a try; undefined: none. `payload` is the body as it may be shown. */
  lineOf(subscription: string, job: Sendable<M>, payload: string, result: SendResult): string | undefined
  /** `connectionsMax`: more than the messages that can ever be in flight. */
  load(clock: Clock, connectionsMax: number): Promise<Sender<M>>
}

/** Transports by name. */
export type Transports = ReadonlyMap<string, TransportEntry>

/** A sender whose library is slow to load. It is loaded for the first message, or earlier when one is likely. */
export class LazySender<M extends NotificationMessage = NotificationMessage> implements Sender<M> {
  private loading: Promise<Sender<M>> | undefined
  private loaded: Sender<M> | undefined
  private isClosed = false

  constructor(private readonly load: () => Promise<Sender<M>>) {}

  // [hot] Once per try.
  /** Messages that come before it is loaded are sent when it is, in their order. */
  send(job: Sendable<M>, onSent: OnSent): void {
    if (this.loaded) this.loaded.send(job, onSent)
    else this.whenLoaded(sender => sender.send(job, onSent))
  }

  prepare(message: M): void {
    this.whenLoaded(sender => sender.prepare(message))
  }

  stats(): SenderStats {
    return this.loaded?.stats() ?? { connections: 0 }
  }

  close(): void {
    this.isClosed = true
    this.loaded?.close()
  }

  private whenLoaded(run: (sender: Sender<M>) => void): void {
    this.loading ??= this.load().then(sender => {
      this.loaded = sender
      return sender
    })
    void this.loading.then(sender => {
      if (!this.isClosed) run(sender)
      else sender.close()
    })
  }
}
