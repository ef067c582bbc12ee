// What is asked about subscriptions, their notifications, and registrations, and what owners tell each other of them.
//
// One place decides about those of all tenants, the home: the owner of the register (`ShardMap.register`). All other
// owners keep copies, and a change is done when all of them have it.

import type { Payload } from '../domain/entities/entity.js'
import type { Registration } from '../domain/providers/registration.js'
import type { Subscription, SubscriptionProgress } from '../domain/subscriptions/subscription.js'

/** What is kept by all owners alike. */
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
  /** Only those with exactly this; undefined: all. */
  readonly servicePath: string | undefined
  readonly offset: number
  readonly limit: number
}

// Asked of the home

/** The subscription has its id. */
interface CreateSubscriptionRequest {
  readonly kind: 'createSubscription'
  readonly subscription: Subscription
}

/** A PATCH. The payload has passed `checkPatch`. */
export interface ChangeSubscriptionRequest extends OfDocument<'changeSubscription'> {
  /** What it watches from now on. */
  readonly servicePath: string
  readonly payload: Payload
}

/** The registration has its id. */
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
 * May this notification be sent? Asked if the home decides about the subscription (`isGuarded`). It may be asked again:
 * the same notification gets the same answer.
 */
export interface PermitRequest extends OfDocument<'claim'> {
  readonly notification: string
}

/** What became of a notification of such a subscription. */
export interface ProgressReportRequest extends OfDocument<'news'> {
  readonly news: ProgressReport
}

/** An answer of a receiver, or that there was none. */
export type ProgressReport =
  | { readonly kind: 'success'; readonly code?: number | undefined }
  | { readonly kind: 'failure'; readonly reason: string }

/**
 * What an owner knows has become of notifications. The home of their subscriptions keeps it from then on, so that
 * nothing is lost when owners come and go.
 */
export interface FlushRequest {
  readonly kind: 'handIn'
  readonly parts: readonly HandedPart[]
  /** Absent if the owner is of a build that repeats no request. */
  readonly mark?: FlushMark | undefined
}

/** Tells a request that hands in from all others, so that the home counts it once however often it arrives. */
export interface FlushMark {
  /** The process that hands in. */
  readonly source: string
  /** Grows with each request of that process; a repeated one has the same. */
  readonly number: number
}

export interface HandedPart {
  readonly tenant: string
  readonly id: string
  readonly progress: SubscriptionProgress
}

// Asked of any owner

/** What the owner of the asked shard knows of these subscriptions' notifications. */
export interface ProgressRequest {
  readonly kind: 'progress'
  readonly tenant: string
  readonly ids: readonly string[]
}

/**
 * A position in the history of the register: its changes in one life of the keeper have one epoch, and numbers that
 * only grow.
 */
export interface RegisterPosition {
  readonly epoch: number
  readonly sequence: number
}

/** What the keeper of the register tells the copies of other workers (shard/documents/register-feed.ts). */
export interface FollowRequest {
  readonly kind: 'follow'
  readonly epoch: number
  /** Where the epoch began: numbers go on from there. undefined: at the very beginning. */
  readonly before: RegisterPosition | undefined
  /**
   * `changes`: those behind `after` up to `upTo`, of use to a copy that is at `after`. `page`: some of all rows, as
   * they are at `upTo` or later.
   */
  readonly form: 'changes' | 'page'
  readonly after: number
  readonly upTo: number
  /** Row operations (shard/replicate/row-operations.ts). */
  readonly rows: Buffer
  /** Of pages: whether it is the first, and the last key of one that is not the last. */
  readonly isFirst?: boolean | undefined
  readonly next?: Buffer | undefined
}

export type SubscriptionWrite = CreateSubscriptionRequest | ChangeSubscriptionRequest | OfDocument<'removeSubscription'>
export type SubscriptionRead = OfDocument<'findSubscription'> | ListSubscriptionsRequest
/** What other owners tell and ask the home of subscriptions while they notify. */
export type OwnerRequest = PermitRequest | ProgressReportRequest | FlushRequest
export type SubscriptionRequest = SubscriptionWrite | SubscriptionRead | ProgressRequest | OwnerRequest
export type RegistrationWrite = CreateRegistrationRequest | ChangeRegistrationRequest | OfDocument<'removeRegistration'>
export type RegistrationRead = OfDocument<'findRegistration'> | ListRegistrationsRequest
export type RegistrationRequest = RegistrationWrite | RegistrationRead

/** A subscription, and what became of its notifications as far as it is known. */
export interface KnownSubscription {
  readonly subscription: Subscription
  readonly progress: SubscriptionProgress
}

// Notifications that have been sent, or given up (README, "Why did it not fire?")

/** What became of a subscription's notifications of late, as far as the owner of the asked shard has sent them. */
export interface DeliveriesRequest extends OfDocument<'deliveries'> {
  /** Of each of the two lists. */
  readonly limit: number
}

/** To send again what the owner of the asked shard has given up for a subscription. */
export type RetryDeliveriesRequest = OfDocument<'retryDeliveries'>

export type DeliveryRequest = DeliveriesRequest | RetryDeliveriesRequest

/**
 * Why a notification was given up: its receiver did not answer, or has asked for another try too often (408, 429, 5xx);
 * or nobody can send it as it is.
 */
export type DeadCause = 'noAnswer' | 'notNow' | 'unsendable'

/** How one try to deliver a notification ended. */
export interface DeliveryRecord {
  /** When, milliseconds since 1970. */
  readonly atMs: number
  /** The entity that it was about. */
  readonly id: string
  readonly type: string
  readonly path: string
  /** By which the receiver knows a notification that comes again. */
  readonly notificationId: string
  /** Which try it was, from 1. */
  readonly attempt: number
  /**
   * `failed`: another try follows. `dead`: none does, and a dead letter is kept. `dropped`: it could not be sent, or
   * there was no room. `simulated`: nothing was sent, on purpose.
   */
  readonly outcome: 'delivered' | 'failed' | 'dead' | 'dropped' | 'simulated'
  /** The status of the HTTP answer; undefined: there was none, or it was no HTTP. */
  readonly code?: number | undefined
  /** Why it was not delivered; '' when it was. */
  readonly reason: string
  /** Of a dead one; undefined: a build that did not tell has written it. */
  readonly cause?: DeadCause | undefined
  /** When the broker sends a dead letter by itself, at the earliest; undefined: it does not. */
  readonly nextReplayMs?: number | undefined
}

/** What became of a subscription's notifications. Both lists begin with the latest. */
export interface DeliveryReport {
  readonly deliveries: readonly DeliveryRecord[]
  /** The last try of each notification that was given up. */
  readonly deadLetters: readonly DeliveryRecord[]
  /** How many were given up and are kept, listed or not. */
  readonly deadCount: number
}
