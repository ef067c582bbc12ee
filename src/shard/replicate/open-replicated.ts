// What a node's shards are made of besides when they come and go, put together; and how the register's changes reach all nodes.

import type { Clock, DiskRoom, RowSink, Stamps, Store } from '../../ports.js'
import type { GroupCommit } from '../commit/commit.js'
import { Counts } from '../commit/counts.js'
import type { Register } from '../documents/register.js'
import { encodeNumber } from '../keys.js'
import { attributeCounts, entityCounts, stampKey } from '../layout.js'
import { ampleRoom } from '../turn/room.js'
import { CommitLane } from './commit-lane.js'
import { HeardStamps } from './heard-stamps.js'
import type { Ownership } from './ownership.js'
import { Positions } from './positions.js'
import { ReplicatedLog } from './replicated-log.js'
import type { Barrier, Replication } from './replication.js'

/** What a node of a cluster is given. */
export interface ReplicatedNeeds {
  /** Shared with who reads the store on other threads. No shard is owned yet. */
  readonly ownership: Ownership
  readonly replication: Replication
  /** Of the register: a change is replied to when every owner has it. */
  readonly barrier: Barrier
  /** Has the hybrid clock give only stamps above this one. */
  readonly observe: (stamp: number) => void
  /** Told of stamps that others gave. */
  readonly hear: (stamp: number) => void
}

/** To be made before anything else of the shards. */
export class Replicated {
  readonly store: Store
  readonly ownership: Ownership
  readonly lane: CommitLane
  readonly positions = new Positions()
  readonly log: ReplicatedLog
  readonly entities: Counts
  readonly attributes: Counts
  readonly stamps: HeardStamps
  readonly room: DiskRoom
  private readonly barrier: Barrier

  constructor(
    store: Store,
    clock: Pick<Clock, 'monoMs'>,
    own: Stamps,
    { ownership, replication, barrier, observe, hear }: ReplicatedNeeds,
    room: DiskRoom = ampleRoom,
  ) {
    const stamps = new HeardStamps(own, observe, hear)
    const alongWith = (sink: RowSink): void => sink.put(stampKey(), encodeNumber(stamps.last))
    const lane = new CommitLane(store, alongWith)
    this.store = store
    this.ownership = ownership
    this.lane = lane
    this.log = new ReplicatedLog({
      store,
      clock,
      replication,
      lane,
      positions: this.positions,
      lastStamp: () => own.last,
      alongWith,
    })
    this.entities = new Counts(store, entityCounts, ownership.owned)
    this.attributes = new Counts(store, attributeCounts, ownership.owned)
    this.stamps = stamps
    this.room = room
    this.barrier = barrier
  }

  /** Whether the home of subscriptions is here. */
  get isHome(): boolean {
    return this.ownership.admits(this.ownership.register)
  }

  /** Of which all nodes follow the log: what is in it by now, they have soon. */
  registerWith(commit: Pick<GroupCommit, 'write'>): Register {
    const { register } = this.ownership
    return {
      obstacle: () => undefined,
      write: (key, row) => commit.write(key, row),
      afterAll: onDone => {
        const position = this.positions.of(register)
        if (!position) return onDone()
        this.barrier(register, position.sequence, failure =>
          onDone(failure && { kind: 'lost', reason: failure.message }),
        )
      },
    }
  }
}
