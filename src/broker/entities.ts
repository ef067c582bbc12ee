// Operations on entities (entities.md §10, §11): one method each, in the words of NGSI.
//
// A write acts on one scope; a read may leave the path open and then means all paths of the tenant that its list covers.

import type { WantedEntity } from '../domain/entity.js'
import { accepted, refusals, refused } from '../domain/refusal.js'
import type { UpdateOptions } from '../domain/update.js'
import type { Attributes, AttributesRequest, Found, ListRequest, Origin, Target } from '../messages.js'
import type { Listed, OnResult } from './replies.js'
import type { ShardClient } from './shard-client.js'

/** What a read is about: paths may end in `#`. */
export interface ReadTarget {
  readonly tenant: string
  readonly paths: readonly string[]
  readonly id: string
  readonly type: string | undefined
}

export class Entities {
  private readonly shards: ShardClient

  constructor(shards: ShardClient) {
    this.shards = shards
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

  /** `GET /v2/entities`: a page in order of creation. */
  list(request: Omit<ListRequest, 'kind'>, onResult: OnResult<Listed>): void {
    this.shards.list({ ...request, kind: 'list' }, onResult)
  }

  /** `GET /v2/entities/{id}` and all reads below it: exactly one entity, or the reason why not. */
  retrieve(target: ReadTarget, onResult: OnResult<Found>): void {
    const { tenant, paths, id, type } = target
    this.shards.find({ kind: 'find', tenant, paths, id, type }, result => {
      if (!result.ok) return onResult(result)
      const [only] = result.value
      if (!only) return onResult(refused(refusals.entityNotFound))
      onResult(result.value.length === 1 ? accepted(only) : refused(refusals.entityAmbiguous))
    })
  }

  /** `POST`, `PATCH` and `PUT` on `/v2/entities/{id}/attrs`. */
  changeAttributes(
    kind: AttributesRequest['kind'],
    target: Target,
    attributes: Attributes,
    options: UpdateOptions,
    origin: Origin,
    onResult: OnResult<undefined>,
  ): void {
    this.shards.write({ kind, target, attributes, options, origin }, onResult)
  }

  /** `DELETE /v2/entities/{id}`. */
  remove(target: Target, origin: Origin, onResult: OnResult<undefined>): void {
    this.shards.write({ kind: 'deleteEntity', target, origin }, onResult)
  }
}
