// How far a watch has been received, and where it continues after a cut (docs/interface/live.md#resuming).
//
// A cursor is worth something only when everything before it has arrived. While a snapshot is incomplete, the cursors
// that come along are not kept: a watch that continued after one of them would miss the rest of the snapshot. It begins
// anew instead.
//
// Pure: a state and a message give the next state and an outcome. Not here: connections and their timers (feed.ts).

import { isObject, type Json, type JsonObject } from '../domain/json.js'
import type { RefusalKind } from '../domain/refusal.js'

export interface WatchState {
  /** Whether the reader wants a snapshot at the beginning, and after a gap. */
  readonly wantsSnapshot: boolean
  /** The watch continues after this; undefined: it begins anew. */
  readonly cursor: string | undefined
  /** Whether a part of a snapshot is still to come. */
  readonly awaitsSnapshot: boolean
}

/** An event as a reader of the command gets it. */
export interface WatchedEvent {
  readonly kind: string
  /** Its cursor and its data, in the order in which the broker sent them. */
  readonly members: JsonObject
}

export type MessageOutcome =
  /** The watch has begun. `isAnew`: earlier states are unknown. */
  | { readonly kind: 'begun'; readonly isAnew: boolean }
  | { readonly kind: 'event'; readonly event: WatchedEvent }
  /** The broker ends the stream, and gives a reason. */
  | { readonly kind: 'ending'; readonly reason: string }
  /** `isTemporary`: another try may succeed. */
  | { readonly kind: 'refused'; readonly reason: string; readonly isTemporary: boolean }
  /** A message that concerns no event. */
  | { readonly kind: 'none' }
  /** No broker sends this. */
  | { readonly kind: 'foreign' }

export const beginning = (wantsSnapshot: boolean, from: string | undefined): WatchState => ({
  wantsSnapshot,
  cursor: from,
  awaitsSnapshot: wantsSnapshot && from === undefined,
})

/** The state in which the next connection begins its watch. */
export const reconnecting = (state: WatchState): WatchState =>
  state.awaitsSnapshot ? { ...state, cursor: undefined } : state

/** The state after a message of the broker, and the meaning of the message. */
export function received(state: WatchState, message: Json): readonly [WatchState, MessageOutcome] {
  if (!isObject(message) || typeof message.op !== 'string') return [state, { kind: 'foreign' }]
  switch (message.op) {
    case 'watching':
      return [withCursor(state, message.cursor), { kind: 'begun', isAnew: state.cursor === undefined }]
    case 'event':
      return onEvent(state, message)
    case 'error':
      return [state, refusalIn(message)]
    default:
      return [state, { kind: 'none' }]
  }
}

function onEvent(state: WatchState, message: JsonObject): readonly [WatchState, MessageOutcome] {
  const { event: kind } = message
  if (typeof kind !== 'string') return [state, { kind: 'foreign' }]
  if (kind === 'end') return [state, { kind: 'ending', reason: textIn(message.reason, 'no reason given') }]
  return [stateAfter(state, kind, message), { kind: 'event', event: { kind, members: membersOf(message) } }]
}

function stateAfter(state: WatchState, kind: string, message: JsonObject): WatchState {
  if (state.wantsSnapshot && kind === 'gap') return { ...state, cursor: undefined, awaitsSnapshot: true }
  const isEnd = kind === 'snapshot' && message.end === true
  return withCursor(isEnd ? { ...state, awaitsSnapshot: false } : state, message.cursor)
}

const withCursor = (state: WatchState, cursor: Json | undefined): WatchState =>
  typeof cursor === 'string' && !state.awaitsSnapshot ? { ...state, cursor } : state

/** All but the members of the connection, with the entity of an `entityLeave` among them. */
function membersOf({ op: _, id: __, event: kind, entity, ...members }: JsonObject): JsonObject {
  return kind === 'entityLeave' && isObject(entity) ? { ...members, ...entity } : members
}

/** Refusals that may have passed when the same is asked again. */
const temporary: readonly string[] = [
  'Unavailable',
  'InternalServerError',
  'InsufficientStorage',
] satisfies readonly RefusalKind[]

function refusalIn({ error, description }: JsonObject): MessageOutcome {
  const name = textIn(error, 'refused')
  return { kind: 'refused', reason: `${name}: ${textIn(description, '')}`, isTemporary: temporary.includes(name) }
}

const textIn = (json: Json | undefined, otherwise: string): string => (typeof json === 'string' ? json : otherwise)

// Pauses between two connections

/** The first pause, and the longest one. */
export const pauseMsMin = 250
export const pauseMsMax = 10_000

/**
 * The pause in ms before the next connection, the longer the more cuts there were in a row (from 1). Half of it is
 * chance, so that the readers of a broker that was restarted do not all come back at once.
 */
export function pauseAfter(cuts: number, fraction: number): number {
  const most = Math.min(pauseMsMax, pauseMsMin * 2 ** Math.min(cuts - 1, 16))
  return Math.round(most * (0.5 + fraction / 2))
}
