// The rates of tenants: one token bucket for each tenant that has a rate and was used lately.
//
// A bucket that nothing was taken from for as long as it takes to fill is like a new one, so it is forgotten. There are
// two generations, as in domain/recent.ts, which change by time as well. A client may name very many tenants. Then the
// buckets used longest ago are forgotten earlier: each of these tenants has its own rate anyway.

import type { TenantPace } from '../domain/access/quotas.js'
import { fullAfterMs, TokenBucket } from '../domain/access/token-bucket.js'
import { ownText } from '../domain/recent.js'
import type { Clock } from '../ports.js'
import { quotaTenantsCountedMax, rateBucketsMax } from './limits.js'

export interface RateParts {
  readonly clock: Pick<Clock, 'monoMs'>
  /** The rate of a tenant now; undefined: it has none. */
  readonly rateOf: (tenant: string) => number | undefined
  /** The processes that serve tenants, at this moment: each has its part of a rate. */
  readonly processes: () => number
}

/** How many a tenant has taken since the start. */
interface TakenTally {
  count: number
}

interface CountedBucket {
  readonly bucket: TokenBucket
  readonly taken: TakenTally
}

export class TenantRates implements TenantPace {
  private younger = new Map<string, CountedBucket>()
  private older = new Map<string, CountedBucket>()
  private readonly taken = new Map<string, TakenTally>()
  private readonly takenByOthers: TakenTally = { count: 0 }
  private sinceMs = Number.NEGATIVE_INFINITY

  constructor(private readonly parts: RateParts) {}

  /** Buckets in memory. */
  get size(): number {
    return this.younger.size + this.older.size
  }

  // [hot] Once per request with access control.
  take(tenant: string): number {
    const rate = this.parts.rateOf(tenant)
    if (rate === undefined) return 0
    const { clock, processes } = this.parts
    const nowMs = clock.monoMs()
    const perSecond = rate / processes()
    const { bucket, taken } = this.bucketOf(tenant, perSecond, nowMs)
    const waitMs = bucket.take(perSecond, nowMs)
    if (waitMs === 0) taken.count++
    return waitMs
  }

  /** How many have been taken, by tenant; under `undefined` those of the rest. */
  *takenByTenant(): Iterable<readonly [tenant: string | undefined, count: number]> {
    for (const [tenant, { count }] of this.taken) yield [tenant, count]
    if (this.takenByOthers.count > 0) yield [undefined, this.takenByOthers.count]
  }

  private bucketOf(tenant: string, perSecond: number, nowMs: number): CountedBucket {
    if (nowMs - this.sinceMs > fullAfterMs(this.parts.processes()) || this.younger.size >= rateBucketsMax)
      this.age(nowMs)
    const known = this.younger.get(tenant)
    if (known) return known
    const name = ownText(tenant)
    const bucket = this.older.get(tenant) ?? {
      bucket: new TokenBucket(perSecond, nowMs),
      taken: this.tallyOf(name),
    }
    this.younger.set(name, bucket)
    return bucket
  }

  private tallyOf(tenant: string): TakenTally {
    const known = this.taken.get(tenant)
    if (known) return known
    if (this.taken.size >= quotaTenantsCountedMax) return this.takenByOthers
    const tally = { count: 0 }
    this.taken.set(tenant, tally)
    return tally
  }

  private age(nowMs: number): void {
    this.older = this.younger
    this.younger = new Map()
    this.sinceMs = nowMs
  }
}
