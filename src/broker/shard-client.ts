// The one caller of `ask`: finds the shard, asks, and turns what comes back into a result.
//
// A refusal stays a refusal wherever it was decided. `busy` becomes Unavailable, since nothing has happened; a failure becomes an
// internal error, since nobody knows what has happened.

import { compareSortValues, sortValues } from '../domain/order.js'
import { accepted, done, type Result, refusals, refused } from '../domain/refusal.js'
import type { ShardMap } from '../domain/scope.js'
import { decodeImage, imageCreated } from '../image.js'
import type {
  FindRequest,
  Found,
  ListRequest,
  ShardReply,
  Shards,
  TypeSummary,
  TypesRequest,
  WriteRequest,
} from '../messages.js'

export type OnResult<T> = (result: Result<T>) => void

export interface Listed {
  readonly entities: readonly Found[]
  /** Matches regardless of offset and limit. */
  readonly total: number
}

export class ShardClient {
  private readonly shards: Shards
  private readonly shardMap: ShardMap

  constructor(shards: Shards, shardMap: ShardMap) {
    this.shards = shards
    this.shardMap = shardMap
  }

  /** Asks the one shard where the target lives to change it. */
  write(request: WriteRequest, onResult: OnResult<undefined>): void {
    const { tenant, path, id } = request.target
    this.shards.ask(this.shardMap.shardOf(tenant, path, id), request, reply => {
      onResult(reply.kind === 'done' ? done : refusalOf(reply))
    })
  }

  /** All entities of an id under the paths: one shard when the path is exact, else every owner. */
  find(request: FindRequest, onResult: OnResult<readonly Found[]>): void {
    const { tenant, paths, id } = request
    const exact = paths.length === 1 && !paths[0]!.endsWith('#')
    const asked = exact ? [this.shardMap.shardOf(tenant, paths[0]!, id)] : this.shards.owners()
    this.gather(
      asked,
      request,
      reply => (reply.kind === 'found' ? accepted(reply) : refusalOf(reply)),
      result => onResult(result.ok ? accepted(result.value.flatMap(({ entities }) => entities)) : result),
    )
  }

  /** A page in order of creation: each owner gives its first `offset + limit`, the page is cut from all of them. */
  list(request: ListRequest, onResult: OnResult<Listed>): void {
    const owners = this.shards.owners()
    const { offset, limit } = request
    const asked = owners.length === 1 ? request : { ...request, offset: 0, limit: limit === 0 ? 0 : offset + limit }
    this.gather(
      owners,
      asked,
      reply => (reply.kind === 'listed' ? accepted(reply) : refusalOf(reply)),
      result => {
        if (!result.ok) return onResult(result)
        const parts = result.value
        if (parts.length === 1) return onResult(accepted(parts[0]!))
        const entities = parts.flatMap(part => part.entities)
        sort(entities, request)
        const total = parts.reduce((sum, part) => sum + part.total, 0)
        onResult(accepted({ entities: entities.slice(offset, offset + limit), total }))
      },
    )
  }

  /** The types of entities that any owner has, each once. */
  types(request: TypesRequest, onResult: OnResult<readonly TypeSummary[]>): void {
    this.gather(
      this.shards.owners(),
      request,
      reply => (reply.kind === 'types' ? accepted(reply.types) : refusalOf(reply)),
      result => onResult(result.ok ? accepted(joinTypes(result.value.flat())) : result),
    )
  }

  /** Asks several shards and waits for all; the first that refuses decides. */
  private gather<T>(
    asked: readonly number[],
    request: FindRequest | ListRequest | TypesRequest,
    read: (reply: ShardReply) => Result<T>,
    onResult: OnResult<readonly T[]>,
  ): void {
    const parts: T[] = []
    let missing = asked.length
    let ended = false
    for (const [index, shard] of asked.entries()) {
      this.shards.ask(shard, request, reply => {
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
}

function joinTypes(parts: readonly TypeSummary[]): readonly TypeSummary[] {
  const joined = new Map<string, TypeSummary>()
  for (const { type, count, attributes } of parts) {
    const known = joined.get(type)
    joined.set(type, {
      type,
      count: count + (known?.count ?? 0),
      attributes: [...(known?.attributes ?? []), ...attributes],
    })
  }
  return [...joined.values()]
}

/** Puts the parts of a page from several owners in order. */
function sort(entities: Found[], { order, selection }: ListRequest): void {
  const values = new Map(
    entities.map(found => [
      found,
      order.length > 0 ? sortValues(order, decodeImage(found.image), found.path, selection.geo) : [],
    ]),
  )
  entities.sort(
    (a, b) => compareSortValues(order, values.get(a)!, values.get(b)!) || imageCreated(a.image) - imageCreated(b.image),
  )
}

function refusalOf(reply: ShardReply): ReturnType<typeof refused> {
  switch (reply.kind) {
    case 'refused':
      return refused(reply.refusal)
    case 'busy':
      return refused(refusals.unavailable('too many requests are waiting, try again later'))
    case 'failed':
      return refused(refusals.failure(reply.reason))
    default:
      throw new Error(`a reply that does not fit its request: ${reply.kind}`)
  }
}
