// Requests and replies as bytes on their way between processes. Each reader here returns an answer for any bytes, and
// never throws.
//
// A request that cannot be read gets a refusal, and nothing has happened. A reply that cannot be read, or does not fit
// the request, counts as `lost`: the owner may have executed the request. Both cases are reported, counted and logged.
//
// Not here: the bytes (wire.ts).

import type { ShardReply, ShardRequest } from '../messages/messages.js'
import { decodeReply, decodeRequest, encodeNotUnderstood, encodeReply } from './wire.js'

/** How a request to another node or worker has ended, before its reply is decoded. */
export type AskOutcome =
  | { readonly kind: 'reply'; readonly reply: Buffer }
  /** Certain: nothing has happened and nothing will. */
  | { readonly kind: 'unavailable'; readonly reason: string }
  /** The request was sent, and no answer came in time. */
  | { readonly kind: 'unknown'; readonly reason: string }

/** Receives a description of unreadable bytes of another process. */
type OnUnreadable = (what: string) => void

/**
 * Decodes a request, passes it to `handle`, and returns the bytes of the reply through `onReply`. `shards`: the number
 * of entity shards.
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
  // The register is the shard after the last, and has no entities.
  if (shard < shards || (shard === shards && !('target' in decoded)))
    return handle(decoded, reply => onReply(encodeReply(reply)))
  onUnreadable(`a request about shard ${shard}, which there is not`)
  onReply(encodeNotUnderstood(`there is no shard ${shard}`))
}

/** The reply of another process to a request, from any bytes. */
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
/** Whether a reply answers a request: it has the requested kind, and exactly the requested number of parts. */
function fits(request: ShardRequest, reply: ShardReply): boolean {
  if (reply.kind === replyKinds[request.kind]) return hasExtent(request, reply)
  return common.has(reply.kind) || fitsList(request, reply)
}

/** A page that is too large is answered with `large`; a part of a list is answered with `part`. */
const fitsList = (request: ShardRequest, reply: ShardReply): boolean =>
  request.kind === 'list' && (request.part === undefined ? reply.kind === 'large' : reply.kind === 'part')

/** Code that counts the replies relies on it: a fetch is repeated until all positions have come. */
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

/** The replies that any request may get. */
const common: ReadonlySet<ShardReply['kind']> = new Set(['refused', 'busy', 'moved', 'failed', 'unreachable', 'lost'])

/** The reply to a request of each kind, when it was executed. */
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
  stream: 'stream',
}
