// All lanes by name, and the pools they belong to. Bounded: a new lane takes the place of one in which nothing waits or is sent.
//
// A receiver has one lane, or one for each pool whose tenants it serves: what one tenant's pool cannot take must not stop the others.

import type { Address } from './address.js'
import { Lane, Pool } from './lane.js'
import type { PoolLimits } from './limits.js'

/** Lanes looked at, the ones looked at longest ago first, to find an idle one. */
const idleTriesMax = 64

export class LaneTable<T> {
  readonly pools: readonly Pool<T>[]
  private readonly shared: Pool<T>
  private readonly own = new Map<string, Pool<T>>()
  private readonly lanes = new Map<string, Lane<T>>()

  /** The first of `pools` is the shared one. */
  constructor(
    pools: readonly PoolLimits[],
    private readonly lanesMax: number,
    private readonly timeLeftMsMin: number,
  ) {
    this.pools = pools.map(limits => new Pool<T>(limits))
    this.shared = this.pools[0]!
    for (const pool of this.pools) if (pool.limits.tenant !== undefined) this.own.set(pool.limits.tenant, pool)
  }

  get size(): number {
    return this.lanes.size
  }

  all(): Iterable<Lane<T>> {
    return this.lanes.values()
  }

  poolOf(tenant: string): Pool<T> {
    return this.own.get(tenant) ?? this.shared
  }

  nameOf(tenant: string, { receiver }: Address): string {
    return this.own.has(tenant) ? `${tenant} ${receiver}` : receiver
  }

  /** The lane, made when there is none yet; undefined: too many are in use. */
  laneOf(tenant: string, address: Address): Lane<T> | undefined {
    const name = this.nameOf(tenant, address)
    const known = this.lanes.get(name)
    if (known || !this.makeRoom()) return known
    const lane = new Lane<T>(name, address, this.poolOf(tenant), this.timeLeftMsMin)
    this.lanes.set(name, lane)
    return lane
  }

  /** True when there is room for one more lane, if need be in the place of an idle one. */
  makeRoom(): boolean {
    if (this.lanes.size < this.lanesMax) return true
    let tries = 0
    for (const [name, lane] of this.lanes) {
      this.lanes.delete(name)
      if (lane.isIdle) {
        lane.cancelWake?.()
        return true
      }
      this.lanes.set(name, lane)
      if (++tries === idleTriesMax) return false
    }
    return false
  }
}
