// Gathering: merges the parts of several owners into the answer that one owner of everything would give.
//
// A list is merged by keys, so its order is the same as that of one owner, for every page:
//
//   offset 0     each owner gives its first `limit` entities with their keys; the page is cut from them
//   further on   each owner gives the keys of its first `offset + limit`; those who have the page's bodies send them
//   limit 0      each owner counts
//
// No owner sends more than some MB at a time, and large entities are fetched, a little from each owner in turn. A page
// with more bytes of entities than an answer may have is refused.
//
// So an offset costs every owner as many keys (shard/read/pages), up to the number of its entities. An entity that is
// deleted between the two rounds is missing in the page. One that changes is shown in its new state.
//
// Not here: the choice of owners to ask (shard-client).

import { compareSortValues, type OrderKey } from '../domain/queries/order.js'
import { accepted, done, type Refusal, type Result, refusals, refused } from '../domain/refusal.js'
import type {
  DeliveryRecord,
  DeliveryReport,
  DeliveryRequest,
  EntityPosition,
  FoundEntity,
  ListKeys,
  ListRequest,
  ReadRequest,
  ShardReply,
  Shards,
  TenantsRequest,
} from '../messages/messages.js'
import type { AnswerHold, AnswerRoom } from '../ports.js'
import { type Listed, type OnResult, refusalOf } from './replies.js'

export interface ShardAsk {
  readonly shard: number
  readonly request: ReadRequest | DeliveryRequest | TenantsRequest
}

/** Asks several owners and waits for all. The first refusal ends it. */
export function askAll<T>(
  shards: Shards,
  asks: readonly ShardAsk[],
  read: (reply: ShardReply) => Result<T>,
  onResult: OnResult<readonly T[]>,
): void {
  const parts: T[] = []
  let missing = asks.length
  let ended = false
  for (const [index, { shard, request }] of asks.entries()) {
    shards.ask(shard, request, reply => {
      if (ended) return
      const part = read(reply)
      if (!part.ok) {
        ended = true
        return onResult(part)
      }
      parts[index] = part.value
      if (--missing > 0) return
      ended = true
      onResult(accepted(parts))
    })
  }
}

export interface GatherLimits {
  readonly answerBytesMax: number
  readonly room: AnswerRoom
}

/**
 * Bytes of entities that each owner sends at once, first with its keys and then per fetch. Bytes on their way from
 * other owners are not counted, so this is little; nearly all pages have less.
 */
const firstBytesMax = 1024 * 1024
const fetchBytesMax = 4 * 1024 * 1024

/** Gathers the page of a list from several owners of shards. */
export function gatherList(
  shards: Shards,
  asked: readonly number[],
  request: ListRequest,
  limits: GatherLimits,
  onResult: OnResult<Listed>,
): void {
  const { order, offset, limit } = request
  if (limit === 0) return gatherTotal(shards, asked, request, onResult)
  const part = offset === 0 ? 'entities' : 'keys'
  const bytesMax = Math.min(firstBytesMax, limits.answerBytesMax)
  const most = Math.min(offset + limit, Number.MAX_SAFE_INTEGER)
  const wanted: ListRequest = { ...request, part, offset: 0, limit: most, bytesMax }
  askAll(shards, asksOf(asked, wanted), readPart, result => {
    if (!result.ok) return onResult(result)
    const parts = result.value
    const total = sum(parts)
    const keys = parts.map(one => one.keys)
    const picked = mergedPage(keys, order, offset, limit)
    const page = new GatheredPage(picked.length, limits)
    const missing: Wanted[] = []
    for (const [index, one] of picked.entries()) {
      const place = position(keys, one)
      const encoded = parts[one.part]!.encodedEntities?.at(one.at)
      if (!encoded) missing.push({ index, place, owner: one.part })
      else if (!page.add(index, place.path, encoded)) return onResult(page.refuse())
    }
    fetchAll(shards, asked, request.tenant, missing, page, fetched =>
      onResult(fetched.ok ? accepted({ entities: page.end(), total }) : fetched),
    )
  })
}

function gatherTotal(shards: Shards, asked: readonly number[], request: ListRequest, onResult: OnResult<Listed>): void {
  askAll(
    shards,
    asksOf(asked, { ...request, offset: 0 }),
    reply => (reply.kind === 'listed' ? accepted(reply) : refusalOf(reply, 'read')),
    result => onResult(result.ok ? accepted({ entities: [], total: sum(result.value) }) : result),
  )
}

/** An entity of a page that has yet to be fetched, and its owner. */
interface Wanted {
  readonly index: number
  readonly place: EntityPosition
  readonly owner: number
}

/** Fetches entities of a page from their owners: from all owners at once, and from each a little at a time. */
function fetchAll(
  shards: Shards,
  asked: readonly number[],
  tenant: string,
  missing: readonly Wanted[],
  page: GatheredPage,
  onResult: OnResult<undefined>,
): void {
  if (missing.length === 0) return onResult(done)
  const owners = [...new Set(missing.map(({ owner }) => owner))]
  const most = page.placesPerFetch
  const wanted = owners.map(owner => missing.filter(one => one.owner === owner))
  const asks = owners.map((owner, index): ShardAsk => {
    const places = wanted[index]!.slice(0, most).map(({ place }) => place)
    return { shard: asked[owner]!, request: { kind: 'fetch', tenant, places, bytesMax: fetchBytesMax } }
  })
  askAll(shards, asks, readEncoded, result => {
    if (!result.ok) {
      page.release()
      return onResult(result)
    }
    for (const [at, encodedEntities] of result.value.entries())
      for (const [next, encoded] of encodedEntities.entries()) {
        const { index, place } = wanted[at]![next]!
        if (encoded && !page.add(index, place.path, encoded)) return onResult(page.refuse())
      }
    // Each owner has sent at least one entity, or reported that it is gone.
    const left = wanted.flatMap((all, at) => all.slice(result.value[at]!.length))
    fetchAll(shards, asked, tenant, left, page, onResult)
  })
}

class GatheredPage {
  private readonly entities: (FoundEntity | undefined)[]
  private readonly hold: AnswerHold
  private bytes = 0
  private count = 0
  private refusal: Refusal = refusals.answersTooMany

  constructor(
    length: number,
    private readonly limits: GatherLimits,
  ) {
    this.entities = new Array(length)
    this.hold = limits.room.open()
  }

  /**
   * Each owner looks up all requested entities. So this is the number that fits, if they are as large as those
   * received.
   */
  get placesPerFetch(): number {
    return this.count === 0 ? this.entities.length : Math.ceil((2 * fetchBytesMax * this.count) / this.bytes)
  }

  /** Returns false if the page is too large. */
  add(index: number, path: string, encoded: Buffer): boolean {
    this.entities[index] = { path, encoded }
    this.bytes += encoded.length
    this.count++
    if (this.bytes <= this.limits.answerBytesMax) return this.hold.take(encoded.length)
    this.refusal = refusals.answerTooLarge(this.limits.answerBytesMax)
    return false
  }

  refuse(): ReturnType<typeof refused> {
    this.release()
    return refused(this.refusal)
  }

  release(): void {
    this.hold.release()
  }

  /** Returns all entities of the page. The caller counts their memory from now on. */
  end(): FoundEntity[] {
    this.release()
    return this.entities.filter(entity => entity !== undefined)
  }
}

const asksOf = (asked: readonly number[], request: ReadRequest): readonly ShardAsk[] =>
  asked.map(shard => ({ shard, request }))

const readPart = (reply: ShardReply): Result<Extract<ShardReply, { kind: 'part' }>> =>
  reply.kind === 'part' ? accepted(reply) : refusalOf(reply, 'read')

const readEncoded = (reply: ShardReply): Result<readonly (Buffer | undefined)[]> =>
  reply.kind === 'fetched' ? accepted(reply.encodedEntities) : refusalOf(reply, 'read')

const sum = (parts: readonly { readonly total: number }[]): number => parts.reduce((all, { total }) => all + total, 0)

function position(keys: readonly ListKeys[], { part, at }: Picked): EntityPosition {
  const { created, shards, rangeOf, ranges } = keys[part]!
  const [path, type] = ranges[rangeOf[at]!]!
  return { created: created[at]!, shard: shards[at]!, path, type }
}

/** Merges the reports of several owners on a subscription's notifications: the latest of all, `limit` in each list. */
export const mergeReports = (reports: readonly DeliveryReport[], limit: number): DeliveryReport => ({
  deliveries: latest(
    reports.flatMap(({ deliveries }) => deliveries),
    limit,
  ),
  deadLetters: latest(
    reports.flatMap(({ deadLetters }) => deadLetters),
    limit,
  ),
  deadCount: reports.reduce((sum, { deadCount }) => sum + deadCount, 0),
})

/** Records of one millisecond and one owner stay in their order. */
const latest = (records: readonly DeliveryRecord[], limit: number): readonly DeliveryRecord[] =>
  records.toSorted((a, b) => b.atMs - a.atMs).slice(0, limit)

/** An entity of the page: the index of its part, and the index of its key in the part. */
interface Picked {
  readonly part: number
  readonly at: number
}

/** The page from `offset` on, at most `limit`. Each part has at least its first `offset + limit` keys, or all. */
export function mergedPage(
  parts: readonly ListKeys[],
  order: readonly OrderKey[],
  offset: number,
  limit: number,
): readonly Picked[] {
  const merge = new Merge(parts, order)
  merge.skip(offset)
  return merge.take(limit)
}

/**
 * The keys before the page are not walked through. The beginning of the page is found in all parts at once by
 * bisection:
 *
 *   part 0   . . . . . | . .  .        the cuts together leave `offset` keys to their left,
 *   part 1   . . | . . . . . . .       and nothing to the left comes after anything to the right
 *   part 2   . . . | . . . .
 *
 * From there the parts are merged up to the end of the page.
 */
class Merge {
  /** The index of the next key in each part. */
  private at: number[]

  constructor(
    private readonly parts: readonly ListKeys[],
    private readonly order: readonly OrderKey[],
  ) {
    this.at = parts.map(() => 0)
  }

  skip(count: number): void {
    // Keys before `low` are among the first, keys from `high` on are not.
    let low = this.at
    let high = this.parts.map(({ created }) => Math.min(created.length, count))
    for (;;) {
      const part = widest(low, high)
      const at = (low[part]! + high[part]!) >> 1
      if (at === high[part]) break
      const cut = this.parts.map((_, other) => this.before({ part, at }, other, low[other]!, high[other]!))
      const sum = cut.reduce((all, one) => all + one, 0)
      if (sum < count) {
        low = cut
        low[part] = at + 1
      } else high = cut
    }
    this.at = low
  }

  take(limit: number): readonly Picked[] {
    const { at, parts } = this
    const taken: Picked[] = []
    while (taken.length < limit) {
      let first = -1
      for (let part = 0; part < parts.length; part++) {
        if (at[part] === parts[part]!.created.length) continue
        if (first < 0 || this.compare(part, at[part]!, first, at[first]!) < 0) first = part
      }
      if (first < 0) break
      taken.push({ part: first, at: at[first]! })
      at[first]!++
    }
    return taken
  }

  /** How many keys of a part come before a key, if the number is known to be between `low` and `high`. */
  private before(key: Picked, part: number, low: number, high: number): number {
    if (part === key.part) return key.at
    while (low < high) {
      const at = (low + high) >> 1
      if (this.compare(part, at, key.part, key.at) < 0) low = at + 1
      else high = at
    }
    return low
  }

  // [hot] Twice or so for each entity of a page.
  /** The order of the list, as within one owner: by its keys, then by creation. */
  private compare(partA: number, atA: number, partB: number, atB: number): number {
    const { order, parts } = this
    const [a, b] = [parts[partA]!, parts[partB]!]
    const byKeys = order.length === 0 ? 0 : compareSortValues(order, a.values[atA]!, b.values[atB]!)
    return byKeys || a.created[atA]! - b.created[atB]! || a.shards[atA]! - b.shards[atB]! || partA - partB
  }
}

/** The part with the widest range of possible cuts. */
function widest(low: readonly number[], high: readonly number[]): number {
  let widest = 0
  for (let part = 1; part < low.length; part++)
    if (high[part]! - low[part]! > high[widest]! - low[widest]!) widest = part
  return widest
}
