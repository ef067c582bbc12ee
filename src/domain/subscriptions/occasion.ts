// What a notification is about, and what becomes of it: the two ends of notification.ts.
//
// An occasion is one subscription that one change has fired. It holds nothing but data, so it can be put together again from what was
// stored, after a crash, and then gives the same message. A message is complete but for what depends on the connection: `Host` and
// `Content-Length` are the sender's, and all texts go out as UTF-8.

import type { Attribute, Entity } from '../entities/entity.js'
import type { AlterationType, HttpMethod, MqttTransport, NamedText, Subscription } from './subscription.js'

export interface Occasion {
  readonly subscription: Subscription
  /** As the change left it; when it was deleted, as it was last. */
  readonly entity: Entity
  /** The entity's service path. */
  readonly path: string
  /** '' is the default tenant. */
  readonly tenant: string
  /** The attributes that the request named, deleted ones included, each once. Does not matter when the entity was deleted. */
  readonly named: readonly NamedAttribute[]
  /** What the change was, classified as one of the four (subscriptions.md §6.2): not what the subscription listens to. */
  readonly alteration: AlterationType
  /** The whole correlator of the request, suffixes of earlier notifications included. */
  readonly correlator: string
  /** Which notification of the request it is, over all entities and subscriptions, from 1 (§8.3). */
  readonly number: number
  /** `X-Auth-Token` of the request; undefined: it had none. */
  readonly authToken: string | undefined
  /** By which the receiver knows a notification that comes again. */
  readonly notificationId: string
  /** The entity's normalized JSON as a client would get it, if it happens to be there (`imageJson`, when `isAnswer`). */
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
  /** `-disableCustomNotifications`: custom ones are sent like regular ones (subscriptions.md §9.7). */
  readonly disableCustomNotifications: boolean
  /**
   * Characters that all texts with macros may come to together (`-outReqMsgMaxSize`, operations.md §1.2). A template of a megabyte that
   * names an attribute of a megabyte again and again would make a hundred gigabytes.
   */
  readonly filledLengthMax: number
}

export type NotificationMessage = HttpNotification | MqttNotification | NotSent

export interface HttpNotification {
  readonly kind: 'http'
  readonly method: HttpMethod
  readonly url: string
  /** In the order in which they are sent; values hold no control characters. */
  readonly headers: readonly NamedText[]
  /** undefined: none, and `Content-Length: 0`. */
  readonly body: string | undefined
  /** 0: the service's default. */
  readonly timeoutMs: number
  /** Its headers name another tenant or service path than those that it is about. */
  readonly leavesScope?: boolean
}

export interface MqttNotification extends Pick<MqttTransport, 'url' | 'topic' | 'qos' | 'retain' | 'login'> {
  readonly kind: 'mqtt'
  readonly payload: string
}

/** What cannot be sent, now or ever: the attempt to do so is over. It has been counted in `timesSent`. */
export interface NotSent {
  readonly kind: 'notSent'
  readonly level: 'warn' | 'error'
  /** For the log; holds nothing of the entity nor of the request. */
  readonly text: string
  /** What `lastFailureReason` says; undefined: it does not count as a failure. */
  readonly failure: string | undefined
}

/** A notification that is not sent and does not count as a failure. */
export const notSent = (level: NotSent['level'], text: string): NotSent => ({
  kind: 'notSent',
  level,
  text,
  failure: undefined,
})
