// What the notifier is given and what it tells: a message that is ready to be sent, to whom, and how it ended.
//
// A delivery is one notification of one subscription. The notifier does not know why it is sent nor what is in it; it only counts
// tries. Whoever owns the outbox deletes rows, keeps the counters of subscriptions and lists last deliveries, all from the outcomes.
//
// Not here: how a message is made (domain), where it waits (lane), how it travels (http-sender, mqtt-sender).

import type { LogContext } from '../ports.js'

export interface HttpMessage {
  readonly transport: 'http'
  /** Upper case. */
  readonly method: string
  /** Absolute, `http:` or `https:`. Its path is sent as it is, but for bytes that may not stand there: those are percent-encoded. */
  readonly url: string
  /**
   * Names and values in turn, sent in this order. `Host` and `Content-Length` need not be there; a `Host` that is there is sent.
   * What frames a message (`Content-Length`, `Transfer-Encoding`, `Connection` and so on) is the sender's: given ones are left out.
   */
  readonly headers: readonly string[]
  /** Undefined: none. Must not change until the delivery has ended. */
  readonly body: Buffer | undefined
  /** Of one try, from connecting to the end of the answer; 0: as the options say (subscriptions.md §8.4). */
  readonly timeoutMs: number
  /** Its headers name another tenant or service path than those of its subscription: it must not come back to this broker. */
  readonly leavesScope?: boolean | undefined
}

export interface MqttMessage {
  readonly transport: 'mqtt'
  /** `mqtt://host[:port]` or `mqtts://host[:port]`. */
  readonly url: string
  readonly topic: string
  readonly payload: Buffer
  readonly qos: 0 | 1 | 2
  readonly retain: boolean
  readonly user: string | undefined
  /** Never logged. */
  readonly password: string | undefined
}

export type Message = HttpMessage | MqttMessage

export interface Delivery {
  /** Says which one it is, for its owner: a row of the outbox and a subscription. */
  readonly key: string
  readonly subscription: string
  readonly tenant: string
  /** With the subscription: what keeps its order. Anything that tells entities apart, path and type included. */
  readonly entity: string
  /** Tries that have failed before: 0, or what an outcome has told as `attempts`. */
  readonly attempt: number
  /** Wall clock before which no next try is made; only for `attempt` above 0, undefined is now. */
  readonly dueMs?: number | undefined
  readonly message: Message
  /** Of the request that caused it. */
  readonly context: LogContext
}

/** How one try ended, as a sender tells it. */
export type SendResult =
  /** The receiver has it; `code` is that of the HTTP answer, which may be any, and `bytes` those of its body as it announces them. */
  | { readonly kind: 'answered'; readonly code: number | undefined; readonly bytes?: number }
  | { readonly kind: 'failed'; readonly reason: string }
  /** Will fail whenever it is tried: the fault is in the message. */
  | { readonly kind: 'unsendable'; readonly reason: string }

/** Bytes that a delivery keeps in memory and that a message has on the wire, nearly. */
export function messageBytes(message: Message): number {
  if (message.transport === 'mqtt') return message.topic.length + message.payload.length
  let bytes = message.method.length + message.url.length + (message.body?.length ?? 0)
  for (const text of message.headers) bytes += text.length + 2
  return bytes
}
