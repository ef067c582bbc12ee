// Lists: a page of the entities that a selection means, in order of creation or by keys, and how many there are.
//
// A list reads the store only: it waits for the commit in flight, so that it tells nothing that may yet be lost. The plan is the
// narrowest that answers: named ids are looked up one by one; when identity alone decides and no id is excluded, counts come
// from the directory and only the page is read; anything else walks the places of the paths and types that may be meant, looks into the
// entities, and keeps what fits. A walk is made of short steps between which the event loop has its turn.

import type { Json } from '../domain/json.js'
import { compareSortValues, type OrderKey, sortValues } from '../domain/order.js'
import { anyCoversPath, type ShardMap } from '../domain/scope.js'
import {
  isAboutIdentity,
  mayMeanType,
  meansAllIds,
  meansContent,
  meansIdentity,
  namedIds,
} from '../domain/selection.js'
import { decodeImage, imageCreated, imageType } from '../image.js'
import type { Found, ListRequest, ShardReply } from '../messages.js'
import type { Clock, Store } from '../ports.js'
import type { GroupCommit } from './commit.js'
import type { Directory, Paths } from './directory.js'
import { decodeRow, entityKey } from './layout.js'
import { type Lookup, pathsLookedUpMax } from './lookup.js'
import { type Place, type PlaceRange, Places } from './places.js'

type OnReply = (reply: ShardReply) => void

/** Entities looked into per step: some 0.7 ms. */
const entitiesPerStep = 64

/** An entity that fits, as far as it must be remembered until the page is cut. */
interface Match {
  readonly place: Place
  readonly values: readonly (Json | undefined)[]
}

export class Lists {
  private readonly store: Store
  private readonly commit: GroupCommit
  private readonly directory: Directory
  private readonly shardMap: ShardMap
  private readonly lookup: Lookup
  private readonly clock: Clock

  constructor(
    store: Store,
    commit: GroupCommit,
    directory: Directory,
    shardMap: ShardMap,
    lookup: Lookup,
    clock: Clock,
  ) {
    this.store = store
    this.commit = commit
    this.directory = directory
    this.shardMap = shardMap
    this.lookup = lookup
    this.clock = clock
  }

  list(request: ListRequest, onReply: OnReply): void {
    this.commit.afterFlight(failure => {
      if (failure) return onReply({ kind: 'failed', reason: failure.message })
      this.page(request).then(
        page => this.commit.afterFlight(late => onReply(late ? { kind: 'failed', reason: late.message } : page)),
        (error: Error) => onReply({ kind: 'failed', reason: error.message }),
      )
    })
  }

  private async page(request: ListRequest): Promise<ShardReply> {
    const { tenant, selection, order, offset, limit } = request
    const known = await this.directory.load(tenant)
    const ids = namedIds(selection)
    if (ids) return this.pageOfIds(request, ids, known)
    const ranges = rangesOf(request, known)
    if (!isAboutIdentity(selection) || !meansAllIds(selection) || order.length > 0) return this.walked(request, ranges)
    const total = ranges.reduce((sum, range) => sum + range.count, 0)
    const places = limit === 0 || offset >= total ? [] : await this.places(tenant, ranges, offset, limit)
    return { kind: 'listed', entities: this.fetch(tenant, places), total }
  }

  /** Few ids are looked up one by one and put in order. */
  private async pageOfIds(request: ListRequest, ids: ReadonlySet<string>, known: Paths): Promise<ShardReply> {
    const { tenant, paths, selection, order, offset, limit } = request
    const found: (Found & { readonly values: readonly (Json | undefined)[] })[] = []
    for (const id of ids) {
      const few = known.size <= pathsLookedUpMax
      const candidates = few ? [...known.keys()] : ['/', ...(await this.lookup.indexed(tenant, id))]
      const covered = candidates.filter(path => anyCoversPath(paths, path))
      const keys = covered.map(path => entityKey(this.shardMap.shardOf(tenant, path, id), tenant, path, id))
      for (const [index, row] of this.store.getMany(keys).entries())
        for (const image of row ? decodeRow(row) : []) {
          if (!meansIdentity(selection, id, imageType(image))) continue
          const path = covered[index] as string
          const values = valuesIfMeant(request, image, path)
          if (values) found.push({ path, image, values })
        }
    }
    found.sort((a, b) => compareSortValues(order, a.values, b.values) || imageCreated(a.image) - imageCreated(b.image))
    return { kind: 'listed', entities: found.slice(offset, offset + limit), total: found.length }
  }

  /** The places from `offset` on, `limit` at most. */
  private async places(tenant: string, ranges: readonly PlaceRange[], offset: number, limit: number): Promise<Place[]> {
    const places = new Places(this.store, this.clock, tenant, ranges)
    try {
      await places.skip(offset)
      return await places.next(limit)
    } finally {
      await places.close()
    }
  }

  /** Looks into every entity that may be meant. */
  private async walked(request: ListRequest, ranges: readonly PlaceRange[]): Promise<ShardReply> {
    const { tenant, selection, order, offset, limit } = request
    const places = new Places(this.store, this.clock, tenant, ranges)
    const matches: Match[] = []
    let total = 0
    try {
      for (;;) {
        const step = await places.next(entitiesPerStep)
        const meant = step.filter(({ id, type }) => meansIdentity(selection, id, type))
        for (const { place, image } of this.images(tenant, meant)) {
          const values = valuesIfMeant(request, image, place.path)
          if (!values) continue
          // In order of creation the page is full when it is full; by keys the first may come last.
          if (order.length > 0 || (total >= offset && total < offset + limit)) matches.push({ place, values })
          total++
        }
        if (step.length < entitiesPerStep) break
        await new Promise<void>(resolve => this.clock.endOfTick(resolve))
      }
    } finally {
      await places.close()
    }
    const page = order.length > 0 ? cut(matches, order, offset, limit) : matches
    const pageOf = page.map(({ place }) => place)
    return { kind: 'listed', entities: this.fetch(tenant, pageOf), total }
  }

  private fetch(tenant: string, places: readonly Place[]): Found[] {
    return this.images(tenant, places).map(({ place, image }) => ({ path: place.path, image }))
  }

  /** The images of places; one that has gone meanwhile is left out. */
  private images(tenant: string, places: readonly Place[]): { readonly place: Place; readonly image: Buffer }[] {
    const rows = this.store.getMany(places.map(({ shard, path, id }) => entityKey(shard, tenant, path, id)))
    return places.flatMap((place, index) => {
      const row = rows[index]
      const image = row && decodeRow(row).find(candidate => imageType(candidate) === place.type)
      return image ? [{ place, image }] : []
    })
  }
}

/** What an entity is ordered by, if its content is meant; undefined if it is not. Identity has been looked at. */
function valuesIfMeant(
  { selection, order }: ListRequest,
  image: Buffer,
  path: string,
): readonly (Json | undefined)[] | undefined {
  if (order.length === 0 && isAboutIdentity(selection)) return noValues
  const entity = decodeImage(image)
  return meansContent(selection, entity, path) ? sortValues(order, entity, path, selection.geo) : undefined
}

const noValues: readonly (Json | undefined)[] = []

/** The page by keys; ties in order of creation, in which the matches came. */
function cut(matches: Match[], order: readonly OrderKey[], offset: number, limit: number): Match[] {
  return matches.sort((a, b) => compareSortValues(order, a.values, b.values)).slice(offset, offset + limit)
}

/** The parts of the type index that a list is about, each with its number of entities. */
function rangesOf({ paths, selection }: ListRequest, known: Paths): (PlaceRange & { readonly count: number })[] {
  const ranges: (PlaceRange & { readonly count: number })[] = []
  for (const [path, counts] of known) {
    if (!anyCoversPath(paths, path)) continue
    for (const [type, count] of counts) if (mayMeanType(selection, type)) ranges.push({ path, type, count })
  }
  return ranges
}
