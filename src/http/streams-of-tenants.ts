// How many streams each tenant has at this process, for its quota (docs/interface/access.md#quotas).
//
// A process knows only its own streams. So each of several processes has its part of the number, rounded up.

import type { TenantLimits } from '../domain/access/quotas.js'
import { ownText } from '../domain/recent.js'
import type { Refusal } from '../domain/refusal.js'

export class StreamsOfTenants {
  private readonly open = new Map<string, number>()

  /** `processes`: those that serve streams now. */
  constructor(
    private readonly limits: Pick<TenantLimits, 'of' | 'refuse'>,
    private readonly processes: () => number,
  ) {}

  /** The refusal of one more stream; undefined: the tenant may have one more. */
  refusalFor(tenant: string): Refusal | undefined {
    const max = this.limits.of(tenant).streams
    if (max === undefined || this.countOf(tenant) < Math.ceil(max / this.processes())) return undefined
    return this.limits.refuse(tenant, 'streams', max)
  }

  countOf(tenant: string): number {
    return this.open.get(tenant) ?? 0
  }

  /** The tenants that have streams here. */
  tenants(): Iterable<string> {
    return this.open.keys()
  }

  begin(tenant: string): void {
    this.open.set(ownText(tenant), this.countOf(tenant) + 1)
  }

  end(tenant: string): void {
    const left = this.countOf(tenant) - 1
    if (left > 0) this.open.set(tenant, left)
    else this.open.delete(tenant)
  }
}
