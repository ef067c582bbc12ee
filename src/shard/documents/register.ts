// The register: rows that every owner of shards has, and one owner decides about. Its owner is the keeper.
//
// The register holds the subscriptions, registrations and service paths of all tenants. The keeper writes a changed
// row, waits until the commit is durable, and replies when all other owners have the row as well. So every owner that
// gets the next request already has the change.
//
// A reader sees no change before the others have it either: whoever has found a subscription, whose creation has had no
// answer, may rely on it from then on.
//
// A single owner waits for no other owner. Nodes of a cluster follow the log of the register (replicate/). The workers
// of one machine get its changes from the keeper (register-feed.ts, register-copy.ts).

import type { ShardReply } from '../../messages/messages.js'
import type { GroupCommit } from '../commit/commit.js'
import { hasLost, replyAfterFailure, replyOfFailure } from '../commit/deposed.js'

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
  afterAll(carriedBy: number, onDone: OnTold): void
  /** The same, for a reader of what the register has with this commit; 0: of rows without a change of this process. */
  beforeRead(carriedBy: number, onDone: OnTold): void
}

export type OnTold = (failure?: ShardReply) => void

/** Called when all other owners have something, or with the reason why one of them may lack it. */
export type OnAllHave = (lacking?: string) => void

/** The other owners of shards. */
export interface OwnersToTell {
  /** Calls back when they have all that is durable here. */
  tell(onDone: OnAllHave): void
  /** How often this owner has become the keeper: in between another one makes changes. */
  terms(): number
}

/** The reply to a change that another owner may lack; undefined: all have it. */
export const mayLack = (lacking: string | undefined): ShardReply | undefined =>
  lacking === undefined ? undefined : { kind: 'lost', reason: lacking }

/** The reply to a reader of such a change; undefined: all have it. */
export const notReadable = (lacking: string | undefined): ShardReply | undefined =>
  lacking === undefined ? undefined : { kind: 'unreachable', reason: lacking }

type Waits = Pick<GroupCommit, 'write' | 'afterCommit'>

/** The register of a single owner, in shard `number`. */
export const registerAlone = (commit: Waits, number: number): Register => ({
  obstacle: () => undefined,
  write: (key, row) => commit.write(key, row),
  afterAll: (carriedBy, onDone) => afterOwn(commit, number, carriedBy, replyOfFailure, onDone),
  beforeRead: (carriedBy, onDone) => afterOwn(commit, number, carriedBy, replyAfterFailure, onDone),
})

function afterOwn(
  commit: Pick<GroupCommit, 'afterCommit'>,
  number: number,
  carriedBy: number,
  replyOf: (failure: Error, shard: number) => ShardReply,
  onDone: OnTold,
): void {
  commit.afterCommit(carriedBy, failure =>
    failure && hasLost(failure, number) ? onDone(replyOf(failure, number)) : onDone(),
  )
}

/** Writes that the other owners have, or are told of. */
interface Telling {
  readonly term: number
  /** The last commit of this owner that is included; those of earlier terms are, all of them. */
  readonly upTo: number
}

/** The register of an owner, in shard `number`, that others follow. */
export class FollowedRegister implements Register {
  private told: Telling = { term: Number.NaN, upTo: 0 }
  /** The latest one that has not ended. Readers wait for it together. */
  private telling: (Telling & { readonly waiting: OnAllHave[] }) | undefined

  constructor(
    private readonly commit: Waits,
    private readonly number: number,
    private readonly others: OwnersToTell,
  ) {}

  obstacle(): undefined {
    return undefined
  }

  write(key: Buffer, row: Buffer | undefined): number {
    return this.commit.write(key, row)
  }

  afterAll(carriedBy: number, onDone: OnTold): void {
    afterOwn(this.commit, this.number, carriedBy, replyOfFailure, failure =>
      failure ? onDone(failure) : this.tell(carriedBy, lacking => onDone(mayLack(lacking))),
    )
  }

  beforeRead(carriedBy: number, onDone: OnTold): void {
    afterOwn(this.commit, this.number, carriedBy, replyAfterFailure, failure => {
      if (failure || this.includes(this.told, carriedBy)) return onDone(failure)
      const onHave: OnAllHave = lacking => onDone(notReadable(lacking))
      if (this.telling && this.includes(this.telling, carriedBy)) this.telling.waiting.push(onHave)
      else this.tell(carriedBy, onHave)
    })
  }

  private includes({ term, upTo }: Telling, carriedBy: number): boolean {
    return term === this.others.terms() && carriedBy <= upTo
  }

  private tell(carriedBy: number, onDone: OnAllHave): void {
    const telling = { term: this.others.terms(), upTo: carriedBy, waiting: [onDone] }
    this.telling = telling
    this.others.tell(lacking => {
      if (this.telling === telling) this.telling = undefined
      if (lacking === undefined && !this.includes(this.told, carriedBy)) this.told = telling
      for (const onEnd of telling.waiting) onEnd(lacking)
    })
  }
}
