// Nodes that gossip cannot reach, or doubts, although the log reports their actions: they live, and the network between
// is cut.
//
// A majority of nodes that reach each other takes the shards of the others, since more clients can reach it. A node
// that reaches no more nodes than those that it only sees in the log is on the smaller side, or on one of two halves.
// It leaves these their shards as long as they are active. Otherwise both sides would take the shards from each other
// again and again, and an owner that loses one in the middle of a write refuses its changes. In any case the log
// decides ownership.

import type { ClusterClock } from '../ports.js'
import { noOwner } from './owner.js'

export class ShardHeartbeats {
  private readonly freshMs: number
  private reachable: ReadonlySet<string> = new Set()
  private count = 0
  /** When the log last reported an action of a node that gossip cannot reach, by name and life. */
  private readonly seenMs = new Map<string, number>()

  /** `freshMs`: how long a report counts. */
  constructor(freshMs: number) {
    this.freshMs = freshMs
  }

  /**
   * `reachable`: nodes that gossip reaches and does not doubt; `count`: how many it believes alive. This node counts in
   * both.
   */
  setReachable(reachable: ReadonlySet<string>, count: number): void {
    this.reachable = reachable
    this.count = count
    for (const owner of this.seenMs.keys()) if (reachable.has(owner)) this.seenMs.delete(owner)
  }

  // [hot] For each record of a shard that is followed.
  /** The log reports something that a node has just done. The clock is read only when that counts. */
  note(owner: string, clock: Pick<ClusterClock, 'monoMs'>): void {
    if (owner !== noOwner && !this.reachable.has(owner)) this.seenMs.set(owner, clock.monoMs())
  }

  /** Whether a node that gossip believes dead, or does not know, should keep its shards. */
  spares(owner: string, nowMs: number): boolean {
    let others = 0
    for (const [seen, atMs] of this.seenMs)
      if (nowMs - atMs < this.freshMs) others++
      else this.seenMs.delete(seen)
    return this.seenMs.has(owner) && this.count <= others
  }
}
