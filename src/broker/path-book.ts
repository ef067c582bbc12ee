// Which service paths a tenant has, as far as every owner of shards knows: what spares a read by id without a path from asking everybody.
//
// A path begins to exist when all owners have heard of it: whoever is about to create an entity in a path it has not announced yet tells all
// others, and waits for them. So an owner that has heard from all others what there is, once, misses nothing from then on. Paths are never
// forgotten while a process lives; one too many costs a look in vain.
//
// Of a tenant with many paths no more is known than that: a read then asks everybody, as it does while something is still unknown.
//
// Not here: who tells whom (remote-shards).

import { fewPathsMax } from '../domain/limits.js'

/** Tenants of which paths are known; with more, everybody is asked for everything. */
const tenantsMax = 100_000
/** Paths that were announced from here; all are forgotten at once when there are more, and announced again. */
const announcedMax = 100_000

/** Paths of tenants, some of each: one more than a few tells that there are many. */
export type TenantPaths = readonly (readonly [tenant: string, paths: readonly string[]])[]

export class PathBook {
  private readonly heard = new Map<string, Set<string>>()
  private readonly announced = new Set<string>()
  private isFull = false
  /** Whether all owners have told what they have. */
  isComplete = false

  /** Notes that a path exists, or will. */
  hear(tenant: string, path: string): void {
    let paths = this.heard.get(tenant)
    if (!paths) {
      if (this.heard.size >= tenantsMax) {
        this.isFull = true
        return
      }
      paths = new Set()
      this.heard.set(tenant, paths)
    }
    if (paths.size <= fewPathsMax) paths.add(path)
  }

  /** All paths of a tenant; undefined when they are many, or not all known. */
  few(tenant: string): ReadonlySet<string> | undefined {
    if (!this.isComplete || this.isFull) return undefined
    const paths = this.heard.get(tenant) ?? none
    return paths.size > fewPathsMax ? undefined : paths
  }

  /** What was heard. */
  get all(): TenantPaths {
    return [...this.heard].map(([tenant, paths]) => [tenant, [...paths]])
  }

  isAnnounced(tenant: string, path: string): boolean {
    return this.announced.has(keyOf(tenant, path))
  }

  /** Notes that all owners have heard of a path. */
  noteAnnounced(tenant: string, path: string): void {
    if (this.announced.size >= announcedMax) this.announced.clear()
    this.announced.add(keyOf(tenant, path))
  }
}

const none: ReadonlySet<string> = new Set()

const keyOf = (tenant: string, path: string): string => `${tenant}\0${path}`
