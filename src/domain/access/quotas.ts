// What a tenant may use: the member `quotas` of the access file (docs/interface/access.md#quotas).
//
// Not here: counting, and the rates of requests and notifications.

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
