// What became of notifications: the last tries of each subscription, and its dead letters, those that were given up. One owner's part.
//
// Tries are in memory and go with the process. A dead letter is a row of the store, written and deleted in the commit of the tick that decides
// it: so whoever deletes a row of the outbox in the tick in which it is buried here, or writes one in the tick in which it is dug out, never has
// both or neither. Memory has the keys of letters alone.
//
//   subscription A   oldest ------------> newest        each has its tries in the order of time, so the oldest of all of them
//                      |                    |           is the first of its own list, too
//   all              oldest --> . --> . --> newest
//                             |       |
//   subscription B          oldest -> newest
//
// Nothing is kept for a subscription that is not there, and everything goes with it.
//
// Not here: what a letter holds and how it is sent again (`onRetry`), when a notification is given up.

import assert from 'node:assert/strict'
import type { ShardMap } from '../../domain/scope.js'
import { Unreadable } from '../../domain/unreadable.js'
import type {
  DeliveriesRequest,
  DeliveryRecord,
  DeliveryReport,
  DeliveryRequest,
  ShardReply,
} from '../../messages/messages.js'
import type { Clock, Logger, Range, Stamps, Store } from '../../ports.js'
import { allRowsOf } from '../../rows.js'
import type { GroupCommit } from '../commit/commit.js'
import { isDeposed, replyAfterFailure } from '../commit/deposed.js'
import type { Subscriptions } from '../documents/forms.js'
import { nested } from '../nested.js'
import { decodeLetterRow, encodeLetterRow, letterKey, parseLetterKey } from './notification-layout.js'

type OnReply = (reply: ShardReply) => void

export interface DeliveryLimits {
  /** Tries kept for each subscription, and for all together: 250 bytes each. */
  readonly deliveriesKept: number
  readonly deliveriesKeptInAll: number
  /** Dead letters of each subscription, and of all together: on disk what it takes to send one again, in memory 100 bytes. */
  readonly deadLettersMax: number
  readonly deadLettersMaxInAll: number
  /** Bytes of dead letters that are read at once, to be listed or to be sent again; one may exceed it. A tick waits for that. */
  readonly readBytesMax: number
}

export const deliveryLimitsDefault: DeliveryLimits = {
  deliveriesKept: 100,
  deliveriesKeptInAll: 50_000,
  deadLettersMax: 1000,
  deadLettersMaxInAll: 100_000,
  readBytesMax: 4 * 1024 * 1024,
}

export interface DeliveriesParts {
  readonly subscriptions: Subscriptions
  readonly shardMap: ShardMap
  readonly stamps: Pick<Stamps, 'next'>
  readonly clock: Pick<Clock, 'monoMs'>
  readonly logger: Pick<Logger, 'warn'>
  readonly limits: DeliveryLimits
  /** Takes what was buried and is to be sent again: called in the tick in which its row is deleted, and must not throw. */
  readonly onRetry: (message: Buffer) => void
}

/** What is known of one subscription. */
interface Known {
  readonly tenant: string
  readonly id: string
  oldest: Try | undefined
  newest: Try | undefined
  count: number
  /** In the order of time. */
  readonly letters: Letter[]
}

interface Try {
  readonly of: Known
  readonly record: DeliveryRecord
  /** The next one of the same subscription. */
  next: Try | undefined
  /** Neighbours among those of all subscriptions. */
  older: Try | undefined
  newer: Try | undefined
}

interface Letter {
  readonly of: Known
  readonly shard: number
  readonly stamp: number
}

/** Characters of a reason that are kept. */
const reasonLengthMax = 500
/** Least time between two lines about letters that are lost. */
const lossLineMs = 60_000

export class Deliveries {
  private readonly store: Store
  private readonly commit: GroupCommit
  private readonly parts: DeliveriesParts
  private readonly tenants = new Map<string, Map<string, Known>>()
  private count = 0
  private oldest: Try | undefined
  private newest: Try | undefined
  /** In the order of time. */
  private readonly letters = new Set<Letter>()
  /** The commit that carries the latest change of a letter. */
  private stagedIn = 0
  private untold = 0
  private toldMs = Number.NEGATIVE_INFINITY
  /** Dead letters that had to go because there were too many. */
  lettersLost = 0

  constructor(store: Store, commit: GroupCommit, parts: DeliveriesParts) {
    this.store = store
    this.commit = commit
    this.parts = parts
    parts.subscriptions.follow(tenant => ({ add: () => {}, remove: id => this.forget(tenant, id) }))
  }

  /** The keys of dead letters in a range of the store. */
  async read(range: Range): Promise<readonly Buffer[]> {
    return (await allRowsOf(this.store, range, { parts: 'keys' })).map(({ key }) => key)
  }

  /** Sees to letters that the store has; those of subscriptions that are not there are deleted. */
  learn(keys: readonly Buffer[]): void {
    const found: Letter[] = []
    for (const key of keys) {
      const { tenant, subscription, shard, stamp } = parseLetterKey(key)
      const of = this.knownOf(tenant, subscription)
      if (of) found.push({ of, shard, stamp })
      else this.commit.write(key, undefined)
    }
    if (found.length === 0) return
    const letters = [...this.letters, ...found].sort((a, b) => a.stamp - b.stamp)
    this.letters.clear()
    for (const { of } of letters) of.letters.length = 0
    for (const letter of letters) this.hold(letter)
  }

  /** Another owner sees to the letters of a shard from now on. */
  endShard(shard: number): void {
    for (const letter of this.letters) {
      if (letter.shard !== shard) continue
      const { of } = letter
      this.letters.delete(letter)
      of.letters.splice(of.letters.indexOf(letter), 1)
      this.releaseEmpty(of)
    }
  }

  // [hot] Once per try of a notification: 0.3 us besides making the record, with 1,000 subscriptions of 50 tries each.
  /** Keeps how a try ended. */
  note(tenant: string, subscription: string, record: DeliveryRecord): void {
    const of = this.knownOf(tenant, subscription)
    if (!of) return
    const { deliveriesKept, deliveriesKeptInAll } = this.parts.limits
    const { newest } = this
    const one: Try = { of, record: shortened(record), next: undefined, older: newest, newer: undefined }
    if (of.newest) of.newest.next = one
    else of.oldest = one
    of.newest = one
    of.count++
    if (newest) newest.newer = one
    else this.oldest = one
    this.newest = one
    this.count++
    if (of.count > deliveriesKept) this.dropOldest(of)
    if (this.count > deliveriesKeptInAll) this.dropOldest(this.oldest!.of)
  }

  /** Keeps a notification that was given up: how its last try ended, and what it takes to send it again. */
  bury(tenant: string, subscription: string, head: DeliveryRecord, message: Buffer): void {
    const of = this.knownOf(tenant, subscription)
    if (!of) return
    const { shardMap, stamps, limits } = this.parts
    const letter: Letter = { of, shard: shardMap.shardOf(tenant, head.path, head.id), stamp: stamps.next() }
    this.hold(letter)
    this.stagedIn = this.commit.write(keyOf(letter), encodeLetterRow(JSON.stringify(shortened(head)), message))
    while (of.letters.length > limits.deadLettersMax) this.lose(of)
    while (this.letters.size > limits.deadLettersMaxInAll) {
      const [oldest] = this.letters
      this.lose(oldest!.of)
    }
  }

  /** Dead letters that are kept. */
  get letterCount(): number {
    return this.letters.size
  }

  /** Answers what is asked of an owner, when the letters that there are now are durable. */
  onAsk(request: DeliveryRequest, onReply: OnReply): void {
    const { tenant, id } = request
    const letters = [...(this.tenants.get(tenant)?.get(id)?.letters ?? [])]
    this.commit.afterCommit(this.stagedIn, failure => {
      // Letters of shards that are lost are not among those of this owner any more.
      if (failure && !isDeposed(failure)) onReply({ kind: 'failed', reason: failure.message })
      else if (request.kind === 'deliveries') onReply(this.reported(request, letters))
      else this.retry(letters, 0, onReply)
    })
  }

  private reported(request: DeliveriesRequest, letters: readonly Letter[]): ShardReply {
    try {
      return { kind: 'deliveries', ...this.report(request, letters) }
    } catch (error) {
      if (error instanceof Unreadable) return { kind: 'failed', reason: error.message }
      throw error
    }
  }

  private report({ tenant, id, limit }: DeliveriesRequest, letters: readonly Letter[]): DeliveryReport {
    const tries: DeliveryRecord[] = []
    for (let one = this.tenants.get(tenant)?.get(id)?.oldest; one; one = one.next) tries.push(one.record)
    const kept = letters.filter(letter => this.letters.has(letter)).reverse()
    const deadLetters: DeliveryRecord[] = []
    for (let at = 0, bytes = 0; at < kept.length && at < limit && bytes < this.parts.limits.readBytesMax; at++) {
      const row = this.rowOf(kept[at]!)
      bytes += row.length
      deadLetters.push(JSON.parse(decodeLetterRow(row).head) as DeliveryRecord)
    }
    return { deliveries: tries.reverse().slice(0, limit), deadLetters, deadCount: kept.length }
  }

  /** Hands over letters in the order of time, as many as may be read at once, and goes on when that is durable. `count`: those before. */
  private retry(letters: readonly Letter[], count: number, onReply: OnReply): void {
    const { limits, onRetry } = this.parts
    let handed = count
    let at = 0
    for (let bytes = 0; at < letters.length && bytes < limits.readBytesMax; at++) {
      const letter = letters[at]!
      // It may have been lost, or sent again, while others became durable.
      if (!this.letters.has(letter)) continue
      const row = this.rowOf(letter)
      bytes += row.length
      handed++
      this.discard(letter)
      onRetry(decodeLetterRow(row).message)
    }
    this.commit.afterCommit(this.stagedIn, failure => {
      if (failure) onReply(replyAfterFailure(failure))
      else if (at < letters.length) this.retry(letters.slice(at), handed, onReply)
      else onReply({ kind: 'retried', count: handed })
    })
  }

  private rowOf(letter: Letter): Buffer {
    const row = this.store.get(keyOf(letter))
    assert(row, 'a dead letter that memory knows is in the store')
    return row
  }

  /** What is known of a subscription that is there; undefined when there is none. */
  private knownOf(tenant: string, id: string): Known | undefined {
    const known = this.tenants.get(tenant)?.get(id)
    if (known || !this.parts.subscriptions.of(tenant)?.has(id)) return known
    const fresh: Known = { tenant, id, oldest: undefined, newest: undefined, count: 0, letters: [] }
    nested(this.tenants, tenant).set(id, fresh)
    return fresh
  }

  private hold(letter: Letter): void {
    letter.of.letters.push(letter)
    this.letters.add(letter)
  }

  /** The subscription has gone. */
  private forget(tenant: string, id: string): void {
    const of = this.tenants.get(tenant)?.get(id)
    while (of?.oldest) this.dropOldest(of)
    while (of?.letters[0]) this.discard(of.letters[0])
  }

  private dropOldest(of: Known): void {
    const one = of.oldest
    assert(one, 'there is one to be dropped')
    const { next, older, newer } = one
    of.oldest = next
    if (!next) of.newest = undefined
    of.count--
    if (older) older.newer = newer
    else this.oldest = newer
    if (newer) newer.older = older
    else this.newest = older
    // Grown old it would keep all younger ones until the next full collection.
    one.next = one.older = one.newer = undefined
    this.count--
    this.releaseEmpty(of)
  }

  /** Deletes the oldest letter of a subscription, because there are too many. */
  private lose(of: Known): void {
    const { clock, logger, limits } = this.parts
    this.discard(of.letters[0]!)
    this.lettersLost++
    this.untold++
    const nowMs = clock.monoMs()
    if (nowMs - this.toldMs < lossLineMs) return
    const rule = `more than ${limits.deadLettersMax} of a subscription, or ${limits.deadLettersMaxInAll} of all`
    logger.warn(`${this.untold} dead letters were deleted, the last of subscription ${of.id}: there were ${rule}`, {
      tenant: of.tenant,
    })
    this.untold = 0
    this.toldMs = nowMs
  }

  /** Deletes a letter, the oldest of its subscription. */
  private discard(letter: Letter): void {
    const { of } = letter
    assert.equal(of.letters.shift(), letter, 'letters go in the order of time')
    this.letters.delete(letter)
    this.stagedIn = this.commit.write(keyOf(letter), undefined)
    this.releaseEmpty(of)
  }

  private releaseEmpty({ tenant, id, count, letters }: Known): void {
    if (count > 0 || letters.length > 0) return
    const ofTenant = this.tenants.get(tenant)
    ofTenant?.delete(id)
    if (ofTenant?.size === 0) this.tenants.delete(tenant)
  }
}

const keyOf = ({ of, shard, stamp }: Letter): Buffer =>
  letterKey({ shard, tenant: of.tenant, subscription: of.id, stamp })

const shortened = (record: DeliveryRecord): DeliveryRecord =>
  record.reason.length > reasonLengthMax ? { ...record, reason: record.reason.slice(0, reasonLengthMax) } : record
