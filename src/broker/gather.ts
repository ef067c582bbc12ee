// Gathering: what several owners hold, answered as if one had all of it.
//
// A list is merged by keys, so that its order is that of one owner whatever the page:
//
//   offset 0     each owner gives its first `limit` entities with their keys; the page is cut from them
//   further on   each owner gives the keys of its first `offset + limit`; the bodies of the page are fetched from those who have them
//   limit 0      each owner counts
//
// No owner sends more than some MB at a time, and a page ends where its entities have more bytes than an answer may have: of a page with large
// entities the others are fetched, a little from each owner in turn.
//
// So an offset costs every owner as many keys (shard/pages), as far as it has so many entities. Between the two rounds an entity may go:
// then the page is shorter. One that changes is shown as it is now.
//
// Not here: whom to ask (shard-client), the merge itself (merge).

import { accepted, done, type Refusal, type Result, refusals, refused } from '../domain/refusal.js'
import type {
  DeliveryRequest,
  Found,
  ListKeys,
  ListRequest,
  ReadRequest,
  ShardReply,
  Shards,
  Standing,
} from '../messages/messages.js'
import type { AnswerHold, AnswerRoom } from '../ports.js'
import { mergedPage, type Picked } from './merge.js'
import { type Listed, type OnResult, refusalOf } from './replies.js'

export interface Ask {
  readonly shard: number
  readonly request: ReadRequest | DeliveryRequest
}

/** Asks several owners and waits for all; the first that has no answer decides. */
export function askAll<T>(
  shards: Shards,
  asks: readonly Ask[],
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

/** What the parts of one list may come to. */
export interface GatherLimits {
  /** Bytes of the entities of a page. */
  readonly answerBytesMax: number
  readonly room: AnswerRoom
}

/**
 * Bytes of entities that each owner sends at once, first with its keys and then at a time. What is on its way from other owners is not counted, so it
 * is little; nearly all pages have less.
 */
const firstBytesMax = 1024 * 1024
const fetchBytesMax = 4 * 1024 * 1024

/** The page of a list from the owners of the shards, several of them. */
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
      const place = standing(keys, one)
      const image = parts[one.part]!.images?.at(one.at)
      if (!image) missing.push({ index, place, owner: one.part })
      else if (!page.add(index, place.path, image)) return onResult(page.refuse())
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

/** An entity of a page that is still to be fetched, and from whom. */
interface Wanted {
  readonly index: number
  readonly place: Standing
  readonly owner: number
}

/** Fetches entities of a page, each from the owner that told of it: of all owners at once, and from each a little at a time. */
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
  const asks = owners.map((owner, index): Ask => {
    const places = wanted[index]!.slice(0, most).map(({ place }) => place)
    return { shard: asked[owner]!, request: { kind: 'fetch', tenant, places, bytesMax: fetchBytesMax } }
  })
  askAll(shards, asks, readImages, result => {
    if (!result.ok) {
      page.release()
      return onResult(result)
    }
    for (const [at, images] of result.value.entries())
      for (const [next, image] of images.entries()) {
        const { index, place } = wanted[at]![next]!
        if (image && !page.add(index, place.path, image)) return onResult(page.refuse())
      }
    // Each owner has sent one at least, or told that it has gone.
    const left = wanted.flatMap((all, at) => all.slice(result.value[at]!.length))
    fetchAll(shards, asked, tenant, left, page, onResult)
  })
}

/** A page while its entities come in. */
class GatheredPage {
  private readonly entities: (Found | undefined)[]
  private readonly limits: GatherLimits
  private readonly hold: AnswerHold
  private bytes = 0
  private count = 0
  private refusal: Refusal = refusals.answersTooMany

  constructor(length: number, limits: GatherLimits) {
    this.entities = new Array(length)
    this.limits = limits
    this.hold = limits.room.open()
  }

  /** Each owner looks all of them up: no more than will be sent, if they are as large as those that are here. */
  get placesPerFetch(): number {
    return this.count === 0 ? this.entities.length : Math.ceil((2 * fetchBytesMax * this.count) / this.bytes)
  }

  /** False: it is too much. */
  add(index: number, path: string, image: Buffer): boolean {
    this.entities[index] = { path, image }
    this.bytes += image.length
    this.count++
    if (this.bytes <= this.limits.answerBytesMax) return this.hold.take(image.length)
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

  /** All that are there, to be counted by whoever takes them. */
  end(): Found[] {
    this.release()
    return this.entities.filter(entity => entity !== undefined)
  }
}

const asksOf = (asked: readonly number[], request: ReadRequest): readonly Ask[] =>
  asked.map(shard => ({ shard, request }))

const readPart = (reply: ShardReply): Result<Extract<ShardReply, { kind: 'part' }>> =>
  reply.kind === 'part' ? accepted(reply) : refusalOf(reply, 'read')

const readImages = (reply: ShardReply): Result<readonly (Buffer | undefined)[]> =>
  reply.kind === 'fetched' ? accepted(reply.images) : refusalOf(reply, 'read')

const sum = (parts: readonly { readonly total: number }[]): number => parts.reduce((all, { total }) => all + total, 0)

function standing(keys: readonly ListKeys[], { part, at }: Picked): Standing {
  const { created, shards, rangeOf, ranges } = keys[part]!
  const [path, type] = ranges[rangeOf[at]!]!
  return { created: created[at]!, shard: shards[at]!, path, type }
}
