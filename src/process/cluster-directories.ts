// `orrery cluster init --from DIR`: the data directory of a single node becomes the first content of a cluster. `orrery
// cluster leave --from DIR`: that of a node of a cluster becomes the data directory of a single node.
//
// Into a cluster: the rows go into the store of the first node, which holds all shards from then on. The logs of the
// shards begin behind these rows, so every other node fetches its copies from that node
// (cluster/replication/founding.ts). The cluster has as many shards as the directory.
//
//   the cluster is named in the engine -> rows -> logs begin -> positions in the store -> orrery.json
//
// Out of a cluster: the copy has to be whole, and it must have all that was acknowledged
// (cluster/replication/leaving.ts).
//
// After an interruption the operator gives the same command again. It fills the new store from the beginning, since the
// old directory may have changed in between.
//
// Not here: rows and the new directory (fill-directory.ts), a cluster whose log is gone (recover.ts).

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { assertFoundable, findBehind, findLiving, foundLogs } from '../../cluster/index.js'
import { systemChance, systemClock } from '../clock.js'
import { placementDefault } from '../domain/scope.js'
import type { OpenDirectory } from '../move/directory.js'
import { readCopies, shardsInWords } from '../move/node-copies.js'
import type { Store } from '../ports.js'
import { Positions } from '../shard/replicate/positions.js'
import type { FollowedPosition } from '../shard/replicate/replication.js'
import { clusterOf, createDirectory, DataDirectoryError } from '../storage/data-directory.js'
import { agreed, agreedBefore } from './cluster-marks.js'
import {
  type Command,
  clusterIn,
  logOf,
  type OpenLog,
  type Order,
  runDirectoryCommand,
  warn,
} from './directory-command.js'
import { type Filled, fillDirectory, markNew, openOld } from './fill-directory.js'
import { recover } from './recover.js'
import type { Agreement } from './surroundings.js'

const init: Command = {
  takes: 'one',
  flags: [],
  run: runInit,
}

const withoutLog = '-withoutLog'

const leave: Command = {
  takes: 'one',
  flags: [withoutLog],
  run: runLeave,
}

const commands = { init, leave, recover } as const

/** Runs the command; returns the exit status. */
export const runOnDirectory = (
  verb: keyof typeof commands,
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> => runDirectoryCommand(verb, commands[verb], words, env)

const contentOf = ({ entities, subscriptions, registrations }: Filled): string =>
  `${entities} entities, ${subscriptions} subscriptions and ${registrations} registrations`

/** The file in an unfinished new directory. It holds a mark by which the logs recognize the command that began them. */
const initMark = 'cluster-init.json'
const leaveMark = 'cluster-leave.json'

/** Options of a new directory that gets the content of an old one. */
const contentIn = ({ directory: { shards, spread, store } }: OpenDirectory, path: string) => ({
  ...{ path, shards, spread, id: systemChance.uuid() },
  ...(store && { store }),
})

// Into a cluster

async function runInit({ from: [from], config, signal }: Order): Promise<string> {
  const cluster = clusterIn(config, 'init')
  const to = config.store.directory
  const mark = markNew(to, initMark)
  const { log, engines } = logOf(cluster)
  try {
    const old = await openOld(from, to, placementDefault, warn)
    try {
      const agreement = await agreedWith(old, engines)
      // The log of the register is one more.
      const logs = Array.from({ length: agreement.shards + 1 }, (_, shard) => shard)
      await assertFoundable(logs, mark, log, systemClock)
      const finish = async (target: Store): Promise<void> =>
        putPositions(target, await foundLogs(logs, mark, log, systemClock))
      const filled = await fillDirectory(old, { to, isNode: true, finish, signal })
      createDirectory({ ...contentIn(old, to), cluster: { id: agreement.id } })
      rmSync(join(to, initMark))
      return [
        `${contentOf(filled)} of ${from} are the first content of cluster ${agreement.id}.`,
        `Start node ${cluster.name} with -dataDir ${to}, and the others with empty ones. Keep ${from} until they have their copies, and start nothing on it.`,
      ].join('\n')
    } finally {
      await old.close()
    }
  } finally {
    await log.close()
  }
}

/** The agreement of the cluster. It has as many shards as the directory, so that every row keeps its place. */
async function agreedWith(
  { directory: { path, shards, spread } }: OpenDirectory,
  engines: OpenLog['engines'],
): Promise<Agreement> {
  const { agreement } = await agreed(engines, { shards, spread, id: systemChance.uuid() }, { warn })
  if (agreement.shards === shards && agreement.spread === spread) return agreement
  throw new Error(
    `the log engine keeps a cluster of ${agreement.shards} shards (spread ${agreement.spread}), and data directory ${path} has ${shards} (spread ${spread}): ` +
      'begin with a log engine that keeps no cluster, or move the entities with "orrery export" and "orrery import"',
  )
}

function putPositions(target: Store, founded: ReadonlyMap<number, FollowedPosition>): Promise<void> {
  const batch = target.batch()
  const positions = new Positions()
  for (const [shard, position] of founded) positions.put(batch, shard, position)
  return new Promise((resolve, reject) => target.commit(batch, error => (error ? reject(error) : resolve())))
}

// Out of a cluster

async function runLeave({ from: [from], config, flags, signal }: Order): Promise<string> {
  const own = clusterOf(from)
  if (!own) throw new DataDirectoryError(`data directory ${from} is that of a single node already`)
  const open = flags.has(withoutLog) ? undefined : logOf(clusterIn(config, 'leave'))
  const to = config.store.directory
  markNew(to, leaveMark)
  try {
    const old = await openOld(from, to, { ...placementDefault, cluster: own }, warn)
    try {
      const positions = await wholeCopy(old)
      if (open) await assertNothingMissing(from, own.id, positions, open)
      else warn(`Without the log: changes that other nodes have acknowledged and that are not in ${from} are missing.`)
      const filled = await fillDirectory(old, { to, isNode: false, signal })
      createDirectory(contentIn(old, to))
      rmSync(join(to, leaveMark))
      return [
        `${contentOf(filled)} of cluster ${own.id} are those of a single node now.`,
        `Start it with -dataDir ${to}, and start no node of the cluster any more. Keep ${from} until you have seen that all is there.`,
      ].join('\n')
    } finally {
      await old.close()
    }
  } finally {
    await open?.log.close()
  }
}

/** The position of the copy in the log of each shard. Refuses a directory that lacks a shard. */
async function wholeCopy({
  directory: { path, shards },
  stores,
}: OpenDirectory): Promise<ReadonlyMap<number, FollowedPosition>> {
  // A node has one store.
  const { positions, missing } = await readCopies(stores[0]!, shards)
  if (missing.length === 0) return positions
  throw new DataDirectoryError(
    `data directory ${path} has no complete copy of ${shardsInWords(missing)}: choose that of a node that has copies of all`,
  )
}

async function assertNothingMissing(
  from: string,
  id: string,
  positions: ReadonlyMap<number, FollowedPosition>,
  { log, engines }: OpenLog,
): Promise<void> {
  // This check precedes the reading of the logs: a node that ends only afterwards may have appended meanwhile.
  const living = await findLiving(log, systemClock)
  if (living.length > 0)
    throw new Error(
      `${living.join(', ')} still run${living.length === 1 ? 's' : ''}: stop all nodes of the cluster first`,
    )
  const behind = await findBehind(positions, log, systemClock).catch((error: Error) => {
    throw new Error(
      `${error.message}. ${withoutLog} goes on without it; changes that are not in ${from} are then missing`,
    )
  })
  await agreedBefore(engines, { path: from, id }, { warn })
  if (behind.length > 0)
    throw new Error(
      `the log has changes of ${shardsInWords(behind)} that are not in ${from}: start the nodes again, wait until "orrery cluster status" shows at this node that every shard has a copy and none is behind, and stop this node last`,
    )
}
