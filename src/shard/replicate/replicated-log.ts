// The log of a node of a cluster, for its commits: the logs of all shards of a commit, and then the store.
//
// Each shard is a lane. Its staged operations are kept as bytes for the shard's log. A commit takes some lanes: their
// parts are appended first, in one step for each engine. When they are durable the rows are written, with the new
// positions. So the store is never ahead of the log. If the process dies in between, the log is ahead: the positions
// show that, and the rest is applied again.
//
// Several commits may be in flight, of different shards. The log of a shard takes one append after the other, because
// each record is numbered and has the hash of the one before. The register commits together with everything else
// (commit/commit.ts).
//
// If another node has taken over some of the shards, only the operations on the others are written. Code that keeps
// memory of the lost shards is informed first (`whenLost`), and then the waiters for the batch.
//
// The stamp, a row that belongs to no shard, goes along with every write.

import assert from 'node:assert/strict'
import type { Batch, Clock, RowSink, Store } from '../../ports.js'
import { type CommitLog, noTimes, noteTimes, type OpenBatch, OrderedRows } from '../commit/commit-log.js'
import { type Deposed, isDeposed } from '../commit/deposed.js'
import { prefix, shardOfKey } from '../keys.js'
import { commitGapMs } from './commit-gap.js'
import type { CommitLane } from './commit-lane.js'
import type { Positions } from './positions.js'
import type { FollowedPosition, LogPayload, Replication } from './replication.js'
import { decodeOperations, OperationWriter, type RowOperation } from './row-operations.js'

/** Bytes that may be staged or in flight before writes are refused. It limits memory. */
export const stagedBytesMax = 128 * 1024 * 1024

/**
 * Commits that a node has in flight. Each waits for the log, so with several of them a write waits less for the commit
 * before. Reckoned for appends of 50 ms, 80 shards and 64 clients: 634 writes/s with 1, 760 with 2, 834 with 4, 889
 * with 8, 914 with 16. Each step doubles the appends, which cost etcd processor time.
 */
export const commitsInFlightMax = 4

export interface ReplicatedLogParts {
  readonly store: Store
  readonly clock: Pick<Clock, 'monoMs'>
  readonly replication: Replication
  readonly lane: CommitLane
  readonly positions: Positions
  /** Of the event loop: 0 to 1. */
  readonly utilization: () => number
  /** The shard that commits together with all others. */
  readonly register: number
  /** For tests: `commitsInFlightMax`. */
  readonly inFlightMax?: number
  /** A stamp at least as large as all that were given or received. */
  readonly lastStamp: () => number
  /** Adds the rows that go along with every write. */
  readonly alongWith: (sink: RowSink) => void
}

type OnLost = (deposed: Deposed) => void

export class ReplicatedLog implements CommitLog {
  /** The write times are those of the shards' logs, and the sync times those of the store. */
  readonly times = noTimes()
  private readonly parts: ReplicatedLogParts
  readonly inFlightMax: number
  /** Batches that are staged or in flight. */
  private readonly batches = new Set<ShardBatch>()
  private bytes = 0
  /** Batches of the store that are empty again. */
  private readonly spare: Batch[] = []
  private readonly listeners: OnLost[] = []

  constructor(parts: ReplicatedLogParts) {
    this.parts = parts
    this.inFlightMax = parts.inFlightMax ?? commitsInFlightMax
  }

  get wholeLane(): number {
    return this.parts.register
  }

  get isFull(): boolean {
    return this.bytes >= stagedBytesMax
  }

  get gapMs(): number {
    return commitGapMs(this.parts.utilization())
  }

  get groups(): number {
    return this.parts.replication.engines
  }

  groupOf(shard: number): number {
    return this.parts.replication.engineOf(shard)
  }

  laneOf(shard: number): number {
    return shard
  }

  laneOfKey(key: Buffer): number {
    return shardOfKey(key)
  }

  open(shard: number): OpenBatch {
    const batch = new ShardBatch(shard, bytes => {
      this.bytes += bytes
    })
    this.batches.add(batch)
    return batch
  }

  /**
   * Adds a listener for shards that other nodes have taken over. It is called before the waiters for staged records of
   * these.
   */
  whenLost(listener: OnLost): void {
    this.listeners.push(listener)
  }

  /** The operations on a shard that are staged, and not written. */
  stagedOf(shard: number): readonly RowOperation[] {
    return [...this.batches].flatMap(batch => (batch.shard === shard ? operationsOf(batch.payload(0)) : []))
  }

  commit(all: readonly OpenBatch[], onDone: (failure?: Error) => void): void {
    const { clock, replication, lastStamp } = this.parts
    const batches = all.map(asOwn)
    const startedMs = clock.monoMs()
    const payloads = payloadsOf(batches, lastStamp())
    const write = (reached: ReadonlyMap<number, FollowedPosition>, deposed?: Deposed): void => {
      const appendedMs = clock.monoMs()
      this.write(payloads, reached, failure => {
        noteTimes(this.times, startedMs, appendedMs, clock.monoMs())
        if (failure) return onDone(failure)
        if (deposed) for (const listener of this.listeners) listener(deposed)
        this.forget(batches)
        onDone(deposed)
      })
    }
    if (payloads.length === 0) return write(new Map())
    replication.append(payloads, outcome => {
      if (outcome instanceof Error && !isDeposed(outcome)) return onDone(outcome)
      const deposed = outcome instanceof Error ? outcome : undefined
      const reached = outcome instanceof Error ? outcome.reached : outcome
      const lost = new Set(deposed?.losses.map(({ shard }) => shard))
      for (const { shard } of payloads)
        assert(reached.has(shard) !== lost.has(shard), 'a part must either have a position or be lost')
      write(reached, deposed)
    })
  }

  /** Writes the rows of the shards that were appended, with their positions. */
  private write(
    payloads: readonly LogPayload[],
    reached: ReadonlyMap<number, FollowedPosition>,
    onDone: (failure?: Error) => void,
  ): void {
    const { store, lane, positions, alongWith } = this.parts
    const batch = this.spare.pop() ?? store.batch()
    fill(
      batch,
      payloads.filter(({ shard }) => reached.has(shard)),
    )
    for (const [shard, position] of reached) positions.put(batch, shard, position)
    alongWith(batch)
    lane.commit(batch, failure => {
      if (failure) return onDone(failure)
      batch.clear()
      this.spare.push(batch)
      for (const [shard, position] of reached) positions.note(shard, position)
      onDone()
    })
  }

  private forget(batches: readonly ShardBatch[]): void {
    for (const batch of batches) {
      this.batches.delete(batch)
      this.bytes -= batch.bytes
    }
  }
}

/** The staged changes of one shard. */
class ShardBatch implements OpenBatch, RowSink {
  readonly shard: number
  length = 0
  /** Of keys and values. */
  bytes = 0
  private readonly writer = new OperationWriter()
  private readonly onBytes: (bytes: number) => void

  constructor(shard: number, onBytes: (bytes: number) => void) {
    this.shard = shard
    this.onBytes = onBytes
  }

  get rows(): RowSink {
    return this
  }

  // [hot] Twice for every change of a node of a cluster.
  rowsOf(): RowSink {
    return this
  }

  orderedOf(): RowSink {
    return this
  }

  put(key: Buffer, value: Buffer): void {
    this.writer.put(key, value)
    this.count(key.length + value.length)
  }

  del(key: Buffer): void {
    this.writer.del(key)
    this.count(key.length)
  }

  private count(bytes: number): void {
    this.length++
    this.bytes += bytes
    this.onBytes(bytes)
  }

  payload(stamp: number): LogPayload {
    return { shard: this.shard, payload: this.writer.end(stamp) }
  }
}

function asOwn(batch: OpenBatch): ShardBatch {
  assert(batch instanceof ShardBatch, 'a commit has batches of this log')
  return batch
}

/**
 * The register, which has the largest number, comes first. A commit that is too large for one append needs several, and
 * the node may die between two of them. If a change were logged without the one-shot subscription's progress in the
 * register, the subscription would be triggered again.
 */
const payloadsOf = (batches: readonly ShardBatch[], stamp: number): readonly LogPayload[] =>
  batches
    .filter(({ length }) => length > 0)
    .map(batch => batch.payload(stamp))
    .sort((a, b) => b.shard - a.shard)

const operationsOf = ({ shard, payload }: LogPayload): readonly RowOperation[] =>
  decodeOperations(payload, shard).operations

/** Puts the operations into a batch, those on the type index after all others (`OrderedRows`). */
function fill(batch: Batch, payloads: readonly LogPayload[]): void {
  const ordered = new OrderedRows()
  for (const part of payloads)
    for (const { key, value } of operationsOf(part)) {
      const rows = key[0] === prefix.type ? ordered : batch
      if (value) rows.put(key, value)
      else rows.del(key)
    }
  ordered.flush(batch)
}
