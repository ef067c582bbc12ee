// Removal of transient entities whose time has come (docs/interface/entities.md#expiry): silent, and soon after their
// time.
//
// The timer is an index, not an object per entity: each run walks what is due and asks the owner shard, whose turn
// looks again, so an entity that was rescued with a new date meanwhile stays. The index is consumed from the front,
// where the store has to pass all that is gone, so a run begins where nothing can be left before it (the low-water
// mark).

import { refusalText } from '../domain/refusal.js'
import { encodedExpiresMs } from '../encoded-entity.js'
import type { Shards } from '../messages/messages.js'
import type { Clock, Logger, Store } from '../ports.js'
import { rowsOf } from '../rows.js'
import type { ChangeFollower } from './commit/commit.js'
import { type ExpiryKey, expiryRange, parseExpiryKey } from './layout.js'
import type { Owned } from './replicate/ownership.js'
import type { ShardRecord } from './turn/apply.js'

const rowsPerRead = 128

/** The earliest date at which something may fall due, milliseconds since 1970. */
export class ExpiryMark implements ChangeFollower {
  fromMs = Number.NEGATIVE_INFINITY

  wants({ encoded }: ShardRecord): boolean {
    return encoded !== undefined && encodedExpiresMs(encoded) !== undefined
  }

  follow({ encoded }: ShardRecord): void {
    const dueMs = encoded && encodedExpiresMs(encoded)
    if (dueMs !== undefined) this.lower(dueMs)
  }

  /** Begins anew: other shards are ours from now on. */
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
  /** Between two runs. */
  readonly intervalMs: number
  readonly mark: ExpiryMark
  /** Whose entities are removed here. */
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

  /** No run begins any more; resolves when the one under way has ended. */
  async stop(): Promise<void> {
    this.cancel?.()
    this.cancel = undefined
    await this.running
  }

  /** Removes what is due now. */
  async run(): Promise<void> {
    const { store, clock, mark, owned } = this.parts
    const nowMs = clock.wallMs()
    const { fromMs } = mark
    // Whatever becomes durable from now on lowers the mark again.
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
