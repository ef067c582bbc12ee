// The one caller of `ask`: finds the shards that a request is about, asks them, and turns the replies into a result.
//
// A request about data of one owner goes to that owner; one about subscriptions or registrations goes to the document
// owner. Where several owners may have a part, each is asked once, and their answers become one (gather). The clocks of
// owners are not synchronised, so with several owners every write gets its stamp here: a client's creations are listed
// in their order.

import type { BatchIdentity } from '../domain/entities/batch.js'
import type { Registration } from '../domain/providers/registration.js'
import { namedIds } from '../domain/queries/selection.js'
import { accepted, done, type Result, refusals, refused } from '../domain/refusal.js'
import { anyCoversPath, type Scope, type ShardMap } from '../domain/scope.js'
import type { SubscriptionProgress } from '../domain/subscriptions/subscription.js'
import { mergeProgress } from '../domain/subscriptions/subscription-status.js'
import type {
  DeliveriesRequest,
  DeliveryReport,
  FindRequest,
  FoundEntity,
  KnownSubscription,
  ListRequest,
  Origin,
  RegistrationRead,
  RegistrationWrite,
  RetryDeliveriesRequest,
  ShardReply,
  Shards,
  SubscriptionRead,
  SubscriptionWrite,
  TenantsRequest,
  TypeSummary,
  TypesRequest,
  WriteRequest,
} from '../messages/messages.js'
import type { Clock, Stamps } from '../ports.js'
import { askAll, type GatherLimits, gatherList, mergeReports, type ShardAsk } from './gather.js'
import { type Listed, type OnResult, refusalOf } from './replies.js'

/** The limit of shards that are examined to find the owners to ask. With more shards every owner is asked. */
const shardsCountedMax = 512

/**
 * How long a read is repeated because shards have no owner, or another one. A node that leaves or joins moves its shards
 * one after the other, and on a busy machine that takes some seconds: while they move, a read waits for longer. Keep
 * both below the client's own timeout.
 */
const steadyMsMax = 8_000
const movingMsMax = 16_000
/** Shards are moving if one has got an owner so lately: within a rest between two rounds of moves, and the next round. */
const stillMsMax = 6_000
/** The pause before a repetition, and when many shards move. */
const againMs = 20
const laterMs = 50
const manyMs = 1_000
/** A read that has waited for so long asks for a rest of the shards, at each repetition. */
const restlessMs = 400
/** Reads that wait so at a node. Further ones get their refusal at once. */
export const unsteadyReadsMax = 1_000

/** Bytes of entities that one of several owners sends in one reply. */
const onePieceBytesMax = 8 * 1024 * 1024

const unlimited: GatherLimits = {
  answerBytesMax: Number.MAX_SAFE_INTEGER,
  room: { open: () => ({ take: () => true, release: () => {} }) },
}

/** For reads of several owners where owners change. */
export interface OwnerChanges {
  readonly clock: Pick<Clock, 'monoMs' | 'after'>
  /** Asks that the shards move no further for a moment. */
  readonly rest: () => void
  /** Milliseconds since the last change of an owner. */
  readonly stillMs: () => number
}

/** A page of subscriptions, with what all owners know of each. */
export interface KnownPage {
  readonly subscriptions: readonly KnownSubscription[]
  /** Matches regardless of offset and limit. */
  readonly total: number
}

export interface RegistrationPage {
  readonly registrations: readonly Registration[]
  /** Matches regardless of offset and limit. */
  readonly total: number
}

/**
 * More than the notifications that one step of a batch causes at an owner, times owners. The numbers of the next step
 * begin after them.
 */
const numbersPerStep = 1_000_000_000

type OnReply = (index: number, reply: ShardReply) => void

/** Writes for one owner, one of its shards, and the index of each among all writes. */
interface Together {
  readonly shard: number
  readonly origin: Origin
  readonly items: WriteRequest[]
  readonly indexes: number[]
}

export class ShardClient {
  /** Reads that wait until owners do not change any more. */
  private unsteady = 0

  /**
   * `stamps` gives writes their moment; not needed with one owner. `changes`: present where owners change, for reads that
   * are repeated then. `gathering`: the limits of a page of entities.
   */
  constructor(
    private readonly shards: Shards,
    private readonly shardMap: ShardMap,
    private readonly stamps?: Pick<Stamps, 'next'>,
    private readonly changes?: OwnerChanges,
    private readonly gathering: GatherLimits = unlimited,
  ) {}

  write(request: WriteRequest, onResult: OnResult<undefined>): void {
    this.shards.ask(this.shardOf(request), this.stamped(request), reply => {
      onResult(reply.kind === 'done' ? done : refusalOf(reply, 'write'))
    })
  }

  // [hot] Once per entity of a batch. A caller that waits must not keep references to the requests (batch.ts), so the
  // functions that make the callbacks see nothing else of them.
  /**
   * Sends several writes, in order for each id, and reports the reply to each. Writes for one owner are sent together,
   * and answered together.
   */
  writeAll(requests: readonly WriteRequest[], onReply: OnReply): void {
    const owners = this.shards.owners()
    if (owners.length === 1) return this.askTogether(owners[0]!, requests, undefined, onReply)
    for (const { shard, indexes, items } of this.byOwner(requests)) this.askTogether(shard, items, indexes, onReply)
  }

  /** `indexes`: the index of each item among all writes; undefined: its own index. */
  private askTogether(
    shard: number,
    items: readonly WriteRequest[],
    indexes: readonly number[] | undefined,
    onReply: OnReply,
  ): void {
    const count = items.length
    this.shards.ask(shard, { kind: 'batch', items }, reply => {
      for (let at = 0; at < count; at++)
        onReply(indexes ? indexes[at]! : at, reply.kind === 'batch' ? (reply.replies[at] as ShardReply) : reply)
    })
  }

  // [hot] Once per read by id.
  /**
   * All entities of an id under the paths, in no order. For an exact path it asks one shard, else all owners that may
   * have one.
   */
  find(request: FindRequest, onResult: OnResult<readonly FoundEntity[]>): void {
    const { tenant, paths, id } = request
    if (paths.length !== 1 || paths[0]!.endsWith('#'))
      return this.steadily(onResult, onOne => this.findUnder(request, onOne))
    const shard = this.shardMap.shardOf(tenant, paths[0]!, id)
    this.shards.ask(shard, request, reply => onResult(readFound(reply)))
  }

  private findUnder(request: FindRequest, onResult: OnResult<readonly FoundEntity[]>): void {
    const owners = this.shards.owners()
    if (owners.length > 1) return this.findEverywhere(request, onResult)
    this.shards.ask(owners[0]!, request, reply => onResult(readFound(reply)))
  }

  /** Runs a read that spans several owners, and repeats it if a shard changes owner meanwhile. */
  private steadily<T>(onResult: OnResult<T>, read: (onResult: OnResult<T>) => void): void {
    if (!this.changes) return read(onResult)
    const { clock, rest, stillMs } = this.changes
    const beganMs = clock.monoMs()
    let isWaiting = false
    const end = (result: Result<T>): void => {
      if (isWaiting) this.unsteady--
      onResult(result)
    }
    const attempt = (): void =>
      read(result => {
        if (result.ok || result.refusal.code !== 'ownerChanging') return end(result)
        const tookMs = clock.monoMs() - beganMs
        const tookMsMax = stillMs() < stillMsMax ? movingMsMax : steadyMsMax
        if (tookMs > tookMsMax || (!isWaiting && this.unsteady >= unsteadyReadsMax)) return end(result)
        if (!isWaiting) this.unsteady++
        isWaiting = true
        if (tookMs >= restlessMs) rest()
        clock.after(tookMs < manyMs ? againMs : laterMs, attempt)
      })
    attempt()
  }

  private findEverywhere(request: FindRequest, onResult: OnResult<readonly FoundEntity[]>): void {
    const asks =
      this.findAsks(request) ?? this.concerned(request, new Set([request.id])).map(shard => ({ shard, request }))
    const [first] = asks
    if (!first) return onResult(accepted([]))
    if (asks.length === 1) return this.shards.ask(first.shard, first.request, reply => onResult(readFound(reply)))
    askAll(this.shards, asks, readFound, result => onResult(result.ok ? accepted(result.value.flat()) : result))
  }

  /** The owners to ask, with the paths for each, if the paths of the tenant are known; undefined when they are not. */
  private findAsks(request: FindRequest): ShardAsk[] | undefined {
    const { tenant, id } = request
    const known = this.shards.pathsOf(tenant)
    if (!known) return undefined
    const asks = new Map<number, { shard: number; paths: string[] }>()
    for (const path of known) {
      if (!anyCoversPath(request.paths, path)) continue
      const shard = this.shardMap.shardOf(tenant, path, id)
      const owner = this.shards.ownerOf(shard)
      const ask = asks.get(owner)
      if (ask) ask.paths.push(path)
      else asks.set(owner, { shard, paths: [path] })
    }
    return [...asks.values()].map(({ shard, paths }) => ({ shard, request: { ...request, paths } }))
  }

  list(request: ListRequest, onResult: OnResult<Listed>): void {
    this.steadily(onResult, onOne => this.listOnce(request, onOne))
  }

  private listOnce(request: ListRequest, onResult: OnResult<Listed>): void {
    const owners = this.shards.owners()
    const asked = owners.length === 1 ? owners : this.concerned(request, namedIds(request.selection))
    const { gathering } = this
    if (asked.length > 1) return gatherList(this.shards, asked, request, gathering, onResult)
    // A reply of another owner comes in one piece, so the entities of a large page are fetched.
    const { answerBytesMax } = gathering
    const bytesMax = owners.length === 1 ? answerBytesMax : Math.min(answerBytesMax, onePieceBytesMax)
    this.shards.ask(asked[0]!, { ...request, bytesMax }, reply => {
      if (reply.kind === 'listed') return onResult(accepted(reply))
      if (reply.kind !== 'large') return onResult(refusalOf(reply, 'read'))
      if (bytesMax === answerBytesMax) return onResult(refused(refusals.answerTooLarge(answerBytesMax)))
      gatherList(this.shards, asked, request, gathering, onResult)
    })
  }

  /** The types of entities that any owner has, each once, in no order. */
  types(request: TypesRequest, onResult: OnResult<readonly TypeSummary[]>): void {
    this.steadily(onResult, onOne => this.typesOnce(request, onOne))
  }

  private typesOnce(request: TypesRequest, onResult: OnResult<readonly TypeSummary[]>): void {
    askAll(
      this.shards,
      this.concerned(request).map(shard => ({ shard, request })),
      reply => (reply.kind === 'types' ? accepted(reply.types) : refusalOf(reply, 'read')),
      result => {
        if (!result.ok) return onResult(result)
        const [only, ...others] = result.value
        onResult(accepted(only && others.length === 0 ? only : joinTypes(result.value.flat())))
      },
    )
  }

  /** Asks the keeper of the register to change a subscription or a registration. */
  changeDocument(request: SubscriptionWrite | RegistrationWrite, onResult: OnResult<undefined>): void {
    this.shards.ask(this.shardMap.register, request, reply => {
      onResult(reply.kind === 'done' ? done : refusalOf(reply, 'write'))
    })
  }

  /** Asks the document owner for subscriptions, and all other owners for the outcomes of their notifications. */
  readSubscriptions(request: SubscriptionRead, onResult: OnResult<KnownPage>): void {
    const { tenant } = request
    const register = this.shardMap.register
    this.shards.ask(register, request, reply => {
      if (reply.kind !== 'subscriptions') return onResult(refusalOf(reply, 'read'))
      const { subscriptions, total } = reply
      const others = this.shards.owners().filter(shard => this.shards.ownerOf(shard) !== this.shards.ownerOf(register))
      if (others.length === 0 || subscriptions.length === 0) return onResult(accepted({ subscriptions, total }))
      const ids = subscriptions.map(({ subscription }) => subscription.id)
      const asks = others.map((shard): ShardAsk => ({ shard, request: { kind: 'progress', tenant, ids } }))
      askAll(this.shards, asks, readProgress, result => {
        if (!result.ok) return onResult(result)
        const merged = subscriptions.map(({ subscription, progress }, at) => ({
          subscription,
          progress: mergeProgress([progress, ...result.value.map(parts => parts[at]!)]),
        }))
        onResult(accepted({ subscriptions: merged, total }))
      })
    })
  }

  readRegistrations(request: RegistrationRead, onResult: OnResult<RegistrationPage>): void {
    this.shards.ask(this.shardMap.register, request, reply => {
      onResult(reply.kind === 'registrations' ? accepted(reply) : refusalOf(reply, 'read'))
    })
  }

  /** Asks every owner for the outcomes of a subscription's notifications. */
  deliveries(request: DeliveriesRequest, onResult: OnResult<DeliveryReport>): void {
    askAll(this.shards, this.everywhere(request), readReport, result =>
      onResult(result.ok ? accepted(mergeReports(result.value, request.limit)) : result),
    )
  }

  /** Every owner sends the dead letters of a subscription again. Returns their number. */
  retryDeliveries(request: RetryDeliveriesRequest, onResult: OnResult<number>): void {
    askAll(this.shards, this.everywhere(request), readRetried, result =>
      onResult(result.ok ? accepted(result.value.reduce((sum, count) => sum + count, 0)) : result),
    )
  }

  /** Asks every owner, and again if a shard changes owner meanwhile. */
  askOwners<T>(
    request: TenantsRequest,
    read: (reply: ShardReply) => Result<T>,
    onResult: OnResult<readonly T[]>,
  ): void {
    this.steadily(onResult, onOne => askAll(this.shards, this.everywhere(request), read, onOne))
  }

  /** Asks every owner for the entities that a tenant has there, and how many of these are missing. */
  countMissing<T>(
    { tenant, path }: Scope,
    entities: readonly BatchIdentity[],
    read: (reply: ShardReply) => Result<T>,
    onResult: OnResult<readonly T[]>,
  ): void {
    const ofOwners = new Map<number, BatchIdentity[]>()
    for (const entity of entities) {
      const owner = this.shards.ownerOf(this.shardMap.shardOf(tenant, path, entity.id))
      const known = ofOwners.get(owner)
      if (known) known.push(entity)
      else ofOwners.set(owner, [entity])
    }
    const asks = this.shards.owners().map((shard): ShardAsk => {
      const missing = { path, entities: ofOwners.get(this.shards.ownerOf(shard)) ?? [] }
      return { shard, request: { kind: 'tenants', step: { what: 'creations', tenant, needsRoom: false, missing } } }
    })
    askAll(this.shards, asks, read, onResult)
  }

  /** Asks the keeper of the register. */
  askKeeper<T>(request: TenantsRequest, read: (reply: ShardReply) => Result<T>, onResult: OnResult<T>): void {
    this.shards.ask(this.shardMap.register, request, reply => onResult(read(reply)))
  }

  private everywhere(request: ShardAsk['request']): readonly ShardAsk[] {
    return this.shards.owners().map(shard => ({ shard, request }))
  }

  private stamped(request: WriteRequest): WriteRequest {
    return this.stamps ? { ...request, stamp: this.stamps.next() } : request
  }

  private shardOf({ target: { tenant, path, id } }: WriteRequest): number {
    return this.shardMap.shardOf(tenant, path, id)
  }

  private byOwner(requests: readonly WriteRequest[]): Iterable<Together> {
    const owners = new Map<number, Together>()
    const origins = this.originsOf(requests)
    for (const [index, request] of requests.entries()) {
      const shard = this.shardOf(request)
      const owner = this.shards.ownerOf(shard)
      let together = owners.get(owner)
      if (!together) {
        together = { shard, origin: origins(), items: [], indexes: [] }
        owners.set(owner, together)
      }
      const item = this.stamped(request)
      together.items.push(item.origin === together.origin ? item : { ...item, origin: together.origin })
      together.indexes.push(index)
    }
    return owners.values()
  }

  /**
   * Returns a function that returns the origin of some writes, each time with its own notification numbers
   * (docs/interface/notifications.md#correlators).
   */
  private originsOf([first]: readonly WriteRequest[]): () => Origin {
    const { origin } = first as WriteRequest
    const { numbering } = origin
    if (!numbering) return () => origin
    const step = this.shards.owners().length
    let next = numbering.next
    numbering.next += numbersPerStep
    return () => ({ ...origin, numbering: { next: next++, step } })
  }

  /** One shard of each owner that may have data for a read: an owner that has none may be away. */
  private concerned(
    { tenant, paths }: { readonly tenant: string; readonly paths: readonly string[] },
    ids?: ReadonlySet<string>,
  ): readonly number[] {
    const owners = this.shards.owners()
    if (owners.length === 1 || paths.some(path => path.endsWith('#'))) return owners
    const few = ids && ids.size <= shardsCountedMax ? [...ids] : undefined
    const asked = new Map<number, number>()
    let counted = 0
    for (const path of paths) {
      const shards = few?.map(id => this.shardMap.shardOf(tenant, path, id)) ?? this.shardMap.shardsOf(tenant, path)
      counted += shards.length
      if (counted > shardsCountedMax) return owners
      for (const shard of shards) {
        const owner = this.shards.ownerOf(shard)
        if (!asked.has(owner)) asked.set(owner, shard)
      }
    }
    return asked.size === 0 ? owners : [...asked.values()]
  }
}

const readFound = (reply: ShardReply): Result<readonly FoundEntity[]> =>
  reply.kind === 'found' ? accepted(reply.entities) : refusalOf(reply, 'read')

const readProgress = (reply: ShardReply): Result<readonly SubscriptionProgress[]> =>
  reply.kind === 'progress' ? accepted(reply.parts) : refusalOf(reply, 'read')

const readReport = (reply: ShardReply): Result<DeliveryReport> =>
  reply.kind === 'deliveries' ? accepted(reply) : refusalOf(reply, 'read')

/** An unreachable owner does not mean that nothing was done: other owners were asked. To ask again is safe. */
function readRetried(reply: ShardReply): Result<number> {
  if (reply.kind === 'retried') return accepted(reply.count)
  return reply.kind === 'unreachable' ? refused(refusals.unanswered(reply.reason)) : refusalOf(reply, 'read')
}

function joinTypes(parts: readonly TypeSummary[]): readonly TypeSummary[] {
  const joined = new Map<string, TypeSummary>()
  for (const part of parts) {
    const known = joined.get(part.type)
    const { type, count } = part
    const attributes = known?.attributes.concat(part.attributes)
    joined.set(type, known && attributes ? { type, count: count + known.count, attributes } : part)
  }
  return [...joined.values()]
}
