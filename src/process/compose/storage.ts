// The data directory, the store in it, and what is read of it: the shards that it has, the last stamp, and who looks into many rows.

import { HybridClock } from '../../clock.js'
import type { Config } from '../../config/config.js'
import { placementDefault, placementOfCluster, ShardMap, workerOf } from '../../domain/scope.js'
import { DiskTeller } from '../../observe/tellers.js'
import type { Clock, Stamps, Store } from '../../ports.js'
import { splitBundles } from '../../shard/notify/bundle.js'
import { ThreadScanner } from '../../shard/read/scan-thread.js'
import { type Scanner, StepwiseScanner } from '../../shard/read/scans.js'
import { Ownership } from '../../shard/replicate/ownership.js'
import { lastStamp, type WorkerPart } from '../../shard/shards.js'
import { clusterOf, openDataDirectory } from '../../storage/data-directory.js'
import { DiskWatch, ReserveFile } from '../../storage/disk-watch.js'
import { openStore } from '../../storage/open-store.js'
import type { Place, Surroundings } from '../surroundings.js'
import type { Observation } from './observation.js'

/** What the reader thread runs. */
const readerEntry = new URL('../reader.js', import.meta.url)

export interface Storage {
  readonly store: Store
  readonly shardMap: ShardMap
  /** Which of several workers this is; undefined: it is alone, or a node of a cluster. */
  readonly part: WorkerPart | undefined
  /** Which shards are this node's own, where they come and go. */
  readonly ownership: Ownership | undefined
  /** How many shards are this process's own at this moment. */
  readonly ownedCount: () => number
  readonly stamps: HybridClock
  /** The moments at which requests arrive here: not this owner's own stamps, since those come from all who ask it. undefined: it is alone. */
  readonly moments: HybridClock | undefined
  readonly scanner: Scanner
  /** undefined: nobody looks whether the disk is full. */
  readonly disk: DiskWatch | undefined
}

/** Opens the directory, or makes it. Fails with a sentence for the operator when it cannot be had. */
export async function openStorage(
  config: Config,
  { clock, chance, logger, place, cluster }: Surroundings,
  { alarms }: Observation,
): Promise<Storage> {
  const agreed = await cluster?.agree(placementOfCluster, clusterOf(config.store.directory))
  const wanted = agreed
    ? { shards: agreed.shards, spread: agreed.spread, cluster: { id: agreed.id } }
    : { ...placementDefault, workers: config.workers }
  const directory = openDataDirectory(config.store.directory, wanted, () => chance.uuid())
  const part = place && { worker: place.index, workers: place.workers }
  const disk = watchDisk(config.store, (place?.index ?? 0) === 0, clock, new DiskTeller(logger, alarms))
  disk?.begin()
  // What a cluster has acknowledged is in its log.
  const durability = cluster ? 'os' : config.store.durability
  const store = await openStore(directory, { durability, logger, part })
  await splitBundles(store)
  const shardMap = new ShardMap(directory)
  const ownership = agreed && new Ownership(directory.shards)
  // What several processes create has to stand in order; one alone need not look so closely.
  const isOneOfSeveral = place !== undefined || cluster !== undefined
  const stampClock = isOneOfSeveral ? { wallMs: () => clock.fineWallMs() } : clock
  const scanner = store.shared
    ? new ThreadScanner(readerEntry, store.shared, shardMap.placement, ownership?.owned)
    : new StepwiseScanner(store, shardMap, clock, ownership?.owned)
  const ownedCount = ownedBy(place, directory.shards)
  return {
    store,
    shardMap,
    part,
    ownership,
    ownedCount: () => ownership?.count ?? ownedCount,
    stamps: new HybridClock(stampClock, lastStamp(store)),
    moments: isOneOfSeveral ? new HybridClock(stampClock) : undefined,
    scanner,
    disk,
  }
}

/** What gives ids their moment. */
export const momentsOf = ({ moments, stamps }: Storage): Stamps => moments ?? stamps

/** undefined: nobody looks whether the disk is full, and nothing is reserved. */
function watchDisk(
  { directory, reserveBytes }: Config['store'],
  keeper: boolean,
  clock: Clock,
  teller: DiskTeller,
): DiskWatch | undefined {
  const disk = new ReserveFile(directory)
  if (reserveBytes > 0)
    return new DiskWatch({
      disk,
      reserveBytes,
      keeper,
      clock,
      onState: (state, before, room) => teller.onState(state, before, room),
      onFailure: (what, error) => teller.onFailure(what, error),
    })
  disk.giveUpNow()
  return undefined
}

function ownedBy(place: Place | undefined, shards: number): number {
  if (!place) return shards
  return Array.from({ length: shards }, (_, shard) => workerOf(shard, place.workers)).filter(
    worker => worker === place.index,
  ).length
}
