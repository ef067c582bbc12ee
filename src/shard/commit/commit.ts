// Group commit: the records of all turns of one tick, or of a few, become one batch, and replies leave when it is
// durable.
//
// The log divides the shards into lanes (commit-log.ts). One commit of a lane is in flight at a time; records staged
// meanwhile belong to the next one. Until a commit is durable its entities are pinned in memory (turn/actor.ts), so
// that later turns see them, and every reply that depends on them waits here. If a commit fails its outcome is unknown.
// Then each waiting client gets a failure, no more requests are accepted, and the node ends (`onFailure`); a restart
// recovers from the disk.
//
// A single node has one lane, so one commit is in flight. In a cluster each shard has a lane, and several commits are
// in flight: a commit takes all lanes that have something staged and nothing in flight. Where several engines keep the
// logs, the lanes of each engine have commits of their own, so that none waits for a slower engine. Some commits are
// whole: they take everything that is staged, and overlap with no other one. So there is never a record in the log that
// relies on a change of the register which the log may lack. These are whole:
//
//   a commit with anything of the register, or with piggybacked writes that belong to all of it
//   the commit before a quiet moment, if followers have not received a durable change yet
//   the commit before counts in memory are forgotten, or before everything is durable (`afterAll`)
//
// In a cluster other nodes may have taken over some of the shards. Then the rest of the commit is durable, and work
// continues: the waiters get an error that names those shards (deposed.ts).
//
//   nothing staged -> gathering (ticks, or a gap, bring more) -> in flight -> durable, or failed for good
//
// Not here: the parts of commits by lane (fillings.ts), how a batch becomes durable (commit-log.ts), the rows of a
// record (turn/apply.ts), the order in which followers receive changes (change-queue.ts).

import type { Entity } from '../../domain/entities/entity.js'
import type { Clock, DiskRoom, RowSink } from '../../ports.js'
import type { ShardRecord } from '../turn/apply.js'
import { apply } from '../turn/apply.js'
import { ampleRoom } from '../turn/room.js'
import { type ChangeFollower, ChangeQueue } from './change-queue.js'
import type { CommitLog, CommitTimes } from './commit-log.js'
import type { PathCounts } from './counts.js'
import { isDeposed } from './deposed.js'
import { afterEach, type Filling, Fillings, type Waiter } from './fillings.js'

/** Accepts records and makes them durable. */
export interface RecordLog {
  /**
   * Applies a record and stages it. `row` is the whole row of its id afterwards, `key` that row's key, `after` the
   * entity (undefined: it was deleted). Returns the number of the commit that carries it.
   */
  append(record: ShardRecord, key: Buffer, row: Buffer | undefined, after: Entity | undefined): number
  /**
   * Calls back when commit number `commit` is durable, with the failure if it is not, or not for all shards
   * (`hasLost`). A caller that has staged something must call in the same tick: the losses of a commit are forgotten
   * when it has ended.
   */
  afterCommit(commit: number, onDurable: Waiter): void
  /** Whether the commit with a number is durable; 0: there is none. Later commits may be durable before it. */
  isDurable(commit: number): boolean
  /** Whether so much is staged that nothing more should be. */
  readonly isFull: boolean
}

/** Has rows on which no reply depends. They go along with the next commit, or soon with a commit of their own. */
export interface PiggybackedWrites {
  /** Whether its pending rows belong to all that is staged, and must become durable with it. */
  readonly isWhole: boolean
  /** Puts its pending rows into a batch that is about to be committed. */
  writeTo(batch: RowSink): void
}

/** How soon a commit checks again after the disk had no room at all. */
const roomWaitMs = 50

/** How long piggybacked writes wait for a commit of other records. */
const piggybackWaitMs = 100

/**
 * The number of ticks for which a commit gathers records, as long as each tick brings some. Clients that wait for it
 * return together; with one tick they fall into two halves that commit in turn. 64 connections, three runs with each
 * number side by side: an update takes 4 % less CPU time with 3 than with 1, one that notifies 11 to 30 % less, 13 %
 * more of these per second; with 4 updates become slower again.
 */
const ticksMax = 3

/** The longest list of durable changes that wait for an earlier one before followers receive them. */
export const changesWaitingMax = 10_000

const noGroups: readonly number[] = []

/** A commit in flight. */
interface Flight {
  readonly isWhole: boolean
  /** The group of its lanes; of a whole one, that of the whole lane. */
  readonly group: number
  fillings: readonly Filling[]
  readonly waiters: Waiter[]
}

export interface CommitParts {
  readonly log: CommitLog
  readonly clock: Pick<Clock, 'monoMs' | 'after' | 'endOfTick'>
  /** Counts of entities by type, and of attributes. */
  readonly directory: PathCounts
  readonly attributes: PathCounts
  /** Called once, when the outcome of a commit is unknown. */
  readonly onFailure: (failure: Error) => void
  /** The room on the disk. When it is exhausted commits wait, because a failed commit would end the node. */
  readonly room?: DiskRoom | undefined
}

export class GroupCommit implements RecordLog {
  private readonly parts: CommitParts
  private readonly room: DiskRoom
  private readonly followers: ChangeFollower[] = []
  private readonly changes = new ChangeQueue()
  private readonly piggybacked: PiggybackedWrites[] = []
  /**
   * Whether there are piggybacked writes; `overdue`: they go with the next commit, even if there is nothing else to
   * commit.
   */
  private piggyback: 'none' | 'waiting' | 'overdue' = 'none'
  private readonly fillings: Fillings
  private readonly flights = new Set<Flight>()
  private readonly groups: readonly number[]
  /** While piggybacked writes are staged: the callers that wait for the commit that begins. */
  private beginning: Waiter[] | undefined
  /** The callers that wait until nothing is in flight. */
  private quietWaiters: Waiter[] = []
  private quietFailure: Error | undefined
  /** `ticks`: the ticks that have ended since it began. `operations`: the number of operations at the last end. */
  private gathering: { ticks: number; operations: number } | undefined
  /** When the latest commit began. */
  private begunMs = Number.NEGATIVE_INFINITY
  private failure: Error | undefined

  constructor(parts: CommitParts) {
    this.parts = parts
    this.room = parts.room ?? ampleRoom
    this.fillings = new Fillings(parts.log)
    this.groups = Array.from({ length: parts.log.groups }, (_, group) => group)
  }

  /** The times that commits took. */
  get times(): CommitTimes {
    return this.parts.log.times
  }

  /** The failure after which no more requests are accepted; undefined while there is none. */
  get failed(): Error | undefined {
    return this.failure
  }

  get isFull(): boolean {
    return this.parts.log.isFull
  }

  /** Whether anything of a shard is staged or in flight. */
  holds(shard: number): boolean {
    return this.fillings.holds(this.parts.log.laneOf(shard))
  }

  // [hot] For every request by id.
  isDurable(commit: number): boolean {
    return commit === 0 || !this.fillings.get(commit)
  }

  /** Adds a follower, which receives changes staged from now on. */
  addFollower(follower: ChangeFollower): void {
    this.followers.push(follower)
  }

  /** Adds a source of piggybacked writes, which is asked at every commit. */
  carry(writes: PiggybackedWrites): void {
    this.piggybacked.push(writes)
  }

  /** Notes that there are piggybacked writes. */
  awaitPiggybacked(): void {
    if (this.piggyback !== 'none' || this.failure) return
    this.piggyback = 'waiting'
    this.parts.clock.after(piggybackWaitMs, () => {
      if (this.piggyback !== 'waiting') return
      this.piggyback = 'overdue'
      this.schedule()
    })
  }

  /** Begins a whole commit soon, even if there is nothing but piggybacked writes. Returns its number. */
  commitSoon(): number {
    this.piggyback = 'overdue'
    const { number } = this.fillings.stagedOf(this.parts.log.wholeLane)
    this.schedule()
    return number
  }

  append(record: ShardRecord, key: Buffer, row: Buffer | undefined, after: Entity | undefined): number {
    const { directory, attributes, log } = this.parts
    const { shard } = record
    const filling = this.fillings.stagedOf(log.laneOf(shard))
    const { batch, number } = filling
    apply(record, key, row, batch.rowsOf(shard), batch.orderedOf(shard), directory, attributes)
    for (const follower of this.followers)
      if (follower.wants(record)) this.changes.add({ follower, record, after, carriedBy: filling })
    this.schedule()
    return number
  }

  /**
   * Writes or deletes a row that belongs to no entity and has no index entries. Its key begins with its kind and its
   * shard. Returns the number of the commit that carries it.
   */
  write(key: Buffer, row: Buffer | undefined): number {
    const { batch, number } = this.fillings.stagedOf(this.parts.log.laneOfKey(key))
    if (row) batch.rows.put(key, row)
    else batch.rows.del(key)
    this.schedule()
    return number
  }

  afterCommit(commit: number, onDurable: Waiter): void {
    const filling = this.fillings.get(commit)
    if (this.failure || !filling) onDurable(this.failure)
    else filling.waiters.push(onDurable)
  }

  /** Calls back when all these commits are durable: with the failure of one if there are several. */
  afterCommits(commits: Iterable<number>, onDurable: Waiter): void {
    const fillings = [...commits].flatMap(commit => this.fillings.get(commit) ?? [])
    afterEach(fillings, this.failure, onDurable)
  }

  /** Calls back when all commits that are in flight now are durable: at once when there are none. */
  afterFlight(onDurable: Waiter): void {
    if (this.beginning) this.beginning.push(onDurable)
    else afterEach([...this.flights], this.failure, onDurable)
  }

  /**
   * Calls back at a moment when nothing is in flight and followers have received every durable change. It passes a
   * failure of a commit that had to end first.
   */
  whenQuiet(onQuiet: Waiter): void {
    if (this.failure || this.isQuiet) return onQuiet(this.failure)
    this.quietWaiters.push(onQuiet)
    this.schedule()
  }

  private get isQuiet(): boolean {
    return this.flights.size === 0 && !this.changes.isBehind
  }

  /** Resolves when everything staged so far is durable, or is known not to be. */
  drain(): Promise<void> {
    return new Promise(resolve => this.afterAll(() => resolve()))
  }

  /** Calls back when everything staged so far is durable, piggybacked writes included. */
  afterAll(onDurable: Waiter): void {
    if (this.piggyback !== 'none' && !this.failure) this.commitSoon()
    afterEach([...this.fillings.all()], this.failure, onDurable)
  }

  /**
   * Begins to gather a commit, unless it must wait for one in flight. The commit begins at the end of a tick (ticksMax):
   * without that wait, smaller batches cost 8 %. If the log wants a gap between commits, it begins after the gap.
   */
  private schedule(): void {
    if (this.gathering || !this.mayBegin) return
    this.gathering = { ticks: 0, operations: 0 }
    const { clock, log } = this.parts
    const { gapMs } = log
    const waitMs = gapMs > 0 ? this.begunMs + gapMs - clock.monoMs() : 0
    if (waitMs > 0) clock.after(waitMs, this.onTickEnd)
    else clock.endOfTick(this.onTickEnd)
  }

  // [hot] For every change.
  /** Whether there is something to commit, and no commit in flight that it has to wait for. */
  private get mayBegin(): boolean {
    const { flights, fillings } = this
    if (this.failure || !(fillings.hasStaged || this.piggyback === 'overdue')) return false
    if (flights.size === 0) return true
    const rooms = this.groupsWithRoom
    if (rooms.length === 0 || this.quietWaiters.length > 0 || this.mustBeWhole) return false
    for (const { isWhole } of flights) if (isWhole) return false
    const { log } = this.parts
    return fillings.hasFreeLane(lane => rooms.includes(log.groupOf(lane))) || this.piggyback === 'overdue'
  }

  // [hot] For every change.
  /** The groups of lanes of which one more commit may be in flight. */
  private get groupsWithRoom(): readonly number[] {
    const { groups, inFlightMax } = this.parts.log
    if (this.flights.size < inFlightMax) return this.groups
    if (groups === 1) return noGroups
    const inFlight = [...this.flights].map(({ group }) => group)
    return this.groups.filter(group => inFlight.filter(one => one === group).length < inFlightMax)
  }

  /** Whether the next commit overlaps with no other one. */
  private get mustBeWhole(): boolean {
    const { log, directory, attributes } = this.parts
    return (
      this.fillings.isStaged(log.wholeLane) ||
      directory.mustForget ||
      attributes.mustForget ||
      this.changes.length > changesWaitingMax ||
      (this.quietWaiters.length > 0 && this.changes.isBehind) ||
      this.piggybacked.some(({ isWhole }) => isWhole)
    )
  }

  private readonly onTickEnd = (): void => {
    const { gathering } = this
    if (!gathering || this.failure) return
    const { operations } = this.fillings
    if (operations > gathering.operations && ++gathering.ticks < ticksMax) {
      gathering.operations = operations
      return this.parts.clock.endOfTick(this.onTickEnd)
    }
    if (this.room.isExhausted) return void this.parts.clock.after(roomWaitMs, this.onTickEnd)
    this.gathering = undefined
    if (this.mayBegin) this.begin()
  }

  private begin(): void {
    const { log, clock } = this.parts
    const { fillings, groupsWithRoom: rooms, mustBeWhole } = this
    const isAlone = this.flights.size === 0
    const isFree = (lane: number): boolean =>
      !fillings.isBusy(lane) && (mustBeWhole || rooms.includes(log.groupOf(lane)))
    const waiters: Waiter[] = []
    this.beginning = waiters
    this.stageAlong(shard => isFree(log.laneOf(shard)))
    this.beginning = undefined
    // Counts and piggybacked writes may be rows of the register. If other commits are in flight, these rows wait.
    const isWhole = mustBeWhole || (isAlone && fillings.isStaged(log.wholeLane))
    const due = fillings.take(({ lane }) => isFree(lane) && (isWhole || lane !== log.wholeLane))
    const begun = this.flightsOf(due, isWhole, rooms)
    for (const flight of begun) this.flights.add(flight)
    for (const waiter of waiters) this.afterFlight(waiter)
    if (begun.length === 0) return
    this.begunMs = clock.monoMs()
    for (const flight of begun) {
      const batches = flight.fillings.map(({ batch }) => batch)
      log.commit(batches, failure => this.onCommitted(flight, failure))
    }
    this.schedule()
  }

  /** One for all that is due, if it is whole, or else one for each group. */
  private flightsOf(due: readonly Filling[], isWhole: boolean, groups: readonly number[]): Flight[] {
    const { log } = this.parts
    if (due.length === 0) return []
    if (isWhole) return [{ isWhole, group: log.groupOf(log.wholeLane), fillings: due, waiters: [] }]
    return groups.flatMap(group => {
      const fillings = due.filter(({ lane }) => log.groupOf(lane) === group)
      return fillings.length > 0 ? { isWhole, group, fillings, waiters: [] } : []
    })
  }

  /**
   * Stages counts of the lanes that the next commit takes, and piggybacked writes of all lanes: those of a lane with
   * something in flight go with its next commit.
   */
  private stageAlong(takes: (shard: number) => boolean): void {
    const { directory, attributes, log } = this.parts
    const sink: RowSink = {
      put: (key, value) => this.fillings.stagedOf(log.laneOfKey(key)).batch.rows.put(key, value),
      del: key => this.fillings.stagedOf(log.laneOfKey(key)).batch.rows.del(key),
    }
    directory.flush(sink, takes)
    attributes.flush(sink, takes)
    for (const writes of this.piggybacked) writes.writeTo(sink)
    this.piggyback = 'none'
  }

  private onCommitted(flight: Flight, failure: Error | undefined): void {
    if (this.failure) return
    if (failure && !isDeposed(failure)) return this.fail(failure)
    this.flights.delete(flight)
    this.end(flight, failure)
    this.changes.deliver()
    for (const { waiters } of [...flight.fillings, flight]) for (const waiter of waiters) waiter(failure)
    if (this.quietWaiters.length > 0) this.quietFailure ??= failure
    if (this.isQuiet) this.reportQuiet()
    this.schedule()
  }

  private end({ fillings }: Flight, failure: Error | undefined): void {
    const { directory, attributes, log } = this.parts
    for (const filling of fillings) this.fillings.end(filling, { failure })
    const isWritten = (shard: number): boolean => !this.fillings.isBusy(log.laneOf(shard))
    directory.settle(isWritten)
    attributes.settle(isWritten)
  }

  private reportQuiet(): void {
    const failure = this.quietFailure
    this.quietFailure = undefined
    for (const waiter of this.quietWaiters.splice(0)) waiter(failure)
  }

  private fail(failure: Error): void {
    this.failure = failure
    const waiters = [...this.flights, ...this.fillings.all()].flatMap(one => one.waiters.splice(0))
    for (const waiter of [...waiters, ...this.quietWaiters.splice(0)]) waiter(failure)
    this.parts.onFailure(failure)
  }
}
