// The outbox: rows that hold the pending notifications, each in the same commit as the change that triggers them.
//
// A row is deleted when all its notifications have ended. The deletion may wait, because a receiver knows a repeated
// notification by its id. So deletions are piggybacked on later commits, and the rows of one commit are one row for a
// moment (bundles.ts), unless shards come and go. After a start all rows are read, in the background and in order, and
// their notifications are sent again. Until that is done, notifications of later changes wait, so that receivers get
// them in order. Where shards come and go, that happens with each shard.
//
// When a try fails, the outbox writes the row again, with the failed tries and without the notifications that have
// ended. The same commit carries the counters of the subscription (progress-book.ts), so no failure counts again after
// a crash.
//
// A pending notification that is not being sent costs some 400 bytes of memory, whatever its size; the rest is in the
// store. Past `rowsMax` and `bytesMax` notifications are dropped, which is counted and logged.
//
// Not here: which subscriptions are triggered (triggers.ts), sending (deliver/).

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
 * A part that is read, gained and lost as a whole: all rows of an owner whose shards never change, or those of a shard.
 */
export interface OutboxPart {
  readonly range: Range
  /** Rows of an earlier owner have stamps up to this one, and all rows of this owner have larger ones. */
  readonly horizon: number
  rows: number
  bytes: number
  /** Whether another owner has taken it over: nothing is sent any more, and no row deleted. */
  isOver: boolean
}

/** A row that is not finished. */
export interface OutboxRow extends BundledRow {
  readonly of: OutboxPart
  /** The state of its notifications, by their ids; undefined: nothing has happened yet. */
  fates: Map<string, FailedTries | 'ended'> | undefined
}

const rowsPerRead = 200

export class Outbox implements PiggybackedWrites {
  /** Its rows are each about one shard. Where counters belong to them, these make the commit whole. */
  readonly isWhole = false
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

  /** Begins the part of a shard. */
  beginShard(shard: number, horizon: number): OutboxPart {
    const part = partOf(outboxRange(shard), horizon)
    this.shards.set(shard, part)
    return part
  }

  /**
   * Ends the part of a shard, which another owner takes over. Rows that have ended by now are still deleted with the
   * next commit.
   */
  endShard(shard: number): void {
    const part = this.of(shard)
    part.isOver = true
    this.shards.delete(shard)
    this.rowCount -= part.rows
    this.byteCount -= part.bytes
  }

  /** The part of a shard, which must belong to this owner. */
  of(shard: number): OutboxPart {
    const part = this.whole ?? this.shards.get(shard)
    assert(part, 'this owner has no outbox for the shard')
    return part
  }

  /** All parts. */
  get parts(): Iterable<OutboxPart> {
    return this.whole ? [this.whole] : this.shards.values()
  }

  get rows(): number {
    return this.rowCount
  }

  get bytes(): number {
    return this.byteCount
  }

  /** Whether another row is accepted. */
  get hasRoom(): boolean {
    return this.rowCount < this.limits.rowsMax && this.byteCount < this.limits.bytesMax
  }

  /** Whether it is so full that notifications for an unreachable receiver must make room. */
  get isCrowded(): boolean {
    return this.rowCount > this.limits.rowsMax / 2 || this.byteCount > this.limits.bytesMax / 2
  }

  // [hot] Once per change that triggers notifications.
  /** Writes a trigger event; returns its row and the number of the commit that carries it. */
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

  /**
   * Notes that a try of one notification has failed, and others follow. The commit of this tick stores that, with the
   * counters.
   */
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

  /** Notes that one notification of a row has ended. */
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
   * Makes the next commit leave nothing but pending notifications in the store. After that, nothing is written until
   * something is added.
   */
  settle(): void {
    this.bundles?.giveUpAll()
  }

  /** The trigger event of a durable row; undefined when it was deleted. */
  read(row: OutboxRow): TriggerEvent | undefined {
    const value = row.bundle?.bytesOf(row) ?? row.value ?? this.store.get(outboxKey(row))
    return value && decodeTriggerEvent(value, row)
  }

  /** Encodes one notification alone, as a row of its own. The commit of this tick takes the bundle of its row apart. */
  extract(row: OutboxRow, intent: DeliveryIntent): Buffer | undefined {
    if (row.bundle) this.bundles!.giveUp(row.bundle)
    const event = this.read(row)
    return event && encodeTriggerEvent(event, [intent])
  }

  /**
   * Reads the notifications that were pending when a part began, until `onRow` returns false. Later rows are not read.
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
