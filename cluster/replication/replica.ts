// A copy of one shard that follows its log: accepts records, checks that each belongs behind the one before, and has
// the host apply them.
//
//   log --reported or read--> tail (accepted) --pending--> host --> applied
//
// Reported records may begin anywhere and have gaps; when one does not fit behind the tail, the copy reads the log. A
// record at the right place with another past than ours, or of an unknown version, stops the copy with a report, since
// any next step would be a guess. If the log no longer reaches back to our tail, the copy is `incomplete` and needs a
// snapshot. If the log ends before our tail, the engine has lost something: the copy is `ahead` and waits until that is
// there again (log-check.ts).
//
// While this node owns the shard, its own appends move the copy (`advance`), and reported records are ignored.
//
// Not here: ownership of the shard (holding.ts), the source of a snapshot (snapshot-fetch.ts).

import assert from 'node:assert/strict'
import type { LogRecord, ShardLog, Takeover } from '../logs/shard-log.js'
import type { ClusterClock } from '../ports.js'
import { beginning, decodeRecord, misfit, positionOf, unreadable } from './log-record.js'
import type { ReplicationOptions } from './replication-options.js'
import { isUnreadable, type LogPosition, type ShardHost } from './shard-host.js'

/** The dependencies of a copy. */
export interface ReplicaParts {
  readonly log: Pick<ShardLog, 'read'>
  readonly host: Pick<ShardHost, 'apply' | 'position'>
  readonly clock: Pick<ClusterClock, 'after'>
  readonly options: Pick<ReplicationOptions, 'pageBytesMax' | 'pendingBytesMax' | 'retryMs'>
  /** The copy cannot continue, ever. Called once, with the reason in words. */
  readonly onStopped: (shard: number, reason: string) => void
  /** Its log ends before the tail that is known here, or no longer does so. */
  readonly onAhead: () => void
  /** The host could not apply. */
  readonly onFailure: (failure: Error) => void
}

/** Facts about a copy that had the whole log at one moment. */
export interface CaughtUp {
  /** The latest takeover at that moment. */
  readonly takeover: Takeover | undefined
}

type OnCaughtUp = (caughtUp: CaughtUp | undefined) => void

/** One step of the host: the payload of a record, or of several that belong together. */
interface Step {
  readonly payload: Buffer
  readonly position: LogPosition
}

interface Waiter {
  readonly sequence: number
  readonly run: () => void
}

/**
 * The state of a copy. `incomplete`: it needs a snapshot. `owned`: its node appends. `ahead`: its log has lost records
 * that are known here.
 */
export type ReplicaState = 'following' | 'owned' | 'incomplete' | 'ahead' | 'stopped' | 'closed'

export class Replica {
  readonly shard: number
  /** Whether it has stopped because its log has other records than the ones known here. */
  hasDiverged = false
  /** Whether it had the whole log at one moment. */
  hasBeenCurrent = false
  private readonly parts: ReplicaParts
  private is: ReplicaState
  private tail: LogPosition
  private done: LogPosition
  /** Payloads of records that continue in the next one. */
  private begun: Buffer[] = []
  /** Steps that wait for the host, and the end of those that it is applying. */
  private pending: Step[] = []
  private pendingBytes = 0
  private applying: LogPosition | undefined
  /** The callers that wait for the reading in flight; undefined: there is none. */
  private reading: OnCaughtUp[] | undefined
  /** Whether reported records were not accepted. */
  private hasMissed = false
  private waiters: Waiter[] = []

  /** `position`: up to where the host has applied the shard's log; undefined: it has no copy from which to continue. */
  constructor(shard: number, position: LogPosition | undefined, parts: ReplicaParts) {
    this.shard = shard
    this.parts = parts
    this.tail = position ?? beginning
    this.done = this.tail
    this.is = position ? 'following' : 'incomplete'
  }

  get state(): ReplicaState {
    return this.is
  }

  /** Everything up to here is applied, as far as this copy has done it: an owner's host writes by itself. */
  get applied(): LogPosition {
    return this.done
  }

  /** The last record that is known. */
  get end(): LogPosition {
    return this.tail
  }

  /** Whether the host is applying steps for it, or will be. */
  get isBusy(): boolean {
    return this.isApplying || this.pending.length > 0
  }

  /** Whether the host is applying steps for it. */
  get isApplying(): boolean {
    return this.applying !== undefined
  }

  /** The log reports a record. */
  onRecord(record: LogRecord): void {
    if (this.is !== 'following' || record.sequence <= this.tail.sequence) return
    if (this.reading || this.pendingBytes > this.parts.options.pendingBytesMax) this.hasMissed = true
    else if (record.sequence > this.tail.sequence + 1) this.read()
    else this.take(record)
  }

  /** The log is known to have a record of this number. */
  expect(sequence: number): void {
    if (sequence > this.tail.sequence && !this.reading) this.read()
  }

  /** Records that are known and not applied. */
  get lag(): number {
    return this.is === 'following' ? this.tail.sequence - this.done.sequence : 0
  }

  /** Whether it is near the end of the log, as far as that is known. */
  isWithin(records: number): boolean {
    return this.hasBeenCurrent && this.tail.sequence - this.done.sequence <= records
  }

  /** Reads the rest of the log, since records may have been missed. `onCurrent`: called if the first try succeeds. */
  read(onCurrent: () => void = () => {}): void {
    if (this.is !== 'following') return
    if (this.reading) {
      this.hasMissed = true
      return
    }
    this.catchUp(caughtUp => {
      if (caughtUp) onCurrent()
      else this.readLater()
    })
  }

  /**
   * Reads everything that the log has, and calls back when that is applied: with the first reading that was asked for
   * after the call, whatever comes meanwhile. `undefined`: it could not be read, or does not reach back to here.
   */
  catchUp(onDone: OnCaughtUp): void {
    if (this.is !== 'following') return onDone(undefined)
    if (this.reading) {
      // The reading in flight was asked for before this call, so another one follows it.
      this.reading.push(onDone)
    } else {
      this.reading = [onDone]
      this.readPage()
    }
  }

  private readPage(): void {
    const { log, options } = this.parts
    const asked = this.reading?.length ?? 0
    this.hasMissed = false
    log.read(this.shard, this.tail.sequence, options.pageBytesMax, outcome => {
      if (this.is !== 'following' || outcome.kind === 'unknown') return this.endReading()
      const { records, last, takeover } = outcome
      const before = this.tail.sequence
      if (last < before) this.getAhead()
      for (const record of records) if (record.sequence > before) this.takeNext(record)
      if (this.is !== 'following') return this.endReading()
      const isCurrent = this.tail.sequence >= last
      if (!isCurrent && this.tail.sequence === before) return this.endReading()
      this.afterApplied(this.lastStep, () => {
        if (this.is !== 'following') this.endReading()
        else if (isCurrent) this.notifyCurrent(asked, { takeover })
        else this.readPage()
      })
    })
  }

  /**
   * Calls back the first `asked` waiting callers. Later callers came after the reading was asked for: reads again for
   * them, without letting the first ones wait.
   */
  private notifyCurrent(asked: number, caughtUp: CaughtUp): void {
    this.hasBeenCurrent = true
    const waiting = this.reading ?? []
    const due = waiting.splice(0, asked)
    const mustReadMore = waiting.length > 0 || this.hasMissed
    if (!mustReadMore) this.reading = undefined
    for (const onCaughtUp of due) onCaughtUp(caughtUp)
    if (!mustReadMore) return
    // A callback may have made this node the owner.
    if (this.is === 'following') this.readPage()
    else this.endReading()
  }

  private takeNext(record: LogRecord): void {
    if (this.is !== 'following') return
    if (record.sequence > this.tail.sequence + 1) this.is = 'incomplete'
    else this.take(record)
  }

  /** The reading has failed, or is not needed any more. */
  private endReading(): void {
    const waiting = this.reading ?? []
    this.reading = undefined
    for (const onCaughtUp of waiting) onCaughtUp(undefined)
    if (this.hasMissed) this.read()
  }

  private readLater(): void {
    const { clock, options } = this.parts
    clock.after(options.retryMs, () => this.read())
  }

  private take({ sequence, bytes }: LogRecord): void {
    const record = decodeRecord(bytes)
    if (!record) return this.stop(unreadable(sequence, bytes))
    const problem = misfit(this.shard, this.tail, record)
    if (problem !== undefined) {
      this.hasDiverged = true
      return this.stop(problem)
    }
    const { continues, continuesPrevious } = record.fragment
    if (continuesPrevious && this.begun.length === 0) return this.stop(`record ${record.sequence} goes on with nothing`)
    // An owner that was superseded in the middle of a step has not completed it.
    if (!continuesPrevious) this.begun = []
    this.begun.push(record.payload)
    this.tail = positionOf(bytes, record)
    if (continues) return
    const payload = this.begun.length === 1 ? record.payload : Buffer.concat(this.begun)
    this.begun = []
    this.pending.push({ payload, position: this.tail })
    this.pendingBytes += payload.length
    this.apply()
  }

  private apply(): void {
    const steps = this.pending
    const last = steps.at(-1)
    if (this.applying || !last) return
    this.pending = []
    this.pendingBytes = 0
    this.applying = last.position
    const payloads = steps.map(({ payload }) => payload)
    this.parts.host.apply(this.shard, payloads, last.position, failure => {
      this.applying = undefined
      if (this.is === 'closed') return
      if (failure) return isUnreadable(failure) ? this.stop(failure.message) : this.parts.onFailure(failure)
      this.reach(last.position)
      this.apply()
      if (this.hasMissed && !this.reading) this.read()
    })
  }

  /** The number of the last record that ends a step. */
  private get lastStep(): number {
    return (this.pending.at(-1)?.position ?? this.applying ?? this.done).sequence
  }

  /** Calls back when the record of this number is applied: perhaps at once, perhaps never. */
  afterApplied(sequence: number, run: () => void): void {
    if (sequence <= this.done.sequence) run()
    else this.waiters.push({ sequence, run })
  }

  private reach(position: LogPosition): void {
    this.done = position
    const due = this.waiters.filter(({ sequence }) => sequence <= position.sequence)
    if (due.length === 0) return
    this.waiters = this.waiters.filter(({ sequence }) => sequence > position.sequence)
    for (const { run } of due) run()
  }

  private getAhead(): void {
    this.is = 'ahead'
    this.parts.onAhead()
  }

  /**
   * Checks whether the log has again all records that are known here. If so, continues, and detects whether they are
   * the same.
   */
  resume(): void {
    if (this.is !== 'ahead') return
    const { log, onAhead } = this.parts
    log.read(this.shard, this.tail.sequence, 1, outcome => {
      if (this.is !== 'ahead' || outcome.kind === 'unknown' || outcome.last < this.tail.sequence) return
      this.is = 'following'
      this.read()
      onAhead()
    })
  }

  private stop(reason: string): void {
    if (this.is === 'stopped') return
    this.is = 'stopped'
    this.pending = []
    this.pendingBytes = 0
    this.parts.onStopped(this.shard, reason)
  }

  /** This node owns the shard from now on. Call it in the turn in which the copy was caught up. */
  own(): void {
    assert(this.is === 'following' && !this.isBusy, 'the copy has not applied every record')
    this.begun = []
    this.is = 'owned'
  }

  /** This owner's next record is durable. */
  advance(position: LogPosition): void {
    assert(
      this.is === 'owned' && position.sequence === this.tail.sequence + 1,
      'the record does not follow the last one',
    )
    this.tail = position
  }

  /**
   * This node is no longer the owner. The copy continues from the position that its host has written: if the node was
   * deposed, its last record may be part of a step that never became whole.
   */
  disown(): void {
    if (this.is !== 'owned') return
    const written = this.parts.host.position(this.shard)
    assert(written, 'the owner has no complete copy')
    this.is = 'following'
    this.begun = []
    this.tail = written
    this.reach(written)
    this.read()
  }

  /** A snapshot was installed that has everything up to a position, at least. `onCurrent`: as for `read`. */
  restart(position: LogPosition, onCurrent?: () => void): void {
    assert(this.is === 'incomplete' && !this.isBusy, 'only an incomplete copy takes a snapshot')
    this.tail = position
    this.done = position
    this.begun = []
    this.is = 'following'
    this.read(onCurrent)
  }

  /** Ends reading and applying. */
  close(): void {
    this.is = 'closed'
    this.waiters = []
    this.pending = []
  }
}
