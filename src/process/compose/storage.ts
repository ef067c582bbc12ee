// The data directory, its store, and the parts derived from it: the map of shards, the last stamp, and the scanner for
// reading many rows.

import { HybridClock } from '../../clock.js'
import type { Config } from '../../config/config.js'
import { keeper, placementDefault, ShardMap, workerOf } from '../../domain/scope.js'
import { DiskReporter } from '../../observe/reporters.js'
import type { Clock, Stamps, Store } from '../../ports.js'
import { lastStamp } from '../../shard/commit/commit-log.js'
import type { WorkerPart } from '../../shard/open-shards.js'
import { ThreadScanner } from '../../shard/read/scan-thread.js'
import { type Scanner, StepwiseScanner } from '../../shard/read/scans.js'
import { Ownership } from '../../shard/replicate/ownership.js'
import { clusterOf, openDataDirectory } from '../../storage/data-directory.js'
import { DiskWatch, ReserveFile } from '../../storage/disk-watch.js'
import { openStore } from '../../storage/open-store.js'
import type { AgreedPlace, Agreement, JoinedWorker, Surroundings } from '../surroundings.js'
import type { Observation } from './observation.js'

/** The module that the reader thread runs. */
const readerEntry = new URL('../reader.js', import.meta.url)

export interface Storage {
  readonly store: Store
  readonly shardMap: ShardMap
  /** undefined: this process is alone. */
  readonly share: StoreShare | undefined
  /** Number of shards that this process owns at this moment. */
  readonly ownedCount: () => number
  readonly stamps: HybridClock
  readonly scanner: Scanner
  /** undefined: free space is not watched. */
  readonly disk: DiskWatch | undefined
}

/** How this process, as one of several, knows which shards are its own. */
export type StoreShare = {
  /** Gives the requests that arrive here their stamps. The owner's `stamps` differ: they come from all that ask it. */
  readonly requestClock: HybridClock
} & (
  | { readonly kind: 'worker'; readonly place: JoinedWorker }
  | { readonly kind: 'node'; readonly place: AgreedPlace; readonly ownership: Ownership }
)

/** Opens the directory, or creates it. Throws an error with a sentence for the operator when it cannot be used. */
export async function openStorage(
  config: Config,
  { clock, chance, logger, place }: Surroundings,
  { alarms }: Observation,
): Promise<Storage> {
  const path = config.store.directory
  const agreed = place?.kind === 'node' ? await place.agree(placementDefault, clusterOf(path)) : undefined
  const worker = place?.kind === 'worker' ? place : undefined
  const wanted = agreed ? wantedBy(agreed.agreement) : { ...placementDefault, workers: config.workers }
  const directory = openDataDirectory(path, wanted, () => chance.uuid())
  const disk = watchDisk(config.store, !worker || worker.worker === keeper, clock, new DiskReporter(logger, alarms))
  disk?.begin()
  // In a cluster, acknowledged changes are in the log.
  const durability = agreed ? 'os' : config.store.durability
  const store = await openStore(directory, { durability, logger, part: worker })
  const shardMap = new ShardMap(directory)
  // Creations of several processes need a common order, so they need a finer clock than a single process.
  const stampClock = place ? { wallMs: () => clock.fineWallMs() } : clock
  // The clocks of two nodes are within the bound of a reference, on either side (bounded-clock.ts).
  const aheadMsMax = config.cluster && 2 * config.cluster.clockSkewMaxMs
  const requestClock = new HybridClock(stampClock, 0, aheadMsMax)
  const ownership = new Ownership(directory.shards)
  const share: StoreShare | undefined =
    (agreed && { kind: 'node', place: agreed, ownership, requestClock }) ??
    (worker && { kind: 'worker', place: worker, requestClock })
  const owned = agreed && ownership.owned
  const ownedCount = ownedBy(worker, directory.shards)
  return {
    store,
    shardMap,
    share,
    ownedCount: () => (agreed ? ownership.count : ownedCount),
    stamps: new HybridClock(stampClock, lastStamp(store), aheadMsMax),
    scanner: store.shared
      ? new ThreadScanner(readerEntry, store.shared, shardMap.placement, owned)
      : new StepwiseScanner(store, shardMap, clock, owned),
    disk,
  }
}

const wantedBy = ({ id, shards, spread }: Agreement) => ({ shards, spread, cluster: { id } })

/** The clock that gives the times in ids. */
export const idClockOf = ({ share, stamps }: Storage): Stamps => share?.requestClock ?? stamps

/** undefined: free space is not watched, and nothing is reserved. */
function watchDisk(
  { directory, reserveBytes }: Config['store'],
  isKeeper: boolean,
  clock: Clock,
  reporter: DiskReporter,
): DiskWatch | undefined {
  const disk = new ReserveFile(directory)
  if (reserveBytes > 0)
    return new DiskWatch({
      disk,
      reserveBytes,
      keeper: isKeeper,
      clock,
      onState: (state, before, room) => reporter.onState(state, before, room),
      onFailure: (what, error) => reporter.onFailure(what, error),
    })
  disk.giveUpNow()
  return undefined
}

function ownedBy(part: WorkerPart | undefined, shards: number): number {
  const all = Array.from({ length: shards }, (_, shard) => shard)
  return part ? all.filter(shard => workerOf(shard, part.workers) === part.worker).length : shards
}
