// What a tenant may use: the member `quotas` of the access file (docs/interface/access.md#quotas).
//
// Not here: who counts (shard/, http/streams.ts), the rates (access/tenant-rates.ts).

import type { Refusal } from '../refusal.js'
import { quotasMax } from './access-limits.js'
import { tenantName } from './access-rule.js'
import type { FileParser } from './file-parsers.js'
import { mapOf, objectOf, orNone, parsed, wholeOf } from './file-parsers.js'

/** Limits of one tenant; undefined: there is none. Rates are for each second. */
export interface TenantQuotas {
  readonly entities: number | undefined
  readonly subscriptions: number | undefined
  readonly registrations: number | undefined
  readonly requestsPerSecond: number | undefined
  readonly notificationsPerSecond: number | undefined
  readonly streams: number | undefined
}

/** Quotas of numbers, and all quotas. */
export type CountQuota = 'entities' | 'subscriptions' | 'registrations' | 'streams'
export type QuotaName = keyof TenantQuotas

/** What tenants may use now: quotas change with the access file. */
export interface TenantLimits {
  of(tenant: string): TenantQuotas
  /** The refusal of one more, if a tenant has this many; undefined: it may have one more. */
  refusalFor(tenant: string, quota: CountQuota, used: number): Refusal | undefined
  /** Counts, and makes, the refusal of what would be beyond `max`. */
  refuse(tenant: string, quota: CountQuota, max: number): Refusal
  /** Counts something that a quota has refused, or has made wait. */
  onRefused(tenant: string, quota: QuotaName): void
}

/** The rate of each tenant, of requests or of notifications. */
export interface TenantPace {
  /** Takes one from the rate of a tenant. Returns 0, or the time in milliseconds until there is one to take. */
  take(tenant: string): number
}

/** The quotas of tenants by name, and under `*` those of the others. */
export type Quotas = ReadonlyMap<string, TenantQuotas>

const count = orNone(wholeOf(0))
// With a rate of 0 nothing would ever be allowed, so there is no time at which to try again.
const rate = orNone(wholeOf(1))

/** The member `quotas`. */
export const quotas: FileParser<Quotas> = mapOf(
  json => (json === '*' ? parsed('*') : tenantName(json)),
  objectOf<TenantQuotas>({
    entities: count,
    subscriptions: count,
    registrations: count,
    requestsPerSecond: rate,
    notificationsPerSecond: rate,
    streams: count,
  }),
  quotasMax,
)

const unlimited: TenantQuotas = {
  entities: undefined,
  subscriptions: undefined,
  registrations: undefined,
  requestsPerSecond: undefined,
  notificationsPerSecond: undefined,
  streams: undefined,
}

/** The quotas of a tenant: its own, and those under `*` where it has none of its own. */
export function quotasOf(all: Quotas, tenant: string): TenantQuotas {
  const others = all.get('*') ?? unlimited
  const own = all.get(tenant)
  if (!own) return others
  return {
    entities: own.entities ?? others.entities,
    subscriptions: own.subscriptions ?? others.subscriptions,
    registrations: own.registrations ?? others.registrations,
    requestsPerSecond: own.requestsPerSecond ?? others.requestsPerSecond,
    notificationsPerSecond: own.notificationsPerSecond ?? others.notificationsPerSecond,
    streams: own.streams ?? others.streams,
  }
}
