// Opens the shards of a node over its store. When they are returned, all reads that a start needs have been done.
//
// A single owner, a worker and a node of a cluster differ in two things: the log of their commits, and the way in which
// they have the register. One function for each does that. Everything else is the same.

import type { VisibleDocuments } from '../domain/access/principal.js'
import type { TenantLimits } from '../domain/access/quotas.js'
import type { GrantOfOwner } from '../domain/access/watching.js'
import { registrationsMax, subscriptionsMax } from '../domain/limits.js'
import { keeper, type ShardMap, workerOf } from '../domain/scope.js'
import type { AnswerRoom, Clock, DiskRoom, Logger, Stamps, Store } from '../ports.js'
import { BackupSource } from './backup-source.js'
import { GroupCommit } from './commit/commit.js'
import { type CommitLog, StoreLog } from './commit/commit-log.js'
import { Counts } from './commit/counts.js'
import { EntityCount } from './commit/entity-count.js'
import { DocumentOwner } from './documents/document-owner.js'
import { Documents } from './documents/documents.js'
import { registrationForm, subscriptionForm } from './documents/forms.js'
import { PathRegister } from './documents/path-register.js'
import { PatternAccounts } from './documents/pattern-accounts.js'
import { ProviderBook } from './documents/provider-book.js'
import { type Register, registerAlone } from './documents/register.js'
import { RegisterCopy } from './documents/register-copy.js'
import { RegisterFeed } from './documents/register-feed.js'
import { RegisterFollower } from './documents/register-follower.js'
import { RegistrationOwner } from './documents/registration-owner.js'
import { SubscriptionOwner } from './documents/subscription-owner.js'
import { ExpiryMark } from './expiry.js'
import { attributeCounts, entityCounts } from './layout.js'
import { splitBundles } from './notify/bundle.js'
import type { DeliveryLimits } from './notify/deliveries.js'
import { openNotifications } from './notify/open-notifications.js'
import { type OutboxLimits, outboxLimitsDefault } from './notify/outbox.js'
import { type FlowControl, Pacer } from './notify/pacer.js'
import type { ReplayLimits } from './notify/replays.js'
import { FirstPages } from './read/first-pages.js'
import { Lists, type QueryLimits } from './read/lists.js'
import { Lookup } from './read/lookup.js'
import type { Scanner } from './read/scans.js'
import { Types } from './read/types.js'
import { Views } from './read/views/views.js'
import type { StampObserver } from './replicate/observed-stamps.js'
import { openReplicated, type ReplicatedNeeds, replicatedRegister } from './replicate/open-replicated.js'
import type { Owned } from './replicate/ownership.js'
import { type Concerned, ReplicatedShards } from './replicate/replicated-shards.js'
import { type KnownDocuments, LocalShards, type ReadParts, type Role } from './shards.js'
import type { RingLimits } from './streams/change-ring.js'
import { ChangeStreams } from './streams/change-streams.js'
import { EntityQuotas } from './tenants/entity-quotas.js'
import { LastChanges } from './tenants/last-changes.js'
import { MissingCounter } from './tenants/missing-entities.js'
import { TenantAdmin, type TenantAdminParts } from './tenants/tenant-admin.js'
import { TenantMarks } from './tenants/tenant-marks.js'
import { TenantSizes } from './tenants/tenant-sizes.js'
import { TenantUses } from './tenants/tenant-uses.js'
import { Actors } from './turn/actor.js'
import { KeyFilter } from './turn/key-filter.js'
import { Shard } from './turn/shard.js'

export interface ShardLimits extends OutboxLimits {
  /** Subscriptions and registrations of all tenants together (domain/limits.ts). */
  readonly subscriptionsMax: number
  readonly registrationsMax: number
  /**
   * Limit of the writes of one shard that wait for their reply, and of the changes of subscriptions and registrations
   * that wait. Raising it trades memory and tail latency for fewer 503s.
   */
  readonly mailboxLengthMax: number
  /** Entities kept in memory, about 2 KB each of usual size. Raising it saves reads of the store. */
  readonly liveActorsMax: number
}

export const shardLimitsDefault: ShardLimits = {
  mailboxLengthMax: 10_000,
  liveActorsMax: 50_000,
  subscriptionsMax,
  registrationsMax,
  ...outboxLimitsDefault,
}

/** The number of a worker among all workers. Worker 0 is the keeper of the register. */
export interface WorkerPart {
  readonly worker: number
  readonly workers: number
}

/**
 * The role of an owner among several: a worker always has the same shards; the cluster assigns the shards of a node.
 */
export type Share = ({ readonly kind: 'worker' } & WorkerPart) | ({ readonly kind: 'node' } & ReplicatedNeeds)

/** The parts from which a node's shards are made. */
export interface ShardParts {
  readonly store: Store
  readonly shardMap: ShardMap
  readonly clock: Clock
  readonly stamps: Stamps & StampObserver
  readonly logger: Pick<Logger, 'info' | 'warn' | 'error'>
  /** Runs the work that reads many entities. */
  readonly scanner: Scanner
  readonly limits: ShardLimits
  /** Memory for data that is read for clients. */
  readonly answers: AnswerRoom
  /** The room on the disk of the store. */
  readonly room: DiskRoom
  readonly queries: QueryLimits & { /** Memory for views. */ readonly viewBytesMax: number }
  /** The latest changes for readers of streams. `ring`: unique for each process. */
  readonly streams: { readonly limits: RingLimits; readonly ring: string }
  /** Whether pending notifications outlive the process. */
  readonly notifications: {
    readonly isKept: boolean
    /** As `-notifDescendants`. */
    readonly descendantsMax: number
    /** undefined: off. */
    readonly flowControl: FlowControl | undefined
    /** The limits for sending dead letters again automatically; undefined: they are not sent again. */
    readonly replays?: ReplayLimits | undefined
    /** What the rules of its owner let a subscription notify of; undefined: everything. */
    readonly grantOfOwner?: GrantOfOwner | undefined
  }
  /** Which subscriptions and registrations a reader sees; undefined: there is no access control. */
  readonly visibleDocuments?: VisibleDocuments | undefined
  /** What tenants may have; undefined: there are no quotas. */
  readonly quotas?: TenantLimits | undefined
  /** How many records of sent notifications are kept; undefined: `deliveryLimitsDefault`. */
  readonly deliveryLimits?: DeliveryLimits | undefined
  /** Receives dead letters that are to be sent again; undefined: they are sent here. */
  readonly onRetry?: ((message: Buffer) => void) | undefined
  /** undefined: this owner is the only one. */
  readonly share?: Share | undefined
  /** Called once when a commit's outcome is unknown and the node must end. */
  readonly onFailure: (failure: Error) => void
}

/** The log of an owner's commits, and its counts. */
interface LogParts {
  readonly log: CommitLog
  readonly entities: Counts
  readonly attributes: Counts
  readonly owned: Owned
  /** Makes the part that has the register. */
  readonly register: (commit: GroupCommit) => RegisterPart
}

interface RegisterPart {
  readonly register: Register
  /** undefined: this owner is the only one. */
  readonly others: Others | undefined
}

interface Others {
  /** Whether this owner is the keeper of the register now. */
  readonly isKeeper: () => boolean
  readonly role: (paths: PathRegister, concerned: Concerned) => Role
}

/** Opens the shards of a node, and all that they share over one store. */
export async function openLocalShards(parts: ShardParts): Promise<LocalShards> {
  const { store, shardMap, clock, stamps, limits, room, onFailure } = parts
  const { flowControl, ...notified } = parts.notifications
  await splitBundles(store)
  const logParts = await logPartsOf(parts)
  const { log, entities, attributes, owned } = logParts
  const commit = new GroupCommit({ log, clock, directory: entities, attributes, onFailure, room })
  const { register, others } = logParts.register(commit)
  const documents = await readDocuments(parts, register)
  const reading = readingOf(parts, commit, logParts)
  const { subscriptions } = documents
  const isOfShards = owned !== undefined
  const needs = { ...parts, ...notified, commit, subscriptions, isDocumentOwner: others?.isKeeper, isOfShards }
  const notifying = await openNotifications(needs)
  const { notifications } = notifying
  const entityCount = new EntityCount(entities)
  const { mailboxLengthMax } = limits
  const streams = new ChangeStreams({ commit, clock, ...parts.streams })
  const quotas = parts.quotas && new EntityQuotas(new TenantUses(entities), parts.quotas, clock)
  const turns = { actors: reading.actors, log: commit, stamps, notifications, streams, mailboxLengthMax, room, quotas }
  const isKeeper = others?.isKeeper ?? (() => true)
  const missing = new MissingCounter(reading.actors, shardMap, ownsNow(parts))
  const creations = quotas && { quotas, missing }
  const tenants = await openTenants(parts, { commit, register, isKeeper, entities, creations }, documents)
  const { marks } = tenants.parts
  const concerned = { ...reading, ...notifying, commit, entityCount, uses: quotas?.uses }
  const roleAmong = async ({ isKeeper, role }: Others): Promise<Role> => {
    const { register: number } = shardMap
    const paths = await PathRegister.read({ number, store, commit, register, counts: entities, isKeeper, room })
    const follower = new RegisterFollower(store, { ...documents, paths, marks }, number)
    return role(paths, { ...concerned, follower })
  }
  const role: Role = others ? await roleAmong(others) : { kind: 'alone' }
  return new LocalShards({
    ...reading,
    ...documents,
    ...notifying,
    store,
    tenants,
    streams,
    shardMap,
    clock,
    commit,
    entities,
    attributes,
    entityCount,
    quotas,
    owns: ownsNow(parts),
    role,
    shards: Array.from({ length: shardMap.placement.shards }, (_, index) => new Shard(index, turns)),
    pacer: flowControl && new Pacer(notifications, clock, flowControl),
    backup: new BackupSource({
      ...{ store, commit, clock, shards: shardMap.placement.shards, isNode: role.kind === 'node' },
      lastStamp: () => stamps.last,
      owns: ownsNow(parts),
    }),
  })
}

/** Opens the part that handles whole tenants. */
async function openTenants(
  { store, shardMap, clock, stamps, room, share }: ShardParts,
  own: Pick<TenantAdminParts, 'register' | 'isKeeper' | 'creations'> & {
    readonly commit: GroupCommit
    readonly entities: Counts
  },
  { subscriptions, registrations }: KnownDocuments,
): Promise<TenantAdmin> {
  const { register: number } = shardMap
  const { entities, ...keeping } = own
  const marks = await TenantMarks.read(store, number)
  const changes = new LastChanges(clock)
  own.commit.addFollower(changes)
  const sizes = new TenantSizes({ store, ticks: clock, entities, subscriptions, registrations, marks, changes })
  const generation = (): number => (share?.kind === 'node' ? share.ownership.generation : 0)
  return new TenantAdmin({ ...keeping, number, stamps, room, marks, sizes, changes, generation })
}

/** Whether this owner answers for a shard, or for the register, at this moment. */
function ownsNow({ share, shardMap }: ShardParts): (shard: number) => boolean {
  switch (share?.kind) {
    case undefined:
      return () => true
    case 'worker':
      return shard => (shard === shardMap.register ? keeper : workerOf(shard, share.workers)) === share.worker
    case 'node':
      return shard => share.ownership.admits(shard)
  }
}

async function readDocuments(
  { store, shardMap, clock, limits, room, visibleDocuments, quotas }: ShardParts,
  register: Register,
): Promise<KnownDocuments> {
  const subscriptions = await Documents.read(subscriptionForm, store, register, shardMap)
  const registrations = await Documents.read(registrationForm, store, register, shardMap)
  const documentOwner = new DocumentOwner(register, limits.mailboxLengthMax, room, visibleDocuments)
  const patterns = new PatternAccounts(subscriptions, clock)
  return {
    subscriptions,
    registrations,
    subscriptionOwner: new SubscriptionOwner(subscriptions, documentOwner, limits.subscriptionsMax, patterns, quotas),
    registrationOwner: new RegistrationOwner(registrations, documentOwner, limits.registrationsMax, quotas),
    providers: new ProviderBook(registrations),
  }
}

function readingOf(parts: ShardParts, commit: GroupCommit, { entities, attributes, owned }: LogParts): ReadParts {
  const { store, shardMap, clock, logger, limits, queries, scanner, answers, share } = parts
  const keyFilter = new KeyFilter()
  const expiryMark = new ExpiryMark()
  const actors = new Actors(store, keyFilter, limits.liveActorsMax, number => commit.isDurable(number))
  const views = new Views(queries.viewBytesMax, scanner, commit, clock, logger)
  const firstPages = new FirstPages(store, scanner, commit, owned)
  for (const follower of [views, firstPages, expiryMark]) commit.addFollower(follower)
  const ownership = share?.kind === 'node' ? share.ownership : undefined
  const lookup = new Lookup(store, actors, commit, entities, shardMap, clock, ownership)
  const sources = { store, commit, directory: entities, shardMap, lookup, actors, firstPages, views, scanner, clock }
  const lists = new Lists({ ...sources, room: answers, ...(owned && { owned }) }, queries)
  const types = new Types(commit, entities, attributes, lists, clock)
  return { actors, keyFilter, expiryMark, firstPages, views, lookup, lists, types }
}

function logPartsOf(parts: ShardParts): LogParts | Promise<LogParts> {
  const { share } = parts
  switch (share?.kind) {
    case undefined:
      return logPartsAlone(parts)
    case 'worker':
      return logPartsOfWorker(parts, share)
    case 'node':
      return logPartsOfNode(parts, share)
  }
}

/** For a single owner: the store is the log. */
const logPartsAlone = ({ store, shardMap, clock, stamps }: ShardParts): LogParts => ({
  log: new StoreLog(store, clock, () => stamps.last),
  entities: new Counts(store, entityCounts),
  attributes: new Counts(store, attributeCounts),
  owned: undefined,
  register: commit => ({ register: registerAlone(commit, shardMap.register), others: undefined }),
})

/** For a worker: as for a single owner, except for the register. Worker 0 keeps it, and the others copy it. */
const logPartsOfWorker = (parts: ShardParts, { worker }: WorkerPart): LogParts => ({
  ...logPartsAlone(parts),
  register: commit => {
    const { store, clock, shardMap } = parts
    const among = { store, commit, clock, register: shardMap.register }
    if (worker !== keeper) {
      const role = (paths: PathRegister, { follower }: Concerned): Role => ({
        kind: 'copy',
        paths,
        copy: new RegisterCopy({ ...among, follower }),
      })
      return { register: registerAlone(commit, shardMap.register), others: { isKeeper: () => false, role } }
    }
    const feed = new RegisterFeed(among)
    return { register: feed, others: { isKeeper: () => true, role: paths => ({ kind: 'keeper', paths, feed }) } }
  },
})

/** For a node of a cluster: the cluster has the logs, that of the register too, which all nodes follow. */
async function logPartsOfNode(parts: ShardParts, needs: ReplicatedNeeds): Promise<LogParts> {
  const { ownership, barrier } = needs
  const replicated = await openReplicated(parts, needs)
  const isKeeper = (): boolean => ownership.admits(ownership.register)
  const role = (paths: PathRegister, concerned: Concerned): Role => ({
    kind: 'node',
    paths,
    ownership,
    host: new ReplicatedShards(replicated, concerned),
  })
  return {
    ...replicated,
    owned: ownership.owned,
    register: commit => ({
      register: replicatedRegister(commit, replicated, barrier),
      others: { isKeeper, role },
    }),
  }
}
