// Metrics by tenant and service path, for `GET /admin/metrics`: the counting, and the tree of the answer
// (docs/interface/administration.md#metrics-by-tenant).
//
// A request is counted under the names in its headers, whether or not tenants are in use. A request whose headers have
// no valid tenant or path is not counted at all. Clients can send any such headers, so beyond `talliesMax` names the
// rest is counted together. The meaning of headers is computed once and remembered by their text. The tree leaves out
// zeros, and a mean is computed only when it is rendered, so that parts can be added.
//
// Not here: resets (operator.ts).

import { ownText } from '../domain/recent.js'
import { parseServicePaths, parseTenant, tenantShown } from '../domain/scope.js'
import type { ServiceTally } from '../messages/admin.js'
import type { AnsweredRequest, EndedTry } from '../ports.js'

type Numbers = Omit<ServiceTally, 'service' | 'path'>

const noNumbers: Numbers = {
  incomingTransactions: 0,
  incomingTransactionErrors: 0,
  incomingTransactionRequestSize: 0,
  incomingTransactionResponseSize: 0,
  serviceSeconds: 0,
  outgoingTransactions: 0,
  outgoingTransactionErrors: 0,
  outgoingTransactionRequestSize: 0,
  outgoingTransactionResponseSize: 0,
}

const numberNames = Object.keys(noNumbers) as (keyof Numbers)[]

export const emptyTally = (service: string, path: string): ServiceTally => ({ service, path, ...noNumbers })

/**
 * The names under which a request is counted (docs/interface/administration.md#metrics-by-tenant). The headers are as
 * they were sent, '' when absent; undefined: it is not counted.
 */
export function serviceNames(
  tenantHeader: string,
  pathHeader: string,
): { readonly service: string; readonly path: string } | undefined {
  const tenant = parseTenant(tenantHeader)
  const paths = pathHeader === '' ? undefined : parseServicePaths(pathHeader)
  if (!tenant.ok || paths?.ok === false) return undefined
  const [first = ''] = paths?.value ?? []
  const path = first.replace(/\/?#$/, '').slice(1)
  return { service: tenantShown(tenant.value), path: path || 'root-subserv' }
}

/** The tree of `GET /admin/metrics`, as JSON, from the tallies of all processes. */
export function renderServiceMetrics(tallies: Iterable<ServiceTally>): string {
  const services = new Map<string, Map<string, Numbers>>()
  const everywhere = new Map<string, Numbers>()
  for (const tally of tallies) {
    let paths = services.get(tally.service)
    if (!paths) {
      paths = new Map()
      services.set(tally.service, paths)
    }
    paths.set(tally.path, sum(paths.get(tally.path), tally))
    everywhere.set(tally.path, sum(everywhere.get(tally.path), tally))
  }
  return JSON.stringify({
    services: Object.fromEntries(sorted(services).map(([service, paths]) => [service, branch(paths)])),
    sum: branch(everywhere),
  })
}

function branch(paths: ReadonlyMap<string, Numbers>): object {
  let all = noNumbers
  for (const numbers of paths.values()) all = sum(all, numbers)
  return {
    subservs: Object.fromEntries(sorted(paths).map(([path, numbers]) => [path, leaf(numbers)])),
    sum: leaf(all),
  }
}

function leaf({ serviceSeconds, ...counts }: Numbers): object {
  const serviceTime = counts.incomingTransactions > 0 ? serviceSeconds / counts.incomingTransactions : 0
  const entries = Object.entries({ ...counts, serviceTime }).filter(([, value]) => value !== 0)
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}

function sum(one: Numbers | undefined, other: Numbers): Numbers {
  const total = { ...noNumbers }
  for (const name of numberNames) total[name] = (one?.[name] ?? 0) + other[name]
  return total
}

const sorted = <T>(map: ReadonlyMap<string, T>): [string, T][] => [...map].sort(([a], [b]) => (a < b ? -1 : 1))

/** Pairs of tenant and path that are counted separately until the next reset: 500 bytes each. */
export const talliesMax = 10_000

/**
 * Pairs of headers whose meaning is remembered; beyond that number all are forgotten at once. And the longest list of
 * paths that is remembered.
 */
const knownMax = 2_000
const knownLengthMax = 200

/** The name under which the rest is counted; no tenant and no path can have it. */
const others = 'other-services'

const nobody = { tenant: '', paths: '', tally: undefined }

export class ServiceTallies {
  private tallies = new Map<string, ServiceTally>()
  /** By the texts of the tenant and path headers. */
  private readonly known = new Map<string, Map<string, ServiceTally>>()
  private knownCount = 0
  /** The tally of the last request: most requests are like the one before, and comparing is cheaper than looking up. */
  private last: { readonly tenant: string; readonly paths: string; readonly tally: ServiceTally | undefined } = nobody

  // [hot] Once per request: 0.1 us (bench/watch.ts).
  onAnswered({ tenant, paths, status, requestBytes, responseBytes, durationMs }: AnsweredRequest): void {
    const tally = this.tallyOf(tenant, paths)
    if (!tally) return
    tally.incomingTransactions++
    if (status >= 400) tally.incomingTransactionErrors++
    tally.incomingTransactionRequestSize += requestBytes
    tally.incomingTransactionResponseSize += responseBytes
    tally.serviceSeconds += durationMs / 1000
  }

  /** MQTT is not counted (docs/interface/administration.md#metrics-by-tenant). */
  onEnded({ what, tenant, path, requestBytes, responseBytes, failure }: EndedTry): void {
    if (what === 'mqttNotification') return
    const tally = this.tallyOf(tenant, path)
    if (!tally) return
    tally.outgoingTransactions++
    if (failure !== undefined) tally.outgoingTransactionErrors++
    tally.outgoingTransactionRequestSize += requestBytes
    tally.outgoingTransactionResponseSize += responseBytes
  }

  read(isReset: boolean): readonly ServiceTally[] {
    const all = [...this.tallies.values()].map(tally => ({ ...tally }))
    if (isReset) this.forget()
    return all
  }

  private forget(): void {
    this.tallies = new Map()
    this.known.clear()
    this.knownCount = 0
    this.last = nobody
  }

  private tallyOf(tenant: string, paths: string): ServiceTally | undefined {
    const { last } = this
    if (last.tenant === tenant && last.paths === paths && last.tally) return last.tally
    const tally = this.known.get(tenant)?.get(paths) ?? this.find(tenant, paths)
    this.last = { tenant, paths, tally }
    return tally
  }

  private find(tenant: string, paths: string): ServiceTally | undefined {
    const names = serviceNames(tenant, paths)
    if (!names) return undefined
    const tally = this.tally(names)
    if (paths.length > knownLengthMax) return tally
    if (this.knownCount >= knownMax) {
      this.known.clear()
      this.knownCount = 0
    }
    let ofTenant = this.known.get(tenant)
    if (!ofTenant) {
      ofTenant = new Map()
      this.known.set(ownText(tenant), ofTenant)
    }
    ofTenant.set(ownText(paths), tally)
    this.knownCount++
    return tally
  }

  private tally({ service, path }: { readonly service: string; readonly path: string }): ServiceTally {
    const key = `${service} ${path}`
    const there = this.tallies.get(key)
    if (there) return there
    if (this.tallies.size >= talliesMax && service !== others) return this.tally({ service: others, path: others })
    // Parts of the key, so that they keep no header in memory.
    const tally = emptyTally(key.slice(0, service.length), key.slice(service.length + 1))
    this.tallies.set(key, tally)
    return tally
  }
}
