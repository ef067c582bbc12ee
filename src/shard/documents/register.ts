// The register: rows that every owner of shards has, and one owner decides about. Its owner is the keeper.
//
// Subscriptions, registrations and the service paths of all tenants stand in it. Whoever changes a row writes it here, waits until the commit
// is durable, and replies when all other owners have it as well. So the next request meets the change wherever it is decided.
//
// A node that is alone has nobody to wait for. Nodes of a cluster follow the log of the register (replicate/). Workers of one machine are told by
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
