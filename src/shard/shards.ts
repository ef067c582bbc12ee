// Every shard of this node, behind the one way in: `ask`.
//
// Opens what they share (live actors, directory, group commit) over one store, and answers for all of them: a write takes its turn in
// its shard, a read or list is answered for all shards of the node at once. When a commit has failed nothing is taken any more.
//
// In a node of a cluster the store has more shards than are asked here, and which ones these are changes (replicated/).

import { registrationsMax, subscriptionsMax } from '../domain/limits.js'
import type { ShardMap } from '../domain/scope.js'
import type { FindRequest, ShardReply, ShardRequest, Shards, WriteRequest } from '../messages/messages.js'
import type { AnswerRoom, Clock, DiskRoom, Logger, Stamps, Store } from '../ports.js'
import { GroupCommit } from './commit/commit.js'
import { StoreLog } from './commit/commit-log.js'
import { Counts } from './commit/counts.js'
import { replyAfterFailure } from './commit/deposed.js'
import { EntityCount } from './commit/entity-count.js'
import { Documents } from './documents/documents.js'
import { type Registrations, registrationForm, type Subscriptions, subscriptionForm } from './documents/forms.js'
import { Home } from './documents/home.js'
import { PathRegister } from './documents/path-register.js'
import { PatternAccounts } from './documents/pattern-accounts.js'
import { ProviderBook } from './documents/provider-book.js'
import { ownRegister, type Register } from './documents/register.js'
import { RegisterCopy } from './documents/register-copy.js'
import { RegisterFeed } from './documents/register-feed.js'
import { RegisterFollower } from './documents/register-follower.js'
import { RegistrationHome } from './documents/registration-home.js'
import { SubscriptionHome } from './documents/subscription-home.js'
import { ExpiryMark } from './expiry.js'
import { decodeNumber } from './keys.js'
import { attributeCounts, entityCounts, stampKey } from './layout.js'
import type { Deliveries, DeliveryLimits } from './notify/deliveries.js'
import { makeNotifications } from './notify/make-notifications.js'
import type { Notifications } from './notify/notifications.js'
import { type OutboxLimits, outboxLimitsDefault } from './notify/outbox.js'
import { type FlowControl, Pacer } from './notify/pacer.js'
import { Heads } from './read/heads.js'
import { Lists, type QueryLimits } from './read/lists.js'
import { Lookup } from './read/lookup.js'
import type { Scanner } from './read/scans.js'
import { Types } from './read/types.js'
import { Views } from './read/views/views.js'
import { Replicated, type ReplicatedNeeds } from './replicate/open-replicated.js'
import type { Ownership } from './replicate/ownership.js'
import { decodePosition, positionKey } from './replicate/replicated-layout.js'
import { ReplicatedShards } from './replicate/replicated-shards.js'
import { Actors } from './turn/actor.js'
import { Batches } from './turn/batches.js'
import { Presence } from './turn/presence.js'
import { Shard, type Turn } from './turn/shard.js'

/** All shards of a node are asked by any of them. */
const onlyOwner: readonly number[] = [0]

export interface ShardLimits extends OutboxLimits {
  /** Subscriptions and registrations of all tenants together, as domain/limits.ts says. */
  readonly subscriptionsMax: number
  readonly registrationsMax: number
  /** Writes of one shard whose reply waits, and as many changes of subscriptions and registrations. Raising it trades memory and tail latency for fewer 503s. */
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

/** What comes of a turn in a shard that is not ours. */
const notOurs: Turn = { actor: undefined, reply: { kind: 'moved' } }

const isOfOnePath = ({ paths }: FindRequest): boolean => paths.length === 1 && !paths[0]!.endsWith('#')

/** What a node's shards are made of. */
export interface ShardParts {
  readonly store: Store
  readonly shardMap: ShardMap
  readonly clock: Clock
  readonly stamps: Stamps
  readonly logger: Pick<Logger, 'info' | 'warn' | 'error'>
  /** Runs what looks into many entities. */
  readonly scanner: Scanner
  readonly limits: ShardLimits
  /** Memory for what is read for clients. */
  readonly answers: AnswerRoom
  /** Of the disk under the store; undefined: nobody watches it. */
  readonly room?: DiskRoom | undefined
  readonly queries: QueryLimits & { /** Memory for views. */ readonly viewBytesMax: number }
  /** Whether what is owed to receivers outlives the process. */
  readonly notifications: {
    readonly isKept: boolean
    /** As `-notifDescendants`. */
    readonly descendantsMax: number
    /** undefined: off. */
    readonly flowControl: FlowControl | undefined
  }
  /** What is kept of notifications that were sent; undefined: as much as `deliveryLimitsDefault` says. */
  readonly deliveryLimits?: DeliveryLimits | undefined
  /** Takes dead letters that are to be sent again; undefined: they are. */
  readonly onRetry?: ((message: Buffer) => void) | undefined
  /** Which of several owners this is; undefined: the only one. */
  readonly part?: WorkerPart | undefined
  /** Told once, when a commit's outcome is unknown and the node must end. */
  readonly onFailure: (failure: Error) => void
  /** What a node of a cluster is given; undefined: all shards of the store are this node's, always. */
  readonly replicated?: ReplicatedNeeds | undefined
}

/** The last stamp that a store's node gave; 0 for a new store. */
export function lastStamp(store: Store): number {
  const value = store.get(stampKey())
  return value ? decodeNumber(value) : 0
}

/** Which of several workers an owner is. Worker 0 is the keeper of the register. */
export interface WorkerPart {
  readonly worker: number
  readonly workers: number
}

/** Who answers for documents. */
interface Homes {
  readonly subscriptions: SubscriptionHome
  readonly registrations: RegistrationHome
}

/** Numbers of names that are in memory (docs/operations/names.md). */
export interface NamesKept {
  readonly actors: number
  /** Tenants whose counts of entities are known, and their pairs of path and type. */
  readonly tenants: number
  readonly pairs: number
  /** Rows of such counts. */
  readonly rows: number
  /** The same of attributes by type and name. */
  readonly tenantsOfAttributes: number
  readonly attributes: number
  readonly rowsOfAttributes: number
  readonly views: number
}

export class LocalShards implements Shards {
  private readonly shards: readonly Shard[]
  private readonly shardMap: ShardMap
  private readonly batches: Batches
  private readonly actors: Actors
  /** For whoever tells how long commits take. */
  readonly commit: GroupCommit
  private readonly lookup: Lookup
  private readonly lists: Lists
  private readonly types: Types
  private readonly keepers: {
    readonly actors: Actors
    readonly directory: Counts
    readonly attributes: Counts
    readonly views: Views
  }
  private readonly homes: Homes
  private readonly read: () => Promise<void>
  private readonly pacer: Pacer | undefined
  /** What is known of subscriptions, once they are loaded. */
  readonly subscriptions: Subscriptions
  /** The same of registrations. */
  readonly registrations: Registrations
  /** For whoever forwards requests. */
  readonly providers: ProviderBook
  /** For whoever sends them. */
  readonly notifications: Notifications
  /** What became of notifications, once it is loaded. */
  readonly deliveries: Deliveries
  /** For whoever lets it learn what the store holds. */
  readonly presence = new Presence()
  /** For whoever tells how many entities there are. */
  readonly entityCount: EntityCount
  /** For whoever moves shards from node to node; undefined where nobody does. */
  readonly replicated: ReplicatedShards | undefined
  /** Which service paths there are at all owners; undefined where there is only this one. */
  readonly paths: PathRegister | undefined
  /** Brings changes of the register to other workers; undefined where this one is not its keeper, or there are no others. */
  readonly feed: RegisterFeed | undefined
  /** The register where another worker is its keeper. */
  readonly copy: RegisterCopy | undefined
  private readonly ownership: Ownership | undefined
  /** For whoever removes what falls due. */
  readonly expiryMark = new ExpiryMark()

  constructor(parts: ShardParts) {
    const { store, shardMap, clock, stamps, logger, scanner, limits, queries, onFailure, part, room } = parts
    const inside = parts.replicated && new Replicated(store, clock, stamps, parts.replicated, room)
    const owned = inside?.ownership.owned
    const directory = inside?.entities ?? new Counts(store, entityCounts)
    const attributes = inside?.attributes ?? new Counts(store, attributeCounts)
    const entityCount = new EntityCount(directory)
    const log = inside?.log ?? new StoreLog(store, clock, () => stamps.last)
    const commit = new GroupCommit({ log, clock, directory, attributes, onFailure, room })
    const { presence, expiryMark } = this
    const actors = new Actors(store, presence, limits.liveActorsMax, () => commit.durable)
    const views = new Views(queries.viewBytesMax, scanner, commit, clock, logger)
    const heads = new Heads(store, scanner, commit, owned)
    commit.tell(views)
    commit.tell(heads)
    commit.tell(expiryMark)
    const lookup = new Lookup(store, actors, commit, directory, shardMap, clock, owned)
    const sources = {
      store,
      commit,
      directory,
      shardMap,
      lookup,
      actors,
      heads,
      views,
      scanner,
      clock,
      room: parts.answers,
    }
    const number = shardMap.register
    const row = part && store.get(positionKey(number))
    const position = row && decodePosition(row)
    const feed =
      part?.worker === 0 ? new RegisterFeed({ store, commit, clock, register: number, before: position }) : undefined
    const register: Register = inside?.registerWith(commit) ?? feed ?? ownRegister(commit)
    const subscriptions = new Documents(subscriptionForm, store, register, shardMap)
    const registrations = new Documents(registrationForm, store, register, shardMap)
    const patterns = new PatternAccounts(subscriptions, clock)
    const isHome = (): boolean => inside?.isHome ?? (!part || feed !== undefined)
    const { notifications, deliveries, book } = makeNotifications({
      ...parts,
      subscriptions,
      commit,
      isKept: parts.notifications.isKept,
      descendantsMax: parts.notifications.descendantsMax,
      isHome: inside || part ? isHome : undefined,
      isOfShards: inside !== undefined,
    })
    const { flowControl } = parts.notifications
    this.pacer = flowControl && new Pacer(notifications, clock, flowControl)
    const home = new Home(commit, register, limits.mailboxLengthMax, room)
    this.homes = {
      subscriptions: new SubscriptionHome(subscriptions, home, limits.subscriptionsMax, patterns),
      registrations: new RegistrationHome(registrations, home, limits.registrationsMax),
    }
    const paths =
      inside || part
        ? new PathRegister({ number, store, commit, register, counts: directory, isKeeper: isHome, room })
        : undefined
    const follower = paths && new RegisterFollower(store, { subscriptions, registrations, paths }, number)
    this.paths = paths
    this.feed = feed
    this.copy =
      part && follower && !feed ? new RegisterCopy({ store, commit, follower, register: number, position }) : undefined
    const readRegister = async (): Promise<void> => {
      await subscriptions.load()
      await registrations.load()
      await paths?.load()
    }
    if (inside && follower) {
      this.replicated = new ReplicatedShards(inside, {
        follower,
        commit,
        entityCount,
        actors,
        presence,
        views,
        heads,
        expiryMark,
        notifications,
        deliveries,
        book,
      })
      this.read = async () => {
        await inside.positions.load(store)
        await readRegister()
        entityCount.begin()
      }
    } else {
      this.replicated = undefined
      this.read = async () => {
        await readRegister()
        await book.load(store)
        await deliveries.load()
        entityCount.begin()
      }
    }
    this.entityCount = entityCount
    this.ownership = inside?.ownership
    this.notifications = notifications
    this.deliveries = deliveries
    this.subscriptions = subscriptions
    this.registrations = registrations
    this.providers = new ProviderBook(registrations)
    this.keepers = { actors, directory, attributes, views }
    this.shardMap = shardMap
    this.actors = actors
    this.commit = commit
    this.lookup = lookup
    this.types = new Types(commit, directory, attributes, clock)
    this.lists = new Lists({ ...sources, ...(owned && { owned }) }, queries)
    this.shards = Array.from(
      { length: shardMap.placement.shards },
      (_, index) => new Shard(index, actors, commit, stamps, this.notifications, limits.mailboxLengthMax, room),
    )
    this.batches = new Batches({
      turn: item => this.turn(item),
      concerns: tenant => notifications.concerns(tenant),
      shards: this.shards,
      commit,
      clock,
    })
  }

  /**
   * Reads the subscriptions and registrations that the store has, and which dead letters: to be awaited before anything is asked about them,
   * before any write, and before shards come.
   */
  load(): Promise<void> {
    return this.read()
  }

  /** How many names are in memory: for whoever wants to know that names which have gone leave nothing behind. */
  get names(): NamesKept {
    const { actors, directory, attributes, views } = this.keepers
    return {
      actors: actors.size,
      tenants: directory.size.tenants,
      pairs: directory.size.pairs,
      rows: directory.size.rows,
      tenantsOfAttributes: attributes.size.tenants,
      attributes: attributes.size.pairs,
      rowsOfAttributes: attributes.size.rows,
      views: views.size,
    }
  }

  ask(shard: number, request: ShardRequest, onReply: (reply: ShardReply) => void): void {
    const { failed } = this.commit
    if (failed) return onReply(replyAfterFailure(failed))
    if (this.ownership && !this.ownership.admits(shard)) return onReply({ kind: 'moved' })
    switch (request.kind) {
      case 'find':
        return this.lookup.find(request, isOfOnePath(request) ? onReply : this.ofSameShards(onReply))
      case 'types':
        return this.types.summarize(request, this.ofSameShards(onReply))
      case 'list':
        return this.lists.list(request, this.ofSameShards(onReply))
      case 'fetch':
        return this.lists.fetch(request, this.ofSameShards(onReply))
      case 'batch':
        return this.batches.onBatch(request, this.paced(request.items[0]!, onReply))
      case 'announce':
        return this.paths ? this.paths.onAnnounce(request, onReply) : onReply({ kind: 'done' })
      case 'unused':
        return this.paths
          ? this.paths.onUnused(request, this.ofSameShards(onReply))
          : onReply({ kind: 'failed', reason: 'nobody else has shards' })
      case 'createSubscription':
      case 'changeSubscription':
      case 'removeSubscription':
      case 'findSubscription':
      case 'listSubscriptions':
      case 'progress':
        return this.homes.subscriptions.onAsk(request, onReply)
      case 'createRegistration':
      case 'changeRegistration':
      case 'removeRegistration':
      case 'findRegistration':
      case 'listRegistrations':
        return this.homes.registrations.onAsk(request, onReply)
      case 'follow':
        return this.copy
          ? this.copy.onFollow(request, onReply)
          : onReply({ kind: 'failed', reason: 'no other worker keeps the register' })
      case 'claim':
      case 'news':
      case 'handIn':
        return this.notifications.onAsk(request, onReply)
      case 'admin':
        return onReply({ kind: 'failed', reason: 'shards carry out no orders to a process' })
      case 'deliveries':
      case 'retryDeliveries':
        return this.deliveries.onAsk(request, onReply)
      default:
        return this.shards[shard]!.onAsk(request, this.paced(request, onReply))
    }
  }

  /** Replies if the shards that are ours have stayed the same: else some of what was found may be of others. */
  private ofSameShards(onReply: (reply: ShardReply) => void): (reply: ShardReply) => void {
    const { ownership } = this
    if (!ownership) return onReply
    const { generation } = ownership
    return reply => onReply(generation === ownership.generation ? reply : { kind: 'moved' })
  }

  /** A reply that may have to wait for notifications. */
  private paced({ origin, target }: WriteRequest, onReply: (reply: ShardReply) => void): (reply: ShardReply) => void {
    return origin.isPaced && this.pacer ? this.pacer.paced(origin, target.tenant, onReply) : onReply
  }

  owners(): readonly number[] {
    return onlyOwner
  }

  /** Who asks here asks all there is. */
  pathsOf(): undefined {
    return undefined
  }

  ownerOf(): number {
    return 0
  }

  // [hot] Once per entity of a batch.
  private turn(item: WriteRequest): Turn {
    const { tenant, path, id } = item.target
    // An actor that lives knows its shard, which need not be found again.
    const shard = this.actors.shardOf(tenant, path, id) ?? this.shardMap.shardOf(tenant, path, id)
    return this.ownership && !this.ownership.admits(shard) ? notOurs : this.shards[shard]!.turn(item)
  }

  /** Resolves when everything taken so far is durable, or is known not to be. Nothing more is written then until something is asked. */
  async drain(): Promise<void> {
    await this.batches.drained()
    await this.entityCount.stop()
    await this.commit.drain()
    this.notifications.settle()
    await this.commit.drain()
  }
}
