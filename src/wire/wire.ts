// The bytes of the requests to shards and of their replies (messages/messages.ts).
//
// Both unions go through bytes and back unchanged; inside one process nothing is encoded. The most frequent messages
// are packed (packed.ts). All others are JSON. A request is its form and JSON. A request with a condition of access
// control has a form of its own: a build that does not know it does not understand the request, and so does not answer
// with more than may be seen, or change more than may be changed. A reply is its form, the length of the
// JSON, the JSON, and encoded entities. Other bytes fail with `Unreadable`.
//
// Not here: the handling of bytes that cannot be read (exchange.ts).

import { AccessCondition, type GrantClause } from '../domain/access/condition.js'
import { isDateType, type Metadata, type WantedAttribute } from '../domain/entities/entity.js'
import { operatorOf } from '../domain/entities/operators.js'
import type { Json } from '../domain/json.js'
import { encodeRegistration } from '../domain/providers/registration.js'
import { compileSelection, type SelectionSource } from '../domain/queries/selection.js'
import { refusalFromWire, refusalText, refusalToWire } from '../domain/refusal.js'
import type { FilterSource } from '../domain/streams/change-filter.js'
import { noProgress, type SubscriptionProgress } from '../domain/subscriptions/subscription.js'
import { encodeSubscription } from '../domain/subscriptions/subscription-json.js'
import { Unreadable } from '../domain/unreadable.js'
import { isEncodedEntity } from '../encoded-entity.js'
import type {
  Attributes,
  GrantedRead,
  HandedPart,
  Origin,
  SentChange,
  ShardReply,
  ShardRequest,
  StreamRequest,
  WriteReply,
  WriteRequest,
} from '../messages/messages.js'
import {
  forms,
  packDone,
  packFind,
  packFound,
  packPart,
  packWrite,
  unpackFind,
  unpackFound,
  unpackPart,
  unpackWrite,
} from './packed.js'
import { areAttributes, isGrantedRequest, isReply, isRequest, readRegistration, readSubscription } from './shapes.js'

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

/** Encodes a request. */
export function encodeRequest(request: ShardRequest): Buffer {
  switch (request.kind) {
    case 'find':
      return (request.grant ? undefined : packFind(request)) ?? encodeJson(request)
    case 'append':
    case 'appendStrict':
    case 'update':
    case 'replace':
      return request.target.limits
        ? encodeJson(request)
        : packWrite(request, JSON.stringify(allToWire(request.attributes)))
    default:
      return encodeJson(request)
  }
}

/** Encodes as JSON, with maps as lists of pairs. */
function encodeJson(request: ShardRequest): Buffer {
  const json = JSON.stringify(requestToWire(request))
  const bytes = Buffer.allocUnsafe(1 + Buffer.byteLength(json))
  bytes[0] = isGranted(request) ? forms.granted : forms.request
  bytes.write(json, 1)
  return bytes
}

/** Whether conditions of access control are a part of the request. */
function isGranted(request: ShardRequest): boolean {
  if ('grant' in request) return request.grant !== undefined
  if ('reader' in request) return request.reader !== undefined
  if (request.kind === 'stream') return filtersOf(request).some(({ grant }) => grant !== undefined)
  if ('target' in request) return request.target.limits !== undefined
  return request.kind === 'batch' && request.items.some(({ target }) => target.limits !== undefined)
}

/** The filters that a request about streams has. */
function filtersOf({ step }: StreamRequest): readonly FilterSource[] {
  return step.what === 'poll' ? step.add.map(({ source }) => source) : [step.source]
}

/** The condition in plain data; undefined: there is none. */
const grantToWire = ({ grant }: GrantedRead): readonly GrantClause[] | undefined => grant?.clauses

function requestToWire(request: ShardRequest): unknown {
  const wire = membersToWire(request)
  if (!('target' in request) || !request.target.limits) return wire
  const limits = request.target.limits.map(({ clauses }) => clauses)
  return { ...(wire as object), target: { ...request.target, limits } }
}

function membersToWire(request: ShardRequest): unknown {
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
      return { ...request, selection: request.selection.source, grant: grantToWire(request) }
    case 'find':
    case 'types':
      return { ...request, grant: grantToWire(request) }
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

/**
 * Decodes the bytes that `encodeRequest` wrote, perhaps in another process. Fails with `Unreadable` for other bytes.
 */
export const decodeRequest = (bytes: Buffer): ShardRequest => readable('a request', () => requestOf(bytes))

function requestOf(bytes: Buffer): ShardRequest {
  switch (bytes[0]) {
    case forms.find:
      return unpackFind(bytes)
    case forms.write:
      return unpackWrite(bytes, attributesOf)
    case forms.request:
    case forms.granted: {
      const json: unknown = JSON.parse(bytes.toString('utf8', 1))
      const isKnown = bytes[0] === forms.granted ? isGrantedRequest(json) : isRequest(json)
      if (!isKnown) throw new Unreadable(`kind ${kindOf(json)}, with these members, is not known`)
      return requestFromWire(json as WireRequest)
    }
    default:
      throw new Unreadable(`form ${bytes[0]} is not known`)
  }
}

function attributesOf(json: Json): Attributes {
  if (!areAttributes(json)) throw new Unreadable('its attributes are not valid')
  return allFromWire(json as unknown as WireAttributes)
}

/** For the log: a short text, from any bytes. */
const kindOf = (json: unknown): string =>
  typeof json === 'object' && json !== null && 'kind' in json ? String(json.kind).slice(0, 30) : '(none)'

/** Returns the result of `read`. Any error in it means that the bytes are unreadable. */
function readable<T>(what: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new Unreadable(`${what} that cannot be read: ${(error as Error).message}`, { cause: error })
  }
}

/** The members of requests that have another form in JSON, each in the requests that have it. */
interface WireRequest {
  readonly kind: ShardRequest['kind']
  readonly entity: { readonly attributes: WireAttributes }
  readonly attributes: WireAttributes
  readonly attribute: WireAttribute
  readonly items: readonly WireRequest[]
  readonly origin: Origin
  readonly selection: SelectionSource
  /** Of a read of the form `granted`. */
  readonly grant?: readonly GrantClause[]
  /** Of a write; `limits` in the form `granted`. */
  readonly target?: { readonly limits?: readonly (readonly GrantClause[])[] }
  readonly subscription: string
  readonly registration: string
  /** Of `follow`, as base64. */
  readonly rows: string
  readonly next?: string
  readonly parts: readonly (Omit<HandedPart, 'progress'> & { readonly progress: Partial<SubscriptionProgress> })[]
}

const requestFromWire = (wire: WireRequest): ShardRequest =>
  Object.assign(wire, fromJson(wire), limitsFromWire(wire)) as unknown as ShardRequest

function limitsFromWire({ target }: WireRequest): object {
  const limits = target?.limits?.map(clauses => new AccessCondition(clauses))
  return limits ? { target: { ...target, limits } } : {}
}

const grantFromWire = ({ grant }: WireRequest): GrantedRead => (grant ? { grant: new AccessCondition(grant) } : {})

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
      if (!selection.ok) throw new Unreadable(refusalText(selection.refusal))
      return { selection: selection.value, ...grantFromWire(wire) }
    }
    case 'find':
    case 'types':
      return grantFromWire(wire)
    case 'createSubscription':
      return { subscription: readSubscription(wire.subscription) }
    case 'createRegistration':
      return { registration: readRegistration(wire.registration) }
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

/**
 * Encodes a reply: packed, or u8 form, u32 length of a JSON head, the head, then encoded entities one after the other.
 */
export function encodeReply(reply: ShardReply): Buffer {
  switch (reply.kind) {
    case 'done':
      return packDone()
    case 'found':
      return packFound(reply.entities)
    case 'listed': {
      const entities = reply.entities.map(({ path, encoded }) => [path, encoded.length])
      return frame(
        { ...reply, entities },
        reply.entities.map(({ encoded }) => encoded),
      )
    }
    case 'part':
      return packPart(reply)
    case 'fetched': {
      const lengths = reply.encodedEntities.map(encoded => encoded?.length ?? null)
      return frame(
        { kind: reply.kind, lengths },
        reply.encodedEntities.filter(encoded => encoded !== undefined),
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
    case 'refused':
      return frame(refusedToWire(reply), [])
    case 'batch':
      return frame({ ...reply, replies: reply.replies.map(refusedToWire) }, [])
    case 'stream': {
      const { content } = reply
      if (content.what !== 'changes' && content.what !== 'replayed') return contentFrame(reply)
      const changes = content.changes.map(({ encoded, ...change }) => ({ ...change, bytes: encoded.length }))
      const tail = content.changes.map(({ encoded }) => encoded)
      return contentFrame({ kind: reply.kind, content: { ...content, changes } }, tail)
    }
    case 'backup': {
      const { content } = reply
      if (content.what !== 'page') return contentFrame(reply)
      const { bytes, ...head } = content
      return contentFrame({ kind: reply.kind, content: head }, [bytes])
    }
    case 'admin':
    case 'tenants':
      return contentFrame(reply)
    default:
      return frame(reply, [])
  }
}

const refusedToWire = (reply: WriteReply): unknown =>
  reply.kind === 'refused' ? { ...reply, refusal: refusalToWire(reply.refusal) } : reply

const refusedFromWire = (reply: WriteReply): WriteReply =>
  reply.kind === 'refused' ? { kind: 'refused', refusal: refusalFromWire(reply.refusal) } : reply

/** The content of a reply has the name `told` on the wire. */
const contentFrame = ({ kind, content }: { kind: string; content: unknown }, tail: readonly Buffer[] = []): Buffer =>
  frame({ kind, told: content }, tail)

function frame(head: unknown, tail: readonly Buffer[]): Buffer {
  const json = Buffer.from(JSON.stringify(head))
  const begin = Buffer.allocUnsafe(headBytes)
  begin[0] = forms.reply
  begin.writeUInt32BE(json.length, 1)
  return Buffer.concat([begin, json, ...tail])
}

const headBytes = 5

/** The reply to bytes that are not a request. Its layout stays the same in every release. */
export const encodeNotUnderstood = (reason: string): Buffer =>
  Buffer.concat([Buffer.of(forms.notUnderstood), Buffer.from(reason.slice(0, reasonLengthMax))])

const reasonLengthMax = 500

/**
 * Decodes the bytes that `encodeReply` wrote; encoded entities share their memory. Fails with `Unreadable` for other
 * bytes. A node that has not understood the request has done nothing, and counts as a node that was not asked.
 */
export const decodeReply = (bytes: Buffer): ShardReply => readable('a reply', () => replyOf(bytes))

function replyOf(bytes: Buffer): ShardReply {
  switch (bytes[0]) {
    case forms.found:
      return unpackFound(bytes)
    case forms.done:
      return { kind: 'done' }
    case forms.part:
      return unpackPart(bytes)
    case forms.reply:
      return jsonReply(bytes)
    case forms.notUnderstood:
      return {
        kind: 'unreachable',
        reason: `its owner runs another release, ${bytes.toString('utf8', 1, reasonBytesMax)}`,
      }
    default:
      throw new Unreadable(`form ${bytes[0]} is not known`)
  }
}

const reasonBytesMax = 4 * reasonLengthMax

function jsonReply(bytes: Buffer): ShardReply {
  let at = headBytes + bytes.readUInt32BE(1)
  if (at > bytes.length) throw new Unreadable('it is cut off')
  const head = JSON.parse(bytes.toString('utf8', headBytes, at))
  if (!isReply(head)) throw new Unreadable(`kind ${kindOf(head)}, with these members, is not known`)
  const encoded = (length: number): Buffer => {
    at += length
    const found = bytes.subarray(at - length, at)
    if (!isEncodedEntity(found)) throw new Unreadable('an entity is of another version, or damaged')
    return found
  }
  switch (head.kind as ShardReply['kind']) {
    case 'listed': {
      const entities = (head.entities as [string, number][]).map(([path, length]) => ({
        path,
        encoded: encoded(length),
      }))
      return { ...head, entities }
    }
    case 'fetched': {
      const lengths = head.lengths as (number | null)[]
      return {
        kind: 'fetched',
        encodedEntities: lengths.map(length => (length === null ? undefined : encoded(length))),
      }
    }
    case 'subscriptions': {
      const known = head.subscriptions as readonly (readonly [string, Partial<SubscriptionProgress>])[]
      const subscriptions = known.map(([subscription, progress]) => ({
        subscription: readSubscription(subscription),
        progress: completed(progress),
      }))
      return { ...head, subscriptions }
    }
    case 'registrations':
      return { ...head, registrations: (head.registrations as readonly string[]).map(readRegistration) }
    case 'progress':
      return { kind: 'progress', parts: (head.parts as readonly Partial<SubscriptionProgress>[]).map(completed) }
    case 'refused':
      return refusedFromWire(head)
    case 'batch':
      return { ...head, replies: (head.replies as readonly WriteReply[]).map(refusedFromWire) }
    case 'stream': {
      const { told: content } = head
      if (content.what !== 'changes' && content.what !== 'replayed') return { kind: 'stream', content }
      const sent = content.changes as readonly ({ readonly bytes: number } & Omit<SentChange, 'encoded'>)[]
      return {
        kind: 'stream',
        content: { ...content, changes: sent.map(({ bytes, ...one }) => ({ ...one, encoded: encoded(bytes) })) },
      }
    }
    case 'backup': {
      const { told: content } = head
      return { kind: 'backup', content: content.what === 'page' ? { ...content, bytes: bytes.subarray(at) } : content }
    }
    case 'admin':
    case 'tenants':
      return { kind: head.kind, content: head.told }
    default:
      return head
  }
}

/** JSON leaves out undefined members. */
const completed = (progress: Partial<SubscriptionProgress>): SubscriptionProgress => ({ ...noProgress, ...progress })
