// Permits. A subscription that depends on its own past (throttling, one-shots, a limit of failures) is decided about in
// one place, the document owner. So two owners never both send what only one may.
//
// An owner requests a permit when its change is durable, and repeats that until there is an answer. The document owner
// remembers the latest permits, so it never refuses a notification because of that same notification. A permit is
// durable before the reply leaves. The document owner also receives the outcome of the notification: it alone has the
// counters of such a subscription. An owner does not ask for a throttled subscription before its time is over. That is
// possible because all owners read the clock of one machine, or synchronized clocks.
//
// A change may make a subscription depend on its past. Until then each owner has decided alone. So the document owner
// asks all of them for the time of the latest notification, and decides nothing about the subscription before it knows
// that.

import type { ShardMap } from '../../domain/scope.js'
import type { Subscription } from '../../domain/subscriptions/subscription.js'
import { isExpired, isThrottled, storedStatus } from '../../domain/subscriptions/subscription-status.js'
import type {
  PermitRequest,
  ProgressReport,
  ProgressReportRequest,
  ShardReply,
  Shards,
} from '../../messages/messages.js'
import type { Clock } from '../../ports.js'
import type { GroupCommit } from '../commit/commit.js'
import { hasLost, replyAfterFailure } from '../commit/deposed.js'
import type { Subscriptions } from '../documents/forms.js'
import { isGuarded, type ProgressBook } from './progress-book.js'

/** Pause before a document owner that did not answer is asked again. */
const retryMs = 1_000
/** How long an answer about the status of a subscription stays valid. */
const statusMsMax = 10_000
/** How often the document owner asks owners for the past of a subscription. After that it decides by what it knows. */
const learnTriesMax = 5

export class Permits {
  private readonly subscriptions: Subscriptions
  private readonly book: ProgressBook
  private readonly commit: GroupCommit
  private readonly shardMap: ShardMap
  private readonly clock: Clock
  private readonly isDocumentOwnerOf: ((tenant: string) => boolean) | undefined
  private shards: Shards | undefined
  /** Until when the document owner refuses, by subscription: before that time no permit is requested. */
  private readonly quiet = new Map<string, number>()
  /**
   * The status of subscriptions as document owners reported it, and when (monotonic); undefined: the request is in
   * flight.
   */
  private readonly statuses = new Map<string, { readonly isOff: boolean; readonly atMs: number } | undefined>()
  /** Subscriptions whose past this document owner is asking for, each with the permit requests that wait for it. */
  private readonly learning = new Map<string, (() => void)[]>()

  /**
   * `isDocumentOwnerOf`: whether this owner is a tenant's document owner now; undefined: it is the only owner, and
   * needs no permits.
   */
  constructor(
    subscriptions: Subscriptions,
    book: ProgressBook,
    commit: GroupCommit,
    shardMap: ShardMap,
    clock: Clock,
    isDocumentOwnerOf: ((tenant: string) => boolean) | undefined,
  ) {
    this.subscriptions = subscriptions
    this.book = book
    this.commit = commit
    this.shardMap = shardMap
    this.clock = clock
    this.isDocumentOwnerOf = isDocumentOwnerOf
    // A change of the subscription may end the refusals.
    const forget = (id: string): void => {
      this.quiet.delete(id)
      this.statuses.delete(id)
    }
    subscriptions.follow(() => ({
      add: subscription => {
        forget(subscription.id)
        this.learn(subscription, 1)
      },
      remove: id => {
        forget(id)
        this.endLearning(id)
      },
    }))
  }

  /** Sends requests to document owners through `shards` from now on. */
  begin(shards: Shards): void {
    this.shards = shards
  }

  /** Stops sending requests. */
  end(): void {
    this.shards = undefined
    this.learning.clear()
  }

  /** Asks all other owners when the subscription was last notified, if this owner is the document owner. */
  private learn(subscription: Subscription, tries: number): void {
    const { shards } = this
    const { tenant, id } = subscription
    if (!shards || !this.isByDocumentOwner(subscription) || !this.isDocumentOwner(subscription)) return
    const documentOwner = shards.ownerOf(this.shardMap.register)
    const others = shards.owners().filter(shard => shards.ownerOf(shard) !== documentOwner)
    if (others.length === 0) return this.endLearning(id)
    if (!this.learning.has(id)) this.learning.set(id, [])
    let open = others.length
    let isMissing = false
    const onReply = (reply: ShardReply): void => {
      if (reply.kind === 'progress') for (const part of reply.parts) this.book.noteEarlier(tenant, id, part)
      else isMissing = true
      if (--open > 0) return
      if (isMissing && tries < learnTriesMax) this.clock.after(retryMs, () => this.learn(subscription, tries + 1))
      else this.endLearning(id)
    }
    for (const shard of others) shards.ask(shard, { kind: 'progress', tenant, ids: [id] }, onReply)
  }

  private endLearning(id: string): void {
    const waiting = this.learning.get(id)
    this.learning.delete(id)
    for (const decide of waiting ?? []) decide()
  }

  /** Whether several owners exist, and the document owner decides about the subscription. */
  isByDocumentOwner(subscription: Subscription): boolean {
    return this.isDocumentOwnerOf !== undefined && isGuarded(subscription)
  }

  /** Whether this owner is the document owner. */
  isDocumentOwner({ tenant }: Pick<Subscription, 'tenant'>): boolean {
    return this.isDocumentOwnerOf?.(tenant) ?? true
  }

  /** Whether this owner is the document owner, and knows the subscription's past. */
  isDecidedHere(subscription: Subscription): boolean {
    return this.isDocumentOwner(subscription) && !this.learning.has(subscription.id)
  }

  /** Whether another owner decides about the subscription. */
  isElsewhere(subscription: Subscription): boolean {
    return this.isByDocumentOwner(subscription) && !this.isDocumentOwner(subscription)
  }

  /** Requests a permit for a notification, and repeats that until there is an answer, or `end` was called. */
  claim(tenant: string, id: string, notification: string, onAnswer: (isGranted: boolean) => void): void {
    const again = (): void => void this.clock.after(retryMs, () => this.claim(tenant, id, notification, onAnswer))
    this.shards?.ask(this.shardMap.register, { kind: 'claim', tenant, id, notification }, reply => {
      if (reply.kind !== 'claimed') return again()
      if (reply.quietUntilMs !== undefined) this.keepQuiet(tenant, id, reply.quietUntilMs)
      onAnswer(reply.isGranted)
    })
  }

  private keepQuiet(tenant: string, id: string, untilMs: number): void {
    if (this.subscriptions.of(tenant)?.has(id)) this.quiet.set(id, untilMs)
  }

  // [hot] Once per change and matching subscription of another document owner.
  /** Whether the document owner is known to refuse now. */
  isQuiet({ id }: Subscription, nowMs: number): boolean {
    const untilMs = this.quiet.get(id)
    return untilMs !== undefined && nowMs < untilMs
  }

  /**
   * Sends the outcome of a permitted notification to the document owner. An outcome that does not arrive is not
   * counted.
   */
  report(tenant: string, id: string, report: ProgressReport): void {
    this.shards?.ask(this.shardMap.register, { kind: 'news', tenant, id, news: report }, () => {})
  }

  /**
   * Whether a one-shot or too many failures have switched a subscription off, as far as is known; undefined: the
   * document owner is being asked.
   */
  isSwitchedOff(subscription: Subscription): boolean | undefined {
    const { tenant, id } = subscription
    if (!this.isElsewhere(subscription)) return storedStatus(subscription, this.book.of(tenant, id)) === 'inactive'
    const known = this.statuses.get(id)
    if (known && this.clock.monoMs() - known.atMs < statusMsMax) return known.isOff
    if (!known && this.statuses.has(id)) return undefined
    this.statuses.set(id, undefined)
    this.askStatus(subscription)
    return undefined
  }

  private askStatus(subscription: Subscription): void {
    const { tenant, id } = subscription
    this.shards?.ask(this.shardMap.register, { kind: 'progress', tenant, ids: [id] }, reply => {
      if (!this.statuses.has(id)) return
      const [progress] = reply.kind === 'progress' ? reply.parts : []
      if (!progress) this.statuses.delete(id)
      else {
        const isOff = storedStatus(subscription, progress) === 'inactive'
        this.statuses.set(id, { isOff, atMs: this.clock.monoMs() })
      }
    })
  }

  onPermitRequest(request: PermitRequest, onReply: (reply: ShardReply) => void): void {
    const { tenant, id, notification } = request
    // It may have waited while another owner took the register over.
    if (!this.isDocumentOwner(request)) return onReply({ kind: 'moved' })
    const waiting = this.learning.get(id)
    if (waiting) return void waiting.push(() => this.onPermitRequest(request, onReply))
    const subscription = this.subscriptions.of(tenant)?.get(id)
    const isGranted =
      subscription !== undefined && (this.book.hasGranted(id, notification) || this.grant(subscription, notification))
    const quietUntilMs = subscription && this.quietUntilMs(subscription)
    this.commit.afterCommit(this.book.writeNow(tenant, id), failure =>
      onReply(
        failure && hasLost(failure, this.shardMap.register)
          ? replyAfterFailure(failure)
          : { kind: 'claimed', isGranted, quietUntilMs },
      ),
    )
  }

  private quietUntilMs({ tenant, id, throttlingSeconds }: Subscription): number | undefined {
    const { lastNotificationMs } = this.book.of(tenant, id)
    if (throttlingSeconds === 0 || lastNotificationMs === undefined) return undefined
    return lastNotificationMs + throttlingSeconds * 1000
  }

  private grant(subscription: Subscription, notification: string): boolean {
    const progress = this.book.of(subscription.tenant, subscription.id)
    const nowMs = this.clock.wallMs()
    if (storedStatus(subscription, progress) === 'inactive' || isExpired(subscription, nowMs)) return false
    if (isThrottled(subscription, progress, nowMs)) return false
    this.book.noteGranted(subscription, notification)
    return true
  }

  onProgressReport({ tenant, id, news: report }: ProgressReportRequest, onReply: (reply: ShardReply) => void): void {
    this.book.noteReport(tenant, id, report)
    onReply({ kind: 'done' })
  }
}
