// What a notification is rendered from, and the message that comes of it.
//
// The input holds nothing but values. The shard can make it again from what the outbox keeps, and it renders to the
// same message. A message is complete but for `Host` and `Content-Length`, which are the sender's; texts go out as
// UTF-8.
//
// Not here: how it is rendered (notification.ts), what a lane knows of it on its way (deliver/lane.ts).

import type { Attribute, Entity } from '../entities/entity.js'
import type { AlterationType, MqttTransport, NamedText, Subscription } from './subscription.js'

export interface NotificationInput {
  readonly subscription: Subscription
  /** As the change left it; when it was deleted, as it was last. */
  readonly entity: Entity
  /** The entity's service path. */
  readonly path: string
  /** '' is the default tenant. */
  readonly tenant: string
  /**
   * The attributes that the request named, deleted ones included, each once. Does not matter when the entity was
   * deleted.
   */
  readonly named: readonly NamedAttribute[]
  /**
   * What the change was, classified as one of the four (docs/interface/subscriptions.md#alteration-types): not what the
   * subscription listens to.
   */
  readonly alteration: AlterationType
  /** The whole correlator of the request, suffixes of earlier notifications included. */
  readonly correlator: string
  /**
   * Which notification of the request it is, over all entities and subscriptions, from 1
   * (docs/interface/notifications.md#correlators).
   */
  readonly number: number
  /** `X-Auth-Token` of the request; undefined: it had none. */
  readonly authToken: string | undefined
  /** By which the receiver knows a notification that comes again. */
  readonly notificationId: string
  /**
   * The entity's normalized JSON as a client would get it, if it happens to be there (`imageJson`, when `isAnswer`).
   */
  readonly normalizedText?: string | undefined
}

export interface NamedAttribute {
  readonly name: string
  readonly action: 'append' | 'update' | 'delete'
  /** The attribute as it was, if it existed and the request gave its value. */
  readonly previous?: Attribute | undefined
}

/** What holds for all notifications of a broker. */
export interface NotificationOptions {
  /** How our own headers are called: `Ctx-Service` or `Fiware-Service`. */
  readonly vocabulary: 'Ctx' | 'Fiware'
  /** Product token and version. */
  readonly userAgent: string
  /**
   * `-disableCustomNotifications`: custom ones are sent like regular ones
   * (docs/interface/notifications.md#custom-notifications).
   */
  readonly disableCustomNotifications: boolean
  /**
   * Characters of all texts with macros together (`-outReqMsgMaxSize`, docs/operations/options.md). A template of a
   * megabyte that names an attribute of a megabyte would otherwise make a hundred gigabytes.
   */
  readonly filledLengthMax: number
}

/** Why there is no message, now or ever: the attempt to send it is over. `timesSent` has counted it. */
export interface NotSent {
  readonly level: 'warn' | 'error'
  /** For the log; holds nothing of the entity nor of the request. */
  readonly text: string
  /** What `lastFailureReason` says; undefined: it does not count as a failure. */
  readonly failure: string | undefined
}

/** A notification that is not sent and does not count as a failure. */
export const notSent = (level: NotSent['level'], text: string): NotSent => ({
  level,
  text,
  failure: undefined,
})

/** What all transports have in common. */
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
   * In the order in which they are sent; values hold no control characters. The sender leaves out those that frame a
   * message.
   */
  readonly headers: readonly NamedText[]
  /**
   * Of one try, from connecting to the end of the answer; 0: the service's default
   * (docs/interface/notifications.md#timeouts-and-redirects).
   */
  readonly timeoutMs: number
  /**
   * Its headers name another tenant or service path than those that it is about: it must not come back to this broker.
   */
  readonly leavesScope?: boolean
  /** Whether it may reach the receiver twice; undefined: it may. */
  readonly isRepeatable?: boolean
}

/** The password of its login is never logged. */
export interface MqttMessage extends NotificationMessage, Pick<MqttTransport, 'topic' | 'qos' | 'retain' | 'login'> {
  readonly transport: 'mqtt'
}
