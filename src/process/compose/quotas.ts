// The quotas of tenants at a node: the numbers of the access file, with the rates of this process. Without `-access`
// there are none.
//
// A rate, and a number of streams, is divided among the workers, or among the nodes of the cluster that are there.

import type { AccessSource } from '../../access/access-source.js'
import { quotaTenantsCountedMax } from '../../access/limits.js'
import { TenantQuotaBook } from '../../access/tenant-quotas.js'
import { TenantRates } from '../../access/tenant-rates.js'
import type { CountQuota, TenantQuotas } from '../../domain/access/quotas.js'
import { tenantShown } from '../../domain/scope.js'
import { StreamsOfTenants } from '../../http/streams-of-tenants.js'
import type { QuotaNumbers } from '../../observe/quota-metrics.js'
import type { LocalParts } from '../../shard/shards.js'
import type { Joined, Surroundings } from '../surroundings.js'

export interface NodeQuotas {
  readonly book: TenantQuotaBook
  readonly streams: StreamsOfTenants
  readonly requests: TenantRates
  readonly notifications: TenantRates
  /** The node has joined the others. */
  onJoined(joined: Joined | undefined): void
}

export function openQuotas(
  source: AccessSource,
  { clock, place }: Pick<Surroundings, 'clock'> & { readonly place?: Surroundings['place'] | undefined },
): NodeQuotas {
  let alive = place?.kind === 'worker' ? place.workers : 1
  const book = new TenantQuotaBook(source)
  const processes = (): number => alive
  const ratesOf = (rate: 'requestsPerSecond' | 'notificationsPerSecond'): TenantRates =>
    new TenantRates({ clock, processes, rateOf: tenant => book.of(tenant)[rate] })
  return {
    book,
    streams: new StreamsOfTenants(book, processes),
    requests: ratesOf('requestsPerSecond'),
    notifications: ratesOf('notificationsPerSecond'),
    onJoined(joined) {
      joined?.onProcesses?.(count => {
        alive = Math.max(1, count)
      })
    },
  }
}

/** The numbers of tenants for metrics. `parts`: the shards of this process. */
export function quotaNumbersOf(
  { book, streams, requests, notifications }: NodeQuotas,
  { subscriptions, registrations, quotas, role }: LocalParts,
): QuotaNumbers {
  // Every owner has all documents: of several workers one reports them.
  const hasDocuments = role.kind !== 'copy'
  const usedOf = (tenant: string): Partial<Record<CountQuota, number | undefined>> => ({
    entities: book.of(tenant).entities === undefined ? undefined : quotas?.reported(tenant),
    subscriptions: hasDocuments ? (subscriptions.of(tenant)?.size ?? 0) : undefined,
    registrations: hasDocuments ? (registrations.of(tenant)?.size ?? 0) : undefined,
    streams: streams.countOf(tenant),
  })
  const tenants = new Set(book.named())
  const others = [streams.tenants(), subscriptions.tenantNames(), registrations.tenantNames(), quotas?.tenants() ?? []]
  for (const names of others) for (const tenant of names) if (hasQuota(book.of(tenant))) tenants.add(tenant)
  const reported = [...tenants].slice(0, quotaTenantsCountedMax)
  return {
    tenants: reported.map(tenant => ({ tenant: tenantShown(tenant), limits: book.of(tenant), used: usedOf(tenant) })),
    unreported: tenants.size - reported.length,
    taken: {
      requestsPerSecond: [...requests.takenByTenant()].map(shown),
      notificationsPerSecond: [...notifications.takenByTenant()].map(shown),
    },
    refused: [...book.refusedByTenant()].map(shown),
  }
}

const hasQuota = (quotas: TenantQuotas): boolean => Object.values(quotas).some(max => max !== undefined)

/** The name for operators; `other` is the rest. */
const shown = <T>([tenant, value]: readonly [string | undefined, T]): readonly [string, T] => [
  tenant === undefined ? 'other' : tenantShown(tenant),
  value,
]
