// Every shard of this node, behind one entrance: `ask`.
//
// A write takes its turn in its shard. A read or a list gets one answer for all shards of the node. After a failed
// commit every request is refused.
//
// In a node of a cluster the store has more shards than this node owns, and the owned ones change (replicate/).
//
// Not here: the parts and how they are opened (open-shards.ts).

import type { ShardMap } from '../domain/scope.js'
import {
  type FindRequest,
  mayCreate,
  type ShardReply,
  type ShardRequest,
  type Shards,
  type TenantsRequest,
  type WriteRequest,
} from '../messages/messages.js'
import type { Clock, StoreReader } from '../ports.js'
import type { BackupSource } from './backup-source.js'
import type { GroupCommit } from './commit/commit.js'
import type { Counts } from './commit/counts.js'
import { replyAfterFailure } from './commit/deposed.js'
import type { EntityCount } from './commit/entity-count.js'
import type { Registrations, Subscriptions } from './documents/forms.js'
import type { PathRegister } from './documents/path-register.js'
import type { ProviderBook } from './documents/provider-book.js'
import type { RegisterCopy } from './documents/register-copy.js'
import type { RegisterFeed } from './documents/register-feed.js'
import type { RegistrationOwner } from './documents/registration-owner.js'
import type { SubscriptionOwner } from './documents/subscription-owner.js'
import type { ExpiryMark } from './expiry.js'
import type { Notifying } from './notify/open-notifications.js'
import type { Pacer } from './notify/pacer.js'
import type { FirstPages } from './read/first-pages.js'
import type { Lists } from './read/lists.js'
import type { Lookup } from './read/lookup.js'
import type { Types } from './read/types.js'
import type { Views } from './read/views/views.js'
import type { Ownership } from './replicate/ownership.js'
import type { ReplicatedShards } from './replicate/replicated-shards.js'
import type { ChangeStreams } from './streams/change-streams.js'
import type { EntityQuotas } from './tenants/entity-quotas.js'
import type { TenantAdmin } from './tenants/tenant-admin.js'
import type { TenantMarks } from './tenants/tenant-marks.js'
import type { Actors } from './turn/actor.js'
import { Batches } from './turn/batches.js'
import type { KeyFilter } from './turn/key-filter.js'
import type { Shard, Turn } from './turn/shard.js'

/** Any shard number reaches all shards of a node. */
const onlyOwner: readonly number[] = [0]

/** The outcome of a turn in a shard that is not ours. */
const notOurs: Turn = { actor: undefined, reply: { kind: 'moved' } }

const isOfOnePath = ({ paths }: FindRequest): boolean => paths.length === 1 && !paths[0]!.endsWith('#')

/** The write that may create an entity; undefined: the request creates none. The writes of a batch are alike. */
function creatorIn(request: ShardRequest): WriteRequest | undefined {
  if (request.kind === 'batch') return mayCreate(request.items[0]!) ? request.items[0] : undefined
  return 'target' in request && mayCreate(request) ? request : undefined
}

/** Whether the reply is about all shards of the asked owner. */
const isAboutOwner = ({ step }: TenantsRequest): boolean => step.what !== 'delete' && step.what !== 'deletions'

/** The role of an owner of shards among several. `paths`: the service paths of all owners. */
export type Role =
  | { readonly kind: 'alone' }
  /** The worker that keeps the register, and passes its changes to the others. */
  | { readonly kind: 'keeper'; readonly paths: PathRegister; readonly feed: RegisterFeed }
  /** Another worker, with a copy of the register. */
  | { readonly kind: 'copy'; readonly paths: PathRegister; readonly copy: RegisterCopy }
  /** A node of a cluster: the set of its own shards changes. */
  | {
      readonly kind: 'node'
      readonly paths: PathRegister
      readonly ownership: Ownership
      /** For the code that moves shards from node to node. */
      readonly host: ReplicatedShards
    }

/** The parts that find entities, and the parts that keep them in memory. */
export interface ReadParts {
  readonly actors: Actors
  /** Reads the keys of the store in the background. */
  readonly keyFilter: KeyFilter
  readonly expiryMark: ExpiryMark
  readonly firstPages: FirstPages
  readonly views: Views
  readonly lookup: Lookup
  readonly lists: Lists
  readonly types: Types
}

/** Subscriptions and registrations, and their document owners. */
export interface KnownDocuments {
  readonly subscriptions: Subscriptions
  readonly registrations: Registrations
  readonly subscriptionOwner: SubscriptionOwner
  readonly registrationOwner: RegistrationOwner
  /** The registrations in the form that forwarding needs. */
  readonly providers: ProviderBook
}

export interface LocalParts extends ReadParts, KnownDocuments, Notifying {
  readonly store: StoreReader
  readonly shardMap: ShardMap
  readonly clock: Clock
  readonly role: Role
  readonly commit: GroupCommit
  readonly shards: readonly Shard[]
  readonly entities: Counts
  readonly attributes: Counts
  readonly entityCount: EntityCount
  /** undefined: no reply waits for notifications. */
  readonly pacer: Pacer | undefined
  readonly backup: BackupSource
  readonly tenants: TenantAdmin
  readonly streams: ChangeStreams
  /** undefined: tenants may have any number of entities. */
  readonly quotas: EntityQuotas | undefined
  /** Whether a shard is of this owner now. */
  readonly owns: (shard: number) => boolean
}

export class LocalShards implements Shards {
  readonly parts: LocalParts
  private readonly ownership: Ownership | undefined
  private readonly marks: TenantMarks
  private readonly batches: Batches

  constructor(parts: LocalParts) {
    const { role, commit, shards, notifications, clock } = parts
    this.parts = parts
    this.marks = parts.tenants.parts.marks
    this.ownership = role.kind === 'node' ? role.ownership : undefined
    this.batches = new Batches({
      turn: item => this.turn(item),
      concerns: tenant => notifications.concerns(tenant),
      shards,
      commit,
      clock,
    })
  }

  ask(shard: number, request: ShardRequest, onReply: (reply: ShardReply) => void): void {
    const { quotas } = this.parts
    const creator = quotas && creatorIn(request)
    if (!quotas || !creator) return this.take(shard, request, onReply)
    const isBatch = request.kind === 'batch'
    const creations = isBatch ? request.items.length : 1
    const take = (): void => this.take(shard, request, onReply)
    if (!quotas.admit(creator.target.tenant, creations, isBatch, take)) onReply({ kind: 'busy' })
  }

  private take(shard: number, request: ShardRequest, onReply: (reply: ShardReply) => void): void {
    const { parts, ownership } = this
    const { role } = parts
    const { failed } = parts.commit
    if (failed) return onReply(replyAfterFailure(failed))
    // A backup concerns everything that this owner has.
    if (request.kind === 'backup') return parts.backup.onAsk(request, onReply)
    if (ownership && !ownership.admits(shard)) return onReply({ kind: 'moved' })
    const refusal = this.marks.refusalFor(request)
    if (refusal) return onReply({ kind: 'refused', refusal })
    switch (request.kind) {
      case 'find':
        return parts.lookup.find(request, isOfOnePath(request) ? onReply : this.ofSameShards(onReply))
      case 'types':
        return parts.types.summarize(request, this.ofSameShards(onReply))
      case 'list':
        return parts.lists.list(request, this.ofSameShards(onReply))
      case 'fetch':
        return parts.lists.fetch(request, this.ofSameShards(onReply))
      case 'batch':
        return this.batches.onBatch(request, this.paced(request.items[0]!, onReply))
      case 'announce':
        return role.kind === 'alone' ? onReply({ kind: 'done' }) : role.paths.onAnnounce(request, onReply)
      case 'unused':
        return role.kind === 'alone'
          ? onReply({ kind: 'failed', reason: 'there is no other owner of shards' })
          : role.paths.onUnused(request, this.ofSameShards(onReply))
      case 'createSubscription':
      case 'changeSubscription':
      case 'removeSubscription':
      case 'findSubscription':
      case 'listSubscriptions':
      case 'progress':
        return parts.subscriptionOwner.onAsk(request, onReply)
      case 'createRegistration':
      case 'changeRegistration':
      case 'removeRegistration':
      case 'findRegistration':
      case 'listRegistrations':
        return parts.registrationOwner.onAsk(request, onReply)
      case 'follow':
        return role.kind === 'copy'
          ? role.copy.onFollow(request, onReply)
          : onReply({ kind: 'failed', reason: 'no other worker keeps the register' })
      case 'claim':
      case 'news':
      case 'handIn':
        return parts.notifications.onAsk(request, onReply)
      case 'admin':
        return onReply({ kind: 'failed', reason: 'shards carry out no orders to a process' })
      case 'deliveries':
      case 'retryDeliveries':
        return parts.deliveries.onAsk(request, onReply)
      case 'stream':
        return parts.streams.onAsk(request, reply => onReply({ kind: 'stream', content: reply }))
      case 'tenants':
        return parts.tenants.onAsk(request, isAboutOwner(request) ? this.ofSameShards(onReply) : onReply)
      default:
        ownership?.countRequest(shard)
        return parts.shards[shard]!.onAsk(request, this.paced(request, onReply))
    }
  }

  /**
   * Passes the reply on if the owned shards have stayed the same. Otherwise some of the results may belong to other
   * owners.
   */
  private ofSameShards(onReply: (reply: ShardReply) => void): (reply: ShardReply) => void {
    const { ownership } = this
    if (!ownership) return onReply
    const { generation } = ownership
    return reply => onReply(generation === ownership.generation ? reply : { kind: 'moved' })
  }

  /** A reply that may have to wait for notifications. */
  private paced({ origin, target }: WriteRequest, onReply: (reply: ShardReply) => void): (reply: ShardReply) => void {
    const { pacer } = this.parts
    return origin.isPaced && pacer ? pacer.paced(origin, target.tenant, onReply) : onReply
  }

  owners(): readonly number[] {
    return onlyOwner
  }

  /** One owner has all paths. */
  pathsOf(): undefined {
    return undefined
  }

  ownerOf(): number {
    return 0
  }

  // [hot] Once per entity of a batch.
  private turn(item: WriteRequest): Turn {
    const { tenant, path, id } = item.target
    // A live actor knows its shard, so the shard need not be computed again.
    const { actors, shardMap, shards } = this.parts
    // A mark may have arrived since the batch was admitted.
    const refusal = this.marks.refusalFor(item)
    if (refusal) return { actor: undefined, reply: { kind: 'refused', refusal } }
    const shard = actors.shardOf(tenant, path, id) ?? shardMap.shardOf(tenant, path, id)
    if (this.ownership && !this.ownership.admits(shard)) return notOurs
    this.ownership?.countRequest(shard)
    return shards[shard]!.turn(item)
  }

  /** Stops requests to other owners, and stops passing notifications on. */
  end(): void {
    const { role, notifications } = this.parts
    if (role.kind === 'keeper') role.feed.end()
    notifications.end()
  }

  /**
   * Resolves when everything accepted so far is durable, or is known not to be. After that, writes happen only when
   * another request comes.
   */
  async drain(): Promise<void> {
    const { commit, entityCount, notifications } = this.parts
    await this.batches.drained()
    await entityCount.stop()
    await commit.drain()
    notifications.settle()
    await commit.drain()
  }
}
