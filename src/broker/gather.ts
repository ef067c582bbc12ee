// Gathering: what several owners hold, answered as if one had all of it.
//
// A list is merged by keys, so that its order is that of one owner whatever the page:
//
//   offset 0     each owner gives its first `limit` entities with their keys; the page is cut from them
//   further on   each owner gives the keys of its first `offset + limit`; the bodies of the page are fetched from those who have them
//   limit 0      each owner counts
//
// So an offset costs every owner as many keys (shard/pages), as far as it has so many entities. Between the two rounds an entity may go:
// then the page is shorter. One that changes is shown as it is now.
//
// Not here: whom to ask (shard-client), the merge itself (merge).

import { accepted, type Result } from '../domain/refusal.js'
import type {
  DeliveryRequest,
  Found,
  ListKeys,
  ListRequest,
  ReadRequest,
  ShardReply,
  Shards,
  Standing,
} from '../messages.js'
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

/** The page of a list from the owners of the shards, several of them. */
export function gatherList(
  shards: Shards,
  asked: readonly number[],
  request: ListRequest,
  onResult: OnResult<Listed>,
): void {
  const { order, offset, limit } = request
  if (limit === 0) return gatherTotal(shards, asked, request, onResult)
  const part = offset === 0 ? 'entities' : 'keys'
  const wanted: ListRequest = { ...request, part, offset: 0, limit: Math.min(offset + limit, Number.MAX_SAFE_INTEGER) }
  askAll(shards, asksOf(asked, wanted), readPart, result => {
    if (!result.ok) return onResult(result)
    const parts = result.value
    const total = sum(parts)
    const keys = parts.map(one => one.keys)
    const page = mergedPage(keys, order, offset, limit)
    if (part === 'keys') return fetchPage(shards, asked, request.tenant, keys, page, total, onResult)
    const entities = page.map(({ part, at }) => {
      const { ranges, rangeOf } = keys[part]!
      return { path: ranges[rangeOf[at]!]![0], image: parts[part]!.images!.at(at)! }
    })
    onResult(accepted({ entities, total }))
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

/** Fetches the bodies of a page, each from the owner that told of it, all at once. */
function fetchPage(
  shards: Shards,
  asked: readonly number[],
  tenant: string,
  keys: readonly ListKeys[],
  page: readonly Picked[],
  total: number,
  onResult: OnResult<Listed>,
): void {
  const owners = [...new Set(page.map(({ part }) => part))]
  if (owners.length === 0) return onResult(accepted({ entities: [], total }))
  const picked = owners.map(owner => page.filter(({ part }) => part === owner))
  const asks = owners.map((owner, index): Ask => {
    const places = picked[index]!.map(one => standing(keys, one))
    return { shard: asked[owner]!, request: { kind: 'fetch', tenant, places } }
  })
  askAll(shards, asks, readImages, result => {
    if (!result.ok) return onResult(result)
    const images = new Map(result.value.flatMap((all, index) => all.map((image, at) => [picked[index]![at]!, image])))
    const entities = page.flatMap((one): Found[] => {
      const image = images.get(one)
      return image ? [{ path: standing(keys, one).path, image }] : []
    })
    onResult(accepted({ entities, total }))
  })
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
