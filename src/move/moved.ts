// The items that move in and out, and the two ends: a source yields pages of items, a sink accepts them.
//
// Both give their positions as `Json`, to be written down, so that interrupted work continues from there. An item has
// the broker's own form, read and checked: a sink gets no faulty one.
//
// Not here: the form of a line (lines.ts, entity-line.ts), the loop between the two (move.ts).

import type { Entity } from '../domain/entities/entity.js'
import type { Json, JsonObject } from '../domain/json.js'
import type { Registration } from '../domain/providers/registration.js'
import type { Subscription, SubscriptionProgress } from '../domain/subscriptions/subscription.js'

export interface MovedEntity {
  readonly kind: 'entity'
  readonly tenant: string
  readonly path: string
  readonly entity: Entity
  /** The correlator root of its last change. */
  readonly root: string
  /** Whether its stamp is that of its creation; otherwise only the millisecond is known. */
  readonly isStamped: boolean
  /**
   * Whether the source has the times of creation and of the last change, also those of attributes; otherwise they are
   * made up.
   */
  readonly hasCreated: boolean
  readonly hasModified: boolean
}

export interface MovedSubscription {
  readonly kind: 'subscription'
  readonly subscription: Subscription
  readonly progress: SubscriptionProgress
}

export interface MovedRegistration {
  readonly kind: 'registration'
  readonly registration: Registration
}

/** An item that is stored as a document under its own id. */
export type MovedDocument = MovedSubscription | MovedRegistration

export type MovedItem = MovedEntity | MovedDocument
export type MovedKind = MovedItem['kind']

/** An item, or the reason why there is none. */
export interface SourceItem {
  /** Its place, for an operator: `line 17`. */
  readonly where: string
  readonly item: MovedItem | undefined
  /** The fault; '' when there is none. */
  readonly fault: string
}

export interface SourcePage {
  readonly found: readonly SourceItem[]
  readonly after: Json
}

export interface Source {
  /** Its name, for sentences. */
  readonly name: string
  /** Entities in all; undefined: not known. */
  readonly total: number | undefined
  /** The identity of its content: a position is only valid for the same identity. */
  readonly identity: JsonObject
  /** What it lacks of the content that it should have, in a sentence. Absent: nothing, as far as it knows. */
  readonly lack?: string
  /**
   * Pages from one of its positions, or from the beginning. Items without a time of creation get `nowMs`. May throw a
   * MoveError.
   */
  pages(from: Json | undefined, nowMs: number): AsyncIterable<SourcePage>
  close(): Promise<void>
}

/** The outcome of an item. `same`: an equal one was at the target; `kept`: a different one was there, and stays. */
export type ItemOutcome = 'written' | 'replaced' | 'same' | 'kept'

export type PlacedItem = { readonly outcome: ItemOutcome } | { readonly fault: string }

export interface Sink {
  readonly name: string
  /**
   * Documents that it accepts at a time: 1 if each is a request of its own, so that the position is known after each.
   */
  readonly documentsMax: number
  /**
   * Accepts items in order and makes them durable. With `stops` it ends at the first one that it cannot accept: the
   * answer is shorter.
   */
  put(items: readonly MovedItem[], stops: boolean): Promise<readonly PlacedItem[]>
  /** Its position, between two calls of `put`. */
  position(): Json
  /** There are no more items; `counts` has the number of accepted ones. */
  finish(counts: Readonly<Record<MovedKind, number>>): Promise<void>
  close(): Promise<void>
}

export const itemKinds = ['entity', 'registration', 'subscription'] as const satisfies readonly MovedKind[]

/** A fault that an operator must know or correct; the message is a sentence. */
export class MoveError extends Error {
  override readonly name = 'MoveError'
}
