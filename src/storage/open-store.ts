// Picks the store for a data directory and opens it.
//
// RocksDB where its package loads, LevelDB elsewhere with a warning: it is slower and keeps the same promises. Their
// files are not interchangeable, so a directory stays with the store that made it. That choice is recorded before the
// store writes its first file: whatever a crash leaves in `store/` has a known maker.
//
// Not here: the directory's own file (data-directory), the stores.

import type { Durability, Logger, Store } from '../ports.js'
import { type DataDirectory, DataDirectoryError, recordStore, type StoreKind } from './data-directory.js'
import { openLevelStore } from './level-store.js'
import { rocksMissing } from './rocks-missing.js'
import { openRocksStore } from './rocks-store.js'

export interface OpenStoreOptions {
  readonly durability: Durability
  readonly logger: Pick<Logger, 'warn'>
  /** Takes this store instead of the best one. */
  readonly store?: StoreKind | undefined
  /** Why RocksDB cannot be had here, or undefined if it can. Tests pretend. */
  readonly rocksMissing?: (() => Promise<string | undefined>) | undefined
}

/** Opens the store of the directory. Rejects with a DataDirectoryError if the operator has something to set right. */
export async function openStore(directory: DataDirectory, options: OpenStoreOptions): Promise<Store> {
  const missing = options.store === 'level' ? undefined : await (options.rocksMissing ?? rocksMissing)()
  const kind = pick(directory, options.store, missing)
  if (missing !== undefined && kind === 'level') {
    options.logger.warn(`RocksDB is not available here, using LevelDB, which is slower: ${missing}`)
  }
  if (directory.store === undefined) recordStore(directory, kind)
  const open = kind === 'rocksdb' ? openRocksStore : openLevelStore
  try {
    return await open(directory.storePath, { durability: options.durability })
  } catch (error) {
    throw explained(directory.path, error)
  }
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
    return new DataDirectoryError(`data directory ${path} is in use by another process`, { cause: error })
  }
  const message = reason instanceof Error ? reason.message : String(reason)
  return new DataDirectoryError(`data directory ${path} cannot be opened: ${message}`, { cause: error })
}
