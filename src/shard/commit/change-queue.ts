// Durable changes on their way to the followers, in the order in which they were staged.
//
// Commits of several shards may end in another order than that. A change that is durable before an earlier one waits
// for it, because followers rely on the order: the first-page cache and views add new entities at their end. A client
// may have its reply meanwhile. So a reader of what followers keep waits for a quiet moment first
// (`GroupCommit.whenQuiet`).

import type { Entity } from '../../domain/entities/entity.js'
import type { ShardRecord } from '../turn/apply.js'
import { hasLost } from './deposed.js'

/** Receives changes once they are durable, in the order in which they were staged. */
export interface ChangeFollower {
  /** Whether it wants to receive a change that has just been staged. */
  wants(record: ShardRecord): boolean
  /** `after` is the entity as it now is; undefined when it was deleted. */
  follow(record: ShardRecord, after: Entity | undefined): void
}

/** The end of a commit, with its failure. */
export interface CommitEnd {
  readonly failure: Error | undefined
}

interface Followed {
  readonly follower: ChangeFollower
  readonly record: ShardRecord
  readonly after: Entity | undefined
  /** The commit that carries it. */
  readonly carriedBy: { readonly ended: CommitEnd | undefined }
}

export class ChangeQueue {
  private changes: Followed[] = []
  private behind = false

  get length(): number {
    return this.changes.length
  }

  /** Whether followers have not received a change that is durable. */
  get isBehind(): boolean {
    return this.behind
  }

  add(change: Followed): void {
    this.changes.push(change)
  }

  // [hot] For every commit.
  /** A commit has ended: followers receive the changes up to the first one that is not durable. */
  deliver(): void {
    const { changes } = this
    if (changes.length === 0) return
    const first = changes.findIndex(({ carriedBy }) => !carriedBy.ended)
    const due = changes.splice(0, first < 0 ? changes.length : first)
    this.behind = changes.some(({ carriedBy }) => carriedBy.ended)
    for (const { follower, record, after, carriedBy } of due) {
      const failure = carriedBy.ended?.failure
      if (!failure || !hasLost(failure, record.shard)) follower.follow(record, after)
    }
  }
}
