// Metrics of the quotas of tenants (docs/operations/metrics.md#tenants).
//
// Names of tenants come from the access file and from clients, so their number is bounded where they are counted.

import type { QuotaName, TenantQuotas } from '../domain/access/quotas.js'
import type { MetricFamily, MetricSample } from '../messages/admin.js'
import { family, gauge } from './metric-family.js'

type OfTenants<T> = readonly (readonly [tenant: string, value: T])[]

export interface QuotaNumbers {
  readonly tenants: readonly {
    readonly tenant: string
    readonly limits: TenantQuotas
    /** undefined: not known here. */
    readonly used: Readonly<Partial<Record<QuotaName, number | undefined>>>
  }[]
  /** Tenants with quotas that are left out. */
  readonly unreported: number
  /** Requests and notifications that were counted by the rates, since the start. */
  readonly taken: Readonly<Partial<Record<QuotaName, OfTenants<number>>>>
  /** Refused requests, and notifications that had to wait, since the start. */
  readonly refused: OfTenants<Readonly<Partial<Record<QuotaName, number>>>>
}

export function quotaFamilies({ tenants, unreported, taken, refused }: QuotaNumbers): readonly MetricFamily[] {
  const limits = tenants.flatMap(({ tenant, limits }) => samplesOf(tenant, limits))
  const used = tenants.flatMap(({ tenant, limits, used }) =>
    samplesOf(tenant, used).filter(({ labels }) => limits[labels.quota as QuotaName] !== undefined),
  )
  const takenSamples = Object.entries(taken).flatMap(([quota, counts]) =>
    counts.flatMap(([tenant, count]) => samplesOf(tenant, { [quota]: count })),
  )
  const refusedSamples = refused.flatMap(([tenant, counts]) => samplesOf(tenant, counts))
  return [
    family('orrery_tenant_quota_limit', 'gauge', 'Quotas of tenants, by quota.', limits, 'max'),
    family(
      'orrery_tenant_quota_used',
      'gauge',
      'Entities, subscriptions, registrations and streams of tenants with quotas.',
      used,
    ),
    family(
      'orrery_tenant_quota_taken_total',
      'counter',
      'Requests and notifications that the rates of tenants have allowed.',
      takenSamples,
    ),
    family(
      'orrery_tenant_quota_refused_total',
      'counter',
      'Requests that quotas of tenants have refused, and notifications that had to wait.',
      refusedSamples,
    ),
    gauge('orrery_tenant_quotas_unreported', 'Tenants with quotas that these metrics leave out.', unreported, 'max'),
  ]
}

const samplesOf = (
  tenant: string,
  values: Readonly<Partial<Record<QuotaName, number | undefined>>>,
): readonly MetricSample[] =>
  Object.entries(values).flatMap(([quota, value]) =>
    value === undefined ? [] : [{ labels: { tenant, quota }, value }],
  )
