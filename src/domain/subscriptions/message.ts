// The input from which a notification is rendered, and the resulting message.
//
// The input contains only values. The shard can create it again from the outbox, and it renders to the same message. A
// message is complete except for `Host` and `Content-Length`, which the sender adds; texts are sent as UTF-8.
//
// Not here: the rendering (notification.ts), the use of a message in a lane (deliver/lane.ts).

import type { Attribute, Entity } from '../entities/entity.js'
import type { AlterationType, MqttTransport, NamedText, Subscription } from './subscription.js'

export interface NotificationInput {
  readonly subscription: Subscription
  /** As the change left it. For a deletion, its last state. */
  readonly entity: Entity
  /** The entity's service path. */
  readonly path: string
  /** '' is the default tenant. */
  readonly tenant: string
  /** The attributes that the request named, deleted ones included, each once. Ignored when the entity was deleted. */
  readonly named: readonly NamedAttribute[]
  /**
   * The kind of change, one of the four (docs/interface/subscriptions.md#alteration-types), independent of the
   * alteration types of the subscription.
   */
  readonly alteration: AlterationType
  /** The whole correlator of the request, suffixes of earlier notifications included. */
  readonly correlator: string
  /**
   * The number of the notification within the request, over all entities and subscriptions, from 1
   * (docs/interface/notifications.md#correlators).
   */
  readonly number: number
  /** `X-Auth-Token` of the request; undefined: it had none. */
  readonly authToken: string | undefined
  /** The name by which the receiver recognises a repeated notification. */
  readonly notificationId: string
  /** The entity's normalized JSON in the form for clients, if it is available (`encodedJson`, when `isAnswer`). */
  readonly normalizedText?: string | undefined
}

export interface NamedAttribute {
  readonly name: string
  readonly action: 'append' | 'update' | 'delete'
  /** The attribute before the change, if it existed and the request gave its value. */
  readonly previous?: Attribute | undefined
}

/** Options for all notifications of a broker. */
export interface NotificationOptions {
  /** The prefix of our own headers: `Ctx-Service` or `Fiware-Service`. */
  readonly vocabulary: 'Ctx' | 'Fiware'
  /** Product token and version. */
  readonly userAgent: string
  /**
   * `-disableCustomNotifications`: custom ones are sent like regular ones
   * (docs/interface/notifications.md#custom-notifications).
   */
  readonly disableCustomNotifications: boolean
  /**
   * Characters of all texts with macros together (`-outReqMsgMaxSize`, docs/operations/options.md). Otherwise a
   * template of a megabyte that names an attribute of a megabyte would produce a hundred gigabytes.
   */
  readonly filledLengthMax: number
}

/** Why there is no message, now or ever: the attempt to send it is over. `timesSent` has counted it. */
export interface NotSent {
  readonly level: 'warn' | 'error'
  /** For the log; contains nothing of the entity or the request. */
  readonly text: string
  /** The text of `lastFailureReason`; undefined: it does not count as a failure. */
  readonly failure: string | undefined
}

/** A notification that is not sent and does not count as a failure. */
export const notSent = (level: NotSent['level'], text: string): NotSent => ({
  level,
  text,
  failure: undefined,
})

/** The members of messages of all transports. */
export interface NotificationMessage {
  /** The name of the transport that sends it. */
  readonly transport: string
  /** Absolute, with a scheme of that transport. */
  readonly url: string
  /** undefined: none. */
  readonly body: string | undefined
}

export interface HttpMessage extends NotificationMessage {
  readonly transport: 'http'
  /** Upper case. */
  readonly method: string
  /**
   * In the order in which they are sent; values contain no control characters. The sender removes headers that frame a
   * message.
   */
  readonly headers: readonly NamedText[]
  /**
   * The limit of one try, from connecting to the end of the answer; 0: the service's default
   * (docs/interface/notifications.md#timeouts-and-redirects).
   */
  readonly timeoutMs: number
  /**
   * Whether its headers name another tenant or service path than those of the entity. Then it must not come back to
   * this broker.
   */
  readonly leavesScope?: boolean
  /** Whether it may reach the receiver twice; undefined: it may. */
  readonly isRepeatable?: boolean
}

/** The password of its login is never logged. */
export interface MqttMessage extends NotificationMessage, Pick<MqttTransport, 'topic' | 'qos' | 'retain' | 'login'> {
  readonly transport: 'mqtt'
}
