// The progress of notifications: each owner's own part, in memory beside the subscription (documents/documents.ts) and
// in its store.
//
// A part changes with nearly every notification, so its row is a piggybacked write of the next commit. The commit that
// carries a change and its notifications carries the counters as well. So after a crash, throttling and one-shots still
// know all that was sent.
//
// Where there are several owners, the document owner decides about a subscription that depends on its own past
// (`isGuarded`), and records its progress alone (permits.ts).
//
// In a cluster owners come and go, and lose what is in their memory alone. So there the document owner alone keeps
// rows, and other owners flush their parts to it (report-flush.ts). Until then the parts are in their memory. In each
// row the document owner writes the marks of the requests that are counted in it. So neither this document owner nor
// the next one counts a request again.

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

/** Permits remembered of one subscription: more than can be in flight when a process dies. */
const grantsMax = 64
/** Owners of which a row remembers the latest request: about 20 bytes each. */
const marksMax = 64

/** Whether a subscription depends on its own past: on earlier notifications, or their outcomes. */
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
  /** Parts in a flush in flight. They count here until it is known that the document owner has them. */
  private taken: readonly HandedPart[] | undefined
  /** Subscriptions whose progress is to be written, or to be flushed where no rows are kept, by tenant. */
  private readonly changed = new Map<string, Set<string>>()
  /** The latest notifications permitted to other owners, by subscription. */
  private readonly grants = new Map<string, readonly string[]>()
  /** The latest request of each owner that is counted, by subscription and source. */
  private readonly marks = new Map<string, Map<string, number>>()

  /** `isKept`: whether rows are kept here at first; `enter` and `leave` change that. */
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
   * Keeps no rows from now on, and forgets all progress, because another owner has it. Pending changes are written now.
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
   * Keeps rows from now on, first the given ones (`read`). Adds the progress in memory to these, without parts that are
   * being flushed.
   */
  enter(rows: readonly Row[]): void {
    if (this.taken) this.noteHandedIn(this.taken)
    this.isKept = true
    for (const row of rows) this.recall(row, true)
    if (this.changed.size > 0) this.commit.awaitPiggybacked()
  }

  /**
   * Takes some progress that the document owner does not have yet, for a flush. `noteHandedIn` must follow before the
   * next call.
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

  /** Subtracts parts that the document owner has: they do not count here any more. */
  noteHandedIn(parts: readonly HandedPart[]): void {
    if (this.taken !== parts) return
    this.taken = undefined
    for (const { tenant, id, progress } of parts)
      this.subscriptions.of(tenant)?.note(id, without(this.of(tenant, id), progress))
  }

  /**
   * Adds the parts that another owner flushes, unless they are counted already. Returns the commit that carries them.
   */
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
  /** Counts a notification that is passed to the sender. */
  noteSent(subscription: Subscription): void {
    const { tenant, id } = subscription
    this.note(tenant, id, recordSent(subscription, this.of(tenant, id), this.clock.wallMs()))
  }

  /**
   * Takes back a notification that was counted as sent, because its change was lost. The earlier values are not known
   * any more: where they matter, the subscription may send again.
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
  /** Counts the success or failure of a notification. */
  noteReport(tenant: string, id: string, report: ProgressReport): void {
    const subscription = this.subscriptions.of(tenant)?.get(id)
    if (!subscription) return
    const own = this.of(tenant, id)
    const nowMs = this.clock.wallMs()
    if (report.kind === 'success') return this.note(tenant, id, recordSuccess(own, nowMs, report.code))
    const { progress, disabledAt } = recordFailure(subscription, own, [], nowMs, report.reason)
    this.note(tenant, id, progress)
    if (disabledAt === undefined) return
    const { maxFailsLimit } = subscription.notification
    this.logger.warn(
      `Subscription ${id} automatically disabled due to failsCounter (${disabledAt}) overpasses maxFailsLimit (${maxFailsLimit})`,
    )
  }

  /** Notes that another owner notified before this document owner decided. Only the latest time counts here. */
  noteEarlier(tenant: string, id: string, { lastNotificationMs }: SubscriptionProgress): void {
    const own = this.of(tenant, id)
    if (lastNotificationMs === undefined || lastNotificationMs <= (own.lastNotificationMs ?? 0)) return
    this.note(tenant, id, { ...own, lastNotificationMs })
  }

  /** Notes that a notification was permitted by id: to another owner, or to this one for a shard that may move. */
  noteGranted(subscription: Subscription, notification: string): void {
    const { id } = subscription
    this.grants.set(id, [...(this.grants.get(id) ?? []), notification].slice(-grantsMax))
    this.noteSent(subscription)
  }

  /** Whether this notification was permitted to another owner. */
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

  /** The counters of a change belong to the commit that carries it. */
  get isWhole(): boolean {
    return this.isKept && this.changed.size > 0
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

  /** Writes the progress of a subscription. Returns the number of the commit that carries it. */
  writeNow(tenant: string, id: string): number {
    return this.commit.write(this.keyOf(tenant, id), this.rowOf(tenant, id))
  }

  private rowOf(tenant: string, id: string): Buffer | undefined {
    const held = this.subscriptions.of(tenant)
    return held?.has(id) ? encodeProgress(held.progressOf(id), this.grants.get(id), this.marks.get(id)) : undefined
  }

  private keyOf(tenant: string, id: string): Buffer {
    return progressKey({ register: this.shardMap.register, tenant, id })
  }

  /** Reads the rows of the store. Rows of subscriptions that do not exist are deleted. */
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
 * The rest of a part after an earlier state of it was flushed: the counts are subtracted. Times need no subtraction,
 * because the latest ones count.
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

/** For each owner the number of its latest request that is counted. */
type Marks = Iterable<readonly [source: string, number: number]>

/** The row of a part, with the permits granted to others, and the marks of requests that are counted in it. */
export const encodeProgress = (progress: SubscriptionProgress, grants?: readonly string[], marks?: Marks): Buffer =>
  Buffer.from(JSON.stringify({ version: rowVersion, ...progress, grants, marks: marks && [...marks] }))

/** The content of such a row; JSON has no undefined fields. Fails with `Unreadable` for one of another version. */
export function decodeProgress(row: Buffer): {
  readonly progress: SubscriptionProgress
  readonly grants: readonly string[]
  readonly marks: readonly (readonly [source: string, number: number])[]
} {
  const { version, grants = [], marks = [], ...known } = JSON.parse(row.toString())
  assertVersion('the stored progress of a subscription', version, rowVersion)
  return { progress: { ...noProgress, ...known }, grants, marks }
}
