// Messages between the holder of streams and the owners of shards (docs/interface/live.md).
//
// A holder is a process with connections of readers. It registers the filters of its readers at every owner, and polls
// each owner for the changes that these found. A poll waits at the owner until there is something. So a slow holder
// slows nobody down: what it has not fetched stays in the ring of the owner, and is lost only there, with a notice.

import type { FilterSource } from '../domain/streams/change-filter.js'
import type { GapReason } from '../domain/streams/event-text.js'
import type { EventClass } from '../domain/subscriptions/event.js'

export interface StreamRequest {
  readonly kind: 'stream'
  readonly step: StreamPoll | StreamReplay
}

/** A filter under the number by which the holder knows it. */
export interface NumberedFilter {
  readonly number: number
  readonly source: FilterSource
}

/**
 * Asks for changes behind a position, after a change of the holder's filters. It ends an earlier poll of the holder.
 */
export interface StreamPoll {
  readonly what: 'poll'
  /** Unique for each holder and each time it begins. */
  readonly holder: string
  /** The position up to which the holder has everything; undefined: it begins. */
  readonly after: StreamPosition | undefined
  /** The number of changes of the filters that the owner must have made; then it makes these, and has `revision`. */
  readonly fromRevision: number
  readonly revision: number
  readonly add: readonly NumberedFilter[]
  readonly remove: readonly number[]
  /** How long the owner may wait for a change. */
  readonly waitMs: number
}

/** Changes that an owner looks at for one answer, and bytes of encoded entities in it. There may be more behind it. */
export const pollChangesMax = 4_096
export const pollBytesMax = 512 * 1024

export interface StreamPosition {
  /** The ring: another one begins with each process. */
  readonly ring: string
  readonly position: number
}

/** Asks for the changes behind a tick that match a filter, up to a position. */
export interface StreamReplay {
  readonly what: 'replay'
  readonly source: FilterSource
  readonly ring: string
  readonly sinceTick: number
  /** The part that was replayed already ends here. */
  readonly after: number
  readonly upTo: number
}

/** A change as it crosses to a holder. */
export interface SentChange {
  readonly shard: number
  /** The stamp of its turn: it orders the changes of a shard, also across owners. */
  readonly stamp: number
  /** Its tick in the ring. */
  readonly tick: number
  readonly tenant: string
  readonly path: string
  readonly class: EventClass
  readonly changed: readonly string[]
  readonly named: readonly string[]
  readonly correlator: string
  /** The numbers of the holder's filters that found it, and of those that it left. */
  readonly found: readonly number[]
  readonly left: readonly number[]
  readonly encoded: Buffer
}

/** A filter for which an owner has no room: there are too many, or their patterns cost too much (`steps` an event). */
export interface RefusedFilter {
  readonly number: number
  readonly steps: number | undefined
}

export type StreamReply =
  /**
   * Everything that the filters found up to `position`; all further changes have a tick above `tick`. `lost`: changes
   * behind the position of the poll are not in the ring any more. `settled`: the latest revision of the filters
   * for which everything that the owner was doing when it learnt of it is durable, and in the answers so far; an owner
   * of an earlier build does not say. `refused`: new filters for which the owner has no room; it has forgotten them.
   */
  | {
      readonly what: 'changes'
      readonly at: StreamPosition
      readonly tick: number
      readonly lost: boolean
      readonly settled?: number | undefined
      readonly refused: readonly RefusedFilter[]
      readonly changes: readonly SentChange[]
    }
  /** The owner does not have the filters of `fromRevision`: the holder sends all of them, from revision 0. */
  | { readonly what: 'unknown' }
  /** Another poll of the same holder came. */
  | { readonly what: 'superseded' }
  | {
      readonly what: 'replayed'
      readonly position: number
      readonly isLast: boolean
      readonly changes: readonly SentChange[]
    }
  | { readonly what: 'gap'; readonly reason: GapReason; readonly sinceMs: number }
