// Lists: a page of the entities that a selection means, in order of creation or by keys, and how many there are.
//
// A list shows nothing that may yet be lost: it waits for commits in flight. The plan is the narrowest that answers:
//
//   ids are named                          each is looked up
//   identity decides, every id is meant    counts come from the directory, the page from the type index
//   few entities may be meant              each is read and tested
//   views can decide                       they do (views/search), built first if need be
//   else                                   a scan reads and tests everything, elsewhere if it can (scans)
//
// A grant narrows each plan to what the reader may see: pairs of path and type that it does not cover are left out.
// Counts and views decide only where it covers all ids.

import type { AccessCondition } from '../../domain/access/condition.js'
import { fewPathsMax } from '../../domain/limits.js'
import { Pace, sorted } from '../../domain/pace.js'
import { compareSortValues } from '../../domain/queries/order.js'
import { isAboutIdentity, mayMeanType, meansAllIds, meansIdentity, namedIds } from '../../domain/queries/selection.js'
import { type Refusal, refusals } from '../../domain/refusal.js'
import { anyCoversPath, type ShardMap } from '../../domain/scope.js'
import { encodedCreated, encodedType } from '../../encoded-entity.js'
import type { FetchRequest, ListRequest, ShardReply } from '../../messages/messages.js'
import type { AnswerHold, AnswerRoom, Clock, Store } from '../../ports.js'
import type { GroupCommit } from '../commit/commit.js'
import type { PathCounts, Paths } from '../commit/counts.js'
import { replyAfterFailure } from '../commit/deposed.js'
import { decodeRow, entityKey } from '../layout.js'
import type { Owned } from '../replicate/ownership.js'
import type { Actors } from '../turn/actor.js'
import { type CountedRange, comparePlaces, type EntityPlace } from './entity-place.js'
import type { Lookup } from './lookup.js'
import {
  encodedEntitiesAt,
  type Match,
  Matches,
  type MatchPage,
  mayHideLocation,
  readEncoded,
  valuesIfMeant,
} from './matches.js'
import {
  KeyColumns,
  keysMax,
  keysReply,
  PageEntities,
  pageReply,
  positionsOf,
  type ReadSome,
  Turns,
  turnBytesMax,
} from './pages.js'
import { type FirstPageSource, locate, Places } from './places.js'
import type { Scanner } from './scans.js'
import { search } from './views/search.js'
import { type Layout, layoutFor } from './views/table.js'
import type { Views } from './views/views.js'

type OnReply = (reply: ShardReply) => void

/** Entities read at once, to be tested one by one: some 0.7 ms for entities of usual size. */
const entitiesPerStep = 16
/**
 * Pairs of path and type for which views are used. Each list visits each view that it uses, and making one takes some
 * 20 us of the event loop. Lists of more pairs are scans.
 */
export const viewedRangesMax = 1_500
/** Up to so many entities are read and tested at once rather than with views: some 3 ms. */
const walkedMax = 256
/** Pages up to this size are read through the actors, which keeps their entities in memory. */
const pageOfActorsMax = 100
/** Bytes of entities that are kept while ids are looked up; those of a page that has more are read again. */
const keptBytesMax = 1024 * 1024
/** Larger entities do not stay in memory because of a list. */
const actorBytesMax = 16 * 1024
/** Pairs of path and type between two looks at the clock. */
const pairsPerLook = 64
/** Lists that wait for a scan or a view; further lists are refused. */
const scansMax = 1000

export interface QueryLimits {
  /** The time after which a list is given up. */
  readonly scanDeadlineMs: number
  readonly scanRowsMax: number
}

export interface ListSources {
  readonly store: Store
  readonly commit: GroupCommit
  readonly directory: PathCounts
  readonly shardMap: ShardMap
  readonly lookup: Lookup
  readonly actors: Actors
  readonly firstPages: FirstPageSource
  readonly views: Views
  readonly scanner: Scanner
  readonly clock: Clock
  readonly room: AnswerRoom
  /** The shards whose entities are listed. */
  readonly owned?: Owned
}

export class Lists {
  private readonly turns: Turns
  private scans = 0

  constructor(
    private readonly from: ListSources,
    private readonly limits: QueryLimits,
  ) {
    this.turns = new Turns(from.clock)
  }

  list(request: ListRequest, onReply: OnReply): void {
    this.answer(hold => this.page(request, hold), onReply)
  }

  /** The entities at places that an earlier list returned. */
  fetch({ tenant, places, bytesMax }: FetchRequest, onReply: OnReply): void {
    if (!places.every(({ shard }) => this.isOurs(shard))) return onReply({ kind: 'moved' })
    this.answer(async hold => {
      const located = locate(this.from.store, tenant, places)
      const encodedEntities = await this.encodedEntities(tenant, located, bytesMax, hold, 1)
      return encodedEntities ? { kind: 'fetched', encodedEntities } : noRoom
    }, onReply)
  }

  /**
   * Replies when all content of the reply is durable. `hold` counts the bytes that are read for it. After that, the
   * receiver of the reply counts them.
   */
  private answer(find: (hold: AnswerHold) => Promise<ShardReply>, onReply: OnReply): void {
    const { commit, room } = this.from
    const hold = room.open()
    const send = (reply: ShardReply): void => {
      hold.release()
      onReply(reply)
    }
    const fail = (error: Error): void => send(replyAfterFailure(error))
    commit.whenQuiet(failure => {
      if (failure) return fail(failure)
      find(hold).then(reply => commit.afterFlight(late => (late ? fail(late) : send(reply))), fail)
    })
  }

  private async page(request: ListRequest, hold: AnswerHold): Promise<ShardReply> {
    const { tenant, selection, order, offset, limit, grant } = request
    const { directory } = this.from
    const known = directory.paths(tenant) ?? (await directory.load(tenant))
    const ids = namedIds(selection) ?? idsOfGrant(grant)
    const pace = this.pace()
    if (ids) return this.pageOfIds(request, ids, known, pace, hold)
    const ranges = await this.ranges(request, known, pace)
    if (!ranges) return refuse(refusals.scanTooLong(this.limits.scanDeadlineMs))
    const total = ranges.reduce((sum, range) => sum + range.count, 0)
    const isPlain = isAboutIdentity(selection) && meansAllIds(selection) && order.length === 0
    if (isPlain && coversAllIds(grant, ranges)) {
      if (request.part === 'keys') return this.keys(request, ranges, total)
      const places = limit === 0 || offset >= total ? [] : await this.places(tenant, ranges, offset, limit)
      return this.reply(request, { places, values: [], total }, hold)
    }
    return total <= walkedMax ? this.walked(request, ranges, hold) : this.filtered(request, ranges, total, hold)
  }

  /**
   * The parts of the type index that a list is about, with their numbers of entities; undefined: that took too long.
   */
  private async ranges(
    { paths, selection, grant }: ListRequest,
    known: Paths,
    pace: Pace,
  ): Promise<CountedRange[] | undefined> {
    const ranges: CountedRange[] = []
    // A type occurs under many paths, and to try patterns on it may take milliseconds.
    const verdicts = new Map<string, boolean>()
    let looks = 0
    for (const [path, counts] of known) {
      if (!anyCoversPath(paths, path)) continue
      for (const [type, count] of counts) {
        if (++looks % pairsPerLook === 0 || isCostly(selection)) {
          if (pace.isLate) return undefined
          if (pace.isOver) await pace.breathe()
        }
        let mayBeMeant = verdicts.get(type)
        if (mayBeMeant === undefined) {
          mayBeMeant = mayMeanType(selection, type)
          verdicts.set(type, mayBeMeant)
        }
        if (mayBeMeant && grant?.coversRange(path, type) !== 'none') ranges.push({ path, type, count })
      }
    }
    return ranges
  }

  /** Looks up named ids one by one, and sorts them. */
  private async pageOfIds(
    request: ListRequest,
    ids: ReadonlySet<string>,
    known: Paths,
    pace: Pace,
    hold: AnswerHold,
  ): Promise<ShardReply> {
    const { tenant, paths, selection, order, offset, limit } = request
    const { store, shardMap, lookup } = this.from
    const found: (Match & { readonly encoded: Buffer | undefined })[] = []
    const few = known.size <= fewPathsMax
    let keptBytes = 0
    let sinceBreath = 0
    const look = async (): Promise<boolean> => {
      if (!pace.isOver && sinceBreath < turnBytesMax) return true
      await pace.breathe()
      sinceBreath = 0
      return !pace.isLate
    }
    for (const id of ids) {
      const candidates = few ? [...known.keys()] : ['/', ...(await lookup.indexed(tenant, id))]
      const ours = (path: string): boolean => this.isOurs(shardMap.shardOf(tenant, path, id))
      const covered = candidates.filter(path => anyCoversPath(paths, path) && ours(path))
      for (let from = 0; from < covered.length; from += entitiesPerStep) {
        if (!(await look())) return refuse(refusals.scanTooLong(this.limits.scanDeadlineMs))
        const some = covered.slice(from, from + entitiesPerStep)
        const shards = some.map(path => shardMap.shardOf(tenant, path, id))
        const keys = some.map((path, index) => entityKey(shards[index]!, tenant, path, id))
        for (const [index, row] of store.getMany(keys).entries())
          for (const encoded of row ? decodeRow(row) : []) {
            if (!(await look())) return refuse(refusals.scanTooLong(this.limits.scanDeadlineMs))
            sinceBreath += encoded.length
            const type = encodedType(encoded)
            if (!meansIdentity(selection, id, type)) continue
            const path = some[index] as string
            const values = valuesIfMeant(request, encoded, path)
            const place = { created: encodedCreated(encoded), shard: shards[index]!, path, type, id }
            if (!values) continue
            keptBytes += encoded.length
            found.push({ place, encoded: keptBytes > keptBytesMax ? undefined : encoded, values })
          }
      }
    }
    const inOrder = await sorted(
      found,
      (a, b) => compareSortValues(order, a.values, b.values) || comparePlaces(a.place, b.place),
      pace,
    )
    const page = inOrder.slice(offset, offset + limit)
    const places = page.map(({ place }) => place)
    const values = order.length === 0 ? [] : page.map(match => match.values)
    const read = (from: number, count: number) =>
      keptBytes > keptBytesMax
        ? readEncoded(store, tenant, places.slice(from, from + count))
        : page.slice(from, from + count).map(({ encoded }) => encoded)
    return this.reply(request, { places, values, total: found.length }, hold, read)
  }

  /** The pace of one long read. Other requests run between its steps, and long reads take turns. */
  private pace(): Pace {
    const { clock } = this.from
    const ticks = { monoMs: () => clock.monoMs(), endOfTick: (run: () => void) => void this.turns.next().then(run) }
    return new Pace(ticks, this.limits.scanDeadlineMs)
  }

  /** The keys of the first entities, when identity decides. */
  private async keys(request: ListRequest, ranges: readonly CountedRange[], total: number): Promise<ShardReply> {
    const { tenant, limit } = request
    if (Math.min(limit, total) > keysMax) return refuse(refusals.pageTooDeep)
    const keys = new KeyColumns()
    const places = new Places(this.from, tenant, ranges, limit)
    try {
      await places.each(limit, place => keys.add(place, undefined))
    } finally {
      await places.close()
    }
    return keys.reply(total)
  }

  private async places(
    tenant: string,
    ranges: readonly CountedRange[],
    offset: number,
    limit: number,
  ): Promise<EntityPlace[]> {
    const places = new Places(this.from, tenant, ranges, offset + limit)
    try {
      await places.skip(offset)
      return await places.next(limit)
    } finally {
      await places.close()
    }
  }

  /** Reads and tests the entities that may be meant, when they are few. */
  private async walked(request: ListRequest, ranges: readonly CountedRange[], hold: AnswerHold): Promise<ShardReply> {
    const { tenant, selection } = request
    const { store } = this.from
    const places = new Places(this.from, tenant, ranges, Number.POSITIVE_INFINITY)
    const matches = new Matches(request)
    const pace = this.pace()
    try {
      for (;;) {
        const step = await places.next(entitiesPerStep)
        const meant: EntityPlace[] = []
        for (const place of step) {
          if (meansIdentity(selection, place.id, place.type)) meant.push(place)
          if (pace.isOver) await pace.breathe()
        }
        let bytes = 0
        for (const { place, encoded } of encodedEntitiesAt(store, tenant, meant)) {
          const values = valuesIfMeant(request, encoded, place.path)
          if (values) matches.add({ place, values })
          bytes += encoded.length
          if (bytes < turnBytesMax && !pace.isOver) continue
          bytes = 0
          await pace.breathe()
        }
        if (step.length < entitiesPerStep) break
        await pace.breathe()
      }
    } finally {
      await places.close()
    }
    const page = matches.page()
    const read = (from: number, count: number) => readEncoded(store, tenant, page.places.slice(from, from + count))
    return this.reply(request, page, hold, read)
  }

  /**
   * Reads every entity of some ranges, in steps. Returns a refusal if they are too many, or if that takes too long.
   */
  async each(
    tenant: string,
    ranges: readonly CountedRange[],
    take: (encoded: Buffer, path: string) => void,
  ): Promise<Refusal | undefined> {
    const { scanRowsMax, scanDeadlineMs } = this.limits
    const rows = ranges.reduce((sum, { count }) => sum + count, 0)
    if (rows > scanRowsMax) return refusals.scanTooLarge(rows, scanRowsMax)
    const places = new Places(this.from, tenant, ranges, Number.POSITIVE_INFINITY)
    const pace = this.pace()
    try {
      for (;;) {
        const step = await places.next(entitiesPerStep)
        for (const { place, encoded } of encodedEntitiesAt(this.from.store, tenant, step)) {
          take(encoded, place.path)
          if (pace.isOver) await pace.breathe()
        }
        if (pace.isLate) return refusals.scanTooLong(scanDeadlineMs)
        if (step.length < entitiesPerStep) return undefined
        await pace.breathe()
      }
    } finally {
      await places.close()
    }
  }

  /** Answers from views, or from a scan, within the time that a query has. */
  private filtered(
    request: ListRequest,
    ranges: readonly CountedRange[],
    rows: number,
    hold: AnswerHold,
  ): Promise<ShardReply> {
    const layout = ranges.length > viewedRangesMax || !viewsDecide(request, ranges) ? undefined : layoutFor(request)
    const { tenant } = request
    const { views } = this.from
    if (layout && views.tables(tenant, ranges, layout)) {
      views.lookups.hits++
      return this.viewed(request, ranges, layout, rows, hold)
    }
    views.lookups.misses++
    const { scanRowsMax, scanDeadlineMs } = this.limits
    if (rows > scanRowsMax) return Promise.resolve(refuse(refusals.scanTooLarge(rows, scanRowsMax)))
    if (this.scans >= scansMax) return Promise.resolve({ kind: 'busy' })
    this.scans++
    const answer = this.prepared(request, ranges, layout).then(ready =>
      ready && layout ? this.viewed(request, ranges, layout, rows, hold) : this.scanned(request, ranges, rows, hold),
    )
    const ended = answer.finally(() => this.scans--)
    return this.inTime(ended, refuse(refusals.scanTooLong(scanDeadlineMs)))
  }

  /** Builds the views that are wanted; false when they cannot be built. */
  private async prepared(
    { tenant }: ListRequest,
    ranges: readonly CountedRange[],
    layout: Layout | undefined,
  ): Promise<boolean> {
    const { views, commit } = this.from
    if (!layout || !(await views.prepare(tenant, ranges, layout))) return false
    // Views follow durable changes. With nothing in flight, they agree with the store.
    await new Promise<void>(resolve => commit.whenQuiet(() => resolve()))
    return true
  }

  private async viewed(
    request: ListRequest,
    ranges: readonly CountedRange[],
    layout: Layout,
    rows: number,
    hold: AnswerHold,
  ): Promise<ShardReply> {
    const { views, store, clock } = this.from
    const tables = views.tables(request.tenant, ranges, layout)
    const searched = tables && (await search(request, ranges, tables, store, clock))
    if (!searched) return this.scanned(request, ranges, rows, hold)
    if (request.part === 'keys') return keysReply(searched)
    const located = locate(store, request.tenant, searched.places)
    const values = searched.values.filter((_, index) => located[index])
    return this.reply(request, { places: located.filter(isThere), values, total: searched.total }, hold)
  }

  private async scanned(
    request: ListRequest,
    ranges: readonly CountedRange[],
    rows: number,
    hold: AnswerHold,
  ): Promise<ShardReply> {
    const { scanRowsMax, scanDeadlineMs } = this.limits
    if (rows > scanRowsMax) return refuse(refusals.scanTooLarge(rows, scanRowsMax))
    const reply = await this.from.scanner.list({ request, ranges, deadlineMs: scanDeadlineMs })
    if (reply.kind !== 'part' || !reply.encodedEntities || reply.encodedEntities.length === reply.keys.created.length)
      return reply
    return this.completed(request, reply, hold)
  }

  /** Completes a page of which a scan has read only the first entities. */
  private async completed(
    request: ListRequest,
    { keys, encodedEntities, total }: Extract<ShardReply, { kind: 'part' }>,
    hold: AnswerHold,
  ): Promise<ShardReply> {
    const { tenant, bytesMax } = request
    const places = positionsOf(keys)
    const first = Array.from({ length: encodedEntities?.length ?? 0 }, (_, at) => encodedEntities?.at(at))
    const located = locate(this.from.store, tenant, places.slice(first.length))
    const bytes = first.reduce((sum, encoded) => sum + (encoded?.length ?? 0), 0)
    if (!hold.take(bytes)) return noRoom
    const others = await this.encodedEntities(
      tenant,
      located,
      bytesMax === undefined ? undefined : bytesMax - bytes,
      hold,
    )
    return others ? pageReply(request.part, { places, values: keys.values, total }, [...first, ...others]) : noRoom
  }

  /** The answer, or `otherwise` when the time of a query is over. */
  private inTime(answer: Promise<ShardReply>, otherwise: ShardReply): Promise<ShardReply> {
    return new Promise((resolve, reject) => {
      const cancel = this.from.clock.after(this.limits.scanDeadlineMs, () => resolve(otherwise))
      answer.then(resolve, reject).finally(cancel)
    })
  }

  /** `read` reads encoded entities of the page. By default they are read from the store, or from actors. */
  private async reply(
    request: ListRequest,
    page: MatchPage<EntityPlace>,
    hold: AnswerHold,
    read: ReadSome = this.reader(request.tenant, page.places),
  ): Promise<ShardReply> {
    if (request.part === 'keys') return keysReply(page)
    const encodedEntities = await new PageEntities(page.places.length, request.bytesMax, read).inTurns(this.turns, hold)
    return encodedEntities ? pageReply(request.part, page, encodedEntities) : noRoom
  }

  /**
   * The encoded entities at the first places, up to `bytesMax`, but of `needed` at least; undefined: memory has no
   * room.
   */
  private encodedEntities(
    tenant: string,
    places: readonly (EntityPlace | undefined)[],
    bytesMax: number | undefined,
    hold: AnswerHold,
    needed = 0,
  ): Promise<readonly (Buffer | undefined)[] | undefined> {
    return new PageEntities(places.length, bytesMax, this.reader(tenant, places), needed).inTurns(this.turns, hold)
  }

  /** Reads encoded entities of a page; undefined where a place is undefined. */
  private reader(tenant: string, places: readonly (EntityPlace | undefined)[]): ReadSome {
    const { store } = this.from
    const readOne = places.length > pageOfActorsMax ? undefined : (place: EntityPlace) => this.encodedOf(tenant, place)
    return (from, count) => {
      const some = places.slice(from, from + count)
      if (readOne) return some.map(place => place && readOne(place))
      const encodedEntities = readEncoded(store, tenant, some.filter(isThere))
      let next = 0
      return some.map(place => place && encodedEntities[next++])
    }
  }

  /** The encoded entity, read through its actor, which stays in memory unless it is large. */
  private encodedOf(tenant: string, place: EntityPlace): Buffer | undefined {
    const { store, actors, commit } = this.from
    const { shard, path, id, type } = place
    const actor = actors.load(shard, tenant, path, id)
    // Staged changes may yet be lost.
    if (!commit.isDurable(actor.stagedIn)) return readEncoded(store, tenant, [place])[0]
    const encoded = actor.variant(type)?.encoded
    if (encoded && encoded.length > actorBytesMax) actors.evict(actor)
    return encoded
  }

  private isOurs(shard: number): boolean {
    const { owned } = this.from
    return !owned || owned[shard] === 1
  }
}

/** Ids of a grant that names them all are looked up, if they are at most so many. */
const grantedIdsMax = 1_000

function idsOfGrant(grant: AccessCondition | undefined): ReadonlySet<string> | undefined {
  const ids = grant?.namedIds()
  return ids && ids.size <= grantedIdsMax ? ids : undefined
}

/** Whether the reader may see every entity of the ranges. */
const coversAllIds = (grant: AccessCondition | undefined, ranges: readonly CountedRange[]): boolean =>
  !grant || ranges.every(({ path, type }) => grant.coversRange(path, type) === 'all')

/** Whether views, which have the stored values of all entities, can answer a list of these ranges. */
const viewsDecide = ({ grant, selection }: ListRequest, ranges: readonly CountedRange[]): boolean =>
  !grant || (coversAllIds(grant, ranges) && !mayHideLocation(grant, selection))

const noRoom: ShardReply = { kind: 'refused', refusal: refusals.answersTooMany }

const isThere = (place: EntityPlace | undefined): place is EntityPlace => place !== undefined

const refuse = (refusal: Refusal): ShardReply => ({ kind: 'refused', refusal })

/** Whether to try all patterns of types on one type may take milliseconds. */
const isCostly = ({ types }: ListRequest['selection']): boolean => (types?.patterns.length ?? 0) > 0
