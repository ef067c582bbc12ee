// All shards, wherever they are: those of this node are asked directly, those of others through their bytes.
//
// Whoever asks cannot tell the difference, but for two replies: `unreachable` when the owner was certainly not asked, `lost` when nobody
// here knows what became of it.
//
// What may create an entity waits until all owners have heard of its service path (path-book); asks that come meanwhile keep their order.
//
// Not here: how bytes get there (cluster/), who owns what (the placement is handed in).

import {
  type AnnounceRequest,
  mayCreate,
  type ShardReply,
  type ShardRequest,
  type Shards,
} from '../messages/messages.js'
import type { AskOutcome, Owners } from '../ports.js'
import { answerBytes, replyFrom } from '../wire/exchange.js'
import { encodeRequest } from '../wire/wire.js'
import { PathBook } from './path-book.js'

type OnReply = (reply: ShardReply) => void

export interface Placement {
  readonly self: number
  /** The owner of each shard. */
  readonly owners: readonly number[]
}

export class RemoteShards implements Shards {
  private readonly local: Shards
  private readonly placement: Placement
  private readonly others: Owners
  private readonly listWaitMs: number
  /** A shard of each owner. */
  private readonly asked: readonly number[]
  private readonly book = new PathBook()
  /** Owners that have not told their paths yet. */
  private readonly untold: Set<number>
  /** Paths being announced, with who waits for that. */
  private readonly announcing = new Map<string, ((failure?: ShardReply) => void)[]>()

  /** `listWaitMs`: how long a list may take. */
  constructor(local: Shards, placement: Placement, listWaitMs: number, others: Owners) {
    this.local = local
    this.placement = placement
    this.listWaitMs = listWaitMs
    this.others = others
    const { owners } = placement
    this.untold = new Set(owners)
    this.asked = [...this.untold].map(owner => owners.indexOf(owner))
  }

  // [hot] Once per request.
  ask(shard: number, request: ShardRequest, onReply: OnReply): void {
    const scope = newScope(request)
    if (!scope || this.book.isAnnounced(scope.tenant, scope.path)) return this.send(shard, request, onReply)
    this.announce(scope.tenant, scope.path, failure => {
      if (failure) onReply(failure)
      else this.send(shard, request, onReply)
    })
  }

  private send(shard: number, request: ShardRequest, onReply: OnReply): void {
    const owner = this.placement.owners[shard] as number
    if (owner === this.placement.self) return this.askOwn(shard, request, onReply)
    const onUnreadable = (what: string): void => this.others.noteUndecodable(owner, what)
    const onOutcome = (outcome: AskOutcome): void => onReply(replyFrom(outcome, request, onUnreadable))
    const waitMs = request.kind === 'list' ? this.listWaitMs : undefined
    this.others.ask(owner, shard, encodeRequest(request), onOutcome, waitMs)
  }

  private askOwn(shard: number, request: ShardRequest, onReply: OnReply): void {
    if (request.kind === 'announce') this.book.hear(request.tenant, request.path)
    if (request.kind !== 'paths') return this.local.ask(shard, request, onReply)
    this.local.ask(shard, request, reply =>
      onReply(reply.kind === 'paths' ? { kind: 'paths', tenants: [...reply.tenants, ...this.book.all] } : reply),
    )
  }

  /** What another node asks of this one's shards, through bytes. `onUnreadable` is told when they are none. */
  onAsk(
    shard: number,
    request: Uint8Array,
    onReply: (reply: Uint8Array) => void,
    onUnreadable: (what: string) => void,
  ): void {
    const shards = this.placement.owners.length
    answerBytes({ shard, request, shards }, (decoded, tell) => this.askOwn(shard, decoded, tell), onReply, onUnreadable)
  }

  owners(): readonly number[] {
    return this.asked
  }

  ownerOf(shard: number): number {
    return this.placement.owners[shard] as number
  }

  pathsOf(tenant: string): Iterable<string> | undefined {
    return this.book.few(tenant)
  }

  /** Asks owners that have not told it yet what paths they have; to be called whenever one of them can be reached anew. */
  learn(): void {
    for (const owner of this.untold)
      this.send(this.placement.owners.indexOf(owner), { kind: 'paths' }, reply => {
        if (reply.kind !== 'paths') return
        for (const [tenant, paths] of reply.tenants) this.book.hearAll(tenant, paths)
        this.untold.delete(owner)
        this.book.isComplete = this.untold.size === 0
      })
  }

  /** Tells all owners of a path; `onDone` is told the reply of one that could not be told, if any. */
  private announce(tenant: string, path: string, onDone: (failure?: ShardReply) => void): void {
    const request: AnnounceRequest = { kind: 'announce', tenant, path }
    const key = JSON.stringify([tenant, path])
    const waiting = this.announcing.get(key)
    if (waiting) return void waiting.push(onDone)
    this.announcing.set(key, [onDone])
    let failure: ShardReply | undefined
    let missing = this.asked.length
    for (const shard of this.asked)
      this.send(shard, request, reply => {
        if (reply.kind !== 'done') failure = { kind: 'unreachable', reason: reasonOf(reply) }
        if (--missing > 0) return
        if (!failure) this.book.noteAnnounced(tenant, path)
        const told = this.announcing.get(key) ?? []
        this.announcing.delete(key)
        for (const tell of told) tell(failure)
      })
  }
}

/** Where a request may create an entity; of a batch all items have one scope. */
function newScope(request: ShardRequest): { readonly tenant: string; readonly path: string } | undefined {
  if (request.kind === 'batch') return request.items[0] && newScope(request.items[0])
  return 'target' in request && mayCreate(request) ? request.target : undefined
}

/** Nothing has been created, whatever became of the announcement. */
const reasonOf = (reply: ShardReply): string => ('reason' in reply ? reply.reason : 'it does not take announcements')
