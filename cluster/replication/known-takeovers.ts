// The latest takeover of each shard that this node knows, and the owners before it that may still answer.
//
// An event or a reading of the log reports a takeover. A former owner may answer until its lease is over. If a reading
// has a takeover that no event has reported, there may have been others before it: this node does not know the names of
// their owners, so it waits for one lease as well.
//
// Not here: what follows from a takeover (holding.ts, caretaker.ts), who ought to own a shard (keepers.ts).

import type { Takeover } from '../logs/shard-log.js'
import type { ClusterClock } from '../ports.js'
import { nameOf, noOwner } from './owner.js'
import type { ReplicationOptions } from './replication-options.js'

/** How long to wait until a lease that another node may hold is over. */
export const wholeLeaseMs = ({ leaseMs, leaseMargin }: Pick<ReplicationOptions, 'leaseMs' | 'leaseMargin'>): number =>
  leaseMs * (1 + leaseMargin)

/** Adds a shard to the number of a set of shards: a sum, so that the order does not matter; exact as a number. */
const withShard = (view: number, shard: number, epoch: number): number =>
  (view + (epoch % 2 ** 30) * 1_000_003 + shard * 7919) % 2 ** 52

/** What is known of a shard at this node. */
interface HeldShard {
  readonly shard: number
  readonly epoch: number
  /** Whether a read of everything that this node has may count the shard. */
  readonly mayBeCounted: boolean
}

/**
 * The number of the set of shards for which this node answers. undefined: a read of everything that it has could count
 * others as well. That is so for a shard that another node has taken over, until it is sealed here, and for a shard
 * whose lease is over.
 */
export function viewOfServed(held: Iterable<HeldShard>, serves: (shard: number) => boolean): number | undefined {
  let view = 1
  for (const { shard, epoch, mayBeCounted } of held) {
    if (!mayBeCounted) continue
    if (!serves(shard)) return undefined
    view = withShard(view, shard, epoch)
  }
  return view
}

export class KnownTakeovers {
  private readonly clock: Pick<ClusterClock, 'monoMs'>
  private readonly leaseMs: number
  private readonly latest = new Map<number, Takeover>()
  /** Until when former owners of a shard may still answer, and until when owners that no event has named here may. */
  private readonly formerUntil = new Map<string, number>()
  private unknownUntilMs = Number.NEGATIVE_INFINITY

  constructor(clock: Pick<ClusterClock, 'monoMs'>, options: Pick<ReplicationOptions, 'leaseMs' | 'leaseMargin'>) {
    this.clock = clock
    this.leaseMs = wholeLeaseMs(options)
  }

  of(shard: number): Takeover | undefined {
    return this.latest.get(shard)
  }

  /** The epoch of a shard's latest takeover; 0: there is none. */
  epochOf(shard: number): number {
    return this.latest.get(shard)?.epoch ?? 0
  }

  /** The name of a shard's owner; undefined: it has none. */
  ownerOf(shard: number): string | undefined {
    const owner = this.latest.get(shard)?.owner
    return owner === undefined || owner === noOwner ? undefined : nameOf(owner)
  }

  /** Notes a takeover. Returns whether it is newer than the one that was known. */
  note(shard: number, takeover: Takeover): boolean {
    const known = this.latest.get(shard)
    if (known && known.epoch >= takeover.epoch) return false
    if (known) this.formerUntil.set(known.owner, this.clock.monoMs() + this.leaseMs)
    this.latest.set(shard, takeover)
    return true
  }

  /** Until now there may have been owners whose names this node does not know. */
  noteUnknownOwners(): void {
    this.unknownUntilMs = this.clock.monoMs() + this.leaseMs
  }

  /** Whether such an owner may still answer. */
  mayLackOwner(nowMs: number): boolean {
    return nowMs < this.unknownUntilMs
  }

  /** The names of present owners, and of former ones that may still answer. */
  *owners(nowMs: number): Iterable<string> {
    for (const { owner } of this.latest.values()) if (owner !== noOwner) yield nameOf(owner)
    for (const [owner, untilMs] of this.formerUntil)
      if (untilMs <= nowMs) this.formerUntil.delete(owner)
      else if (owner !== noOwner) yield nameOf(owner)
  }

  /** A number that identifies the shards below a number that a node owns, with their epochs. */
  viewOf(node: string, shards: number): number {
    let view = 1
    for (const [shard, { epoch, owner }] of this.latest)
      if (shard < shards && owner !== noOwner && nameOf(owner) === node) view = withShard(view, shard, epoch)
    return view
  }
}
