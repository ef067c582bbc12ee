// Results of operations: the targets of reads, and what the replies of shards mean to the client of the broker.
//
// A refusal stays a refusal wherever it was decided. If certainly nothing has happened, and for every read, the client
// may try again: Unavailable. A failure becomes an internal error, since its effect is unknown.

import type { AccessCondition } from '../domain/access/condition.js'
import type { Entity } from '../domain/entities/entity.js'
import { type Result, refusals, refused } from '../domain/refusal.js'
import type { FoundEntity, ShardReply } from '../messages/messages.js'

export type OnResult<T> = (result: Result<T>) => void

/** The place of a read, and what its reader may see there. */
export interface ReadScope {
  readonly tenant: string
  /** They may end in `#`. */
  readonly paths: readonly string[]
  /** undefined: everything. */
  readonly grant: AccessCondition | undefined
}

export interface ReadTarget extends ReadScope {
  readonly id: string
  readonly type: string | undefined
}

export interface Listed {
  readonly entities: readonly FoundEntity[]
  /** Matches regardless of offset and limit. */
  readonly total: number
}

/** An entity in its stored form, or one that was merged with the answers of providers. */
export type Shown = (FoundEntity | { readonly path: string; readonly entity: Entity }) & {
  /** What its reader may see of it; undefined: everything. */
  readonly seenBy?: AccessCondition | undefined
}

/** The entity for a reader with a grant. */
export const shownUnder = (grant: AccessCondition, { path, encoded }: FoundEntity): Shown => ({
  path,
  encoded,
  seenBy: grant,
})

/** A page of a list, including entities of providers. */
export interface ShownPage {
  readonly entities: readonly Shown[]
  readonly total: number
}

/** The refusal that corresponds to an unsuccessful reply, to a read or to a write. */
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
