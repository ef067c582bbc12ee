// The matches of a list so far: those that the page needs, and their total number.
//
// Only places and the values of the order are kept, not entities, and only those that can still be on the page. The
// entities are fetched when the page is known.

import type { AccessCondition } from '../../domain/access/condition.js'
import type { Json } from '../../domain/json.js'
import { compareSortValues, sortValues } from '../../domain/queries/order.js'
import { isAboutIdentity, meansContent } from '../../domain/queries/selection.js'
import { decodeEntity, encodedId, encodedType } from '../../encoded-entity.js'
import type { EntityPosition, ListRequest } from '../../messages/messages.js'
import type { StoreReader } from '../../ports.js'
import { decodeRow, entityKey } from '../layout.js'
import { comparePlaces, type EntityPlace } from './entity-place.js'

export type SortValues = readonly (Json | undefined)[]

export interface Match {
  readonly place: EntityPlace
  readonly values: SortValues
}

export interface MatchPage<P extends EntityPosition> {
  readonly places: readonly P[]
  /** The sort values of each; empty when the order is that of creation. */
  readonly values: readonly SortValues[]
  /** Matches regardless of offset and limit. */
  readonly total: number
}

const noValues: SortValues = []

/**
 * The sort values of an entity if the grant covers it and the selection means its content; undefined if not. The caller
 * has tested its identity.
 */
export function valuesIfMeant(
  { selection, order, grant }: ListRequest,
  encoded: Buffer,
  path: string,
): SortValues | undefined {
  if (grant && !grant.covers({ path, type: encodedType(encoded), id: encodedId(encoded) })) return undefined
  if (order.length === 0 && isAboutIdentity(selection)) return noValues
  const stored = decodeEntity(encoded)
  // Filters name no hidden attribute. Only its location may be one.
  const entity = grant && mayHideLocation(grant, selection) ? grant.seen(stored, path)! : stored
  return meansContent(selection, entity, path) ? sortValues(order, entity, path, selection.geo) : undefined
}

/** Whether the selection is about locations, and the grant hides attributes: then only the entity as seen decides. */
export const mayHideLocation = (grant: AccessCondition, { geo }: ListRequest['selection']): boolean =>
  geo !== undefined && !grant.showsAllAttributes()

/** Matches kept beyond the page before the surplus is dropped. */
const surplusMax = 10_000

export class Matches {
  total = 0
  private readonly kept: Match[] = []

  constructor(private readonly request: ListRequest) {}

  add(match: Match): void {
    this.total++
    const { offset, limit } = this.request
    if (limit === 0) return
    this.kept.push(match)
    if (this.kept.length > offset + limit + surplusMax) this.shorten()
  }

  page(): MatchPage<EntityPlace> {
    const { order, offset, limit } = this.request
    this.shorten()
    const page = this.kept.slice(offset, offset + limit)
    return {
      places: page.map(({ place }) => place),
      values: order.length === 0 ? [] : page.map(({ values }) => values),
      total: this.total,
    }
  }

  private shorten(): void {
    const { order, offset, limit } = this.request
    this.kept.sort((a, b) => compareSortValues(order, a.values, b.values) || comparePlaces(a.place, b.place))
    this.kept.length = Math.min(this.kept.length, offset + limit)
  }
}

/** Rows read at a time: each may have 16 MB. */
const rowsPerRead = 16

/** The encoded entities at places, read during the iteration. Entities that were deleted meanwhile are left out. */
export function* encodedEntitiesAt<P extends EntityPlace>(
  store: StoreReader,
  tenant: string,
  places: readonly P[],
): Iterable<{ readonly place: P; readonly encoded: Buffer }> {
  for (let from = 0; from < places.length; from += rowsPerRead) {
    const some = places.slice(from, from + rowsPerRead)
    const encodedEntities = readEncoded(store, tenant, some)
    for (const [index, place] of some.entries()) {
      const encoded = encodedEntities[index]
      if (encoded) yield { place, encoded }
    }
  }
}

/** The encoded entity at each place as the store has it, undefined where the entity was deleted. */
export function readEncoded(
  store: StoreReader,
  tenant: string,
  places: readonly EntityPlace[],
): (Buffer | undefined)[] {
  const rows = store.getMany(places.map(({ shard, path, id }) => entityKey(shard, tenant, path, id)))
  return places.map(({ type }, index) => {
    const row = rows[index]
    return row && encodedOfType(row, type)
  })
}

/** Smaller rows may stay in memory for one of their encoded entities. */
const sharedBytesMax = 64 * 1024

/** Shares memory with the row, unless most of a large row belongs to others. */
function encodedOfType(row: Buffer, type: string): Buffer | undefined {
  const encoded = decodeRow(row).find(encoded => encodedType(encoded) === type)
  return encoded && row.length > sharedBytesMax && row.length > 2 * encoded.length ? Buffer.from(encoded) : encoded
}
