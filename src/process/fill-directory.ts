// The common part of all moves of a data directory's content, and the move into a new directory of one store: the
// content of a single node becomes that of a node of a cluster, or the other way round.
//
// The old stores are only read, with their locks held, after their bundles have been split (shard/notify/bundle.ts). No
// broker starts on the new directory until the caller writes `orrery.json`. So an interrupted move starts again with an
// empty store.
//
// Not here: rows (shard/transfer.ts), another number of workers in the same directory (repartition.ts).

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemChance, systemClock } from '../clock.js'
import { workerOf } from '../domain/scope.js'
import { type OpenDirectory, openStores } from '../move/directory.js'
import { openProgress } from '../observe/progress.js'
import type { Store } from '../ports.js'
import { rowsOf } from '../rows.js'
import { documentRange } from '../shard/documents/document-layout.js'
import { splitBundles } from '../shard/notify/bundle.js'
import { countEntities, findForeignRow, transfer, transferLimitsDefault } from '../shard/transfer.js'
import {
  type DataDirectory,
  DataDirectoryError,
  flushFolder,
  isDataDirectory,
  openDataDirectory,
  strangerIn,
  type WantedDirectory,
} from '../storage/data-directory.js'
import { openPart } from '../storage/open-store.js'
import { discardStores, freeBytes, storeBytes } from '../storage/store-folders.js'

/** New stores take about as much room as the old ones, and more for a while when tables are merged. */
export const roomFactor = 1.25

/** The sum of the entity counts that the stores hold. */
export async function entitiesIn(stores: readonly Store[]): Promise<number> {
  let total = 0
  for (const store of stores) total += await countEntities(store)
  return total
}

/**
 * Refuses stores with rows that would be lost: another version may have written them. `advice` tells the operator what
 * to do.
 */
export async function assertMovable(
  stores: readonly Store[],
  { path, shards }: Pick<DataDirectory, 'path' | 'shards'>,
  advice: string,
): Promise<void> {
  for (const [worker, store] of stores.entries()) {
    const owns = (shard: number): boolean => shard < shards && workerOf(shard, stores.length) === worker
    const stranger = await findForeignRow(store, owns)
    if (stranger !== undefined) throw new DataDirectoryError(`data directory ${path} holds ${stranger}: ${advice}`)
  }
}

/**
 * Opens the stores of a directory whose content is to move into a new one, and checks that the new one has enough room.
 * `wanted`: the properties that the old one must have.
 */
export async function openOld(
  from: string,
  to: string,
  wanted: WantedDirectory,
  warn: (line: string) => void,
): Promise<OpenDirectory> {
  const old = await openStores(openDataDirectory(from, wanted, neverMade), 'os', warn)
  try {
    for (const store of old.stores) await splitBundles(store)
    await assertMovable(old.stores, old.directory, 'start and stop the version that wrote it first')
    const neededBytes = storeBytes(from, old.directory.workers) * roomFactor
    if (freeBytes(to) < neededBytes)
      throw new DataDirectoryError(
        `${to} has too little room: it takes about ${Math.ceil(neededBytes / 1024 / 1024)} MB`,
      )
    return old
  } catch (error) {
    await old.close()
    throw error
  }
}

function neverMade(): never {
  throw new Error('the data directory has gone meanwhile')
}

/**
 * Marks a directory for a move with the file `name`. Returns the mark in it, from an earlier try or a new one. Refuses
 * a directory with any other content.
 */
export function markNew(to: string, name: string): string {
  mkdirSync(to, { recursive: true, mode: 0o700 })
  const file = join(to, name)
  if (isDataDirectory(to)) throw new DataDirectoryError(`${to} is a data directory already: choose an empty one`)
  if (existsSync(file)) return readFileSync(file, 'utf8')
  const stranger = strangerIn(readdirSync(to))
  if (stranger !== undefined)
    throw new DataDirectoryError(`${to} holds ${JSON.stringify(stranger)}: choose an empty directory`)
  const mark = systemChance.uuid()
  writeFileSync(file, mark, { flush: true, mode: 0o600 })
  flushFolder(to)
  return mark
}

/** The content that a store was filled with. */
export interface Filled {
  readonly entities: number
  readonly subscriptions: number
  readonly registrations: number
}

export interface DirectoryFilling {
  readonly to: string
  /** Whether a node of a cluster will use it. */
  readonly isNode: boolean
  /** Runs when all content is there; its writes become durable together with it. */
  readonly finish?: (target: Store) => Promise<void>
  readonly signal: AbortSignal
}

/** Moves the content of the old stores into one new store; all of it is durable afterwards. */
export async function fillDirectory(
  { directory, stores }: OpenDirectory,
  { to, isNode, finish, signal }: DirectoryFilling,
): Promise<Filled> {
  discardStores(to, 1)
  const target = await openPart(to, directory.store!, { worker: 0, workers: 1 }, { durability: 'os' })
  const logger = { info: (line: string): void => void process.stderr.write(`${line}\n`) }
  const progress = openProgress({ title: `Copying ${directory.path}`, unit: 'entities', clock: systemClock, logger })
  const { shards } = directory
  let entities = 0
  try {
    const total = await entitiesIn(stores)
    await transfer({
      ...{ target, worker: 0, workers: 1, isNode, sources: stores, shards, limits: transferLimitsDefault, signal },
      onBatch: more => {
        entities += more
        progress.show(entities, total)
      },
    })
    await finish?.(target)
    const countOf = async (kind: 'subscription' | 'registration'): Promise<number> => {
      let count = 0
      for await (const rows of rowsOf(target, documentRange(kind, shards), { parts: 'keys' })) count += rows.length
      return count
    }
    return { entities, subscriptions: await countOf('subscription'), registrations: await countOf('registration') }
  } finally {
    progress.end()
    // Closing makes the content durable before the directory gets its `orrery.json`.
    await target.close()
  }
}
