// `orrery cluster init --from DIR`: the data directory of a single node becomes the first content of a cluster.
//
// The rows go into the store of the first node, which holds all shards from then on; the logs of the shards begin behind them, so every other
// node fetches its copies from that one (cluster/replication/founding.ts). The old directory is only read, with the locks of its stores held.
//
// Until all is done the new directory has no `orrery.json`, and no node starts on it. An interrupted command is given again: it fills
// the new store anew, since the old directory may have changed in between, and goes on with the logs as they are.
//
//   the cluster is named in the engine -> rows -> logs begin -> positions in the store -> orrery.json
//
// Not here: which rows become which (shard/replicate/seed.ts).

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { assertFoundable, foundLogs } from '../../cluster/index.js'
import { systemChance, systemClock } from '../clock.js'
import { type ClusterConfig, readConfig } from '../config/config.js'
import { placementDefault, placementOfCluster, ShardMap, workerOf } from '../domain/scope.js'
import { type OpenDirectory, openStores } from '../move/directory.js'
import { openProgress } from '../observe/progress.js'
import type { Store } from '../ports.js'
import { lastStamp } from '../shard/commit/commit-log.js'
import { splitBundles } from '../shard/notify/bundle.js'
import { putPositions, type Seeded, seed } from '../shard/replicate/seed.js'
import { countEntities, findStranger, transferLimitsDefault } from '../shard/transfer.js'
import {
  createNodeDirectory,
  DataDirectoryError,
  flushFolder,
  isDataDirectory,
  openDataDirectory,
} from '../storage/data-directory.js'
import { openPart } from '../storage/open-store.js'
import { discardStores, freeBytes, storeBytes } from '../storage/store-folders.js'
import { agreed, certificatesOf, openLogOf } from './cluster-log.js'
import type { Agreement } from './surroundings.js'

export const initUsage = [
  'Usage: orrery cluster init --from DIR <the options that the first node will be started with>',
  'Makes the data directory DIR of a single node, which must not be in use, the first content of a cluster: in the -dataDir of its first node.',
].join('\n')

/** What lies in a new directory as long as it is not finished: a word that tells the logs which this command has begun. */
const markName = 'cluster-init.json'

/** New stores take about what the old ones take, more for a while when tables are merged. */
const roomFactor = 1.25

/** Runs the command; gives the exit status. */
export async function runInit(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const at = words.findIndex(word => word === '-from' || word === '--from')
  const from = at < 0 ? undefined : words[at + 1]
  const reading = readConfig(at < 0 ? words : words.toSpliced(at, 2), env)
  if (reading.kind === 'print') return told('stdout', initUsage, 0)
  if (from === undefined) return told('stderr', initUsage, 1)
  if (reading.kind === 'refuse') return told('stderr', [...reading.lines, '', initUsage].join('\n'), 1)
  const { cluster, store } = reading.config
  if (!cluster) return told('stderr', `-clusterListen, -nodeName and -shardLog are missing\n\n${initUsage}`, 1)
  const stop = new AbortController()
  const onSignal = (): void => stop.abort(new Error('stopped; the same command begins again'))
  for (const signal of signals) process.once(signal, onSignal)
  try {
    const { seeded, id } = await init(from, store.directory, cluster, stop.signal)
    const { entities, subscriptions, registrations } = seeded
    return told(
      'stdout',
      [
        `${entities} entities, ${subscriptions} subscriptions and ${registrations} registrations of ${from} are the first content of cluster ${id}.`,
        `Start node ${cluster.name} with -dataDir ${store.directory}, and the others with empty ones. Keep ${from} until they have their copies, and start nothing on it.`,
      ].join('\n'),
      0,
    )
  } catch (error) {
    return told('stderr', `orrery cluster init: ${(error as Error).message}`, 1)
  } finally {
    for (const signal of signals) process.off(signal, onSignal)
  }
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

function told(stream: 'stdout' | 'stderr', text: string, status: number): number {
  process[stream].write(`${text}\n`)
  return status
}

/** Rejects with a sentence for the operator; the old directory is as it was in any case. */
async function init(
  from: string,
  to: string,
  cluster: ClusterConfig,
  signal: AbortSignal,
): Promise<{ readonly seeded: Seeded; readonly id: string }> {
  if (!isDataDirectory(from)) throw new DataDirectoryError(`${from} is no data directory`)
  const mark = markAt(to)
  const log = openLogOf(cluster, cluster.tls && certificatesOf(cluster.tls))
  try {
    const warn = (line: string): void => void process.stderr.write(`${line}\n`)
    const old = await openStores(openDataDirectory(from, placementDefault, neverMade), 'os', warn)
    try {
      for (const store of old.stores) await splitBundles(store)
      await assertReadable(old)
      assertRoom(old, to)
      const { agreement } = await agreed(log, { ...placementOfCluster, id: systemChance.uuid() }, { warn })
      // The register's is one more.
      const logs = agreement.shards + 1
      await assertFoundable(logs, mark, log, systemClock)
      const store = await emptyStore(old, to)
      let seeded: Seeded
      try {
        seeded = await fill(store, old, agreement, signal)
        const positions = await foundLogs(logs, mark, log, systemClock)
        const batch = store.batch()
        putPositions(batch, positions, seeded.stamp)
        await new Promise<void>((resolve, reject) => store.commit(batch, error => (error ? reject(error) : resolve())))
      } finally {
        // Makes durable what counts from the next line on.
        await store.close()
      }
      createNodeDirectory({ path: to, ...agreement, store: kindOf(old), id: systemChance.uuid(), cluster: agreement })
      rmSync(join(to, markName))
      return { seeded, id: agreement.id }
    } finally {
      await old.close()
    }
  } finally {
    await log.close()
  }
}

function neverMade(): never {
  throw new Error('a directory that is there is not made')
}

/** The word of earlier tries, or a new one. Refuses a directory in which there is anything else. */
function markAt(to: string): string {
  mkdirSync(to, { recursive: true, mode: 0o700 })
  const file = join(to, markName)
  if (isDataDirectory(to)) throw new DataDirectoryError(`${to} is a data directory already: choose an empty one`)
  if (existsSync(file)) return readFileSync(file, 'utf8')
  const [stranger] = readdirSync(to)
  if (stranger !== undefined)
    throw new DataDirectoryError(`${to} holds ${JSON.stringify(stranger)}: choose an empty directory`)
  const mark = systemChance.uuid()
  writeFileSync(file, mark, { flush: true, mode: 0o600 })
  flushFolder(to)
  return mark
}

/** Refuses what would be lost: another version may have written it. */
async function assertReadable({ directory, stores }: OpenDirectory): Promise<void> {
  for (const [worker, store] of stores.entries()) {
    const owns = (shard: number): boolean => shard < directory.shards && workerOf(shard, stores.length) === worker
    const stranger = await findStranger(store, directory.shards, owns)
    if (stranger === undefined) continue
    throw new DataDirectoryError(
      `data directory ${directory.path} holds ${stranger}: start and stop the version that wrote it first`,
    )
  }
}

function assertRoom({ directory: { path, workers } }: OpenDirectory, to: string): void {
  const neededBytes = storeBytes(path, workers) * roomFactor
  if (freeBytes(to) < neededBytes)
    throw new DataDirectoryError(`${to} has too little room: it takes about ${Math.ceil(neededBytes / 1024 / 1024)} MB`)
}

const kindOf = ({ directory }: OpenDirectory) => directory.store!

function emptyStore(old: OpenDirectory, to: string): Promise<Store> {
  discardStores(to, 1)
  return openPart(to, kindOf(old), { worker: 0, workers: 1 }, { durability: 'os' })
}

async function fill(
  target: Store,
  { directory, stores }: OpenDirectory,
  agreement: Agreement,
  signal: AbortSignal,
): Promise<Seeded> {
  let total = 0
  for (const store of stores) total += await countEntities(store)
  const logger = { info: (line: string): void => void process.stderr.write(`${line}\n`) }
  const progress = openProgress({ title: `Copying ${directory.path}`, unit: 'entities', clock: systemClock, logger })
  let done = 0
  try {
    return await seed({
      sources: stores,
      sourceShards: directory.shards,
      target,
      shardMap: new ShardMap(agreement),
      stamp: Math.max(...stores.map(lastStamp)),
      limits: transferLimitsDefault,
      onBatch: entities => {
        done += entities
        progress.show(done, total)
      },
      signal,
    })
  } finally {
    progress.end()
  }
}
