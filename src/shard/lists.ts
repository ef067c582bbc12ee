// Lists: a page of the entities that a selection means, in order of creation or by keys, and how many there are.
//
// A list tells nothing that may yet be lost: it waits for the commit in flight. The plan is the narrowest that answers:
//
//   ids are named                          each is looked up
//   identity decides, every id is meant    counts come from the directory, the page from the type index
//   few entities may be meant              each is looked into
//   views can tell                         they do (views/search), built first if need be
//   else                                   a scan looks into everything, elsewhere if it can (scans)

import { fewPathsMax } from '../domain/limits.js'
import { compareSortValues } from '../domain/order.js'
import { type Refusal, refusals } from '../domain/refusal.js'
import { anyCoversPath, type ShardMap } from '../domain/scope.js'
import { isAboutIdentity, mayMeanType, meansAllIds, meansIdentity, namedIds } from '../domain/selection.js'
import { imageCreated, imageType } from '../image.js'
import type { FetchRequest, ListRequest, ShardReply } from '../messages.js'
import type { Clock, Store } from '../ports.js'
import type { Actors } from './actor.js'
import type { GroupCommit } from './commit.js'
import type { PathCounts, Paths } from './directory.js'
import { decodeRow, entityKey } from './layout.js'
import type { Lookup } from './lookup.js'
import { imagesAt, type Match, Matches, type Page, readImages, valuesIfMeant } from './matches.js'
import { KeyColumns, keysMax, keysReply, pageReply } from './pages.js'
import { type CountedRange, comparePlaces, type HeadSource, locate, type Place, Places } from './places.js'
import type { Owned } from './replicated/ownership.js'
import type { Scanner } from './scans.js'
import { layoutFor } from './views/needs.js'
import { search } from './views/search.js'
import type { Layout } from './views/table.js'
import type { Views } from './views/views.js'

type OnReply = (reply: ShardReply) => void

/** Entities looked into per step: some 0.7 ms. */
const entitiesPerStep = 64
/** How long a step may take all the same: patterns made to hurt take some ms for each entity. */
const stepMs = 10
/** Up to so many entities are looked into at once rather than by views: some 3 ms. */
const walkedMax = 256
/** Pages up to this size are read through the actors, which keeps their entities in memory. */
const pageOfActorsMax = 100
/** Lists that wait for a scan or a view; beyond, a list is turned away. */
const scansMax = 1000

export interface QueryLimits {
  /** After which a list is given up. */
  readonly scanDeadlineMs: number
  /** Entities that one list may look into. */
  readonly scanRowsMax: number
}

/** What lists are made from. */
export interface ListSources {
  readonly store: Store
  readonly commit: GroupCommit
  readonly directory: PathCounts
  readonly shardMap: ShardMap
  readonly lookup: Lookup
  readonly actors: Actors
  readonly heads: HeadSource
  readonly views: Views
  readonly scanner: Scanner
  readonly clock: Clock
  /** Whose entities are listed. */
  readonly owned?: Owned
}

export class Lists {
  private readonly from: ListSources
  private readonly limits: QueryLimits
  private scans = 0

  constructor(sources: ListSources, limits: QueryLimits) {
    this.from = sources
    this.limits = limits
  }

  list(request: ListRequest, onReply: OnReply): void {
    this.answer(() => this.page(request), onReply)
  }

  /** What stands at places that a list has told of. */
  fetch({ tenant, places }: FetchRequest, onReply: OnReply): void {
    if (!places.every(({ shard }) => this.isOurs(shard))) return onReply({ kind: 'moved' })
    this.answer(async () => {
      const located = locate(this.from.store, tenant, places)
      const images = this.images(tenant, located.filter(isThere))
      let next = 0
      return { kind: 'fetched', images: located.map(place => place && images[next++]) }
    }, onReply)
  }

  /** Replies when all that the reply may tell of is durable. */
  private answer(find: () => Promise<ShardReply>, onReply: OnReply): void {
    const { commit } = this.from
    const fail = (error: Error): void => onReply({ kind: 'failed', reason: error.message })
    commit.afterFlight(failure => {
      if (failure) return fail(failure)
      find().then(reply => commit.afterFlight(late => (late ? fail(late) : onReply(reply))), fail)
    })
  }

  private async page(request: ListRequest): Promise<ShardReply> {
    const { tenant, selection, order, offset, limit } = request
    const { directory } = this.from
    const known = directory.paths(tenant) ?? (await directory.load(tenant))
    const ids = namedIds(selection)
    if (ids) return this.pageOfIds(request, ids, known)
    const ranges = rangesOf(request, known)
    const total = ranges.reduce((sum, range) => sum + range.count, 0)
    if (isAboutIdentity(selection) && meansAllIds(selection) && order.length === 0) {
      if (request.part === 'keys') return this.keys(request, ranges, total)
      const places = limit === 0 || offset >= total ? [] : await this.places(tenant, ranges, offset, limit)
      return this.reply(request, { places, values: [], total })
    }
    return total <= walkedMax ? this.walked(request, ranges) : this.filtered(request, ranges, total)
  }

  /** Few ids are looked up one by one and put in order. */
  private async pageOfIds(request: ListRequest, ids: ReadonlySet<string>, known: Paths): Promise<ShardReply> {
    const { tenant, paths, selection, order, offset, limit } = request
    const { store, shardMap, lookup, clock } = this.from
    let sinceMs = clock.monoMs()
    const found: (Match & { readonly image: Buffer })[] = []
    for (const id of ids) {
      const few = known.size <= fewPathsMax
      const candidates = few ? [...known.keys()] : ['/', ...(await lookup.indexed(tenant, id))]
      const ours = (path: string): boolean => this.isOurs(shardMap.shardOf(tenant, path, id))
      const covered = candidates.filter(path => anyCoversPath(paths, path) && ours(path))
      const shards = covered.map(path => shardMap.shardOf(tenant, path, id))
      const keys = covered.map((path, index) => entityKey(shards[index]!, tenant, path, id))
      for (const [index, row] of store.getMany(keys).entries())
        for (const image of row ? decodeRow(row) : []) {
          if (clock.monoMs() - sinceMs > stepMs) sinceMs = await this.breathed()
          const type = imageType(image)
          if (!meansIdentity(selection, id, type)) continue
          const path = covered[index] as string
          const values = valuesIfMeant(request, image, path)
          const place = { created: imageCreated(image), shard: shards[index]!, path, type, id }
          if (values) found.push({ place, image, values })
        }
    }
    found.sort((a, b) => compareSortValues(order, a.values, b.values) || comparePlaces(a.place, b.place))
    const page = found.slice(offset, offset + limit)
    const places = page.map(({ place }) => place)
    const values = order.length === 0 ? [] : page.map(match => match.values)
    return pageReply(request, { places, values, total: found.length }, () => page.map(({ image }) => image))
  }

  /** The keys of the first entities, when identity decides. */
  private async keys(request: ListRequest, ranges: readonly CountedRange[], total: number): Promise<ShardReply> {
    const { tenant, limit } = request
    const { store, heads, clock, owned } = this.from
    if (Math.min(limit, total) > keysMax) return refuse(refusals.pageTooDeep)
    const keys = new KeyColumns()
    const places = new Places(store, heads, clock, tenant, ranges, owned)
    try {
      await places.each(limit, place => keys.add(place, undefined))
    } finally {
      await places.close()
    }
    return keys.reply(total)
  }

  /** The places from `offset` on, `limit` at most. */
  private async places(
    tenant: string,
    ranges: readonly CountedRange[],
    offset: number,
    limit: number,
  ): Promise<Place[]> {
    const { store, heads, clock, owned } = this.from
    const places = new Places(store, heads, clock, tenant, ranges, owned)
    try {
      await places.skip(offset)
      return await places.next(limit)
    } finally {
      await places.close()
    }
  }

  /** Looks into every entity that may be meant, of few. */
  private async walked(request: ListRequest, ranges: readonly CountedRange[]): Promise<ShardReply> {
    const { tenant, selection } = request
    const { store, heads, clock, owned } = this.from
    const places = new Places(store, heads, clock, tenant, ranges, owned)
    const matches = new Matches(request)
    let sinceMs = clock.monoMs()
    try {
      for (;;) {
        const step = await places.next(entitiesPerStep)
        const meant: Place[] = []
        for (const place of step) {
          if (clock.monoMs() - sinceMs > stepMs) sinceMs = await this.breathed()
          if (meansIdentity(selection, place.id, place.type)) meant.push(place)
        }
        for (const { place, image } of imagesAt(store, tenant, meant)) {
          if (clock.monoMs() - sinceMs > stepMs) sinceMs = await this.breathed()
          const values = valuesIfMeant(request, image, place.path)
          if (values) matches.add({ place, values })
        }
        if (step.length < entitiesPerStep) break
        sinceMs = await this.breathed()
      }
    } finally {
      await places.close()
    }
    return pageReply(request, matches.page(), places => readImages(store, tenant, places))
  }

  /** Answers from views, or from a scan, within the time that a query has. */
  private filtered(request: ListRequest, ranges: readonly CountedRange[], rows: number): Promise<ShardReply> {
    const layout = layoutFor(request)
    const { tenant } = request
    if (layout && this.from.views.tables(tenant, ranges, layout)) return this.viewed(request, ranges, layout, rows)
    const { scanRowsMax, scanDeadlineMs } = this.limits
    if (rows > scanRowsMax) return Promise.resolve(refuse(refusals.scanTooLarge(rows, scanRowsMax)))
    if (this.scans >= scansMax) return Promise.resolve({ kind: 'busy' })
    this.scans++
    const answer = this.prepared(request, ranges, layout).then(ready =>
      ready && layout ? this.viewed(request, ranges, layout, rows) : this.scanned(request, ranges, rows),
    )
    const ended = answer.finally(() => this.scans--)
    return this.inTime(ended, refuse(refusals.scanTooLong(scanDeadlineMs)))
  }

  /** Builds the views that are wanted; false when there cannot be any. */
  private async prepared(
    { tenant }: ListRequest,
    ranges: readonly CountedRange[],
    layout: Layout | undefined,
  ): Promise<boolean> {
    const { views, commit } = this.from
    if (!layout || !(await views.prepare(tenant, ranges, layout))) return false
    // Views follow what is durable: with nothing in flight, the store says the same.
    await new Promise<void>(resolve => commit.afterFlight(() => resolve()))
    return true
  }

  private async viewed(
    request: ListRequest,
    ranges: readonly CountedRange[],
    layout: Layout,
    rows: number,
  ): Promise<ShardReply> {
    const { views, store, clock } = this.from
    const tables = views.tables(request.tenant, ranges, layout)
    const searched = tables && (await search(request, ranges, tables, store, clock))
    if (!searched) return this.scanned(request, ranges, rows)
    if (request.part === 'keys') return keysReply(searched)
    const located = locate(store, request.tenant, searched.places)
    const values = searched.values.filter((_, index) => located[index])
    return this.reply(request, { places: located.filter(isThere), values, total: searched.total })
  }

  private async scanned(request: ListRequest, ranges: readonly CountedRange[], rows: number): Promise<ShardReply> {
    const { scanRowsMax, scanDeadlineMs } = this.limits
    if (rows > scanRowsMax) return refuse(refusals.scanTooLarge(rows, scanRowsMax))
    return this.from.scanner.list({ request, ranges, deadlineMs: scanDeadlineMs })
  }

  /** The answer, or the other when the time of a query is over. */
  private inTime(answer: Promise<ShardReply>, otherwise: ShardReply): Promise<ShardReply> {
    return new Promise((resolve, reject) => {
      const cancel = this.from.clock.after(this.limits.scanDeadlineMs, () => resolve(otherwise))
      answer.then(resolve, reject).finally(cancel)
    })
  }

  private reply(request: ListRequest, page: Page<Place>): ShardReply {
    return pageReply(request, page, places => this.images(request.tenant, places))
  }

  /** The images of the entities of a page. */
  private images(tenant: string, places: readonly Place[]): readonly (Buffer | undefined)[] {
    const { store, actors, commit } = this.from
    if (places.length > pageOfActorsMax) return readImages(store, tenant, places)
    return places.map(place => {
      const { shard, path, id, type } = place
      const actor = actors.load(shard, tenant, path, id)
      // What is staged may yet be lost.
      return actor.stagedIn > commit.durable ? readImages(store, tenant, [place])[0] : actor.variant(type)?.image
    })
  }

  private isOurs(shard: number): boolean {
    const { owned } = this.from
    return !owned || owned[shard] === 1
  }

  /** Lets the event loop have its turn; gives when it went on. */
  private async breathed(): Promise<number> {
    const { clock } = this.from
    await new Promise<void>(resolve => clock.endOfTick(resolve))
    return clock.monoMs()
  }
}

const isThere = (place: Place | undefined): place is Place => place !== undefined

const refuse = (refusal: Refusal): ShardReply => ({ kind: 'refused', refusal })

/** The parts of the type index that a list is about, each with its number of entities. */
function rangesOf({ paths, selection }: ListRequest, known: Paths): CountedRange[] {
  const ranges: CountedRange[] = []
  for (const [path, counts] of known) {
    if (!anyCoversPath(paths, path)) continue
    for (const [type, count] of counts) if (mayMeanType(selection, type)) ranges.push({ path, type, count })
  }
  return ranges
}
