// The folders of the stores in a data directory: `store` for one worker, `stores/3/0` and so on for three.
//
// Every number of workers has its own folder. So while rows are divided anew, the old stores and the new ones exist
// side by side, and `orrery.json` names those in effect. A folder that it does not name is left over from work that
// ended or was given up. A process that holds the locks of the stores in effect may remove it. A folder is renamed
// before its files are deleted, so that a half-deleted store is never taken for an unfinished new one.
//
// Not here: `orrery.json` (data-directory), when folders are removed (src/process/repartition.ts).

import { existsSync, lstatSync, mkdirSync, readdirSync, renameSync, rmdirSync, rmSync, statfsSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { type DataDirectory, flushFolder, unusable } from './data-directory.js'

const folderOfOne = 'store'
const folderOfMany = 'stores'
const discardedPrefix = 'discarded-'
/** The names that we create in the folder of many; anything else there is not ours. */
const ours = /^(discarded-)?([1-9][0-9]*|store)$/

const folderFor = (path: string, workers: number): string =>
  workers === 1 ? join(path, folderOfOne) : join(path, folderOfMany, String(workers))

/** The folder of a worker's store, for this number of workers. */
export const storeFolder = (path: string, workers: number, worker: number): string =>
  workers === 1 ? folderFor(path, 1) : join(folderFor(path, workers), String(worker))

/**
 * Creates the folder of a store, and missing folders between it and the data directory, and makes their names durable.
 */
export function makeStoreFolder(path: string, workers: number, worker: number): string {
  const folder = storeFolder(path, workers, worker)
  if (mkdirSync(folder, { recursive: true, mode: 0o700 }) === undefined) return folder
  // Resolved, because `path` may be relative or end with a slash, and its parts would not be equal to it.
  const top = resolve(path)
  for (let made = resolve(folder); made !== top; made = dirname(made)) flushFolder(dirname(made))
  return folder
}

/** The folders of stores that the directory's file does not name. */
export function leftovers({ path, workers, becoming }: DataDirectory): string[] {
  const named = [workers, becoming].map(one => one && folderFor(path, one))
  const many = join(path, folderOfMany)
  const names = existsSync(many) ? readdirSync(many).filter(name => ours.test(name)) : []
  const all = [folderFor(path, 1), ...names.map(name => join(many, name))]
  return all.filter(folder => !named.includes(folder) && existsSync(folder))
}

/** Removes folders that the directory's file does not name. The caller holds the locks of the stores that it names. */
export function discardLeftovers(directory: DataDirectory): void {
  for (const folder of leftovers(directory)) discard(directory.path, folder)
}

/** Removes the stores for a number of workers, even named ones. Throws a DataDirectoryError if it cannot. */
export function discardStores(path: string, workers: number): void {
  const folder = folderFor(path, workers)
  try {
    if (existsSync(folder)) discard(path, folder)
  } catch (error) {
    throw unusable(path, error)
  }
}

function discard(path: string, folder: string): void {
  const many = join(path, folderOfMany)
  let aside = folder
  if (!basename(folder).startsWith(discardedPrefix)) {
    aside = join(many, `${discardedPrefix}${basename(folder)}`)
    mkdirSync(many, { recursive: true, mode: 0o700 })
    rmSync(aside, { recursive: true, force: true })
    renameSync(folder, aside)
    flushFolder(many)
  }
  rmSync(aside, { recursive: true, force: true })
  if (readdirSync(many).length === 0) rmdirSync(many)
}

/** Bytes on the disk of the stores for a number of workers. */
export function storeBytes(path: string, workers: number): number {
  const folder = folderFor(path, workers)
  if (!existsSync(folder)) return 0
  let sum = 0
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) sum += lstatSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size ?? 0
  return sum
}

/** Bytes that are free for us on the disk of a folder. */
export function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(path)
  return bavail * bsize
}
