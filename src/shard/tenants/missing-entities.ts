// How many entities of a batch do not exist yet, for the quota of its tenant. It looks at the same actors as the turns
// that follow.

import type { ShardMap } from '../../domain/scope.js'
import type { MissingEntities } from '../../messages/messages.js'
import type { Actors } from '../turn/actor.js'

export class MissingCounter {
  /** `owns`: whether a shard is of this owner. The actors of other shards must not be loaded. */
  constructor(
    private readonly actors: Pick<Actors, 'load' | 'releaseEmpty'>,
    private readonly shardMap: ShardMap,
    private readonly owns: (shard: number) => boolean,
  ) {}

  count(tenant: string, { path, entities }: MissingEntities): number {
    let missing = 0
    for (const { id, type } of entities) {
      const shard = this.shardMap.shardOf(tenant, path, id)
      if (!this.owns(shard)) continue
      const actor = this.actors.load(shard, tenant, path, id)
      const exists = type === undefined ? actor.variants.length > 0 : actor.variant(type) !== undefined
      if (!exists) missing++
      this.actors.releaseEmpty(actor)
    }
    return missing
  }
}
