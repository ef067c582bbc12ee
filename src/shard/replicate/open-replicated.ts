// Opens the additional parts of a node whose shards come and go; and how the register's changes reach all nodes.

import type { Clock, DiskRoom, RowSink, Stamps, Store } from '../../ports.js'
import type { GroupCommit } from '../commit/commit.js'
import { Counts } from '../commit/counts.js'
import { FollowedRegister, type Register } from '../documents/register.js'
import { encodeNumber } from '../keys.js'
import { attributeCounts, entityCounts, stampKey } from '../layout.js'
import { CommitLane } from './commit-lane.js'
import { ObservedStamps, type StampFollower, type StampObserver } from './observed-stamps.js'
import type { Ownership } from './ownership.js'
import { Positions } from './positions.js'
import { ReplicatedLog } from './replicated-log.js'
import type { Barrier, Replication } from './replication.js'

/** The needs of a node of a cluster. */
export interface ReplicatedNeeds {
  /** Shared with the threads that read the store. No shard is owned yet. */
  readonly ownership: Ownership
  readonly replication: Replication
  /** For the register: the reply to a change waits until every owner has it. */
  readonly barrier: Barrier
  /** Follows stamps that others gave. */
  readonly requestClock: StampFollower
  /** The utilization of the event loop: 0 to 1. */
  readonly utilization: () => number
}

export interface Replicated {
  readonly store: Store
  readonly ownership: Ownership
  readonly lane: CommitLane
  readonly positions: Positions
  readonly log: ReplicatedLog
  readonly entities: Counts
  readonly attributes: Counts
  readonly stamps: ObservedStamps
  readonly room: DiskRoom
}

/** Opens these parts over a store, with the positions that it has. */
export async function openReplicated(
  { store, clock, stamps: own, room }: ReplicatedSurroundings,
  { ownership, replication, requestClock, utilization }: ReplicatedNeeds,
): Promise<Replicated> {
  const positions = await Positions.read(store)
  const stamps = new ObservedStamps(own, requestClock)
  const alongWith = (sink: RowSink): void => sink.put(stampKey(), encodeNumber(stamps.last))
  const lane = new CommitLane(store, alongWith)
  const lastStamp = (): number => own.last
  const { register } = ownership
  const parts = { store, clock, replication, lane, positions, utilization, register, lastStamp, alongWith }
  const log = new ReplicatedLog(parts)
  const entities = new Counts(store, entityCounts, ownership.owned)
  const attributes = new Counts(store, attributeCounts, ownership.owned)
  return { store, ownership, lane, positions, log, entities, attributes, stamps, room }
}

interface ReplicatedSurroundings {
  readonly store: Store
  readonly clock: Pick<Clock, 'monoMs'>
  readonly stamps: Stamps & StampObserver
  readonly room: DiskRoom
}

/** The register, whose log all nodes follow: they have each change soon. */
export const replicatedRegister = (
  commit: Pick<GroupCommit, 'write' | 'afterCommit'>,
  { positions, ownership }: Replicated,
  barrier: Barrier,
): Register => {
  const { register } = ownership
  return new FollowedRegister(commit, register, {
    tell: onDone => {
      const position = positions.of(register)
      if (!position) return onDone()
      barrier(register, position.sequence, failure => onDone(failure?.message))
    },
    terms: () => ownership.terms(register),
  })
}
