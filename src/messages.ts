// What may be asked of a shard and what it may answer: closed unions, and their bytes.
//
// Who asks has parsed and validated; who answers trusts and decides. Both unions go through bytes and back unchanged, so that the one
// who asks cannot tell whether the shard is in this process, in a sibling or on another machine (the loopback test runs the whole
// program that way). Inside one process nothing is encoded.

import assert from 'node:assert/strict'
import type { Payload, WantedAttribute, WantedEntity } from './domain/entity.js'
import { isDateType, type Metadata } from './domain/entity.js'
import type { Json } from './domain/json.js'
import { operatorOf } from './domain/operators.js'
import type { OrderKey } from './domain/order.js'
import type { Refusal } from './domain/refusal.js'
import { compileSelection, type Selection, type SelectionSource } from './domain/selection.js'
import { noProgress, type Subscription, type SubscriptionProgress } from './domain/subscription.js'
import { decodeSubscription, encodeSubscription } from './domain/subscription-json.js'
import type { UpdateOptions } from './domain/update.js'

/** The entity that a request means. Without a type, the only one of that id. */
export interface Target {
  readonly tenant: string
  readonly path: string
  readonly id: string
  readonly type: string | undefined
}

/** Where a change comes from: kept with the entity, and sent along with notifications. */
export interface Origin {
  /** The correlator up to its first `;` (operations.md §8.5). */
  readonly correlatorRoot: string
  /** All of it; undefined: the root is all. */
  readonly correlator?: string | undefined
  /** `X-Auth-Token`; undefined: there is none. Never logged. */
  readonly authToken?: string | undefined
  /** Whether the request is a custom notification itself (subscriptions.md §6.8). */
  readonly isCustomNotification?: boolean | undefined
  /** Whether the reply waits until notifications have left the queue (`options=flowControl`, subscriptions.md §11.3). */
  readonly isPaced?: boolean | undefined
  /** Counts the notifications of the request, over all its entities (subscriptions.md §8.3); undefined: nobody is notified. */
  readonly numbering?: Numbering | undefined
}

/** Numbers for the notifications of one request. Where several owners count, each has numbers that no other one has. */
export interface Numbering {
  /** The one that the next notification gets. Grows. */
  next: number
  readonly step: number
}

interface Write {
  readonly target: Target
  readonly origin: Origin
  /**
   * The moment at which whoever asks has taken the request, so that what several owners create stands in the order in which it was
   * asked for. undefined: the moment of its turn.
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

/** Several writes of one origin, each to a shard of its own of the asked shard's owner, who takes them in this order. At least one. */
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
   * Of several owners each is asked for its first `limit` entities, and for what it takes to merge them (`part`): for their keys alone, or
   * for the entities as well. undefined: the page itself (`listed`).
   */
  readonly part?: 'keys' | 'entities' | undefined
}

/** Where an entity stands: under which path and type, and where in the order of creation. */
export interface Standing {
  readonly created: number
  readonly shard: number
  readonly path: string
  readonly type: string
}

/** The entities that stand at these places now, as far as the owner of the asked shard holds them. */
export interface FetchRequest {
  readonly kind: 'fetch'
  readonly tenant: string
  readonly places: readonly Standing[]
}

/** The types of entities under the paths, with what is known of their attributes. */
export interface TypesRequest {
  readonly kind: 'types'
  readonly tenant: string
  readonly paths: readonly string[]
  /** Only this type; undefined: all. */
  readonly type: string | undefined
}

/** Some service paths of each tenant that the owner of the asked shard has or has heard of (broker/path-book). */
export interface PathsRequest {
  readonly kind: 'paths'
}

/** The tenant is about to have an entity under this path; done: the owner of the asked shard has heard of it. */
export interface AnnounceRequest {
  readonly kind: 'announce'
  readonly tenant: string
  readonly path: string
}

// Subscriptions. Those of a tenant are decided about in one place, its home: the owner of the shard `ShardMap.homeOf`. All other owners
// keep copies, and a change is done when all of them have it.

/** Asked of the home. The subscription has its id. */
export interface CreateSubscriptionRequest {
  readonly kind: 'createSubscription'
  readonly subscription: Subscription
}

/** A PATCH, asked of the home. The payload has passed `checkPatch`. */
export interface ChangeSubscriptionRequest {
  readonly kind: 'changeSubscription'
  readonly tenant: string
  readonly id: string
  /** What it watches from now on. */
  readonly servicePath: string
  readonly payload: Payload
}

/** Asked of the home. */
export interface RemoveSubscriptionRequest {
  readonly kind: 'removeSubscription'
  readonly tenant: string
  readonly id: string
}

/** One subscription or none, asked of the home. */
export interface FindSubscriptionRequest {
  readonly kind: 'findSubscription'
  readonly tenant: string
  readonly id: string
}

/** A page of a tenant's subscriptions in the order of their ids, asked of the home. */
export interface ListSubscriptionsRequest {
  readonly kind: 'listSubscriptions'
  readonly tenant: string
  /** Only those that watch exactly this; undefined: all. */
  readonly servicePath: string | undefined
  readonly offset: number
  readonly limit: number
}

/** What the owner of the asked shard knows of these subscriptions' notifications. */
export interface ProgressRequest {
  readonly kind: 'progress'
  readonly tenant: string
  readonly ids: readonly string[]
}

/** What became of a subscription's notifications of late, as far as the owner of the asked shard has sent them. */
export interface DeliveriesRequest {
  readonly kind: 'deliveries'
  readonly tenant: string
  readonly id: string
  /** Of each of the two lists. */
  readonly limit: number
}

/** To send again what the owner of the asked shard has given up for a subscription. */
export interface RetryDeliveriesRequest {
  readonly kind: 'retryDeliveries'
  readonly tenant: string
  readonly id: string
}

/**
 * What one home has to tell: all its changes behind `after` up to `upTo`, in order. Numbers are those of the home, and only grow. Who does not
 * have everything up to `after` learns nothing, and says what it has.
 */
export interface LearnRequest {
  readonly kind: 'learn'
  /** The owner that tells. */
  readonly home: number
  readonly after: number
  readonly upTo: number
  readonly changes: readonly SubscriptionChange[]
  /** Whether there is nothing more to tell for now. */
  readonly isAll: boolean
  /** Everything that was learned of this home is void: it has lost what it told. `after` is 0 then. */
  readonly isAnew: boolean
}

/** What became of a subscription. */
export interface SubscriptionChange {
  /** Of all changes of one home, above those before. */
  readonly revision: number
  readonly tenant: string
  readonly id: string
  /** As it then was (`encodeSubscription`); undefined: it was removed. */
  readonly text: string | undefined
}

/**
 * May this notification be sent? Asked of the home about a subscription that is decided about there (`isGuarded`). To be asked again when no
 * reply came: the same notification gets the same answer.
 */
export interface ClaimRequest {
  readonly kind: 'claim'
  readonly tenant: string
  readonly id: string
  readonly notification: string
}

/** What became of a notification of such a subscription, told to its home. */
export interface NewsRequest {
  readonly kind: 'news'
  readonly tenant: string
  readonly id: string
  readonly news: ProgressNews
}

/** An answer of a receiver, or that there was none. */
export type ProgressNews =
  | { readonly kind: 'success'; readonly code?: number | undefined }
  | { readonly kind: 'failure'; readonly reason: string }

export type SubscriptionWrite = CreateSubscriptionRequest | ChangeSubscriptionRequest | RemoveSubscriptionRequest
export type SubscriptionRead = FindSubscriptionRequest | ListSubscriptionsRequest
export type SubscriptionRequest =
  | SubscriptionWrite
  | SubscriptionRead
  | ProgressRequest
  | LearnRequest
  | ClaimRequest
  | NewsRequest
export type DeliveryRequest = DeliveriesRequest | RetryDeliveriesRequest

export type ReadRequest = FindRequest | ListRequest | FetchRequest | TypesRequest | ProgressRequest
export type ShardRequest =
  | WriteRequest
  | BatchRequest
  | ReadRequest
  | PathsRequest
  | AnnounceRequest
  | SubscriptionRequest
  | DeliveryRequest

/** Whether a request may create the entity it means. */
export const mayCreate = (request: WriteRequest): boolean =>
  request.kind === 'create' || ('createAs' in request && request.createAs !== undefined)

/** What the entities of one type have in common (entities.md §18.1). */
export interface TypeSummary {
  readonly type: string
  /** Number of entities. */
  readonly count: number
  /** Name and type of each attribute that any of them has; in no order, pairs may stand twice. */
  readonly attributes: readonly (readonly [name: string, type: string])[]
}

/** A subscription, and what became of its notifications as far as it is known. */
export interface KnownSubscription {
  readonly subscription: Subscription
  readonly progress: SubscriptionProgress
}

/** How one try to deliver a notification ended. */
export interface DeliveryRecord {
  /** When, milliseconds since 1970. */
  readonly atMs: number
  /** The entity that it was about. */
  readonly id: string
  readonly type: string
  readonly path: string
  /** By which the receiver knows a notification that comes again. */
  readonly notificationId: string
  /** Which try it was, from 1. */
  readonly attempt: number
  /**
   * `failed`: another try follows. `dead`: none does, and a dead letter is kept. `dropped`: it could not be sent, or there was no room.
   * `simulated`: nothing was sent, on purpose.
   */
  readonly outcome: 'delivered' | 'failed' | 'dead' | 'dropped' | 'simulated'
  /** The status of the HTTP answer; undefined: there was none, or it was no HTTP. */
  readonly code?: number | undefined
  /** Why it was not delivered; '' when it was. */
  readonly reason: string
}

/** What became of a subscription's notifications. Both lists begin with the latest. */
export interface DeliveryReport {
  readonly deliveries: readonly DeliveryRecord[]
  /** The last try of each notification that was given up. */
  readonly deadLetters: readonly DeliveryRecord[]
  /** How many were given up and are kept, listed or not. */
  readonly deadCount: number
}

/** An entity as it was found: its path, and its image (image.ts). */
export interface Found {
  readonly path: string
  readonly image: Buffer
}

/**
 * What it takes to merge the parts of a list and to fetch an entity afterwards. In the order of the list, and as columns: a deep page
 * has many.
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

/** What a shard answers to a write. */
export type WriteReply =
  | { readonly kind: 'done' }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** Too much is waiting here: nothing was done, try later. */
  | { readonly kind: 'busy' }
  /** The outcome is unknown: the node could not make it durable, or could not read. */
  | { readonly kind: 'failed'; readonly reason: string }

export type ShardReply =
  | WriteReply
  | { readonly kind: 'found'; readonly entities: readonly Found[] }
  /** `total` counts the matches regardless of offset and limit. */
  | { readonly kind: 'listed'; readonly entities: readonly Found[]; readonly total: number }
  /** The first entities that a list means, one image for each key if they were wanted; `total` as above. */
  | {
      readonly kind: 'part'
      readonly keys: ListKeys
      readonly images: readonly Buffer[] | undefined
      readonly total: number
    }
  /** The image at each place that was asked for; undefined: nothing stands there any more. */
  | { readonly kind: 'fetched'; readonly images: readonly (Buffer | undefined)[] }
  /** The reply to each item. */
  | { readonly kind: 'batch'; readonly replies: readonly WriteReply[] }
  /** Tenants with some of their paths. */
  | { readonly kind: 'paths'; readonly tenants: readonly (readonly [tenant: string, paths: readonly string[]])[] }
  /** One summary for each type, in no order. */
  | { readonly kind: 'types'; readonly types: readonly TypeSummary[] }
  /** With what the home itself knows of their progress; `total` counts the matches regardless of offset and limit. */
  | {
      readonly kind: 'subscriptions'
      readonly subscriptions: readonly KnownSubscription[]
      readonly total: number
    }
  /** One for each id that was asked for. */
  | { readonly kind: 'progress'; readonly parts: readonly SubscriptionProgress[] }
  /** Whether the notification may be sent. */
  | { readonly kind: 'claimed'; readonly isGranted: boolean }
  | ({ readonly kind: 'deliveries' } & DeliveryReport)
  /** So many dead letters are on their way again, durably. */
  | { readonly kind: 'retried'; readonly count: number }
  /** Everything of that home up to here is known, durably. */
  | { readonly kind: 'learned'; readonly upTo: number }
  /** The owner was not asked: nothing has happened there, and nothing will. */
  | { readonly kind: 'unreachable'; readonly reason: string }
  /** The owner was asked, and no answer came: what has happened, or will yet, nobody here knows. */
  | { readonly kind: 'lost'; readonly reason: string }

/**
 * Where shards are asked. `onReply` is called exactly once, perhaps before `ask` returns. What one caller asks of one owner is taken there
 * in the order of asking: a batch that is asked in steps relies on it.
 */
export interface Shards {
  ask(shard: number, request: ShardRequest, onReply: (reply: ShardReply) => void): void
  /** One shard of each owner: who must reach everything asks each of them once. */
  owners(): readonly number[]
  /** All service paths of a tenant, if they are few and nobody may have another; undefined: whoever reads asks every owner. */
  pathsOf(tenant: string): Iterable<string> | undefined
  /** Tells owners apart: the same number for all shards of one, and for no shard of another. */
  ownerOf(shard: number): number
}

type WireMetadata = readonly (readonly [string, string, Json])[]
type WireAttribute = readonly [type: string, value: Json, metadata: WireMetadata | null]
type WireAttributes = readonly (readonly [string, WireAttribute])[]

const toWire = ({ type, value, metadata }: WantedAttribute): WireAttribute => [
  type,
  value,
  metadata ? [...metadata].map(([name, element]) => [name, element.type, element.value] as const) : null,
]

function fromWire([type, value, metadata]: WireAttribute): WantedAttribute {
  return {
    type,
    value,
    operator: isDateType(type) ? undefined : operatorOf(value),
    metadata: metadata
      ? new Map(
          metadata.map(([name, elementType, element]): [string, Metadata] => [
            name,
            { type: elementType, value: element },
          ]),
        )
      : undefined,
  }
}

const allToWire = (attributes: Attributes): WireAttributes =>
  [...attributes].map(([name, attribute]) => [name, toWire(attribute)] as const)

const allFromWire = (wire: WireAttributes): Attributes =>
  new Map(wire.map(([name, attribute]) => [name, fromWire(attribute)]))

/** The bytes of a request: JSON, its maps as lists of pairs. */
export const encodeRequest = (request: ShardRequest): Buffer => Buffer.from(JSON.stringify(requestToWire(request)))

function requestToWire(request: ShardRequest): unknown {
  switch (request.kind) {
    case 'create': {
      const { id, type, attributes } = request.entity
      return { ...request, entity: { id, type, attributes: allToWire(attributes) } }
    }
    case 'append':
    case 'appendStrict':
    case 'update':
    case 'replace':
      return { ...request, attributes: allToWire(request.attributes) }
    case 'updateAttribute':
      return { ...request, attribute: toWire(request.attribute) }
    case 'batch':
      return { ...request, origin: request.items[0]?.origin, items: request.items.map(itemToWire) }
    case 'list':
      return { ...request, selection: request.selection.source }
    case 'createSubscription':
      return { ...request, subscription: encodeSubscription(request.subscription) }
    default:
      return request
  }
}

/** All items of a batch have one origin, and count their notifications together. */
const itemToWire = (item: WriteRequest): unknown => requestToWire({ ...item, origin: undefined as unknown as Origin })

/** The request of bytes that `encodeRequest` wrote. */
export const decodeRequest = (bytes: Buffer): ShardRequest => requestFromWire(JSON.parse(bytes.toString()))

/** What of a request has another form in JSON, each where its kind has it. */
interface WireRequest {
  readonly kind: ShardRequest['kind']
  readonly entity: { readonly attributes: WireAttributes }
  readonly attributes: WireAttributes
  readonly attribute: WireAttribute
  readonly items: readonly WireRequest[]
  readonly origin: Origin
  readonly selection: SelectionSource
  readonly subscription: string
}

const requestFromWire = (wire: WireRequest): ShardRequest =>
  Object.assign(wire, fromJson(wire)) as unknown as ShardRequest

function fromJson(wire: WireRequest): object {
  switch (wire.kind) {
    case 'create':
      return { entity: { ...wire.entity, attributes: allFromWire(wire.entity.attributes) } }
    case 'append':
    case 'appendStrict':
    case 'update':
    case 'replace':
      return { attributes: allFromWire(wire.attributes) }
    case 'updateAttribute':
      return { attribute: fromWire(wire.attribute) }
    case 'batch':
      return { items: wire.items.map(item => ({ ...requestFromWire(item), origin: wire.origin })), origin: undefined }
    case 'list': {
      const selection = compileSelection(wire.selection)
      assert(selection.ok, 'a selection that its sender has compiled')
      return { selection: selection.value }
    }
    case 'createSubscription':
      return { subscription: decodeSubscription(wire.subscription) }
    default:
      return {}
  }
}

/** The bytes of a reply: u32 length of a JSON head, the head, then columns and images one after the other. */
export function encodeReply(reply: ShardReply): Buffer {
  switch (reply.kind) {
    case 'found':
    case 'listed': {
      const entities = reply.entities.map(({ path, image }) => [path, image.length])
      return frame(
        { ...reply, entities },
        reply.entities.map(({ image }) => image),
      )
    }
    case 'part': {
      const { keys, images, ...rest } = reply
      const { ranges, values } = keys
      const lengths = images?.map(image => image.length)
      return frame({ ...rest, count: keys.created.length, ranges, values, lengths }, [columns(keys), ...(images ?? [])])
    }
    case 'fetched': {
      const lengths = reply.images.map(image => image?.length ?? null)
      return frame(
        { kind: reply.kind, lengths },
        reply.images.filter(image => image !== undefined),
      )
    }
    case 'subscriptions': {
      const subscriptions = reply.subscriptions.map(({ subscription, progress }) => [
        encodeSubscription(subscription),
        progress,
      ])
      return frame({ ...reply, subscriptions }, [])
    }
    default:
      return frame(reply, [])
  }
}

function frame(head: unknown, tail: readonly Buffer[]): Buffer {
  const json = Buffer.from(JSON.stringify(head))
  const length = Buffer.alloc(4)
  length.writeUInt32BE(json.length)
  return Buffer.concat([length, json, ...tail])
}

/** Bytes of one key besides its values: a double and the numbers of its shard and range. */
const keyBytes = 8 + 2 + 4

function columns({ created, shards, rangeOf }: ListKeys): Buffer {
  const bytes = Buffer.allocUnsafe(created.length * keyBytes)
  let at = 0
  for (let index = 0; index < created.length; index++) {
    at = bytes.writeDoubleBE(created[index]!, at)
    at = bytes.writeUInt16BE(shards[index]!, at)
    at = bytes.writeUInt32BE(rangeOf[index]!, at)
  }
  return bytes
}

/** The reply of bytes that `encodeReply` wrote. Its images share their memory. */
export function decodeReply(bytes: Buffer): ShardReply {
  let at = 4 + bytes.readUInt32BE(0)
  const head = JSON.parse(bytes.toString('utf8', 4, at))
  const image = (length: number): Buffer => {
    at += length
    return bytes.subarray(at - length, at)
  }
  switch (head.kind as ShardReply['kind']) {
    case 'found':
    case 'listed': {
      const entities = (head.entities as [string, number][]).map(([path, length]) => ({ path, image: image(length) }))
      return { ...head, entities }
    }
    case 'part': {
      const { kind, total, count, ranges, values, lengths } = head
      const keys = { ...decodeColumns(image(count * keyBytes)), ranges, values }
      return { kind, keys, images: (lengths as number[] | undefined)?.map(image), total }
    }
    case 'fetched': {
      const lengths = head.lengths as (number | null)[]
      return { kind: 'fetched', images: lengths.map(length => (length === null ? undefined : image(length))) }
    }
    case 'subscriptions': {
      const known = head.subscriptions as readonly (readonly [string, Partial<SubscriptionProgress>])[]
      const subscriptions = known.map(([subscription, progress]) => ({
        subscription: decodeSubscription(subscription),
        progress: completed(progress),
      }))
      return { ...head, subscriptions }
    }
    case 'progress':
      return { kind: 'progress', parts: (head.parts as readonly Partial<SubscriptionProgress>[]).map(completed) }
    default:
      return head
  }
}

/** JSON leaves out what is undefined. */
const completed = (progress: Partial<SubscriptionProgress>): SubscriptionProgress => ({ ...noProgress, ...progress })

function decodeColumns(bytes: Buffer): Pick<ListKeys, 'created' | 'shards' | 'rangeOf'> {
  const count = bytes.length / keyBytes
  const created = new Float64Array(count)
  const shards = new Uint16Array(count)
  const rangeOf = new Uint32Array(count)
  for (let index = 0, at = 0; index < count; index++, at += keyBytes) {
    created[index] = bytes.readDoubleBE(at)
    shards[index] = bytes.readUInt16BE(at + 8)
    rangeOf[index] = bytes.readUInt32BE(at + 10)
  }
  return { created, shards, rangeOf }
}
