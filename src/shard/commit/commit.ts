// Group commit: what all turns of one tick, or of a few, have decided becomes one batch, and replies leave when it is durable.
//
// One commit is in flight at a time; what is staged meanwhile is the next batch. Until a batch is durable its entities are pinned in
// memory (actor.ts), so that later turns see them, and every reply that depends on them waits here. If a commit fails its outcome is
// unknown: whoever waits is told so, nothing is taken any more, and the node ends (`onFailure`); a restart recovers from the disk.
//
// On one node this is also the log: a record is appended by being part of the batch, and RocksDB's own WAL is where it is kept. In a node of a
// cluster the rows of a batch go to the logs of their shards first (shard/replicate/replicator.ts), and count as durable when the store has them, too.

import type { Entity } from '../../domain/entities/entity.js'
import { emptyHistogram, observe } from '../../domain/histogram.js'
import { decodeImage } from '../../image.js'
import type { Batch, Clock, DiskRoom, RowSink, Store } from '../../ports.js'
import { encodeNumber } from '../keys.js'
import { stampKey } from '../layout.js'
import type { Replicator, StagedParts } from '../replicate/replicator.js'
import { apply } from '../turn/apply.js'
import type { ShardRecord } from '../turn/record.js'
import { ampleRoom } from '../turn/room.js'
import type { PathCounts } from './directory.js'

/** Where records go to become durable. */
export interface RecordLog {
  /**
   * Makes a record durable and applies it; `row` is the whole row of its id afterwards, `key` that row's key, `after` the entity (undefined:
   * it was deleted). Gives the number of the commit that carries it.
   */
  append(record: ShardRecord, key: Buffer, row: Buffer | undefined, after: Entity | undefined): number
  /** Calls back when commit number `commit` is durable, with the failure if its outcome is unknown. */
  afterCommit(commit: number, onDurable: Waiter): void
  /** The number of the last commit that is durable: what belongs to a later one is still staged. */
  readonly durable: number
  /** Whether so much is staged that nothing more should be. */
  readonly isFull: boolean
}

export type Waiter = (failure?: Error) => void

/** Has rows to write on which no reply depends: they go along with a commit that comes anyway, or soon with one of their own. */
export interface Rider {
  /** Puts what there is into a batch that is about to be committed. */
  board(batch: RowSink): void
}

/** How soon a commit that found no room at all looks again. */
const roomWaitMs = 50

/** How long riders wait for a commit that comes anyway. */
const ridersWaitMs = 100

/**
 * A commit takes what so many ticks bring, as long as each brings something. Clients that wait for it come back together; with one tick they fall
 * into two halves that commit in turn. 64 connections, three runs with each number side by side: an update takes 4 % less CPU time with 3 than
 * with 1, one that notifies 11 to 30 % less, 13 % more of these per second; with 4 updates become slower again.
 */
const ticksMax = 3

/** Told of changes once they are durable, in order, before anybody who waits for them. */
export interface Follower {
  /** Whether it is to be told of a change that has just been staged. */
  wants(record: ShardRecord): boolean
  /** `after` is the entity as it now is; undefined when it has gone. */
  follow(record: ShardRecord, after: Entity | undefined): void
}

interface Followed {
  readonly follower: Follower
  readonly record: ShardRecord
  readonly after: Entity | undefined
}

/** Bounds for the times of commits, in seconds: from a write to memory to a disk that struggles. */
const commitBoundsS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

/** One batch being filled, or on its way. */
interface Filling {
  readonly batch: Batch
  readonly ordered: OrderedRows
  /** What it does to each shard; undefined where nobody else is told. */
  readonly parts: StagedParts | undefined
  /** What followers are to be told. */
  changes: Followed[]
  waiters: Waiter[]
}

/**
 * Rows of the type index, kept until their batch is full. [hot] In order of creation each stands right behind the one before, and the
 * store finds its place from there; between rows of entities it had to look for each from the top (bench `create`).
 */
class OrderedRows implements RowSink {
  private readonly rows: { readonly key: Buffer; readonly value: Buffer | undefined }[] = []

  put(key: Buffer, value: Buffer): void {
    this.rows.push({ key, value })
  }

  del(key: Buffer): void {
    this.rows.push({ key, value: undefined })
  }

  flush(batch: Batch): void {
    for (const { key, value } of this.rows)
      if (value) batch.put(key, value)
      else batch.del(key)
    this.rows.length = 0
  }
}

const emptyFilling = (store: Store, replicator: Replicator | undefined): Filling => ({
  batch: store.batch(),
  ordered: new OrderedRows(),
  parts: replicator?.staging(),
  changes: [],
  waiters: [],
})

export class GroupCommit implements RecordLog {
  durable = 0
  /** Seconds from handing a batch to the store until it was written (the call itself), and from then until it was durable. */
  /** In a node of a cluster the first is what its logs take, and the second what the store takes. */
  readonly times = { write: emptyHistogram(commitBoundsS), sync: emptyHistogram(commitBoundsS), lastMs: 0 }
  private readonly store: Store
  private readonly clock: Clock
  private readonly directory: PathCounts
  private readonly attributes: PathCounts
  private readonly lastStamp: () => number
  private readonly onFailure: (failure: Error) => void
  private readonly through: (record: ShardRecord) => ShardRecord
  private readonly replicator: Replicator | undefined
  private readonly room: DiskRoom
  private readonly followers: Follower[] = []
  private readonly riders: Rider[] = []
  private ridersWait = false
  /** They have waited long enough: they go with the next commit, whatever else there is to commit. */
  private ridersOverdue = false
  /** Number of the batch being filled. The one in flight, if any, is the number before. */
  private number = 1
  private filling: Filling
  private flying: Filling
  private inFlight = false
  /** The shards that the batch in flight is about, when others are told of it. */
  private aloft: ReadonlySet<number> = new Set()
  private scheduled = false
  /** That have ended since a commit was scheduled, and how many rows there were at the last end. */
  private ticks = 0
  private rowsWaiting = 0
  private failure: Error | undefined
  private readonly stamp = stampKey()

  /**
   * `through` stands between turns and the log: tests send every record through its bytes there. `replicator`: brings what is staged to the logs
   * of a cluster. `room`: without any, commits wait, since one that fails would end the node.
   */
  constructor(
    store: Store,
    clock: Clock,
    directory: PathCounts,
    attributes: PathCounts,
    lastStamp: () => number,
    onFailure: (failure: Error) => void,
    through: (record: ShardRecord) => ShardRecord = record => record,
    replicator?: Replicator,
    room: DiskRoom = ampleRoom,
  ) {
    this.store = store
    this.clock = clock
    this.directory = directory
    this.attributes = attributes
    this.lastStamp = lastStamp
    this.onFailure = onFailure
    this.through = through
    this.replicator = replicator
    this.room = room
    this.filling = emptyFilling(store, replicator)
    this.flying = emptyFilling(store, replicator)
  }

  /** Why nothing is taken any more; undefined while all is well. */
  get failed(): Error | undefined {
    return this.failure
  }

  /** Adds one who is told of changes staged from now on. */
  tell(follower: Follower): void {
    this.followers.push(follower)
  }

  /** Adds one whose rows go along with every commit. */
  carry(rider: Rider): void {
    this.riders.push(rider)
  }

  /** A rider has something to write. */
  awaitRiders(): void {
    if (this.ridersWait || this.failure) return
    this.ridersWait = true
    this.clock.after(ridersWaitMs, () => {
      if (this.ridersWait) this.hasten()
    })
  }

  /** Has riders board the batch that is being filled, and commits it even if it is otherwise empty. Gives the number of its commit. */
  hasten(): number {
    this.ridersOverdue = true
    this.schedule()
    return this.number
  }

  get isFull(): boolean {
    return this.replicator !== undefined && this.filling.parts!.isFull
  }

  /** Whether anything of a shard is staged, or on its way. */
  holds(shard: number): boolean {
    return this.filling.parts!.holds(shard) || (this.inFlight && this.aloft.has(shard))
  }

  append(record: ShardRecord, key: Buffer, row: Buffer | undefined, after: Entity | undefined): number {
    const logged = this.through(record)
    const { batch, ordered, parts } = this.filling
    if (!parts) apply(logged, key, row, batch, ordered, this.directory, this.attributes)
    else {
      const { shard } = logged
      const sinks = [parts.sink(shard, batch), parts.sink(shard, ordered)] as const
      apply(logged, key, row, ...sinks, this.directory, this.attributes)
    }
    for (const follower of this.followers)
      if (follower.wants(logged))
        this.filling.changes.push({ follower, record: logged, after: logged === record ? after : decoded(logged) })
    this.schedule()
    return this.number
  }

  /**
   * Writes a row that is no entity's and that no index follows, or deletes it; its key begins with its kind and its shard. Gives the number of the
   * commit that carries it.
   */
  write(key: Buffer, row: Buffer | undefined): number {
    const sink = this.rowSink()
    if (row) sink.put(key, row)
    else sink.del(key)
    this.schedule()
    return this.number
  }

  afterCommit(commit: number, onDurable: Waiter): void {
    if (this.failure || commit <= this.durable) onDurable(this.failure)
    else if (commit === this.number) this.filling.waiters.push(onDurable)
    else this.flying.waiters.push(onDurable)
  }

  private rowSink(): RowSink {
    const { batch, parts } = this.filling
    return parts ? parts.sinkByKey(batch) : batch
  }

  /** Calls back when what has been written is also durable: at once when no commit is in flight. */
  afterFlight(onDurable: Waiter): void {
    this.afterCommit(this.inFlight ? this.number - 1 : this.durable, onDurable)
  }

  /** Resolves when everything staged so far is durable, or is known not to be. */
  drain(): Promise<void> {
    return new Promise(resolve => this.afterAll(() => resolve()))
  }

  /** Calls back when everything staged so far is durable, what rides along included. */
  afterAll(onDurable: Waiter): void {
    if (this.ridersWait) this.hasten()
    const last = this.filling.batch.length > 0 || this.ridersOverdue ? this.number : this.number - 1
    this.afterCommit(last, onDurable)
  }

  /** A commit begins at the end of a tick (ticksMax): beginning it at once cost 8 % in smaller batches. */
  private schedule(): void {
    if (this.scheduled || this.inFlight) return
    this.scheduled = true
    this.ticks = 0
    this.rowsWaiting = 0
    this.clock.endOfTick(this.onTickEnd)
  }

  private readonly onTickEnd = (): void => {
    const rows = this.filling.batch.length
    if (!this.inFlight && rows > this.rowsWaiting && ++this.ticks < ticksMax) {
      this.rowsWaiting = rows
      return this.clock.endOfTick(this.onTickEnd)
    }
    if (this.room.isExhausted) return void this.clock.after(roomWaitMs, this.onTickEnd)
    this.scheduled = false
    if (!this.inFlight) this.flush()
  }

  private flush(): void {
    const { filling } = this
    const sink = this.rowSink()
    if ((filling.batch.length === 0 && !this.ridersOverdue) || this.failure) return
    this.filling = this.flying
    this.flying = filling
    this.number++
    this.inFlight = true
    filling.ordered.flush(filling.batch)
    this.directory.flush(sink)
    this.attributes.flush(sink)
    for (const rider of this.riders) rider.board(sink)
    this.ridersWait = false
    this.ridersOverdue = false
    if (this.replicator) this.replicate(filling, this.replicator)
    else this.commit(filling)
  }

  private commit(filling: Filling): void {
    filling.batch.put(this.stamp, encodeNumber(this.lastStamp()))
    const startedMs = this.clock.monoMs()
    let writtenMs = startedMs
    this.store.commit(filling.batch, error => {
      this.noteTimes(startedMs, writtenMs)
      this.onCommitted(filling, error)
    })
    writtenMs = this.clock.monoMs()
  }

  /** As `commit`, by way of the logs: what takes time there counts as writing. */
  private replicate(filling: Filling, replicator: Replicator): void {
    const startedMs = this.clock.monoMs()
    let appendedMs = startedMs
    const parts = filling.parts!.take(this.lastStamp())
    this.aloft = new Set(parts.map(({ shard }) => shard))
    const onAppended = (): void => {
      appendedMs = this.clock.monoMs()
    }
    replicator.commit(filling.batch, parts, onAppended, error => {
      this.noteTimes(startedMs, appendedMs)
      this.onCommitted(filling, error)
    })
  }

  private noteTimes(startedMs: number, writtenMs: number): void {
    const { times } = this
    const endedMs = this.clock.monoMs()
    observe(times.write, (writtenMs - startedMs) / 1000)
    observe(times.sync, (endedMs - writtenMs) / 1000)
    times.lastMs = endedMs - startedMs
  }

  private onCommitted(flown: Filling, error: Error | undefined): void {
    this.inFlight = false
    if (error) return this.fail(error)
    this.durable++
    const { waiters, changes } = flown
    flown.waiters = []
    flown.changes = []
    flown.batch.clear()
    for (const { follower, record, after } of changes) follower.follow(record, after)
    for (const waiter of waiters) waiter()
    if (this.filling.batch.length > 0 || this.ridersOverdue) this.schedule()
  }

  private fail(error: Error): void {
    this.failure = error
    const waiters = [...this.flying.waiters, ...this.filling.waiters]
    this.flying.waiters = []
    this.filling.waiters = []
    for (const waiter of waiters) waiter(error)
    this.onFailure(error)
  }
}

const decoded = ({ image }: ShardRecord): Entity | undefined => image && decodeImage(image)
