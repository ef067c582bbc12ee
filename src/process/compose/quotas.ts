// What tenants may use of a node: the quotas of the access file, with the rates of this process. Without `-access` there
// are none.
//
// A rate, and a number of streams, is divided among the workers, or among the nodes of the cluster that are there.

import type { AccessSource } from '../../access/access-source.js'
import { TenantQuotaBook } from '../../access/tenant-quotas.js'
import { TenantRates } from '../../access/tenant-rates.js'
import type { Joined, Surroundings } from '../surroundings.js'

export interface NodeQuotas {
  readonly book: TenantQuotaBook
  readonly requests: TenantRates
  readonly notifications: TenantRates
  /** The processes that serve tenants now. */
  processes(): number
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
    requests: ratesOf('requestsPerSecond'),
    notifications: ratesOf('notificationsPerSecond'),
    processes,
    onJoined(joined) {
      joined?.onProcesses?.(count => {
        alive = Math.max(1, count)
      })
    },
  }
}
