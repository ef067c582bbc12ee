// The shards of a node of a cluster, for the code that moves them: each is followed, or this node's own (ownership.ts).
//
// A followed shard is only rows in the store: its log decides what they are, and no reader uses them. When it
// becomes this node's own, the data that memory needs is read (`activate`). It is forgotten when the shard is given up
// (`seal`). So both cost the same for any size of shard. Only the register is in the memory of every node.
//
// When room on the disk is scarce, records of followed shards are not applied: their copies lag, and continue when
// there is room. The register is applied as long as anything can be written, because every node needs it and its
// changes wait for every node.
//
// Not here: the places of records and the owners, which the cluster decides; how own changes become records
// (replicated-log.ts).

import assert from 'node:assert/strict'
import type { Row, RowSink } from '../../ports.js'
import type { GroupCommit } from '../commit/commit.js'
import { type Deposed, isDeposed } from '../commit/deposed.js'
import type { EntityCount } from '../commit/entity-count.js'
import { progressRange } from '../documents/document-layout.js'
import type { RegisterFollower } from '../documents/register-follower.js'
import type { ExpiryMark } from '../expiry.js'
import { prefix } from '../keys.js'
import type { Letters } from '../notify/letters.js'
import type { Notifications } from '../notify/notifications.js'
import type { ProgressBook } from '../notify/progress-book.js'
import type { FirstPages } from '../read/first-pages.js'
import type { Views } from '../read/views/views.js'
import { MadeCounts } from '../rebuild.js'
import type { TenantUses } from '../tenants/tenant-uses.js'
import type { Actors } from '../turn/actor.js'
import type { KeyFilter } from '../turn/key-filter.js'
import type { Replicated } from './open-replicated.js'
import { shardRanges } from './replicated-layout.js'
import type { FollowedPosition } from './replication.js'
import { checkRow } from './row-check.js'
import { decodeOperations, type RowOperation } from './row-operations.js'
import {
  countsOfShard,
  delRows,
  readPage,
  rowsOfPage,
  rowsOfShard,
  type ShardPage,
  shardsWithCounts,
} from './snapshot.js'

type OnDone = (failure?: Error) => void

/** The parts that have to know when shards come and go. */
export interface Concerned {
  readonly follower: RegisterFollower
  readonly commit: GroupCommit
  readonly actors: Actors
  readonly keyFilter: KeyFilter
  readonly views: Views
  readonly firstPages: FirstPages
  readonly entityCount: EntityCount
  /** undefined: no tenant has a quota. */
  readonly uses: TenantUses | undefined
  readonly expiryMark: ExpiryMark
  readonly notifications: Notifications
  readonly letters: Letters
  readonly book: ProgressBook
}

/** Rows of a snapshot that are written at once. */
const rowsPerWrite = 500

export class ReplicatedShards {
  private readonly parts: Replicated
  private readonly concerned: Concerned
  /** Shards of which the store has a part of a snapshot, until it has a position; with the counts so far. */
  private readonly installing = new Map<number, MadeCounts>()
  /**
   * Shards that may have counts although the store has no position of them, because the process died while it cleared
   * them. Found when first needed.
   */
  private leftCounts: Promise<Set<number>> | undefined
  /** Calls that wait for room on the disk. */
  private waiting = 0

  constructor(parts: Replicated, concerned: Concerned) {
    this.parts = parts
    this.concerned = concerned
    parts.log.whenLost(deposed => this.lose(deposed))
  }

  /** Whether copies wait for room on the disk. */
  get waitsForRoom(): boolean {
    return this.waiting > 0
  }

  /** The store's position in a shard's log; undefined: it has nothing of the shard, or only part of a snapshot. */
  position(shard: number): FollowedPosition | undefined {
    return this.parts.positions.of(shard)
  }

  /**
   * Applies payloads of records, in order and all or none, to a followed shard, and stores the position they lead to.
   */
  apply(shard: number, payloads: readonly Buffer[], position: FollowedPosition, onDone: OnDone): void {
    this.assertFollowed(shard)
    let operations: readonly RowOperation[]
    try {
      operations = payloads.flatMap(payload => this.decode(payload, shard))
    } catch (error) {
      return queueMicrotask(() => onDone(error as Error))
    }
    const { lane, positions } = this.parts
    const isRegister = shard === this.parts.ownership.register
    const fill = (sink: RowSink): void => {
      for (const { key, value } of operations)
        if (value) sink.put(key, value)
        else sink.del(key)
      positions.put(sink, shard, position)
    }
    const write = (): void =>
      lane.write(fill, failure => {
        if (failure) return onDone(failure)
        positions.note(shard, position)
        this.noteApplied(shard, operations).then(() => onDone(), onDone)
      })
    const counts = this.installing.get(shard)
    this.whenRoom(isRegister, () => {
      // The snapshot is complete.
      if (counts) this.putRows(counts.rows()).then(write, onDone)
      else write()
    })
  }

  /** Runs when there is room on the disk; `urgent`: as long as there is any. */
  private whenRoom(urgent: boolean, run: () => void): void {
    const { room } = this.parts
    if (!(urgent ? room.isExhausted : room.isScarce)) return run()
    this.waiting++
    room.afterScarce(() => {
      this.waiting--
      run()
    })
  }

  /** Decodes and checks operations, and notes their stamp and keys before they are written. */
  private decode(bytes: Buffer, shard: number): readonly RowOperation[] {
    const { stamp, operations } = decodeOperations(bytes, shard)
    for (const operation of operations) checkRow(operation)
    this.parts.stamps.note(stamp)
    for (const { key, value } of operations) if (value && key[0] === prefix.entity) this.concerned.keyFilter.add(key)
    return operations
  }

  private async putRows(rows: readonly Row[]): Promise<void> {
    for (let at = 0; at < rows.length; at += rowsPerWrite)
      await this.write(sink => {
        for (const { key, value } of rows.slice(at, at + rowsPerWrite)) sink.put(key, value)
      })
  }

  private async noteApplied(shard: number, operations: readonly RowOperation[]): Promise<void> {
    const { ownership } = this.parts
    const { follower } = this.concerned
    const wasInstalling = this.installing.delete(shard)
    if (shard !== ownership.register) return
    follower.follow(operations)
    if (wasInstalling) await follower.reconcile()
  }

  /**
   * Makes a shard this node's own, and prepares for asks. The store has all of it, and only this node appends to its
   * log.
   */
  activate(shard: number, onDone: OnDone): void {
    this.assertFollowed(shard)
    assert(!this.installing.has(shard), 'the snapshot of the shard is not complete')
    const isReady = shard === this.parts.ownership.register ? this.beginRegister() : this.begin(shard)
    isReady.then(() => onDone(), onDone)
  }

  private async begin(shard: number): Promise<void> {
    const { ownership, stamps } = this.parts
    const { actors, letters, notifications } = this.concerned
    // A list in flight when the shard was sealed may have loaded some actors, which have not followed changes since.
    actors.dropShard(shard)
    stamps.raise()
    ownership.begin(shard)
    this.forgetReads()
    notifications.beginShard(shard, stamps.last)
    letters.load(shard)
  }

  private async beginRegister(): Promise<void> {
    const { ownership, store, stamps } = this.parts
    const { register } = ownership
    const rows = await this.concerned.book.read(store, progressRange(register))
    stamps.raise()
    ownership.begin(register)
    this.concerned.book.enter(rows)
  }

  /**
   * Ends the turns in a shard. Calls back when the results of earlier turns are appended and written, or lost: then the
   * shard is followed.
   */
  seal(shard: number, onDone: OnDone): void {
    const { ownership } = this.parts
    assert(ownership.admits(shard), 'this node does not own the shard that it seals')
    ownership.close(shard)
    const { commit, book, notifications, letters } = this.concerned
    if (shard === ownership.register) book.leave()
    else {
      notifications.endShard(shard)
      letters.endShard(shard)
    }
    commit.afterAll(failure => {
      if (failure && !isDeposed(failure)) return onDone(failure)
      assert(!commit.holds(shard), 'a sealed shard still has staged changes')
      this.end(shard)
      onDone()
    })
  }

  /**
   * Other nodes have taken over some shards, and their staged records are lost: from now on no read uses them. They
   * have been closed to asks, and are followed once all earlier records have ended (`seal`).
   */
  private lose({ losses }: Deposed): void {
    const { ownership, log } = this.parts
    const { register } = ownership
    const lost = losses.map(({ shard }) => shard).filter(shard => ownership.owns(shard))
    for (const shard of lost) ownership.end(shard)
    if (lost.includes(register)) this.concerned.follower.revert(log.stagedOf(register).map(({ key }) => key))
    if (lost.length > 0) this.forgetReads()
  }

  private end(shard: number): void {
    const { ownership } = this.parts
    ownership.end(shard)
    if (shard === ownership.register) return
    this.concerned.actors.dropShard(shard)
    this.forgetReads()
  }

  /** Cached results about all own shards are wrong when the set of these has changed. */
  private forgetReads(): void {
    const { entities, attributes } = this.parts
    const { views, firstPages, entityCount, uses, expiryMark } = this.concerned
    entities.forget()
    attributes.forget()
    entityCount.begin()
    uses?.forget()
    views.forget()
    firstPages.forget()
    expiryMark.reset()
  }

  /**
   * Some rows of a shard after a key, about so many bytes; `next` is the key from which to continue, undefined at the
   * end.
   */
  snapshot(
    shard: number,
    after: Buffer | undefined,
    bytesMax: number,
    onDone: (page: ShardPage | Error) => void,
  ): void {
    const { store, stamps } = this.parts
    readPage(store, shardRanges(shard), after, bytesMax, stamps.last).then(onDone, onDone)
  }

  /**
   * Puts rows of a snapshot into the store; the first page replaces all rows of the shard. The store has no position
   * until `apply` gives one.
   */
  install(shard: number, rows: Buffer, isFirst: boolean, onDone: OnDone): void {
    this.assertFollowed(shard)
    this.whenRoom(false, () => this.put(shard, rows, isFirst).then(() => onDone(), onDone))
  }

  private async put(shard: number, bytes: Buffer, isFirst: boolean): Promise<void> {
    const operations = this.decode(bytes, shard)
    const counts = isFirst ? new MadeCounts(shard) : this.installing.get(shard)
    assert(counts, 'the first page of the snapshot is missing')
    const rows = rowsOfPage(operations, counts)
    if (isFirst) await this.clear(shard)
    this.installing.set(shard, counts)
    await this.putRows(rows)
    if (shard === this.parts.ownership.register) this.concerned.follower.follow(operations)
  }

  /** Deletes all that the store has of a followed shard. */
  drop(shard: number, onDone: OnDone): void {
    this.assertFollowed(shard)
    this.whenRoom(true, () => this.dropNow(shard).then(() => onDone(), onDone))
  }

  private async dropNow(shard: number): Promise<void> {
    await this.clear(shard)
    if (shard === this.parts.ownership.register) await this.concerned.follower.reconcile()
  }

  private async clear(shard: number): Promise<void> {
    const { ownership, store, positions } = this.parts
    const hadAll = positions.of(shard) !== undefined
    this.leftCounts ??= shardsWithCounts(store)
    const leftCounts = await this.leftCounts
    // The position goes first: so a crash later never makes the rest look complete.
    await this.write(sink => positions.del(sink, shard))
    this.installing.delete(shard)
    for await (const rows of rowsOfShard(store, shard)) await this.write(sink => delRows(sink, rows))
    // They are among those of all shards, so a new node does not search for them before each snapshot.
    if (shard === ownership.register || !(hadAll || leftCounts.has(shard))) return
    // Counts go last: the entities, which lead to index rows, may have been deleted before the process died.
    for await (const rows of countsOfShard(store, shard))
      await this.write(sink => {
        for (const { key } of rows) sink.del(key)
      })
    leftCounts.delete(shard)
  }

  private write(fill: (sink: RowSink) => void): Promise<void> {
    return new Promise((resolve, reject) =>
      this.parts.lane.write(fill, failure => {
        if (failure) reject(failure)
        else resolve()
      }),
    )
  }

  /** Calls back when all that was applied before survives a power failure. */
  sync(onDone: OnDone): void {
    this.parts.lane.sync(onDone)
  }

  /** How many requests for entities of a shard came while it was this node's own. */
  requests(shard: number): number {
    return this.parts.ownership.requests(shard)
  }

  private assertFollowed(shard: number): void {
    assert(!this.parts.ownership.owns(shard), `this node owns shard ${shard}, and does not follow it`)
  }
}
