// The service paths that each tenant has at all owners: rows of the register, which all owners follow. So a read by id
// without a path knows where to look, and need not ask other owners. A single owner has no such rows.
//
// A path begins to exist when every owner has it. Before an owner creates an entity in a new path, it announces the
// path to the keeper of the register, which replies when all owners have the row. Of a tenant with many paths only that
// fact is known, and no rows are written for further paths. A path stays while its tenant has anything: an unused path
// costs a look in vain. The paths of a tenant are removed after its last entity (unused-tenants.ts).

import { TenantPaths } from '../../domain/few-paths.js'
import type { AnnounceRequest, ShardReply, UnusedRequest } from '../../messages/messages.js'
import type { DiskRoom, Store } from '../../ports.js'
import { allRowsOf, rowsOf } from '../../rows.js'
import type { GroupCommit } from '../commit/commit.js'
import type { PathCounts } from '../commit/counts.js'
import { hasLost, replyAfterFailure } from '../commit/deposed.js'
import { nothing } from '../layout.js'
import { parsePathKey, pathKey, pathRange, pathsOfTenant } from '../replicate/replicated-layout.js'
import { isMarkKey } from '../tenants/deletion-layout.js'
import { refusalForRoom } from '../turn/room.js'
import type { Register } from './register.js'

export interface PathRegisterParts {
  /** The number of the register. */
  readonly number: number
  readonly store: Store
  readonly commit: Pick<GroupCommit, 'afterCommit' | 'afterFlight'>
  readonly register: Register
  /** Counts of this owner's entities. */
  readonly counts: Pick<PathCounts, 'has'>
  /** Whether this owner is the keeper of the register. */
  readonly isKeeper: () => boolean
  readonly room: DiskRoom
}

export class PathRegister {
  private readonly parts: PathRegisterParts
  private readonly tenants = new TenantPaths()
  /** Tenants about which all owners are being asked. A tenant that is announced meanwhile leaves the set. */
  private readonly asked = new Set<string>()
  /** Tenants that were found unused the last time, and were not announced since. */
  private unused = new Set<string>()

  private constructor(parts: PathRegisterParts) {
    this.parts = parts
  }

  /** Reads the paths that the store has. */
  static async read(parts: PathRegisterParts): Promise<PathRegister> {
    const paths = new PathRegister(parts)
    for await (const rows of rowsOf(parts.store, pathRange(parts.number), { parts: 'keys' }))
      for (const { key } of rows) if (!isMarkKey(key)) paths.note(key)
    return paths
  }

  /** Notes a row that the store has received. */
  note(key: Buffer): void {
    const { tenant, path } = parsePathKey(key)
    this.tenants.add(tenant, path)
  }

  /** Notes a deleted row: all rows of its tenant are deleted together. */
  leave(key: Buffer): void {
    this.tenants.delete(parsePathKey(key).tenant)
  }

  get size(): number {
    return this.tenants.size
  }

  tenantNames(): Iterable<string> {
    return this.tenants.names()
  }

  /**
   * Whether this owner may delete rows: it is the keeper, can reach all owners, and knows every tenant that has a path.
   */
  get canLeave(): boolean {
    const { register, isKeeper } = this.parts
    return isKeeper() && !this.tenants.isFull && register.obstacle() === undefined
  }

  /**
   * Deletes the rows of those tenants that `ask` finds unused, if it found them unused the last time as well, and if no
   * owner announces them meanwhile.
   */
  async leaveIfUnused(tenants: readonly string[], ask: () => Promise<readonly string[]>): Promise<void> {
    const { asked } = this
    for (const tenant of tenants) asked.add(tenant)
    try {
      const found = new Set(await ask())
      const leaving = tenants.filter(tenant => found.has(tenant) && this.unused.has(tenant))
      for (const tenant of tenants)
        if (found.has(tenant) && asked.has(tenant)) this.unused.add(tenant)
        else this.unused.delete(tenant)
      const rows: Buffer[] = []
      for (const tenant of leaving) rows.push(...(await this.rowsOfTenant(tenant)))
      if (this.canLeave) this.delete(rows.filter(key => asked.has(parsePathKey(key).tenant)))
    } finally {
      for (const tenant of tenants) asked.delete(tenant)
    }
  }

  /** The keys of a tenant's rows. */
  async rowsOfTenant(tenant: string): Promise<readonly Buffer[]> {
    const { store, number } = this.parts
    const rows = await allRowsOf(store, pathsOfTenant(number, tenant), { parts: 'keys' })
    return rows.map(({ key }) => key).filter(key => !isMarkKey(key))
  }

  /** Deletes rows of tenants of which no owner has anything. */
  delete(keys: readonly Buffer[]): void {
    for (const key of keys) {
      const { tenant } = parsePathKey(key)
      this.parts.register.write(key, undefined)
      this.tenants.delete(tenant)
      this.unused.delete(tenant)
    }
  }

  /** All paths of a tenant; undefined when they are many, or not all known. */
  few(tenant: string): ReadonlySet<string> | undefined {
    return this.tenants.few(tenant)
  }

  /** A request to the keeper. Replies when every owner has the path, or knows that its list of paths is incomplete. */
  onAnnounce({ tenant, path }: AnnounceRequest, onReply: (reply: ShardReply) => void): void {
    const { register, commit, number, room } = this.parts
    const obstacle = register.obstacle()
    if (obstacle) return onReply(obstacle)
    this.asked.delete(tenant)
    this.unused.delete(tenant)
    const key = pathKey(number, tenant, path)
    const isWanted = this.tenants.wants(tenant, path)
    const refusal = isWanted ? refusalForRoom(room, false) : undefined
    if (refusal) return onReply({ kind: 'refused', refusal })
    const carriedBy = isWanted ? register.write(key, nothing) : 0
    if (isWanted)
      commit.afterCommit(carriedBy, failure => {
        if (!failure || !hasLost(failure, number)) this.note(key)
      })
    register.afterAll(carriedBy, failure => onReply(failure ?? { kind: 'done' }))
  }

  /** A request to every owner. Waits for the commits in flight, because the counts may belong to them. */
  onUnused({ tenants }: UnusedRequest, onReply: (reply: ShardReply) => void): void {
    const { commit } = this.parts
    this.withoutEntities(tenants).then(
      found =>
        commit.afterFlight(failure =>
          onReply(failure ? replyAfterFailure(failure) : { kind: 'unused', tenants: found }),
        ),
      (error: Error) => onReply({ kind: 'failed', reason: error.message }),
    )
  }

  private async withoutEntities(tenants: readonly string[]): Promise<readonly string[]> {
    const found: string[] = []
    for (const tenant of tenants) if (!(await this.parts.counts.has(tenant))) found.push(tenant)
    return found
  }
}
