// The rates of tenants: one token bucket for each tenant that has a rate and was used lately.
//
// A bucket that nothing was taken from for as long as it takes to fill is like a new one, so it is forgotten. There are
// two generations, as in domain/recent.ts, which change by time as well. A client may name very many tenants. Then the
// buckets used longest ago are forgotten earlier: each of these tenants has its own rate anyway.

import type { TenantPace } from '../domain/access/quotas.js'
import { fullAfterMs, TokenBucket } from '../domain/access/token-bucket.js'
import { ownText } from '../domain/recent.js'
import type { Clock } from '../ports.js'
import { rateBucketsMax } from './limits.js'

export interface RateParts {
  readonly clock: Pick<Clock, 'monoMs'>
  /** The rate of a tenant now; undefined: it has none. */
  readonly rateOf: (tenant: string) => number | undefined
  /** The processes that serve tenants, at this moment: each has its part of a rate. */
  readonly processes: () => number
}

export class TenantRates implements TenantPace {
  private younger = new Map<string, TokenBucket>()
  private older = new Map<string, TokenBucket>()
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
    return this.bucketOf(tenant, perSecond, nowMs).take(perSecond, nowMs)
  }

  private bucketOf(tenant: string, perSecond: number, nowMs: number): TokenBucket {
    if (nowMs - this.sinceMs > fullAfterMs(this.parts.processes()) || this.younger.size >= rateBucketsMax) this.age(nowMs)
    const known = this.younger.get(tenant)
    if (known) return known
    const bucket = this.older.get(tenant) ?? new TokenBucket(perSecond, nowMs)
    this.younger.set(ownText(tenant), bucket)
    return bucket
  }

  private age(nowMs: number): void {
    this.older = this.younger
    this.younger = new Map()
    this.sinceMs = nowMs
  }
}
