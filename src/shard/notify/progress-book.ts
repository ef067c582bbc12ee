// What became of notifications, written down: each owner's own part, in memory beside the subscription (documents.ts)
// and in its store.
//
// A part changes with nearly every notification, so it is not written each time: it rides along with the next commit.
// The one that carries a change and its notifications carries the counters as well, so nothing that was sent before a
// crash is forgotten by throttling or one-shots.
//
// Where there are several owners, a subscription that depends on its own past (`isGuarded`) is decided about at home,
// and there alone is something written down (claims.ts).
//
// In a cluster owners come and go, and with them what is in their memory alone. So there the home alone keeps rows, and
// other owners hand in what they know (handing-in.ts). Until then it is in their memory. In each row the home writes
// the marks of the requests that it has counted in it. So neither this home nor the next one counts a request again.

import type { ShardMap } from '../../domain/scope.js'
import type { Subscription, SubscriptionProgress } from '../../domain/subscriptions/subscription.js'
import { noProgress } from '../../domain/subscriptions/subscription.js'
import {
  mergeProgress,
  recordFailure,
  recordSent,
  recordSuccess,
} from '../../domain/subscriptions/subscription-status.js'
import { assertVersion } from '../../domain/unreadable.js'
import type { FlushMark, HandedPart, ProgressReport } from '../../messages/messages.js'
import type { Clock, Logger, Range, Row, RowSink, Store } from '../../ports.js'
import { allRowsOf, readRow, rowsOf } from '../../rows.js'
import type { GroupCommit, PiggybackedWrites } from '../commit/commit.js'
import { allProgress, parseDocumentKey, progressKey } from '../documents/document-layout.js'
import type { Subscriptions } from '../documents/forms.js'

/** Grants remembered of one subscription: more than can be on their way when a process dies. */
const grantsMax = 64
/** Owners of which a row remembers the latest request: about 20 bytes each. */
const marksMax = 64

/** Whether a subscription fires or not depends on what it has fired before. */
export const isGuarded = ({ throttlingSeconds, status, notification }: Subscription): boolean =>
  throttlingSeconds > 0 || status === 'oneshot' || notification.maxFailsLimit !== undefined

export class ProgressBook implements PiggybackedWrites {
  private readonly subscriptions: Subscriptions
  private readonly commit: GroupCommit
  private readonly shardMap: ShardMap
  private readonly clock: Clock
  private readonly logger: Pick<Logger, 'warn'>
  /** Whether rows are kept here. */
  private isKept: boolean
  /** What is being handed in, and counts here until it is known that the home has it. */
  private taken: readonly HandedPart[] | undefined
  /** Those to be written, or to be handed in where no rows are kept, by tenant. */
  private readonly changed = new Map<string, Set<string>>()
  /** The latest notifications granted to other owners, by subscription. */
  private readonly grants = new Map<string, readonly string[]>()
  /** The latest request of each owner that is counted, by subscription and source. */
  private readonly marks = new Map<string, Map<string, number>>()

  /** `isKept`: whether rows are kept here at first, which `enter` and `leave` change. */
  constructor(
    subscriptions: Subscriptions,
    commit: GroupCommit,
    shardMap: ShardMap,
    clock: Clock,
    logger: Pick<Logger, 'warn'>,
    isKept: boolean,
  ) {
    this.isKept = isKept
    this.subscriptions = subscriptions
    this.commit = commit
    this.shardMap = shardMap
    this.clock = clock
    this.logger = logger
    commit.carry(this)
    subscriptions.follow(tenant => ({ add: () => {}, remove: id => this.forget(tenant, id) }))
  }

  private forget(tenant: string, id: string): void {
    this.grants.delete(id)
    this.marks.delete(id)
    if (this.isKept) this.write(tenant, id)
    else this.forgetChange(tenant, id)
  }

  /**
   * Keeps no rows from now on, and nothing that was in them: what became of notifications is another owner's. What is
   * not written yet is written now.
   */
  leave(): void {
    for (const [tenant, ids] of this.changed) for (const id of ids) this.writeNow(tenant, id)
    this.isKept = false
    this.changed.clear()
    this.grants.clear()
    this.marks.clear()
    this.subscriptions.forgetProgress()
  }

  /**
   * Keeps rows from now on, first those that are there (`read`): to these is added what is known here, but for what is
   * being handed in.
   */
  enter(rows: readonly Row[]): void {
    if (this.taken) this.noteHandedIn(this.taken)
    this.isKept = true
    for (const row of rows) this.recall(row, true)
    if (this.changed.size > 0) this.commit.awaitPiggybacked()
  }

  /**
   * Some of what is known here and is not the home's yet, to be handed in: `noteHandedIn` follows, and then the next.
   */
  takeSome(partsMax: number): readonly HandedPart[] {
    const parts: HandedPart[] = []
    if (this.isKept) return parts
    this.taken = parts
    for (const [tenant, ids] of this.changed) {
      for (const id of ids) {
        if (parts.length >= partsMax) return parts
        ids.delete(id)
        parts.push({ tenant, id, progress: this.of(tenant, id) })
      }
      this.changed.delete(tenant)
    }
    return parts
  }

  /** What was taken is the home's: it is not counted here any more. */
  noteHandedIn(parts: readonly HandedPart[]): void {
    if (this.taken !== parts) return
    this.taken = undefined
    for (const { tenant, id, progress } of parts)
      this.subscriptions.of(tenant)?.note(id, without(this.of(tenant, id), progress))
  }

  /** Adds what another owner hands in, unless it is counted already. Gives the commit that carries it. */
  add(parts: readonly HandedPart[], mark: FlushMark | undefined): number {
    let carriedBy = 0
    for (const { tenant, id, progress } of parts) {
      const held = this.subscriptions.of(tenant)
      if (!held?.has(id)) continue
      if (!mark || this.isNew(id, mark)) held.note(id, mergeProgress([this.of(tenant, id), progress]))
      carriedBy = this.writeNow(tenant, id)
    }
    return carriedBy
  }

  /** Whether a request is not counted in a subscription yet; from now on it is. */
  private isNew(id: string, { source, number }: FlushMark): boolean {
    const marks = this.marks.get(id) ?? new Map<string, number>()
    if ((marks.get(source) ?? 0) >= number) return false
    // The last one is the youngest.
    marks.delete(source)
    marks.set(source, number)
    const [oldest] = marks.keys()
    if (marks.size > marksMax) marks.delete(oldest!)
    this.marks.set(id, marks)
    return true
  }

  of(tenant: string, id: string): SubscriptionProgress {
    return this.subscriptions.of(tenant)?.progressOf(id) ?? noProgress
  }

  // [hot] Once per notification.
  /** One is handed to the sender. */
  noteSent(subscription: Subscription): void {
    const { tenant, id } = subscription
    this.note(tenant, id, recordSent(subscription, this.of(tenant, id), this.clock.wallMs()))
  }

  /**
   * One that was noted as sent is lost with its change, which has not happened. What was before is not known any more:
   * where it matters, the subscription may send again.
   */
  noteUnsent(tenant: string, id: string): void {
    const subscription = this.subscriptions.of(tenant)?.get(id)
    const own = this.of(tenant, id)
    if (!subscription || own.timesSent === 0) return
    const isFirst = own.timesSent === 1
    this.note(tenant, id, {
      ...own,
      timesSent: own.timesSent - 1,
      lastNotificationMs: isFirst || subscription.throttlingSeconds > 0 ? undefined : own.lastNotificationMs,
      spentRevision: subscription.status === 'oneshot' ? 0 : own.spentRevision,
    })
  }

  // [hot] Once per notification.
  /** A receiver answered, or did not. */
  noteReport(tenant: string, id: string, news: ProgressReport): void {
    const subscription = this.subscriptions.of(tenant)?.get(id)
    if (!subscription) return
    const own = this.of(tenant, id)
    const nowMs = this.clock.wallMs()
    if (news.kind === 'success') return this.note(tenant, id, recordSuccess(own, nowMs, news.code))
    const { progress, disabledAt } = recordFailure(subscription, own, [], nowMs, news.reason)
    this.note(tenant, id, progress)
    if (disabledAt === undefined) return
    const { maxFailsLimit } = subscription.notification
    this.logger.warn(
      `Subscription ${id} automatically disabled due to failsCounter (${disabledAt}) overpasses maxFailsLimit (${maxFailsLimit})`,
    )
  }

  /** Another owner has notified, before this home was to decide: of that only the latest time counts here. */
  noteEarlier(tenant: string, id: string, { lastNotificationMs }: SubscriptionProgress): void {
    const own = this.of(tenant, id)
    if (lastNotificationMs === undefined || lastNotificationMs <= (own.lastNotificationMs ?? 0)) return
    this.note(tenant, id, { ...own, lastNotificationMs })
  }

  /** A notification is granted by name: to another owner, or to this one for a shard that may move. */
  noteGranted(subscription: Subscription, notification: string): void {
    const { id } = subscription
    this.grants.set(id, [...(this.grants.get(id) ?? []), notification].slice(-grantsMax))
    this.noteSent(subscription)
  }

  /** Whether another owner was told to send this one. */
  hasGranted(id: string, notification: string): boolean {
    return this.grants.get(id)?.includes(notification) === true
  }

  private note(tenant: string, id: string, progress: SubscriptionProgress): void {
    this.subscriptions.of(tenant)?.note(id, progress)
    this.write(tenant, id)
  }

  private forgetChange(tenant: string, id: string): void {
    const ids = this.changed.get(tenant)
    if (ids?.delete(id) && ids.size === 0) this.changed.delete(tenant)
  }

  private write(tenant: string, id: string): void {
    let ids = this.changed.get(tenant)
    if (!ids) {
      ids = new Set()
      this.changed.set(tenant, ids)
    }
    ids.add(id)
    if (this.isKept) this.commit.awaitPiggybacked()
  }

  writeTo(batch: RowSink): void {
    if (!this.isKept) return
    for (const [tenant, ids] of this.changed)
      for (const id of ids) {
        const row = this.rowOf(tenant, id)
        if (row) batch.put(this.keyOf(tenant, id), row)
        else batch.del(this.keyOf(tenant, id))
      }
    this.changed.clear()
  }

  /** Writes what is known of a subscription with the commit whose number is given back. */
  writeNow(tenant: string, id: string): number {
    return this.commit.write(this.keyOf(tenant, id), this.rowOf(tenant, id))
  }

  private rowOf(tenant: string, id: string): Buffer | undefined {
    const held = this.subscriptions.of(tenant)
    return held?.has(id) ? encodeProgress(held.progressOf(id), this.grants.get(id), this.marks.get(id)) : undefined
  }

  private keyOf(tenant: string, id: string): Buffer {
    return progressKey({ home: this.shardMap.register, tenant, id })
  }

  /** Reads what was written; rows of subscriptions that have gone are deleted. */
  async load(store: Store): Promise<void> {
    for await (const rows of rowsOf(store, allProgress())) for (const row of rows) this.recall(row, false)
  }

  /** The rows of a range, for `enter`. */
  read(store: Store, range: Range): Promise<readonly Row[]> {
    return allRowsOf(store, range)
  }

  private recall({ key, value }: Row, isAdded: boolean): void {
    const { tenant, id } = parseDocumentKey(key)
    const held = this.subscriptions.of(tenant)
    if (!held?.has(id)) return this.write(tenant, id)
    const { progress, grants, marks } = readRow(key, () => decodeProgress(value))
    held.note(id, isAdded ? mergeProgress([progress, held.progressOf(id)]) : progress)
    if (grants.length > 0) this.grants.set(id, grants)
    if (marks.length > 0) this.marks.set(id, new Map(marks))
  }
}

/**
 * What is left of a part when an earlier state of it was handed in: its counts less those. Of times the latest ones
 * stand in any case.
 */
function without(own: SubscriptionProgress, handed: SubscriptionProgress): SubscriptionProgress {
  const isRow = own.lastSuccessMs === handed.lastSuccessMs && own.failsCounter >= handed.failsCounter
  return {
    ...own,
    timesSent: Math.max(0, own.timesSent - handed.timesSent),
    failsCounter: isRow ? own.failsCounter - handed.failsCounter : own.failsCounter,
  }
}

const rowVersion = 1

/** Of each owner the number of its latest request that is counted. */
type Marks = Iterable<readonly [source: string, number: number]>

/** The row of a part, with what was granted to others, and what of others is counted in it. */
export const encodeProgress = (progress: SubscriptionProgress, grants?: readonly string[], marks?: Marks): Buffer =>
  Buffer.from(JSON.stringify({ version: rowVersion, ...progress, grants, marks: marks && [...marks] }))

/** What such a row says; JSON leaves out what is undefined. Fails with `Unreadable` where it has another version. */
export function decodeProgress(row: Buffer): {
  readonly progress: SubscriptionProgress
  readonly grants: readonly string[]
  readonly marks: readonly (readonly [source: string, number: number])[]
} {
  const { version, grants = [], marks = [], ...known } = JSON.parse(row.toString())
  assertVersion('the stored progress of a subscription', version, rowVersion)
  return { progress: { ...noProgress, ...known }, grants, marks }
}
