// Asks the other owners of shards how many entities of a tenant they have, for its quota (entity-quotas.ts).

import type { Shards } from '../../messages/messages.js'
import type { OtherOwners } from './entity-quotas.js'

/** `owns`: whether a shard is of this owner. */
export function otherOwners(shards: Shards, owns: (shard: number) => boolean): OtherOwners {
  return {
    get owners() {
      return shards.owners().length
    },
    count(tenant, needsRoom, onCount) {
      const asked = shards.owners().filter(shard => !owns(shard))
      if (asked.length === 0) return onCount(0)
      let open = asked.length
      let sum = 0
      let isWhole = true
      for (const shard of asked)
        shards.ask(shard, { kind: 'tenants', step: { what: 'creations', tenant, needsRoom } }, reply => {
          if (reply.kind === 'tenants' && reply.content.what === 'creations') sum += reply.content.count
          else isWhole = false
          if (--open === 0) onCount(isWhole ? sum : undefined)
        })
    },
  }
}
