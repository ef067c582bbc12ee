// Requests and replies as bytes on their way between processes. Each reader here gives an answer for any bytes, and
// never throws.
//
// A request that cannot be read gets that answer, and nothing has happened. A reply that cannot be read, or does not
// fit the request, is lost: the owner may have done what it was asked for. Either is reported, counted and logged.
//
// Not here: the bytes (wire.ts).

import type { ShardReply, ShardRequest } from '../messages/messages.js'
import { decodeReply, decodeRequest, encodeNotUnderstood, encodeReply } from './wire.js'

/** How a request to another node or worker has ended, before its bytes are read. */
export type AskOutcome =
  | { readonly kind: 'reply'; readonly reply: Buffer }
  /** Certain: nothing has happened and nothing will. */
  | { readonly kind: 'unavailable'; readonly reason: string }
  /** It was asked, and no answer came in time. */
  | { readonly kind: 'unknown'; readonly reason: string }

/** Told what could not be read of what a process has sent. */
type OnUnreadable = (what: string) => void

/**
 * Has `handle` answer the request of some bytes, and gives the bytes of its reply. `shards`: how many there are of
 * entities.
 */
export function answerBytes(
  { shard, request, shards }: { readonly shard: number; readonly request: Uint8Array; readonly shards: number },
  handle: (request: ShardRequest, onReply: (reply: ShardReply) => void) => void,
  onReply: (reply: Uint8Array) => void,
  onUnreadable: OnUnreadable,
): void {
  let decoded: ShardRequest
  try {
    decoded = decodeRequest(Buffer.from(request.buffer, request.byteOffset, request.byteLength))
  } catch (error) {
    const { message } = error as Error
    onUnreadable(message)
    return onReply(encodeNotUnderstood(message))
  }
  // The register is the one behind the last, and has no entities.
  if (shard < shards || (shard === shards && !('target' in decoded)))
    return handle(decoded, reply => onReply(encodeReply(reply)))
  onUnreadable(`a request about shard ${shard}, which there is not`)
  onReply(encodeNotUnderstood(`there is no shard ${shard}`))
}

/** What another process has answered to a request, whatever it has sent. */
export function replyFrom(outcome: AskOutcome, request: ShardRequest, onUnreadable: OnUnreadable): ShardReply {
  switch (outcome.kind) {
    case 'reply':
      return readReply(outcome.reply, request, onUnreadable)
    case 'unavailable':
      return { kind: 'unreachable', reason: outcome.reason }
    case 'unknown':
      return { kind: 'lost', reason: outcome.reason }
  }
}

function readReply(bytes: Buffer, request: ShardRequest, onUnreadable: OnUnreadable): ShardReply {
  try {
    const reply = decodeReply(bytes)
    if (fits(request, reply)) return reply
    onUnreadable(`a reply of kind ${reply.kind} to a request of kind ${request.kind}`)
  } catch (error) {
    onUnreadable((error as Error).message)
  }
  return { kind: 'lost', reason: 'its owner has sent an answer that cannot be read here' }
}

// [hot] For each reply of another process.
/** Whether a reply answers a request: of the kind that it asks for, and no more and no less than it asks for. */
function fits(request: ShardRequest, reply: ShardReply): boolean {
  if (reply.kind === replyKinds[request.kind]) return hasExtent(request, reply)
  return common.has(reply.kind) || fitsList(request, reply)
}

/** A page that is too large is told so; of a part of a list come the keys. */
const fitsList = (request: ShardRequest, reply: ShardReply): boolean =>
  request.kind === 'list' && (request.part === undefined ? reply.kind === 'large' : reply.kind === 'part')

/** Who counts what comes relies on it: places are fetched again until all have come. */
function hasExtent(request: ShardRequest, reply: ShardReply): boolean {
  switch (request.kind) {
    case 'list':
      return request.part === undefined
    case 'batch':
      return reply.kind === 'batch' && reply.replies.length === request.items.length
    case 'progress':
      return reply.kind === 'progress' && reply.parts.length === request.ids.length
    case 'fetch': {
      const { length } = reply.kind === 'fetched' ? reply.encodedEntities : []
      return length <= request.places.length && (length > 0 || request.places.length === 0)
    }
    default:
      return true
  }
}

/** What any request may be answered with. */
const common: ReadonlySet<ShardReply['kind']> = new Set(['refused', 'busy', 'moved', 'failed', 'unreachable', 'lost'])

/** What a request of each kind is answered with when it was carried out. */
const replyKinds: Readonly<Record<ShardRequest['kind'], ShardReply['kind']>> = {
  create: 'done',
  append: 'done',
  appendStrict: 'done',
  update: 'done',
  replace: 'done',
  deleteAttributes: 'done',
  updateAttribute: 'done',
  updateValue: 'done',
  deleteAttribute: 'done',
  deleteEntity: 'done',
  expire: 'done',
  batch: 'batch',
  find: 'found',
  list: 'listed',
  fetch: 'fetched',
  types: 'types',
  announce: 'done',
  unused: 'unused',
  createSubscription: 'done',
  changeSubscription: 'done',
  removeSubscription: 'done',
  findSubscription: 'subscriptions',
  listSubscriptions: 'subscriptions',
  createRegistration: 'done',
  changeRegistration: 'done',
  removeRegistration: 'done',
  findRegistration: 'registrations',
  listRegistrations: 'registrations',
  progress: 'progress',
  claim: 'claimed',
  news: 'done',
  handIn: 'done',
  follow: 'followed',
  deliveries: 'deliveries',
  retryDeliveries: 'retried',
  admin: 'admin',
  backup: 'backup',
  tenants: 'tenants',
}
