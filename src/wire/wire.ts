// The bytes of what is asked of a shard and what it answers (messages.ts).
//
// Both unions go through bytes and back unchanged: the loopback test runs the whole program that way. Inside one process nothing is encoded.
// What comes most often is packed (wire/packed.ts, wire/part.ts), all else is JSON.

import assert from 'node:assert/strict'
import type { WantedAttribute } from '../domain/entities/entity.js'
import { isDateType, type Metadata } from '../domain/entities/entity.js'
import { operatorOf } from '../domain/entities/operators.js'
import type { Json } from '../domain/json.js'
import { decodeRegistration, encodeRegistration } from '../domain/providers/registration-json.js'
import { compileSelection, type SelectionSource } from '../domain/queries/selection.js'
import { noProgress, type SubscriptionProgress } from '../domain/subscriptions/subscription.js'
import { decodeSubscription, encodeSubscription } from '../domain/subscriptions/subscription-json.js'
import type { Attributes, HandedPart, Origin, ShardReply, ShardRequest, WriteRequest } from '../messages/messages.js'
import { isPacked, packDone, packFind, packFound, packWrite, unpackReply, unpackRequest } from './packed.js'
import { packPart } from './part.js'

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

/** The bytes of a request. */
export function encodeRequest(request: ShardRequest): Buffer {
  switch (request.kind) {
    case 'find':
      return packFind(request) ?? encodeJson(request)
    case 'append':
    case 'appendStrict':
    case 'update':
    case 'replace':
      return packWrite(request, JSON.stringify(allToWire(request.attributes)))
    default:
      return encodeJson(request)
  }
}

/** As JSON, maps as lists of pairs. */
const encodeJson = (request: ShardRequest): Buffer => Buffer.from(JSON.stringify(requestToWire(request)))

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
    case 'createRegistration':
      return { ...request, registration: encodeRegistration(request.registration) }
    case 'follow':
      return { ...request, rows: request.rows.toString('base64'), next: request.next?.toString('base64') }
    default:
      return request
  }
}

/** All items of a batch have one origin, and count their notifications together. */
const itemToWire = (item: WriteRequest): unknown => requestToWire({ ...item, origin: undefined as unknown as Origin })

/** The request of bytes that `encodeRequest` wrote. */
export const decodeRequest = (bytes: Buffer): ShardRequest =>
  isPacked(bytes)
    ? unpackRequest(bytes, wire => allFromWire(wire as unknown as WireAttributes))
    : requestFromWire(JSON.parse(bytes.toString()))

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
  readonly registration: string
  /** Of `follow`, as base64. */
  readonly rows: string
  readonly next?: string
  readonly parts: readonly (Omit<HandedPart, 'progress'> & { readonly progress: Partial<SubscriptionProgress> })[]
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
    case 'createRegistration':
      return { registration: decodeRegistration(wire.registration) }
    case 'follow':
      return {
        rows: Buffer.from(wire.rows, 'base64'),
        ...(wire.next !== undefined && { next: Buffer.from(wire.next, 'base64') }),
      }
    case 'handIn':
      return { parts: wire.parts.map(part => ({ ...part, progress: completed(part.progress) })) }
    default:
      return {}
  }
}

/** The bytes of a reply: packed, or u32 length of a JSON head, the head, then images one after the other. */
export function encodeReply(reply: ShardReply): Buffer {
  switch (reply.kind) {
    case 'done':
      return packDone()
    case 'found':
      return packFound(reply.entities)
    case 'listed': {
      const entities = reply.entities.map(({ path, image }) => [path, image.length])
      return frame(
        { ...reply, entities },
        reply.entities.map(({ image }) => image),
      )
    }
    case 'part':
      return packPart(reply)
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
    case 'registrations':
      return frame({ ...reply, registrations: reply.registrations.map(encodeRegistration) }, [])
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

/** The reply of bytes that `encodeReply` wrote. Its images share their memory. */
export function decodeReply(bytes: Buffer): ShardReply {
  if (isPacked(bytes)) return unpackReply(bytes)
  let at = 4 + bytes.readUInt32BE(0)
  const head = JSON.parse(bytes.toString('utf8', 4, at))
  const image = (length: number): Buffer => {
    at += length
    return bytes.subarray(at - length, at)
  }
  switch (head.kind as ShardReply['kind']) {
    case 'listed': {
      const entities = (head.entities as [string, number][]).map(([path, length]) => ({ path, image: image(length) }))
      return { ...head, entities }
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
    case 'registrations':
      return { ...head, registrations: (head.registrations as readonly string[]).map(decodeRegistration) }
    case 'progress':
      return { kind: 'progress', parts: (head.parts as readonly Partial<SubscriptionProgress>[]).map(completed) }
    default:
      return head
  }
}

/** JSON leaves out what is undefined. */
const completed = (progress: Partial<SubscriptionProgress>): SubscriptionProgress => ({ ...noProgress, ...progress })
