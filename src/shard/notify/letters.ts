// Dead letters: notifications that were given up, with all that is needed to send them again. Each owner has its own
// part.
//
// A letter is a row of the store, written and deleted in the commit of the tick that decides it. So a caller never has
// both or neither of two rows: when it deletes a row of the outbox in the tick in which it buries it here, or writes
// one in the tick in which it discards the letter. Memory has 170 bytes of each letter (letter-list.ts).
//
// Letters are limited by their bytes, of each subscription and of all, by their number and by their age. Beyond, the
// oldest letters of the largest subscription of the largest tenant are deleted first. So no tenant loses letters
// because another one has many. Losses are counted by cause, and logged once a minute.
//
// After a start, or when a shard comes, its letters are read in the background, since there may be a gigabyte of them.
// Requests for letters wait for that. Nothing is kept for a subscription that does not exist.
//
// Not here: tries (deliveries.ts), automatic replays (replays.ts).

import { xxHash64 } from '../../domain/hash.js'
import type { ShardMap } from '../../domain/scope.js'
import { stampMs } from '../../domain/stamp.js'
import { Unreadable } from '../../domain/unreadable.js'
import type { DeliveryRecord } from '../../messages/messages.js'
import type { Clock, Logger, Range, Stamps, Store } from '../../ports.js'
import { rowsOf } from '../../rows.js'
import type { GroupCommit } from '../commit/commit.js'
import type { Waiter } from '../commit/fillings.js'
import type { Subscriptions } from '../documents/forms.js'
import { type Letter, LetterList } from './letter-list.js'
import {
  allLetters,
  decodeLetterRow,
  encodeLetterRow,
  type LetterKey,
  letterKey,
  letterRange,
  parseLetterKey,
} from './notification-layout.js'
import { stampOfNotification } from './trigger-event.js'

export interface LetterLimits {
  /** Bytes of the rows of a subscription's letters, and of those of all. */
  readonly deadLetterBytesMax: number
  readonly deadLetterBytesMaxInAll: number
  /** Letters of all subscriptions: 170 bytes of memory each. */
  readonly deadLettersMaxInAll: number
  /** Age since they were given up. It is checked once a minute. */
  readonly deadLetterAgeMsMax: number
}

const mb = 1024 * 1024
const dayMs = 24 * 60 * 60 * 1000

export const letterLimitsDefault: LetterLimits = {
  deadLetterBytesMax: 64 * mb,
  deadLetterBytesMaxInAll: 1024 * mb,
  deadLettersMaxInAll: 250_000,
  deadLetterAgeMsMax: 7 * dayMs,
}

export interface LettersParts {
  readonly subscriptions: Subscriptions
  readonly shardMap: ShardMap
  readonly stamps: Pick<Stamps, 'next'>
  readonly clock: Pick<Clock, 'monoMs' | 'wallMs' | 'after' | 'endOfTick'>
  readonly logger: Pick<Logger, 'warn' | 'error'>
  readonly limits: LetterLimits
}

/** Receives the subscriptions that have letters. */
export interface LetterFollower {
  /** There is a new letter, or a replay has ended. */
  onLetter(list: LetterList): void
  /** The last letter was removed. */
  onEmpty(list: LetterList): void
}

/** Why a letter was dropped: the bytes of its subscription, the bytes or the number of all, or its age. */
export type LetterLoss = 'subscriptionBytes' | 'bytes' | 'number' | 'age'

/** The content of a letter's row that memory needs. */
interface StoredLetter extends LetterKey {
  readonly facts: Pick<Letter, 'change' | 'entity' | 'bytes' | 'mayReplay' | 'tries'>
}

interface TenantLetters {
  readonly lists: Map<string, LetterList>
  size: number
  bytes: number
}

interface Load {
  isOver: boolean
}

/** Rows that are in memory at a time while letters are read, and letters that are sorted in at once. */
const rowsPerRead = 200
const learnedAtOnce = 5_000
/** Characters of a reason that are kept. */
const reasonLengthMax = 500
/** Least time between two log lines about lost letters. */
const lossLineMs = 60_000
/** The time between two checks of the age. */
const ageCheckMs = 60_000
/** Letters that are deleted in one turn of the event loop, where more than one is: some 10 ms. */
const deletedPerTurn = 2_000
/**
 * Beyond a limit of all, this part of it is freed at once, so that the largest subscription is not searched each time.
 */
const freedShare = 1 / 512

export class Letters {
  readonly losses: Record<LetterLoss, number> = { subscriptionBytes: 0, bytes: 0, number: 0, age: 0 }
  /** The commit that carries the latest change of a letter, by shard. */
  private readonly stagedIn = new Map<number, number>()
  private readonly tenants = new Map<string, TenantLetters>()
  private readonly followers: LetterFollower[] = []
  private count = 0
  private byteCount = 0
  /** Losses since the last log line about them. */
  private readonly unreportedLosses = new Map<LetterLoss, number>()
  private lossesLoggedMs = Number.NEGATIVE_INFINITY
  private isAging = false
  /** Reads in progress: of all letters (undefined), or of a shard. */
  private readonly loads = new Map<number | undefined, Load>()
  private readonly waiting: (() => void)[] = []

  constructor(
    private readonly store: Store,
    private readonly commit: GroupCommit,
    private readonly parts: LettersParts,
  ) {
    parts.subscriptions.follow(tenant => ({ add: () => {}, remove: id => this.forget(tenant, id) }))
  }

  follow(follower: LetterFollower): void {
    this.followers.push(follower)
  }

  get size(): number {
    return this.count
  }

  get bytes(): number {
    return this.byteCount
  }

  /** Age of the letter that was given up first; 0: there is none. Visits all subscriptions with letters. */
  get oldestAgeMs(): number {
    const nowMs = this.parts.clock.wallMs()
    let sinceMs = nowMs
    for (const { oldest } of this.lists()) if (oldest) sinceMs = Math.min(sinceMs, stampMs(oldest.stamp))
    return nowMs - sinceMs
  }

  *lists(): Iterable<LetterList> {
    for (const { lists } of this.tenants.values()) yield* lists.values()
  }

  /** The letters of a subscription; undefined: there are none. */
  of(tenant: string, id: string): LetterList | undefined {
    return this.tenants.get(tenant)?.lists.get(id)
  }

  /** Reads all letters of the store, or those of a shard, in the background. */
  load(shard?: number): void {
    const load: Load = { isOver: false }
    this.loads.set(shard, load)
    this.read(shard === undefined ? allLetters() : letterRange(shard), load)
      .catch((error: Error) =>
        this.parts.logger.error(`dead letters could not be read, the next start tries again: ${error.message}`),
      )
      .finally(() => this.endLoad(shard, load))
  }

  private async read(range: Range, load: Load): Promise<void> {
    let found: StoredLetter[] = []
    for await (const rows of rowsOf(this.store, range, { rowsPerRead })) {
      if (load.isOver) return
      for (const { key, value } of rows) {
        const place = parseLetterKey(key)
        found.push({ ...place, facts: { ...factsOf(headOf(value), place.stamp), bytes: value.length } })
      }
      if (found.length < learnedAtOnce) continue
      this.learn(found)
      found = []
    }
    if (!load.isOver) this.learn(found)
  }

  private endLoad(shard: number | undefined, load: Load): void {
    load.isOver = true
    if (this.loads.get(shard) === load) this.loads.delete(shard)
    if (this.loads.size > 0) return
    for (const run of this.waiting.splice(0)) run()
  }

  /** Calls back when all letters have been read: at once, or later. */
  whenLoaded(run: () => void): void {
    if (this.loads.size === 0) run()
    else this.waiting.push(run)
  }

  /** Stops reading. */
  end(): void {
    for (const load of this.loads.values()) load.isOver = true
  }

  /** Adds letters of the store. Those of subscriptions that do not exist are deleted. */
  private learn(stored: readonly StoredLetter[]): void {
    const found = new Map<LetterList, Letter[]>()
    for (const one of stored) {
      const { tenant, subscription, shard, stamp, facts } = one
      const list = this.listOf(tenant, subscription)
      if (!list) this.commit.write(letterKey(one), undefined)
      else {
        const letters = found.get(list) ?? []
        if (letters.length === 0) found.set(list, letters)
        letters.push(letterOf(list, { shard, stamp }, facts))
      }
    }
    for (const [list, letters] of found) {
      list.insertAll(letters)
      for (const { bytes } of letters) this.countOne(list.tenant, 1, bytes)
      this.shrink(list)
      this.notifyFollowers(list)
    }
  }

  /** Forgets the letters of a shard, which now belong to another owner. */
  endShard(shard: number): void {
    const load = this.loads.get(shard)
    if (load) this.endLoad(shard, load)
    for (const list of [...this.lists()]) for (const letter of list) if (letter.shard === shard) this.release(letter)
  }

  /** Keeps a notification that was given up: the outcome of its last try, and all that is needed to send it again. */
  bury(tenant: string, subscription: string, head: DeliveryRecord, message: Buffer): void {
    const list = this.listOf(tenant, subscription)
    if (!list) return
    const { shardMap, stamps } = this.parts
    const place = { shard: shardMap.shardOf(tenant, head.path, head.id), stamp: stamps.next() }
    const row = encodeLetter(head, message)
    const letter = letterOf(list, place, { ...factsOf(head, place.stamp), bytes: row.length })
    list.insert(letter)
    this.countOne(tenant, 1, letter.bytes)
    this.write(letter, row)
    this.shrink(list)
    this.notifyFollowers(list)
  }

  /** The row of a letter; undefined: it is not durable yet, or was removed. */
  rowOf(letter: Letter): Buffer | undefined {
    return letter.isKept ? this.store.get(keyOf(letter)) : undefined
  }

  /** Stores the outcome of a replay that failed. */
  rewrite(letter: Letter, head: DeliveryRecord): void {
    const before = this.rowOf(letter)
    if (!before) return
    const row = encodeLetter(head, decodeLetterRow(before).message)
    const { mayReplay, tries } = factsOf(head, letter.stamp)
    const more = row.length - letter.bytes
    letter.bytes += more
    letter.list.bytes += more
    letter.mayReplay = mayReplay
    letter.tries = tries
    this.countOne(letter.list.tenant, 0, more)
    this.write(letter, row)
  }

  /** Deletes a letter. */
  discard(letter: Letter): void {
    this.release(letter)
    this.write(letter, undefined)
  }

  private write(letter: Letter, row: Buffer | undefined): void {
    this.stagedIn.set(letter.shard, this.commit.write(keyOf(letter), row))
  }

  /** Calls back when all changes of letters so far are durable. */
  afterStaged(onDurable: Waiter): void {
    for (const [shard, commit] of this.stagedIn) if (this.commit.isDurable(commit)) this.stagedIn.delete(shard)
    this.commit.afterCommits(this.stagedIn.values(), onDurable)
  }

  /** Removes a letter from memory. */
  private release(letter: Letter): void {
    const { list, bytes } = letter
    letter.isKept = false
    list.remove(letter)
    this.countOne(list.tenant, -1, -bytes)
    if (list.size > 0) return
    const ofTenant = this.tenants.get(list.tenant)
    if (ofTenant?.lists.get(list.id) === list) ofTenant.lists.delete(list.id)
    if (ofTenant?.lists.size === 0) this.tenants.delete(list.tenant)
    for (const follower of this.followers) follower.onEmpty(list)
  }

  private countOne(tenant: string, letters: number, bytes: number): void {
    this.count += letters
    this.byteCount += bytes
    const ofTenant = this.tenants.get(tenant)
    if (!ofTenant) return
    ofTenant.size += letters
    ofTenant.bytes += bytes
  }

  private notifyFollowers(list: LetterList): void {
    for (const follower of this.followers) if (list.size > 0) follower.onLetter(list)
    this.awaitAge()
  }

  /** The letters of an existing subscription; undefined when it does not exist. */
  private listOf(tenant: string, id: string): LetterList | undefined {
    const known = this.of(tenant, id)
    if (known || !this.parts.subscriptions.of(tenant)?.has(id)) return known
    let ofTenant = this.tenants.get(tenant)
    if (!ofTenant) {
      ofTenant = { lists: new Map(), size: 0, bytes: 0 }
      this.tenants.set(tenant, ofTenant)
    }
    const list = new LetterList(tenant, id)
    ofTenant.lists.set(id, list)
    return list
  }

  /** The subscription was deleted. Letters of it that are left after a crash are deleted at the next start. */
  private forget(tenant: string, id: string): void {
    const list = this.of(tenant, id)
    if (list) this.deleteSome(list)
  }

  private deleteSome(list: LetterList): void {
    for (let left = deletedPerTurn; left > 0 && list.oldest; left--) this.discard(list.oldest)
    if (list.oldest) this.parts.clock.endOfTick(() => this.deleteSome(list))
  }

  /** Deletes letters until the limits hold again, after letters were added to a subscription. */
  private shrink(list: LetterList): void {
    const { deadLetterBytesMax, deadLetterBytesMaxInAll, deadLettersMaxInAll } = this.parts.limits
    while (list.oldest && list.bytes > deadLetterBytesMax) this.lose(list.oldest, 'subscriptionBytes')
    while (this.byteCount > deadLetterBytesMaxInAll) this.free('bytes', deadLetterBytesMaxInAll)
    while (this.count > deadLettersMaxInAll) this.free('size', deadLettersMaxInAll)
  }

  /** Deletes letters of the largest subscription of the largest tenant. */
  private free(by: 'bytes' | 'size', limit: number): void {
    const ofTenant = largest(this.tenants.values(), by)
    const list = ofTenant && largest(ofTenant.lists.values(), by)
    const enough = limit - Math.floor(limit * freedShare)
    while (list?.oldest && this[by] > enough) this.lose(list.oldest, by === 'size' ? 'number' : by)
  }

  private awaitAge(): void {
    if (this.isAging || this.count === 0) return
    this.isAging = true
    this.parts.clock.after(ageCheckMs, () => this.age())
  }

  /** Deletes letters that are too old, from the oldest change of each subscription on. */
  private age(): void {
    const untilMs = this.parts.clock.wallMs() - this.parts.limits.deadLetterAgeMsMax
    let left = deletedPerTurn
    for (const list of [...this.lists()])
      for (const letter of list) {
        if (stampMs(letter.stamp) > untilMs) break
        if (left-- === 0) return this.parts.clock.endOfTick(() => this.age())
        this.lose(letter, 'age')
      }
    this.isAging = false
    this.awaitAge()
  }

  /** Deletes a letter because of a limit. */
  private lose(letter: Letter, cause: LetterLoss): void {
    const { clock, logger } = this.parts
    const { tenant, id } = letter.list
    this.discard(letter)
    this.losses[cause]++
    this.unreportedLosses.set(cause, (this.unreportedLosses.get(cause) ?? 0) + 1)
    const nowMs = clock.monoMs()
    if (nowMs - this.lossesLoggedMs < lossLineMs) return
    const causes = [...this.unreportedLosses].map(([one, count]) => `${count} ${lossWords[one]}`).join(', ')
    logger.warn(`dead letters were deleted, the last one of subscription ${id}: ${causes}`, { tenant })
    this.unreportedLosses.clear()
    this.lossesLoggedMs = nowMs
  }
}

const lossWords = {
  subscriptionBytes: 'beyond the bytes of a subscription',
  bytes: 'beyond the bytes of all',
  number: 'beyond the number of all',
  age: 'too old',
} as const satisfies Record<LetterLoss, string>

const keyOf = ({ list, shard, stamp }: Letter): Buffer =>
  letterKey({ shard, tenant: list.tenant, subscription: list.id, stamp })

const encodeLetter = (head: DeliveryRecord, message: Buffer): Buffer =>
  encodeLetterRow(JSON.stringify(shortened(head)), message)

export const shortened = (record: DeliveryRecord): DeliveryRecord =>
  record.reason.length > reasonLengthMax ? { ...record, reason: record.reason.slice(0, reasonLengthMax) } : record

/** The head of a letter's row; undefined: this build cannot read it, and the letter stays. */
function headOf(row: Buffer): DeliveryRecord | undefined {
  try {
    return JSON.parse(decodeLetterRow(row).head) as DeliveryRecord
  } catch (error) {
    if (error instanceof Unreadable || error instanceof SyntaxError) return undefined
    throw error
  }
}

/** A letter of an older build has no cause. Then a status code means that another try may succeed. */
function factsOf(head: DeliveryRecord | undefined, stamp: number): Omit<StoredLetter['facts'], 'bytes'> {
  if (!head) return { change: stamp, entity: 0, mayReplay: false, tries: 1 }
  const { id, type, path, notificationId, attempt, cause, code } = head
  return {
    change: stampOfNotification(notificationId) ?? stamp,
    entity: xxHash64(`${path} ${type} ${id}`).low | 0,
    mayReplay: cause === undefined ? code !== undefined : cause === 'noAnswer' || cause === 'notNow',
    tries: Math.max(1, attempt),
  }
}

const letterOf = (
  list: LetterList,
  { shard, stamp }: Pick<Letter, 'shard' | 'stamp'>,
  { change, entity, bytes, mayReplay, tries }: StoredLetter['facts'],
): Letter => ({
  list,
  shard,
  stamp,
  change,
  entity,
  bytes,
  mayReplay,
  tries,
  isKept: true,
  isSending: false,
  faults: 0,
  dueMs: 0,
  older: undefined,
  newer: undefined,
})

/** The largest item; the last one of several. */
function largest<T extends { readonly bytes: number; readonly size: number }>(
  all: Iterable<T>,
  by: 'bytes' | 'size',
): T | undefined {
  let found: T | undefined
  for (const one of all) if (!found || one[by] >= found[by]) found = one
  return found
}
