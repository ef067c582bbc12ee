// The quotas of tenants in the present access file, and how often each has refused a request
// (docs/interface/access.md#quotas).
//
// Not here: counting (shard/, http/streams.ts), rates (tenant-rates.ts).

import {
  type CountQuota,
  type QuotaName,
  type Quotas,
  quotasOf,
  type TenantLimits,
  type TenantQuotas,
} from '../domain/access/quotas.js'
import { ownText } from '../domain/recent.js'
import { type Refusal, refusals } from '../domain/refusal.js'
import { tenantShown } from '../domain/scope.js'
import type { AccessSource } from './access-source.js'
import { quotaTenantsCountedMax } from './limits.js'

type Tally = Partial<Record<QuotaName, number>>

export class TenantQuotaBook implements TenantLimits {
  private ofNamed: ReadonlyMap<string, TenantQuotas>
  private others: TenantQuotas
  private readonly refused = new Map<string, Tally>()
  private readonly refusedOfOthers: Tally = {}

  constructor(source: Pick<AccessSource, 'file' | 'on'>) {
    const { quotas } = source.file
    this.ofNamed = named(quotas)
    this.others = quotasOf(quotas, '*')
    source.on(file => {
      this.ofNamed = named(file.quotas)
      this.others = quotasOf(file.quotas, '*')
    })
  }

  // [hot] Once per request with access control.
  of(tenant: string): TenantQuotas {
    return this.ofNamed.get(tenant) ?? this.others
  }

  refusalFor(tenant: string, quota: CountQuota, used: number): Refusal | undefined {
    const max = this.of(tenant)[quota]
    if (max === undefined || used < max) return undefined
    return this.refuse(tenant, quota, max)
  }

  refuse(tenant: string, quota: CountQuota, max: number): Refusal {
    this.onRefused(tenant, quota)
    return refusals.quotaUsedUp(tenantShown(tenant), max, quota)
  }

  onRefused(tenant: string, quota: QuotaName): void {
    const tally = this.tallyOf(tenant)
    tally[quota] = (tally[quota] ?? 0) + 1
  }

  /** The tenants that the file names. */
  named(): Iterable<string> {
    return this.ofNamed.keys()
  }

  /** How often each quota of a tenant has refused something or made it wait; under `undefined` those of the rest. */
  *refusedByTenant(): Iterable<readonly [tenant: string | undefined, counts: Tally]> {
    yield* this.refused
    yield [undefined, this.refusedOfOthers]
  }

  /** A stranger may name very many tenants. */
  private tallyOf(tenant: string): Tally {
    const known = this.refused.get(tenant)
    if (known) return known
    if (this.refused.size >= quotaTenantsCountedMax) return this.refusedOfOthers
    const tally = {}
    this.refused.set(ownText(tenant), tally)
    return tally
  }
}

const named = (quotas: Quotas): ReadonlyMap<string, TenantQuotas> =>
  new Map([...quotas.keys()].filter(name => name !== '*').map(name => [name, quotasOf(quotas, name)]))
