// The outbox: rows that say which notifications are owed, each in the same commit as the change that owes them.
//
// A row goes when all its notifications have ended. That is not urgent, for whoever is told twice knows it by the id: so deletions ride
// along with later commits. After a start all rows are read, in the background and in order, and what they owe is sent again; until that
// is done, what changes fire meanwhile stands behind, so that nobody hears of them before.
//
// What is owed and not being sent costs some 400 bytes of memory, whatever its size; the rest is in the store. Bounded by `rowsMax` and
// `bytesMax`: past these nothing more is taken, which is counted and told.
//
// Not here: which subscriptions fire (triggers.ts), who sends (notifier/).

import type { Batch, Row, Store } from '../../ports.js'
import type { GroupCommit, Rider } from '../commit.js'
import { allOutbox, outboxKey, parseOutboxKey } from '../notification-layout.js'
import { decodeFiring, encodeFiring, type FiredEntry, type Firing } from './firing.js'

export interface OutboxLimits {
  /** Changes whose notifications have not all ended. Raising it lets receivers stay away for longer. */
  readonly rowsMax: number
  /** Bytes of their rows in the store. */
  readonly bytesMax: number
}

export const outboxLimitsDefault: OutboxLimits = { rowsMax: 500_000, bytesMax: 2 * 1024 * 1024 * 1024 }

/** A row that is not finished. */
export interface OutboxRow {
  readonly shard: number
  readonly stamp: number
  readonly bytes: number
  /** Notifications that have not ended. */
  open: number
}

const rowsPerRead = 200

export class Outbox implements Rider {
  private readonly store: Store
  private readonly commit: GroupCommit
  private readonly limits: OutboxLimits
  private readonly horizon: number
  private readonly ended: OutboxRow[] = []
  private rowCount = 0
  private byteCount = 0

  /** `horizon`: no row that an earlier process has left has a stamp above it, and every row of this one has. */
  constructor(store: Store, commit: GroupCommit, limits: OutboxLimits, horizon: number) {
    this.store = store
    this.commit = commit
    this.limits = limits
    this.horizon = horizon
    commit.carry(this)
  }

  get rows(): number {
    return this.rowCount
  }

  get bytes(): number {
    return this.byteCount
  }

  /** Whether another row is taken. */
  get hasRoom(): boolean {
    return this.rowCount < this.limits.rowsMax && this.byteCount < this.limits.bytesMax
  }

  // [hot] Once per change that fires.
  /** Writes a firing; gives its row and the number of the commit that carries it. */
  add(firing: Firing): { readonly row: OutboxRow; readonly commit: number } {
    const value = encodeFiring(firing)
    const row = this.keep(firing.shard, firing.stamp, value.length, firing.entries.length)
    return { row, commit: this.commit.write(outboxKey(row), value) }
  }

  private keep(shard: number, stamp: number, bytes: number, open: number): OutboxRow {
    this.rowCount++
    this.byteCount += bytes
    return { shard, stamp, bytes, open }
  }

  /** One notification of a row has ended. */
  end(row: OutboxRow): void {
    row.open--
    if (row.open > 0) return
    this.ended.push(row)
    this.rowCount--
    this.byteCount -= row.bytes
    this.commit.awaitRiders()
  }

  board(batch: Pick<Batch, 'put' | 'del'>): void {
    for (const row of this.ended) batch.del(outboxKey(row))
    this.ended.length = 0
  }

  /** What a durable row says; undefined when it has gone. */
  read({ shard, stamp }: Pick<OutboxRow, 'shard' | 'stamp'>): Firing | undefined {
    const value = this.store.get(outboxKey({ shard, stamp }))
    return value && decodeFiring(value, { shard, stamp })
  }

  /** One notification alone, as a row of its own. */
  extract(row: OutboxRow, entry: FiredEntry): Buffer | undefined {
    const firing = this.read(row)
    return firing && encodeFiring(firing, [entry])
  }

  /** Reads what was owed when the process began, until `onRow` says that it is enough; what was added since is not read. */
  async load(onRow: (row: OutboxRow, firing: Firing) => boolean): Promise<void> {
    const cursor = this.store.cursor(allOutbox())
    try {
      for (;;) {
        const rows: Row[] = await cursor.next(rowsPerRead)
        if (rows.length === 0) return
        for (const { key, value } of rows) {
          const { shard, stamp } = parseOutboxKey(key)
          if (stamp > this.horizon) continue
          const firing = decodeFiring(value, { shard, stamp })
          if (!onRow(this.keep(shard, stamp, value.length, firing.entries.length), firing)) return
        }
      }
    } finally {
      await cursor.close()
    }
  }
}
