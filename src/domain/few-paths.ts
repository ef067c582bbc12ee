// The service paths of each tenant that has few of them. With them, a read by id without a path need not ask every
// owner.
//
// Clients create tenants freely, and most tenants have one path. So one path is stored as a text and several as a set.
// If they are many or long, only that fact is stored.

import { fewPathsLengthMax, fewPathsMax } from './limits.js'
import { ownText } from './recent.js'

/** null: there are many. */
type FewPaths = string | ReadonlySet<string> | null

/** Adds a path to the paths of a tenant; `known` is undefined when it had none. */
function withPath(known: FewPaths | undefined, path: string): FewPaths {
  if (known === null || known === path) return known
  if (known === undefined) return path.length > fewPathsLengthMax ? null : ownText(path)
  if (typeof known !== 'string' && known.has(path)) return known
  const paths = new Set(typeof known === 'string' ? [known] : known).add(ownText(path))
  let length = 0
  for (const one of paths) length += one.length
  return paths.size > fewPathsMax || length > fewPathsLengthMax ? null : paths
}

/** The paths; undefined: there are many. */
function listed(known: FewPaths): ReadonlySet<string> | undefined {
  if (known === null) return undefined
  return typeof known === 'string' ? new Set([known]) : known
}

/** Tenants whose paths are known, some 120 bytes each. At this limit `few` returns none any more. */
export const tenantsOfPathsMax = 100_000

const none: ReadonlySet<string> = new Set()

/** The few paths of all tenants. */
export class TenantPaths {
  private readonly tenants = new Map<string, FewPaths>()

  /** Whether there may be unknown tenants. */
  get isFull(): boolean {
    return this.tenants.size >= tenantsOfPathsMax
  }

  get size(): number {
    return this.tenants.size
  }

  names(): Iterable<string> {
    return this.tenants.keys()
  }

  /** All paths of a tenant; undefined: they are many, or not all known. */
  few(tenant: string): ReadonlySet<string> | undefined {
    if (this.isFull) return undefined
    const known = this.tenants.get(tenant)
    return known === undefined ? none : listed(known)
  }

  /** Whether adding this path would change anything. */
  wants(tenant: string, path: string): boolean {
    const known = this.tenants.get(tenant)
    if (known === undefined) return !this.isFull
    return known !== null && withPath(known, path) !== known
  }

  /** Notes a path that exists, or will exist. */
  add(tenant: string, path: string): void {
    const known = this.tenants.get(tenant)
    this.tenants.set(known === undefined ? ownText(tenant) : tenant, withPath(known, path))
  }

  /** Forgets a tenant that has no path any more. */
  delete(tenant: string): void {
    this.tenants.delete(tenant)
  }
}
