// The register: rows that every owner of shards has, and one owner decides about. Its owner is the keeper.
//
// The register holds the subscriptions, registrations and service paths of all tenants. The keeper writes a changed
// row, waits until the commit is durable, and replies when all other owners have the row as well. So every owner that
// gets the next request already has the change.
//
// A single owner waits for no other owner. Nodes of a cluster follow the log of the register (replicate/). The workers
// of one machine get its changes from the keeper (register-feed.ts, register-copy.ts).

import type { ShardReply } from '../../messages/messages.js'
import type { GroupCommit } from '../commit/commit.js'
import { hasLost, replyOfFailure } from '../commit/deposed.js'

/** Writes rows of the register, and waits until the other owners have them. */
export interface Register {
  /** The reply when no change can be accepted now; undefined when one can. */
  obstacle(): ShardReply | undefined
  /** Stages a row, or its deletion. Returns the number of the commit that carries it. */
  write(key: Buffer, row: Buffer | undefined): number
  /**
   * Calls back when all owners have the writes up to a commit, durably. Passes the reply for a client when the commit
   * has failed, or when it is unknown whether the others have them.
   */
  afterAll(carriedBy: number, onDone: (failure?: ShardReply) => void): void
}

/**
 * The register of an owner, in shard `number`. `others` waits until the other owners have the changes, once they are
 * durable here; undefined: there is no other owner.
 */
export const registerOver = (
  commit: Pick<GroupCommit, 'write' | 'afterCommit'>,
  number: number,
  others?: (onDone: (failure?: ShardReply) => void) => void,
): Register => ({
  obstacle: () => undefined,
  write: (key, row) => commit.write(key, row),
  afterAll: (carriedBy, onDone) =>
    commit.afterCommit(carriedBy, failure => {
      if (failure && hasLost(failure, number)) onDone(replyOfFailure(failure, number))
      else if (others) others(onDone)
      else onDone()
    }),
})
