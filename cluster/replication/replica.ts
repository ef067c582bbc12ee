// A copy of one shard that follows its log: takes records in, makes sure that each belongs behind the one before, and
// has the host apply them.
//
//   log --told or read--> tail (taken in) --pending--> host --> applied
//
// What is told may begin anywhere and miss something; what does not fit behind the tail is read. A record that stands
// at the right place and has another past than ours, a version that nobody here knows: the copy stops and says so, for
// whatever it did then would be a guess. Where the log no longer reaches back to our tail, the copy is `incomplete`,
// and a snapshot is needed. Where the log ends before our tail, the engine has lost something: the copy is `ahead` and
// waits until that is there again (log-check.ts).
//
// While this node owns the shard its own appends move the copy (`advance`), and what is told is old news.
//
// Not here: who owns the shard (ownership.ts), where a snapshot comes from (snapshot-fetch.ts).

import assert from 'node:assert/strict'
import type { LogRecord, ShardLog, Takeover } from '../logs/shard-log.js'
import type { ClusterClock } from '../ports.js'
import { beginning, decodeRecord, misfit, positionOf, unreadable } from './log-record.js'
import type { ReplicationOptions } from './replication-options.js'
import { isUnreadable, type LogPosition, type ShardHost } from './shard-host.js'

/** What a copy needs. */
export interface ReplicaParts {
  readonly log: Pick<ShardLog, 'read'>
  readonly host: Pick<ShardHost, 'apply' | 'position'>
  readonly clock: Pick<ClusterClock, 'monoMs' | 'after'>
  readonly options: Pick<ReplicationOptions, 'pageBytesMax' | 'pendingBytesMax' | 'retryMs'>
  /** It cannot go on, ever: told once, with the reason in words. */
  readonly onStopped: (shard: number, reason: string) => void
  /** Its log ends before what is known here, or does so no longer. */
  readonly onAhead: () => void
  /** The host could not apply. */
  readonly onFailure: (failure: Error) => void
}

/** What is certain of a copy that had everything that the log had at a moment. */
export interface CaughtUp {
  /** The latest takeover at that moment. */
  readonly takeover: Takeover | undefined
  /** When it was asked for, which is not after that moment, on this node's clock. */
  readonly askedMs: number
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
 * What a copy is at the moment. `incomplete`: it needs a snapshot. `owned`: its node appends. `ahead`: its log has lost
 * what is known here.
 */
export type ReplicaState = 'following' | 'owned' | 'incomplete' | 'ahead' | 'stopped' | 'closed'

export class Replica {
  readonly shard: number
  private readonly parts: ReplicaParts
  private is: ReplicaState
  private tail: LogPosition
  private done: LogPosition
  /** Payloads of records that go on in the next one. */
  private begun: Buffer[] = []
  /** Steps that wait for the host, and up to where it is applying some. */
  private pending: Step[] = []
  private pendingBytes = 0
  private applying: LogPosition | undefined
  /** Who waits for what is being read; undefined: nothing is. */
  private reading: OnCaughtUp[] | undefined
  /** Whether records were told of that were not taken. */
  private hasMissed = false
  private hasBeenCurrent = false
  private waiters: Waiter[] = []

  /**
   * `position`: up to where the host has applied the shard's log; undefined: it has nothing that could be gone on from.
   */
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

  /** Whether the host is at work for it, or will be. */
  get isBusy(): boolean {
    return this.isApplying || this.pending.length > 0
  }

  /** Whether the host is at work for it. */
  get isApplying(): boolean {
    return this.applying !== undefined
  }

  /** A record that the log tells of. */
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

  /** Something may have been missed: reads what there is. */
  read(): void {
    if (this.is !== 'following') return
    if (this.reading) {
      this.hasMissed = true
      return
    }
    this.catchUp(caughtUp => {
      if (!caughtUp) this.readLater()
    })
  }

  /**
   * Reads everything that the log has, and calls back when that is applied: with the first reading that was asked for
   * after the call, whatever comes meanwhile. `undefined`: it could not be read, or does not reach back to here.
   */
  catchUp(onDone: OnCaughtUp): void {
    if (this.is !== 'following') return onDone(undefined)
    if (this.reading) {
      // What is under way was asked for before: once that has come it is read again.
      this.reading.push(onDone)
    } else {
      this.reading = [onDone]
      this.readPage()
    }
  }

  private readPage(): void {
    const { log, clock, options } = this.parts
    const askedMs = clock.monoMs()
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
        else if (isCurrent) this.tellCurrent(asked, { takeover, askedMs })
        else this.readPage()
      })
    })
  }

  /**
   * Tells the first who wait, and reads again for those who came after it was asked for, who need not be waited for.
   */
  private tellCurrent(asked: number, caughtUp: CaughtUp): void {
    this.hasBeenCurrent = true
    const waiting = this.reading ?? []
    const due = waiting.splice(0, asked)
    const goesOn = waiting.length > 0 || this.hasMissed
    if (!goesOn) this.reading = undefined
    for (const tell of due) tell(caughtUp)
    if (!goesOn) return
    // Whoever was told may own the shard now.
    if (this.is === 'following') this.readPage()
    else this.endReading()
  }

  private takeNext(record: LogRecord): void {
    if (this.is !== 'following') return
    if (record.sequence > this.tail.sequence + 1) this.is = 'incomplete'
    else this.take(record)
  }

  /** It could not be read, or need not be any more. */
  private endReading(): void {
    const waiting = this.reading ?? []
    this.reading = undefined
    for (const tell of waiting) tell(undefined)
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
    if (problem !== undefined) return this.stop(problem)
    const { continues: goesOn, continuesPrevious } = record.fragment
    if (continuesPrevious && this.begun.length === 0) return this.stop(`record ${record.sequence} goes on with nothing`)
    // Who was superseded in the middle of a step has not made it.
    if (!continuesPrevious) this.begun = []
    this.begun.push(record.payload)
    this.tail = positionOf(bytes, record)
    if (goesOn) return
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

  /** Looks whether the log has again what is known here: then it goes on, and finds out whether it is the same. */
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

  /** This node owns the shard from now on. To be called in the turn in which it was caught up. */
  own(): void {
    assert(this.is === 'following' && !this.isBusy, 'an owner has applied everything')
    this.begun = []
    this.is = 'owned'
  }

  /** This owner's next record is durable. */
  advance(position: LogPosition): void {
    assert(this.is === 'owned' && position.sequence === this.tail.sequence + 1, 'an owner appends one after the other')
    this.tail = position
  }

  /**
   * This node owns it no more. The copy goes on from what its host has written: if the node was deposed, its last
   * record may be part of a step that never became whole.
   */
  disown(): void {
    if (this.is !== 'owned') return
    const written = this.parts.host.position(this.shard)
    assert(written, 'an owner has a whole copy')
    this.is = 'following'
    this.begun = []
    this.tail = written
    this.reach(written)
    this.read()
  }

  /** A snapshot was put in that has everything up to a position, at least. */
  restart(position: LogPosition): void {
    assert(this.is === 'incomplete' && !this.isBusy, 'a snapshot is for who has nothing')
    this.tail = position
    this.done = position
    this.begun = []
    this.is = 'following'
    this.read()
  }

  /** Nothing is read or applied any more. */
  close(): void {
    this.is = 'closed'
    this.waiters = []
    this.pending = []
  }
}
