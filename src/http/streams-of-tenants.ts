// How many streams each tenant has at this process, for its quota (docs/interface/access.md#quotas).
//
// A process knows only its own streams. So each of several processes has its part of the number, rounded up.

import type { TenantLimits } from '../domain/access/quotas.js'
import { ownText } from '../domain/recent.js'
import type { Refusal } from '../domain/refusal.js'

export interface StreamQuotas {
  readonly limits: Pick<TenantLimits, 'of' | 'refuse'>
  /** The processes that serve streams now. */
  readonly processes: () => number
}

export class StreamsOfTenants {
  private readonly open = new Map<string, number>()

  /** `quotas` undefined: there are none. */
  constructor(private readonly quotas: StreamQuotas | undefined) {}

  /** The refusal of one more stream; undefined: the tenant may have one more. */
  refusalFor(tenant: string): Refusal | undefined {
    const max = this.quotas?.limits.of(tenant).streams
    if (!this.quotas || max === undefined) return undefined
    const { limits, processes } = this.quotas
    return this.of(tenant) < Math.ceil(max / processes()) ? undefined : limits.refuse(tenant, 'streams', max)
  }

  of(tenant: string): number {
    return this.open.get(tenant) ?? 0
  }

  begin(tenant: string): void {
    this.open.set(ownText(tenant), this.of(tenant) + 1)
  }

  end(tenant: string): void {
    const left = this.of(tenant) - 1
    if (left > 0) this.open.set(tenant, left)
    else this.open.delete(tenant)
  }
}
