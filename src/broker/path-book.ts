// Which service paths a tenant has, as far as every owner of shards knows: what spares a read by id without a path from asking everybody.
//
// A path begins to exist when all owners have heard of it: whoever is about to create an entity in a path it has not announced yet tells all
// others, and waits for them. So an owner that has heard from all others what there is, once, misses nothing from then on. No path of a tenant is
// forgotten alone; one too many costs a look in vain.
//
// Memory is bounded: tenants that were neither heard of nor asked for lately are forgotten as a whole. Of a forgotten tenant nothing is ever
// known again, for what is heard of it later may be only a part: a read then asks everybody, as it does while something is still unknown, or
// when the tenant has many paths. Which tenants these are is told by one bit for each (a hash of the name), so a tenant of which nobody has
// heard may be taken for a forgotten one; that costs its reads no more than that.
//
// An owner that begins learns from the others what they have heard and what they have announced: the latter may be forgotten otherwise.
//
// Not here: who tells whom (remote-shards).

import { type FewPaths, listed, withPath } from '../domain/few-paths.js'
import { Recent } from '../domain/recent.js'

/** Tenants of which paths are known, or twice as many: some 150 bytes each. */
export const tenantsKept = 8_192
/** Paths that are known to be announced from here, or twice as many, some 120 bytes each; the others are announced again. */
export const announcedKept = 16_384

/** Paths of tenants, some of each: one more than a few tells that there are many. */
export type TenantPaths = readonly (readonly [tenant: string, paths: readonly string[]])[]

export class PathBook {
  private readonly forgotten = new Forgotten()
  private readonly heard = new Recent<{ paths: FewPaths }>(tenantsKept, tenant => this.forgotten.add(tenant))
  private readonly announced = new Recent<true>(announcedKept)
  /** Whether all owners have told what they have. */
  isComplete = false

  /** What is in memory. */
  get size(): { readonly tenants: number; readonly announced: number } {
    return { tenants: this.heard.size, announced: this.announced.size }
  }

  /** Notes that a path exists, or will. */
  hear(tenant: string, path: string): void {
    const known = this.heard.get(tenant)
    if (known) known.paths = withPath(known.paths, path)
    else if (!this.forgotten.has(tenant)) this.heard.set(tenant, { paths: withPath(undefined, path) })
  }

  /** Notes what another owner has told. */
  hearAll(tenant: string, paths: readonly string[]): void {
    if (paths.length > 0) for (const path of paths) this.hear(tenant, path)
    else {
      // It knows that there are many, and not which.
      const known = this.heard.get(tenant)
      if (known) known.paths = null
      else this.heard.set(tenant, { paths: null })
    }
  }

  // [hot] Once per read by id without a path.
  /** All paths of a tenant; undefined when they are many, or not all known. */
  few(tenant: string): ReadonlySet<string> | undefined {
    if (!this.isComplete) return undefined
    const known = this.heard.get(tenant)
    if (known) return listed(known.paths)
    return this.forgotten.has(tenant) ? undefined : none
  }

  /** What was heard, and what was announced. */
  get all(): TenantPaths {
    const all: [string, string[]][] = []
    for (const [tenant, { paths }] of this.heard.entries()) all.push([tenant, [...(listed(paths) ?? [])]])
    for (const [key] of this.announced.entries()) {
      const [tenant = '', path = ''] = key.split('\0')
      if (this.forgotten.has(tenant)) all.push([tenant, [path]])
    }
    return all
  }

  // [hot] Once per write that may create.
  isAnnounced(tenant: string, path: string): boolean {
    return this.announced.get(keyOf(tenant, path)) !== undefined
  }

  /** Notes that all owners have heard of a path. */
  noteAnnounced(tenant: string, path: string): void {
    this.announced.set(keyOf(tenant, path), true)
  }
}

/** Tenants by a bit each; one that was never added may be taken for one that was. */
class Forgotten {
  private bits: Uint8Array | undefined

  add(tenant: string): void {
    this.bits ??= new Uint8Array(forgottenBits / 8)
    const at = hashOf(tenant)
    this.bits[at >>> 3]! |= 1 << (at & 7)
  }

  has(tenant: string): boolean {
    if (!this.bits) return false
    const at = hashOf(tenant)
    return (this.bits[at >>> 3]! & (1 << (at & 7))) !== 0
  }
}

/** 128 KB. With 100,000 forgotten tenants one in ten others is taken for one of them. */
const forgottenBits = 2 ** 20

function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return (hash ^ (hash >>> 15)) & (forgottenBits - 1)
}

const none: ReadonlySet<string> = new Set()

const keyOf = (tenant: string, path: string): string => `${tenant}\0${path}`
