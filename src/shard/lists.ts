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
import { imagesAt, Matches, type Page, readImages, valuesIfMeant } from './matches.js'
import { KeyColumns, keysMax, keysReply, pageReply } from './pages.js'
import { type CountedRange, type HeadSource, locate, type Place, Places } from './places.js'
import type { Owned } from './replicated/ownership.js'
import type { Scanner } from './scans.js'
import { Steps } from './steps.js'
import { layoutFor } from './views/needs.js'
import { search } from './views/search.js'
import type { Layout } from './views/table.js'
import type { Views } from './views/views.js'

type OnReply = (reply: ShardReply) => void

/** Entities looked into per step: some 0.7 ms. */
const entitiesPerStep = 64
/** Up to so many entities are looked into at once rather than by views: some 3 ms. */
const walkedMax = 256
/** Pages up to this size are read through the actors, which keeps their entities in memory. */
const pageOfActorsMax = 100
/**
 * Views are used up to so many paths x types of one list: each costs some 2 KB and 10 us to hand over, whatever is in it. With more the entities
 * are scanned.
 */
export const viewedRangesMax = 1000
/** Pairs of path and type between two looks at the clock. */
const pairsPerLook = 64
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
    const steps = new Steps(this.from.clock, this.limits.scanDeadlineMs)
    if (ids) return this.pageOfIds(request, ids, known, steps)
    const ranges = await this.ranges(request, known, steps)
    if (!ranges) return refuse(refusals.scanTooLong(this.limits.scanDeadlineMs))
    const total = ranges.reduce((sum, range) => sum + range.count, 0)
    if (isAboutIdentity(selection) && meansAllIds(selection) && order.length === 0) {
      if (request.part === 'keys') return this.keys(request, ranges, total)
      const places = limit === 0 || offset >= total ? [] : await this.places(tenant, ranges, offset, limit)
      return this.reply(request, { places, values: [], total })
    }
    return total <= walkedMax ? this.walked(request, ranges) : this.filtered(request, ranges, total)
  }

  /** The parts of the type index that a list is about, each with its number of entities; undefined: to find them took too long. */
  private async ranges(
    { paths, selection }: ListRequest,
    known: Paths,
    steps: Steps,
  ): Promise<CountedRange[] | undefined> {
    const ranges: CountedRange[] = []
    // A type stands under many paths, and to try patterns on it may take milliseconds.
    const verdicts = new Map<string, boolean>()
    let looks = 0
    for (const [path, counts] of known) {
      if (!anyCoversPath(paths, path)) continue
      for (const [type, count] of counts) {
        if (++looks % pairsPerLook === 0 || isCostly(selection)) {
          if (steps.isOver) return undefined
          if (steps.isDue) await steps.breathe()
        }
        let mayBeMeant = verdicts.get(type)
        if (mayBeMeant === undefined) {
          mayBeMeant = mayMeanType(selection, type)
          verdicts.set(type, mayBeMeant)
        }
        if (mayBeMeant) ranges.push({ path, type, count })
      }
    }
    return ranges
  }

  /** Ids that are named are looked up one by one and put in order. */
  private async pageOfIds(
    request: ListRequest,
    ids: ReadonlySet<string>,
    known: Paths,
    steps: Steps,
  ): Promise<ShardReply> {
    const { tenant, paths, selection } = request
    const { store, shardMap, lookup } = this.from
    const matches = new Matches(request)
    const few = known.size <= fewPathsMax
    for (const id of ids) {
      if (steps.isDue) await steps.breathe()
      const candidates = few ? [...known.keys()] : ['/', ...(await lookup.indexed(tenant, id))]
      const ours = (path: string): boolean => this.isOurs(shardMap.shardOf(tenant, path, id))
      const covered = candidates.filter(path => anyCoversPath(paths, path) && ours(path))
      for (let from = 0; from < covered.length; from += entitiesPerStep) {
        const some = covered.slice(from, from + entitiesPerStep)
        const shards = some.map(path => shardMap.shardOf(tenant, path, id))
        const keys = some.map((path, index) => entityKey(shards[index]!, tenant, path, id))
        for (const [index, row] of store.getMany(keys).entries())
          for (const image of row ? decodeRow(row) : []) {
            if (steps.isOver) return refuse(refusals.scanTooLong(this.limits.scanDeadlineMs))
            if (steps.isDue) await steps.breathe()
            const type = imageType(image)
            if (!meansIdentity(selection, id, type)) continue
            const path = some[index] as string
            const values = valuesIfMeant(request, image, path)
            const place = { created: imageCreated(image), shard: shards[index]!, path, type, id }
            if (values) matches.add({ place, values })
          }
      }
    }
    return pageReply(request, matches.page(), places => readImages(store, tenant, places))
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
    try {
      for (;;) {
        const step = await places.next(entitiesPerStep)
        const meant = step.filter(({ id, type }) => meansIdentity(selection, id, type))
        for (const { place, image } of imagesAt(store, tenant, meant)) {
          const values = valuesIfMeant(request, image, place.path)
          if (values) matches.add({ place, values })
        }
        if (step.length < entitiesPerStep) break
        await this.breathe()
      }
    } finally {
      await places.close()
    }
    return pageReply(request, matches.page(), places => readImages(store, tenant, places))
  }

  /** Answers from views, or from a scan, within the time that a query has. */
  private filtered(request: ListRequest, ranges: readonly CountedRange[], rows: number): Promise<ShardReply> {
    const layout = ranges.length > viewedRangesMax ? undefined : layoutFor(request)
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

  private breathe(): Promise<void> {
    return new Promise(resolve => this.from.clock.endOfTick(resolve))
  }
}

const isThere = (place: Place | undefined): place is Place => place !== undefined

const refuse = (refusal: Refusal): ShardReply => ({ kind: 'refused', refusal })

/** Whether to try all patterns of types on one may take milliseconds. */
const isCostly = ({ types }: ListRequest['selection']): boolean => (types?.patterns.length ?? 0) > 0
