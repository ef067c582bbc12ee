// Brings a data directory from one number of workers to another: the same entities, in other stores.
//
// The old stores are only read, once their bundles have been split (shard/notify/bundle.ts), which changes nothing of
// what they say. The new ones are filled beside them (shard/transfer.ts), and one replacement of `orrery.json` makes
// them the ones that count; only after it are the old ones deleted. While it is under way the file says so
// (`becoming`), which keeps everybody from changing the old stores: so what was begun is still right whenever it is
// gone on with. That word is all there is to say for a restart; how far each store got it says itself. The same number
// of workers goes on, the old number gives up, another one begins anew. The locks of all the old stores are held from
// before the first look to the switch, and those of the new ones while the old ones are deleted.
//
// Every batch is flushed, whatever the durability in use: one that is there after a power cut has all before it. A
// million entities take 1000 flushes.
//
// New stores are filled one after another, so the memory it takes is that of one store, a little for each old one, and
// the counts, which are by path and type.
//
// Not here: rows (shard/transfer.ts), folders (storage/store-folders.ts), how progress is shown (observe/progress.ts).

import assert from 'node:assert/strict'
import type { Logger, Store } from '../ports.js'
import { splitBundles } from '../shard/notify/bundle.js'
import { countEntities, type TransferLimits, transfer, transferLimitsDefault } from '../shard/transfer.js'
import {
  assertUnchanged,
  assertWorkers,
  type DataDirectory,
  DataDirectoryError,
  recordBecoming,
  recordWorkers,
  type StoreKind,
  wordsFor,
} from '../storage/data-directory.js'
import { isDiskFull, openPart, type StoreChoice, settleStore } from '../storage/open-store.js'
import { discardLeftovers, discardStores, freeBytes, leftovers, storeBytes } from '../storage/store-folders.js'
import { assertMovable, entitiesIn, roomFactor } from './fill-directory.js'

export interface RepartitionOptions extends StoreChoice {
  readonly logger: Pick<Logger, 'info' | 'warn'>
  /**
   * Told after each batch how many entities are in their new place, those of earlier tries included, and of how many.
   */
  readonly onProgress?: (done: number, total: number) => void
  /** Stops between two batches, rejecting with the signal's reason; the next start goes on from there. */
  readonly signal?: AbortSignal
  readonly limits?: TransferLimits
  /** How much room there is; tests pretend. */
  readonly freeBytes?: (path: string) => number
}

/** Memory for all old stores together, and the least for each: they are read once, from end to end. */
const sourcesMemoryBytes = 64 * 1024 * 1024
const sourceMemoryBytesMin = 4 * 1024 * 1024

/** What a new store takes that is empty. */
const roomBytesPerStore = 1024 * 1024

/**
 * Gives the directory for so many workers: at once when it is that already, else by dividing its rows anew. To be
 * called before any store is opened, at every start: it also settles which kind of store is used, and removes what
 * earlier tries left. Rejects with a DataDirectoryError when the operator has something to set right; the directory is
 * then as it was.
 */
export async function repartition(
  directory: DataDirectory,
  workers: number,
  options: RepartitionOptions,
): Promise<DataDirectory> {
  assertWorkers(directory.path, directory.shards, workers)
  const settled = await settleStore(directory, options)
  const isRight = settled.workers === workers && settled.becoming === undefined
  const after = isRight ? settled : await withStores(settled, stores => bring(stores, settled, workers, options))
  if (leftovers(after).length > 0) await withStores(after, () => removeLeftovers(after, options))
  return after
}

async function bring(
  sources: readonly Store[],
  directory: DataDirectory,
  workers: number,
  options: RepartitionOptions,
): Promise<DataDirectory> {
  const { path, becoming } = directory
  if (becoming !== undefined && becoming !== workers) {
    options.logger.info(`data directory ${path}: gives up being divided among ${wordsFor(becoming)}`)
    directory = giveUp(directory, becoming)
  }
  if (directory.workers === workers) return directory
  assertRoom(directory, workers, options)
  for (const source of sources) await splitBundles(source)
  await assertMovable(
    sources,
    directory,
    `it can be used with -workers ${sources.length} only, or be divided by the version that wrote it`,
  )
  // What lies there without the file's word for it may be of any age.
  if (becoming !== workers) discardStores(path, workers)
  const begun = becoming === workers ? directory : recordBecoming(directory, workers)
  try {
    await copy(sources, begun, workers, options)
    return recordWorkers(begun, workers)
  } catch (error) {
    if (!isDiskFull(error)) throw error
    // Had the new file already taken the old one's place, the new stores would be the ones that count.
    assertUnchanged(begun)
    giveUp(begun, workers)
    throw new DataDirectoryError(
      `data directory ${path} could not be divided among ${wordsFor(workers)}, the disk is full: make room and start again, or start with -workers ${directory.workers}`,
      { cause: error },
    )
  }
}

/** Removes what was begun. First the stores: on a full disk there is no room for a new file before. */
function giveUp(directory: DataDirectory, becoming: number): DataDirectory {
  discardStores(directory.path, becoming)
  return recordBecoming(directory, undefined)
}

/** Opens all stores of the directory, and holds their locks while `work` runs. */
async function withStores<T>(directory: DataDirectory, work: (stores: readonly Store[]) => T | Promise<T>): Promise<T> {
  const { path, workers } = directory
  const memoryBytes = Math.max(sourceMemoryBytesMin, Math.floor(sourcesMemoryBytes / workers))
  const stores: Store[] = []
  try {
    for (let worker = 0; worker < workers; worker++)
      stores.push(await openPart(path, kindOf(directory), { worker, workers }, { durability: 'os', memoryBytes }))
    assertUnchanged(directory)
    return await work(stores)
  } finally {
    // Nothing was written to them that the next start would not write again, so the way they close loses nothing; a
    // full disk would make it fail.
    for (const store of stores) await store.close().catch(() => undefined)
  }
}

async function copy(
  sources: readonly Store[],
  directory: DataDirectory,
  workers: number,
  { logger, onProgress, signal, limits = transferLimitsDefault }: RepartitionOptions,
): Promise<void> {
  const { path, shards } = directory
  const total = await entitiesIn(sources)
  logger.info(`data directory ${path}: divides ${total} entities among ${wordsFor(workers)}`)
  let done = 0
  const onBatch = (entities: number): void => {
    done += entities
    onProgress?.(done, total)
  }
  for (let worker = 0; worker < workers; worker++) {
    const target = await openPart(path, kindOf(directory), { worker, workers }, { durability: 'sync' })
    try {
      const before = await countEntities(target)
      if (before > 0) logger.info(`data directory ${path}: goes on with ${before} entities that worker ${worker} has`)
      done += before
      await transfer({ target, worker, workers, isNode: false, sources, shards, limits, onBatch, signal })
    } catch (error) {
      await target.close().catch(() => undefined)
      throw error
    }
    // Flushes: what the switch makes count has to be on the disk before it.
    await target.close()
  }
  // Counts are made anew, so this is repaired by now; yet somebody may want to know.
  if (done !== total) logger.warn(`data directory ${path}: there are ${done} entities, the old counts said ${total}`)
}

/** The store that `settleStore` has settled. */
function kindOf({ store }: DataDirectory): StoreKind {
  assert(store, 'a directory whose store is settled')
  return store
}

function assertRoom(directory: DataDirectory, workers: number, options: RepartitionOptions): void {
  const { path } = directory
  const thereBytes = storeBytes(path, workers)
  const neededBytes = storeBytes(path, directory.workers) * roomFactor + workers * roomBytesPerStore - thereBytes
  const roomBytes = (options.freeBytes ?? freeBytes)(path)
  if (roomBytes >= neededBytes) return
  throw new DataDirectoryError(
    `data directory ${path} needs about ${megabytes(neededBytes)} more on its disk to be divided among ${wordsFor(workers)}, and ${megabytes(roomBytes)} are free: make room, or start with -workers ${directory.workers}`,
  )
}

const megabytes = (bytes: number): string => `${Math.ceil(bytes / 1024 / 1024)} MB`

/** What is left over does no harm but take room: a start does not fail for it. */
function removeLeftovers(directory: DataDirectory, { logger }: RepartitionOptions): void {
  try {
    discardLeftovers(directory)
  } catch (error) {
    logger.warn(`data directory ${directory.path}: old stores cannot be removed: ${(error as Error).message}`)
  }
}
