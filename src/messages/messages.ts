// The requests to a shard and its replies, as closed unions. Here are the messages about entities, and the unions of
// all messages.
//
// The asking side has parsed and validated the request; the shard trusts it and decides. The asking side cannot see
// whether the shard is in this process, in a sibling or on another machine. Their bytes: wire/wire.ts.

import type { AccessCondition } from '../domain/access/condition.js'
import type { WriteLimits } from '../domain/access/writing.js'
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
import type { StreamReply, StreamRequest } from './streams.js'
import type { TenantsReply, TenantsRequest } from './tenants.js'

export type * from './admin.js'
export type * from './backup.js'
export type * from './documents.js'
export type * from './streams.js'
export type * from './tenants.js'

/** The entity that a request means. Without a type: the only entity of that id. */
export interface EntityTarget {
  readonly tenant: string
  readonly path: string
  readonly id: string
  readonly type: string | undefined
  /** Of a write without a type: which entities of the id it may be about; undefined: all of them. */
  readonly limits?: WriteLimits | undefined
}

/** The origin of a change. It is stored with the entity, and sent with notifications. */
export interface Origin {
  /** The correlator up to its first `;` (docs/interface/requests.md#correlator). */
  readonly correlatorRoot: string
  /** The whole correlator; undefined: it is only the root. */
  readonly correlator?: string | undefined
  /** `X-Auth-Token`; undefined: there is none. Never logged. */
  readonly authToken?: string | undefined
  /**
   * Whether the request is itself a custom notification with its own text or JSON (docs/interface/cascades.md#circles).
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
   * undefined: it triggers no notification.
   */
  readonly numbering?: Numbering | undefined
}

/** The numbers of the notifications of one request. Where several owners count, each uses numbers of its own. */
export interface Numbering {
  /** The number of the next notification. Grows. */
  next: number
  readonly step: number
}

interface Write {
  readonly target: EntityTarget
  readonly origin: Origin
  /**
   * The moment at which the asking side took the request. With it, entities that several owners create are in the order
   * of the requests. undefined: the moment of its turn.
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
  /** The type with which a missing entity is created, unless the target has one; undefined: the request is refused. */
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

/** Removes the entity if its expiry time is not after `nowMs`. */
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
 * Several writes of one origin, each to its own shard of the asked shard's owner. The owner executes them in this
 * order. At least one.
 */
export interface BatchRequest {
  readonly kind: 'batch'
  readonly items: readonly WriteRequest[]
}

/**
 * A read for a reader that may not see everything: only what the condition covers is found, counted and listed. Hidden
 * attributes are still in the encoded entities of the reply: the asker leaves them out.
 */
export interface GrantedRead {
  /** undefined: the reader may see everything under the paths. */
  readonly grant?: AccessCondition | undefined
}

/** Asks for all entities of an id under the paths (wildcards allowed) at the owner of the asked shard, in no order. */
export interface FindRequest extends GrantedRead {
  readonly kind: 'find'
  readonly tenant: string
  readonly paths: readonly string[]
  readonly id: string
  readonly type: string | undefined
}

/** Asks for a page of the selected entities at the owner of the asked shard. */
export interface ListRequest extends GrantedRead {
  readonly kind: 'list'
  readonly tenant: string
  readonly paths: readonly string[]
  readonly selection: Selection
  /** The sort keys; empty: order of creation. */
  readonly order: readonly OrderKey[]
  readonly offset: number
  readonly limit: number
  /**
   * When a list spans several owners, each is asked for its first `limit` entities and the keys to merge them (`part`):
   * for the keys alone, or for the entities as well. undefined: the page itself (`listed`).
   */
  readonly part?: 'keys' | 'entities' | undefined
  /**
   * The limit in bytes of encoded entities in the reply. A page that has more is `large`; of a part, the first ones
   * that fit are sent. undefined: no limit.
   */
  readonly bytesMax?: number | undefined
}

/** The position of an entity: its path, its type, and its place in the order of creation. */
export interface EntityPosition {
  readonly created: number
  readonly shard: number
  readonly path: string
  readonly type: string
}

/** Asks for the entities that are now at these positions, at the owner of the asked shard. */
export interface FetchRequest {
  readonly kind: 'fetch'
  readonly tenant: string
  readonly places: readonly EntityPosition[]
  /** Bytes of encoded entities after which the reply ends. It has at least the first one. undefined: it has all. */
  readonly bytesMax?: number | undefined
}

/** Asks for the types of entities under the paths, with the known facts about their attributes. */
export interface TypesRequest extends GrantedRead {
  readonly kind: 'types'
  readonly tenant: string
  readonly paths: readonly string[]
  /** Only this type; undefined: all. */
  readonly type: string | undefined
}

/**
 * Announces that the tenant will have an entity under this path. Sent to the keeper of the register. `done`: all owners
 * know the path.
 */
export interface AnnounceRequest {
  readonly kind: 'announce'
  readonly tenant: string
  readonly path: string
}

/**
 * Asks which of these tenants have nothing in the asked owner's shards. When the owner replies, its work on them has
 * ended, and it announces a path of theirs before it creates an entity there.
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
  | StreamRequest

/** Whether a request may create the entity that it means. */
export const mayCreate = (request: WriteRequest): boolean =>
  request.kind === 'create' || ('createAs' in request && request.createAs !== undefined)

/** The common attributes of the entities of one type (docs/interface/types.md#all-types). */
export interface TypeSummary {
  readonly type: string
  /** Number of entities. */
  readonly count: number
  /** The name and type of each attribute that any of them has, in no order. A pair may occur twice. */
  readonly attributes: readonly (readonly [name: string, type: string])[]
}

/** A found entity: its path, and its encoded form (encoded-entity.ts). */
export interface FoundEntity {
  readonly path: string
  readonly encoded: Buffer
}

/**
 * The keys that are needed to merge the parts of a list and to fetch an entity afterwards. They are in the order of the
 * list, and stored as columns, because a deep page has many.
 */
export interface ListKeys {
  readonly created: Float64Array
  readonly shards: Uint16Array
  /** The path and type of each, as an index into `ranges`. */
  readonly rangeOf: Uint32Array
  readonly ranges: readonly (readonly [path: string, type: string])[]
  /** The values by which each entity is sorted, null for a missing one. Empty when the order is that of creation. */
  readonly values: readonly (readonly Json[])[]
}

/** Encoded entities by their index in a list. They may be cut out of the bytes of a reply only when they are needed. */
export interface EncodedEntities {
  readonly length: number
  at(index: number): Buffer | undefined
}

/** The reply of a shard to a write. */
export type WriteReply =
  | { readonly kind: 'done' }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** Too many requests wait here. Nothing was done; try later. */
  | { readonly kind: 'busy' }
  /** The shard does not belong to this owner, or not any more. Nothing was done; ask its owner. */
  | { readonly kind: 'moved' }
  /** The outcome is unknown: the node could not make the change durable, or could not read. */
  | { readonly kind: 'failed'; readonly reason: string }
  /** The owner was asked, and the effect is unknown here: no answer came, or another node has taken over meanwhile. */
  | { readonly kind: 'lost'; readonly reason: string }

export type ShardReply =
  | WriteReply
  | { readonly kind: 'found'; readonly entities: readonly FoundEntity[] }
  /** `total` counts the matches regardless of offset and limit. */
  | { readonly kind: 'listed'; readonly entities: readonly FoundEntity[]; readonly total: number }
  /** The entities of the page have more bytes than the reply may have. */
  | { readonly kind: 'large' }
  /**
   * The keys of the first entities of a list. If encoded entities were wanted, one for each of the first keys; `total`
   * as above.
   */
  | {
      readonly kind: 'part'
      readonly keys: ListKeys
      readonly encodedEntities: EncodedEntities | undefined
      readonly total: number
    }
  /**
   * The encoded entity at each of the first requested positions, as many as the reply may have; undefined: there is no
   * entity at that position any more.
   */
  | { readonly kind: 'fetched'; readonly encodedEntities: readonly (Buffer | undefined)[] }
  /** The reply to each item. */
  | { readonly kind: 'batch'; readonly replies: readonly WriteReply[] }
  /** One summary for each type, in no order. */
  | { readonly kind: 'types'; readonly types: readonly TypeSummary[] }
  /** The tenants that have nothing here. */
  | { readonly kind: 'unused'; readonly tenants: readonly string[] }
  /**
   * With the progress that the document owner itself knows; `total` counts the matches regardless of offset and limit.
   */
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
   * Whether the notification may be sent. `quietUntilMs` (wall clock): until then the subscription is throttled, and no
   * other notification will be permitted.
   */
  | { readonly kind: 'claimed'; readonly isGranted: boolean; readonly quietUntilMs?: number | undefined }
  | ({ readonly kind: 'deliveries' } & DeliveryReport)
  /** This many dead letters are on their way again, durably. */
  | { readonly kind: 'retried'; readonly count: number }
  /** The part of `AdminReply` for the command. */
  | { readonly kind: 'admin'; readonly content: AdminReply[AdminCommand['what']] }
  | { readonly kind: 'backup'; readonly content: BackupReply }
  | { readonly kind: 'tenants'; readonly content: TenantsReply }
  | { readonly kind: 'stream'; readonly content: StreamReply }
  /** The durable position of the copy; undefined: it does not have all rows. */
  | { readonly kind: 'followed'; readonly position: RegisterPosition | undefined }
  /** The owner was not asked: nothing has happened there, and nothing will. */
  | { readonly kind: 'unreachable'; readonly reason: string }

/**
 * The access to shards. `onReply` is called exactly once, perhaps before `ask` returns. The owner takes the requests
 * that one caller sends to it in their order: a batch that is asked in steps relies on it.
 */
export interface Shards {
  ask(shard: number, request: ShardRequest, onReply: (reply: ShardReply) => void): void
  /**
   * One shard of each owner. A request to all entities asks each of them once. The array stays the same object until a
   * shard changes its owner.
   */
  owners(): readonly number[]
  /**
   * All service paths of a tenant, if they are few and no other owner may have another one; undefined: a read asks
   * every owner.
   */
  pathsOf(tenant: string): Iterable<string> | undefined
  /** Identifies owners: the same number for all shards of one owner, and another number for each other owner. */
  ownerOf(shard: number): number
}
