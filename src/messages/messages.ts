// What may be asked of a shard and what it may answer: closed unions. Here are those about entities, and the unions of
// all.
//
// The asker has parsed and validated; the shard trusts and decides. The asker cannot tell whether the shard is in this
// process, in a sibling or on another machine. Their bytes: wire/wire.ts.

import type { WantedAttribute, WantedEntity } from '../domain/entities/entity.js'
import type { UpdateOptions } from '../domain/entities/update.js'
import type { Json } from '../domain/json.js'
import type { Registration } from '../domain/providers/registration.js'
import type { OrderKey } from '../domain/queries/order.js'
import type { Selection } from '../domain/queries/selection.js'
import type { Refusal } from '../domain/refusal.js'
import type { SubscriptionProgress } from '../domain/subscriptions/subscription.js'
import type { AdminCommand, AdminReply, AdminRequest } from './admin.js'
import type { BackupReply, BackupRequest } from './backup.js'
import type {
  DeliveryReport,
  DeliveryRequest,
  FollowRequest,
  KnownSubscription,
  ProgressRequest,
  RegisterPosition,
  RegistrationRequest,
  SubscriptionRequest,
} from './documents.js'
import type { TenantsReply, TenantsRequest } from './tenants.js'

export type * from './admin.js'
export type * from './backup.js'
export type * from './documents.js'
export type * from './tenants.js'

/** The entity that a request means. Without a type, the only one of that id. */
export interface EntityTarget {
  readonly tenant: string
  readonly path: string
  readonly id: string
  readonly type: string | undefined
}

/** Where a change comes from: kept with the entity, and sent along with notifications. */
export interface Origin {
  /** The correlator up to its first `;` (docs/interface/requests.md#correlator). */
  readonly correlatorRoot: string
  /** All of it; undefined: the root is all. */
  readonly correlator?: string | undefined
  /** `X-Auth-Token`; undefined: there is none. Never logged. */
  readonly authToken?: string | undefined
  /**
   * Whether the request is a custom notification itself, with a text or JSON of its own
   * (docs/interface/cascades.md#circles).
   */
  readonly isCustomNotification?: boolean | undefined
  /** Whether it is a custom notification with a patched entity (`ngsi`), whose format is that of a regular one. */
  readonly isPatchedNotification?: boolean | undefined
  /**
   * Whether the reply waits until notifications have left the queue (`options=flowControl`,
   * docs/interface/notifications.md#flow-control).
   */
  readonly isPaced?: boolean | undefined
  /**
   * Counts the notifications of the request, over all its entities (docs/interface/notifications.md#correlators);
   * undefined: nobody is notified.
   */
  readonly numbering?: Numbering | undefined
}

/** Numbers for the notifications of one request. Where several owners count, each has numbers that no other one has. */
export interface Numbering {
  /** The one that the next notification gets. Grows. */
  next: number
  readonly step: number
}

interface Write {
  readonly target: EntityTarget
  readonly origin: Origin
  /**
   * The moment at which whoever asks has taken the request, so that what several owners create stands in the order in
   * which it was asked for. undefined: the moment of its turn.
   */
  readonly stamp?: number | undefined
}

export type Attributes = ReadonlyMap<string, WantedAttribute>

export interface CreateRequest extends Write {
  readonly kind: 'create'
  readonly entity: WantedEntity
  readonly upsert: boolean
  readonly options: UpdateOptions
}

/** The operations on `/attrs`: append, appendStrict, update (PATCH), replace (PUT). */
export interface AttributesRequest extends Write {
  readonly kind: 'append' | 'appendStrict' | 'update' | 'replace'
  readonly attributes: Attributes
  readonly options: UpdateOptions
  /** An entity that is not there is created with this type, or that of the target; undefined: it is refused. */
  readonly createAs?: string | undefined
}

export interface DeleteAttributesRequest extends Write {
  readonly kind: 'deleteAttributes'
  readonly names: readonly string[]
}

export interface AttributeRequest extends Write {
  readonly kind: 'updateAttribute'
  readonly name: string
  readonly attribute: WantedAttribute
  readonly options: UpdateOptions
}

export interface ValueRequest extends Write {
  readonly kind: 'updateValue'
  readonly name: string
  readonly value: Json
  readonly forcedUpdate: boolean
}

export interface DeleteAttributeRequest extends Write {
  readonly kind: 'deleteAttribute'
  readonly name: string
}

export interface DeleteEntityRequest extends Write {
  readonly kind: 'deleteEntity'
}

/** Removes the entity if its time is not after `nowMs`. */
export interface ExpireRequest extends Write {
  readonly kind: 'expire'
  readonly nowMs: number
}

export type WriteRequest =
  | CreateRequest
  | AttributesRequest
  | AttributeRequest
  | ValueRequest
  | DeleteAttributeRequest
  | DeleteAttributesRequest
  | DeleteEntityRequest
  | ExpireRequest

/**
 * Several writes of one origin, each to a shard of its own of the asked shard's owner, who takes them in this order. At
 * least one.
 */
export interface BatchRequest {
  readonly kind: 'batch'
  readonly items: readonly WriteRequest[]
}

/** All entities of an id under the paths (wildcards allowed) that the owner of the asked shard holds, in no order. */
export interface FindRequest {
  readonly kind: 'find'
  readonly tenant: string
  readonly paths: readonly string[]
  readonly id: string
  readonly type: string | undefined
}

/** A page of the entities that a selection means, as far as the owner of the asked shard holds them. */
export interface ListRequest {
  readonly kind: 'list'
  readonly tenant: string
  readonly paths: readonly string[]
  readonly selection: Selection
  /** Keys of the order; empty: order of creation. */
  readonly order: readonly OrderKey[]
  readonly offset: number
  readonly limit: number
  /**
   * Of several owners each is asked for its first `limit` entities, and for what it takes to merge them (`part`): for
   * their keys alone, or for the entities as well. undefined: the page itself (`listed`).
   */
  readonly part?: 'keys' | 'entities' | undefined
  /**
   * Bytes of encoded entities that the reply may have. A page that has more is `large`; of a part the first ones that
   * fit are sent. undefined: no limit.
   */
  readonly bytesMax?: number | undefined
}

/** Where an entity stands: under which path and type, and where in the order of creation. */
export interface EntityPosition {
  readonly created: number
  readonly shard: number
  readonly path: string
  readonly type: string
}

/** The entities that stand at these places now, as far as the owner of the asked shard holds them. */
export interface FetchRequest {
  readonly kind: 'fetch'
  readonly tenant: string
  readonly places: readonly EntityPosition[]
  /** Bytes of encoded entities after which the reply ends, with the first one at least; undefined: it has all. */
  readonly bytesMax?: number | undefined
}

/** The types of entities under the paths, with what is known of their attributes. */
export interface TypesRequest {
  readonly kind: 'types'
  readonly tenant: string
  readonly paths: readonly string[]
  /** Only this type; undefined: all. */
  readonly type: string | undefined
}

/**
 * The tenant is about to have an entity under this path. Asked of the keeper of the register; done: all owners have
 * heard of it.
 */
export interface AnnounceRequest {
  readonly kind: 'announce'
  readonly tenant: string
  readonly path: string
}

/**
 * Which of these tenants have nothing in the asked owner's shards. When it replies, its work on them has ended, and it
 * announces a path of theirs before it creates an entity there.
 */
export interface UnusedRequest {
  readonly kind: 'unused'
  readonly tenants: readonly string[]
}

export type ReadRequest = FindRequest | ListRequest | FetchRequest | TypesRequest | ProgressRequest
export type ShardRequest =
  | WriteRequest
  | BatchRequest
  | ReadRequest
  | AnnounceRequest
  | UnusedRequest
  | SubscriptionRequest
  | RegistrationRequest
  | FollowRequest
  | DeliveryRequest
  | AdminRequest
  | BackupRequest
  | TenantsRequest

/** Whether a request may create the entity it means. */
export const mayCreate = (request: WriteRequest): boolean =>
  request.kind === 'create' || ('createAs' in request && request.createAs !== undefined)

/** What the entities of one type have in common (docs/interface/types.md#all-types). */
export interface TypeSummary {
  readonly type: string
  /** Number of entities. */
  readonly count: number
  /** Name and type of each attribute that any of them has; in no order, pairs may stand twice. */
  readonly attributes: readonly (readonly [name: string, type: string])[]
}

/** An entity as it was found: its path, and its image (image.ts). */
export interface FoundEntity {
  readonly path: string
  readonly encoded: Buffer
}

/**
 * What it takes to merge the parts of a list and to fetch an entity afterwards. In the order of the list, and as
 * columns: a deep page has many.
 */
export interface ListKeys {
  readonly created: Float64Array
  readonly shards: Uint16Array
  /** The path and type of each, as an index into `ranges`. */
  readonly rangeOf: Uint32Array
  readonly ranges: readonly (readonly [path: string, type: string])[]
  /** What each is ordered by, null where it has nothing; none at all when the order is that of creation. */
  readonly values: readonly (readonly Json[])[]
}

/** Images by their place in a list: they may be cut out of the bytes of a reply when they are wanted. */
export interface EncodedEntities {
  readonly length: number
  at(index: number): Buffer | undefined
}

/** What a shard answers to a write. */
export type WriteReply =
  | { readonly kind: 'done' }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** Too much is waiting here: nothing was done, try later. */
  | { readonly kind: 'busy' }
  /** The shard is not this owner's, or not any more: nothing was done, ask whose it is. */
  | { readonly kind: 'moved' }
  /** The outcome is unknown: the node could not make it durable, or could not read. */
  | { readonly kind: 'failed'; readonly reason: string }
  /**
   * The owner was asked, and what has happened, or will yet, nobody here knows: no answer came, or another node has
   * taken over meanwhile.
   */
  | { readonly kind: 'lost'; readonly reason: string }

export type ShardReply =
  | WriteReply
  | { readonly kind: 'found'; readonly entities: readonly FoundEntity[] }
  /** `total` counts the matches regardless of offset and limit. */
  | { readonly kind: 'listed'; readonly entities: readonly FoundEntity[]; readonly total: number }
  /** The entities of the page have more bytes than the reply may have. */
  | { readonly kind: 'large' }
  /**
   * The first entities that a list means, an image for each of the first keys if they were wanted; `total` as above.
   */
  | {
      readonly kind: 'part'
      readonly keys: ListKeys
      readonly encodedEntities: EncodedEntities | undefined
      readonly total: number
    }
  /**
   * The image at each of the first places that were asked for, as many as the reply may have; undefined: nothing stands
   * there any more.
   */
  | { readonly kind: 'fetched'; readonly encodedEntities: readonly (Buffer | undefined)[] }
  /** The reply to each item. */
  | { readonly kind: 'batch'; readonly replies: readonly WriteReply[] }
  /** One summary for each type, in no order. */
  | { readonly kind: 'types'; readonly types: readonly TypeSummary[] }
  /** Those that have nothing here. */
  | { readonly kind: 'unused'; readonly tenants: readonly string[] }
  /** With what the home itself knows of their progress; `total` counts the matches regardless of offset and limit. */
  | {
      readonly kind: 'subscriptions'
      readonly subscriptions: readonly KnownSubscription[]
      readonly total: number
    }
  /** `total` counts the matches regardless of offset and limit. */
  | { readonly kind: 'registrations'; readonly registrations: readonly Registration[]; readonly total: number }
  /** One for each id that was asked for. */
  | { readonly kind: 'progress'; readonly parts: readonly SubscriptionProgress[] }
  /**
   * Whether the notification may be sent, and until when (wall clock) no other one will be, since the subscription is
   * throttled.
   */
  | { readonly kind: 'claimed'; readonly isGranted: boolean; readonly quietUntilMs?: number | undefined }
  | ({ readonly kind: 'deliveries' } & DeliveryReport)
  /** So many dead letters are on their way again, durably. */
  | { readonly kind: 'retried'; readonly count: number }
  /** `told` is the part of `AdminTold` that the order was about. */
  | { readonly kind: 'admin'; readonly told: AdminReply[AdminCommand['what']] }
  | { readonly kind: 'backup'; readonly told: BackupReply }
  | { readonly kind: 'tenants'; readonly told: TenantsReply }
  /** Where the copy is, durably; undefined: it does not have all rows. */
  | { readonly kind: 'followed'; readonly position: RegisterPosition | undefined }
  /** The owner was not asked: nothing has happened there, and nothing will. */
  | { readonly kind: 'unreachable'; readonly reason: string }

/**
 * Where shards are asked. `onReply` is called exactly once, perhaps before `ask` returns. What one caller asks of one
 * owner is taken there in the order of asking: a batch that is asked in steps relies on it.
 */
export interface Shards {
  ask(shard: number, request: ShardRequest, onReply: (reply: ShardReply) => void): void
  /** One shard of each owner: who must reach everything asks each of them once. */
  owners(): readonly number[]
  /**
   * All service paths of a tenant, if they are few and nobody may have another; undefined: whoever reads asks every
   * owner.
   */
  pathsOf(tenant: string): Iterable<string> | undefined
  /** Tells owners apart: the same number for all shards of one, and for no shard of another. */
  ownerOf(shard: number): number
}
