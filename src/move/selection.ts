// Selects items of a source by tenant and service path.
//
// A path selects entities and registrations of exactly that path, and subscriptions that watch it: `/a`, `/a/#` and
// `/#` all watch `/a`. A name without any item is most likely misspelt, so the selector records the names that were
// found.

import type { MovedItem } from './moved.js'

export interface MoveSelection {
  /** undefined: all. */
  readonly tenants: readonly string[] | undefined
  readonly paths: readonly string[] | undefined
}

export class Selector {
  private readonly met: Set<string>

  /** `met`: the names that an earlier try of the same work has found. */
  constructor(
    private readonly selection: MoveSelection,
    met: readonly string[] = [],
  ) {
    this.met = new Set(met)
  }

  /** Names of tenants and paths that have been found, to be written down. */
  get found(): readonly string[] {
    return [...this.met]
  }

  takes(item: MovedItem): boolean {
    const { tenants, paths } = this.selection
    const { tenant, path } = scopeOf(item)
    if (tenants && !tenants.includes(tenant)) return false
    if (tenants) this.met.add(tenantLabel(tenant))
    if (!paths) return true
    const named = paths.filter(one => isOf(one, path))
    for (const one of named) this.met.add(pathLabel(one))
    return named.length > 0
  }

  /** The named tenants and paths without a single item. */
  unmet(): string[] {
    const { tenants = [], paths = [] } = this.selection
    return [...tenants.map(tenantLabel), ...paths.map(pathLabel)].filter(label => !this.met.has(label))
  }
}

const tenantLabel = (tenant: string): string => (tenant === '' ? 'the default tenant' : `tenant ${tenant}`)
const pathLabel = (path: string): string => `path ${path}`

function scopeOf(item: MovedItem): { readonly tenant: string; readonly path: string } {
  if (item.kind === 'entity') return item
  const { tenant, servicePath: path } = item.kind === 'subscription' ? item.subscription : item.registration
  return { tenant, path }
}

/** Whether `path`, which may be a wildcard for all paths below one, includes the named path. */
function isOf(named: string, path: string): boolean {
  if (!path.endsWith('#')) return path === named
  const above = path.slice(0, -'/#'.length)
  return named === above || named.startsWith(`${above}/`)
}
