// Decides which message is sent when: lanes, pools, retries and breakers, as one state machine without I/O.
//
// Events come in as calls (offered, ended, woken, later), and effects go out. `send` is the only effect of `offer`:
// outcomes come from the other calls, so that no caller is called back before `offer` returns. The rules:
//
// - A receiver's lane sends up to its width, and at most four at a time while it has not answered the last time.
//   Receivers like that hold three quarters of a pool's width at most: those that answer always find room.
// - Lanes that only lack room in the pool's width take turns, one delivery each.
// - Further tries have a width of their own. They never wait for first tries, and first tries never wait for them.
// - A delivery without an answer keeps its place. It is tried again within 5 s, and at once when the receiver answers
//   another one, or when a new one of its order comes. An open breaker holds all others back. Each counts as failed
//   once, and is sent when the breaker closes, in order. The lane gives them up only if their owner has little room
//   left (`isCrowded`), and the receiver has been away for longer than the five tries of a delivery take.
// - A delivery that the receiver puts off, or that alone has no answer, has five tries, and others overtake it.
// - A dead letter that is sent again has one try. It goes back to its owner when that fails, or when a breaker opens.
// - Deliveries held back use the room of further tries. Those that do not fit go back to their owner, which offers them
//   again before all later ones. Without further tries (bestEffort) nothing is held back.
// - A caller that got 'full' gets a report when there is room again: when half of what was full is free.
//
// [hot] `offer` and `onEnd`, once each per notification: some 2 us together (see notifier.ts).

import type { DeadCause } from '../messages/documents.js'
import type { Clock, DeliveryOutcome } from '../ports.js'
import type { Address } from './address.js'
import { lostDelayMs, onAnswer, onFailure, onProbe, onVoidProbe, passage } from './breaker.js'
import { Fifo } from './fifo.js'
import { type Job, type Lane, LaneTable, type Pool } from './lane.js'
import { asksForRetry, giveUpMs, type Limits, poolsOf, retryDelayMs, triesMax } from './limits.js'
import { type AttemptKind, Room } from './room.js'
import type { SendResult } from './sender.js'

export interface Effects<T> {
  /** Sends the message, and calls `onEnd` later. */
  send(job: Job<T>): void
  settled(job: Job<T>, outcome: DeliveryOutcome): void
  /** There is room again in the lane of this name, or, without one, for receivers that had no lane. */
  room(lane: string | undefined): void
  /** Calls `onWake` at this time (monotonic), unless an earlier time is set. */
  wake(lane: Lane<T>, atMs: number): void
  /** Calls `onLater` once at the end of the tick. */
  later(): void
  /** A receiver has stopped answering, or answers again. */
  changed(lane: Lane<T>): void
  /** A receiver answers that had never answered, or not the last time. */
  answers(lane: Lane<T>): void
}

export interface LanesOptions {
  readonly mode: string
  /** Whether failed deliveries are tried again. */
  readonly retries: boolean
  /** A job with a deadline begins only if at least this much time is left; undefined: it always begins. */
  readonly timeLeftMsMin?: number
  readonly limits: Limits
  readonly fraction: () => number
  /** Whether owners have little room left for waiting deliveries; undefined: never. */
  readonly isCrowded?: (() => boolean) | undefined
}

const secondMs = 1_000

/** Held-back deliveries that are settled in one turn of the event loop. */
const settledPerTurn = 128

export class Lanes<T> {
  readonly counters = { delivered: 0, failed: 0, retried: 0, dead: 0, heldBack: 0, opened: 0 }
  readonly table: LaneTable<T>
  private readonly holding = new Fifo<Lane<T>>()
  private isLater = false
  /** Receivers were refused because they had no lane. */
  private strangers = false
  private readonly room: Room<T>
  /** Number of receivers probed in the second that began at `sinceMs`. */
  private readonly probes = { sinceMs: Number.NEGATIVE_INFINITY, count: 0 }

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

  /** Accepts a job, or refuses it because there is no room. `dueMs`: wall clock before which no further try is made. */
  offer(job: Job<T>, dueMs: number | undefined): 'taken' | 'full' {
    const nowMs = job.sinceMs
    job.isRetry = job.tries > 0 && dueMs !== undefined
    if (!job.isRetry ? !this.takeFirst(job) : !this.takeRetry(job, dueMs, nowMs)) return 'full'
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
    const isAway = this.isAway(lane)
    if (lane.overflows || !(isAway ? this.room.hasForHeld(job) : this.room.hasForFirst(job))) {
      lane.pool.counters.reject++
      this.refuse(lane, isAway || lane.overflows ? 'retry' : 'first')
      return false
    }
    lane.pool.counters.in++
    this.room.bytes.first += bytes
    lane.push(job)
    if (job.tries === 0) lane.hurry(job.order, job.sinceMs)
    return true
  }

  /** Whether an offered job is held back. */
  private isAway({ breaker }: Lane<T>): boolean {
    return breaker.state !== 'closed'
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

  private refuse(lane: Lane<T>, kind: AttemptKind): void {
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
    if (job.isRetry) this.leaveRetry(job)
    else this.leaveFirst(job)
    this.learn(job, result, nowMs)
    this.settle(job, result, nowMs)
    // Other lanes may have waited longer for the place that is free now.
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
      lane.answers++
      lane.awaySinceMs = Number.POSITIVE_INFINITY
      this.prove(lane, true)
      if (onAnswer(lane.breaker)) this.effects.changed(lane)
      return
    }
    this.prove(lane, false)
    lane.reason = result.reason
    if (!this.options.retries) return
    lane.awaySinceMs = Math.min(lane.awaySinceMs, nowMs)
    if (!onFailure(lane.breaker, isProbe, nowMs, this.options.fraction)) return
    this.counters.opened++
    if (isProbe) return
    lane.dissolve()
    this.effects.changed(lane)
  }

  private prove(lane: Lane<T>, proven: boolean): void {
    if (lane.proven === proven) return
    lane.proven = proven
    lane.pool.sendingUnproven += proven ? -lane.sending : lane.sending
    if (proven) this.effects.answers(lane)
  }

  private settle(job: Job<T>, result: SendResult, nowMs: number): void {
    const { lane } = job
    if (result.kind === 'failed' && this.waitsForAnswer(job)) return this.onLost(job, result.reason, nowMs)
    if (!job.isRetry) lane.release(job.order)
    switch (result.kind) {
      case 'answered':
        if (result.code === undefined || !this.options.retries || !asksForRetry(result.code)) {
          this.counters.delivered++
          this.effects.settled(job, { kind: 'delivered', code: result.code })
        } else this.tryAgain(job, `the receiver has answered ${result.code}`, result.code, nowMs)
        return
      case 'failed':
        this.tryAgain(job, result.reason, undefined, nowMs)
        return
      case 'unsendable':
        this.bury(job, result.reason, 'unsendable')
    }
  }

  /** Whether a job without an answer keeps its place: nothing was answered after it was sent. */
  private waitsForAnswer({ lane, lostAfter = lane.answers, isReplay }: Job<T>): boolean {
    return this.options.retries && !isReplay && lostAfter === lane.answers
  }

  /** No job had an answer since this one's earlier try: the receiver is away, and the job keeps its place. */
  private onLost(job: Job<T>, reason: string, nowMs: number): void {
    const { lane } = job
    job.lostAfter = lane.answers
    const delayMs = lostDelayMs(Math.max(0, lane.breaker.failures - 1), this.options.fraction())
    job.dueMs = nowMs + delayMs
    if (job.isRetry) {
      this.holdRetry(job)
    } else if (this.isAway(lane)) {
      lane.release(job.order)
      this.hold(job)
    } else {
      this.room.bytes.first += job.bytes
      lane.pushLost(job)
    }
    this.waits(job, reason, true, true, job.isRetry ? this.clock.wallMs() + delayMs : undefined)
    this.failParked(job, reason)
  }

  /** Jobs parked behind a delivery without an answer fail with it: some now, the others when the breaker opens. */
  private failParked({ lane, order, isRetry }: Job<T>, reason: string): void {
    if (isRetry) return
    let left = settledPerTurn
    for (const parked of lane.parkedBehind(order)) {
      if (parked.tries > 0) continue
      if (left-- === 0) return
      this.countHeldBack(parked)
      this.waits(parked, reason, false, true)
    }
  }

  /** It has left the queue of first tries. */
  private countHeldBack({ lane }: Job<T>): void {
    lane.pool.counters.out++
    this.counters.heldBack++
  }

  private hold(job: Job<T>): void {
    this.room.bytes.retry += job.bytes
    job.lane.hold(job)
  }

  /** The job waits for its receiver, in its place if there is room for it. */
  private waits(job: Job<T>, reason: string, sent: boolean, held: boolean, nextAttemptMs?: number): void {
    job.tries = Math.max(1, job.tries)
    this.counters.failed++
    const { tries: attempts } = job
    const outcome = { kind: 'failed', reason, code: undefined, sent, attempts, nextAttemptMs, held } as const
    this.effects.settled(job, outcome)
  }

  private tryAgain(job: Job<T>, reason: string, code: number | undefined, nowMs: number): void {
    if (!this.options.retries || job.isReplay || job.tries + 1 >= triesMax)
      return this.bury(job, reason, code === undefined ? 'noAnswer' : 'notNow', code)
    this.counters.failed++
    job.tries++
    job.isRetry = true
    const delayMs = retryDelayMs(job.tries, this.options.fraction())
    job.dueMs = nowMs + delayMs
    const held = this.room.hasForRetry(job)
    if (held) this.holdRetry(job)
    const nextAttemptMs = this.clock.wallMs() + delayMs
    this.effects.settled(job, { kind: 'failed', reason, code, sent: true, attempts: job.tries, nextAttemptMs, held })
  }

  private bury(job: Job<T>, reason: string, cause: DeadCause, code?: number): void {
    if (!job.isReplay) this.counters.dead++
    this.effects.settled(job, { kind: 'dead', reason, cause, code, sent: true, attempts: job.tries + 1 })
  }

  private pump(lane: Lane<T>, nowMs: number): void {
    switch (passage(lane.breaker, nowMs)) {
      case 'free':
        if (lane.overflows) this.holdBackLater(lane)
        this.sendFirsts(lane, nowMs, Number.POSITIVE_INFINITY)
        if (lane.retrying > 0) this.sendRetries(lane, nowMs)
        break
      case 'probe':
        this.probe(lane, nowMs)
        break
      case 'held':
        if (lane.hasUnheld() || this.mayGiveUp(lane, nowMs)) this.holdBackLater(lane)
    }
    this.wakeFor(lane, nowMs)
  }

  // [hot] Once per notification.
  /** A job that is due already waits for something else than time, and is sent when that happens. */
  private wakeFor(lane: Lane<T>, nowMs: number): void {
    const { breaker, retryDueMs, lostDueMs, waiting, holding } = lane
    let atMs = Math.min(retryDueMs, lostDueMs)
    if (breaker.state === 'open')
      atMs = waiting + holding > 0 ? breaker.openUntilMs : Math.max(breaker.openUntilMs, atMs)
    if (atMs > nowMs && atMs < Number.POSITIVE_INFINITY) this.effects.wake(lane, atMs)
  }

  private sendFirsts(lane: Lane<T>, nowMs: number, most: number): void {
    const { pool } = lane
    const width = this.widthOf(lane)
    for (let left = most; lane.sending < width && lane.hasReady(nowMs); left--) {
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
    lane.leave(job)
    if (job.isHeld) this.moveBytes(job)
    lane.sending++
    pool.sending++
    if (!lane.proven) pool.sendingUnproven++
    if (job.tries === 0) {
      pool.counters.out++
      pool.counters.timeInQueueMs += nowMs - job.sinceMs
    } else this.counters.retried++
    this.effects.send(job)
  }

  /** A job that was held back is being sent. From now on its bytes count as those of a first try. */
  private moveBytes(job: Job<T>): void {
    job.isHeld = false
    this.room.bytes.retry -= job.bytes
    this.room.bytes.first += job.bytes
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

  /** Sends the oldest job that has kept its place, or else a further try that is due. */
  private probe(lane: Lane<T>, nowMs: number): void {
    const { pool } = lane
    if (!this.mayProbe(nowMs)) {
      lane.breaker.openUntilMs = this.probes.sinceMs + secondMs * (1 + this.options.fraction())
      return
    }
    const isWaiting = lane.waiting + lane.holding > 0
    if (isWaiting && !pool.hasRoomFor(lane)) return lane.queue()
    const first = isWaiting ? lane.takeProbe() : undefined
    const job = first ?? (pool.resending < pool.retrySendsMax ? lane.takeRetry(nowMs) : undefined)
    if (!job) {
      if (lane.retryDueMs <= nowMs) lane.queueRetries()
      return
    }
    this.probes.count++
    job.isProbe = true
    onProbe(lane.breaker)
    if (first) this.sendFirst(first, nowMs)
    else this.sendRetry(job)
    if (lane.hasUnheld()) this.holdBackLater(lane)
  }

  private mayProbe(nowMs: number): boolean {
    const { probes } = this
    if (nowMs - probes.sinceMs >= secondMs) {
      probes.sinceMs = nowMs
      probes.count = 0
    }
    return probes.count < this.options.limits.probesPerSecondMax
  }

  /** The pool has free widths: the lanes that wait for one take turns. */
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
    this.reportRoom()
    if (this.holding.size > 0) this.askLater()
  }

  /** Fails jobs that the breaker holds back, `most` at most; returns how many. */
  private holdBack(lane: Lane<T>, most: number, nowMs: number): number {
    let settled = 0
    for (; settled < most && (lane.overflows || passage(lane.breaker, nowMs) === 'held'); settled++) {
      const job = lane.takeUnheld()
      if (!job) {
        lane.overflows = false
        if (!this.mayGiveUp(lane, nowMs)) break
        this.giveUp(lane.takeHeld()!)
        continue
      }
      lane.leave(job)
      this.room.bytes.first -= job.bytes
      if (job.isReplay) {
        this.handBack(job)
        continue
      }
      lane.overflows ||= !this.room.hasForHeld(job)
      const isNew = job.tries === 0
      if (isNew) this.countHeldBack(job)
      if (!lane.overflows) this.hold(job)
      if (isNew || lane.overflows) this.waits(job, lane.reason, false, !lane.overflows)
    }
    return settled
  }

  private mayGiveUp({ holding, awaySinceMs }: Lane<T>, nowMs: number): boolean {
    return holding > 1 && nowMs - awaySinceMs >= giveUpMs && this.options.isCrowded?.() === true
  }

  private giveUp(job: Job<T>): void {
    const { lane } = job
    lane.leave(job)
    this.room.bytes.retry -= job.bytes
    this.counters.dead++
    this.handBack(job)
  }

  /** The job is dead without another try, because its receiver is away. */
  private handBack(job: Job<T>): void {
    const { tries: attempts } = job
    const { reason } = job.lane
    this.effects.settled(job, { kind: 'dead', reason, cause: 'noAnswer', code: undefined, sent: false, attempts })
  }

  /** A job has left the lane, or was refused: there may be room again. */
  private onLeft(lane: Lane<T>): void {
    const isHopeful = this.room.onLeft(lane)
    if (isHopeful || (this.strangers && lane.isIdle)) this.askLater()
  }

  private reportRoom(): void {
    if (this.strangers && this.table.makeRoom()) {
      this.strangers = false
      this.effects.room(undefined)
    }
    if (this.room.report(lane => this.effects.room(lane.name))) this.askLater()
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
