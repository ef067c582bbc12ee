// One receiver: what waits for it, in which order, and what is being sent to it.
//
//   offer -> waiting -> (its entity is free) ------------------> send -> ended
//                  \--> parked, while an earlier one of the same subscription and entity is being sent --> ready --/
//   ended, failed -> retries[number of failed tries] -> (due) -> send
//
// The order of a subscription and an entity is kept on first tries, and there only: what is tried again is overtaken.
// Each queue of retries is in the order of failing. Who stands in front may be due a little later, by the spread of the delays.
//
// Not here: whether something may be sent (lanes), sockets (the senders).

import assert from 'node:assert/strict'
import type { Address } from './address.js'
import { type Breaker, closedBreaker } from './breaker.js'
import type { Delivery } from './delivery.js'
import { Fifo } from './fifo.js'
import { type PoolLimits, retrySendsMax, unprovenSendsMax } from './limits.js'
import { triesMax } from './retry.js'

/** A delivery on its way through a lane. */
export interface Job {
  readonly delivery: Delivery
  readonly lane: Lane
  /** For the request line. */
  readonly path: string
  readonly bytes: number
  /** Its subscription and entity. */
  readonly order: string
  /** Failed tries. */
  tries: number
  /** Monotonic: since when it waits, and when it is tried again. */
  sinceMs: number
  dueMs: number
  isProbe: boolean
}

/** Some tenants, what they share, and who wants some of it. */
export class Pool {
  readonly retrySendsMax: number
  readonly unprovenSendsMax: number
  waiting = 0
  sending = 0
  /** Of `sending`, those to receivers that have not answered the last time. */
  sendingUnproven = 0
  resending = 0
  /** Lanes that could send if there were room, each at most once, first come first served. */
  readonly turns = { proven: new Fifo<Lane>(), unproven: new Fifo<Lane>(), retries: new Fifo<Lane>() }
  readonly counters = { in: 0, out: 0, reject: 0, timeInQueueMs: 0 }

  constructor(readonly limits: PoolLimits) {
    this.retrySendsMax = retrySendsMax(limits.sendsMax)
    this.unprovenSendsMax = unprovenSendsMax(limits.sendsMax)
  }

  /** Whether one more first try may go out to a receiver of that kind. */
  hasRoomFor(lane: Lane): boolean {
    return this.sending < this.limits.sendsMax && (lane.proven || this.sendingUnproven < this.unprovenSendsMax)
  }

  /** Takes the lane whose turn it is to send a first try, while there is room for one. */
  takeTurn(): Lane | undefined {
    const { proven, unproven } = this.turns
    while (this.sending < this.limits.sendsMax) {
      const isOpen = this.sendingUnproven < this.unprovenSendsMax
      const lane = (isOpen ? unproven.shift() : undefined) ?? proven.shift()
      if (!lane) return undefined
      lane.queued.sends = false
      if (this.hasRoomFor(lane)) return lane
      lane.queue()
    }
    return undefined
  }

  /** Takes the lane whose turn it is to send a further try, while there is room for one. */
  takeRetryTurn(): Lane | undefined {
    if (this.resending >= this.retrySendsMax) return undefined
    const lane = this.turns.retries.shift()
    if (lane) lane.queued.retries = false
    return lane
  }
}

export class Lane {
  readonly breaker: Breaker = closedBreaker()
  /** It has answered the last time. */
  proven = false
  /** The last failure, for what is held back because of it. */
  reason = ''
  sending = 0
  resending = 0
  /** First tries that wait, parked ones included, and their bytes. */
  waiting = 0
  waitingBytes = 0
  retrying = 0
  /** Further tries that were due by then are taken for failed along with the probe that failed. */
  fateMs = Number.NEGATIVE_INFINITY
  /** It stands in a queue of its pool, or of those whose deliveries are held back. */
  readonly queued = { sends: false, retries: false, held: false }
  /** Somebody was told that there is no room; it is to be told that there is some again (room). */
  readonly refused = { first: false, retry: false }
  readonly hopeful = { first: false, retry: false }
  /** For who keeps the time. */
  wakeAtMs = Number.POSITIVE_INFINITY
  cancelWake: (() => void) | undefined

  private readonly arrived = new Fifo<Job>()
  private readonly ready = new Fifo<Job>()
  /** What is being sent, and what is parked behind it; undefined: nothing yet. */
  private readonly busy = new Map<string, Fifo<Job> | undefined>()
  private readonly retries = Array.from({ length: triesMax - 1 }, () => new Fifo<Job>())

  constructor(
    /** Its key among the lanes: the receiver, and the tenant if that has a pool of its own. */
    readonly name: string,
    readonly address: Address,
    readonly pool: Pool,
  ) {}

  /** Waits for its turn to send a first try. */
  queue(): void {
    if (this.queued.sends) return
    this.queued.sends = true
    this.pool.turns[this.proven ? 'proven' : 'unproven'].push(this)
  }

  /** Waits for its turn to send a further try. */
  queueRetries(): void {
    if (this.queued.retries) return
    this.queued.retries = true
    this.pool.turns.retries.push(this)
  }

  get isIdle(): boolean {
    return this.waiting === 0 && this.sending === 0 && this.resending === 0 && this.retrying === 0
  }

  push(job: Job): void {
    this.arrived.push(job)
    this.waiting++
    this.waitingBytes += job.bytes
    this.pool.waiting++
  }

  /** Something may wait that is not parked. */
  get hasReady(): boolean {
    return this.ready.size + this.arrived.size > 0
  }

  // [hot] Once per notification.
  /** Takes the next first try whose turn it is; its subscription and entity are busy until `release`. */
  takeReady(): Job | undefined {
    const job = this.ready.shift() ?? this.takeArrived()
    if (!job) return undefined
    this.waiting--
    this.waitingBytes -= job.bytes
    this.pool.waiting--
    return job
  }

  private takeArrived(): Job | undefined {
    for (let job = this.arrived.shift(); job; job = this.arrived.shift()) {
      const parked = this.busy.get(job.order)
      if (parked) parked.push(job)
      else if (this.busy.has(job.order)) this.busy.set(job.order, fifoOf(job))
      else {
        this.busy.set(job.order, undefined)
        return job
      }
    }
    return undefined
  }

  /** The first try of `order` is over: the next one of it is ready. */
  release(order: string): void {
    assert(this.busy.has(order), 'only what was taken is released')
    const next = this.busy.get(order)?.shift()
    if (next) this.ready.push(next)
    else this.busy.delete(order)
  }

  pushRetry(job: Job): void {
    this.retries[job.tries - 1]!.push(job)
    this.retrying++
  }

  /** Takes a further try that is due. */
  takeRetry(nowMs: number): Job | undefined {
    const queue = this.earliest()
    if (!queue || queue.first!.dueMs > nowMs) return undefined
    this.retrying--
    return queue.shift()
  }

  /** When the next further try is due. */
  get retryDueMs(): number {
    return this.retrying === 0 ? Number.POSITIVE_INFINITY : this.earliest()!.first!.dueMs
  }

  private earliest(): Fifo<Job> | undefined {
    if (this.retrying === 0) return undefined
    let earliest: Fifo<Job> | undefined
    for (const queue of this.retries)
      if (queue.first && (!earliest || queue.first.dueMs < earliest.first!.dueMs)) earliest = queue
    return earliest
  }

  /** Forgets everything that is not being sent; gives the bytes of what it forgot. */
  clear(): { first: number; retry: number } {
    const bytes = { first: this.waitingBytes, retry: 0 }
    for (const queue of this.retries) {
      for (let job = queue.shift(); job; job = queue.shift()) bytes.retry += job.bytes
    }
    this.pool.waiting -= this.waiting
    this.waiting = 0
    this.waitingBytes = 0
    this.retrying = 0
    this.arrived.clear()
    this.ready.clear()
    for (const parked of this.busy.values()) parked?.clear()
    return bytes
  }
}

function fifoOf(job: Job): Fifo<Job> {
  const fifo = new Fifo<Job>()
  fifo.push(job)
  return fifo
}
