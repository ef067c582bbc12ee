// The bundles of an owner: which rows of the outbox share one, when it is deleted, and when it is taken apart.
//
// As a rule a notification ends a moment after its change, and its row is deleted. Written and deleted one by one,
// these rows cost the store more than all other rows of the changes. As a bundle, those of one commit cost it two
// operations together.
//
//   binding -> bound -> ended           all rows have ended: it is deleted
//                 |
//                 +---> overdue         time is over, or one row must go alone: the rest gets rows of its own
//
// All rows in bundles are in memory too. Bundles that a crash leaves are split before the outbox is read
// (`splitBundles`).

import type { Clock, RowSink } from '../../ports.js'
import type { GroupCommit } from '../commit/commit.js'
import { Bundle, type BundledRow } from './bundle.js'
import { outboxKey } from './notification-layout.js'
import type { TriggerEvent } from './trigger-event.js'

/**
 * The longest time for which a bundle waits until all its rows have ended. After a crash, notifications of it that have
 * ended are sent again. After this time the rows that have not ended are written once more. Most receivers answer in a
 * tenth of it.
 */
const bundledMsMax = 250
/** Bytes of the rows of a bundle; further rows of the commit make another one. */
const bundleBytesMax = 256 * 1024
/** A row of more bytes gains nothing by sharing. */
const bundledBytesMax = 16 * 1024

export class Bundles {
  private readonly commit: Pick<GroupCommit, 'awaitPiggybacked' | 'afterFlight'>
  private readonly clock: Pick<Clock, 'monoMs' | 'after'>
  /** Bundles for the commit that is being filled. */
  private binding: Bundle[] = []
  /** Bundles that the store has, in the order of writing. */
  private readonly bound = new Set<Bundle>()
  private overdue: Bundle[] = []
  private readonly ended: Bundle[] = []
  private isWatched = false
  /** Bytes of the last bundle. */
  private lastBytes = 0

  constructor(commit: Pick<GroupCommit, 'awaitPiggybacked' | 'afterFlight'>, clock: Pick<Clock, 'monoMs' | 'after'>) {
    this.commit = commit
    this.clock = clock
  }

  // [hot] Once per change that triggers notifications.
  /**
   * Adds the row of a trigger event with this head, for the commit that is being filled; false: it needs a row of its
   * own.
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

  /** Notes that one row of a bundle has ended; true: it was the last one. */
  end(bundle: Bundle): boolean {
    if (--bundle.open > 0) return false
    this.ended.push(bundle)
    this.bound.delete(bundle)
    return true
  }

  /** Takes a bundle apart with the next commit. */
  giveUp(bundle: Bundle): void {
    if (this.bound.delete(bundle)) this.overdue.push(bundle)
  }

  /** Takes all bundles apart. After that, nothing is written until one is added. */
  giveUpAll(): void {
    this.giveUpSince(Number.POSITIVE_INFINITY)
  }

  /** Writes the pending rows and deletions to a batch. */
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

  /** Waits for the bundle that becomes overdue first, with one timer for all. */
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

  /** Gives up the bundles that were written by then. */
  private giveUpSince(untilMs: number): void {
    for (const bundle of this.bound) {
      if (bundle.sinceMs > untilMs) break
      this.giveUp(bundle)
    }
    if (this.overdue.length > 0) this.commit.awaitPiggybacked()
  }

  /** Writes rows that have not ended as rows of their own. They are in memory until that is durable. */
  private takeApart(bundle: Bundle, batch: RowSink): void {
    batch.del(bundle.key)
    const left = bundle.rows.filter(({ open }) => open > 0)
    for (const row of left) {
      // A copy, so that the row does not keep the rest of the bundle in memory.
      row.value = Buffer.from(bundle.bytesOf(row))
      row.bundle = undefined
      batch.put(outboxKey(row), row.value)
    }
    this.commit.afterFlight(() => {
      for (const row of left) row.value = undefined
    })
  }
}
