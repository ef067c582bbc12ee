// Requests about subscriptions, their notifications, and registrations, and the messages about them between owners.
//
// One process decides about the documents of all tenants: the document owner, which owns the register
// (`ShardMap.register`). All other owners keep copies, and a change is complete when all of them have it.

import type { PrincipalSource } from '../domain/access/principal.js'
import type { Payload } from '../domain/entities/entity.js'
import type { Registration } from '../domain/providers/registration.js'
import type { Subscription, SubscriptionProgress } from '../domain/subscriptions/subscription.js'

/** The kinds of documents that all owners keep alike. */
export type DocumentKind = 'subscription' | 'registration'

/** One document, by its id. */
interface OfDocument<Kind extends string> {
  readonly kind: Kind
  readonly tenant: string
  readonly id: string
}

/** A page of a tenant's documents in the order of their ids. */
interface DocumentPage<Kind extends string> {
  readonly kind: Kind
  readonly tenant: string
  /** Only documents with exactly this path; undefined: all. */
  readonly servicePath: string | undefined
  readonly offset: number
  readonly limit: number
  /** Only documents that this principal sees (docs/interface/access.md#owners); undefined: all. */
  readonly reader?: PrincipalSource | undefined
}

// Requests to the document owner

/** The subscription already has its id. */
interface CreateSubscriptionRequest {
  readonly kind: 'createSubscription'
  readonly subscription: Subscription
}

/** A PATCH. The payload has passed `checkPatch`. */
export interface ChangeSubscriptionRequest extends OfDocument<'changeSubscription'> {
  /** The service path that it watches from now on. */
  readonly servicePath: string
  readonly payload: Payload
}

/** The registration already has its id. */
interface CreateRegistrationRequest {
  readonly kind: 'createRegistration'
  readonly registration: Registration
}

/** A PATCH. The payload has passed `checkRegistrationPatch`. */
export interface ChangeRegistrationRequest extends OfDocument<'changeRegistration'> {
  readonly payload: Payload
}

export type ListSubscriptionsRequest = DocumentPage<'listSubscriptions'>
export type ListRegistrationsRequest = DocumentPage<'listRegistrations'>

/**
 * Asks for a permit: may this notification be sent? It is sent when the document owner decides about the subscription
 * (`isGuarded`). It may be repeated: the same notification gets the same answer.
 */
export interface PermitRequest extends OfDocument<'claim'> {
  readonly notification: string
}

/** The outcome of a notification of such a subscription. */
export interface ProgressReportRequest extends OfDocument<'news'> {
  readonly news: ProgressReport
}

/** An answer of a receiver, or the failure to get one. */
export type ProgressReport =
  | { readonly kind: 'success'; readonly code?: number | undefined }
  | { readonly kind: 'failure'; readonly reason: string }

/**
 * The outcomes of notifications that an owner has counted. The document owner stores them from then on, so that nothing
 * is lost when owners come and go.
 */
export interface FlushRequest {
  readonly kind: 'handIn'
  readonly parts: readonly HandedPart[]
  /** Absent if the owner runs a build that repeats no request. */
  readonly mark?: FlushMark | undefined
}

/** Identifies a flush, so that the document owner counts it once however often it arrives. */
export interface FlushMark {
  /** The process that flushes. */
  readonly source: string
  /** Grows with each request of that process. A repeated request has the same number. */
  readonly number: number
}

export interface HandedPart {
  readonly tenant: string
  readonly id: string
  readonly progress: SubscriptionProgress
}

// Requests to any owner

/** The progress of these subscriptions' notifications at the owner of the asked shard. */
export interface ProgressRequest {
  readonly kind: 'progress'
  readonly tenant: string
  readonly ids: readonly string[]
}

/**
 * A position in the history of the register. All changes in one life of the keeper have one epoch, and numbers that
 * only grow.
 */
export interface RegisterPosition {
  readonly epoch: number
  readonly sequence: number
}

/**
 * The changes that the keeper of the register sends to the copies of other workers (shard/documents/register-feed.ts).
 */
export interface FollowRequest {
  readonly kind: 'follow'
  readonly epoch: number
  /** The position at which the epoch began; its numbers continue from there. undefined: at the very beginning. */
  readonly before: RegisterPosition | undefined
  /**
   * `changes`: the changes after `after` up to `upTo`, for a copy that is at `after`. `page`: some of all rows, in
   * their state at `upTo` or later.
   */
  readonly form: 'changes' | 'page'
  readonly after: number
  readonly upTo: number
  /** Row operations (shard/replicate/row-operations.ts). */
  readonly rows: Buffer
  /** Of pages: whether it is the first one, and the last key of a page that is not the last one. */
  readonly isFirst?: boolean | undefined
  readonly next?: Buffer | undefined
}

export type SubscriptionWrite = CreateSubscriptionRequest | ChangeSubscriptionRequest | OfDocument<'removeSubscription'>
export type SubscriptionRead = OfDocument<'findSubscription'> | ListSubscriptionsRequest
/** The requests of other owners to the document owner while they send notifications. */
export type OwnerRequest = PermitRequest | ProgressReportRequest | FlushRequest
export type SubscriptionRequest = SubscriptionWrite | SubscriptionRead | ProgressRequest | OwnerRequest
export type RegistrationWrite = CreateRegistrationRequest | ChangeRegistrationRequest | OfDocument<'removeRegistration'>
export type RegistrationRead = OfDocument<'findRegistration'> | ListRegistrationsRequest
export type RegistrationRequest = RegistrationWrite | RegistrationRead

/** A subscription, and the known outcomes of its notifications. */
export interface KnownSubscription {
  readonly subscription: Subscription
  readonly progress: SubscriptionProgress
}

// Notifications that were sent or abandoned (docs/interface/subscriptions.md#why-did-it-not-fire)

/** Asks for the recent outcomes of a subscription's notifications that the owner of the asked shard has sent. */
export interface DeliveriesRequest extends OfDocument<'deliveries'> {
  /** The limit of each of the two lists. */
  readonly limit: number
}

/** Asks to send again the dead letters of a subscription at the owner of the asked shard. */
export type RetryDeliveriesRequest = OfDocument<'retryDeliveries'>

export type DeliveryRequest = DeliveriesRequest | RetryDeliveriesRequest

/**
 * Why a notification became a dead letter: its receiver did not answer; or it has asked for another try too often (408,
 * 429, 5xx); or the message cannot be sent at all.
 */
export type DeadCause = 'noAnswer' | 'notNow' | 'unsendable'

/** The result of one try to deliver a notification. */
export interface DeliveryRecord {
  /** The time of the try, milliseconds since 1970. */
  readonly atMs: number
  /** The entity of the notification. */
  readonly id: string
  readonly type: string
  readonly path: string
  /** The name by which the receiver recognises a repeated notification. */
  readonly notificationId: string
  /** The number of the try, from 1. */
  readonly attempt: number
  /**
   * `failed`: another try follows. `dead`: no try follows, and a dead letter is kept. `dropped`: it could not be sent,
   * or there was no room. `simulated`: nothing was sent, on purpose.
   */
  readonly outcome: 'delivered' | 'failed' | 'dead' | 'dropped' | 'simulated'
  /** The status of the HTTP answer; undefined: there was none, or the transport is not HTTP. */
  readonly code?: number | undefined
  /** Why it was not delivered; '' when it was. */
  readonly reason: string
  /** Of a dead letter; undefined: a build that did not store the cause has written it. */
  readonly cause?: DeadCause | undefined
  /** The earliest time at which the broker sends a dead letter again by itself; undefined: it does not. */
  readonly nextReplayMs?: number | undefined
}

/** The outcomes of a subscription's notifications. Both lists begin with the latest. */
export interface DeliveryReport {
  readonly deliveries: readonly DeliveryRecord[]
  /** The last try of each notification that became a dead letter. */
  readonly deadLetters: readonly DeliveryRecord[]
  /** The number of stored dead letters, listed or not. */
  readonly deadCount: number
}
