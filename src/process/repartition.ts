// Brings a data directory from one number of workers to another: the same entities, in other stores.
//
// The old stores are only read, after their bundles have been split (shard/notify/bundle.ts), which does not change
// their meaning. The new stores are filled beside them (shard/transfer.ts). One replacement of `orrery.json` puts the
// new stores in effect; only then are the old ones deleted. While this is in progress, the file has the field
// `becoming`, which keeps all processes from changing the old stores. So a begun division stays correct whenever it
// continues. A restart needs no more than this field; each store itself records how far it got. A start with the new
// number of workers continues, one with the old number gives up, and one with another number begins anew. The locks of
// all old stores are held from before the first look to the switch, and those of the new ones while the old ones are
// deleted.
//
// Every batch is flushed, whatever the durability in use: if a batch survives a power cut, all earlier ones do. A
// million entities take 1000 flushes.
//
// New stores are filled one after another. So the memory needed is that of one store, a little for each old one, and
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
   * Called after each batch with the number of entities in their new place, those of earlier tries included, and the
   * total.
   */
  readonly onProgress?: (done: number, total: number) => void
  /** Stops between two batches, rejecting with the signal's reason; the next start continues there. */
  readonly signal?: AbortSignal
  readonly limits?: TransferLimits
  /** The free bytes on the disk; tests replace it. */
  readonly freeBytes?: (path: string) => number
}

/** Memory for all old stores together, and the minimum for each: they are read once, from end to end. */
const sourcesMemoryBytes = 64 * 1024 * 1024
const sourceMemoryBytesMin = 4 * 1024 * 1024

/** Room for an empty new store. */
const roomBytesPerStore = 1024 * 1024

/**
 * Returns the directory for this number of workers: at once if it has that already, else after dividing its rows anew.
 * Must run at every start before any store is opened: it also settles which kind of store is used, and removes the
 * remains of earlier tries. Rejects with a DataDirectoryError when the operator must correct something; the directory
 * is then unchanged.
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
  // Stores of that number that are not announced in the file may be of any age.
  if (becoming !== workers) discardStores(path, workers)
  const begun = becoming === workers ? directory : recordBecoming(directory, workers)
  try {
    await copy(sources, begun, workers, options)
    return recordWorkers(begun, workers)
  } catch (error) {
    if (!isDiskFull(error)) throw error
    // If the new file has already replaced the old one, the new stores are in effect, and must not be deleted.
    assertUnchanged(begun)
    giveUp(begun, workers)
    throw new DataDirectoryError(
      `data directory ${path} could not be divided among ${wordsFor(workers)}, the disk is full: make room and start again, or start with -workers ${directory.workers}`,
      { cause: error },
    )
  }
}

/** Removes a begun division. The stores go first: on a full disk there is no room for a new file before. */
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
    // The next start would repeat all writes to them. So a failure to close, as on a full disk, loses nothing.
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
    // Closing flushes: the content has to be on the disk before the switch puts it in effect.
    await target.close()
  }
  // Counts are made anew, so the difference is repaired by now; the operator may still want to know.
  if (done !== total) logger.warn(`data directory ${path}: there are ${done} entities, the old counts said ${total}`)
}

/** The store that `settleStore` has settled. */
function kindOf({ store }: DataDirectory): StoreKind {
  assert(store, 'the directory does not name its store yet')
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

/** Leftovers only take room, so a failure to remove them does not fail the start. */
function removeLeftovers(directory: DataDirectory, { logger }: RepartitionOptions): void {
  try {
    discardLeftovers(directory)
  } catch (error) {
    logger.warn(`data directory ${directory.path}: old stores cannot be removed: ${(error as Error).message}`)
  }
}
