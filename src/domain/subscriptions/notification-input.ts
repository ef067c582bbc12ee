// The input of a notification: one subscription that one change has triggered, and the change.
//
// It holds nothing but values, so the shard can put it together again from what the outbox keeps, and then it renders to the same message.
//
// Not here: how it is rendered (notification.ts), what comes of that (message.ts).

import type { Attribute, Entity } from '../entities/entity.js'
import type { AlterationType, Subscription } from './subscription.js'

export interface NotificationInput {
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
