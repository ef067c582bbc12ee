// A message: what the domain renders of a notification, and what one transport sends.
//
// It is complete but for what depends on the connection: `Host` and `Content-Length` are the sender's, and all texts go out as UTF-8.
//
// Not here: how it is rendered (notification.ts), what a lane knows of it on its way (deliver/lane.ts).

import type { MqttTransport, NamedText } from './subscription.js'

/** What all transports have in common. */
export interface Message {
  /** The name of the transport that sends it. */
  readonly transport: string
  /** Absolute, with a scheme of that transport. */
  readonly url: string
  /** undefined: none. */
  readonly body: string | undefined
}

export interface HttpMessage extends Message {
  readonly transport: 'http'
  /** Upper case. */
  readonly method: string
  /** In the order in which they are sent; values hold no control characters. The sender leaves out those that frame a message. */
  readonly headers: readonly NamedText[]
  /** Of one try, from connecting to the end of the answer; 0: the service's default (subscriptions.md §8.4). */
  readonly timeoutMs: number
  /** Its headers name another tenant or service path than those that it is about: it must not come back to this broker. */
  readonly leavesScope?: boolean
  /** Whether it may reach the receiver twice; undefined: it may. */
  readonly isRepeatable?: boolean
}

/** The password of its login is never logged. */
export interface MqttMessage extends Message, Pick<MqttTransport, 'topic' | 'qos' | 'retain' | 'login'> {
  readonly transport: 'mqtt'
}
