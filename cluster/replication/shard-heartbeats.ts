// Nodes that gossip does not hear, or doubts, and of which the log tells all the same: they live, and the network
// between is cut.
//
// A majority that hears each other takes their shards: it can be asked by more clients. Whoever does not hear more
// nodes than those of which the log tells is on the smaller side, or on one of two halves. It leaves them alone as long
// as they go on: else both sides would take the shards from each other again and again, and an owner that loses one in
// the middle of a write has to end. Which shards belong to whom is decided by the log in any case.

import type { ClusterClock } from '../ports.js'
import { nobody } from './owner.js'

export class ShardHeartbeats {
  private readonly freshMs: number
  private heard: ReadonlySet<string> = new Set()
  private count = 0
  /** When the log told of a node that is not heard, by what it calls itself in takeovers. */
  private readonly seenMs = new Map<string, number>()

  /** `freshMs`: how long a sign counts. */
  constructor(freshMs: number) {
    this.freshMs = freshMs
  }

  /** `heard`: whom gossip hears and does not doubt; `count`: how many it takes for living. This node counts in both. */
  setHeard(heard: ReadonlySet<string>, count: number): void {
    this.heard = heard
    this.count = count
    for (const owner of this.seenMs.keys()) if (heard.has(owner)) this.seenMs.delete(owner)
  }

  // [hot] For each record of a shard that is followed.
  /** The log tells of something that a node has just done. The clock is looked at only when that counts. */
  note(owner: string, clock: Pick<ClusterClock, 'monoMs'>): void {
    if (owner !== nobody && !this.heard.has(owner)) this.seenMs.set(owner, clock.monoMs())
  }

  /** Whether a node that gossip takes for dead, or does not know, is to be left what it owns. */
  spares(owner: string, nowMs: number): boolean {
    let others = 0
    for (const [seen, atMs] of this.seenMs)
      if (nowMs - atMs < this.freshMs) others++
      else this.seenMs.delete(seen)
    return this.seenMs.has(owner) && this.count <= others
  }
}
