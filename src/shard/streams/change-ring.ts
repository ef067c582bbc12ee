// The ring of an owner: its latest durable changes, for readers of streams that come back
// (docs/interface/live.md#resuming).
//
// A change gets a position, which counts up by one, and a tick, which grows with the clock. The oldest changes go when
// the ring has too many bytes, or when they are too old. For each tenant the ring knows from which tick on it has all
// changes.
//
// The ring keeps changes of a tenant only while the tenant has streams, and for a while afterwards. So brokers without
// streams pay nothing.

import type { Alteration } from '../../domain/entities/update.js'
import { stampAfter, stampOf } from '../../domain/stamp.js'
import type { EventClass } from '../../domain/subscriptions/event.js'
import type { Clock } from '../../ports.js'
import type { OwnedFilter } from './holder-filters.js'

/** A durable change. */
export interface RingChange {
  readonly shard: number
  readonly stamp: number
  readonly tenant: string
  readonly path: string
  readonly class: EventClass
  readonly alterations: readonly Alteration[]
  readonly correlator: string
  /** Of a deletion, the last state. */
  readonly encoded: Buffer
  readonly encodedBefore: Buffer | undefined
  /** The filters that found it in its turn, and those that its entity left. */
  readonly found: readonly OwnedFilter[]
  readonly left: readonly OwnedFilter[]
  /** Patterns have used up the work of the event: filters that were not tested may have found it as well. */
  readonly isIncomplete: boolean
}

export interface RingEntry extends RingChange {
  readonly tick: number
}

interface Kept extends RingEntry {
  readonly atMs: number
  readonly bytes: number
}

/** Of one tenant: all changes with a tick above `since` are in the ring. */
interface Coverage {
  since: number
  /** `evicted`: older changes were in the ring. `begun`: it began to keep changes of the tenant there. */
  reason: 'begun' | 'evicted'
}

export interface RingLimits {
  /** Memory of all changes together (`-streamBuffer`). */
  readonly bytesMax: number
  readonly ageMsMax: number
}

/** The age up to which changes are kept. */
export const ringAgeMsMax = 600_000

/**
 * With several owners, cursors begin with the earliest ring that keeps the changes of a tenant, and may so be older
 * than the others. Cursors from before all of them do not exist: a ring forgets a tenant only when it had no reader for
 * longer.
 */
const earlierMs = 300_000

/** Besides its encoded entities, an entry takes about this many bytes, and as many for each alteration. */
const entryBytes = 400
const alterationBytes = 100

export class ChangeRing {
  /** Entries from `first` on, in the order of their positions; those before `head` have gone. */
  private entries: Kept[] = []
  private head = 0
  /** The position of the last entry that has gone; positions begin at 1. */
  private gone = 0
  private bytesKept = 0
  private lastTick = 0
  private readonly coverages = new Map<string, Coverage>()

  constructor(
    private readonly clock: Pick<Clock, 'wallMs' | 'monoMs'>,
    private readonly limits: RingLimits,
  ) {}

  get bytes(): number {
    return this.bytesKept
  }

  /** The age of the oldest change; 0 when there is none. */
  get ageMs(): number {
    const oldest = this.entries[this.head]
    return oldest ? this.clock.monoMs() - oldest.atMs : 0
  }

  /** The position of the latest change. */
  get position(): number {
    return this.gone + this.entries.length - this.head
  }

  /** A tick such that all changes up to it are in the ring or have gone, and all later ones have a greater tick. */
  tick(): number {
    this.lastTick = stampAfter(this.lastTick, this.clock.wallMs())
    return this.lastTick
  }

  /** Begins to keep the changes of a tenant. */
  cover(tenant: string): void {
    const since = this.tick() - stampOf(earlierMs)
    if (!this.coverages.has(tenant)) this.coverages.set(tenant, { since, reason: 'begun' })
  }

  /** Keeps no more changes of a tenant. Those in the ring go in their time. */
  uncover(tenant: string): void {
    this.coverages.delete(tenant)
  }

  covers(tenant: string): boolean {
    return this.coverages.has(tenant)
  }

  /** Why changes of a tenant behind a tick may be missing; undefined: all are there. */
  missing(tenant: string, sinceTick: number): Coverage['reason'] | undefined {
    const coverage = this.coverages.get(tenant)
    if (!coverage) return 'begun'
    return sinceTick < coverage.since ? coverage.reason : undefined
  }

  // [hot] Once per durable change of a tenant with streams.
  append(change: RingChange): void {
    const nowMs = this.clock.monoMs()
    const bytes =
      entryBytes +
      change.encoded.length +
      (change.encodedBefore?.length ?? 0) +
      change.alterations.length * alterationBytes
    // Copying the members by a spread takes 9 us, several times as long as all the rest of this method.
    this.entries.push({
      shard: change.shard,
      stamp: change.stamp,
      tenant: change.tenant,
      path: change.path,
      class: change.class,
      alterations: change.alterations,
      correlator: change.correlator,
      encoded: change.encoded,
      encodedBefore: change.encodedBefore,
      found: change.found,
      left: change.left,
      isIncomplete: change.isIncomplete,
      tick: this.tick(),
      atMs: nowMs,
      bytes,
    })
    this.bytesKept += bytes
    this.shrink(nowMs)
  }

  /** Drops what is too old. Call it from time to time. */
  sweep(): void {
    this.shrink(this.clock.monoMs())
  }

  /** The entry at a position; undefined: it has gone, or has not come. */
  at(position: number): RingEntry | undefined {
    return position <= this.gone ? undefined : this.entries[this.head + position - this.gone - 1]
  }

  /** The position of the latest change that has gone. */
  get lastGone(): number {
    return this.gone
  }

  private shrink(nowMs: number): void {
    const { bytesMax, ageMsMax } = this.limits
    for (;;) {
      const oldest = this.entries[this.head]
      if (!oldest || (this.bytesKept <= bytesMax && nowMs - oldest.atMs <= ageMsMax)) break
      const coverage = this.coverages.get(oldest.tenant)
      if (coverage) Object.assign(coverage, { since: Math.max(coverage.since, oldest.tick), reason: 'evicted' })
      this.bytesKept -= oldest.bytes
      this.entries[this.head++] = undefined as unknown as Kept
      this.gone++
    }
    if (this.head > 1024 && this.head > this.entries.length / 2) {
      this.entries = this.entries.slice(this.head)
      this.head = 0
    }
  }
}
