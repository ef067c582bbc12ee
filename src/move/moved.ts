// What moves in and out, and between whom: a source gives pages of items, a sink takes them.
//
// Both give their positions as `Json`, to be written down, so that interrupted work goes on from there. An item is what
// the broker itself keeps, read and checked: a sink sees no faulty one.
//
// Not here: the form of a line (lines.ts, entity-line.ts), who drives (move.ts).

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
  /** Whether its stamp is that of its creation; else only the millisecond is known. */
  readonly isStamped: boolean
  /**
   * Whether the source holds the times of creation and of the last change, also those of attributes; otherwise they
   * are made up.
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

/** What was written to be kept under an id of its own. */
export type MovedDocument = MovedSubscription | MovedRegistration

export type MovedItem = MovedEntity | MovedDocument
export type MovedKind = MovedItem['kind']

/** An item, or why there is none. */
export interface SourceItem {
  /** For whoever has to look at it: `line 17`. */
  readonly where: string
  readonly item: MovedItem | undefined
  /** What is wrong with it; '' when nothing is. */
  readonly fault: string
}

export interface SourcePage {
  readonly found: readonly SourceItem[]
  readonly after: Json
}

export interface Source {
  /** What it is, for sentences. */
  readonly name: string
  /** Entities in all; undefined: not known. */
  readonly total: number | undefined
  /** What it reads: with another one a position means nothing. */
  readonly identity: JsonObject
  /**
   * Pages from one of its positions, or from the beginning. Items without a time of creation get `nowMs`. May throw a
   * MoveError.
   */
  pages(from: Json | undefined, nowMs: number): AsyncIterable<SourcePage>
  close(): Promise<void>
}

/** What became of an item. `same`: it was there already, as it comes; `kept`: one that differs was there, and stays. */
export type ItemOutcome = 'written' | 'replaced' | 'same' | 'kept'

export type PlacedItem = { readonly outcome: ItemOutcome } | { readonly fault: string }

export interface Sink {
  readonly name: string
  /** Documents that it takes at a time: where each is a request of its own, one, so that it is known how far it got. */
  readonly documentsMax: number
  /**
   * Takes items in order and makes them durable. With `stops` it ends at one that it cannot take: the answer is
   * shorter.
   */
  put(items: readonly MovedItem[], stops: boolean): Promise<readonly PlacedItem[]>
  /** Where it is, between two calls of `put`. */
  position(): Json
  /** There is no more; `counts` is what it has taken. */
  finish(counts: Readonly<Record<MovedKind, number>>): Promise<void>
  close(): Promise<void>
}

export const itemKinds = ['entity', 'registration', 'subscription'] as const satisfies readonly MovedKind[]

/** What an operator has to know or set right; the message is a sentence. */
export class MoveError extends Error {
  override readonly name = 'MoveError'
}
