// Opens the shards of a node over its storage, and connects them with the shards of other workers or nodes.

import assert from 'node:assert/strict'
import { OwnerRules } from '../../access/owner-rules.js'
import { ProcessAdmin } from '../../broker/admin.js'
import type { Config } from '../../config/config.js'
import { AnswersInFlight } from '../../http/answers-in-flight.js'
import type { Shards } from '../../messages/messages.js'
import type { Clock } from '../../ports.js'
import { UnusedTenants } from '../../shard/documents/unused-tenants.js'
import { deliveryLimitsDefault } from '../../shard/notify/deliveries.js'
import { replayLimitsDefault } from '../../shard/notify/replays.js'
import { openLocalShards, type Share, shardLimitsDefault } from '../../shard/open-shards.js'
import type { LocalShards } from '../../shard/shards.js'
import { ringAgeMsMax } from '../../shard/streams/change-ring.js'
import { otherOwners } from '../../shard/tenants/other-owners.js'
import { TenantDeletions } from '../../shard/tenants/tenant-deletions.js'
import { ampleRoom } from '../../shard/turn/room.js'
import type { Joined, JoinOptions, OwnPart, Surroundings } from '../surroundings.js'
import type { AccessInUse } from './access.js'
import type { Observation } from './observation.js'
import type { Storage } from './storage.js'

/** How long a worker waits at its start for the content of the register from its keeper. */
const copyMsMax = 3_000

export interface NodeShards {
  readonly local: LocalShards
  /** This node's own shards, in the form in which others ask them. */
  readonly own: Shards
  /** All shards, wherever they are. */
  readonly shards: Shards
  /** undefined: there are no other workers or nodes. */
  readonly joined: Joined | undefined
  /** Memory limit for answers in flight. */
  readonly answers: AnswersInFlight
  readonly processAdmin: ProcessAdmin
  /** Removes tenants without content from the register of several owners. */
  readonly unusedTenants: UnusedTenants | undefined
  /** Deletes tenants on the order of operators. */
  readonly deletions: TenantDeletions
  /** Whether the store has failed: then no request is accepted any more. */
  readonly hasFailed: () => boolean
}

/** This node's shards, also in the form in which others ask them. */
interface Opened extends OwnPart {
  readonly shards: LocalShards
}

/** Opens the shards and connects them with the others. */
export async function openShards(
  config: Config,
  { clock, chance, logger, onFailure, wrapShards }: Surroundings,
  storage: Storage,
  { alarms, logReporter, clockReporter, loop, loopUtilization }: Observation,
  accessFile: AccessInUse | undefined,
): Promise<NodeShards> {
  const { store, shardMap, stamps, scanner, disk } = storage
  const answers = new AnswersInFlight(config.answers)
  const processAdmin = new ProcessAdmin()
  const ownerRules = accessFile && new OwnerRules(accessFile.source)
  let failed = false
  const open = async (share: Share | undefined): Promise<Opened> => {
    const shards = await openLocalShards({
      store,
      shardMap,
      clock,
      stamps,
      logger,
      scanner,
      limits: shardLimitsDefault,
      room: disk ?? ampleRoom,
      answers,
      queries: config.queries,
      streams: { limits: { bytesMax: config.streams.bufferBytesMax, ageMsMax: ringAgeMsMax }, ring: chance.uuid() },
      notifications: {
        isKept: config.notifications.delivery === 'atLeastOnce',
        descendantsMax: config.notifications.descendantsMax,
        flowControl: config.notifications.flowControl,
        grantOfOwner: ownerRules?.grantOfOwner,
        replays: config.notifications.replays ? replayLimitsDefault : undefined,
      },
      visibleDocuments: ownerRules?.visibleDocuments,
      quotas: accessFile?.quotas.book,
      deliveryLimits: {
        ...deliveryLimitsDefault,
        deadLetterBytesMax: config.notifications.deadLetters.bytesMax,
        deadLetterBytesMaxInAll: config.notifications.deadLetters.bytesMaxInAll,
        deadLetterAgeMsMax: config.notifications.deadLetters.ageMsMax,
      },
      share,
      onFailure: failure => {
        failed = true
        alarms.raise('DatabaseError', '', failure.message)
        onFailure(failure)
      },
    })
    const { role } = shards.parts
    const pathsOf = (tenant: string) => (role.kind === 'alone' ? undefined : role.paths.few(tenant))
    return { shards, local: processAdmin.over(wrapShards?.(shards) ?? shards), shardMap, pathsOf }
  }
  const options: JoinOptions = {
    listMs: config.queries.scanDeadlineMs,
    onHealth: problem => logReporter.onHealth(problem),
    onClock: clockStatus => clockReporter.onClock(clockStatus),
    onLost: losses => logReporter.onLost(losses, loop.latelyMs),
  }
  const { own, joined } = await join(storage, open, () => loopUtilization.share, options)
  const { shards: local } = own
  const shards = joined?.shards ?? own.local
  const { role } = local.parts
  if (joined) local.parts.quotas?.begin(otherOwners(shards, local.parts.owns))
  if (joined && role.kind === 'keeper') {
    joined.onReach(() => role.feed.resume())
    await role.feed.begin(shards, () => joined.isWhole())
  }
  if (role.kind === 'copy') await within(copyMsMax, clock, fed => role.copy.whenFed(fed))
  const onTrouble = (reason: string): void => logger.warn(`tenants without entities stay in the register: ${reason}`)
  const unusedTenants =
    role.kind === 'alone' ? undefined : new UnusedTenants({ paths: role.paths, shards, clock, onTrouble })
  const deletions = new TenantDeletions({ local: local.parts, shards, clock, logger })
  const hasFailed = (): boolean => failed
  return { local, own: own.local, shards, joined, answers, processAdmin, unusedTenants, deletions, hasFailed }
}

/** Opens this node's shards for their role (alone, worker or node), and joins the others. */
async function join(
  { share }: Storage,
  open: (share: Share | undefined) => Promise<Opened>,
  utilization: () => number,
  options: JoinOptions,
): Promise<{ readonly own: Opened; readonly joined: Joined | undefined }> {
  switch (share?.kind) {
    case undefined:
      return { own: await open(undefined), joined: undefined }
    case 'worker': {
      const own = await open(share.place)
      return { own, joined: await share.place.join(own) }
    }
    case 'node': {
      const { place, ownership, requestClock } = share
      return place.join(async log => {
        const own = await open({ kind: 'node', ownership, requestClock, utilization, ...log })
        const { role } = own.shards.parts
        assert(role.kind === 'node', 'only a node has shards that can be moved')
        return { ...own, host: role.host }
      }, options)
    }
  }
}

/** Resolves when `begin` calls back, or after `maxMs`. */
const within = (maxMs: number, clock: Clock, begin: (done: () => void) => void): Promise<void> =>
  new Promise(resolve => {
    const cancel = clock.after(maxMs, resolve)
    begin(() => {
      cancel()
      resolve()
    })
  })
