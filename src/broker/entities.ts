// Operations on entities, their attributes and their types (docs/interface/queries.md, docs/interface/updates.md,
// docs/interface/types.md): one method each, as in NGSI.
//
// A write acts on one scope. A read has a list of paths, perhaps with wildcards, and covers all matching paths of the
// tenant. To read one attribute is to read its entity.

import type { WantedAttribute, WantedEntity } from '../domain/entities/entity.js'
import type { UpdateOptions } from '../domain/entities/update.js'
import type { Json } from '../domain/json.js'
import { accepted, refusals, refused } from '../domain/refusal.js'
import type {
  Attributes,
  AttributesRequest,
  EntityTarget,
  FoundEntity,
  ListRequest,
  Origin,
  TypeSummary,
} from '../messages/messages.js'
import type { Elsewhere, ForwardedReads } from './forwarded-reads.js'
import type { ForwardableRequest, ForwardedUpdates } from './forwarded-updates.js'
import type { Outward } from './forwarding.js'
import {
  type Listed,
  type OnResult,
  type ReadScope,
  type ReadTarget,
  type Shown,
  type ShownPage,
  shownUnder,
} from './replies.js'
import type { ShardClient } from './shard-client.js'

export interface ForwardedOperations {
  readonly reads: ForwardedReads
  readonly updates: ForwardedUpdates
}

export class Entities {
  /** `forwarded`: the operations that include providers; undefined: nothing is forwarded. */
  constructor(
    private readonly shards: ShardClient,
    private readonly forwarded?: ForwardedOperations,
  ) {}

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

  /** `GET /v2/entities`: a page of the entities stored here, in order of creation. */
  list(request: Omit<ListRequest, 'kind'>, onResult: OnResult<Listed>): void {
    this.shards.list({ ...request, kind: 'list' }, onResult)
  }

  /** The same including entities of providers, unless `elsewhere` is undefined. */
  listEverywhere(
    request: Omit<ListRequest, 'kind'> & ReadScope,
    elsewhere: Elsewhere | undefined,
    onResult: OnResult<ShownPage>,
  ): void {
    const { grant } = request
    const wanted: ListRequest = { ...request, kind: 'list' }
    const take = elsewhere && this.forwarded?.reads.list(wanted, elsewhere, onResult)
    if (take || !grant) return this.shards.list(wanted, take ?? onResult)
    this.shards.list(wanted, result => {
      if (!result.ok) return onResult(result)
      const { entities, total } = result.value
      onResult(accepted({ entities: entities.map(one => shownUnder(grant, one)), total }))
    })
  }

  /** `GET /v2/entities/{id}` and all reads below it: exactly one entity that is stored here, or a refusal. */
  retrieve(target: ReadTarget, onResult: OnResult<FoundEntity>): void {
    const { tenant, paths, id, type, grant } = target
    this.shards.find({ kind: 'find', tenant, paths, id, type, grant }, result => {
      if (!result.ok) return onResult(result)
      const [only] = result.value
      if (!only) return onResult(refused(refusals.entityNotFound))
      onResult(result.value.length === 1 ? accepted(only) : refused(refusals.entityAmbiguous))
    })
  }

  /** The same including entities of providers, as in a list. */
  retrieveEverywhere(target: ReadTarget, elsewhere: Elsewhere | undefined, onResult: OnResult<Shown>): void {
    const { grant } = target
    const take = elsewhere && this.forwarded?.reads.retrieve(target, elsewhere, onResult)
    if (take || !grant) return this.retrieve(target, take ?? onResult)
    this.retrieve(target, result => onResult(result.ok ? accepted(shownUnder(grant, result.value)) : result))
  }

  /**
   * `POST`, `PATCH` and `PUT` on `/v2/entities/{id}/attrs`. Appends are never forwarded; others only with `outward`.
   */
  changeAttributes(
    kind: AttributesRequest['kind'],
    target: EntityTarget,
    attributes: Attributes,
    options: UpdateOptions,
    origin: Origin,
    onResult: OnResult<undefined>,
    outward?: () => Outward,
  ): void {
    const isAppended = kind === 'append' || kind === 'appendStrict'
    this.write({ kind, target, attributes, options, origin }, onResult, isAppended ? undefined : outward)
  }

  /** `PUT .../attrs/{name}`. Without `outward` nothing is forwarded. */
  updateAttribute(
    target: EntityTarget,
    name: string,
    attribute: WantedAttribute,
    options: UpdateOptions,
    origin: Origin,
    onResult: OnResult<undefined>,
    outward?: () => Outward,
  ): void {
    this.write({ kind: 'updateAttribute', target, name, attribute, options, origin }, onResult, outward)
  }

  /** `PUT .../attrs/{name}/value`. Without `outward` nothing is forwarded. */
  updateValue(
    target: EntityTarget,
    name: string,
    value: Json,
    forcedUpdate: boolean,
    origin: Origin,
    onResult: OnResult<undefined>,
    outward?: () => Outward,
  ): void {
    this.write({ kind: 'updateValue', target, name, value, forcedUpdate, origin }, onResult, outward)
  }

  removeAttribute(target: EntityTarget, name: string, origin: Origin, onResult: OnResult<undefined>): void {
    this.shards.write({ kind: 'deleteAttribute', target, name, origin }, onResult)
  }

  remove(target: EntityTarget, origin: Origin, onResult: OnResult<undefined>): void {
    this.shards.write({ kind: 'deleteEntity', target, origin }, onResult)
  }

  private write(
    request: ForwardableRequest,
    onResult: OnResult<undefined>,
    outward: (() => Outward) | undefined,
  ): void {
    const updates = outward && this.forwarded?.updates
    if (updates) updates.write(request, outward, onResult)
    else this.shards.write(request, onResult)
  }
}

/** The types of entities, and what the entities of a type have in common. */
export class TypeOperations {
  constructor(private readonly shards: ShardClient) {}

  /** `GET /v2/types`: all types, by name in code unit order. */
  list(target: ReadScope, onResult: OnResult<readonly TypeSummary[]>): void {
    this.shards.types({ ...target, kind: 'types', type: undefined }, result => {
      if (!result.ok) return onResult(result)
      onResult(accepted([...result.value].sort((a, b) => (a.type < b.type ? -1 : 1))))
    })
  }

  retrieve(target: ReadScope, type: string, onResult: OnResult<TypeSummary>): void {
    this.shards.types({ ...target, kind: 'types', type }, result => {
      if (!result.ok) return onResult(result)
      const [summary] = result.value
      onResult(summary ? accepted(summary) : refused(refusals.typeNotFound))
    })
  }
}
