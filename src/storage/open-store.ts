// Picks the store for a data directory and opens it.
//
// It uses RocksDB if its package loads, else LevelDB with a warning, which is slower and gives the same guarantees.
// Their files are not interchangeable, so a directory keeps the store that made it. That choice is recorded before the
// store writes its first file, so the files that a crash leaves there have a known maker. Each of several workers opens
// its own store; the choice is then made before they start (`settleStore`).
//
// Not here: the directory's own file (data-directory), the folders of the stores (store-folders), the stores.

import type { Durability, Logger, Store } from '../ports.js'
import type { DataDirectory, StoreKind } from './data-directory.js'
import { assertUnchanged, DataDirectoryError, recordStore, wordsFor } from './data-directory.js'
import { openLevelStore } from './level-store.js'
import { openRocksStore, rocksMissing } from './rocks-store.js'
import { makeStoreFolder } from './store-folders.js'

/** Another process has the store open, or did a moment ago. */
export class DirectoryInUse extends DataDirectoryError {}

/** There is not even room to open the store. With several workers there may be room for one after the other. */
export class DirectoryFull extends DataDirectoryError {}

export interface StoreChoice {
  /** Uses this store instead of the best one. */
  readonly store?: StoreKind | undefined
  /** Returns the reason why RocksDB cannot be used here, or undefined if it can. Tests replace it. */
  readonly rocksMissing?: (() => Promise<string | undefined>) | undefined
}

/** The worker that the store belongs to, and the number of workers; by default the only one. */
export interface StorePart {
  readonly worker: number
  readonly workers: number
}

export interface OpenStoreOptions extends StoreChoice {
  readonly durability: Durability
  readonly logger: Pick<Logger, 'warn'>
  readonly part?: StorePart | undefined
}

const all: StorePart = { worker: 0, workers: 1 }

/** Chooses the store of a directory that has none yet, and records it. */
export async function settleStore(directory: DataDirectory, choice: StoreChoice): Promise<DataDirectory> {
  return (await settled(directory, choice)).directory
}

async function settled(directory: DataDirectory, choice: StoreChoice) {
  const missing = await missingFor(choice)
  const kind = pick(directory, choice.store, missing)
  return { kind, missing, directory: directory.store === undefined ? recordStore(directory, kind) : directory }
}

/** Refuses a directory whose store cannot be used here. */
export async function assertStore(directory: DataDirectory, choice: StoreChoice = {}): Promise<void> {
  pick(directory, choice.store, await missingFor(choice))
}

const missingFor = async ({ store, rocksMissing: ask = rocksMissing }: StoreChoice): Promise<string | undefined> =>
  store === 'level' ? undefined : ask()

/** Opens the store of the directory. Rejects with a DataDirectoryError if the operator must correct something. */
export async function openStore(directory: DataDirectory, options: OpenStoreOptions): Promise<Store> {
  const part = options.part ?? all
  assertDivided(directory, part)
  const { kind, missing } = await settled(directory, options)
  if (missing !== undefined && kind === 'level') {
    options.logger.warn(`RocksDB is not available here, using LevelDB, which is slower: ${missing}`)
  }
  const store = await openPart(directory.path, kind, part, options)
  try {
    assertUnchanged(directory)
  } catch (error) {
    await store.close()
    throw error
  }
  return store
}

/** Opens a worker's store in its folder for this number of workers, whether or not the directory's file names it. */
export async function openPart(
  path: string,
  kind: StoreKind,
  part: StorePart,
  options: { readonly durability: Durability; readonly memoryBytes?: number },
): Promise<Store> {
  const open = kind === 'rocksdb' ? openRocksStore : openLevelStore
  try {
    return await open(makeStoreFolder(path, part.workers, part.worker), options)
  } catch (error) {
    throw explained(path, error)
  }
}

function assertDivided({ path, workers, becoming }: DataDirectory, part: StorePart): void {
  if (becoming !== undefined)
    throw new DataDirectoryError(
      `data directory ${path} is being divided among ${wordsFor(becoming)}: start with -workers ${becoming} to finish that, or with -workers ${workers} to give it up`,
    )
  if (workers !== part.workers)
    throw new DataDirectoryError(
      `data directory ${path} is divided among ${wordsFor(workers)}, not ${part.workers}: start with -workers ${workers}`,
    )
}

function pick(directory: DataDirectory, wanted: StoreKind | undefined, missing: string | undefined): StoreKind {
  const made = directory.store
  if (made !== undefined && wanted !== undefined && made !== wanted) {
    throw new DataDirectoryError(
      `data directory ${directory.path} was made with the store ${made} and cannot be opened with ${wanted}: choose another directory`,
    )
  }
  const kind = made ?? wanted ?? (missing === undefined ? 'rocksdb' : 'level')
  if (kind === 'rocksdb' && missing !== undefined) {
    const why = made ? `was made with the store rocksdb, which` : `was to be made with the store rocksdb, which`
    throw new DataDirectoryError(
      `data directory ${directory.path} ${why} is not available here (${missing}): install the package @nxtedition/rocksdb, or choose another directory`,
    )
  }
  return kind
}

function explained(path: string, error: unknown): DataDirectoryError {
  const reason = error instanceof Error && error.cause instanceof Error ? error.cause : error
  if (reason instanceof Error && 'code' in reason && reason.code === 'LEVEL_LOCKED') {
    return new DirectoryInUse(`data directory ${path} is in use by another process`, { cause: error })
  }
  const message = reason instanceof Error ? reason.message : String(reason)
  if (isDiskFull(error))
    return new DirectoryFull(
      `data directory ${path} cannot be opened, its disk is full and no reserve is left: make room and start again (${message})`,
      { cause: error },
    )
  return new DataDirectoryError(`data directory ${path} cannot be opened: ${message}`, { cause: error })
}

/** Whether a full disk or an exceeded quota caused this error. The stores only report that in the text. */
export function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return /no space left|quota exceeded|ENOSPC|EDQUOT/i.test(error.message) || isDiskFull(error.cause)
}
