// The HTTP front of a node: one handler for each kind of resource, their routes, and the sockets that listen.

import { AdminOperations } from '../../broker/admin.js'
import { BackupOperations } from '../../broker/backup.js'
import { BatchOperations } from '../../broker/batch.js'
import { BatchQuotas } from '../../broker/batch-quotas.js'
import { documentIds, RegistrationOperations, SubscriptionOperations } from '../../broker/documents.js'
import { Entities, TypeOperations } from '../../broker/entities.js'
import { ForwardedReads } from '../../broker/forwarded-reads.js'
import { ForwardedUpdates } from '../../broker/forwarded-updates.js'
import { ShardClient } from '../../broker/shard-client.js'
import { ProxyChannels } from '../../broker/streams/proxy-channels.js'
import { StreamHub } from '../../broker/streams/stream-hub.js'
import { TenantOperations } from '../../broker/tenants.js'
import { type Config, version } from '../../config/config.js'
import { parseReceiverUrl } from '../../domain/subscriptions/receiver-url.js'
import { AdminHandlers, ClusterHandlers } from '../../http/admin.js'
import { AttributeHandlers } from '../../http/attributes.js'
import { BackupHandlers } from '../../http/backup.js'
import { BatchHandlers } from '../../http/batch.js'
import { Compressor } from '../../http/compressor.js'
import { adminConnectionsMax } from '../../http/connections.js'
import type { ConsoleHandlers } from '../../http/console.js'
import { EntityHandlers } from '../../http/entities.js'
import type { Front, SocketOptions } from '../../http/front.js'
import { Inflater } from '../../http/inflater.js'
import { ProxyHandlers } from '../../http/ngsi-proxy.js'
import { type AdminFront, loadForFront, openFront } from '../../http/open-front.js'
import { RegistrationHandlers } from '../../http/registrations.js'
import { elsewhereOf } from '../../http/route-ports.js'
import { type Handlers, routesOf } from '../../http/routes.js'
import { Server } from '../../http/server.js'
import { ServiceHandlers } from '../../http/service.js'
import { StreamHandlers } from '../../http/streams.js'
import { SubscriptionHandlers } from '../../http/subscriptions.js'
import { TenantHandlers } from '../../http/tenants.js'
import { TypeHandlers } from '../../http/types.js'
import { adminReports } from '../../observe/operator.js'
import type { Logger } from '../../ports.js'
import { filtersMax } from '../../shard/streams/change-streams.js'
import { rowFormat } from '../../storage/data-directory.js'
import type { Surroundings } from '../surroundings.js'
import { consoleOf } from './console.js'
import type { Delivery } from './delivery.js'
import type { Observation } from './observation.js'
import type { NodeQuotas } from './quotas.js'
import type { NodeShards } from './shards.js'
import { idClockOf, type Storage } from './storage.js'

/** All parts of a node behind its front. */
export interface FrontParts {
  /** undefined: there is no console. */
  readonly page: ConsoleHandlers | undefined
  readonly storage: Storage
  readonly nodeShards: NodeShards
  readonly delivery: Delivery
  readonly observation: Observation
  /** The key that clients need for a backup; undefined: there are no backups. */
  readonly backupKey: string | undefined
  /** undefined: no tenant has quotas. */
  readonly quotas: NodeQuotas | undefined
  /** Whether the node is about to end. */
  readonly isEnding: () => boolean
}

export interface NodeFront {
  readonly front: Front
  /** They are ended when the node stops: a stream has no end of its own. */
  readonly streams: { endAll(): void }
}

/**
 * Loads what a front needs from disk, and returns the console if there is one. It keeps the event loop busy for some 0.2
 * s, so it comes before the node has shards and others wait for its answers.
 */
export async function loadFront(
  { http, hasConsole, consoleTiles }: Config,
  logger: Logger,
): Promise<FrontParts['page']> {
  await loadForFront(http.server, http)
  return hasConsole ? consoleOf(consoleTiles, logger) : undefined
}

/** Creates the front; it does not listen yet. */
export async function openNodeFront(
  config: Config,
  surroundings: Surroundings,
  behind: FrontParts,
): Promise<NodeFront> {
  const { clock, chance, logger, place } = surroundings
  const worker = place?.kind === 'worker' ? place : undefined
  const sharing = { shared: worker?.connections !== undefined, source: worker?.connections }
  const { nodeShards, delivery, observation } = behind
  const { answers, local } = nodeShards
  const { server: kind, admin, ...listening } = config.http
  const { cors, vocabulary, tenants } = config
  const { providers } = local.parts
  const forwards = (): boolean => providers.hasAny
  const compression = config.compresses ? { compressor: new Compressor(), inflater: new Inflater() } : undefined
  const { bodyBytesMax } = listening
  const ngsiProxy = config.streams.ngsiProxy ? { isTls: listening.tls !== undefined } : undefined
  const { watch, audit } = delivery
  const access = delivery.access?.control
  const settings = { bodyBytesMax, tenants, cors, vocabulary, forwards, answers, compression, access, ngsiProxy }
  const readers = readersFor(config, surroundings, behind)
  const handlers = handlersFor(config, surroundings, behind, readers)
  const watching = { watch, clock, audit }
  const role = admin ? 'main' : 'only'
  const ofMain = { ...settings, isElsewhere: admin && elsewhereOf(role) }
  const server = new Server(routesOf(handlers, role), ofMain, chance, logger, watching)
  const onStall = (): void => {
    answers.failures.stalled++
  }
  const { connections } = observation
  const { onDropped } = connections
  const sockets = socketsOf(config)
  const common = { ...listening, ...sharing, onStall, onDropped }
  const openAdmin = (at: NonNullable<typeof admin>): AdminFront => {
    // Clients can use up neither the connections nor the answers of operators.
    const own = {
      ...settings,
      answers: answers.forOneMore(),
      cors: undefined,
      ngsiProxy: undefined,
      isElsewhere: elsewhereOf('admin'),
    }
    return {
      options: { ...common, ...at, connectionsMax: adminConnectionsMax, connectionsPerAddressMax: 0 },
      handler: new Server(routesOf(handlers, 'admin'), own, chance, logger, watching),
    }
  }
  const front = await openFront(kind, { ...common, sockets }, server, logger, admin && openAdmin(admin))
  connections.watch(() => front.connections)
  const endAll = (): void => {
    readers.streams.endAll()
    readers.proxy?.endAll()
  }
  return { front, streams: { endAll } }
}

/** Streams may be WebSockets. */
const socketsOf = ({ streams, http }: Config): SocketOptions | undefined =>
  streams.streamsMax === 0
    ? undefined
    : { paths: ['/v2/stream'], messageBytesMax: http.bodyBytesMax, compression: streams.isCompressed }

/** What keeps connections of readers. */
interface ReaderHandlers {
  readonly streams: StreamHandlers
  /** undefined: the paths of ngsi-proxy are not served. */
  readonly proxy: ProxyHandlers | undefined
}

function readersFor(
  { streams: { streamsMax, ngsiProxy }, http: { bodyBytesMax: messageBytesMax } }: Config,
  { clock, chance }: Surroundings,
  { nodeShards, delivery, observation: { streams: tallies }, quotas, isEnding }: FrontParts,
): ReaderHandlers {
  const access = delivery.access?.control
  const { audit } = delivery
  const hub = new StreamHub({ shards: nodeShards.shards, clock, chance, holder: chance.uuid(), filtersMax })
  const ofTenants = quotas?.streams
  const parts = { hub, streamsMax, messageBytesMax, clock, tallies, access, audit, ofTenants, isEnding }
  const streams = new StreamHandlers(parts)
  if (!ngsiProxy) return { streams, proxy: undefined }
  const channels = new ProxyChannels({ clock, chance })
  return { streams, proxy: new ProxyHandlers({ channels, clock, tallies, access, isEnding }) }
}

function handlersFor(
  config: Config,
  { clock, chance, logger, place }: Surroundings,
  { page, storage, nodeShards, delivery, observation, backupKey, isEnding }: FrontParts,
  { streams, proxy }: ReaderHandlers,
): Handlers {
  const { store, shardMap, share, disk } = storage
  const { local, own, shards, joined, answers, hasFailed } = nodeShards
  const { role } = local.parts
  const { forwarding, egress } = delivery
  const { answerBytesMax } = config.answers
  const changes = joined && { clock, rest: () => joined.rest(), stillMs: () => joined.stillMs() }
  const client = new ShardClient(shards, shardMap, share?.requestClock, changes, { answerBytesMax, room: answers })
  const updates = new ForwardedUpdates(client, forwarding)
  const batchQuotas = local.parts.quotas && new BatchQuotas(client, local.parts.quotas)
  // Each node of a cluster shows its own state.
  const processes = new AdminOperations(place?.kind === 'node' ? own : shards)
  const entities = new Entities(client, { reads: new ForwardedReads(forwarding, answers), updates })
  const ids = documentIds(idClockOf(storage), chance)
  const mayReach = (url: string): boolean => {
    const target = parseReceiverUrl(url)
    return !target || egress.mayName(target.host, target.port)
  }
  return {
    entities: new EntityHandlers(entities),
    attributes: new AttributeHandlers(entities),
    batch: new BatchHandlers(entities, new BatchOperations(client, clock, updates, batchQuotas)),
    types: new TypeHandlers(new TypeOperations(client), clock),
    subscriptions: new SubscriptionHandlers(new SubscriptionOperations(client, ids), entities, clock, mayReach),
    streams,
    registrations: new RegistrationHandlers(new RegistrationOperations(client, ids), mayReach, processes),
    service: new ServiceHandlers(
      factsOf(store.name),
      clock,
      () => !isEnding() && !hasFailed() && (joined?.isWhole() ?? true) && (role.kind !== 'copy' || role.copy.isFed),
      { isShort: () => disk?.isShort ?? false, copiesWait: () => role.kind === 'node' && role.host.waitsForRoom },
      () => joined?.unready?.(),
    ),
    admin: new AdminHandlers(processes, {
      log: observation.log,
      hasServiceMetrics: config.statistics.byService,
      reports: adminReports,
      options: config.settings,
    }),
    backup: new BackupHandlers(
      new BackupOperations({
        shards,
        placement: shardMap.placement,
        rowFormat,
        by: `orrery ${version}`,
        clock,
        chance,
        logger,
      }),
      backupKey,
    ),
    tenants: new TenantHandlers(new TenantOperations(client), logger),
    console: page,
    cluster: joined?.clusterAdmin && new ClusterHandlers(joined.clusterAdmin),
    proxy,
  }
}

function factsOf(store: string) {
  const { v8, openssl } = process.versions
  const machines: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64' }
  return {
    version,
    runtime: `node ${process.versions.node}`,
    machine: machines[process.arch] ?? process.arch,
    libraries: { store, json: `v8 ${v8}`, tls: openssl ?? 'none' },
  }
}
