// The shards of a node over its storage, loaded, and all shards wherever they are: the node's own, and those of other workers or nodes.

import { AdminDesk } from '../../broker/admin.js'
import type { Config } from '../../config/config.js'
import { AnswersInFlight } from '../../http/answers-in-flight.js'
import type { Shards } from '../../messages/messages.js'
import type { Clock } from '../../ports.js'
import { isDeposed } from '../../shard/commit/deposed.js'
import { UnusedTenants } from '../../shard/documents/unused-tenants.js'
import { LocalShards, shardLimitsDefault } from '../../shard/shards.js'
import type { Joined, Surroundings } from '../surroundings.js'
import type { Observation } from './observation.js'
import type { Storage } from './storage.js'

/** How long a worker waits at its start for what the keeper of the register has to tell. */
const copyMsMax = 3_000

export interface NodeShards {
  readonly local: LocalShards
  /** This node's own as others ask them. */
  readonly own: Shards
  /** All of them. */
  readonly shards: Shards
  /** undefined: there are no others. */
  readonly joined: Joined | undefined
  /** Memory for answers. */
  readonly answers: AnswersInFlight
  readonly adminDesk: AdminDesk
  /** Lets tenants leave the register of several owners that have nothing any more. */
  readonly unusedTenants: UnusedTenants | undefined
  /** Whether the store has failed: then nothing is taken any more. */
  readonly hasFailed: () => boolean
}

/** Loads the shards and brings them together with the others. */
export async function openShards(
  config: Config,
  { clock, logger, onFailure, place, cluster, between }: Surroundings,
  { store, shardMap, part, ownership, stamps, moments, scanner, disk }: Storage,
  { alarms, logTeller, loop }: Observation,
): Promise<NodeShards> {
  const answers = new AnswersInFlight(config.answers)
  let failed = false
  const local = new LocalShards({
    store,
    shardMap,
    clock,
    stamps,
    logger,
    scanner,
    limits: shardLimitsDefault,
    room: disk,
    answers,
    queries: config.queries,
    notifications: {
      isKept: config.notifications.delivery === 'atLeastOnce',
      descendantsMax: config.notifications.descendantsMax,
      flowControl: config.notifications.flowControl,
    },
    part,
    onFailure: failure => {
      failed = true
      if (isDeposed(failure)) logTeller.onDeposed(failure.losses, loop.latelyMs)
      else alarms.raise('DatabaseError', '', failure.message)
      onFailure(failure)
    },
    replicated: cluster &&
      ownership && {
        ownership,
        replication: cluster.replication,
        barrier: cluster.barrier,
        observe: stamp => stamps.observe(stamp),
        hear: stamp => moments?.observe(stamp),
      },
  })
  await local.load()
  const adminDesk = new AdminDesk()
  const own = adminDesk.over(between?.(local) ?? local)
  const { paths, replicated: host, feed, copy } = local
  const ownPart = { local: own, shardMap, pathsOf: (tenant: string) => paths?.few(tenant) }
  const joined =
    cluster && host
      ? await cluster.join({ ...ownPart, host }, config.queries.scanDeadlineMs, problem => logTeller.onHealth(problem))
      : await place?.join(ownPart)
  const shards = joined?.shards ?? own
  if (joined && feed) {
    joined.onReach(() => feed.resume())
    await feed.begin(shards, () => joined.isWhole())
  }
  if (copy) await within(copyMsMax, clock, fed => copy.whenFed(fed))
  const onTrouble = (reason: string): void => logger.warn(`tenants without entities stay in the register: ${reason}`)
  const unusedTenants = joined && paths && new UnusedTenants({ paths, shards, clock, onTrouble })
  return { local, own, shards, joined, answers, adminDesk, unusedTenants, hasFailed: () => failed }
}

/** Resolves when `begin` calls back, or when that takes longer. */
const within = (maxMs: number, clock: Clock, begin: (done: () => void) => void): Promise<void> =>
  new Promise(resolve => {
    const cancel = clock.after(maxMs, resolve)
    begin(() => {
      cancel()
      resolve()
    })
  })
