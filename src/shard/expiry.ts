// Removal of expired transient entities (docs/interface/entities.md#expiry): without notifications, and soon after
// their time.
//
// The timer is an index, not an object per entity. Each run walks the entries that are due and asks the owner shard.
// The turn there checks the date again, so an entity that got a new date meanwhile stays. Entries disappear from the
// front of the index, and the store has to pass all deleted ones. So a run begins at the low-water mark, before which
// no entry can be left.

import { refusalText } from '../domain/refusal.js'
import { encodedExpiresMs } from '../encoded-entity.js'
import type { Shards } from '../messages/messages.js'
import type { Clock, Logger, Store } from '../ports.js'
import { rowsOf } from '../rows.js'
import type { ChangeFollower } from './commit/change-queue.js'
import { type ExpiryKey, expiryRange, parseExpiryKey } from './layout.js'
import type { Owned } from './replicate/ownership.js'
import type { ShardRecord } from './turn/apply.js'

const rowsPerRead = 128

/** The earliest date at which an entity may expire, milliseconds since 1970. */
export class ExpiryMark implements ChangeFollower {
  fromMs = Number.NEGATIVE_INFINITY

  wants({ encoded }: ShardRecord): boolean {
    return encoded !== undefined && encodedExpiresMs(encoded) !== undefined
  }

  follow({ encoded }: ShardRecord): void {
    const dueMs = encoded && encodedExpiresMs(encoded)
    if (dueMs !== undefined) this.lower(dueMs)
  }

  /** Forgets the mark, because this owner has other shards from now on. */
  reset(): void {
    this.fromMs = Number.NEGATIVE_INFINITY
  }

  lower(dueMs: number): void {
    this.fromMs = Math.min(this.fromMs, dueMs)
  }
}

export interface ExpiryParts {
  readonly store: Store
  readonly shards: Shards
  readonly clock: Clock
  readonly logger: Pick<Logger, 'error'>
  /** Milliseconds between two runs. */
  readonly intervalMs: number
  readonly mark: ExpiryMark
  /** The shards whose entities are removed here. */
  readonly owned?: Owned
}

export class Expiry {
  private readonly parts: ExpiryParts
  private cancel: (() => void) | undefined
  private running: Promise<void> | undefined

  constructor(parts: ExpiryParts) {
    this.parts = parts
  }

  start(): void {
    const { clock, logger, intervalMs } = this.parts
    this.cancel = clock.after(intervalMs, () => {
      this.running = this.run()
        .catch((error: Error) => logger.error(`Runtime Error (removing expired entities: ${error.message})`))
        .then(() => {
          if (this.cancel) this.start()
        })
    })
  }

  /** Prevents further runs; resolves when the present one has ended. */
  async stop(): Promise<void> {
    this.cancel?.()
    this.cancel = undefined
    await this.running
  }

  /** Removes all entities that are due now. */
  async run(): Promise<void> {
    const { store, clock, mark, owned } = this.parts
    const nowMs = clock.wallMs()
    const { fromMs } = mark
    // Each change that becomes durable from now on lowers the mark again.
    mark.fromMs = Math.max(fromMs, nowMs)
    try {
      for await (const rows of rowsOf(store, expiryRange(fromMs, nowMs), { rowsPerRead })) {
        const due = rows.map(row => parseExpiryKey(row.key)).filter(({ shard }) => !owned || owned[shard] === 1)
        await Promise.all(due.map(key => this.remove(key, nowMs)))
      }
    } catch (error) {
      mark.lower(fromMs)
      throw error
    }
  }

  private remove({ shard, tenant, path, id, type }: ExpiryKey, nowMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const target = { tenant, path, id, type }
      this.parts.shards.ask(shard, { kind: 'expire', target, origin: { correlatorRoot: '' }, nowMs }, reply => {
        if (reply.kind === 'failed') reject(new Error(reply.reason))
        else if (reply.kind === 'refused' && reply.refusal.kind === 'InsufficientStorage')
          reject(new Error(refusalText(reply.refusal)))
        else if (reply.kind === 'busy') reject(new Error('too many requests are waiting'))
        else resolve()
      })
    })
  }
}
