// Entities for tests, stores that hold them as a commit leaves them, and lists as the plainest program would make them.

import type { Attribute, Entity } from '../../src/domain/entities/entity.js'
import { noMetadata } from '../../src/domain/entities/entity.js'
import type { Json } from '../../src/domain/json.js'
import { compareSortValues, sortValues } from '../../src/domain/queries/order.js'
import { meansContent, meansIdentity } from '../../src/domain/queries/selection.js'
import { anyCoversPath, type ShardMap } from '../../src/domain/scope.js'
import { stampMs } from '../../src/domain/stamp.js'
import { encodedId, encodedType, encodeEntity } from '../../src/encoded-entity.js'
import type { ListRequest, ShardReply } from '../../src/messages/messages.js'
import type { Store } from '../../src/ports.js'
import { Counts } from '../../src/shard/commit/counts.js'
import { attributeCounts, encodeRow, entityCounts, entityKey } from '../../src/shard/layout.js'
import { apply } from '../../src/shard/turn/apply.js'

export const attribute = (value: Json, type = 'X', metadata = noMetadata): Attribute => ({
  type,
  value,
  metadata,
  createdMs: 0,
  modifiedMs: 0,
})

/** An entity whose attributes have no metadata. */
export const entityOf = (id: string, type: string, created: number, values: Readonly<Record<string, Json>>): Entity =>
  withAttributes(
    { id, type, created },
    Object.entries(values).map(([name, value]) => [name, attribute(value)]),
  )

export const withAttributes = (
  identity: Pick<Entity, 'id' | 'type' | 'created'>,
  attributes: Iterable<readonly [string, Attribute]>,
): Entity => ({ ...identity, attributes: new Map(attributes), modifiedMs: stampMs(identity.created) })

/** An entity and its service path. */
export interface Placed {
  readonly path: string
  readonly entity: Entity
}

/** Puts entities into a store that has none of them. */
export function fill(store: Store, shardMap: ShardMap, tenant: string, all: readonly Placed[]): Promise<void> {
  const directory = new Counts(store, entityCounts)
  const attributes = new Counts(store, attributeCounts)
  const batch = store.batch()
  const rows = new Map<string, Buffer[]>()
  for (const { path, entity } of all) {
    const { id, type } = entity
    const shard = shardMap.shardOf(tenant, path, id)
    const encoded = encodeEntity(entity, '')
    const encodedEntities = [...(rows.get(`${path} ${id}`) ?? []), encoded]
    rows.set(`${path} ${id}`, encodedEntities)
    const record = { shard, tenant, path, id, type, before: undefined, attributes: [], encoded }
    apply(record, entityKey(shard, tenant, path, id), encodeRow(encodedEntities), batch, batch, directory, attributes)
  }
  directory.flush(batch, () => true)
  return new Promise((resolve, reject) => store.commit(batch, error => (error ? reject(error) : resolve())))
}

/** A page: the total count, then each entity on it as `path id type`. */
export type Page = readonly [total: number, ...names: string[]]

/** The page in the reply to a list; any other reply is returned as it is. */
export function pageOf(reply: ShardReply | undefined): Page | ShardReply | undefined {
  if (reply?.kind !== 'listed') return reply
  return [
    reply.total,
    ...reply.entities.map(({ path, encoded }) => `${path} ${encodedId(encoded)} ${encodedType(encoded)}`),
  ]
}

/** The expected page of a list: looks at every entity, sorts and cuts. */
export function plainPage({ paths, selection, order, offset, limit }: ListRequest, all: readonly Placed[]): Page {
  const meant = all
    .filter(
      ({ path, entity }) =>
        anyCoversPath(paths, path) &&
        meansIdentity(selection, entity.id, entity.type) &&
        meansContent(selection, entity, path),
    )
    .map(({ path, entity }) => ({ path, entity, values: sortValues(order, entity, path, selection.geo) }))
  meant.sort((a, b) => compareSortValues(order, a.values, b.values) || a.entity.created - b.entity.created)
  const names = meant.slice(offset, offset + limit).map(({ path, entity: { id, type } }) => `${path} ${id} ${type}`)
  return [meant.length, ...names]
}
