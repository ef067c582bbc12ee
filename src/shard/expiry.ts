// Removal of transient entities whose time has come (entities.md §16): silent, and soon after their time.
//
// The timer is an index, not an object per entity: each run walks what is due and asks the owner shard, whose turn looks again, so an
// entity that was rescued with a new date meanwhile stays.

import type { Shards } from '../messages.js'
import type { Clock, Logger, Row, Store } from '../ports.js'
import { type ExpiryKey, expiryRange, parseExpiryKey } from './layout.js'

const rowsPerRead = 128

export class Expiry {
  private readonly store: Store
  private readonly shards: Shards
  private readonly clock: Clock
  private readonly logger: Logger
  private readonly intervalMs: number
  private cancel: (() => void) | undefined
  private running: Promise<void> | undefined

  constructor(store: Store, shards: Shards, clock: Clock, logger: Logger, intervalMs: number) {
    this.store = store
    this.shards = shards
    this.clock = clock
    this.logger = logger
    this.intervalMs = intervalMs
  }

  start(): void {
    this.cancel = this.clock.after(this.intervalMs, () => {
      this.running = this.run()
        .catch((error: Error) => this.logger.error(`Runtime Error (removing expired entities: ${error.message})`))
        .then(() => {
          if (this.cancel) this.start()
        })
    })
  }

  /** No run begins any more; resolves when the one under way has ended. */
  async stop(): Promise<void> {
    this.cancel?.()
    this.cancel = undefined
    await this.running
  }

  /** Removes what is due now. */
  async run(): Promise<void> {
    const nowMs = this.clock.wallMs()
    const cursor = this.store.cursor(expiryRange(nowMs))
    try {
      let rows: Row[]
      do {
        rows = await cursor.next(rowsPerRead)
        await Promise.all(rows.map(row => this.remove(parseExpiryKey(row.key), nowMs)))
      } while (rows.length > 0)
    } finally {
      await cursor.close()
    }
  }

  private remove({ shard, tenant, path, id, type }: ExpiryKey, nowMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const target = { tenant, path, id, type }
      this.shards.ask(shard, { kind: 'expire', target, origin: { correlatorRoot: '' }, nowMs }, reply => {
        if (reply.kind === 'failed') reject(new Error(reply.reason))
        else resolve()
      })
    })
  }
}
