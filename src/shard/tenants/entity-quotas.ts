// The quota of entities of each tenant at an owner of shards (docs/interface/access.md#quotas). A turn is synchronous,
// so it decides exactly. Requests that may create entities wait until the entities of their tenant have been counted.
//
// Of several owners each counts its own shards, and asks the others. They divide the rest of the quota: `allowed` is
// how many entities this owner may have until it asks again. It does so once a second while there are creations, and
// when it needs more. Then the others give back what they have not used.
//
// A batch is decided as a whole before its first turn (broker/batch-quotas.ts), and reserves its creations meanwhile.
// Single creations that would find no room because of that wait until it has ended.
//
// Not here: the numbers (tenant-uses.ts), the asks to other owners (other-owners.ts).

import type { TenantLimits } from '../../domain/access/quotas.js'
import { type Refusal, refusals } from '../../domain/refusal.js'
import type { Clock } from '../../ports.js'
import type { TenantUse, TenantUses, WaitingCreation } from './tenant-uses.js'

/** Requests that wait until they can be decided. Raising it trades memory for fewer 503s. */
export const waitingMax = 10_000
/** The age at which the counts of other owners are asked for again, and that at which creations wait for them. */
const askAgainMs = 1_000
const askedAgeMsMax = 2_000

/** The entities of a tenant at the other owners. */
export interface OtherOwners {
  /** Owners, this one included. */
  readonly owners: number
  /** Asks all others. `needsRoom`: they give back what they have not used. undefined: not all have answered. */
  count(tenant: string, needsRoom: boolean, onCount: (count: number | undefined) => void): void
}

export class EntityQuotas {
  private waiting = 0
  /** undefined: this owner is the only one. */
  private others: OtherOwners | undefined

  constructor(
    readonly uses: TenantUses,
    private readonly limits: TenantLimits,
    private readonly clock: Pick<Clock, 'monoMs'>,
  ) {}

  /** From now on the entities of other owners count, too. */
  begin(others: OtherOwners): void {
    this.others = others
  }

  maxOf(tenant: string): number | undefined {
    return this.limits.of(tenant).entities
  }

  /** The refusal of a turn that would create an entity; undefined: it may. */
  refusalFor(tenant: string): Refusal | undefined {
    const max = this.maxOf(tenant)
    if (max === undefined) return undefined
    const use = this.uses.get(tenant)
    // It could not be counted, or the tenant has got its quota since the request was admitted.
    if (!use) return refusals.requestsTooMany
    return use.own < this.ceilingOf(use, max) ? undefined : this.limits.refuse(tenant, 'entities', max)
  }

  /**
   * Runs `take` when a request with so many creations can be decided: nearly always at once. False: too many wait, and
   * it will not run. `isReserved`: the creations are those of a batch.
   */
  admit(tenant: string, creations: number, isReserved: boolean, take: () => void): boolean {
    const max = this.maxOf(tenant)
    if (max === undefined) return now(take)
    const use = this.uses.get(tenant)
    const again = (): void => {
      if (!this.uses.get(tenant) || !this.admit(tenant, creations, isReserved, take)) take()
    }
    if (!use) return this.whenCounted(tenant, again)
    if (this.mustAsk(tenant, use, creations, max)) return this.hold(use.asking, { creations, take })
    if (isReserved || use.reserved === 0) return now(take)
    const left = this.ceilingOf(use, max) - use.own
    const isBlocked = creations <= left && creations + use.reserved > left
    return isBlocked ? this.hold(use.blocked, { creations, take: again }) : now(take)
  }

  /** Calls back with the entities of a tenant here; undefined: they cannot be counted. False: too many requests wait. */
  count(tenant: string, needsRoom: boolean, onCount: (count: number | undefined) => void): boolean {
    const use = this.uses.get(tenant)
    if (!use) return this.whenCounted(tenant, () => onCount(this.uses.get(tenant)?.own))
    if (needsRoom) {
      use.allowed = use.own
      use.isFull = false
    }
    return now(() => onCount(use.own))
  }

  /** The same for a report; undefined: it is being counted. */
  reported(tenant: string): number | undefined {
    const use = this.uses.get(tenant)
    if (!use) this.whenCounted(tenant, () => {})
    return use?.own
  }

  /** The tenants whose entities are counted. */
  *tenants(): Iterable<string> {
    for (const [tenant] of this.uses.entries()) yield tenant
  }

  /**
   * Reserves the creations of a batch. `used`: the entities of the tenant at all owners; undefined: as far as is known
   * here. Returns the function that ends the reservation. `full`: there is no room, or it is not known that there is.
   * `blocked`: there is none because of other reservations.
   */
  reserve(tenant: string, creations: number, used?: number): (() => void) | 'full' | 'blocked' {
    const max = this.maxOf(tenant)
    if (max === undefined) return noReservation
    const use = this.uses.get(tenant)
    if (!use || (used === undefined && this.isOutdated(use))) return 'full'
    const left = max - (used ?? use.own + use.others)
    if (creations > left) return 'full'
    if (creations + use.reserved > left) return 'blocked'
    use.reserved += creations
    return () => {
      use.reserved -= creations
      this.release(use.blocked)
    }
  }

  /** Runs `take` when a reservation has ended. False: too many requests wait. */
  afterReservation(tenant: string, take: () => void): boolean {
    const use = this.uses.get(tenant)
    return use && use.reserved > 0 ? this.hold(use.blocked, { creations: 0, take }) : now(take)
  }

  /** The refusal of a batch that would create too many entities. */
  refuse(tenant: string): Refusal {
    return this.limits.refuse(tenant, 'entities', this.maxOf(tenant) ?? 0)
  }

  private isOutdated({ askedMs }: TenantUse): boolean {
    return this.others !== undefined && this.clock.monoMs() - askedMs >= askedAgeMsMax
  }

  private ceilingOf({ allowed, others }: TenantUse, max: number): number {
    return this.others ? Math.min(allowed, max - others) : max
  }

  /** Whether creations have to wait for the counts of the other owners. They are asked if need be. */
  private mustAsk(tenant: string, use: TenantUse, creations: number, max: number): boolean {
    if (!this.others) return false
    const ageMs = this.clock.monoMs() - use.askedMs
    const needsRoom = use.own + creations > use.allowed && !use.isFull
    const mustWait = needsRoom || use.divided !== max || ageMs >= askedAgeMsMax
    if ((mustWait || ageMs >= askAgainMs) && !use.isAsking) this.ask(this.others, tenant, use, needsRoom)
    return mustWait && use.isAsking
  }

  private ask(others: OtherOwners, tenant: string, use: TenantUse, needsRoom: boolean): void {
    use.isAsking = true
    others.count(tenant, needsRoom, count => {
      use.isAsking = false
      use.askedMs = this.clock.monoMs()
      // An owner that does not answer keeps its entities.
      if (count !== undefined) use.others = count
      this.divide(tenant, use, others.owners)
      this.releaseFitting(use)
      if (use.asking.length > 0) this.ask(others, tenant, use, true)
    })
  }

  /**
   * Divides what is left among the owners. The part of this one is at least what the first waiting request needs, or
   * that would wait for ever.
   */
  private divide(tenant: string, use: TenantUse, owners: number): void {
    const max = this.maxOf(tenant)
    const left = Math.max(0, (max ?? Number.POSITIVE_INFINITY) - use.own - use.others)
    const needed = use.asking[0]?.creations ?? 0
    use.allowed = use.own + Math.min(left, Math.max(needed, Math.ceil(left / owners)))
    use.divided = max
    use.isFull = left === 0
  }

  /** Releases the first of the requests that wait for other owners, and those behind it as far as they fit. */
  private releaseFitting(use: TenantUse): void {
    for (let isFirst = true; use.asking.length > 0; isFirst = false) {
      const { creations, take } = use.asking[0]!
      if (!isFirst && !use.isFull && use.own + creations > use.allowed) return
      use.asking.shift()
      this.waiting--
      take()
    }
  }

  private whenCounted(tenant: string, take: () => void): boolean {
    if (this.waiting >= waitingMax) return false
    this.waiting++
    this.uses.load(tenant, () => {
      this.waiting--
      take()
    })
    return true
  }

  private hold(waiters: WaitingCreation[], waiter: WaitingCreation): boolean {
    if (this.waiting >= waitingMax) return false
    this.waiting++
    waiters.push(waiter)
    return true
  }

  private release(waiters: WaitingCreation[]): void {
    const released = waiters.splice(0)
    this.waiting -= released.length
    for (const { take } of released) take()
  }
}

const noReservation = (): void => {}

function now(take: () => void): true {
  take()
  return true
}
