// All shards of a cluster. This node's own shards are asked directly, those of other nodes through bytes. Owners may
// change.
//
// An ask about one shard goes to its owner. If there is no owner, or if the node replies that it is not the owner any
// more, nothing has happened: the ask waits until another owner is known, and is sent again. So a shard that moves is a
// pause, not a failure.
//
// An ask about everything that an owner has (a list, for example) carries the set of shards that the asking node
// expects there, as a number (`view`). If the owner has another set, merged parts would have gaps or duplicates. Then
// the reply is `moved`, and gathering begins again (shard-client.ts). So does it when the set changes before the owner has
// replied: a node that does not answer any more would otherwise keep lists waiting until their time is over.
//
// A read without an answer is asked again, within its time. A write is not: it may have happened.
//
// Before an owner creates an entity, every owner must know the service path, a row of the register (announcements.ts).
//
// Not here: the choice of owners (cluster/), the transport of bytes.

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
import { encodeReply, encodeRequest } from '../wire/wire.js'
import { Announcements, type CreationScope } from './announcements.js'

type OnReply = (reply: ShardReply) => void

/** The interval at which waiting asks look for an owner, besides after each change. */
const lookMs = 25
/** The same while so many wait: each look may ask a node that is not ready yet. */
const manyLookMs = 100
const manyWaiting = 500
/** The limit of asks that wait for an owner. Further asks get a refusal. */
const waitingMax = 10_000
/** A node that ends waits until other nodes have asked it nothing for so long: then no ask is on its way. */
const quietMs = 250
/** How long an owner tries to reach the keeper of the register: less than other nodes wait for this owner. */
const announceWaitMs = 1_000

const noOwner = -1

/** The nodes of a cluster as the broker asks them, and the current owner of each shard. */
export interface Nodes {
  readonly self: string
  /** undefined: no owner is known. */
  ownerOf(shard: number): string | undefined
  /** Whether this node may answer for a shard now. */
  serves(shard: number): boolean
  /** Whether the log lacks records that this node knows. Then the node answers for no shard until the log is back. */
  readonly isLost: boolean
  /**
   * A number for the set of shards that a node owns, as far as is known here. It changes whenever that set does. Above
   * 0.
   */
  viewOf(node: string): number
  /**
   * The same for the shards for which this node may answer now; undefined: a read of everything that it has could count
   * other shards as well.
   */
  readonly ownView: number | undefined
  /**
   * Asks a node about one of its shards, and waits for `waitMs` at most; `onOutcome` is called exactly once. Both buffers
   * may be parts of larger ones. `view`: the set of shards that the node is expected to own; 0: it does not matter.
   */
  ask(
    node: string,
    shard: number,
    request: Uint8Array,
    onOutcome: (outcome: AskOutcome) => void,
    waitMs: number,
    view: number,
  ): void
  /** Reports an unreadable message of a node. It is counted, logged, and reported to that node. */
  noteUndecodable(node: string, what: string): void
  /** Calls back when the owner of any shard has changed. */
  onChange(listener: () => void): void
}

/** A read of everything that another node has, which it has not answered yet. */
interface WideRead {
  readonly owner: string
  /** The set of shards that the node owned when it was asked. */
  readonly view: number
  readonly giveUp: () => void
}

export interface ClusteredParts {
  readonly local: Shards
  readonly nodes: Nodes
  readonly shardMap: ShardMap
  readonly clock: Pick<Clock, 'monoMs' | 'after'>
  /** All service paths of a tenant in the register; undefined: they are many. */
  readonly pathsOf: (tenant: string) => ReadonlySet<string> | undefined
  /**
   * How long an ask about one shard waits for its owner: until there is one that answers, and then for the answer. A
   * change of the register takes an owner a lease or two (register-barrier.ts).
   */
  readonly ownerWaitMs: number
  /** How long an owner may take for a list. */
  readonly listWaitMs: number
}

export class ClusteredShards implements Shards {
  /** The number of each node that has owned a shard. */
  private readonly numbers = new Map<string, number>()
  private waiting: (() => void)[] = []
  private isTimed = false
  /** Asks of other nodes so far, and those under way. */
  private incoming = 0
  private answering = 0
  /** No more asks of other nodes are taken. */
  private isEnding = false
  private readonly wideReads = new Set<WideRead>()
  private readonly announcements = new Announcements(({ tenant, path }, onReply) =>
    this.askUntil(
      this.parts.shardMap.register,
      { kind: 'announce', tenant, path },
      this.parts.clock.monoMs() + announceWaitMs,
      onReply,
    ),
  )
  /** When the owner of any shard last changed. */
  private changedMs = Number.NEGATIVE_INFINITY
  /** One shard of each owner; undefined after a change. */
  private asked: readonly number[] | undefined

  constructor(private readonly parts: ClusteredParts) {
    parts.nodes.onChange(() => {
      this.asked = undefined
      this.changedMs = parts.clock.monoMs()
      this.lookAgain()
      this.giveUpReads()
    })
  }

  /** Milliseconds since the last change of an owner. */
  get stillMs(): number {
    return this.parts.clock.monoMs() - this.changedMs
  }

  // [hot] Once per request.
  ask(shard: number, request: ShardRequest, onReply: OnReply): void {
    const untilMs = this.parts.clock.monoMs() + this.parts.ownerWaitMs
    if (request.kind === 'batch') this.askBatch(shard, request, untilMs, onReply)
    else if (isWide(request)) this.askWide(shard, request, onReply)
    else this.askUntil(shard, request, untilMs, onReply)
  }

  /** Asks an owner for everything that it has. An owner that is gone will soon be found to own nothing. */
  private askWide(shard: number, request: ShardRequest, onReply: OnReply): void {
    const { nodes, clock } = this.parts
    const owner = nodes.ownerOf(shard)
    const untilMs = clock.monoMs() + this.waitMsOf(request)
    const onAnswer = (reply: Tried): void => {
      const isGone = reply.kind === 'unreachable' || (reply.kind === 'silent' && clock.monoMs() < untilMs)
      onReply(isGone ? { kind: 'moved' } : told(reply))
    }
    const view = owner === undefined ? 0 : nodes.viewOf(owner)
    // A poll of a stream ends soon by itself.
    if (owner === undefined || owner === nodes.self || isWrite(request) || request.kind === 'stream')
      return this.askOnce(shard, request, view, onAnswer)
    const end = (reply: Tried): void => {
      if (this.wideReads.delete(read)) onAnswer(reply)
    }
    const read: WideRead = { owner, view, giveUp: () => end({ kind: 'moved' }) }
    this.wideReads.add(read)
    this.askOnce(shard, request, view, end)
  }

  /** Ends the reads of nodes that own another set of shards than when they were asked. */
  private giveUpReads(): void {
    const views = new Map<string, number>()
    for (const { owner, view, giveUp } of [...this.wideReads]) {
      let present = views.get(owner)
      if (present === undefined) {
        present = this.parts.nodes.viewOf(owner)
        views.set(owner, present)
      }
      if (present !== view) giveUp()
    }
  }

  /** Asks the owner of a shard, and after a change the next owner. */
  private askUntil(shard: number, request: ShardRequest, untilMs: number, onReply: OnReply): void {
    this.askOnce(shard, request, 0, reply => {
      if (reply.kind !== 'moved' && reply.kind !== 'unreachable' && reply.kind !== 'silent') return onReply(reply)
      const again = (): void => this.askUntil(shard, request, untilMs, onReply)
      if (this.parts.nodes.isLost || !this.wait(untilMs, again)) onReply(this.unowned(shard, reply))
    })
  }

  /** Like `askUntil`, for each item of a batch: items whose shard has moved are asked again. */
  private askBatch(shard: number, request: BatchRequest, untilMs: number, onReply: OnReply): void {
    this.askOnce(shard, request, 0, reply => {
      const replies =
        reply.kind === 'batch'
          ? [...reply.replies]
          : reply.kind === 'moved' || reply.kind === 'unreachable'
            ? request.items.map(() => ({ kind: 'moved' }) as const)
            : undefined
      if (!replies) return onReply(told(reply))
      const left = replies.flatMap(({ kind }, at) => (kind === 'moved' ? at : []))
      if (left.length === 0) return onReply({ kind: 'batch', replies })
      const again = (): void => this.askLeft(request.items, left, untilMs, replies, onReply)
      if (!this.wait(untilMs, again))
        onReply(left.length === replies.length ? this.unowned(shard, reply) : { kind: 'batch', replies })
    })
  }

  /** Asks again for the remaining items, together for each owner, and puts each reply in the place of its item. */
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

  /**
   * Asks the present owner of a shard. `view`: the set of shards that it is expected to own; 0: it does not matter.
   * `moved`: there is no owner, or it is not the owner any more. `silent`: a read without an answer.
   */
  private askOnce(shard: number, request: ShardRequest, view: number, onReply: (reply: Tried) => void): void {
    const { nodes } = this.parts
    const owner = nodes.ownerOf(shard)
    if (owner === undefined) return onReply({ kind: 'moved' })
    if (owner === nodes.self) return this.askOwn(shard, request, view, onReply)
    const onUnreadable = (what: string): void => nodes.noteUndecodable(owner, what)
    const onOutcome = (outcome: AskOutcome): void => {
      if (outcome.kind === 'unknown' && !isWrite(request)) onReply({ kind: 'silent', reason: outcome.reason })
      else onReply(replyFrom(outcome, request, onUnreadable))
    }
    nodes.ask(owner, shard, encodeRequest(request), onOutcome, this.waitMsOf(request), view)
  }

  /** How long another node may take for a request. */
  private waitMsOf({ kind }: ShardRequest): number {
    return slow.has(kind) ? this.parts.listWaitMs : this.parts.ownerWaitMs
  }

  /** Asks this node's own shards, while it owns them. */
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
    // A durable write was made by the owner. The result of a read counts only if this node still is the owner.
    if (isWrite(request)) return local.ask(shard, request, onReply)
    local.ask(shard, request, reply => onReply(isOurs() ? reply : { kind: 'moved' }))
  }

  /** Removes from the begin reply of a backup the shards that another node may have taken over. */
  private served(reply: ShardReply): ShardReply {
    if (reply.kind !== 'backup' || reply.content.what !== 'begun') return reply
    const { nodes, shardMap } = this.parts
    const { content } = reply
    const shards = content.shards.filter(shard => nodes.serves(shard))
    const isKeeper = content.isKeeper && nodes.serves(shardMap.register)
    return { kind: 'backup', content: { ...content, shards, isKeeper } }
  }

  /** Asks this node's own shards for a write that may create an entity, after all owners know its path. */
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

  /** Asks twice: a creation that was admitted before the paths were forgotten may have added an entity. */
  private askUnused(shard: number, request: UnusedRequest, onReply: OnReply): void {
    const { local } = this.parts
    local.ask(shard, request, first => {
      if (first.kind !== 'unused') return onReply(first)
      this.announcements.forget(first.tenants, tenants =>
        tenants ? local.ask(shard, { kind: 'unused', tenants }, onReply) : onReply({ kind: 'busy' }),
      )
    })
  }

  // [hot] Once per ask of another node.
  onAsk(shard: number, request: Uint8Array, onReply: (reply: Uint8Array) => void, view: number, node: string): void {
    const { nodes, shardMap } = this.parts
    const { shards } = shardMap.placement
    this.incoming++
    if (this.isEnding) return onReply(encodeReply({ kind: 'moved' }))
    this.answering++
    answerBytes(
      { shard, request, shards },
      (decoded, onDecoded) => this.askOwn(shard, decoded, view, onDecoded),
      reply => {
        this.answering--
        onReply(reply)
      },
      what => nodes.noteUndecodable(node, what),
    )
  }

  /**
   * Takes no more asks of other nodes: they wait for the next owner. Calls back when those under way are answered, and
   * none has come for a moment: then none is on its way any more.
   */
  end(onAnswered: () => void): void {
    this.isEnding = true
    const { incoming } = this
    this.parts.clock.after(quietMs, () => {
      if (this.answering === 0 && this.incoming === incoming) onAnswered()
      else this.end(onAnswered)
    })
  }

  /** Shards without an owner count as one owner: a request to all owners must notice that one is missing. */
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

  /** Calls `again` when an owner may be known. Returns false if it is too late for that. */
  private wait(untilMs: number, again: () => void): boolean {
    const { clock } = this.parts
    if (clock.monoMs() >= untilMs || this.waiting.length >= waitingMax) return false
    this.waiting.push(again)
    this.lookLater()
    return true
  }

  private lookLater(): void {
    if (this.isTimed) return
    this.isTimed = true
    this.parts.clock.after(this.waiting.length < manyWaiting ? lookMs : manyLookMs, () => {
      this.isTimed = false
      this.lookAgain()
    })
  }

  private lookAgain(): void {
    const waiting = this.waiting
    this.waiting = []
    for (const again of waiting) again()
  }

  private unowned(shard: number, reply: Tried): ShardReply {
    if (this.parts.nodes.isLost) return { kind: 'unreachable', reason: 'the log engine has lost data of this cluster' }
    return reply.kind !== 'moved' ? told(reply) : { kind: 'unreachable', reason: `no node answers for shard ${shard}` }
  }
}

/** The scope in which a request may create an entity. All items of a batch have one scope. */
function newScope(request: ShardRequest): CreationScope | undefined {
  if (request.kind === 'batch') return request.items[0] && newScope(request.items[0])
  return 'target' in request && mayCreate(request) ? request.target : undefined
}

const wide: ReadonlySet<ShardRequest['kind']> = new Set(['list', 'fetch', 'types', 'unused', 'stream'])

const slow: ReadonlySet<ShardRequest['kind']> = new Set(['list', 'backup', 'tenants'])

/** Whether the reply covers everything that the asked owner has, and not one shard. */
function isWide(request: ShardRequest): boolean {
  if (request.kind === 'find') return request.paths.length !== 1 || request.paths[0]!.endsWith('#')
  if (request.kind === 'tenants') return request.step.what !== 'delete' && request.step.what !== 'deletions'
  return wide.has(request.kind)
}

/**
 * Whether a request makes a change that the next owner, when asked again, would refuse or count twice. A repeated
 * permit request is granted again (permits.ts), and reading changes nothing.
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
  stream: false,
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
  // A command to delete a tenant may be repeated.
  tenants: false,
}

const isWrite = ({ kind }: ShardRequest): boolean => isWriteOf[kind]

/** What became of one ask. */
type Tried = ShardReply | { readonly kind: 'silent'; readonly reason: string }

const told = (reply: Tried): ShardReply => (reply.kind === 'silent' ? { ...reply, kind: 'lost' } : reply)
