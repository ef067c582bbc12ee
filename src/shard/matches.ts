// What a list has found so far: the entities that fit, as far as the page needs them, and how many there are.
//
// Only places and the values of the order are kept, not entities; those of the page are fetched when the page is known. What cannot be on
// the page any more is let go.

import type { Json } from '../domain/json.js'
import { compareSortValues, sortValues } from '../domain/order.js'
import { isAboutIdentity, meansContent } from '../domain/selection.js'
import { decodeImage, imageType } from '../image.js'
import type { Found, ListRequest } from '../messages.js'
import type { StoreReader } from '../ports.js'
import { decodeRow, entityKey } from './layout.js'
import type { Place } from './places.js'

export type SortValues = readonly (Json | undefined)[]

/** An entity that fits. */
export interface Match {
  readonly place: Place
  readonly values: SortValues
}

const noValues: SortValues = []

/** What an entity is ordered by, if its content is meant; undefined if it is not. Its identity has been looked at. */
export function valuesIfMeant({ selection, order }: ListRequest, image: Buffer, path: string): SortValues | undefined {
  if (order.length === 0 && isAboutIdentity(selection)) return noValues
  const entity = decodeImage(image)
  return meansContent(selection, entity, path) ? sortValues(order, entity, path, selection.geo) : undefined
}

/** Matches kept beyond the page before the surplus is let go. */
const surplusMax = 10_000

export class Matches {
  total = 0
  private readonly request: ListRequest
  private readonly kept: Match[] = []

  constructor(request: ListRequest) {
    this.request = request
  }

  add(match: Match): void {
    this.total++
    const { offset, limit } = this.request
    if (limit === 0) return
    this.kept.push(match)
    if (this.kept.length > offset + limit + surplusMax) this.shorten()
  }

  /** The places of the page, in order. */
  page(): readonly Place[] {
    const { offset, limit } = this.request
    this.shorten()
    return this.kept.slice(offset, offset + limit).map(({ place }) => place)
  }

  private shorten(): void {
    const { order, offset, limit } = this.request
    this.kept.sort((a, b) => compareSortValues(order, a.values, b.values) || comparePlaces(a.place, b.place))
    this.kept.length = Math.min(this.kept.length, offset + limit)
  }
}

/** The order of creation. */
const comparePlaces = (a: Place, b: Place): number => a.created - b.created || a.shard - b.shard

/** The entities at places, as the store has them; one that has gone meanwhile is left out. */
export const fetchFound = (store: StoreReader, tenant: string, places: readonly Place[]): Found[] =>
  imagesAt(store, tenant, places).map(({ place, image }) => ({ path: place.path, image }))

/** The images of places; one that has gone meanwhile is left out. */
export function imagesAt<P extends Place>(
  store: StoreReader,
  tenant: string,
  places: readonly P[],
): { readonly place: P; readonly image: Buffer }[] {
  const rows = store.getMany(places.map(({ shard, path, id }) => entityKey(shard, tenant, path, id)))
  return places.flatMap((place, index) => {
    const row = rows[index]
    const image = row && imageOfType(row, place.type)
    return image ? [{ place, image }] : []
  })
}

const imageOfType = (row: Buffer, type: string): Buffer | undefined =>
  decodeRow(row).find(image => imageType(image) === type)
