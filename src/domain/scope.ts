// The place of an entity: a tenant and a service path (together: its scope), which determine its shard.
//
// Syntax and texts are those of docs/interface/tenants-and-paths.md#tenants and
// docs/interface/tenants-and-paths.md#service-paths. A path in a query may end in `#`: the path and all below it. An
// update always names one path, so it always goes to one shard.

import { type Hash64, xxHash64 } from './hash.js'
import { pathLevelLengthMax, pathLevelsMax, pathsMax, tenantLengthMax } from './limits.js'
import { ownText, Recent } from './recent.js'
import { accepted, type Refusal, type Result, refusals, refused } from './refusal.js'

/** Tenant '' is the default one. The path is absolute and has no wildcard. */
export interface Scope {
  readonly tenant: string
  readonly path: string
}

/** The whole tenant: the paths of a query without a service path. */
export const allPaths: readonly string[] = ['/#']

const tenantSyntax = /^[A-Za-z0-9_]*$/
const levelSyntax = /^[A-Za-z0-9_]*$/

/**
 * The tenant in a header, lower-cased (docs/interface/tenants-and-paths.md#tenants); '' for an empty or absent header.
 */
export function parseTenant(header: string): Result<string> {
  if (header === '') return accepted('')
  if (header.length > tenantLengthMax) return refused(refusals.tenantTooLong(tenantLengthMax))
  // Checked before lower-casing, which turns the kelvin sign into the letter k.
  if (!tenantSyntax.test(header)) return refused(refusals.tenantCharacters)
  return accepted(header.toLowerCase())
}

/** The name of the default tenant where a tenant must have a name. No other tenant can have it: it has a dash. */
export const defaultTenantName = 'default-service'

/** The name of a tenant for operators. */
export const tenantShown = (tenant: string): string => tenant || defaultTenantName

/** The tenant with a name in the form for operators; undefined: no tenant can have this name. */
export function tenantNamed(name: string): string | undefined {
  if (name === defaultTenantName) return ''
  const tenant = parseTenant(name)
  return tenant.ok && tenant.value === name && name !== '' ? name : undefined
}

/**
 * The paths in a header, wildcards included (docs/interface/tenants-and-paths.md#service-paths); none for an empty or
 * absent header.
 */
export function parseServicePaths(header: string): Result<readonly string[]> {
  const items = header.trim() === '' ? [] : header.split(',')
  if (items.length > pathsMax) return refused(refusals.pathsTooMany)
  const paths: string[] = []
  for (const item of items) {
    const trimmed = item.trim()
    const path = trimmed.length > 1 && trimmed.endsWith('/') ? trimmed.slice(0, -1) : trimmed
    const refusal = checkPath(path)
    if (refusal) return refused(refusal)
    // A part of a list would keep the whole list in memory.
    paths.push(items.length > 1 ? ownText(path) : path)
  }
  return accepted(paths)
}

function checkPath(path: string): Refusal | undefined {
  if (!path.startsWith('/')) return refusals.pathNotAbsolute
  if (path === '/') return undefined
  const levels = path.slice(1).split('/')
  if (levels.length > pathLevelsMax) return refusals.pathTooDeep
  for (const [index, level] of levels.entries()) {
    if (level === '') return refusals.pathEmptyLevel
    if (level.length > pathLevelLengthMax) return refusals.pathLevelTooLong
    if (level === '#' && index === levels.length - 1) continue
    if (!levelSyntax.test(level)) return refusals.pathCharacters
  }
  return undefined
}

/**
 * The refusals of an update that names several paths, or a wildcard
 * (docs/interface/tenants-and-paths.md#service-paths).
 */
const updateTexts = {
  PATCH: { list: refusals.pathListInPatch, wildcard: refusals.pathWildcardInPatch },
  DELETE: { list: refusals.pathListInDelete, wildcard: refusals.pathWildcardInDelete },
  POST: { list: refusals.pathListInUpdate, wildcard: refusals.pathWildcardInUpdate },
  PUT: { list: refusals.pathListInUpdate, wildcard: refusals.pathWildcardInUpdate },
} as const

/** The one path of an update: the root path when the header had none. */
export function updatePath(paths: readonly string[], verb: keyof typeof updateTexts): Result<string> {
  if (paths.length > 1) return refused(updateTexts[verb].list)
  const path = paths[0] ?? '/'
  if (path.endsWith('#')) return refused(updateTexts[verb].wildcard)
  return accepted(path)
}

/** Whether the pattern (a path, or one ending in `/#`) covers the path. */
export function coversPath(pattern: string, path: string): boolean {
  if (!pattern.endsWith('/#')) return pattern === path
  const base = pattern.slice(0, -2)
  return path.startsWith(base) && (path.length === base.length || path.charCodeAt(base.length) === 0x2f)
}

/** All patterns that cover the path: itself, and with a wildcard each path above it. */
export function coveringPaths(path: string): readonly string[] {
  const covering = [path, '/#']
  if (path === '/') return covering
  for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 1)) covering.push(`${path.slice(0, end)}/#`)
  return covering
}

/** Whether any of the patterns covers the path. */
export function anyCoversPath(patterns: readonly string[], path: string): boolean {
  for (const pattern of patterns) if (coversPath(pattern, path)) return true
  return false
}

/** The distribution of entities in a data directory. Both numbers are powers of two and fixed when it is created. */
export interface Placement {
  /** V: number of shards. */
  readonly shards: number
  /** The number of shards over which one (tenant, path) is spread: 1 keeps it in one, `shards` ignores the path. */
  readonly spread: number
}

/**
 * The worker, of several on one machine, that owns a shard of entities. It is fixed, so no two workers claim one shard.
 */
export const workerOf = (shard: number, workers: number): number => shard % workers

/** The worker that keeps the register. */
export const keeper = 0

/** The distribution in a new single node or cluster (docs/operations/shards.md describes the cost of the number). */
export const placementDefault: Placement = { shards: 256, spread: 16 }

/**
 * The number of scopes whose hashes are cached, up to twice as many, some 250 bytes each: computing one takes 0.8 us.
 */
const scopesKept = 4096

/** Computes the shard of an entity: ( H(tenant, path) + odd(H(tenant)) * ( H(id) mod spread ) ) mod V. */
export class ShardMap {
  readonly placement: Placement
  /** A cache of the hashes of recent scopes. */
  private readonly scopes = new Recent<HashedScope>(scopesKept)
  /** The last scope: nearly always the next one too. */
  private last: HashedScope | undefined

  constructor(placement: Placement) {
    this.placement = placement
  }

  /**
   * The number of the register, which comes after the shards of entities. Its owner decides about the subscriptions,
   * registrations and service paths of all tenants, and every owner follows it.
   */
  get register(): number {
    return this.placement.shards
  }

  // [hot] Once per request.
  /** The shard of the entity with that id, all its types together. */
  shardOf(tenant: string, path: string, id: string): number {
    const { base, stride } = this.scope(tenant, path)
    const step = xxHash64(id).low & (this.placement.spread - 1)
    return (base + Math.imul(stride, step)) & (this.placement.shards - 1)
  }

  /** Every shard in which the entities of a tenant and path may be, in no order. */
  shardsOf(tenant: string, path: string): readonly number[] {
    const { base, stride } = this.scope(tenant, path)
    const { shards, spread } = this.placement
    return Array.from({ length: spread }, (_, step) => (base + Math.imul(stride, step)) & (shards - 1))
  }

  private scope(tenant: string, path: string): HashedScope {
    const { last } = this
    if (last?.tenant === tenant && last.path === path) return last
    const hashed = this.hashed(tenant, path)
    this.last = hashed
    return hashed
  }

  private hashed(tenant: string, path: string): HashedScope {
    const key = `${tenant}\0${path}`
    const known = this.scopes.get(key)
    if (known) return known
    // The texts of a request are cut out of its headers, and would keep these in memory.
    const own = { tenant: key.slice(0, tenant.length), path: key.slice(tenant.length + 1) }
    const hashed = { ...own, base: xxHash64(key).low | 0, stride: oddLow(xxHash64(tenant)) }
    this.scopes.set(key, hashed)
    return hashed
  }
}

/** The hashes of a tenant and a path. */
interface HashedScope {
  readonly tenant: string
  readonly path: string
  readonly base: number
  readonly stride: number
}

const oddLow = (hash: Hash64): number => hash.low | 1
