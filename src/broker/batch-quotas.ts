// Whether a batch may create its entities: decided for the whole batch before its first turn, and the creations are
// reserved until it has ended (docs/interface/access.md#quotas).
//
// As a rule there is room for all entities of the batch, so nothing has to be known of them. Otherwise the owners count
// those that do not exist yet.
//
// Creations that another process reserves are not known here. There the turns decide.

import type { BatchIdentity } from '../domain/entities/batch.js'
import { accepted, type Refusal, type Result, refusals, refused } from '../domain/refusal.js'
import type { Scope } from '../domain/scope.js'
import type { ShardReply } from '../messages/messages.js'
import { type OnResult, refusalOf } from './replies.js'
import type { ShardClient } from './shard-client.js'

/** The quotas of entities, as this process knows them. */
export interface CreationQuotas {
  /** undefined: the tenant may have any number. */
  maxOf(tenant: string): number | undefined
  /**
   * Reserves creations. `used`: the entities of the tenant; undefined: as far as is known here. Returns the function
   * that ends the reservation. `full`: there is no room, or it is not known that there is. `blocked`: there is none
   * because of other reservations.
   */
  reserve(tenant: string, creations: number, used?: number): (() => void) | 'full' | 'blocked'
  /** Runs `take` when a reservation has ended. False: too many requests wait. */
  afterReservation(tenant: string, take: () => void): boolean
  /** Counts, and makes, a refusal. */
  refuse(tenant: string): Refusal
}

/** Ends a reservation. */
export type Release = () => void

export class BatchQuotas {
  constructor(
    private readonly client: Pick<ShardClient, 'countMissing'>,
    private readonly quotas: CreationQuotas,
  ) {}

  isLimited(tenant: string): boolean {
    return this.quotas.maxOf(tenant) !== undefined
  }

  /** Reserves what a batch creates, or refuses it. */
  reserve(scope: Scope, items: readonly BatchIdentity[], onReserved: OnResult<Release>): void {
    const reserved = this.quotas.reserve(scope.tenant, items.length)
    if (typeof reserved === 'function') return onReserved(accepted(reserved))
    this.reserveMissing(scope, differing(items), onReserved)
  }

  private reserveMissing(scope: Scope, entities: readonly BatchIdentity[], onReserved: OnResult<Release>): void {
    const { tenant } = scope
    this.client.countMissing(scope, entities, readCreations, parts => {
      if (!parts.ok) return onReserved(parts)
      const sum = (of: 'count' | 'missing'): number => parts.value.reduce((total, part) => total + part[of], 0)
      const reserved = this.quotas.reserve(tenant, sum('missing'), sum('count'))
      if (typeof reserved === 'function') return onReserved(accepted(reserved))
      if (reserved === 'full') return onReserved(refused(this.quotas.refuse(tenant)))
      const again = (): void => this.reserveMissing(scope, entities, onReserved)
      if (!this.quotas.afterReservation(tenant, again)) onReserved(refused(refusals.requestsTooMany))
    })
  }
}

interface Creations {
  readonly count: number
  readonly missing: number
}

const readCreations = (reply: ShardReply): Result<Creations> =>
  reply.kind === 'tenants' && reply.content.what === 'creations' ? accepted(reply.content) : refusalOf(reply, 'write')

/** Each entity once. */
function differing(items: readonly BatchIdentity[]): readonly BatchIdentity[] {
  const found = new Map<string, BatchIdentity>()
  for (const { id, type } of items) found.set(JSON.stringify([id, type]), { id, type })
  return [...found.values()]
}
