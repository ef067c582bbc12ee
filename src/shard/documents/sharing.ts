// Telling: a home brings its changes of documents to all other owners, and says when all of them have a change.
//
// Each of the others is told in order, with one ask in flight: what changes meanwhile is the next one. Its answer says up to where it has
// everything, durably, so both sides agree whatever was lost on the way. When a process begins, or can be reached anew, it is told at once,
// if only that there is nothing new.
//
// A change is taken only while all others answer; else nothing is done, and the client is told so. If one falls silent after the
// change was made here, whether all have it is unknown; it is told when it is back. An owner that was away has every change that was
// acknowledged: nobody acknowledges without it.
//
// A home may have lost what it told, its last moments before a power cut if it does not flush: who knows more than the home could have told
// forgets all of it and learns anew.

import type { DocumentKind, ShardReply, Shards } from '../../messages/messages.js'
import type { Clock } from '../../ports.js'
import type { Shelves } from './documents.js'
import { Journal, type JournalEntry } from './journal.js'
import type { Learning } from './learning.js'

/** Bytes of changes in one ask; one change may exceed it. */
const tellBytesMax = 1024 * 1024
/** Pause before an owner is told again that did not answer. */
const retryMs = 1_000
/** How long a start waits until all owners know what the others know. */
const settleMsMax = 3_000

/** Another owner of shards. */
interface Peer {
  readonly owner: number
  /** One of its shards. */
  readonly shard: number
  /** Up to where it has said to have everything; undefined: it has not said anything yet. */
  told: number | undefined
  /** Whether it has to learn from the beginning. */
  isAnew: boolean
  /** Whether it has been told everything since it could be reached. */
  isGreeted: boolean
  isAsked: boolean
  /** Why the last ask came to nothing. */
  failure: string | undefined
  takeBack: () => void
}

interface Waiting {
  readonly revision: number
  readonly onShared: (failure?: ShardReply) => void
}

interface Grave {
  readonly revision: number
  readonly kind: DocumentKind
  readonly tenant: string
  readonly id: string
}

export class Sharing {
  readonly keepsGraves = true
  private readonly self: number
  private readonly clock: Clock
  private readonly shelves: Shelves
  private readonly learning: Learning
  private readonly journal: Journal
  /** Everything up to here is durable, and may be told. */
  private horizon: number
  private shards: Shards | undefined
  private isWhole: () => boolean = () => false
  private peers: readonly Peer[] = []
  /** In the order of revisions. */
  private waiting: Waiting[] = []
  /** Removals whose rows have to stay until all have been told. */
  private graves: Grave[]
  private onSettled: () => void = () => {}
  private hasEnded = false

  /** `entries`: what this home has, and `horizon`: no revision that it gave is above. */
  constructor(
    self: number,
    clock: Clock,
    shelves: Shelves,
    learning: Learning,
    entries: readonly JournalEntry[],
    horizon: number,
  ) {
    this.self = self
    this.clock = clock
    this.shelves = shelves
    this.learning = learning
    this.journal = new Journal(entries)
    this.horizon = horizon
    this.graves = entries.filter(({ text }) => !text)
    learning.onHeard = () => this.settle()
  }

  /** Begins to tell the others, asked through `shards`. Resolves when all know what all know, or when that takes too long. */
  begin(shards: Shards, isWhole: () => boolean): Promise<void> {
    this.shards = shards
    this.isWhole = isWhole
    this.peers = shards
      .owners()
      .map(shard => ({ owner: shards.ownerOf(shard), shard, ...unknown }))
      .filter(({ owner }) => owner !== this.self)
    return new Promise(resolve => {
      const takeBack = this.clock.after(settleMsMax, resolve)
      this.onSettled = () => {
        takeBack()
        resolve()
      }
      this.resume()
      this.settle()
    })
  }

  /** Tells everybody; to be called when one of the others can be reached anew. */
  resume(): void {
    for (const peer of this.peers) {
      peer.isGreeted = false
      this.tell(peer)
    }
  }

  /** Nobody is told any more. */
  end(): void {
    this.hasEnded = true
    for (const peer of this.peers) peer.takeBack()
  }

  /** Why no change can be taken now; undefined when one can. */
  obstacle(): ShardReply | undefined {
    const missing = this.peers.find(({ told, failure }) => told === undefined || failure !== undefined)
    if (missing) this.tell(missing)
    if (!this.shards || missing)
      return { kind: 'unreachable', reason: missing?.failure ?? 'not all parts have been told of each other' }
    return this.isWhole() ? undefined : { kind: 'unreachable', reason: 'one of its parts does not answer' }
  }

  /** Notes a change that has been staged. */
  note(entry: JournalEntry): void {
    this.journal.append(entry)
    if (!entry.text) this.graves.push(entry)
  }

  /** A change has become durable: tells the others, and calls back when all have it, or with what is to be replied when that is unknown. */
  share(revision: number, onShared: (failure?: ShardReply) => void): void {
    this.horizon = revision
    this.waiting.push({ revision, onShared })
    const failed = this.peers.find(({ failure }) => failure !== undefined)
    if (failed) this.giveUp(failed)
    for (const peer of this.peers) this.tell(peer)
    this.settle()
  }

  private tell(peer: Peer): void {
    const { shards, horizon } = this
    if (!shards || peer.isAsked || this.hasEnded) return
    const isNew = peer.told === undefined
    const after = peer.told ?? horizon
    if (!isNew && peer.isGreeted && after >= horizon) return
    peer.takeBack()
    peer.isAsked = true
    const { changes, isAll } = this.journal.extract(after, horizon, tellBytesMax)
    const upTo = isAll ? horizon : changes.at(-1)!.revision
    const { isAnew } = peer
    shards.ask(peer.shard, { kind: 'learn', home: this.self, after, upTo, changes, isAll, isAnew }, reply => {
      peer.isAsked = false
      if (reply.kind !== 'learned') return this.fail(peer, reply)
      peer.failure = undefined
      const isLost = reply.upTo > this.horizon
      peer.isAnew = isLost
      peer.told = isLost ? 0 : reply.upTo
      if (isAll && !isLost && reply.upTo >= after) peer.isGreeted = true
      this.settle()
      this.tell(peer)
    })
  }

  private fail(peer: Peer, reply: ShardReply): void {
    peer.failure = 'reason' in reply ? reply.reason : 'it does not learn'
    this.giveUp(peer)
    if (this.hasEnded) return
    peer.takeBack = this.clock.after(retryMs, () => this.tell(peer))
  }

  /** Whoever waits for this one is told that nothing is known. */
  private giveUp({ told = 0, failure = '' }: Peer): void {
    const waited = this.waiting
    this.waiting = waited.filter(({ revision }) => revision <= told)
    for (const { revision, onShared } of waited) if (revision > told) onShared({ kind: 'lost', reason: failure })
  }

  /** Acts on what the others have said. */
  private settle(): void {
    // Before it has begun it knows of no others: nobody has been told anything.
    if (!this.shards) return
    const told = Math.min(...this.peers.map(peer => peer.told ?? 0))
    const first = this.waiting.findIndex(({ revision }) => revision > told)
    const shared = this.waiting.splice(0, first < 0 ? this.waiting.length : first)
    for (const { onShared } of shared) onShared()
    for (const { revision, kind, tenant, id } of this.graves) if (revision <= told) this.shelves[kind].bury(tenant, id)
    this.graves = this.graves.filter(({ revision }) => revision > told)
    this.journal.shorten(this.horizon, told)
    if (this.peers.every(({ owner, isGreeted }) => isGreeted && this.learning.hasHeard(owner))) this.onSettled()
  }
}

const unknown = {
  told: undefined,
  isAnew: false,
  isGreeted: false,
  isAsked: false,
  failure: undefined,
  takeBack: (): void => {},
}
