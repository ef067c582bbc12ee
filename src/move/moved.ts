// What moves in and out, and between whom: a source gives pages of items, a sink takes them.
//
// Both say where they are in words of their own that can be written down (`Json`), so that work which was interrupted goes on from there.
// An item is what the broker itself keeps, read and checked: what can be wrong with it is known before a sink sees it.
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

export type Item = MovedEntity | MovedSubscription | MovedRegistration
export type ItemKind = Item['kind']

/** An item, or why there is none. */
export interface Found {
  /** For whoever has to look at it: `line 17`. */
  readonly where: string
  readonly item: Item | undefined
  /** What is wrong with it; '' when nothing is. */
  readonly fault: string
}

/** Some items in a row. */
export interface Page {
  readonly found: readonly Found[]
  /** Where the next page begins. */
  readonly after: Json
}

export interface Source {
  /** What it is, for sentences. */
  readonly name: string
  /** Entities in all; undefined: not known. */
  readonly total: number | undefined
  /** What it reads: with another one a position means nothing. */
  readonly identity: JsonObject
  /** Pages from a position that it gave, or from the beginning. What does not say when it was created was so at `nowMs`. Throws a MoveError when something is missing. */
  pages(from: Json | undefined, nowMs: number): AsyncIterable<Page>
  close(): Promise<void>
}

/** What became of an item. `same`: it was there exactly like that; `kept`: there was another one, which stays. */
export type Outcome = 'written' | 'replaced' | 'same' | 'kept'

export type Placed = { readonly outcome: Outcome } | { readonly fault: string }

export interface Sink {
  readonly name: string
  /** Documents that it takes at a time: where each is a request of its own, one, so that it is known how far it got. */
  readonly documentsMax: number
  /** Takes items in order and makes them durable. With `stops` it takes nothing behind one that it cannot take: the answer is then shorter. */
  put(items: readonly Item[], stops: boolean): Promise<readonly Placed[]>
  /** Where it is, between two calls of `put`. */
  position(): Json
  /** There is no more; `counts` is what it has taken. */
  finish(counts: Readonly<Record<ItemKind, number>>): Promise<void>
  close(): Promise<void>
}

export const itemKinds = ['entity', 'registration', 'subscription'] as const satisfies readonly ItemKind[]

/** What an operator has to know or set right; the message is a sentence. */
export class MoveError extends Error {
  override readonly name = 'MoveError'
}
