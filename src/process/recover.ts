// `orrery cluster recover --from DIR…`: a cluster whose log is gone continues with the data directories of its nodes.
//
// For each shard the furthest copy is chosen (cluster/replication/furthest.ts). The cluster gets another id and new
// logs, which begin behind these copies (cluster/replication/founding.ts). In each directory, copies that are equal to
// the chosen one get the new position. All other copies lose theirs, so the node fetches them. Rows are not touched.
//
//   plan in every directory -> the cluster is named in the engine -> logs begin -> positions in the plan
//     -> positions in every store -> orrery.json of every directory -> plans are removed
//
// After an interruption the same command continues with the plan (storage/recovery-plan.ts). The other id keeps nodes
// that did not take part away: their old records never follow the new logs.
//
// Not here: the report (recovery-report.ts).

import { realpathSync } from 'node:fs'
import { assertFoundable, chooseCopy, foundLogs, isSamePosition } from '../../cluster/index.js'
import { systemChance, systemClock } from '../clock.js'
import { stampMs } from '../domain/stamp.js'
import { type OpenDirectory, openStores } from '../move/directory.js'
import { type NodeCopies, readCopies, shardsInWords } from '../move/node-copies.js'
import { lastStamp } from '../shard/commit/commit-log.js'
import { Positions } from '../shard/replicate/positions.js'
import type { FollowedPosition } from '../shard/replicate/replication.js'
import { DataDirectoryError, openedDirectory, recordCluster } from '../storage/data-directory.js'
import { type RecoveryPlan, readPlan, removePlan, writePlan } from '../storage/recovery-plan.js'
import { agreed, agreementIn } from './cluster-marks.js'
import { type Command, clusterIn, logOf, type OpenLog, type Order, warn } from './directory-command.js'
import { reportInWords } from './recovery-report.js'

const withoutShards = '-withoutShards'

export const recover: Command = {
  takes: 'several',
  flags: [withoutShards],
  run: runRecover,
}

/** The directory of a node. Its store is open, so no other process uses it. */
interface NodeDirectory {
  readonly path: string
  /** The cluster that it belongs to. */
  readonly cluster: string
  readonly open: OpenDirectory
  readonly copies: NodeCopies
  readonly plan: RecoveryPlan | undefined
}

async function runRecover({ from, config, flags, signal }: Order): Promise<string> {
  const open = logOf(clusterIn(config, 'recover'))
  const directories: NodeDirectory[] = []
  try {
    assertDistinct(from)
    for (const path of from) directories.push(await openNode(path))
    return await recovered(directories, { ...open, signal, mayBeginEmpty: flags.has(withoutShards) })
  } finally {
    for (const { open } of directories) await open.close()
    await open.log.close()
  }
}

function assertDistinct(paths: readonly string[]): void {
  const seen = new Set<string>()
  for (const path of paths) {
    const real = realpathSync(path)
    if (seen.has(real)) throw new DataDirectoryError(`${path} is given twice`)
    seen.add(real)
  }
}

async function openNode(path: string): Promise<NodeDirectory> {
  const directory = openedDirectory(path)
  const cluster = directory.cluster?.id
  if (cluster === undefined)
    throw new DataDirectoryError(
      `data directory ${path} is that of a single node: "orrery cluster init" begins a cluster with it`,
    )
  const plan = readPlan(path)
  const open = await openStores(directory, 'sync', warn)
  try {
    return { path, cluster, open, copies: await readCopies(open.stores[0]!, directory.shards), plan }
  } catch (error) {
    await open.close()
    throw error
  }
}

interface Recovering extends OpenLog {
  readonly signal: AbortSignal
  /** Whether shards without a copy begin empty. */
  readonly mayBeginEmpty: boolean
}

async function recovered(
  directories: readonly NodeDirectory[],
  { log, engines, signal, mayBeginEmpty }: Recovering,
): Promise<string> {
  const { shards, spread } = directories[0]!.open.directory
  const kept = (await agreementIn(engines, { warn }))?.agreement.id
  const plan = unfinishedPlan(directories, kept) ?? newPlan(directories, mayBeginEmpty)
  const report = reportInWords({
    ...{ from: plan.from, to: plan.to, shards: [...plan.positions.keys()], total: shards + 1 },
    directories: directories.map(directory => {
      const current = currentIn(directory, plan)
      const behind = directory.copies.positions.size - current.size
      return { path: directory.path, lastMs: stampMs(lastStamp(storeOf(directory))), current, behind }
    }),
  })
  // An earlier try may have ended just before its plans were removed, and other nodes may run since then.
  const isFitted = kept === plan.to && directories.every(({ cluster }) => cluster === plan.to)
  if (!isFitted) {
    await assertFoundable(allShards(shards), plan.mark, log, systemClock)
    signal.throwIfAborted()
    for (const { path } of directories) writePlan(path, plan)
    const { agreement } = await agreed(engines, { shards, spread, id: plan.to, recovered: plan.from }, { warn })
    if (agreement.id !== plan.to) throw anotherCluster(agreement.id)
    const founded = await foundLogs(plan.positions.keys(), plan.mark, log, systemClock)
    // From here on some directories may have the new positions, and others the old ones.
    const begun = withFounded(plan, founded)
    for (const { path } of directories) writePlan(path, begun)
    for (const directory of directories) {
      signal.throwIfAborted()
      await fit(directory, begun, founded)
    }
  }
  for (const { path } of directories) removePlan(path)
  return report
}

/** All shards, and the register. */
const allShards = (shards: number): readonly number[] => Array.from({ length: shards + 1 }, (_, shard) => shard)

/** A node has one store. */
const storeOf = ({ open }: NodeDirectory) => open.stores[0]!

/**
 * The plan of an earlier try that has changed something; undefined: there was none. `kept`: the cluster that the engine
 * keeps. Rejects a cluster there that this recovery has not begun, and directories that do not fit the earlier try.
 */
function unfinishedPlan(directories: readonly NodeDirectory[], kept: string | undefined): RecoveryPlan | undefined {
  const plan = directories.find(directory => directory.plan)?.plan
  if (kept !== undefined && kept !== plan?.to) throw anotherCluster(kept)
  if (!plan) return undefined
  const stranger = directories.find(one => one.plan?.mark !== plan.mark && one.cluster !== plan.to)
  // Stores are changed only when every plan has the positions in the new logs.
  const hasChanged = kept !== undefined || directories.some(one => one.cluster === plan.to || hasBegun(one.plan))
  if (stranger && hasChanged)
    throw new Error(
      `${stranger.path} was not part of the recovery that has begun: leave it out, and start its node with an empty directory`,
    )
  if (stranger) return undefined
  const held = directories.map(directory => currentIn(directory, plan))
  const missing = [...plan.positions.keys()].filter(shard => !held.some(some => some.has(shard)))
  if (missing.length > 0)
    throw new Error(
      `none of these directories has the chosen copy of ${shardsInWords(missing)}: give all directories with which the recovery began`,
    )
  return plan
}

const hasBegun = (plan: RecoveryPlan | undefined): boolean =>
  plan !== undefined && [...plan.positions.values()].some(positions => positions.length > 1)

const anotherCluster = (id: string): Error =>
  new Error(
    `the log engine keeps cluster ${id}: recover begins with an engine that keeps none (docs/operations/disasters.md)`,
  )

/** The shards whose copy in a directory has the content with which the plan continues. */
function currentIn({ copies }: NodeDirectory, { positions }: RecoveryPlan): ReadonlySet<number> {
  const current = new Set<number>()
  for (const [shard, position] of copies.positions)
    if (positions.get(shard)?.some(one => isSamePosition(one, position))) current.add(shard)
  return current
}

function newPlan(directories: readonly NodeDirectory[], mayBeginEmpty: boolean): RecoveryPlan {
  const { cluster, path, open } = directories[0]!
  for (const other of directories)
    if (other.cluster !== cluster)
      throw new DataDirectoryError(
        `data directory ${path} is that of a node of cluster ${cluster}, and ${other.path} of cluster ${other.cluster}`,
      )
  const { shards } = open.directory
  const positions = new Map<number, readonly FollowedPosition[]>()
  const missing: number[] = []
  const undecided: number[] = []
  for (const shard of allShards(shards)) {
    const choice = chooseCopy(directories.map(({ copies }) => copies.positions.get(shard)))
    if (choice.kind === 'missing') missing.push(shard)
    else if (choice.kind === 'undecided') undecided.push(shard)
    else {
      positions.set(shard, [choice.position])
      for (const at of choice.refused) warnOfRefused(directories[at]!, shard, choice.position)
    }
  }
  if (undecided.length > 0)
    throw new Error(
      `the copies of ${shardsInWords(undecided)} contradict each other, since the directories have followed different logs: leave out those that followed the wrong one`,
    )
  if (missing.includes(shards))
    throw new Error('none of these directories has a complete copy of the register, which has the subscriptions')
  if (missing.length > 0 && !mayBeginEmpty)
    throw new Error(
      `none of these directories has a complete copy of ${shardsInWords(missing)}: give the directories of more nodes, or with ${withoutShards} let these shards begin empty`,
    )
  return { mark: systemChance.uuid(), from: cluster, to: systemChance.uuid(), positions }
}

function warnOfRefused({ path, copies }: NodeDirectory, shard: number, taken: FollowedPosition): void {
  const { sequence } = copies.positions.get(shard)!
  warn(
    `${path}: the copy of shard ${shard} up to record ${sequence} is refused, since its hash chain is another one than that of most copies. ` +
      `A copy up to record ${taken.sequence} is taken`,
  )
}

const withFounded = (plan: RecoveryPlan, founded: ReadonlyMap<number, FollowedPosition>): RecoveryPlan => ({
  ...plan,
  positions: new Map(
    [...plan.positions].map(([shard, some]) => {
      const begun = founded.get(shard)!
      return [shard, some.some(one => isSamePosition(one, begun)) ? some : [...some, begun]]
    }),
  ),
})

/** Makes a directory fit the new logs. Doing it again changes nothing. */
async function fit(
  directory: NodeDirectory,
  plan: RecoveryPlan,
  founded: ReadonlyMap<number, FollowedPosition>,
): Promise<void> {
  const store = storeOf(directory)
  const current = currentIn(directory, plan)
  const positions = new Positions()
  const batch = store.batch()
  for (const shard of directory.copies.positions.keys())
    if (current.has(shard)) positions.put(batch, shard, founded.get(shard)!)
    else positions.del(batch, shard)
  await new Promise<void>((resolve, reject) => store.commit(batch, error => (error ? reject(error) : resolve())))
  recordCluster(directory.open.directory, plan.to)
}
