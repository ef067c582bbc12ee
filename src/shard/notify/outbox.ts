// The outbox: rows that hold the pending notifications, each in the same commit as the change that triggers them.
//
// A row goes when all its notifications have ended. That is not urgent, for whoever is told twice knows it by the id:
// so deletions ride along with later commits, and rows of one commit are one row for a moment (bundles.ts), unless
// shards come and go. After a start all rows are read, in the background and in order, and their notifications are sent
// again; until that is done, those of later changes wait, so that no receiver hears of them before. Where shards come
// and go, so it is with each of them.
//
// When a try fails, the outbox writes the row again, with the failed tries and without the notifications that have
// ended. The same commit carries the counters of the subscription (progress-book.ts), so no failure counts again after
// a crash.
//
// A pending notification that is not being sent costs some 400 bytes of memory, whatever its size; the rest is in the
// store. Bounded by `rowsMax` and `bytesMax`: past these nothing more is taken, which is counted and told.
//
// Not here: which subscriptions are triggered (triggers.ts), who sends (deliver/).

import assert from 'node:assert/strict'
import type { Clock, Range, RowSink, Store } from '../../ports.js'
import { readRow, rowsOf } from '../../rows.js'
import type { GroupCommit, PiggybackedWrites } from '../commit/commit.js'
import type { BundledRow } from './bundle.js'
import { Bundles } from './bundles.js'
import { allOutbox, outboxKey, outboxRange, parseOutboxKey } from './notification-layout.js'
import {
  type DeliveryIntent,
  decodeTriggerEvent,
  encodeTriggerEvent,
  type FailedTries,
  headText,
  rowBytes,
  rowOf,
  type TriggerEvent,
} from './trigger-event.js'

export interface OutboxLimits {
  /** Changes whose notifications have not all ended. Raising it lets receivers stay away for longer. */
  readonly rowsMax: number
  /** Bytes of their rows in the store. */
  readonly bytesMax: number
}

export const outboxLimitsDefault: OutboxLimits = { rowsMax: 500_000, bytesMax: 2 * 1024 * 1024 * 1024 }

/**
 * What is read at once, and comes or goes as a whole: all rows of an owner that is always the same, or those of a
 * shard.
 */
export interface OutboxPart {
  readonly range: Range
  /** No row that an earlier owner has left has a stamp above it, and every row of this one has. */
  readonly horizon: number
  rows: number
  bytes: number
  /** Whether another owner sees to it from now on: nothing is sent any more, and no row deleted. */
  isOver: boolean
}

/** A row that is not finished. */
export interface OutboxRow extends BundledRow {
  readonly of: OutboxPart
  /** What has become of its notifications, by their ids; undefined: nothing yet. */
  fates: Map<string, FailedTries | 'ended'> | undefined
}

const rowsPerRead = 200

export class Outbox implements PiggybackedWrites {
  private readonly store: Store
  private readonly commit: GroupCommit
  private readonly limits: OutboxLimits
  private readonly whole: OutboxPart | undefined
  private readonly shards = new Map<number, OutboxPart>()
  /** undefined: shards come and go, and rows with them. */
  private readonly bundles: Bundles | undefined
  private readonly ended: OutboxRow[] = []
  /** Rows that are to be written again. */
  private readonly noted = new Set<OutboxRow>()
  private rowCount = 0
  private byteCount = 0

  /** `horizon` as in `OutboxPart`; undefined: shards come and go. */
  constructor(
    store: Store,
    commit: GroupCommit,
    limits: OutboxLimits,
    horizon: number | undefined,
    clock: Pick<Clock, 'monoMs' | 'after'>,
  ) {
    this.store = store
    this.commit = commit
    this.limits = limits
    this.whole = horizon === undefined ? undefined : partOf(allOutbox(), horizon)
    this.bundles = this.whole && new Bundles(commit, clock)
    commit.carry(this)
  }

  /** Sees to the rows of a shard from now on. */
  beginShard(shard: number, horizon: number): OutboxPart {
    const part = partOf(outboxRange(shard), horizon)
    this.shards.set(shard, part)
    return part
  }

  /**
   * Another owner sees to the rows of a shard from now on. What has ended by now is still deleted with the next commit.
   */
  endShard(shard: number): void {
    const part = this.of(shard)
    part.isOver = true
    this.shards.delete(shard)
    this.rowCount -= part.rows
    this.byteCount -= part.bytes
  }

  /** The part that a shard, which is this owner's, belongs to. */
  of(shard: number): OutboxPart {
    const part = this.whole ?? this.shards.get(shard)
    assert(part, 'the outbox of a shard of this owner')
    return part
  }

  /** All there is. */
  get parts(): Iterable<OutboxPart> {
    return this.whole ? [this.whole] : this.shards.values()
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

  /** Whether it is so full that what waits for a receiver that is away must make room. */
  get isCrowded(): boolean {
    return this.rowCount > this.limits.rowsMax / 2 || this.byteCount > this.limits.bytesMax / 2
  }

  // [hot] Once per change that triggers notifications.
  /** Writes a trigger event; gives its row and the number of the commit that carries it. */
  add(event: TriggerEvent): { readonly row: OutboxRow; readonly commit: number } {
    const { shard, stamp, intents } = event
    const head = headText(event)
    const bytes = rowBytes(head, event)
    const row = this.keep(this.of(shard), shard, stamp, bytes, intents.length)
    if (this.bundles?.take(row, head, event)) return { row, commit: this.commit.commitSoon() }
    return { row, commit: this.commit.write(outboxKey(row), rowOf(head, event)) }
  }

  private keep(of: OutboxPart, shard: number, stamp: number, bytes: number, open: number): OutboxRow {
    of.rows++
    of.bytes += bytes
    this.rowCount++
    this.byteCount += bytes
    return { of, shard, stamp, bytes, open, bundle: undefined, begin: 0, value: undefined, fates: undefined }
  }

  /** A try of one notification has failed, and others follow. The commit of this tick keeps it, with the counters. */
  note(row: OutboxRow, id: string, failed: FailedTries): void {
    row.fates ??= new Map()
    row.fates.set(id, failed)
    if (row.bundle) this.bundles!.giveUp(row.bundle)
    this.writeAgain(row)
  }

  private writeAgain(row: OutboxRow): void {
    this.noted.add(row)
    this.commit.awaitPiggybacked()
  }

  /** One notification of a row has ended. */
  end(row: OutboxRow, id: string): void {
    row.open--
    if (row.open > 0) {
      row.fates ??= new Map()
      row.fates.set(id, 'ended')
      if (hasFailed(row)) this.writeAgain(row)
      return
    }
    this.noted.delete(row)
    row.of.rows--
    row.of.bytes -= row.bytes
    this.rowCount--
    this.byteCount -= row.bytes
    if (!row.bundle) this.ended.push(row)
    else if (!this.bundles!.end(row.bundle)) return
    this.commit.awaitPiggybacked()
  }

  writeTo(batch: RowSink): void {
    for (const row of this.ended) batch.del(outboxKey(row))
    this.ended.length = 0
    this.bundles?.writeTo(batch)
    for (const row of this.noted) {
      const event = this.read(row)
      if (event) batch.put(outboxKey(row), encodeTriggerEvent(event, leftOf(event, row)))
    }
    this.noted.clear()
  }

  /**
   * Has the next commit leave nothing in the store but pending notifications; until something is added nothing is
   * written after that.
   */
  settle(): void {
    this.bundles?.giveUpAll()
  }

  /** What a durable row says; undefined when it has gone. */
  read(row: OutboxRow): TriggerEvent | undefined {
    const value = row.bundle?.bytesOf(row) ?? row.value ?? this.store.get(outboxKey(row))
    return value && decodeTriggerEvent(value, row)
  }

  /**
   * One notification alone, as a row of its own. What its row is bundled with leaves the bundle in the commit of this
   * tick.
   */
  extract(row: OutboxRow, intent: DeliveryIntent): Buffer | undefined {
    if (row.bundle) this.bundles!.giveUp(row.bundle)
    const event = this.read(row)
    return event && encodeTriggerEvent(event, [intent])
  }

  /**
   * Reads what was pending when a part began, until `onRow` says that it is enough; what was added since is not read.
   */
  async load(part: OutboxPart, onRow: (row: OutboxRow, event: TriggerEvent) => boolean): Promise<void> {
    for await (const rows of rowsOf(this.store, part.range, { rowsPerRead }))
      for (const { key, value } of rows) {
        const { shard, stamp } = parseOutboxKey(key)
        if (part.isOver) return
        if (stamp > part.horizon) continue
        const event = readRow(key, () => decodeTriggerEvent(value, { shard, stamp }))
        if (!onRow(this.keep(part, shard, stamp, value.length, event.intents.length), event)) return
      }
  }
}

const hasFailed = ({ fates }: OutboxRow): boolean => [...(fates?.values() ?? [])].some(fate => fate !== 'ended')

/** The notifications of a row that have not ended, with their failed tries. */
const leftOf = ({ intents }: TriggerEvent, { fates }: OutboxRow): DeliveryIntent[] =>
  intents.flatMap(intent => {
    const fate = fates?.get(intent.id)
    if (fate === 'ended') return []
    return fate ? { ...intent, failed: fate } : intent
  })

const partOf = (range: Range, horizon: number): OutboxPart => ({ range, horizon, rows: 0, bytes: 0, isOver: false })
