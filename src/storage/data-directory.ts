// The data directory: what is in it, who made it, and whether we may use it.
//
// `orrery.json` names the format, the number of shards and their spread, the kind of store and the directory's id. Shards
// and spread decide where every row lies, so what the file says wins over the configuration. It is replaced as a whole
// (a new file flushed, then renamed): after a crash there is the old one, the new one, or none.
//
// A directory we do not recognize is refused with a sentence for the operator, never adopted and never cleaned.
//
// Not here: the store's own files under `store/` and their lock (open-store).

import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** What an operator has to set right about a data directory. The message is a sentence for them. */
export class DataDirectoryError extends Error {
  override readonly name = 'DataDirectoryError'
}

export type StoreKind = 'rocksdb' | 'level'

export interface DataDirectory {
  readonly path: string
  /** Where the store keeps its files. */
  readonly storePath: string
  readonly shards: number
  readonly spread: number
  /** Which store made it; undefined until one has. */
  readonly store?: StoreKind
  readonly id: string
}

const format = 1
const fileName = 'orrery.json'
const temporaryName = 'orrery.json.new'

/** What may lie in a directory that is still free: our own unfinished file, and what mkfs puts into a fresh volume. */
const harmless = new Set([temporaryName, 'lost+found'])

/** Opens the directory, or creates it with what is wanted. `id` is asked for a UUID when it is created. */
export function openDataDirectory(
  path: string,
  wanted: { readonly shards: number; readonly spread: number },
  id: () => string,
): DataDirectory {
  const names = namesIn(path)
  if (names.includes(fileName)) return read(path)
  const stranger = names.find(name => !harmless.has(name))
  if (stranger !== undefined) {
    throw new DataDirectoryError(
      `data directory ${path} holds "${stranger}" but no ${fileName}: choose an empty directory, or restore the file from a backup`,
    )
  }
  return write({ path, storePath: join(path, 'store'), shards: wanted.shards, spread: wanted.spread, id: id() })
}

/** Notes which store the directory is used with, before that store writes its first file. */
export function recordStore(directory: DataDirectory, store: StoreKind): DataDirectory {
  return write({ ...directory, store })
}

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
  if (found !== undefined && found.format !== format && typeof found.format === 'number') {
    throw new DataDirectoryError(
      `data directory ${path} has format ${found.format} and this version reads format ${format}: start the version that wrote it`,
    )
  }
  const { shards, spread, store, id } = found ?? {}
  const whole = found?.format === format && isCount(shards) && isCount(spread) && typeof id === 'string'
  if (!whole || !(store === undefined || store === 'rocksdb' || store === 'level')) {
    throw new DataDirectoryError(`data directory ${path} has a damaged ${fileName}: restore the file from a backup`)
  }
  return { path, storePath: join(path, 'store'), shards, spread, id, ...(store && { store }) }
}

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
  const { path, shards, spread, store, id } = directory
  const temporary = join(path, temporaryName)
  try {
    const file = openSync(temporary, 'w', 0o600)
    try {
      writeSync(file, `${JSON.stringify({ format, shards, spread, store, id }, null, 2)}\n`)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(temporary, join(path, fileName))
    // The rename is in the directory, and the directory has to be flushed as well.
    const folder = openSync(path, 'r')
    try {
      fsyncSync(folder)
    } finally {
      closeSync(folder)
    }
  } catch (error) {
    throw unusable(path, error)
  }
  return directory
}

function unusable(path: string, cause: unknown): DataDirectoryError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new DataDirectoryError(`data directory ${path} cannot be used: ${reason}`, { cause })
}
