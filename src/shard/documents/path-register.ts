// Which service paths each tenant has at all owners: rows of the register, which all of them follow. So a read by id without a path knows where to
// look, and no owner need be asked what it has. An owner that is the only one has no such rows.
//
// A path begins to exist when every owner has heard of it. Before an owner creates an entity in a new path, it announces the path to the keeper of
// the register, which replies when all owners have the row. Of a tenant with many paths no more is known than that, and nothing is written of the others. Paths are
// never forgotten: one too many costs a look in vain. So tenants that are made up stay in the register until it is full (docs/operations/names.md).

import { TenantPaths } from '../../domain/few-paths.js'
import type { AnnounceRequest, ShardReply } from '../../messages/messages.js'
import type { DiskRoom, Store } from '../../ports.js'
import { rowsOf } from '../../rows.js'
import type { GroupCommit } from '../commit/commit.js'
import { nothing } from '../layout.js'
import { parsePathKey, pathKey, pathRange } from '../replicate/replicated-layout.js'
import { ampleRoom, refusalForRoom } from '../turn/room.js'
import type { Register } from './register.js'

const rowsPerRead = 1000

export class PathRegister {
  private readonly number: number
  private readonly commit: Pick<GroupCommit, 'afterCommit'>
  private readonly register: Register
  private readonly room: DiskRoom
  private readonly tenants = new TenantPaths()

  /** `number`: that of the register. */
  constructor(
    number: number,
    commit: Pick<GroupCommit, 'afterCommit'>,
    register: Register,
    room: DiskRoom = ampleRoom,
  ) {
    this.number = number
    this.commit = commit
    this.register = register
    this.room = room
  }

  /** Reads what the store has. */
  async load(store: Store): Promise<void> {
    for await (const rows of rowsOf(store, pathRange(this.number), { rowsPerRead, parts: 'keys' }))
      for (const { key } of rows) this.hear(key)
  }

  /** Takes note of a row that the store has got. */
  hear(key: Buffer): void {
    const { tenant, path } = parsePathKey(key)
    this.tenants.add(tenant, path)
  }

  /** All paths of a tenant; undefined when they are many, or not all known. */
  few(tenant: string): ReadonlySet<string> | undefined {
    return this.tenants.few(tenant)
  }

  /** Asked of the keeper. Replies when every owner has heard of the path, or knows that it does not know all. */
  onAnnounce({ tenant, path }: AnnounceRequest, onReply: (reply: ShardReply) => void): void {
    const obstacle = this.register.obstacle()
    if (obstacle) return onReply(obstacle)
    const key = pathKey(this.number, tenant, path)
    const isWanted = this.tenants.wants(tenant, path)
    const refusal = isWanted ? refusalForRoom(this.room, false) : undefined
    if (refusal) return onReply({ kind: 'refused', refusal })
    const carriedBy = isWanted ? this.register.write(key, nothing) : 0
    this.commit.afterCommit(carriedBy, failure => {
      if (failure) return onReply({ kind: 'failed', reason: failure.message })
      if (carriedBy > 0) this.hear(key)
      this.register.afterAll(unknown => onReply(unknown ?? { kind: 'done' }))
    })
  }
}
