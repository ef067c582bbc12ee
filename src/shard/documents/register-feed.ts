// The keeper's side of the register among workers: it sends every change to all other workers, and knows the position
// of each.
//
// Each change has a number. The numbers of one life of the keeper are one epoch. The position (epoch, number) is a row
// of the store, written with the change. A copy reports its position with each answer. From that the keeper decides
// what to send: the later changes, as long as they are in memory, or else all rows, page by page. One ask to each copy
// is in flight; changes made meanwhile go into the next one.
//
// The keeper accepts a change only while all copies answer. Otherwise it refuses the change and does nothing. If a copy
// stops answering after the change is durable here, the outcome is unknown, and the client gets a 503; the copy gets
// the change when it is back.
//
// A copy is never ahead of the keeper, because changes are sent when they are durable. But where nothing is flushed, a
// power failure may remove the keeper's last changes. Then the copy's position is unknown to the keeper, and the copy
// gets all rows again.

import type { FollowRequest, RegisterPosition, ShardReply, Shards } from '../../messages/messages.js'
import type { Clock, StoreReader } from '../../ports.js'
import type { GroupCommit } from '../commit/commit.js'
import { replyAfterFailure, replyOfFailure } from '../commit/deposed.js'
import { storedPosition } from '../replicate/positions.js'
import { encodePosition, positionKey, registerRanges } from '../replicate/replicated-layout.js'
import { OperationWriter } from '../replicate/row-operations.js'
import { readPage } from '../replicate/snapshot.js'
import { mayLack, notReadable, type OnAllHave, type OnTold, type Register } from './register.js'

/** Bytes of changes, or of a page of rows, in one ask; one row may exceed it. */
const askBytesMax = 1024 * 1024
/**
 * Memory of changes kept for copies that are behind. Raising it spares copies that were away for a second the transfer
 * of all rows.
 */
const keptBytesMax = 8 * 1024 * 1024
/** Pause before a copy that did not answer is asked again. */
const retryMs = 1_000
/** The longest time for which a start waits until all copies have everything. */
const settleMsMax = 3_000

interface Change {
  readonly sequence: number
  readonly key: Buffer
  readonly row: Buffer | undefined
}

/** Another worker, which has a copy. */
interface Copy {
  /** One of its shards. */
  readonly shard: number
  /** The last change of this epoch up to which it has everything; undefined: not reported yet, or it needs all rows. */
  reached: number | undefined
  /** The transfer of all rows: the key of the last row, and the change that the rows include at least. */
  pages: { readonly after: Buffer | undefined; readonly sequence: number } | undefined
  /** Whether it has reported its position. */
  isMet: boolean
  isAsked: boolean
  /** The reason why the last ask failed. */
  failure: string | undefined
  cancelRetry: () => void
}

interface Waiting {
  readonly sequence: number
  readonly onDone: OnAllHave
}

export interface FeedParts {
  readonly store: StoreReader
  readonly commit: GroupCommit
  readonly clock: Clock
  /** The number of the register. */
  readonly register: number
}

export class RegisterFeed implements Register {
  private readonly parts: FeedParts
  /** The position at the end of the keeper's last life; undefined: there was none. */
  private readonly before: RegisterPosition | undefined
  private readonly epoch: number
  /** The number of the last change that was staged. */
  private staged: number
  /** The number of the last change that is durable. */
  private durable: number
  /** The commit that carries the last change, and the number of the last change that it carries. */
  private carrying: { readonly commit: number; last: number } | undefined
  private changes: Change[] = []
  private keptBytes = 0
  /** undefined: `begin` was not called yet. */
  private others: { readonly shards: Shards; readonly isWhole: () => boolean } | undefined
  private copies: readonly Copy[] = []
  private waiting: Waiting[] = []
  private onSettled: () => void = () => {}
  private hasEnded = false

  constructor(parts: FeedParts) {
    this.parts = parts
    const before = storedPosition(parts.store, parts.register)
    this.before = before
    this.epoch = Math.max(parts.clock.wallMs(), (before?.epoch ?? 0) + 1)
    this.staged = before?.sequence ?? 0
    this.durable = this.staged
  }

  /** Begins to feed the other owners. Resolves when all of them have everything, or after `settleMsMax`. */
  begin(shards: Shards, isWhole: () => boolean): Promise<void> {
    this.others = { shards, isWhole }
    const own = shards.ownerOf(this.parts.register)
    this.copies = shards
      .owners()
      .filter(shard => shards.ownerOf(shard) !== own)
      .map(shard => ({ shard, ...unmet }))
    return new Promise(resolve => {
      const cancel = this.parts.clock.after(settleMsMax, resolve)
      this.onSettled = () => {
        cancel()
        resolve()
      }
      this.settle()
      this.resume()
    })
  }

  /** An owner can be reached again, and may be another process. So each one is asked for its position again. */
  resume(): void {
    for (const copy of this.copies) {
      copy.isMet = false
      this.feed(copy)
    }
  }

  /** Stops feeding. */
  end(): void {
    this.hasEnded = true
    for (const copy of this.copies) copy.cancelRetry()
  }

  obstacle(): ShardReply | undefined {
    const missing = this.copies.find(({ reached, failure }) => reached === undefined || failure !== undefined)
    if (missing) this.feed(missing)
    if (!this.others || missing)
      return { kind: 'unreachable', reason: missing?.failure ?? 'not all workers have what they need' }
    return this.others.isWhole() ? undefined : { kind: 'unreachable', reason: 'a worker does not answer' }
  }

  write(key: Buffer, row: Buffer | undefined): number {
    const { commit, register } = this.parts
    const { epoch } = this
    const sequence = ++this.staged
    this.keep({ sequence, key: ownBytes(key), row: row && ownBytes(row) })
    commit.write(positionKey(register), encodePosition({ epoch, sequence, hash: noHash }))
    const carriedBy = commit.write(key, row)
    if (this.carrying?.commit === carriedBy) this.carrying.last = sequence
    else this.carry(carriedBy, sequence)
    return carriedBy
  }

  /** Changes in a commit may leave when it is durable; changes in the next one must wait. */
  private carry(commit: number, first: number): void {
    const carrying = { commit, last: first }
    this.carrying = carrying
    this.parts.commit.afterCommit(commit, failure => {
      if (failure) return
      this.durable = carrying.last
      for (const copy of this.copies) this.feed(copy)
    })
  }

  private keep(change: Change): void {
    this.changes.push(change)
    this.keptBytes += bytesOf(change)
    if (this.keptBytes <= keptBytesMax) return
    let forgotten = 0
    while (this.keptBytes > keptBytesMax / 2) this.keptBytes -= bytesOf(this.changes[forgotten++]!)
    this.changes = this.changes.slice(forgotten)
  }

  afterAll(carriedBy: number, onDone: OnTold): void {
    this.parts.commit.afterCommit(carriedBy, failure => {
      if (failure) return onDone(replyOfFailure(failure, this.parts.register))
      this.wait(this.durable, lacking => onDone(mayLack(lacking)))
    })
  }

  beforeRead(carriedBy: number, onDone: OnTold): void {
    this.parts.commit.afterCommit(carriedBy, failure => {
      if (failure) return onDone(replyAfterFailure(failure))
      const sequence = carriedBy === 0 ? (this.before?.sequence ?? 0) : this.durable
      this.wait(sequence, lacking => onDone(notReadable(lacking)))
    })
  }

  /** Waits until all copies have the changes up to a number. */
  private wait(sequence: number, onDone: OnAllHave): void {
    this.waiting.push({ sequence, onDone })
    const failed = this.copies.find(copy => copy.failure !== undefined)
    if (failed) this.giveUp(failed)
    this.settle()
  }

  /** Sends a copy the changes or rows that it lacks, if any. */
  private feed(copy: Copy): void {
    const { others } = this
    if (!others || copy.isAsked || this.hasEnded) return
    if (copy.isMet && copy.reached !== undefined && copy.reached >= this.durable) return
    copy.cancelRetry()
    copy.isAsked = true
    this.next(copy).then(
      request => others.shards.ask(copy.shard, request, reply => this.onReply(copy, request, reply)),
      (error: Error) => this.fail(copy, `the register cannot be read: ${error.message}`),
    )
  }

  /**
   * The next request for a copy. A copy that has not reported its position gets no changes, and replies with its
   * position.
   */
  private async next({ isMet, pages, reached = this.durable }: Copy): Promise<FollowRequest> {
    const { epoch, durable } = this
    const common = { kind: 'follow', epoch, before: this.before } as const
    if (!isMet) return { ...common, form: 'changes', after: durable, upTo: durable, rows: noRows }
    if (pages) {
      const { store, commit, register } = this.parts
      const { after, sequence } = pages
      const { rows, next } = await readPage(store, registerRanges(register), after, askBytesMax, 0)
      // A copy must not have rows that the keeper may lose.
      await new Promise(resolve => commit.afterFlight(resolve))
      return { ...common, form: 'page', after: sequence, upTo: sequence, rows, isFirst: after === undefined, next }
    }
    const writer = new OperationWriter()
    let upTo = reached
    for (let at = this.placeBehind(reached); at < this.changes.length; at++) {
      const { sequence, key, row } = this.changes[at]!
      if (sequence > durable || writer.length >= askBytesMax) break
      if (row) writer.put(key, row)
      else writer.del(key)
      upTo = sequence
    }
    return { ...common, form: 'changes', after: reached, upTo, rows: writer.end(0) }
  }

  /** The index of the first change after a number. */
  private placeBehind(sequence: number): number {
    return Math.max(0, sequence + 1 - (this.changes[0]?.sequence ?? this.staged + 1))
  }

  private onReply(copy: Copy, { form, next }: FollowRequest, reply: ShardReply): void {
    if (reply.kind !== 'followed') return this.fail(copy, 'reason' in reply ? reply.reason : 'it does not follow')
    copy.isAsked = false
    copy.failure = undefined
    copy.isMet = true
    const { position } = reply
    if (form === 'page' && next) copy.pages = { after: next, sequence: copy.pages!.sequence }
    else if (position?.epoch === this.epoch && this.hasChangesBehind(position.sequence)) {
      copy.pages = undefined
      copy.reached = position.sequence
    } else {
      copy.pages = { after: undefined, sequence: this.durable }
      copy.reached = undefined
    }
    this.settle()
    this.feed(copy)
  }

  private hasChangesBehind(sequence: number): boolean {
    const [oldest] = this.changes
    return sequence === this.staged || (oldest !== undefined && sequence >= oldest.sequence - 1)
  }

  private fail(copy: Copy, failure: string): void {
    copy.isAsked = false
    copy.isMet = false
    copy.pages = undefined
    copy.failure = failure
    this.giveUp(copy)
    if (this.hasEnded) return
    copy.cancelRetry = this.parts.clock.after(retryMs, () => this.feed(copy))
  }

  /** Replies to the changes that wait for this copy. It is unknown whether the copy has them. */
  private giveUp({ reached = 0, failure = '' }: Copy): void {
    const waited = this.waiting
    this.waiting = waited.filter(({ sequence }) => sequence <= reached)
    for (const { sequence, onDone } of waited) if (sequence > reached) onDone(failure)
  }

  /** Replies to the changes that all copies have. */
  private settle(): void {
    if (!this.others) return
    const reached = Math.min(...this.copies.map(copy => copy.reached ?? -1))
    const waited = this.waiting
    this.waiting = waited.filter(({ sequence }) => sequence > reached)
    for (const { sequence, onDone } of waited) if (sequence <= reached) onDone()
    if (this.copies.every(copy => copy.isMet && copy.reached !== undefined && copy.reached >= this.durable))
      this.onSettled()
  }
}

const unmet = {
  reached: undefined,
  pages: undefined,
  isMet: false,
  isAsked: false,
  failure: undefined,
  cancelRetry: (): void => {},
}

/** Workers compare positions by epoch and number alone. */
const noHash = Buffer.alloc(0)

const noRows = new OperationWriter().end(0)

/** Memory of a change, with its objects. */
const bytesOf = ({ key, row }: Change): number => key.length + (row?.length ?? 0) + changeObjectsBytes

const changeObjectsBytes = 500

/** A copy in memory of its own: a small buffer is a part of 8 KB, and would keep all of it. */
function ownBytes(bytes: Buffer): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(own)
  return own
}
