// Counts for `GET /metrics` under names that clients and operators choose: requests by tenant, and forwarded requests
// by provider. The number of series is bounded: the first names are counted separately, and the rest as `other`.
//
// Not here: counts by tenant and service path, which operators may reset (service-metrics.ts).

import { ownText } from '../domain/recent.js'
import { parseTenant, tenantShown } from '../domain/scope.js'
import type { MetricFamily } from '../messages/admin.js'
import type { AnsweredRequest, EndedTry } from '../ports.js'
import { byLabel } from './metric-family.js'

/** Tenants that are counted separately: some 300 bytes each in a process, and one series each. */
export const tenantsCountedMax = 200
/** Providers that are counted separately, with three series each. */
export const providersCountedMax = 100

/** The name of the rest. The requests of a tenant with this name are counted here as well. */
const rest = 'other'

/** Numbers of one name. */
class Tally {
  requests = 0
  failures = 0
  seconds = 0
}

/** A bounded number of names, and the rest. */
class Tallies {
  private readonly tallies = new Map<string, Tally>()
  private readonly others = new Tally()

  constructor(private readonly countMax: number) {}

  of(name: string): Tally {
    const known = this.tallies.get(name)
    if (known) return known
    if (this.tallies.size >= this.countMax || name === rest) return this.others
    const tally = new Tally()
    this.tallies.set(ownText(name), tally)
    return tally
  }

  /** By name. */
  all(number: keyof Tally): Readonly<Record<string, number>> {
    const all = [...this.tallies, ...(this.others.requests > 0 ? [[rest, this.others] as const] : [])]
    return Object.fromEntries(all.map(([name, tally]) => [name, tally[number]]))
  }
}

export class TenantTallies {
  private readonly tallies = new Tallies(tenantsCountedMax)
  /** Most requests have the same tenant as the one before. */
  private last: { readonly header: string; readonly tally: Tally } | undefined

  // [hot] Once per request.
  /** Counts a request under the tenant of its header, whether or not tenants are in use. */
  onAnswered({ tenant: header }: Pick<AnsweredRequest, 'tenant'>): void {
    if (this.last?.header !== header) this.last = { header: ownText(header), tally: this.tallyOf(header) }
    this.last.tally.requests++
  }

  private tallyOf(header: string): Tally {
    const tenant = parseTenant(header)
    return this.tallies.of(tenant.ok ? tenantShown(tenant.value) : rest)
  }

  families(): readonly MetricFamily[] {
    const help = `Requests answered, by tenant; of more than ${tenantsCountedMax} tenants the rest is ${rest}.`
    return [byLabel('orrery_tenant_requests_total', 'counter', help, 'tenant', this.tallies.all('requests'))]
  }
}

export class ForwardingTallies {
  private readonly tallies = new Tallies(providersCountedMax)

  /** Counts a request to a context provider. */
  onEnded({ what, receiver, failure, durationMs }: EndedTry): void {
    if (what !== 'forward') return
    const path = receiver.indexOf('/')
    const tally = this.tallies.of(path < 0 ? receiver : receiver.slice(0, path))
    tally.requests++
    if (failure !== undefined) tally.failures++
    tally.seconds += (durationMs ?? 0) / 1000
  }

  families(): readonly MetricFamily[] {
    const ofProvider = (name: string, help: string, number: keyof Tally): MetricFamily =>
      byLabel(`orrery_forwarding_${name}_total`, 'counter', help, 'provider', this.tallies.all(number))
    return [
      ofProvider('requests', 'Requests to context providers, by host and port.', 'requests'),
      ofProvider('failures', 'Of these, those without an answer that could be used.', 'failures'),
      ofProvider('seconds', 'Time that they took.', 'seconds'),
    ]
  }
}
