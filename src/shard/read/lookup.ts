// Reads by id: all entities of an id, under the paths that a request covers.
//
// They read actors, so they see staged changes, and wait until those are durable. The path of an entity is a part of
// its key. When the request leaves paths open, the paths come from the tenant's directory or the id index.

import { fewPathsMax } from '../../domain/limits.js'
import { Pace } from '../../domain/pace.js'
import { anyCoversPath, type ShardMap } from '../../domain/scope.js'
import type { FindRequest, FoundEntity, ShardReply } from '../../messages/messages.js'
import type { Clock, Store } from '../../ports.js'
import { allRowsOf } from '../../rows.js'
import type { GroupCommit } from '../commit/commit.js'
import type { PathCounts, Paths } from '../commit/counts.js'
import { hasLost, replyAfterFailure } from '../commit/deposed.js'
import { idRange, parseIdKey } from '../layout.js'
import type { Ownership } from '../replicate/ownership.js'
import type { Actor, Actors } from '../turn/actor.js'

type OnReply = (reply: ShardReply) => void

const none: readonly Actor[] = []

export class Lookup {
  /** `ownership`: the shards whose entities are found, and whose requests are counted; undefined: all are found. */
  constructor(
    private readonly store: Store,
    private readonly live: Actors,
    private readonly commit: GroupCommit,
    private readonly directory: PathCounts,
    private readonly shardMap: ShardMap,
    private readonly clock: Pick<Clock, 'monoMs' | 'endOfTick'>,
    private readonly ownership?: Pick<Ownership, 'owned' | 'countRequest'>,
  ) {}

  // [hot] Once per read by id.
  /** All entities of an id. Synchronous when the paths are few and known. */
  find(request: FindRequest, onReply: OnReply): void {
    const { tenant, paths, id } = request
    const [only] = paths
    if (paths.length === 1 && !only!.endsWith('#')) return this.answer(request, this.actors(tenant, only!, id), onReply)
    const known = this.directory.paths(tenant)
    if (known) return this.findUnder(request, known, onReply)
    this.directory.load(tenant).then(
      paths => this.findUnder(request, paths, onReply),
      (error: Error) => onReply({ kind: 'failed', reason: error.message }),
    )
  }

  private findUnder(request: FindRequest, known: Paths, onReply: OnReply): void {
    const { tenant, paths, id } = request
    if (known.size <= fewPathsMax) {
      const actors: Actor[] = []
      for (const path of known.keys()) if (anyCoversPath(paths, path)) actors.push(...this.actors(tenant, path, id))
      return this.answer(request, actors, onReply, this.directory.emptied)
    }
    this.findIndexed(request, onReply).catch((error: Error) => onReply({ kind: 'failed', reason: error.message }))
  }

  /** Finds the paths of the id in the id index, because the tenant has many paths: perhaps some tens of thousands. */
  private async findIndexed(request: FindRequest, onReply: OnReply): Promise<void> {
    const { tenant, paths, id } = request
    const pace = new Pace(this.clock)
    const gathered: Gathered = { entities: [], staged: [] }
    for (const path of ['/', ...(await this.indexed(tenant, id))]) {
      if (anyCoversPath(paths, path)) this.gather(request, this.actors(tenant, path, id), gathered)
      if (pace.isOver) await pace.breathe()
    }
    this.replyWhenDurable(gathered, onReply, true)
  }

  /** The paths, other than the root, under which the id is stored. */
  async indexed(tenant: string, id: string): Promise<string[]> {
    return (await allRowsOf(this.store, idRange(tenant, id))).map(({ key }) => parseIdKey(key).path)
  }

  /** The actor of an id under a path; none where its shard is not ours. */
  private actors(tenant: string, path: string, id: string): readonly Actor[] {
    const shard = this.shardMap.shardOf(tenant, path, id)
    if (this.ownership && this.ownership.owned[shard] !== 1) return none
    this.ownership?.countRequest(shard)
    return [this.live.load(shard, tenant, path, id)]
  }

  /** `mayLack`: an actor may be missing because of a removal whose commit is in flight. */
  private answer(request: FindRequest, actors: readonly Actor[], onReply: OnReply, mayLack = false): void {
    const gathered: Gathered = { entities: [], staged: [] }
    this.gather(request, actors, gathered)
    this.replyWhenDurable(gathered, onReply, mayLack)
  }

  private gather({ id, type: only, grant }: FindRequest, actors: readonly Actor[], gathered: Gathered): void {
    for (const actor of actors) {
      const { path } = actor.place
      const { stagedIn, place } = actor
      if (!this.commit.isDurable(stagedIn)) gathered.staged.push({ stagedIn, shard: place.shard })
      for (const { type, encoded } of actor.variants)
        if ((only === undefined || only === type) && (!grant || grant.covers({ path, type, id })))
          gathered.entities.push({ path, encoded })
      this.live.releaseEmpty(actor)
    }
  }

  private replyWhenDurable({ entities, staged }: Gathered, onReply: OnReply, mayLack: boolean): void {
    const { commit } = this
    if (staged.length === 0 && !mayLack) return onReply({ kind: 'found', entities })
    let failure: Error | undefined
    let left = staged.length + (mayLack ? 1 : 0)
    const onDurable = (lost: Error | undefined): void => {
      failure ??= lost
      if (--left === 0) onReply(failure ? replyAfterFailure(failure) : { kind: 'found', entities })
    }
    for (const { stagedIn, shard } of staged)
      commit.afterCommit(stagedIn, lost => onDurable(lost && hasLost(lost, shard) ? lost : undefined))
    if (mayLack) commit.afterFlight(onDurable)
  }
}

/**
 * The entities found so far, and the changes for which the reply waits. A caller that asks about several shards checks
 * whether the owned ones have changed (shards.ts).
 */
interface Gathered {
  readonly entities: FoundEntity[]
  readonly staged: { readonly stagedIn: number; readonly shard: number }[]
}
