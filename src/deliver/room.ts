// How much the lanes may hold, which callers were refused because of that, and when there is room for them again.
//
// First tries and further tries have bounds of their own: the failed deliveries of a dead receiver take no room from
// new ones. Room is reported when half of what was full is free, so that a returning caller can bring more than one.
//
// Not here: which jobs are held and why they leave (lanes).

import { Fifo } from './fifo.js'
import type { Job, Lane, Pool } from './lane.js'
import type { Limits } from './limits.js'

export type AttemptKind = 'first' | 'retry'

/** Lanes whose room is reported in one turn. */
const lanesPerTurn = 64

export class Room<T> {
  readonly bytes = { first: 0, retry: 0 }
  /** Lanes that have room again, while the pool or all lanes together have none. */
  private hopes = 0
  private readonly hopeful = new Map<Pool<T>, Record<AttemptKind, Fifo<Lane<T>>>>()

  constructor(
    private readonly limits: Limits,
    /**
     * Whether receivers that do not answer leave half of a pool's queue to others: true where refusing costs nothing.
     */
    private readonly leavesHalf: boolean,
    pools: readonly Pool<T>[],
  ) {
    for (const pool of pools) this.hopeful.set(pool, { first: new Fifo(), retry: new Fifo() })
  }

  hasForFirst({ lane, bytes }: Job<T>): boolean {
    return (
      lane.waiting < this.queueMax(lane) &&
      lane.pool.waiting < lane.pool.limits.queueMax &&
      // One message always fits into an empty lane.
      (lane.waiting === 0 || lane.waitingBytes + bytes <= this.limits.laneBytesMax) &&
      this.bytes.first + bytes <= this.limits.bytesMax
    )
  }

  hasForRetry({ lane, bytes }: Job<T>): boolean {
    return (
      lane.retrying + lane.holding < this.limits.laneRetriesMax && this.bytes.retry + bytes <= this.limits.bytesMax / 2
    )
  }

  /** One always fits: it is the probe that shows whether the receiver is back. */
  hasForHeld(job: Job<T>): boolean {
    return job.lane.holding === 0 || this.hasForRetry(job)
  }

  refuse(lane: Lane<T>, kind: AttemptKind): void {
    lane.refused[kind] = true
    this.onLeft(lane)
  }

  /** A job has left the lane; true when `report` may have something to report. */
  onLeft(lane: Lane<T>): boolean {
    if (lane.refused.first) this.hope(lane, 'first')
    if (lane.refused.retry) this.hope(lane, 'retry')
    return this.hopes > 0
  }

  private hope(lane: Lane<T>, kind: AttemptKind): void {
    if (lane.hopeful[kind] || !this.hasHalf(lane, kind)) return
    lane.hopeful[kind] = true
    this.hopeful.get(lane.pool)![kind].push(lane)
    this.hopes++
  }

  private hasHalf(lane: Lane<T>, kind: AttemptKind): boolean {
    const { laneBytesMax, laneRetriesMax } = this.limits
    if (kind === 'retry') return lane.retrying + lane.holding <= laneRetriesMax / 2
    return lane.waiting <= this.queueMax(lane) / 2 && lane.waitingBytes <= laneBytesMax / 2
  }

  private queueMax({ pool, proven }: Lane<T>): number {
    const { queueMax } = pool.limits
    return Math.min(this.limits.laneQueueMax, proven || !this.leavesHalf ? queueMax : Math.ceil(queueMax / 2))
  }

  /** Reports some lanes that have room again; true when there are more. `onRoom` may fill them at once. */
  report(onRoom: (lane: Lane<T>) => void): boolean {
    let left = lanesPerTurn
    for (const [pool, hopeful] of this.hopeful)
      for (const kind of ['first', 'retry'] as const) {
        const queue = hopeful[kind]
        for (; queue.first && this.isHalfFree(pool, kind); left--) {
          if (left === 0) return true
          const lane = queue.shift()!
          this.hopes--
          lane.hopeful[kind] = false
          lane.refused[kind] = false
          onRoom(lane)
        }
      }
    return false
  }

  private isHalfFree(pool: Pool<T>, kind: AttemptKind): boolean {
    const { bytesMax } = this.limits
    if (kind === 'retry') return this.bytes.retry <= bytesMax / 4
    return pool.waiting <= pool.limits.queueMax / 2 && this.bytes.first <= bytesMax / 2
  }
}
