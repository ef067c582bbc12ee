// One node, put together: data directory, store, shards, broker, HTTP; and taken apart in the one order that is safe.
//
// This file and the other roots (program, supervisor, worker, reader) are where the parts meet; everywhere else imports point one way. What is chance, time or the operator's comes
// in from outside, so that a test can run a whole node under its own clock, or put something between the broker and its shards.

import { AdminOperations } from '../broker/admin.js'
import { AttributeOperations } from '../broker/attributes.js'
import { BatchOperations } from '../broker/batch.js'
import { documentIds } from '../broker/document-ids.js'
import { Entities } from '../broker/entities.js'
import { ForwardedReads } from '../broker/forwarded-reads.js'
import { ForwardedUpdates } from '../broker/forwarded-updates.js'
import { Forwarding } from '../broker/forwarding.js'
import { RegistrationOperations } from '../broker/registrations.js'
import { ShardClient } from '../broker/shard-client.js'
import { SubscriptionOperations } from '../broker/subscriptions.js'
import { TypeOperations } from '../broker/types.js'
import { HybridClock } from '../clock.js'
import { type Config, version } from '../config/config.js'
import { Dispatcher } from '../deliver/dispatcher.js'
import { Forwarder } from '../deliver/forwarder.js'
import { Egress } from '../deliver/sockets/egress.js'
import { openSockets } from '../deliver/sockets/sockets.js'
import { type Placement, placementDefault, placementOfCluster, ShardMap, workerOf } from '../domain/scope.js'
import { listedIds } from '../domain/statistics.js'
import { parseReceiverUrl } from '../domain/subscriptions/receiver-url.js'
import { AdminHandlers } from '../http/admin.js'
import { AnswersInFlight } from '../http/answers-in-flight.js'
import { AttributeHandlers } from '../http/attributes.js'
import { BatchHandlers } from '../http/batch.js'
import { ClusterHandlers } from '../http/cluster.js'
import { EntityHandlers } from '../http/entities.js'
import { openFront } from '../http/open-front.js'
import { RegistrationHandlers } from '../http/registrations.js'
import { routesOf } from '../http/routes.js'
import { Server } from '../http/server.js'
import { ServiceHandlers } from '../http/service.js'
import { SubscriptionHandlers } from '../http/subscriptions.js'
import { TypeHandlers } from '../http/types.js'
import type { Shards } from '../messages/messages.js'
import { Alarms } from '../observe/alarms.js'
import { ConnectionTallies } from '../observe/connection-tallies.js'
import { DiskTeller } from '../observe/disk-teller.js'
import { LogTeller } from '../observe/log-teller.js'
import { LoopDelay } from '../observe/loop-delay.js'
import { Operator } from '../observe/operator.js'
import { RequestTallies } from '../observe/request-tallies.js'
import { ServiceTallies } from '../observe/service-tallies.js'
import { StatisticsBook } from '../observe/statistics-book.js'
import { Summary } from '../observe/summary.js'
import { TrafficWatcher } from '../observe/traffic-watcher.js'
import type { Barrier, Chance, Clock, ClusterDesk, HealthProblem, Logger, LogSettings, Replication } from '../ports.js'
import { Expiry } from '../shard/expiry.js'
import { splitBundles } from '../shard/notify/bundle.js'
import { ThreadScanner } from '../shard/read/scan-thread.js'
import { StepwiseScanner } from '../shard/read/scans.js'
import { Ownership } from '../shard/replicate/ownership.js'
import type { ReplicatedShards } from '../shard/replicate/replicated-shards.js'
import { LocalShards, lastStamp, shardLimitsDefault } from '../shard/shards.js'
import type { ShardRecord } from '../shard/turn/record.js'
import { clusterOf, openDataDirectory } from '../storage/data-directory.js'
import { DiskWatch } from '../storage/disk-watch.js'
import { openStore } from '../storage/open-store.js'
import { ReserveFile } from '../storage/reserve-file.js'

/** How long requests in flight are waited for when the node stops. */
const drainMs = 5_000
/** How long a node of a cluster that ends may take to write down what became of its notifications. */
const writtenMs = 8_000

/** What the reader thread runs. */
const readerEntry = new URL('./reader.js', import.meta.url)

/** Which part of several processes a node is, and how it comes together with the others. */
export interface Place {
  readonly index: number
  readonly workers: number
  /** Whether they share the port; else each has one of its own. */
  readonly sharesPort: boolean
  /** Given this node's shards, and how many there are in all: gives all of them. */
  join(local: Shards, shards: number): Promise<Joined>
}

export interface Joined {
  readonly shards: Shards
  /** Whether all others can be asked. */
  isWhole(): boolean
  /** Calls back whenever one of the others can be asked anew. */
  onReach(listener: () => void): void
  /** Calls back at once, and again when others are: where all members of the cluster that are known listen for each other, `host:port`. */
  onMembers?(listener: (addresses: readonly string[]) => void): void
  /** For operators; undefined: there is no cluster. */
  readonly desk?: ClusterDesk
  /** Why some shards cannot answer, in words; undefined: all can. */
  unready?(): string | undefined
  /** Gives away what others can take over, while requests are still answered. */
  drain?(): Promise<void>
  /** Nobody is asked any more, and nobody asks. */
  close(): Promise<void>
}

/** What a cluster is, for good. */
export interface Agreement extends Placement {
  readonly id: string
}

export interface ClusterPlace {
  /**
   * What the cluster is; as wanted, if this is its first node. Waits for the log engine. `own`: what the data directory belongs to, where there is
   * one: rejects with a sentence for the operator when the engine has another cluster, or none.
   */
  agree(wanted: Placement, own: { readonly path: string; readonly id: string } | undefined): Promise<Agreement>
  /** Both may be used once `join` has been called. */
  readonly replication: Replication
  readonly barrier: Barrier
  /** Comes together with the other nodes; `listMs` is how long one of them may take for a list. */
  join(own: OwnShards, listMs: number, onHealth: (problem: HealthProblem | undefined) => void): Promise<Joined>
}

/** This node's shards, as the cluster moves them and as the broker asks them. */
export interface OwnShards {
  readonly host: ReplicatedShards
  readonly local: Shards
  readonly shardMap: ShardMap
  readonly pathsOf: (tenant: string) => Iterable<string> | undefined
}

export interface Surroundings {
  readonly clock: Clock
  readonly chance: Chance
  readonly logger: Logger
  /** The settings of that logger, which operators may change; undefined: what they change has no effect. */
  readonly log?: LogSettings
  /** Told once when the node can promise nothing any more and must end. */
  readonly onFailure: (failure: Error) => void
  /** undefined: the node is not one of several workers. */
  readonly place?: Place
  /** undefined: the node is not one of a cluster. */
  readonly cluster?: ClusterPlace
  /** Puts something between the broker and its shards, or between turns and the log. */
  readonly between?: (shards: Shards) => Shards
  readonly betweenRecords?: (record: ShardRecord) => ShardRecord
}

export interface RunningNode {
  readonly port: number
  /** What it runs on, for the line that says it is ready. */
  readonly store: string
  /** Stops accepting and answers what is in flight; others may still ask its shards. */
  drain(): Promise<void>
  /** Makes everything durable and closes the store. */
  close(): Promise<void>
}

/** Starts a node. Fails with a sentence for the operator when the directory or the port cannot be had. */
export async function startNode(config: Config, surroundings: Surroundings): Promise<RunningNode> {
  const { clock, chance, logger, log = { ...config.log }, onFailure, place, cluster } = surroundings
  const agreed = await cluster?.agree(placementOfCluster, clusterOf(config.store.directory))
  const wanted = agreed
    ? { shards: agreed.shards, spread: agreed.spread, cluster: { id: agreed.id } }
    : { ...placementDefault, workers: config.workers }
  const directory = openDataDirectory(config.store.directory, wanted, () => chance.uuid())
  const part = place && { worker: place.index, workers: place.workers }
  const alarms = new Alarms(logger, config.logging.relogAlarms, clock)
  const disk = watchDisk(config.store, (place?.index ?? 0) === 0, clock, new DiskTeller(logger, alarms))
  disk?.begin()
  // What a cluster has acknowledged is in its log.
  const durability = cluster ? 'os' : config.store.durability
  const store = await openStore(directory, { durability, logger, part })
  await splitBundles(store)
  const logTeller = new LogTeller(logger, alarms)
  let ready = true
  const shardMap = new ShardMap(directory, agreed && directory.shards)
  const ownership = agreed && new Ownership(directory.shards)
  // What several processes create has to stand in order; one alone need not look so closely.
  const isOneOfSeveral = place !== undefined || cluster !== undefined
  const stampClock = isOneOfSeveral ? { wallMs: () => clock.fineWallMs() } : clock
  const stamps = new HybridClock(stampClock, lastStamp(store))
  // The moments at which requests were taken here are not this owner's own stamps: those come from all who ask it.
  const moments = isOneOfSeveral ? new HybridClock(stampClock) : undefined
  const summary = new Summary(alarms)
  const onStoreFailure = (failure: Error): void => {
    ready = false
    alarms.raise('DatabaseError', '', failure.message)
    onFailure(failure)
  }
  const { betweenRecords } = surroundings
  const { delivery, disableCustomNotifications, ...sending } = config.notifications
  const scanner = store.shared
    ? new ThreadScanner(readerEntry, store.shared, shardMap.placement, ownership?.owned)
    : new StepwiseScanner(store, shardMap, clock, ownership?.owned)
  const answers = new AnswersInFlight(config.answers)
  const local: LocalShards = new LocalShards({
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
      isKept: delivery === 'atLeastOnce',
      descendantsMax: config.notifications.descendantsMax,
      flowControl: config.notifications.flowControl,
    },
    part,
    obey: order => operator.obey(order),
    onFailure: onStoreFailure,
    through: betweenRecords,
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
  const between = surroundings.between?.(local) ?? local
  const joined = cluster
    ? await cluster.join(
        {
          host: local.replicated!,
          local: between,
          shardMap,
          pathsOf: tenant => local.paths!.few(tenant),
        },
        config.queries.scanDeadlineMs,
        problem => logTeller.onHealth(problem),
      )
    : await place?.join(between, directory.shards)
  const shards = joined?.shards ?? between
  const { sharing } = local
  if (joined && sharing) {
    joined.onReach(() => sharing.resume())
    await sharing.begin(shards, () => joined.isWhole())
  }
  const speech = { vocabulary: config.vocabulary ?? 'Ctx', userAgent: `ctxbroker/${version}` } as const
  const notificationOptions = {
    ...speech,
    disableCustomNotifications,
    filledLengthMax: sending.messageBytesMax,
  } as const
  const services = config.statistics.byService ? new ServiceTallies() : undefined
  const requests = new RequestTallies()
  const connections = new ConnectionTallies()
  const statistics: StatisticsBook = new StatisticsBook(config.statistics, clock, () => countedBy(dispatcher, local))
  const watch = new TrafficWatcher({ logger, log, requests, statistics, services, alarms, summary })
  const egress = new Egress({ ...config.egress, reserved: reservedBy(config), ownPorts: portsOf(config) })
  joined?.onMembers?.(addresses => egress.reserveMembers(addresses))
  const dispatcher = new Dispatcher({ clock, fraction: () => chance.fraction(), logger, watch }, notificationOptions, {
    ...sending,
    delivery,
    egress,
    get loggedBytesMax() {
      return log.infoPayloadBytesMax
    },
  })
  const loop = new LoopDelay(clock)
  const operator: Operator = new Operator({
    log,
    statistics,
    services,
    sources: {
      requests,
      answers: () => answers,
      connections,
      notifier: () => dispatcher.stats(),
      shards: () => numbersOf(local, ownership?.count ?? ownedBy(place, directory.shards)),
      loop,
      version,
      cluster: joined?.desk && (() => joined.desk!.numbers()),
      disk: disk && (() => disk),
    },
    cache: () => cacheOf(local),
  })
  const recovered = local.notifications.begin(dispatcher, shards).catch((error: Error) => {
    logger.error(`what was owed to receivers could not be read, the next start tries again: ${error.message}`)
  })
  const expiry = new Expiry(store, shards, clock, logger, config.expiryIntervalMs, local.expiryMark, ownership?.owned)
  const { answerBytesMax } = config.answers
  const client = new ShardClient(shards, shardMap, moments, cluster && clock, { answerBytesMax, room: answers })
  const forwarder = new Forwarder(clock, openSockets(sending.tls, egress), {
    timeoutMs: sending.httpTimeoutMs,
    messageBytesMax: sending.messageBytesMax,
    isOwn: socket => egress.isOwn(socket),
  })
  const { providers } = local
  const forwardingPorts = { providers: forwarder, clock, logger, watch }
  const forwarding = new Forwarding(providers, forwardingPorts, {
    ...speech,
    ...config.forwarding,
    get loggedBytesMax() {
      return log.infoPayloadBytesMax
    },
  })
  const updates = new ForwardedUpdates(client, forwarding)
  const entities = new Entities(client, { reads: new ForwardedReads(forwarding, answers), updates })
  const ids = documentIds(moments ?? stamps, chance)
  const mayReach = (url: string): boolean => {
    const target = parseReceiverUrl(url)
    return !target || egress.mayName(target.host, target.port)
  }
  const routes = routesOf(
    new EntityHandlers(entities),
    new AttributeHandlers(entities, new AttributeOperations(client, updates)),
    new BatchHandlers(entities, new BatchOperations(client, clock, updates)),
    new TypeHandlers(new TypeOperations(client), clock),
    new SubscriptionHandlers(new SubscriptionOperations(client, ids), entities, clock, mayReach),
    new RegistrationHandlers(new RegistrationOperations(client, ids), mayReach),
    new ServiceHandlers(
      factsOf(store.name),
      clock,
      () => ready && (joined?.isWhole() ?? true),
      { isShort: () => disk?.isShort ?? false, copiesWait: () => local.replicated?.waitsForRoom ?? false },
      () => joined?.unready?.(),
    ),
    // Each node of a cluster is looked at for itself.
    new AdminHandlers(new AdminOperations(cluster ? between : shards), {
      log,
      hasServiceMetrics: config.statistics.byService,
    }),
    joined?.desk && new ClusterHandlers(joined.desk),
  )
  const { server: kind, ...frontOptions } = config.http
  const { cors, vocabulary, tenants } = config
  const forwards = (): boolean => providers.hasAny
  const settings = { bodyBytesMax: frontOptions.bodyBytesMax, tenants, cors, vocabulary, forwards, answers }
  const onStall = (): void => {
    answers.failures.stalled++
  }
  const { onDropped } = connections
  const listening = { ...frontOptions, shared: place?.sharesPort ?? false, onStall, onDropped }
  const server = new Server(routes, settings, chance, logger, { watch, clock })
  const front = await openFront(kind, listening, server, logger)
  let port: number
  try {
    port = await front.listen()
    for (const own of [port, front.http1Port]) if (own !== undefined) egress.listensAt(own)
  } catch (error) {
    sharing?.end()
    await disk?.stop()
    forwarder.close()
    local.notifications.end()
    await dispatcher.stop(0)
    await recovered
    await joined?.close()
    // What was delivered meanwhile is still to be written down.
    await local.drain()
    await store.close()
    throw error
  }
  disk?.start()
  expiry.start()
  loop.start()
  if (config.logging.summaryS > 0) summary.start(config.logging.summaryS, clock, logger)
  const { presence } = local
  const learned = presence.learn(store, scanner, clock).catch((error: Error) => {
    logger.warn(`which ids there are could not be read, so new ones are looked for in the store: ${error.message}`)
  })
  return {
    port,
    store: store.name,
    drain: () =>
      awake(async () => {
        ready = false
        if (joined?.drain) {
          front.dismiss()
          await joined.drain()
        }
        await front.close(drainMs)
        forwarder.close()
        loop.stop()
        summary.stop()
        await expiry.stop()
      }),
    close: () =>
      awake(async () => {
        sharing?.end()
        await disk?.stop()
        const written = async (): Promise<void> => {
          local.notifications.end()
          await dispatcher.stop(drainMs)
          await recovered
          await local.drain()
        }
        // A node that has left its cluster makes nothing durable any more; before that it may wait in vain for a log that is away.
        if (cluster) await Promise.race([written(), new Promise<void>(resolve => clock.after(writtenMs, resolve))])
        await joined?.close()
        if (!cluster) await written()
        presence.stop()
        await learned
        await scanner.close()
        await store.close()
      }),
  }
}

const awakeMs = 1_000

/** Runs to the end: a node that stops serves nothing more, and timers do not keep a process alive (clock.ts). */
async function awake(run: () => Promise<void>): Promise<void> {
  const timer = setInterval(() => {}, awakeMs)
  try {
    await run()
  } finally {
    clearInterval(timer)
  }
}

function countedBy(dispatcher: Dispatcher, { commit: { times } }: LocalShards) {
  const { queue, simulated } = dispatcher.stats()
  return { queue, simulated, commitMs: (times.write.sum + times.sync.sum) * 1000, lastCommitMs: times.lastMs }
}

/** undefined: nobody looks whether the disk is full, and nothing is reserved. */
function watchDisk(
  { directory, reserveBytes }: Config['store'],
  keeper: boolean,
  clock: Clock,
  teller: DiskTeller,
): DiskWatch | undefined {
  const disk = new ReserveFile(directory)
  if (reserveBytes > 0)
    return new DiskWatch({
      disk,
      reserveBytes,
      keeper,
      clock,
      onState: (state, before, room) => teller.onState(state, before, room),
      onFailure: (what, error) => teller.onFailure(what, error),
    })
  disk.giveUpNow()
  return undefined
}

/** How many shards are this process's own. */
function ownedBy(place: Place | undefined, shards: number): number {
  if (!place) return shards
  return Array.from({ length: shards }, (_, shard) => workerOf(shard, place.workers)).filter(
    worker => worker === place.index,
  ).length
}

function numbersOf({ entityCount, subscriptions, notifications, deliveries, commit }: LocalShards, shards: number) {
  const { rows, bytes } = notifications.owed
  return {
    shards,
    entities: entityCount.total,
    subscriptions: subscriptions.size,
    outboxRows: rows,
    outboxBytes: bytes,
    outboxDropped: notifications.droppedCount,
    descendantsDropped: notifications.droppedDescendants,
    deadLetters: deliveries.letterCount,
    commits: commit.times,
  }
}

function cacheOf({ subscriptions }: LocalShards) {
  const ids = function* () {
    for (const { id } of subscriptions.all()) yield id
  }
  return { ids: listedIds(ids()), refresh: 0, ...subscriptions.changes, items: subscriptions.size }
}

const portsOf = ({ http: { port, http1Port, livePort } }: Config): number[] =>
  [port, http1Port, livePort].filter(one => one !== undefined)

/** Where nobody may send to: the engine of the log, and where the nodes of the cluster listen for each other. `host:port`. */
function reservedBy({ cluster }: Config): string[] {
  if (!cluster) return []
  const { listen, advertised, seeds, log } = cluster
  const engine = log
    .replace(/^etcds?:\/\/([^@]*@)?/, '')
    .replace(/\/$/, '')
    .split(',')
  return [listen, ...(advertised ? [advertised] : []), ...seeds, ...engine]
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
