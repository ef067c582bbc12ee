// Which service paths each tenant has in the whole cluster: rows of the register, which all nodes follow. So a read by id without a path knows
// where to look, and no node need be asked what it has.
//
// A path begins to exist when every node has heard of it: whoever is about to create an entity in a path announces it first, and the register's
// owner replies when all have its row. Of a tenant with many paths no more is known than that, and nothing is written of the others. Paths are
// never forgotten: one too many costs a look in vain. So tenants that are made up stay in the register until it is full (docs/operations/names.md).

import { type FewPaths, listed, withPath } from '../../domain/few-paths.js'
import type { AnnounceRequest, ShardReply } from '../../messages/messages.js'
import type { DiskRoom, Store } from '../../ports.js'
import type { GroupCommit } from '../commit/commit.js'
import { nothing } from '../layout.js'
import { ampleRoom, refusalForRoom } from '../turn/room.js'
import { parsePathKey, pathKey, pathRange } from './replicated-layout.js'

/** Tenants of which paths are known, some 120 bytes each; with more, nothing is known of any. */
export const tenantsMax = 100_000
const rowsPerRead = 1000

export class PathRegister {
  private readonly register: number
  private readonly commit: GroupCommit
  private readonly afterAll: (onDone: (failure?: ShardReply) => void) => void
  private readonly room: DiskRoom
  private readonly tenants = new Map<string, FewPaths>()

  /** `afterAll` calls back when every node has what the register's log says by now, or with what is to be replied when that is unknown. */
  constructor(
    register: number,
    commit: GroupCommit,
    afterAll: (onDone: (failure?: ShardReply) => void) => void,
    room: DiskRoom = ampleRoom,
  ) {
    this.register = register
    this.commit = commit
    this.afterAll = afterAll
    this.room = room
  }

  /** Reads what the store has. */
  async load(store: Store): Promise<void> {
    const cursor = store.cursor(pathRange(this.register), 'keys')
    try {
      for (;;) {
        const rows = await cursor.next(rowsPerRead)
        if (rows.length === 0) return
        for (const { key } of rows) this.hear(key)
      }
    } finally {
      await cursor.close()
    }
  }

  /** Takes note of a row that the store has got. */
  hear(key: Buffer): void {
    const { tenant, path } = parsePathKey(key)
    this.tenants.set(tenant, withPath(this.tenants.get(tenant), path))
  }

  /** All paths of a tenant; undefined when they are many, or not all known. */
  few(tenant: string): ReadonlySet<string> | undefined {
    if (this.tenants.size >= tenantsMax) return undefined
    const known = this.tenants.get(tenant)
    return known === undefined ? none : listed(known)
  }

  /** What is known of all tenants. */
  get all(): readonly (readonly [tenant: string, paths: readonly string[]])[] {
    return [...this.tenants].map(([tenant, paths]) => [tenant, [...(listed(paths) ?? [])]])
  }

  /** Asked of the register's owner. Replies when every node has heard of the path, or knows that it does not know all. */
  onAnnounce({ tenant, path }: AnnounceRequest, onReply: (reply: ShardReply) => void): void {
    const key = pathKey(this.register, tenant, path)
    const isWanted = this.isWanted(tenant, path)
    const refusal = isWanted ? refusalForRoom(this.room, false) : undefined
    if (refusal) return onReply({ kind: 'refused', refusal })
    const carriedBy = isWanted ? this.commit.write(key, nothing) : 0
    this.commit.afterCommit(carriedBy, failure => {
      if (failure) return onReply({ kind: 'failed', reason: failure.message })
      if (carriedBy > 0) this.hear(key)
      this.afterAll(unknown => onReply(unknown ?? { kind: 'done' }))
    })
  }

  /** Whether knowing this one as well makes a difference. */
  private isWanted(tenant: string, path: string): boolean {
    const known = this.tenants.get(tenant)
    if (known === undefined) return this.tenants.size < tenantsMax
    return known !== null && withPath(known, path) !== known
  }
}

const none: ReadonlySet<string> = new Set()
