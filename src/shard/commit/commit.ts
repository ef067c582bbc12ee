// Group commit: what all turns of one tick, or of a few, have decided becomes one batch, and replies leave when it is
// durable.
//
// One commit is in flight at a time; what is staged meanwhile is the next batch. Until a batch is durable its entities
// are pinned in memory (turn/actor.ts), so that later turns see them, and every reply that depends on them waits here.
// If a commit fails its outcome is unknown: each client that waits gets a failure, nothing is taken any more, and the
// node ends (`onFailure`); a restart recovers from the disk.
//
// In a cluster other nodes may have taken over some of the shards. Then the rest of the commit is durable, and all goes
// on: those who wait are told which shards it is about (deposed.ts).
//
//   idle -> gathering (ticks bring more) -> committing -> idle, or gathering at once if more is staged
//                                        -> failed, for good
//
// Not here: how a batch becomes durable (commit-log.ts), what a record writes (turn/apply.ts).

import type { Entity } from '../../domain/entities/entity.js'
import type { Clock, DiskRoom, RowSink } from '../../ports.js'
import type { ShardRecord } from '../turn/apply.js'
import { apply } from '../turn/apply.js'
import { ampleRoom } from '../turn/room.js'
import type { CommitLog, CommitTimes, OpenBatch } from './commit-log.js'
import type { PathCounts } from './counts.js'
import { hasLost, isDeposed } from './deposed.js'

/** Where records go to become durable. */
export interface RecordLog {
  /**
   * Makes a record durable and applies it; `row` is the whole row of its id afterwards, `key` that row's key, `after`
   * the entity (undefined: it was deleted). Gives the number of the commit that carries it.
   */
  append(record: ShardRecord, key: Buffer, row: Buffer | undefined, after: Entity | undefined): number
  /**
   * Calls back when commit number `commit` is durable, with the failure if it is not, or not for all shards
   * (`hasLost`). A caller that has staged something must call in the same tick: the losses of a commit are forgotten
   * when it has ended.
   */
  afterCommit(commit: number, onDurable: Waiter): void
  /** The number of the last commit that is durable: what belongs to a later one is still staged. */
  readonly durable: number
  /** Whether so much is staged that nothing more should be. */
  readonly isFull: boolean
}

export type Waiter = (failure?: Error) => void

/**
 * Has rows to write on which no reply depends: they go along with a commit that comes anyway, or soon with one of their
 * own.
 */
export interface PiggybackedWrites {
  /** Puts what there is into a batch that is about to be committed. */
  writeTo(batch: RowSink): void
}

/** Told of changes once they are durable, in order, before any client that waits for them. */
export interface ChangeFollower {
  /** Whether it is to be told of a change that has just been staged. */
  wants(record: ShardRecord): boolean
  /** `after` is the entity as it now is; undefined when it has gone. */
  follow(record: ShardRecord, after: Entity | undefined): void
}

/** How soon a commit that found no room at all looks again. */
const roomWaitMs = 50

/** How long riders wait for a commit that comes anyway. */
const piggybackWaitMs = 100

/**
 * A commit takes what so many ticks bring, as long as each brings something. Clients that wait for it come back
 * together; with one tick they fall into two halves that commit in turn. 64 connections, three runs with each number
 * side by side: an update takes 4 % less CPU time with 3 than with 1, one that notifies 11 to 30 % less, 13 % more of
 * these per second; with 4 updates become slower again.
 */
const ticksMax = 3

interface Followed {
  readonly follower: ChangeFollower
  readonly record: ShardRecord
  readonly after: Entity | undefined
}

/** One batch being filled, or on its way. */
interface Filling {
  readonly batch: OpenBatch
  /** What followers are to be told. */
  changes: Followed[]
  waiters: Waiter[]
}

type State =
  | { readonly kind: 'idle' }
  /** `ticks` that have ended since it began, and how many operations there were at the last end. */
  | { readonly kind: 'gathering'; ticks: number; operations: number }
  | { readonly kind: 'committing' }
  | { readonly kind: 'failed'; readonly failure: Error }

const idle: State = { kind: 'idle' }
const committing: State = { kind: 'committing' }

export interface CommitParts {
  readonly log: CommitLog
  readonly clock: Pick<Clock, 'after' | 'endOfTick'>
  /** Counts of entities by type, and of attributes. */
  readonly directory: PathCounts
  readonly attributes: PathCounts
  /** Told once, when the outcome of a commit is unknown. */
  readonly onFailure: (failure: Error) => void
  /** Of the disk. Without any, commits wait, since one that fails would end the node. */
  readonly room?: DiskRoom | undefined
}

export class GroupCommit implements RecordLog {
  durable = 0
  private readonly parts: CommitParts
  private readonly room: DiskRoom
  private readonly followers: ChangeFollower[] = []
  private readonly piggybacked: PiggybackedWrites[] = []
  /** Whether riders have rows: `overdue` if they go with the next commit, whatever else there is to commit. */
  private piggyback: 'none' | 'waiting' | 'overdue' = 'none'
  /** Number of the batch being filled. The one in flight, if any, is the number before. */
  private number = 1
  private filling: Filling
  private inFlight: Filling
  private state: State = idle

  constructor(parts: CommitParts) {
    this.parts = parts
    this.room = parts.room ?? ampleRoom
    this.filling = { batch: parts.log.open(), changes: [], waiters: [] }
    this.inFlight = { batch: parts.log.open(), changes: [], waiters: [] }
  }

  /** What commits took. */
  get times(): CommitTimes {
    return this.parts.log.times
  }

  /** Why nothing is taken any more; undefined while all is well. */
  get failed(): Error | undefined {
    return this.state.kind === 'failed' ? this.state.failure : undefined
  }

  get isFull(): boolean {
    return this.filling.batch.isFull
  }

  /** Whether anything of a shard is staged, or on its way. */
  holds(shard: number): boolean {
    return this.filling.batch.holds(shard) || this.inFlight.batch.holds(shard)
  }

  /** Adds one who is told of changes staged from now on. */
  tell(follower: ChangeFollower): void {
    this.followers.push(follower)
  }

  /** Adds one whose rows go along with every commit. */
  carry(writes: PiggybackedWrites): void {
    this.piggybacked.push(writes)
  }

  /** A rider has something to write. */
  awaitPiggybacked(): void {
    if (this.piggyback !== 'none' || this.state.kind === 'failed') return
    this.piggyback = 'waiting'
    this.parts.clock.after(piggybackWaitMs, () => {
      if (this.piggyback === 'waiting') this.commitSoon()
    })
  }

  /**
   * Has riders board the batch that is being filled, and commits it even if it is otherwise empty. Gives the number of
   * its commit.
   */
  commitSoon(): number {
    this.piggyback = 'overdue'
    this.schedule()
    return this.number
  }

  append(record: ShardRecord, key: Buffer, row: Buffer | undefined, after: Entity | undefined): number {
    const { directory, attributes } = this.parts
    const { batch, changes } = this.filling
    const { shard } = record
    apply(record, key, row, batch.rowsOf(shard), batch.orderedOf(shard), directory, attributes)
    for (const follower of this.followers) if (follower.wants(record)) changes.push({ follower, record, after })
    this.schedule()
    return this.number
  }

  /**
   * Writes a row that is no entity's and that no index follows, or deletes it; its key begins with its kind and its
   * shard. Gives the number of the commit that carries it.
   */
  write(key: Buffer, row: Buffer | undefined): number {
    const { rows } = this.filling.batch
    if (row) rows.put(key, row)
    else rows.del(key)
    this.schedule()
    return this.number
  }

  afterCommit(commit: number, onDurable: Waiter): void {
    const { failed } = this
    if (failed || commit <= this.durable) onDurable(failed)
    else if (commit === this.number) this.filling.waiters.push(onDurable)
    else this.inFlight.waiters.push(onDurable)
  }

  /** Calls back when what has been written is also durable: at once when no commit is in flight. */
  afterFlight(onDurable: Waiter): void {
    this.afterCommit(this.state.kind === 'committing' ? this.number - 1 : this.durable, onDurable)
  }

  /** Resolves when everything staged so far is durable, or is known not to be. */
  drain(): Promise<void> {
    return new Promise(resolve => this.afterAll(() => resolve()))
  }

  /** Calls back when everything staged so far is durable, what rides along included. */
  afterAll(onDurable: Waiter): void {
    if (this.piggyback === 'waiting') this.commitSoon()
    this.afterCommit(this.hasMore ? this.number : this.number - 1, onDurable)
  }

  private get hasMore(): boolean {
    return this.filling.batch.length > 0 || this.piggyback === 'overdue'
  }

  /** A commit begins at the end of a tick (ticksMax): beginning it at once cost 8 % in smaller batches. */
  private schedule(): void {
    if (this.state.kind !== 'idle') return
    this.state = { kind: 'gathering', ticks: 0, operations: 0 }
    this.parts.clock.endOfTick(this.onTickEnd)
  }

  private readonly onTickEnd = (): void => {
    const { state } = this
    if (state.kind !== 'gathering') return
    const operations = this.filling.batch.length
    if (operations > state.operations && ++state.ticks < ticksMax) {
      state.operations = operations
      return this.parts.clock.endOfTick(this.onTickEnd)
    }
    if (this.room.isExhausted) return void this.parts.clock.after(roomWaitMs, this.onTickEnd)
    this.flush()
  }

  private flush(): void {
    if (!this.hasMore) {
      this.state = idle
      return
    }
    const { filling } = this
    this.filling = this.inFlight
    this.inFlight = filling
    this.number++
    this.state = committing
    const { directory, attributes } = this.parts
    const { batch } = filling
    directory.flush(batch.rows)
    attributes.flush(batch.rows)
    for (const writes of this.piggybacked) writes.writeTo(batch.rows)
    this.piggyback = 'none'
    batch.commit(failure => this.onCommitted(filling, failure))
  }

  private onCommitted(flown: Filling, failure: Error | undefined): void {
    if (failure && !isDeposed(failure)) return this.fail(failure)
    this.state = idle
    this.durable++
    const { waiters, changes } = flown
    flown.waiters = []
    flown.changes = []
    for (const { follower, record, after } of changes)
      if (!failure || !hasLost(failure, record.shard)) follower.follow(record, after)
    for (const waiter of waiters) waiter(failure)
    if (this.hasMore) this.schedule()
  }

  private fail(failure: Error): void {
    this.state = { kind: 'failed', failure }
    const waiters = [...this.inFlight.waiters, ...this.filling.waiters]
    this.inFlight.waiters = []
    this.filling.waiters = []
    for (const waiter of waiters) waiter(failure)
    this.parts.onFailure(failure)
  }
}
