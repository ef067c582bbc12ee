// What may be asked of a shard and what it may answer: closed unions, and their bytes.
//
// Who asks has parsed and validated; who answers trusts and decides. Both unions go through bytes and back unchanged, so that the one
// who asks cannot tell whether the shard is in this process, in a sibling or on another machine (the loopback test runs the whole
// program that way). Inside one process nothing is encoded.

import assert from 'node:assert/strict'
import type { WantedAttribute, WantedEntity } from './domain/entity.js'
import { isDateType, type Metadata } from './domain/entity.js'
import type { Json } from './domain/json.js'
import { operatorOf } from './domain/operators.js'
import type { OrderKey } from './domain/order.js'
import type { Refusal } from './domain/refusal.js'
import { compileSelection, type Selection } from './domain/selection.js'
import type { UpdateOptions } from './domain/update.js'

/** The entity that a request means. Without a type, the only one of that id. */
export interface Target {
  readonly tenant: string
  readonly path: string
  readonly id: string
  readonly type: string | undefined
}

/** Where a change comes from: kept with the entity, and later sent along with notifications. */
export interface Origin {
  /** The correlator up to its first `;` (operations.md §8.5). */
  readonly correlatorRoot: string
}

interface Write {
  readonly target: Target
  readonly origin: Origin
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

/** All entities of an id under the paths (wildcards allowed) that the owner of the asked shard holds. */
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
}

/** The types of entities under the paths, with what is known of their attributes. */
export interface TypesRequest {
  readonly kind: 'types'
  readonly tenant: string
  readonly paths: readonly string[]
  /** Only this type; undefined: all. */
  readonly type: string | undefined
}

export type ShardRequest = WriteRequest | FindRequest | ListRequest | TypesRequest

/** What the entities of one type have in common (entities.md §18.1). */
export interface TypeSummary {
  readonly type: string
  /** Number of entities. */
  readonly count: number
  /** Name and type of each attribute that any of them has; in no order, pairs may stand twice. */
  readonly attributes: readonly (readonly [name: string, type: string])[]
}

/** An entity as it was found: its path, and its image (image.ts). */
export interface Found {
  readonly path: string
  readonly image: Buffer
}

export type ShardReply =
  | { readonly kind: 'done' }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'found'; readonly entities: readonly Found[] }
  /** `total` counts the matches regardless of offset and limit. */
  | { readonly kind: 'listed'; readonly entities: readonly Found[]; readonly total: number }
  /** One summary for each type, in no order. */
  | { readonly kind: 'types'; readonly types: readonly TypeSummary[] }
  /** Too much is waiting here: nothing was done, try later. */
  | { readonly kind: 'busy' }
  /** The outcome is unknown: the node could not make it durable, or could not read. */
  | { readonly kind: 'failed'; readonly reason: string }

/** Where shards are asked. `onReply` is called exactly once, perhaps before `ask` returns. */
export interface Shards {
  ask(shard: number, request: ShardRequest, onReply: (reply: ShardReply) => void): void
  /** One shard of each owner: who must reach everything asks each of them once. */
  owners(): readonly number[]
}

type WireMetadata = readonly (readonly [string, string, Json])[]
type WireAttribute = readonly [type: string, value: Json, metadata: WireMetadata | null]

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

const allToWire = (attributes: Attributes): (readonly [string, WireAttribute])[] =>
  [...attributes].map(([name, attribute]) => [name, toWire(attribute)] as const)

const allFromWire = (wire: readonly (readonly [string, WireAttribute])[]): Attributes =>
  new Map(wire.map(([name, attribute]) => [name, fromWire(attribute)]))

/** The bytes of a request: JSON, its maps as lists of pairs. */
export function encodeRequest(request: ShardRequest): Buffer {
  switch (request.kind) {
    case 'create': {
      const { id, type, attributes } = request.entity
      return Buffer.from(JSON.stringify({ ...request, entity: { id, type, attributes: allToWire(attributes) } }))
    }
    case 'append':
    case 'appendStrict':
    case 'update':
    case 'replace':
      return Buffer.from(JSON.stringify({ ...request, attributes: allToWire(request.attributes) }))
    case 'updateAttribute':
      return Buffer.from(JSON.stringify({ ...request, attribute: toWire(request.attribute) }))
    case 'list':
      return Buffer.from(JSON.stringify({ ...request, selection: request.selection.source }))
    default:
      return Buffer.from(JSON.stringify(request))
  }
}

/** The request of bytes that `encodeRequest` wrote. */
export function decodeRequest(bytes: Buffer): ShardRequest {
  const wire = JSON.parse(bytes.toString())
  switch (wire.kind as ShardRequest['kind']) {
    case 'create':
      return { ...wire, entity: { ...wire.entity, attributes: allFromWire(wire.entity.attributes) } }
    case 'append':
    case 'appendStrict':
    case 'update':
    case 'replace':
      return { ...wire, attributes: allFromWire(wire.attributes) }
    case 'updateAttribute':
      return { ...wire, attribute: fromWire(wire.attribute) }
    case 'list': {
      const selection = compileSelection(wire.selection)
      assert(selection.ok, 'a selection that its sender has compiled')
      return { ...wire, selection: selection.value }
    }
    default:
      return wire
  }
}

/** The bytes of a reply: u32 length of a JSON head, the head, then the images one after the other. */
export function encodeReply(reply: ShardReply): Buffer {
  if (reply.kind !== 'found' && reply.kind !== 'listed') return frame(reply, [])
  const images = reply.entities.map(entity => entity.image)
  const entities = reply.entities.map(({ path, image }) => [path, image.length])
  return frame({ ...reply, entities }, images)
}

function frame(head: unknown, images: readonly Buffer[]): Buffer {
  const json = Buffer.from(JSON.stringify(head))
  const length = Buffer.alloc(4)
  length.writeUInt32BE(json.length)
  return Buffer.concat([length, json, ...images])
}

/** The reply of bytes that `encodeReply` wrote. */
export function decodeReply(bytes: Buffer): ShardReply {
  let at = 4 + bytes.readUInt32BE(0)
  const head = JSON.parse(bytes.toString('utf8', 4, at))
  if (head.kind !== 'found' && head.kind !== 'listed') return head
  const entities = (head.entities as [string, number][]).map(([path, length]) => {
    const image = bytes.subarray(at, at + length)
    at += length
    return { path, image }
  })
  return { ...head, entities }
}
