// Metrics by tenant and service path: what is counted, how parts of several processes become one, and the tree that is answered
// (operations.md §7).
//
// A request is counted under what its headers say, whether or not tenants are in use; one whose headers are no tenant or no path is not
// counted at all. The tree leaves out zeros. A mean is made only when it is rendered, so that parts can be added.
//
// Not here: the code that counts (service-tallies.ts) and resets (operator.ts).

import { parseServicePaths, parseTenant } from '../domain/scope.js'
import type { ServiceTally } from '../messages/admin.js'

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

/** Nothing counted yet. */
export const emptyTally = (service: string, path: string): ServiceTally => ({ service, path, ...noNumbers })

/** Under which names a request is counted (§7.2); undefined: not at all. Both are headers as they were sent, '' when absent. */
export function serviceNames(
  tenantHeader: string,
  pathHeader: string,
): { readonly service: string; readonly path: string } | undefined {
  const tenant = parseTenant(tenantHeader)
  const paths = pathHeader === '' ? undefined : parseServicePaths(pathHeader)
  if (!tenant.ok || paths?.ok === false) return undefined
  const [first = ''] = paths?.value ?? []
  const path = first.replace(/\/?#$/, '').slice(1)
  return { service: tenant.value || 'default-service', path: path || 'root-subserv' }
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
