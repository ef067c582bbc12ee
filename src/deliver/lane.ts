// One receiver: the jobs that wait for it, their order, and the jobs in flight. And the table of all lanes.
//
//   offer -> arrived -> (its entity is free) ------------------> send -> ended
//                  \--> parked, while an earlier one of the same subscription and entity is being sent --> ready --/
//   no answer -> lost -> (due, or the receiver answers) -> send
//   not now   -> retries[number of failed tries] -> (due) -> send
//   the breaker opens: lost, ready, parked, arrived -> held, in the order of arrival -> (it closes) -> send
//
// The order of a subscription and an entity is kept while the receiver does not answer: a lost job keeps its place.
// Others overtake a job that the receiver has put off, or that fails while others are answered. A job may have no
// order. Each queue of retries is in the order of failing. Its first job may be due a little later than the next, by
// the spread of the delays.
//
// A job with a deadline of its own is skipped when too little of its time is left. It counts as waiting until it is
// withdrawn.
//
// A receiver has one lane, or one for each pool whose tenants it serves: a full pool of one tenant must not stop the
// others.
//
// Not here: whether something may be sent (lanes, breaker), sockets (the senders).

import assert from 'node:assert/strict'
import type { LogContext } from '../ports.js'
import type { Address } from './address.js'
import { type Breaker, closedBreaker } from './breaker.js'
import { Fifo } from './fifo.js'
import { type PoolLimits, retrySendsMax, triesMax, unprovenSendsMax } from './limits.js'
import type { Sendable } from './sender.js'

/** A message on its way through a lane: one object from the offer to the end. */
export interface Job<T> extends Sendable {
  /** The pending notification or request behind the message; it receives the outcome. */
  readonly subject: T
  readonly lane: Lane<T>
  /** Approximate bytes in memory and on the wire; then those of the body alone. */
  readonly bytes: number
  readonly bodyBytes: number
  /** First tries of jobs with the same order go one after the other; undefined: it waits for no other job. */
  readonly order: string | undefined
  /** Of the request that caused it. */
  readonly context: LogContext
  /** It is a dead letter: it has one try, and goes back to its owner when the receiver is away. */
  readonly isReplay: boolean
  /** Failed tries. All failures while the receiver answers nothing count as one. */
  tries: number
  /** Its place among the jobs of its lane. */
  seq: number
  /** It has left its order. The widths and the room of further tries apply to it. */
  isRetry: boolean
  /** It waits in the room of further tries until the receiver answers. */
  isHeld: boolean
  /** The lane's `answers` at its latest try without one; undefined: it had no such try. */
  lostAfter: number | undefined
  /** Monotonic: the start of its waiting, and the time of its next try. */
  readonly sinceMs: number
  dueMs: number
  isProbe: boolean
}

/** The widths that some tenants share, and the lanes that wait for them. */
export class Pool<T = unknown> {
  readonly retrySendsMax: number
  readonly unprovenSendsMax: number
  waiting = 0
  sending = 0
  /** The part of `sending` that goes to receivers that have not answered the last time. */
  sendingUnproven = 0
  resending = 0
  /** Lanes that could send if there were room, each at most once, in the order of arrival. */
  readonly turns = { proven: new Fifo<Lane<T>>(), unproven: new Fifo<Lane<T>>(), retries: new Fifo<Lane<T>>() }
  readonly counters = { in: 0, out: 0, reject: 0, timeInQueueMs: 0 }

  constructor(readonly limits: PoolLimits) {
    this.retrySendsMax = retrySendsMax(limits.sendsMax)
    this.unprovenSendsMax = unprovenSendsMax(limits.sendsMax)
  }

  /** Whether one more first try may go out to the receiver of this lane. */
  hasRoomFor(lane: Lane<T>): boolean {
    return this.sending < this.limits.sendsMax && (lane.proven || this.sendingUnproven < this.unprovenSendsMax)
  }

  /** Takes the lane whose turn it is to send a first try, while there is room for one. */
  takeTurn(): Lane<T> | undefined {
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
  takeRetryTurn(): Lane<T> | undefined {
    if (this.resending >= this.retrySendsMax) return undefined
    const lane = this.turns.retries.shift()
    if (lane) lane.queued.retries = false
    return lane
  }
}

/** The state of a job before its first try. */
export const untried = {
  seq: 0,
  isReplay: false,
  isRetry: false,
  isHeld: false,
  lostAfter: undefined,
  isProbe: false,
  dueMs: 0,
} as const

export class Lane<T = unknown> {
  readonly breaker: Breaker = closedBreaker()
  proven = false
  /** The last failure: the reason for the jobs that are held back. */
  reason = ''
  sending = 0
  resending = 0
  /** First tries that wait, parked ones included, and their bytes. */
  waiting = 0
  waitingBytes = 0
  retrying = 0
  /** Jobs that wait for the receiver to answer, and their bytes. */
  holding = 0
  holdingBytes = 0
  /** The waiting jobs no longer fit: the rest goes back to its owner, and no new job is accepted meanwhile. */
  overflows = false
  /** Number of answers so far. */
  answers = 0
  /** Monotonic: the first failure since the last answer; Infinity: none since the last answer. */
  awaySinceMs = Number.POSITIVE_INFINITY
  /** Whether it is in a queue of its pool, or of the lanes whose deliveries are held back. */
  readonly queued = { sends: false, retries: false, held: false }
  /** A caller was refused because there was no room. It gets a report when there is room again (room.ts). */
  readonly refused = { first: false, retry: false }
  readonly hopeful = { first: false, retry: false }
  /** When the timer of the notifier wakes it. */
  wakeAtMs = Number.POSITIVE_INFINITY
  cancelWake: (() => void) | undefined

  private seq = 0
  private readonly arrived = new Fifo<Job<T>>()
  private readonly lost = new Fifo<Job<T>>()
  private readonly held = new Fifo<Job<T>>()
  private readonly ready = new Fifo<Job<T>>()
  /** The orders in flight, each with the jobs parked behind it; undefined: none yet. */
  private readonly busy = new Map<string, Fifo<Job<T>> | undefined>()
  /** By failed tries; the first queue has jobs that had no answer to a further try. */
  private readonly retries = Array.from({ length: triesMax }, () => new Fifo<Job<T>>())

  constructor(
    /** Its key among the lanes: the receiver, preceded by the tenant if that has its own pool. */
    readonly name: string,
    readonly address: Address,
    readonly pool: Pool<T>,
    /** Time that a job must have left to begin. */
    private readonly timeLeftMsMin: number,
  ) {}

  queue(): void {
    if (this.queued.sends) return
    this.queued.sends = true
    this.pool.turns[this.proven ? 'proven' : 'unproven'].push(this)
  }

  queueRetries(): void {
    if (this.queued.retries) return
    this.queued.retries = true
    this.pool.turns.retries.push(this)
  }

  get isIdle(): boolean {
    return this.waiting + this.holding + this.sending + this.resending + this.retrying === 0
  }

  push(job: Job<T>): void {
    job.seq = this.seq++
    this.arrived.push(job)
    this.wait(job)
  }

  private wait({ bytes }: Job<T>): void {
    this.waiting++
    this.waitingBytes += bytes
    this.pool.waiting++
  }

  /** A job may be waiting that is not parked and need not wait for time. */
  hasReady(nowMs: number): boolean {
    return this.ready.size + this.held.size > 0 || (this.arrived.size > 0 && !this.overflows) || this.hasLost(nowMs)
  }

  private hasLost(nowMs: number): boolean {
    const { first } = this.lost
    return first !== undefined && (this.proven || first.dueMs <= nowMs)
  }

  // [hot] Once per notification.
  /** Takes the next job whose turn it is; jobs of its order wait until `release`. The caller then calls `leave`. */
  takeReady(nowMs: number): Job<T> | undefined {
    if (this.hasLost(nowMs)) return this.lost.shift()
    const job = this.ready.shift() ?? this.takeInOrder(this.held, nowMs)
    return job ?? (this.overflows ? undefined : this.takeInOrder(this.arrived, nowMs))
  }

  /** The job has stopped waiting. */
  leave({ bytes, isHeld }: Job<T>): void {
    if (isHeld) {
      this.holding--
      this.holdingBytes -= bytes
    } else {
      this.waiting--
      this.waitingBytes -= bytes
      this.pool.waiting--
    }
  }

  /** The job had no answer. It is tried again when due, before all others of its order. */
  pushLost(job: Job<T>): void {
    this.lost.push(job)
    this.wait(job)
  }

  /**
   * A new job has the order of a lost one. The lost one becomes due at once: the receiver may be back, and if it is
   * not, both have failed.
   */
  hurry(order: string | undefined, nowMs: number): void {
    if (this.lost.size === 0 || order === undefined) return
    const job = this.lost.take(lost => lost.order === order)
    if (!job) return
    job.dueMs = nowMs
    this.lost.insert(job, (a, b) => a.dueMs - b.dueMs)
  }

  /** When a lost job is tried again although the receiver answers nothing. */
  get lostDueMs(): number {
    return this.lost.first?.dueMs ?? Number.POSITIVE_INFINITY
  }

  /** The receiver does not answer: moves all waiting jobs to `arrived`, in the order of their arrival, to be held. */
  dissolve(): void {
    const waiting = [...this.lost.drain(), ...this.ready.drain()]
    for (const { order } of waiting) if (order !== undefined) this.endOrder(order, waiting)
    for (const order of this.busy.keys()) this.takeParked(order, waiting)
    waiting.sort((a, b) => a.seq - b.seq)
    for (const job of this.arrived.drain()) waiting.push(job)
    for (const job of waiting) this.arrived.push(job)
  }

  private endOrder(order: string, parked: Job<T>[]): void {
    this.takeParked(order, parked)
    this.busy.delete(order)
  }

  /** The jobs that wait until the first try of `order` is over. */
  parkedBehind(order: string | undefined): Iterable<Job<T>> {
    return (order !== undefined && this.busy.get(order)) || []
  }

  private takeParked(order: string, into: Job<T>[]): void {
    const parked = this.busy.get(order)
    for (let job = parked?.shift(); job; job = parked?.shift()) into.push(job)
  }

  /** Takes the oldest job whose order is free. The caller then calls `leave`. */
  takeProbe(): Job<T> | undefined {
    const isFree = ({ order }: Job<T>): boolean => order === undefined || !this.busy.has(order)
    const job = this.held.take(isFree) ?? this.arrived.take(isFree)
    if (job?.order !== undefined) this.busy.set(job.order, undefined)
    return job
  }

  /** The next job to be held; the caller then calls `leave`. */
  takeUnheld(): Job<T> | undefined {
    return this.arrived.shift()
  }

  hasUnheld(): boolean {
    return this.arrived.size > 0
  }

  hold(job: Job<T>): void {
    job.isHeld = true
    this.holding++
    this.holdingBytes += job.bytes
    this.held.insert(job, (a, b) => a.seq - b.seq)
  }

  /** The oldest job that is held; the caller then calls `leave`. */
  takeHeld(): Job<T> | undefined {
    return this.held.shift()
  }

  private takeInOrder(fifo: Fifo<Job<T>>, nowMs: number): Job<T> | undefined {
    for (let job = fifo.shift(); job; job = fifo.shift()) {
      if (this.isLate(job, nowMs)) continue
      if (job.order === undefined) return job
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

  private isLate({ endByMs }: Job<T>, nowMs: number): boolean {
    return nowMs > endByMs - this.timeLeftMsMin
  }

  /** Ends the waiting of a job that has no order, when its deadline has come. */
  withdraw(job: Job<T>, nowMs: number): void {
    this.leave(job)
    // Jobs with deadlines arrive in the order of their deadlines.
    while (this.arrived.first && this.isLate(this.arrived.first, nowMs)) this.arrived.shift()
  }

  /** The first try of `order` is over: its next job is ready. */
  release(order: string | undefined): void {
    if (order === undefined) return
    assert(this.busy.has(order), 'a job is released that was not taken')
    const next = this.busy.get(order)?.shift()
    if (next) this.ready.push(next)
    else this.busy.delete(order)
  }

  pushRetry(job: Job<T>): void {
    this.retries[job.lostAfter === this.answers ? 0 : job.tries]!.push(job)
    this.retrying++
  }

  takeRetry(nowMs: number): Job<T> | undefined {
    const queue = this.earliest()
    if (!queue || queue.first!.dueMs > nowMs) return undefined
    this.retrying--
    return queue.shift()
  }

  get retryDueMs(): number {
    return this.retrying === 0 ? Number.POSITIVE_INFINITY : this.earliest()!.first!.dueMs
  }

  private earliest(): Fifo<Job<T>> | undefined {
    if (this.retrying === 0) return undefined
    let earliest: Fifo<Job<T>> | undefined
    for (const queue of this.retries)
      if (queue.first && (!earliest || queue.first.dueMs < earliest.first!.dueMs)) earliest = queue
    return earliest
  }

  /** Forgets all jobs that are not in flight; returns their bytes. */
  clear(): { first: number; retry: number } {
    const bytes = { first: this.waitingBytes, retry: this.holdingBytes }
    for (const queue of this.retries) {
      for (let job = queue.shift(); job; job = queue.shift()) bytes.retry += job.bytes
    }
    this.pool.waiting -= this.waiting
    this.waiting = 0
    this.waitingBytes = 0
    this.retrying = 0
    this.holding = 0
    this.holdingBytes = 0
    this.arrived.clear()
    this.ready.clear()
    this.lost.clear()
    this.held.clear()
    for (const parked of this.busy.values()) parked?.clear()
    return bytes
  }
}

function fifoOf<T>(job: Job<T>): Fifo<Job<T>> {
  const fifo = new Fifo<Job<T>>()
  fifo.push(job)
  return fifo
}

/** Lanes checked in one search for an idle one, those checked longest ago first. */
const idleTriesMax = 64

/** All lanes by name, and their pools. A new lane may replace an idle one. */
export class LaneTable<T> {
  readonly pools: readonly Pool<T>[]
  private readonly shared: Pool<T>
  private readonly own = new Map<string, Pool<T>>()
  private readonly lanes = new Map<string, Lane<T>>()

  /** The first of `pools` is the shared one. */
  constructor(
    pools: readonly PoolLimits[],
    private readonly lanesMax: number,
    private readonly timeLeftMsMin: number,
  ) {
    this.pools = pools.map(limits => new Pool<T>(limits))
    this.shared = this.pools[0]!
    for (const pool of this.pools) if (pool.limits.tenant !== undefined) this.own.set(pool.limits.tenant, pool)
  }

  get size(): number {
    return this.lanes.size
  }

  all(): Iterable<Lane<T>> {
    return this.lanes.values()
  }

  poolOf(tenant: string): Pool<T> {
    return this.own.get(tenant) ?? this.shared
  }

  nameOf(tenant: string, { receiver }: Address): string {
    return this.own.has(tenant) ? `${tenant} ${receiver}` : receiver
  }

  /** The lane, created if there is none yet; undefined: too many are in use. */
  laneOf(tenant: string, address: Address): Lane<T> | undefined {
    const name = this.nameOf(tenant, address)
    const known = this.lanes.get(name)
    if (known || !this.makeRoom()) return known
    const lane = new Lane<T>(name, address, this.poolOf(tenant), this.timeLeftMsMin)
    this.lanes.set(name, lane)
    return lane
  }

  /** True when there is room for one more lane. It removes an idle one if need be. */
  makeRoom(): boolean {
    if (this.lanes.size < this.lanesMax) return true
    let tries = 0
    for (const [name, lane] of this.lanes) {
      this.lanes.delete(name)
      if (lane.isIdle) {
        lane.cancelWake?.()
        return true
      }
      this.lanes.set(name, lane)
      if (++tries === idleTriesMax) return false
    }
    return false
  }
}
