// Everything that a node sends: notifications to receivers, and requests to context providers. And the counters of what
// it sends and receives.

import { Forwarding } from '../../broker/forwarding.js'
import { type Config, version } from '../../config/config.js'
import { Dispatcher } from '../../deliver/dispatcher.js'
import { Forwarder } from '../../deliver/forwarder.js'
import type { NotificationPace } from '../../deliver/paced.js'
import { Egress, mayNotifyItself, mayNotifyPages } from '../../deliver/sockets/egress.js'
import { openSockets, Trust } from '../../deliver/sockets/sockets.js'
import { transportsOf } from '../../deliver/transports.js'
import { certificatesOfText } from '../../http/pem.js'
import type { AuditLog } from '../../observe/audit/audit-log.js'
import { ProcessReports } from '../../observe/operator.js'
import { listedIds, StatisticsBook } from '../../observe/statistics.js'
import { TrafficWatcher } from '../../observe/traffic-watcher.js'
import type { LocalParts } from '../../shard/shards.js'
import type { CertificateWatch } from '../certificate-watch.js'
import type { Surroundings } from '../surroundings.js'
import type { AccessInUse, NodeAccess } from './access.js'
import type { Observation } from './observation.js'
import { type NodeQuotas, quotaNumbersOf } from './quotas.js'
import type { NodeShards } from './shards.js'
import type { Storage } from './storage.js'

export interface Delivery {
  readonly egress: Egress
  readonly dispatcher: Dispatcher
  readonly forwarder: Forwarder
  readonly forwarding: Forwarding
  readonly watch: TrafficWatcher
  readonly statistics: StatisticsBook
  /** undefined: there is no access control. */
  readonly access: NodeAccess | undefined
  /** undefined: there is no audit log. */
  readonly audit: AuditLog | undefined
  /** Resolves when the notifications that were pending at the start have been read. */
  readonly recovered: Promise<void>
}

/** Files that are read, or opened, again while the node runs. */
export interface WatchedFiles {
  readonly certificates: CertificateWatch
  /** undefined: there is no access control. */
  readonly accessFile: AccessInUse | undefined
  /** undefined: there is no audit log. */
  readonly audit: AuditLog | undefined
}

/** Starts sending pending notifications and executing the orders of operators. */
export function openDelivery(
  config: Config,
  surroundings: Surroundings,
  { ownedCount, disk, store }: Storage,
  { local, shards, joined, answers, processAdmin }: NodeShards,
  observation: Observation,
  { certificates, accessFile, audit }: WatchedFiles,
): Delivery {
  const { clock, chance, place } = surroundings
  const { logger, log, alarms, summary, requests, connections, services, tenants, loop, loopUtilization } = observation
  const { forwardings, registrations, streams } = observation
  const { delivery, disableCustomNotifications, ...sending } = config.notifications
  const speech = { vocabulary: config.vocabulary ?? 'Ctx', userAgent: `ctxbroker/${version}` } as const
  const { admin } = config.http
  const ports = { ownPorts: portsOf(config), adminPorts: admin ? [admin.port] : [] }
  const egress = new Egress({ ...config.egress, ...ports, reserved: reservedBy(config) })
  joined?.onMembers?.(addresses => egress.reserveMembers(addresses))
  if (accessFile) {
    egress.useFile(accessFile.source.file)
    // Comes before the listener of the issuers, which may begin to fetch keys.
    accessFile.source.on(file => egress.useFile(file))
  }
  const statistics: StatisticsBook = new StatisticsBook(config.statistics, clock, () =>
    countedBy(dispatcher, local.parts),
  )
  const watch = new TrafficWatcher({
    ...{ logger, log, requests, tenants, services, statistics, alarms, summary },
    forwarding: forwardings,
    registrations,
  })
  const trust = new Trust(sending.tls)
  certificates.on('receivers', ({ notifCaFile }) => {
    const pem = String(notifCaFile)
    certificatesOfText(pem, '-notifCaFile: the file')
    trust.renew(pem)
  })
  const openSocket = openSockets(trust, egress)
  const access = accessFile?.open(openSocket)
  const mayReachItself = config.streams.ngsiProxy ? mayNotifyPages : mayNotifyItself
  const dispatcher = new Dispatcher(
    {
      clock,
      fraction: () => chance.fraction(),
      logger,
      watch,
      isCrowded: () => local.parts.notifications.isCrowded,
      onAnswering: receiver => local.parts.notifications.onAnswering(receiver),
      transports: transportsOf({ ...sending, mayReachItself }, egress, openSocket),
      pace: accessFile && paceOf(accessFile.quotas),
    },
    { ...speech, disableCustomNotifications, filledLengthMax: sending.messageBytesMax },
    {
      ...sending,
      delivery,
      get loggedBytesMax() {
        return log.infoPayloadBytesMax
      },
    },
  )
  const clusterAdmin = joined?.clusterAdmin
  processAdmin.open(
    new ProcessReports({
      log,
      statistics,
      services,
      registrations,
      sources: {
        requests,
        labelled: [forwardings, streams, ...(tenants ? [tenants] : [])],
        answers: () => answers,
        connections,
        notifier: () => dispatcher.stats(),
        shards: () => numbersOf(local.parts, ownedCount()),
        store: () => store.numbers?.(),
        loop,
        loopUtilization,
        version,
        worker: place?.kind === 'worker' ? place.worker : undefined,
        cluster: clusterAdmin && (() => clusterAdmin.numbers()),
        disk: disk && (() => disk),
        backup: () => local.parts.backup.numbers,
        certificates: () => certificates.numbers(),
        access: access && (() => access.control.numbers()),
        audit: audit && (() => audit.numbers()),
        quotas: accessFile && (() => quotaNumbersOf(accessFile.quotas, local.parts)),
      },
      cache: () => cacheOf(local.parts),
    }),
  )
  const recovered = local.parts.notifications.begin(dispatcher, shards).catch((error: Error) => {
    logger.error(`the pending notifications could not be read, the next start tries again: ${error.message}`)
  })
  const forwarder = new Forwarder(clock, openSocket, {
    timeoutMs: sending.httpTimeoutMs,
    messageBytesMax: sending.messageBytesMax,
    isOwn: socket => egress.isOwn(socket),
  })
  const forwarding = new Forwarding(
    local.parts.providers,
    { providers: forwarder, clock, logger, watch },
    {
      ...speech,
      ...config.forwarding,
      get loggedBytesMax() {
        return log.infoPayloadBytesMax
      },
    },
  )
  return { egress, dispatcher, forwarder, forwarding, watch, statistics, recovered, access, audit }
}

/** The rates of notifications, which count what has to wait. */
const paceOf = ({ book, notifications }: NodeQuotas): NotificationPace => ({
  take: tenant => notifications.take(tenant),
  onPaced: tenant => book.onRefused(tenant, 'notificationsPerSecond'),
})

function countedBy(dispatcher: Dispatcher, { commit: { times } }: LocalParts) {
  const { queue, simulated } = dispatcher.stats()
  return { queue, simulated, commitMs: (times.write.sum + times.sync.sum) * 1000, lastCommitMs: times.lastMs }
}

function numbersOf(parts: LocalParts, shards: number) {
  const {
    entityCount,
    subscriptions,
    registrations,
    notifications,
    letters,
    replays,
    commit,
    views,
    tenants,
    streams,
  } = parts
  const { rows, bytes } = notifications.pending
  return {
    shards,
    entities: entityCount.total,
    subscriptions: subscriptions.size,
    registrations: registrations.size,
    tenantsDeleting: tenants.parts.marks.size,
    streams: streams.numbers,
    views: { count: views.size, bytes: views.bytes, ...views.lookups },
    outboxRows: rows,
    outboxBytes: bytes,
    outboxDropped: notifications.droppedCount,
    descendantsDropped: notifications.droppedDescendants,
    deadLetters: {
      count: letters.size,
      bytes: letters.bytes,
      oldestAgeMs: letters.oldestAgeMs,
      losses: letters.losses,
      replays: replays?.counters,
    },
    commits: commit.times,
  }
}

function cacheOf({ subscriptions }: LocalParts) {
  const ids = function* () {
    for (const { id } of subscriptions.all()) yield id
  }
  return { ids: listedIds(ids()), refresh: 0, ...subscriptions.changes, items: subscriptions.size }
}

const portsOf = ({ http: { port, http1Port, livePort } }: Config): number[] =>
  [port, http1Port, livePort].filter(one => one !== undefined)

/**
 * Endpoints that no message may reach: the engines of the log, and the addresses where the nodes of the cluster listen
 * for each other. `host:port`.
 */
function reservedBy({ cluster }: Config): string[] {
  if (!cluster) return []
  const { listen, advertised, seeds, logs } = cluster
  const engines = logs.flatMap(log =>
    log
      .replace(/^etcds?:\/\/([^@]*@)?/, '')
      .replace(/\/$/, '')
      .split(','),
  )
  return [listen, ...(advertised ? [advertised] : []), ...seeds, ...engines]
}
