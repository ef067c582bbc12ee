// The data directory: its content, its maker, and whether we may use it.
//
// `orrery.json` names the format, the number of shards and their spread, the number of workers, the kind of store and
// the directory's id. They decide the place of every row, so the file takes precedence over the configuration. It is
// replaced as a whole (a new file flushed, then renamed): after a crash there is the old one, the new one, or none.
//
// While the rows are being divided anew it also names the future number of workers (`becoming`). That of a node of a
// cluster names the cluster: its store follows logs that no single node knows. Formats 1 to 3 had counts in other rows;
// no release wrote them.
//
// A directory we do not recognize is refused with a sentence for the operator, never adopted and never cleaned.
//
// Not here: the folders of the stores (store-folders), their own files and their locks (open-store).

import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'

/** A fault of a data directory that an operator must correct. The message is a sentence for them. */
export class DataDirectoryError extends Error {
  override readonly name = 'DataDirectoryError'
}

export type StoreKind = 'rocksdb' | 'level'

export interface DataDirectory {
  readonly path: string
  readonly shards: number
  readonly spread: number
  /** Number of workers among which the shards are divided: each has a store of its own. */
  readonly workers: number
  /**
   * The future number of workers; undefined unless a division is in progress. Until it has ended or was given up, no
   * broker uses the stores.
   */
  readonly becoming?: number
  /** The cluster of the node that it belongs to; undefined: it belongs to a single node. */
  readonly cluster?: { readonly id: string }
  /** The store that made it; undefined until one has. */
  readonly store?: StoreKind
  readonly id: string
}

/** The version of this file, and of all rows of the stores. */
export const rowFormat = 4
const fileName = 'orrery.json'
const temporaryName = `${fileName}.new`
/** The file of a recovery that has not ended (recovery-plan.ts). */
export const recoveryFile = 'cluster-recover.json'

/** Names that a free directory may contain: our own unfinished file, and the one that mkfs puts into a fresh volume. */
const harmless = new Set([temporaryName, 'lost+found'])

/** The first name that may not be in a free directory; undefined: the directory is free. */
export const strangerIn = (names: readonly string[]): string | undefined => names.find(name => !harmless.has(name))

/** Properties of a new directory; `workers` is one by default. */
export interface WantedDirectory {
  readonly shards: number
  readonly spread: number
  readonly workers?: number
  /** The cluster of its node; undefined: it is a single one. An existing directory must have the same. */
  readonly cluster?: { readonly id: string }
}

/**
 * Opens the directory, or creates it as wanted. `id` returns a UUID for a new one. An existing directory keeps its own
 * number of workers: src/process/repartition.ts changes it.
 */
export function openDataDirectory(path: string, wanted: WantedDirectory, id: () => string): DataDirectory {
  const names = namesIn(path)
  if (names.includes(fileName)) return assertBelongs(read(path), wanted)
  assertFree(path, names)
  const { shards, spread, workers = 1, cluster } = wanted
  assertWorkers(path, shards, workers)
  return write({ path, shards, spread, workers, id: id(), ...(cluster && { cluster }) })
}

/**
 * Refuses everything that `openDataDirectory` would refuse, and creates nothing. Returns the directory; undefined:
 * there is none yet, and it can be created.
 */
export function assertOpenable(path: string, wanted: WantedDirectory): DataDirectory | undefined {
  const { shards, workers = 1 } = wanted
  const place = existingFolder(path)
  try {
    accessSync(place, constants.R_OK | constants.W_OK | constants.X_OK)
    const names = place === resolve(path) ? readdirSync(place) : []
    if (names.includes(fileName)) {
      const directory = assertBelongs(read(path), wanted)
      assertWorkers(path, directory.shards, workers)
      return directory
    }
    assertFree(path, names)
  } catch (error) {
    throw error instanceof DataDirectoryError ? error : unusable(path, error)
  }
  assertWorkers(path, shards, workers)
  return undefined
}

/** The path itself if it exists, else the nearest existing folder above it. */
function existingFolder(path: string): string {
  let place = resolve(path)
  while (!existsSync(place) && dirname(place) !== place) place = dirname(place)
  if (!statSync(place).isDirectory()) throw unusable(path, new Error(`${place} is no directory`))
  return place
}

/** Refuses a folder with other content. */
function assertFree(path: string, names: readonly string[]): void {
  const stranger = strangerIn(names)
  if (stranger !== undefined) {
    throw new DataDirectoryError(
      `data directory ${path} holds "${stranger}" but no ${fileName}: choose an empty directory, or restore the file from a backup`,
    )
  }
}

/** Creates the file for a data directory whose one store exists already: from then on the directory is in effect. */
export function createDirectory({
  path,
  shards,
  spread,
  cluster,
  store,
  id,
}: Omit<DataDirectory, 'becoming' | 'workers'>): DataDirectory {
  return write({ path, shards, spread, workers: 1, ...(cluster && { cluster }), ...(store && { store }), id })
}

/** Refuses the directory of a single node for a node of a cluster, the other way round, and that of another cluster. */
function assertBelongs(directory: DataDirectory, { cluster: wanted }: WantedDirectory): DataDirectory {
  const { path, cluster } = directory
  if (existsSync(join(path, recoveryFile)))
    throw new DataDirectoryError(
      `data directory ${path} is part of a recovery that has not ended: give the same "orrery cluster recover" again. If it has ended without this directory, choose an empty one`,
    )
  if (cluster?.id === wanted?.id) return directory
  if (!cluster)
    throw new DataDirectoryError(
      `data directory ${path} is that of a single node: choose an empty one for a node of a cluster, whose first content it becomes with "orrery cluster init --from ${path}"`,
    )
  if (!wanted)
    throw new DataDirectoryError(
      `data directory ${path} is that of a node of cluster ${cluster.id}, and of no use to a single node: choose another one, which gets its content with "orrery cluster leave --from ${path}"`,
    )
  throw new DataDirectoryError(
    `data directory ${path} is that of a node of cluster ${cluster.id}, not of ${wanted.id}: choose another directory`,
  )
}

/** The cluster of a directory; undefined: there is no directory yet, or it belongs to a single node. */
export function clusterOf(path: string): { readonly path: string; readonly id: string } | undefined {
  const { cluster } = isDataDirectory(path) ? read(path) : {}
  return cluster && { path, id: cluster.id }
}

/** Whether a path is a data directory. */
export const isDataDirectory = (path: string): boolean => existsSync(join(path, fileName))

/** Reads the file of a data directory, of a single node or of a node of a cluster. */
export const openedDirectory = (path: string): DataDirectory => read(path)

/** Refuses more workers than there are shards: the others would have nothing to do. */
export function assertWorkers(path: string, shards: number, workers: number): void {
  if (workers <= shards) return
  throw new DataDirectoryError(`data directory ${path} has ${shards} shards: choose at most ${shards} workers`)
}

/** Records that the copies of a node's directory follow the logs of another cluster now. */
export const recordCluster = (directory: DataDirectory, id: string): DataDirectory =>
  write({ ...directory, cluster: { id } })

/** Records the kind of store for the directory, before that store writes its first file. */
export function recordStore(directory: DataDirectory, store: StoreKind): DataDirectory {
  return write({ ...directory, store })
}

/** Records that the rows are to be divided among another number of workers, or, without one, that this was given up. */
export function recordBecoming(directory: DataDirectory, becoming: number | undefined): DataDirectory {
  const { becoming: _, ...rest } = directory
  return write(becoming === undefined ? rest : { ...rest, becoming })
}

/** Records that the rows have been divided among another number of workers: from now on their stores are in effect. */
export function recordWorkers(directory: DataDirectory, workers: number): DataDirectory {
  const { becoming: _, ...rest } = directory
  return write({ ...rest, workers })
}

/**
 * Refuses a directory whose rows were divided anew, or begun to be, since it was read. A caller that holds the lock of
 * one of its stores can rely on the answer, because a division needs all the locks.
 */
export function assertUnchanged(directory: DataDirectory): void {
  const { workers, becoming } = read(directory.path)
  if (workers === directory.workers && becoming === directory.becoming) return
  throw new DataDirectoryError(
    `data directory ${directory.path} was changed by another process: it was for ${wordsFor(directory.workers)}, start again`,
  )
}

/** A number of workers in words. */
export const wordsFor = (workers: number): string => (workers === 1 ? '1 worker' : `${workers} workers`)

function namesIn(path: string): string[] {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
    return readdirSync(path)
  } catch (error) {
    throw unusable(path, error)
  }
}

function read(path: string): DataDirectory {
  const file = join(path, fileName)
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw unusable(path, error)
  }
  const found = parse(text)
  const { format, shards, spread, store, id, workers, becoming, cluster } = found ?? {}
  if (typeof format === 'number' && format !== rowFormat) {
    const way = format < rowFormat ? ', whose "orrery export" writes a file for "orrery import"' : ''
    throw new DataDirectoryError(
      `data directory ${path} has format ${format} and this version reads format ${rowFormat}: start the version that wrote it${way}`,
    )
  }
  const whole = format === rowFormat && isCount(shards) && isCount(spread) && isCount(workers) && typeof id === 'string'
  if (!whole || !isStoreKind(store) || !(becoming === undefined || isCount(becoming)) || !isCluster(cluster)) {
    throw new DataDirectoryError(`data directory ${path} has a damaged ${fileName}: restore the file from a backup`)
  }
  const more = { ...(store && { store }), ...(becoming && { becoming }), ...(cluster && { cluster }) }
  return { path, shards, spread, workers, id, ...more }
}

const isCluster = (value: unknown): value is { readonly id: string } | undefined =>
  value === undefined || (typeof value === 'object' && value !== null && 'id' in value && typeof value.id === 'string')

const isStoreKind = (value: unknown): value is StoreKind | undefined =>
  value === undefined || value === 'rocksdb' || value === 'level'

function parse(text: string): Record<string, unknown> | undefined {
  try {
    const found: unknown = JSON.parse(text)
    return typeof found === 'object' && found !== null ? (found as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 1
}

function write(directory: DataDirectory): DataDirectory {
  const { path, shards, spread, workers, becoming, cluster, store, id } = directory
  const said = { format: rowFormat, shards, spread, workers, becoming, cluster, store, id }
  replaceFile(path, fileName, `${JSON.stringify(said, null, 2)}\n`)
  return directory
}

/** Replaces a file of the directory as a whole. */
export function replaceFile(path: string, name: string, text: string): void {
  const temporary = join(path, `${name}.new`)
  try {
    const file = openSync(temporary, 'w', 0o600)
    try {
      writeSync(file, text)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(temporary, join(path, name))
    // The rename changes the folder, so the folder has to be flushed as well.
    flushFolder(path)
  } catch (error) {
    throw unusable(path, error)
  }
}

/** Makes the names in a folder durable. */
export function flushFolder(path: string): void {
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

/** The sentence for a directory whose files cannot be read or written. */
export function unusable(path: string, cause: unknown): DataDirectoryError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new DataDirectoryError(`data directory ${path} cannot be used: ${reason}`, { cause })
}
