// A shard: the unit of placement. Its turns happen here.
//
// A turn loads an actor, lets the domain decide, and stages the change. It runs to its end before the next one starts,
// so between load and append no other turn can change the entity. Replies leave when the changes they depend on are
// durable: a client that has seen 201 will find the entity after a crash. The mailbox is bounded: when too many replies
// wait, a request is refused as `busy` before anything has happened.
//
// Not here: rules (domain/entities/update.ts), batching (commit/commit.ts), reads across shards (read/lookup.ts), the
// choice of the shard (shards.ts).

import { isWithinLimits, type WriteLimits } from '../../domain/access/writing.js'
import { type Entity, expiryAttribute } from '../../domain/entities/entity.js'
import {
  appendAttributes,
  appendStrict,
  type Change,
  createEntity,
  deleteAttribute,
  deleteAttributes,
  deleteEntity,
  entityLabel,
  expiresMs,
  replaceAttributes,
  type UpdateOutcome,
  updateAttribute,
  updateAttributes,
  updateValue,
} from '../../domain/entities/update.js'
import { entityRowBytesMax } from '../../domain/limits.js'
import { type Refusal, refusals } from '../../domain/refusal.js'
import { stampMs } from '../../domain/stamp.js'
import { encodeEntity } from '../../encoded-entity.js'
import { mayCreate, type WriteReply, type WriteRequest } from '../../messages/messages.js'
import type { DiskRoom, Stamps } from '../../ports.js'
import type { RecordLog } from '../commit/commit.js'
import { hasLost, replyOfFailure } from '../commit/deposed.js'
import type { Notifications } from '../notify/notifications.js'
import type { Done } from '../notify/triggers.js'
import type { ChangeStreams } from '../streams/change-streams.js'
import type { EntityQuotas } from '../tenants/entity-quotas.js'
import { type Actor, type Actors, Variant } from './actor.js'
import type { AttributeDifference } from './apply.js'
import { refusalForRoom } from './room.js'

/** The outcome of a turn. */
export interface Turn {
  readonly actor: Actor | undefined
  readonly reply: WriteReply
}

const doneReply: WriteReply = { kind: 'done' }
const full: Turn = { actor: undefined, reply: { kind: 'busy' } }

/** The parts that all shards of an owner share. */
export interface TurnParts {
  readonly actors: Actors
  readonly log: RecordLog
  readonly stamps: Stamps
  readonly notifications: Notifications
  readonly streams: ChangeStreams
  /** Requests of one shard whose reply waits. */
  readonly mailboxLengthMax: number
  readonly room: DiskRoom
  /** undefined: tenants may have any number of entities. */
  readonly quotas: EntityQuotas | undefined
}

export class Shard {
  private readonly index: number
  private readonly parts: TurnParts
  /** Requests whose reply has not left yet. */
  private waiting = 0

  constructor(index: number, parts: TurnParts) {
    this.index = index
    this.parts = parts
  }

  // [hot] Once per write.
  /** Takes one request's turn, and replies when the changes that the reply depends on are durable. */
  onAsk(request: WriteRequest, onReply: (reply: WriteReply) => void): void {
    const { log } = this.parts
    const { actor, reply } = this.turn(request)
    if (!actor || log.isDurable(actor.stagedIn)) return onReply(reply)
    this.hold()
    log.afterCommit(actor.stagedIn, failure => {
      this.releaseHold(actor)
      onReply(failure && hasLost(failure, this.index) ? replyOfFailure(failure, this.index) : reply)
    })
  }

  /** Notes that a reply waits. */
  hold(): void {
    this.waiting++
  }

  /** Notes that a reply has left, and releases the actor that it depended on. */
  releaseHold(actor: Actor): void {
    this.waiting--
    this.parts.actors.release(actor)
  }

  /**
   * Takes one request's turn. The reply may leave when the actor's changes are durable. Without an actor nothing has
   * happened.
   */
  turn(request: WriteRequest): Turn {
    const { actors, log, stamps, notifications, streams, mailboxLengthMax, room, quotas } = this.parts
    if (this.waiting >= mailboxLengthMax || log.isFull) return full
    const { tenant, path, id } = request.target
    const actor = actors.load(this.index, tenant, path, id)
    const variant = choose(actor, request)
    if (variant && 'kind' in variant) return this.refused(actor, variant)
    // Expiry takes the least stamp. A part of a batch may be in flight with stamps of this moment, and must keep its
    // order.
    const stamp = stamps.next(request.kind === 'expire' ? stamps.last + 1 : request.stamp)
    const outcome = decide(request, variant?.entity, stamp)
    const { change } = outcome
    if (quotas && change && !change.before) {
      const refusal = quotas.refusalFor(tenant)
      if (refusal) return this.refused(actor, refusal)
    }
    if (room.isShort && change) {
      const refusal = refusalForRoom(room, isDeletion(request))
      if (refusal) return this.refused(actor, refusal)
    }
    const encodedBefore = variant?.encoded
    const refusal = change ? this.stage(actor, variant, change, request) : undefined
    if (change && !refusal) {
      if (notifications.concerns(tenant) && request.kind !== 'expire')
        this.notify(actor, doneBy(actor, change, encodedBefore, request, stamp))
      if (streams.concerns(tenant))
        streams.onChange(doneBy(actor, change, encodedBefore, request, stamp), actor.stagedIn)
    }
    const final = refusal ?? outcome.refusal
    return final ? this.refused(actor, final) : { actor, reply: doneReply }
  }

  /** Clients may ask for any id: an actor without variants must not stay in memory. */
  private refused(actor: Actor, refusal: Refusal): Turn {
    this.parts.actors.releaseEmpty(actor)
    return { actor, reply: { kind: 'refused', refusal } }
  }

  /** Adds a change to the commit that is being filled; returns the refusal if it is too large for that. */
  private stage(
    actor: Actor,
    variant: Variant | undefined,
    change: Change,
    request: WriteRequest,
  ): Refusal | undefined {
    const { after, before } = change
    if (after === before) return undefined
    const type = (after ?? before)!.type
    const next = after && new Variant(encodeAfter(after, before, variant, request), after, before !== undefined)
    const row = actor.rowWith(type, next)
    if (row && row.length > entityRowBytesMax) return refusals.entityTooLarge(row.length, entityRowBytesMax)
    const { shard, tenant, path, id } = actor.place
    const record = {
      shard,
      tenant,
      path,
      id,
      type,
      before: variant?.known,
      attributes: attributeDifferences(change),
      encoded: next?.encoded,
    }
    if (actor.variants.length === 0) this.parts.actors.begins(actor)
    actor.put(type, next)
    actor.stagedIn = this.parts.log.append(record, actor.key, row, after)
    if (!before || !after) this.parts.quotas?.uses.count(tenant, before ? -1 : 1)
    return undefined
  }

  // [hot] Once per update of a tenant with subscriptions.
  /**
   * Stages the notifications of a change, and the reply waits for them as well. An update that changes nothing may
   * trigger notifications, too.
   */
  private notify(actor: Actor, done: Done): void {
    actor.stagedIn = this.parts.notifications.fire(done, actor.stagedIn)
  }
}

/** The effect of a turn, for subscriptions and streams. */
function doneBy(
  actor: Actor,
  change: Change,
  encodedBefore: Buffer | undefined,
  { origin }: WriteRequest,
  stamp: number,
): Done {
  const { after } = change
  const encoded = after ? actor.variant(after.type)!.encoded : encodedBefore!
  return { change, place: actor.place, encoded, encodedBefore, origin, stamp }
}

/** The entity after a change, encoded; it takes most of its bytes from the encoded entity before. */
function encodeAfter(
  after: Entity,
  before: Entity | undefined,
  variant: Variant | undefined,
  { origin }: WriteRequest,
): Buffer {
  const earlier = before && variant && { entity: before, encoded: variant.encoded }
  return encodeEntity(after, origin.correlatorRoot, earlier)
}

/**
 * The attributes, by name and type, that an entity gained and lost. `dateExpires` does not count as one
 * (docs/interface/types.md#all-types).
 */
function attributeDifferences({ before, after, alterations }: Change): readonly AttributeDifference[] {
  const differences: AttributeDifference[] = []
  for (const { name, valueChanged } of alterations) {
    if (!valueChanged) continue
    const earlier = before?.attributes.get(name)?.type
    const later = after?.attributes.get(name)?.type
    if (earlier === later || name === expiryAttribute) continue
    if (earlier !== undefined) differences.push([name, earlier, -1])
    if (later !== undefined) differences.push([name, later, 1])
  }
  return differences
}

/**
 * The entity that a request means (docs/interface/updates.md#one-entity); undefined if it does not exist and the
 * request may create it.
 */
function choose(actor: Actor, request: WriteRequest): Variant | undefined | Refusal {
  const { type, limits } = request.target
  if (type === undefined && limits) return chooseWithin(actor, limits, request)
  if (type === undefined && actor.variants.length > 1) return refusals.entityAmbiguous
  const variant = type === undefined ? actor.variants[0] : actor.variant(type)
  return variant || mayCreate(request) ? variant : refusals.entityNotFound
}

/** The same for a client to which only entities within limits exist. It must neither replace nor create another one. */
function chooseWithin(actor: Actor, limits: WriteLimits, request: WriteRequest): Variant | undefined | Refusal {
  const { path, id } = actor.place
  const [variant, another] = actor.variants.filter(({ type }) => isWithinLimits(limits, path, type, id))
  if (another) return refusals.entityAmbiguous
  if (variant) return variant
  if (!mayCreate(request)) return refusals.entityNotFound
  const created = 'createAs' in request ? request.createAs : undefined
  return created !== undefined && !isWithinLimits(limits, path, created, id) ? refusals.entityNotFound : undefined
}

/** Whether a request can only make the stored data smaller. */
const isDeletion = ({ kind }: WriteRequest): boolean =>
  kind === 'deleteEntity' || kind === 'deleteAttribute' || kind === 'deleteAttributes' || kind === 'expire'

/** The branches of the protocol in one place; the rules behind each are in domain/update. */
function decide(request: WriteRequest, before: Entity | undefined, stamp: number): UpdateOutcome {
  const nowMs = stampMs(stamp)
  if (request.kind === 'create') {
    if (!before) return createEntity(request.entity, stamp)
    if (!request.upsert) return { refusal: refusals.entityExists }
    return appendAttributes(before, request.entity.attributes, request.options, nowMs)
  }
  if (!before && 'createAs' in request) {
    const { id, type = request.createAs as string } = request.target
    return createEntity({ id, type, attributes: request.attributes }, stamp)
  }
  const entity = before as Entity
  const label = entityLabel(request.target.id, request.target.type)
  switch (request.kind) {
    case 'append':
      return appendAttributes(entity, request.attributes, request.options, nowMs)
    case 'appendStrict':
      return appendStrict(entity, request.attributes, label, nowMs)
    case 'update':
      return updateAttributes(entity, request.attributes, request.options, label, nowMs)
    case 'replace':
      return replaceAttributes(entity, request.attributes, nowMs)
    case 'updateAttribute':
      return updateAttribute(entity, request.name, request.attribute, request.options, nowMs)
    case 'updateValue':
      return updateValue(entity, request.name, request.value, request, nowMs)
    case 'deleteAttribute':
      return deleteAttribute(entity, request.name, nowMs)
    case 'deleteAttributes':
      return deleteAttributes(entity, request.names, label, nowMs)
    case 'deleteEntity':
      return deleteEntity(entity)
    case 'expire': {
      const due = expiresMs(entity)
      return due !== undefined && due <= request.nowMs ? deleteEntity(entity) : {}
    }
  }
}
