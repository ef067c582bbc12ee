// The bundles of an owner: which rows of the outbox share one, when it goes, and when it is taken apart.
//
// As a rule a notification has ended a moment after its change, and its row goes again. Written and deleted one by one
// these rows cost the store more than all else of the changes; those of one commit cost it two operations together.
//
//   binding -> bound -> ended           all rows have ended: it is deleted
//                 |
//                 +---> overdue         a while has passed, or one row must go alone: what has not ended gets a place of its own
//
// All that has no place of its own is in memory. What a crash leaves is split before anybody reads the outbox
// (`splitBundles`).

import type { Clock, RowSink } from '../../ports.js'
import type { GroupCommit } from '../commit/commit.js'
import { Bundle, type BundledRow } from './bundle.js'
import { outboxKey } from './notification-layout.js'
import type { TriggerEvent } from './trigger-event.js'

/**
 * How long a bundle may wait for all of it to end. After a crash what has ended meanwhile is sent again; beyond, what
 * has not ended is written once more. Most receivers answer in a tenth of it.
 */
const bundledMsMax = 250
/** Bytes of the rows of a bundle; further rows of the commit make another one. */
const bundleBytesMax = 256 * 1024
/** A row of more bytes gains nothing by sharing. */
const bundledBytesMax = 16 * 1024

export class Bundles {
  private readonly commit: Pick<GroupCommit, 'awaitPiggybacked' | 'afterFlight'>
  private readonly clock: Pick<Clock, 'monoMs' | 'after'>
  /** What the commit that is being filled takes. */
  private binding: Bundle[] = []
  /** What the store has, in the order in which it was written. */
  private readonly bound = new Set<Bundle>()
  private overdue: Bundle[] = []
  private readonly ended: Bundle[] = []
  private isWatched = false
  /** Of the last one. */
  private lastBytes = 0

  constructor(commit: Pick<GroupCommit, 'awaitPiggybacked' | 'afterFlight'>, clock: Pick<Clock, 'monoMs' | 'after'>) {
    this.commit = commit
    this.clock = clock
  }

  // [hot] Once per change that triggers notifications.
  /**
   * Takes the row of a trigger event with this head for the commit that is being filled; false: it is to have a place
   * of its own.
   */
  take(row: BundledRow, head: string, event: TriggerEvent): boolean {
    if (row.bytes > bundledBytesMax) return false
    let bundle = this.binding.at(-1)
    if (!bundle || bundle.value.length + row.bytes > bundleBytesMax) {
      bundle = new Bundle(Math.max(row.bytes, this.lastBytes))
      this.binding.push(bundle)
    }
    bundle.add(row, head, event)
    return true
  }

  /** One row of a bundle has ended; true: it was the last one. */
  end(bundle: Bundle): boolean {
    if (--bundle.open > 0) return false
    this.ended.push(bundle)
    this.bound.delete(bundle)
    return true
  }

  /** Has a bundle taken apart with the next commit. */
  giveUp(bundle: Bundle): void {
    if (this.bound.delete(bundle)) this.overdue.push(bundle)
  }

  /** Has all of them taken apart; until one is added nothing is written after that. */
  giveUpAll(): void {
    this.giveUpSince(Number.POSITIVE_INFINITY)
  }

  /** Puts into a batch what there is to write and to delete. */
  writeTo(batch: RowSink): void {
    for (const bundle of this.overdue) this.takeApart(bundle, batch)
    this.overdue = []
    for (const bundle of this.ended) batch.del(bundle.key)
    this.ended.length = 0
    for (const bundle of this.binding) this.bind(bundle, batch)
    this.binding = []
  }

  private bind(bundle: Bundle, batch: RowSink): void {
    this.lastBytes = bundle.value.length
    const [first, second] = bundle.rows
    if (!second) {
      first!.bundle = undefined
      return batch.put(outboxKey(first!), bundle.bytesOf(first!))
    }
    bundle.sinceMs = this.clock.monoMs()
    this.bound.add(bundle)
    batch.put(bundle.key, bundle.value)
    this.watch()
  }

  /** Looks after what waits too long, with one timer for all. */
  private watch(): void {
    const [oldest] = this.bound
    if (this.isWatched || !oldest) return
    this.isWatched = true
    this.clock.after(oldest.sinceMs + bundledMsMax - this.clock.monoMs(), () => {
      this.isWatched = false
      this.giveUpSince(this.clock.monoMs() - bundledMsMax)
      this.watch()
    })
  }

  /** Those that were written by then. */
  private giveUpSince(untilMs: number): void {
    for (const bundle of this.bound) {
      if (bundle.sinceMs > untilMs) break
      this.giveUp(bundle)
    }
    if (this.overdue.length > 0) this.commit.awaitPiggybacked()
  }

  /** Gives what has not ended a place of its own. Until that is durable it is in memory. */
  private takeApart(bundle: Bundle, batch: RowSink): void {
    batch.del(bundle.key)
    const left = bundle.rows.filter(({ open }) => open > 0)
    for (const row of left) {
      // The rest of the bundle need not stay for it.
      row.value = Buffer.from(bundle.bytesOf(row))
      row.bundle = undefined
      batch.put(outboxKey(row), row.value)
    }
    this.commit.afterFlight(() => {
      for (const row of left) row.value = undefined
    })
  }
}
