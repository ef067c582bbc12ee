// Which message is sent when: lanes, pools, retries and breakers, as one state machine without I/O.
//
// What happens comes in as calls (offered, ended, woken, later) and goes out as effects. `send` is the only effect of
// `offer`: outcomes come from the other calls, so that no caller is called back before `offer` returns. The rules:
//
// - A receiver's lane sends up to its width, and at most four at a time while it has not answered the last time.
//   Receivers like that hold three quarters of a pool's width at most: those that answer always find room.
// - Lanes that could send but for the pool's width take turns, one delivery each.
// - Further tries have a width of their own. They never wait for first ones, nor these for them.
// - An open breaker fails first tries at once, and further tries wait for its probe and share what becomes of it. So the
//   five tries of a delivery are evidence that the receiver was dead each time. Without further tries (bestEffort)
//   nothing is held back.
// - A caller that got 'full' is told when there is room again: when half of what was full is free.
//
// [hot] `offer` and `onEnd`, once each per notification: some 2 us together (see notifier.ts).

import type { Clock, DeliveryOutcome } from '../ports.js'
import type { Address } from './address.js'
import type { Job, Lane, Pool } from './lane.js'
import { Fifo, LaneTable, onAnswer, onFailure, onProbe, onVoidProbe, passage } from './lane.js'
import { asksForRetry, type Limits, poolsOf, retryDelayMs, triesMax } from './limits.js'
import { type Kind, Room } from './room.js'
import type { SendResult } from './sender.js'

export interface Effects<T> {
  /** Sends it, and calls `onEnd` later. */
  send(job: Job<T>): void
  settled(job: Job<T>, outcome: DeliveryOutcome): void
  /** There is room again in the lane of this name, or, without one, for receivers that had no lane. */
  room(lane: string | undefined): void
  /** Calls `onWake` at this time (monotonic), if nothing earlier is asked for. */
  wake(lane: Lane<T>, atMs: number): void
  /** Calls `onLater` once at the end of the tick. */
  later(): void
  /** A receiver has ceased to answer, or answers again. */
  changed(lane: Lane<T>): void
}

export interface LanesOptions {
  readonly mode: string
  /** Failed deliveries are tried again. */
  readonly retries: boolean
  /** A job with a deadline begins only if at least this much time is left; undefined: it always begins. */
  readonly timeLeftMsMin?: number
  readonly limits: Limits
  readonly fraction: () => number
}

/** Held-back deliveries that are settled in one turn of the event loop. */
const settledPerTurn = 128

export class Lanes<T> {
  readonly counters = { delivered: 0, failed: 0, retried: 0, dead: 0, heldBack: 0, opened: 0 }
  readonly table: LaneTable<T>
  private readonly holding = new Fifo<Lane<T>>()
  private isLater = false
  /** Receivers without a lane were refused. */
  private strangers = false
  private readonly room: Room<T>

  constructor(
    private readonly clock: Pick<Clock, 'monoMs' | 'wallMs'>,
    private readonly options: LanesOptions,
    private readonly effects: Effects<T>,
  ) {
    this.table = new LaneTable(
      poolsOf(options.mode, options.limits),
      options.limits.lanesMax,
      options.timeLeftMsMin ?? 0,
    )
    this.room = new Room(options.limits, options.retries, this.table.pools)
  }

  /** The lane of a receiver; undefined: too many are in use, which counts as a refusal. */
  laneFor(tenant: string, address: Address): Lane<T> | undefined {
    const lane = this.table.laneOf(tenant, address)
    if (lane) return lane
    this.strangers = true
    this.table.poolOf(tenant).counters.reject++
    return undefined
  }

  /** Takes a job, or refuses it because there is no room. `dueMs`: wall clock before which no further try is made. */
  offer(job: Job<T>, dueMs: number | undefined): 'taken' | 'full' {
    const nowMs = job.sinceMs
    if (job.tries === 0 ? !this.takeFirst(job) : !this.takeRetry(job, dueMs, nowMs)) return 'full'
    this.pump(job.lane, nowMs)
    return 'taken'
  }

  /** The deadline of a job has come while it waited for its first try. */
  withdraw(job: Job<T>): void {
    this.room.bytes.first -= job.bytes
    job.lane.withdraw(job, this.clock.monoMs())
    this.onLeft(job.lane)
  }

  private takeFirst(job: Job<T>): boolean {
    const { lane, bytes } = job
    if (!this.room.hasForFirst(job)) {
      lane.pool.counters.reject++
      this.refuse(lane, 'first')
      return false
    }
    lane.pool.counters.in++
    this.room.bytes.first += bytes
    lane.push(job)
    return true
  }

  private takeRetry(job: Job<T>, dueMs: number | undefined, nowMs: number): boolean {
    if (!this.room.hasForRetry(job)) {
      this.refuse(job.lane, 'retry')
      return false
    }
    job.dueMs = dueMs === undefined ? nowMs : nowMs + Math.max(0, dueMs - this.clock.wallMs())
    this.holdRetry(job)
    return true
  }

  private refuse(lane: Lane<T>, kind: Kind): void {
    this.room.refuse(lane, kind)
    this.onLeft(lane)
  }

  private holdRetry(job: Job<T>): void {
    this.room.bytes.retry += job.bytes
    job.lane.pushRetry(job)
  }

  onEnd(job: Job<T>, result: SendResult): void {
    const { lane } = job
    const nowMs = this.clock.monoMs()
    const wasFirst = job.tries === 0
    if (wasFirst) this.leaveFirst(job)
    else this.leaveRetry(job)
    this.learn(job, result, nowMs)
    if (wasFirst) lane.release(job.order)
    this.settle(job, result, nowMs)
    // Others may have waited longer for the place that is free now.
    this.giveTurns(lane.pool, nowMs)
    this.pump(lane, nowMs)
    this.onLeft(lane)
  }

  private leaveFirst({ lane, bytes }: Job<T>): void {
    lane.sending--
    lane.pool.sending--
    if (!lane.proven) lane.pool.sendingUnproven--
    this.room.bytes.first -= bytes
  }

  private leaveRetry({ lane, bytes }: Job<T>): void {
    lane.resending--
    lane.pool.resending--
    this.room.bytes.retry -= bytes
  }

  private learn(job: Job<T>, result: SendResult, nowMs: number): void {
    const { lane, isProbe } = job
    job.isProbe = false
    if (result.kind === 'unsendable') {
      if (isProbe) onVoidProbe(lane.breaker)
      return
    }
    if (result.kind === 'answered') {
      this.prove(lane, true)
      if (onAnswer(lane.breaker)) this.effects.changed(lane)
      return
    }
    this.prove(lane, false)
    lane.reason = result.reason
    if (!this.options.retries) return
    if (!onFailure(lane.breaker, isProbe, nowMs, this.options.fraction)) return
    this.counters.opened++
    if (isProbe) lane.fateMs = nowMs
    else this.effects.changed(lane)
  }

  private prove(lane: Lane<T>, proven: boolean): void {
    if (lane.proven === proven) return
    lane.proven = proven
    lane.pool.sendingUnproven += proven ? -lane.sending : lane.sending
  }

  private settle(job: Job<T>, result: SendResult, nowMs: number): void {
    switch (result.kind) {
      case 'answered':
        if (result.code === undefined || !this.options.retries || !asksForRetry(result.code)) {
          this.counters.delivered++
          this.effects.settled(job, { kind: 'delivered', code: result.code })
        } else this.tryAgain(job, `the receiver has answered ${result.code}`, result.code, true, nowMs)
        return
      case 'failed':
        this.tryAgain(job, result.reason, undefined, true, nowMs)
        return
      case 'unsendable':
        this.bury(job, result.reason, undefined, true)
    }
  }

  private tryAgain(job: Job<T>, reason: string, code: number | undefined, sent: boolean, nowMs: number): void {
    if (!this.options.retries || job.tries + 1 >= triesMax) return this.bury(job, reason, code, sent)
    this.counters.failed++
    job.tries++
    const delayMs = retryDelayMs(job.tries, this.options.fraction())
    job.dueMs = nowMs + delayMs
    const held = this.room.hasForRetry(job)
    if (held) this.holdRetry(job)
    const nextAttemptMs = this.clock.wallMs() + delayMs
    this.effects.settled(job, { kind: 'failed', reason, code, sent, attempts: job.tries, nextAttemptMs, held })
  }

  private bury(job: Job<T>, reason: string, code: number | undefined, sent: boolean): void {
    this.counters.dead++
    this.effects.settled(job, { kind: 'dead', reason, code, sent, attempts: job.tries + 1 })
  }

  private pump(lane: Lane<T>, nowMs: number): void {
    switch (passage(lane.breaker, nowMs)) {
      case 'free':
        this.sendFirsts(lane, nowMs, Number.POSITIVE_INFINITY)
        if (lane.retrying > 0) this.sendRetries(lane, nowMs)
        break
      case 'probe':
        this.probe(lane, nowMs)
        break
      case 'held':
        if (lane.hasReady || lane.retryDueMs <= lane.fateMs) this.holdBackLater(lane)
    }
    if (lane.retrying > 0) this.wakeFor(lane, nowMs)
  }

  /** What is due already waits for something else than time, and is sent when that happens. */
  private wakeFor(lane: Lane<T>, nowMs: number): void {
    const { breaker, retryDueMs } = lane
    const atMs = breaker.state === 'open' ? Math.max(breaker.openUntilMs, retryDueMs) : retryDueMs
    if (atMs > nowMs) this.effects.wake(lane, atMs)
  }

  private sendFirsts(lane: Lane<T>, nowMs: number, most: number): void {
    const { pool } = lane
    const width = this.widthOf(lane)
    for (let left = most; lane.sending < width && lane.hasReady; left--) {
      if (left === 0 || !pool.hasRoomFor(lane)) return lane.queue()
      const job = lane.takeReady(nowMs)
      if (!job) return
      this.sendFirst(job, nowMs)
    }
  }

  private widthOf({ proven, pool }: Lane<T>): number {
    const { laneSendsMax } = pool.limits
    return proven ? laneSendsMax : Math.min(laneSendsMax, this.options.limits.laneUnprovenSendsMax)
  }

  private sendFirst(job: Job<T>, nowMs: number): void {
    const { lane } = job
    const { pool } = lane
    lane.sending++
    pool.sending++
    if (!lane.proven) pool.sendingUnproven++
    pool.counters.out++
    pool.counters.timeInQueueMs += nowMs - job.sinceMs
    this.effects.send(job)
  }

  private sendRetries(lane: Lane<T>, nowMs: number): void {
    const { pool } = lane
    while (lane.resending < this.options.limits.laneRetrySendsMax && lane.retryDueMs <= nowMs) {
      if (pool.resending >= pool.retrySendsMax) return lane.queueRetries()
      this.sendRetry(lane.takeRetry(nowMs)!)
    }
  }

  private sendRetry(job: Job<T>): void {
    job.lane.resending++
    job.lane.pool.resending++
    this.counters.retried++
    this.effects.send(job)
  }

  /** A first try, when there is one: it would be held back otherwise. */
  private probe(lane: Lane<T>, nowMs: number): void {
    const { pool } = lane
    if (lane.hasReady && !pool.hasRoomFor(lane)) return lane.queue()
    const first = lane.hasReady ? lane.takeReady(nowMs) : undefined
    const job = first ?? (pool.resending < pool.retrySendsMax ? lane.takeRetry(nowMs) : undefined)
    if (!job) {
      if (lane.retryDueMs <= nowMs) lane.queueRetries()
      return
    }
    job.isProbe = true
    onProbe(lane.breaker)
    if (first) this.sendFirst(first, nowMs)
    else this.sendRetry(job)
    if (lane.hasReady) this.holdBackLater(lane)
  }

  /** Widths of the pool have become free: the lanes that wait for one take turns. */
  private giveTurns(pool: Pool<T>, nowMs: number): void {
    for (let lane = pool.takeTurn(); lane; lane = pool.takeTurn())
      if (passage(lane.breaker, nowMs) === 'free') this.sendFirsts(lane, nowMs, 1)
      else this.pump(lane, nowMs)
    for (let lane = pool.takeRetryTurn(); lane; lane = pool.takeRetryTurn()) this.pump(lane, nowMs)
  }

  private holdBackLater(lane: Lane<T>): void {
    if (lane.queued.held) return
    lane.queued.held = true
    this.holding.push(lane)
    this.askLater()
  }

  private askLater(): void {
    if (this.isLater) return
    this.isLater = true
    this.effects.later()
  }

  onWake(lane: Lane<T>): void {
    this.pump(lane, this.clock.monoMs())
  }

  onLater(): void {
    this.isLater = false
    const nowMs = this.clock.monoMs()
    let left = settledPerTurn
    for (let lane = this.holding.first; lane && left > 0; lane = this.holding.first) {
      left -= this.holdBack(lane, left, nowMs)
      if (left <= 0) break
      this.holding.shift()
      lane.queued.held = false
      this.pump(lane, nowMs)
      this.onLeft(lane)
    }
    this.tellRoom()
    if (this.holding.size > 0) this.askLater()
  }

  /** Fails what the breaker holds back, so many at most; gives how many. */
  private holdBack(lane: Lane<T>, most: number, nowMs: number): number {
    let settled = 0
    for (; settled < most && passage(lane.breaker, nowMs) === 'held'; settled++) {
      const first = lane.takeReady(nowMs)
      const job = first ?? lane.takeRetry(lane.fateMs)
      if (!job) break
      if (first) {
        this.room.bytes.first -= job.bytes
        job.lane.pool.counters.out++
        lane.release(job.order)
      } else this.room.bytes.retry -= job.bytes
      this.counters.heldBack++
      this.tryAgain(job, lane.reason, undefined, false, nowMs)
    }
    return settled
  }

  /** Something has left the lane, or was refused: perhaps there is room again. */
  private onLeft(lane: Lane<T>): void {
    const isHopeful = this.room.onLeft(lane)
    if (isHopeful || (this.strangers && lane.isIdle)) this.askLater()
  }

  private tellRoom(): void {
    if (this.strangers && this.table.makeRoom()) {
      this.strangers = false
      this.effects.room(undefined)
    }
    if (this.room.tell(lane => this.effects.room(lane.name))) this.askLater()
  }

  clear(): void {
    for (const lane of this.table.all()) {
      const { first, retry } = lane.clear()
      this.room.bytes.first -= first
      this.room.bytes.retry -= retry
      lane.cancelWake?.()
    }
  }
}
