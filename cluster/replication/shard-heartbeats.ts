// Nodes that gossip cannot reach, or doubts, although the log reports their actions: they live, and the network between
// is cut.
//
// A majority of nodes that reach each other takes the shards of the others, since more clients can reach it. A node
// that reaches no more nodes than those that it only sees in the log is on the smaller side, or on one of two halves.
// It leaves these their shards as long as they are active. Otherwise both sides would take the shards from each other
// again and again, and an owner that loses one in the middle of a write refuses its changes. In any case the log
// decides ownership.
//
// A node that has just joined may own shards before gossip has reported it here. As long as the log reports its actions,
// it keeps them.

import type { ClusterClock } from '../ports.js'
import { noOwner } from './owner.js'

/** Lives of nodes that are remembered: more than there are nodes (gossip-options.ts). */
const metMax = 4_000

export class ShardHeartbeats {
  private readonly freshMs: number
  private reachable: ReadonlySet<string> = new Set()
  private count = 0
  /** Nodes that gossip has reported, by name and life; those met first are forgotten first. */
  private readonly met = new Set<string>()
  /** When the log last reported an action of a node that gossip cannot reach, by name and life. */
  private readonly seenMs = new Map<string, number>()

  /** `freshMs`: how long a report counts. */
  constructor(freshMs: number) {
    this.freshMs = freshMs
  }

  /**
   * `reachable`: nodes that gossip reaches and does not doubt; `living`: those that it believes alive. This node counts
   * in both.
   */
  setReachable(reachable: ReadonlySet<string>, living: ReadonlySet<string>): void {
    this.reachable = reachable
    this.count = living.size
    for (const owner of living) this.met.add(owner)
    for (const owner of this.met) {
      if (this.met.size <= metMax) break
      this.met.delete(owner)
    }
    for (const owner of this.seenMs.keys()) if (reachable.has(owner)) this.seenMs.delete(owner)
  }

  // [hot] For each record of a shard that is followed.
  /** The log reports something that a node has just done. The clock is read only when that counts. */
  note(owner: string, clock: Pick<ClusterClock, 'monoMs'>): void {
    if (owner !== noOwner && !this.reachable.has(owner)) this.seenMs.set(owner, clock.monoMs())
  }

  /** Whether a node that gossip believes dead, or does not know, should keep its shards. */
  spares(owner: string, nowMs: number): boolean {
    const others = this.others(nowMs)
    return this.seenMs.has(owner) && (this.count <= others || !this.met.has(owner))
  }

  /** How many nodes the log has reported lately that gossip cannot reach. */
  others(nowMs: number): number {
    for (const [seen, atMs] of this.seenMs) if (nowMs - atMs >= this.freshMs) this.seenMs.delete(seen)
    return this.seenMs.size
  }
}
