// What reads are about, and what the replies of shards mean to the broker's user.
//
// A refusal stays a refusal wherever it was decided. Where nothing has happened for certain, and for every read, the
// client may come again: Unavailable. A failure becomes an internal error, since nobody knows what has happened.

import type { Entity } from '../domain/entities/entity.js'
import { type Result, refusals, refused } from '../domain/refusal.js'
import type { FoundEntity, ShardReply } from '../messages/messages.js'

export type OnResult<T> = (result: Result<T>) => void

/** What a read is about: paths may end in `#`. */
export interface ReadTarget {
  readonly tenant: string
  readonly paths: readonly string[]
  readonly id: string
  readonly type: string | undefined
}

export interface Listed {
  readonly entities: readonly FoundEntity[]
  /** Matches regardless of offset and limit. */
  readonly total: number
}

/** An entity that was found, or one that is not only stored here: put together with what providers have sent. */
export type Shown = FoundEntity | { readonly path: string; readonly entity: Entity }

/** A page of a list, providers' entities among it. */
export interface ShownPage {
  readonly entities: readonly Shown[]
  readonly total: number
}

/** The refusal of a reply that is not the one hoped for, to a read or to a write. */
export function refusalOf(reply: ShardReply, asked: 'read' | 'write'): ReturnType<typeof refused> {
  switch (reply.kind) {
    case 'refused':
      return refused(reply.refusal)
    case 'busy':
      return refused(refusals.requestsTooMany)
    case 'moved':
      return refused(refusals.ownerChanging)
    case 'unreachable':
      return refused(refusals.unreachable(reply.reason))
    case 'lost':
      return refused(asked === 'read' ? refusals.unanswered(reply.reason) : refusals.outcomeUnknown(reply.reason))
    case 'failed':
      return refused(refusals.failure(reply.reason))
    default:
      throw new Error(`a reply that does not fit its request: ${reply.kind}`)
  }
}
