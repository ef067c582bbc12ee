// The register: rows that every owner of shards has, and one owner decides about. Its owner is the keeper.
//
// The register holds the subscriptions, registrations and service paths of all tenants. The keeper writes a changed row, waits until the commit is
// durable, and replies when all other owners have the row as well. So every owner that gets the next request already has the change.
//
// A node that is alone waits for no other owner. Nodes of a cluster follow the log of the register (replicate/). Workers of one machine are told by
// the keeper (register-feed.ts, register-copy.ts).

import type { ShardReply } from '../../messages/messages.js'
import type { GroupCommit } from '../commit/commit.js'

/** Where rows of the register are written, and how the other owners come to have them. */
export interface Register {
  /** Why no change can be taken now; undefined when one can. */
  obstacle(): ShardReply | undefined
  /** Stages a row, or its deletion. Gives the number of the commit that carries it. */
  write(key: Buffer, row: Buffer | undefined): number
  /**
   * To be called when all that was written is durable here. Calls back when all other owners have it, or with the reply for a client when
   * nobody knows whether they have.
   */
  afterAll(onDone: (unknown?: ShardReply) => void): void
}

/** The register of an owner that is the only one. */
export const ownRegister = (commit: Pick<GroupCommit, 'write'>): Register => ({
  obstacle: () => undefined,
  write: (key, row) => commit.write(key, row),
  afterAll: onDone => onDone(),
})
