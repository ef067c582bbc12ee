// A watch: what one reader of a stream wants (docs/interface/live.md#filters, docs/interface/live.md#options).
//
// Not here: reading it from parameters and messages (watch-parser.ts), events as text (event-text.ts).

import type { View } from '../entities/representation.js'
import type { ChangeFilter, FilterSource } from './change-filter.js'
import type { StreamCursor } from './cursor.js'

export interface Watch {
  readonly source: FilterSource
  readonly filter: ChangeFilter
  readonly form: EventForm
  /** The least time between two events about one entity; 0: none. */
  readonly minIntervalMs: number
  /** How long events may be gathered, to be sent together; 0: they are sent as they come. */
  readonly gatherMs: number
  /** Whether the reader first receives the entities that match. */
  readonly hasSnapshot: boolean
  /** The reader continues after this cursor; undefined: with what happens from now on. */
  readonly from: StreamCursor | undefined
}

/** The form of entities in events. */
export interface EventForm {
  readonly view: View
  /** Only attributes that the request named. */
  readonly onlyChangedAttrs: boolean
}

/** Watches of one connection (WebSocket), and characters of the name of one. */
export const watchesMax = 100
export const watchIdLengthMax = 256

/** Elements of `entities` of one watch, and of the product of `id` and `type`. */
export const watchEntitiesMax = 1_000

/** The longest `minInterval`. */
export const minIntervalMsMax = 3_600_000

/** The longest `gather`. */
export const gatherMsMax = 1_000
