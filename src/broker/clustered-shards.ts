// All shards of a cluster: this node's own are asked directly, those of others through their bytes, and owners may
// change.
//
// An ask about one shard goes to its owner. Without an owner, or when the owner says that it is none any more, nothing
// has happened: the ask waits until another owner is known, and is made again. So a shard that moves is a pause, not a
// failure.
//
// An ask about all that an owner has (a list, for one) says what the asker believes that to be. If it is something
// else, parts put together would have gaps or show something twice: the reply is `moved`, and gathering begins anew
// (shard-client.ts).
//
// Before an owner creates an entity, every owner has to know the service path, a row of the register
// (announcements.ts).
//
// Not here: who owns what (cluster/), how bytes get there.

import type { ShardMap } from '../domain/scope.js'
import {
  type BatchRequest,
  mayCreate,
  type ShardReply,
  type ShardRequest,
  type Shards,
  type UnusedRequest,
  type WriteReply,
  type WriteRequest,
} from '../messages/messages.js'
import type { Clock } from '../ports.js'
import { type AskOutcome, answerBytes, replyFrom } from '../wire/exchange.js'
import { encodeRequest } from '../wire/wire.js'
import { Announcements, type CreationScope } from './announcements.js'

type OnReply = (reply: ShardReply) => void

/** How long an ask waits for an owner, or for another one. */
const ownerWaitMs = 2_000
/** Between two looks whether there is one, besides those when something has changed. */
const lookMs = 25
/** Asks that wait for an owner; beyond, they are turned away. */
const waitingMax = 10_000
/** How long an owner waits for the keeper of the register: less than others wait for this owner. */
const announceWaitMs = 1_000

const noOwner = -1

/** The nodes of a cluster as the broker asks them, and who of them owns which shard at this moment. */
export interface Nodes {
  readonly self: string
  /** undefined: nobody, as far as is known. */
  ownerOf(shard: number): string | undefined
  /** Whether this node may answer for a shard now. */
  serves(shard: number): boolean
  /** Whether the log lacks what this node knows: then it answers for no shard until the log is back. */
  readonly isLost: boolean
  /** Stands for all that a node owns, as far as is known here; changes whenever that does. Above 0. */
  viewOf(node: string): number
  /** The same of what this node may answer for now. */
  readonly ownView: number
  /**
   * Asks a node about one of its shards; `onOutcome` is called exactly once. Both buffers may be parts of larger ones.
   * `waitMs`: for slow asks. `view`: what the asker believes that the node owns; 0: it does not matter.
   */
  ask(
    node: string,
    shard: number,
    request: Uint8Array,
    onOutcome: (outcome: AskOutcome) => void,
    waitMs: number | undefined,
    view: number,
  ): void
  /** Something that a node has sent could not be read: it is counted, and told to the log and to that node. */
  noteUndecodable(node: string, what: string): void
  /** Calls back when somebody owns something else than before. */
  onChange(listener: () => void): void
}

export interface ClusteredParts {
  readonly local: Shards
  readonly nodes: Nodes
  readonly shardMap: ShardMap
  readonly clock: Pick<Clock, 'monoMs' | 'after'>
  /** All service paths of a tenant, as the register has them; undefined: they are many. */
  readonly pathsOf: (tenant: string) => Iterable<string> | undefined
  readonly listWaitMs: number
}

export class ClusteredShards implements Shards {
  /** The number of each node that has owned something. */
  private readonly numbers = new Map<string, number>()
  private waiting: (() => void)[] = []
  private readonly announcements = new Announcements(({ tenant, path }, onReply) =>
    this.askUntil(
      this.parts.shardMap.register,
      { kind: 'announce', tenant, path },
      this.parts.clock.monoMs() + announceWaitMs,
      onReply,
    ),
  )
  /** One shard of each owner; undefined after a change. */
  private asked: readonly number[] | undefined

  constructor(private readonly parts: ClusteredParts) {
    parts.nodes.onChange(() => {
      this.asked = undefined
      this.lookAgain()
    })
  }

  // [hot] Once per request.
  ask(shard: number, request: ShardRequest, onReply: OnReply): void {
    const untilMs = this.parts.clock.monoMs() + ownerWaitMs
    if (request.kind === 'batch') this.askBatch(shard, request, untilMs, onReply)
    else if (isWide(request))
      // Whoever is gone will soon be found to own nothing.
      this.askOnce(shard, request, reply => onReply(reply.kind === 'unreachable' ? { kind: 'moved' } : reply))
    else this.askUntil(shard, request, untilMs, onReply)
  }

  /** Asks the owner of a shard, and whoever is the owner after it. */
  private askUntil(shard: number, request: ShardRequest, untilMs: number, onReply: OnReply): void {
    this.askOnce(shard, request, reply => {
      if (reply.kind !== 'moved' && reply.kind !== 'unreachable') return onReply(reply)
      const again = (): void => this.askUntil(shard, request, untilMs, onReply)
      if (this.parts.nodes.isLost || !this.wait(untilMs, again)) onReply(this.unowned(shard, reply))
    })
  }

  /** As `askUntil`, for each item of a batch: where items have moved, these are asked for again. */
  private askBatch(shard: number, request: BatchRequest, untilMs: number, onReply: OnReply): void {
    this.askOnce(shard, request, reply => {
      const replies =
        reply.kind === 'batch'
          ? [...reply.replies]
          : reply.kind === 'moved' || reply.kind === 'unreachable'
            ? request.items.map(() => ({ kind: 'moved' }) as const)
            : undefined
      if (!replies) return onReply(reply)
      const left = replies.flatMap(({ kind }, at) => (kind === 'moved' ? at : []))
      if (left.length === 0) return onReply({ kind: 'batch', replies })
      const again = (): void => this.askLeft(request.items, left, untilMs, replies, onReply)
      if (!this.wait(untilMs, again))
        onReply(left.length === replies.length ? this.unowned(shard, reply) : { kind: 'batch', replies })
    })
  }

  /** Asks for the items that are left, of each owner together, and puts the replies where they belong. */
  private askLeft(
    items: readonly WriteRequest[],
    left: readonly number[],
    untilMs: number,
    replies: (WriteReply | ShardReply)[],
    onReply: OnReply,
  ): void {
    const owners = new Map<number, { readonly shard: number; readonly places: number[] }>()
    for (const at of left) {
      const { tenant, path, id } = items[at]!.target
      const shard = this.parts.shardMap.shardOf(tenant, path, id)
      const owner = this.ownerOf(shard)
      const together = owners.get(owner)
      if (together) together.places.push(at)
      else owners.set(owner, { shard, places: [at] })
    }
    let missing = owners.size
    for (const { shard, places } of owners.values())
      this.askBatch(shard, { kind: 'batch', items: places.map(at => items[at]!) }, untilMs, reply => {
        for (const [index, at] of places.entries())
          replies[at] = reply.kind === 'batch' ? reply.replies[index]! : (reply as WriteReply)
        if (--missing === 0) onReply({ kind: 'batch', replies: replies as WriteReply[] })
      })
  }

  /** Asks whoever owns a shard now. `moved`: nobody, or not any more. */
  private askOnce(shard: number, request: ShardRequest, onReply: OnReply): void {
    const { nodes, listWaitMs } = this.parts
    const owner = nodes.ownerOf(shard)
    if (owner === undefined) return onReply({ kind: 'moved' })
    const view = isWide(request) ? nodes.viewOf(owner) : 0
    if (owner === nodes.self) return this.askOwn(shard, request, view, onReply)
    const onUnreadable = (what: string): void => nodes.noteUndecodable(owner, what)
    const onOutcome = (outcome: AskOutcome): void => onReply(replyFrom(outcome, request, onUnreadable))
    const isSlow = slow.has(request.kind)
    nodes.ask(owner, shard, encodeRequest(request), onOutcome, isSlow ? listWaitMs : undefined, view)
  }

  /** Asks this node's own shards, as long as they are. */
  private askOwn(shard: number, request: ShardRequest, view: number, onReply: OnReply): void {
    const { local, nodes } = this.parts
    if (request.kind === 'admin') return local.ask(shard, request, onReply)
    if (request.kind === 'backup') return local.ask(shard, request, reply => onReply(this.served(reply)))
    const isOurs = isWide(request) ? (): boolean => view === nodes.ownView : (): boolean => nodes.serves(shard)
    if (!isOurs()) return onReply({ kind: 'moved' })
    const scope = newScope(request)
    if (scope) return this.askCreation(scope, shard, request, onReply)
    if (request.kind === 'unused')
      return this.askUnused(shard, request, reply => onReply(isOurs() ? reply : { kind: 'moved' }))
    // A write that is durable was made by the owner; what was read counts only if we still are.
    if (isWrite(request)) return local.ask(shard, request, onReply)
    local.ask(shard, request, reply => onReply(isOurs() ? reply : { kind: 'moved' }))
  }

  /** Leaves out of the beginning of a backup the shards that another node may have taken over. */
  private served(reply: ShardReply): ShardReply {
    if (reply.kind !== 'backup' || reply.told.what !== 'begun') return reply
    const { nodes, shardMap } = this.parts
    const { told } = reply
    const shards = told.shards.filter(shard => nodes.serves(shard))
    const isKeeper = told.isKeeper && nodes.serves(shardMap.register)
    return { kind: 'backup', told: { ...told, shards, isKeeper } }
  }

  /** Asks this node's own shards for what may create an entity, once all owners have heard of its path. */
  private askCreation(scope: CreationScope, shard: number, request: ShardRequest, onReply: OnReply): void {
    const { announcements } = this
    const { local, nodes } = this.parts
    if (announcements.has(scope)) return local.ask(shard, request, announcements.letThrough(onReply))
    announcements.announce(scope, reply => {
      if (reply.kind === 'lost' || reply.kind === 'failed') onReply({ kind: 'unreachable', reason: reply.reason })
      else if (reply.kind !== 'done') onReply(reply)
      else if (!nodes.serves(shard)) onReply({ kind: 'moved' })
      else local.ask(shard, request, announcements.letThrough(onReply))
    })
  }

  /** Asks twice: creations that were let through before the paths were forgotten may have brought an entity. */
  private askUnused(shard: number, request: UnusedRequest, onReply: OnReply): void {
    const { local } = this.parts
    local.ask(shard, request, first => {
      if (first.kind !== 'unused') return onReply(first)
      this.announcements.forget(first.tenants, tenants =>
        tenants ? local.ask(shard, { kind: 'unused', tenants }, onReply) : onReply({ kind: 'busy' }),
      )
    })
  }

  onAsk(shard: number, request: Uint8Array, onReply: (reply: Uint8Array) => void, view: number, node: string): void {
    const { nodes, shardMap } = this.parts
    const { shards } = shardMap.placement
    answerBytes(
      { shard, request, shards },
      (decoded, tell) => this.askOwn(shard, decoded, view, tell),
      onReply,
      what => nodes.noteUndecodable(node, what),
    )
  }

  /** Shards without an owner count as one owner: a request to all owners has to find out that one is missing. */
  owners(): readonly number[] {
    if (!this.asked) {
      const shards = new Map<number, number>()
      const { shards: count } = this.parts.shardMap.placement
      for (let shard = 0; shard < count; shard++) {
        const owner = this.ownerOf(shard)
        if (!shards.has(owner)) shards.set(owner, shard)
      }
      this.asked = [...shards.values()]
    }
    return this.asked
  }

  ownerOf(shard: number): number {
    const owner = this.parts.nodes.ownerOf(shard)
    if (owner === undefined) return noOwner
    let number = this.numbers.get(owner)
    if (number === undefined) {
      number = this.numbers.size
      this.numbers.set(owner, number)
    }
    return number
  }

  pathsOf(tenant: string): Iterable<string> | undefined {
    return this.parts.pathsOf(tenant)
  }

  /** Calls `again` when an owner may be known, unless it is too late for that. */
  private wait(untilMs: number, again: () => void): boolean {
    const { clock } = this.parts
    if (clock.monoMs() >= untilMs || this.waiting.length >= waitingMax) return false
    if (this.waiting.length === 0) clock.after(lookMs, () => this.lookAgain())
    this.waiting.push(again)
    return true
  }

  private lookAgain(): void {
    const waiting = this.waiting
    this.waiting = []
    for (const again of waiting) again()
  }

  private unowned(shard: number, reply: ShardReply): ShardReply {
    if (this.parts.nodes.isLost) return { kind: 'unreachable', reason: 'the log engine has lost data of this cluster' }
    return reply.kind === 'unreachable' ? reply : { kind: 'unreachable', reason: `no node answers for shard ${shard}` }
  }
}

/** Where a request may create an entity; of a batch all items have one scope. */
function newScope(request: ShardRequest): CreationScope | undefined {
  if (request.kind === 'batch') return request.items[0] && newScope(request.items[0])
  return 'target' in request && mayCreate(request) ? request.target : undefined
}

const wide: ReadonlySet<ShardRequest['kind']> = new Set(['list', 'fetch', 'types', 'unused'])

const slow: ReadonlySet<ShardRequest['kind']> = new Set(['list', 'backup', 'tenants'])

/** Whether the reply is about all that the asked owner has, and not about one shard. */
function isWide(request: ShardRequest): boolean {
  if (request.kind === 'find') return request.paths.length !== 1 || request.paths[0]!.endsWith('#')
  if (request.kind === 'tenants') return request.step.what !== 'delete' && request.step.what !== 'deletions'
  return wide.has(request.kind)
}

/**
 * Whether a request changes something that, made again by the next owner, would be refused or be counted twice. What is
 * claimed again is granted again (claims.ts), and learning changes nothing.
 */
const isWriteOf: Readonly<Record<ShardRequest['kind'], boolean>> = {
  create: true,
  append: true,
  appendStrict: true,
  update: true,
  replace: true,
  deleteAttributes: true,
  updateAttribute: true,
  updateValue: true,
  deleteAttribute: true,
  deleteEntity: true,
  expire: true,
  batch: true,
  announce: true,
  createSubscription: true,
  changeSubscription: true,
  removeSubscription: true,
  createRegistration: true,
  changeRegistration: true,
  removeRegistration: true,
  news: true,
  handIn: true,
  retryDeliveries: true,
  find: false,
  list: false,
  fetch: false,
  types: false,
  unused: false,
  findSubscription: false,
  listSubscriptions: false,
  progress: false,
  findRegistration: false,
  listRegistrations: false,
  claim: false,
  follow: true,
  deliveries: false,
  admin: false,
  backup: false,
  // An order to delete a tenant may be given twice.
  tenants: false,
}

const isWrite = ({ kind }: ShardRequest): boolean => isWriteOf[kind]
