// Operations on entities (entities.md §10, §11): one method each, in the words of NGSI.
//
// A write acts on one scope; a read may leave the path open and then means all paths of the tenant that its list covers.

import type { WantedEntity } from '../domain/entities/entity.js'
import type { UpdateOptions } from '../domain/entities/update.js'
import { accepted, refusals, refused } from '../domain/refusal.js'
import type { Attributes, AttributesRequest, Found, ListRequest, Origin, Target } from '../messages/messages.js'
import type { Elsewhere, ForwardedReads } from './forwarded-reads.js'
import type { ForwardedUpdates } from './forwarded-updates.js'
import type { Outward } from './forwarding.js'
import type { Listed, OnResult, ReadTarget, Shown, ShownPage } from './replies.js'
import type { ShardClient } from './shard-client.js'

/** How operations reach what is elsewhere. */
export interface Forwarded {
  readonly reads: ForwardedReads
  readonly updates: ForwardedUpdates
}

export class Entities {
  private readonly shards: ShardClient
  private readonly forwarded: Forwarded | undefined

  /** `forwarded`: with what providers have; undefined: nothing is forwarded. */
  constructor(shards: ShardClient, forwarded?: Forwarded) {
    this.shards = shards
    this.forwarded = forwarded
  }

  /** `POST /v2/entities`. With `upsert` an existing entity gets the attributes instead of a refusal. */
  create(
    scope: { readonly tenant: string; readonly path: string },
    entity: WantedEntity,
    upsert: boolean,
    options: UpdateOptions,
    origin: Origin,
    onResult: OnResult<undefined>,
  ): void {
    const target = { tenant: scope.tenant, path: scope.path, id: entity.id, type: entity.type }
    this.shards.write({ kind: 'create', target, entity, upsert, options, origin }, onResult)
  }

  /** `GET /v2/entities`: a page in order of creation, of what is here. */
  list(request: Omit<ListRequest, 'kind'>, onResult: OnResult<Listed>): void {
    this.shards.list({ ...request, kind: 'list' }, onResult)
  }

  /** The same with what providers have, unless `elsewhere` is undefined. */
  listEverywhere(
    request: Omit<ListRequest, 'kind'>,
    elsewhere: Elsewhere | undefined,
    onResult: OnResult<ShownPage>,
  ): void {
    const wanted: ListRequest = { ...request, kind: 'list' }
    const take = elsewhere && this.forwarded?.reads.list(wanted, elsewhere, onResult)
    this.shards.list(wanted, take ?? onResult)
  }

  /** `GET /v2/entities/{id}` and all reads below it: exactly one entity that is here, or the reason why not. */
  retrieve(target: ReadTarget, onResult: OnResult<Found>): void {
    const { tenant, paths, id, type } = target
    this.shards.find({ kind: 'find', tenant, paths, id, type }, result => {
      if (!result.ok) return onResult(result)
      const [only] = result.value
      if (!only) return onResult(refused(refusals.entityNotFound))
      onResult(result.value.length === 1 ? accepted(only) : refused(refusals.entityAmbiguous))
    })
  }

  /** The same with what providers have, unless `elsewhere` is undefined. */
  retrieveEverywhere(target: ReadTarget, elsewhere: Elsewhere | undefined, onResult: OnResult<Shown>): void {
    const take = elsewhere && this.forwarded?.reads.retrieve(target, elsewhere, onResult)
    this.retrieve(target, take ?? onResult)
  }

  /** `POST`, `PATCH` and `PUT` on `/v2/entities/{id}/attrs`. Without `outward` nothing is forwarded; what appends never is. */
  changeAttributes(
    kind: AttributesRequest['kind'],
    target: Target,
    attributes: Attributes,
    options: UpdateOptions,
    origin: Origin,
    onResult: OnResult<undefined>,
    outward?: () => Outward,
  ): void {
    const request = { kind, target, attributes, options, origin }
    const updates = kind === 'append' || kind === 'appendStrict' ? undefined : this.forwarded?.updates
    if (updates && outward) updates.write(request, outward, onResult)
    else this.shards.write(request, onResult)
  }

  /** `DELETE /v2/entities/{id}`. */
  remove(target: Target, origin: Origin, onResult: OnResult<undefined>): void {
    this.shards.write({ kind: 'deleteEntity', target, origin }, onResult)
  }
}
