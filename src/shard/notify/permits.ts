// Claims: subscriptions that depend on their own past (throttling, one-shots, a limit of failures) are decided about in
// one place, the home of their tenant, so that of several owners no two send what only one may.
//
// Who wants to send asks when its change is durable, again and again until there is an answer; the home knows what it
// has granted lately, so the same notification is never refused because of itself. A grant is durable before it is
// told. What then becomes of the notification is told to the home as well: of such a subscription it alone has the
// counters. A throttled one is not asked for before its time is over: all owners read the clock of one machine, or
// clocks that are kept alike.
//
// A subscription may come to depend on its past when it is changed. Until then each owner has decided alone, so the
// home asks all of them for the time of the latest notification, and decides nothing about the subscription before it
// knows.

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

/** Pause before a home is asked again that did not answer. */
const retryMs = 1_000
/** How long the answer of a home counts that a subscription is switched off, or is not. */
const statusMsMax = 10_000
/** How often the home asks owners for the past of a subscription; then it decides by what it knows. */
const learnTriesMax = 5

export class Permits {
  private readonly subscriptions: Subscriptions
  private readonly book: ProgressBook
  private readonly commit: GroupCommit
  private readonly shardMap: ShardMap
  private readonly clock: Clock
  private readonly isDocumentOwnerOf: ((tenant: string) => boolean) | undefined
  private shards: Shards | undefined
  /** Until when the home refuses, by subscription: who asks nevertheless asks in vain. */
  private readonly quiet = new Map<string, number>()
  /** What homes have told of the status of subscriptions, and when (monotonic); undefined: they have been asked. */
  private readonly statuses = new Map<string, { readonly isOff: boolean; readonly atMs: number } | undefined>()
  /** Subscriptions whose past this home is asking for, each with the claims that wait for it. */
  private readonly learning = new Map<string, (() => void)[]>()

  /** `isHomeOf`: whether this owner is a tenant's home now; undefined: there is one owner, which claims nothing. */
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
    // Whoever changes it may end the quiet.
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

  /** From now on homes are asked through `shards`. */
  begin(shards: Shards): void {
    this.shards = shards
  }

  /** Nobody is asked any more. */
  end(): void {
    this.shards = undefined
    this.learning.clear()
  }

  /** Asks all other owners when the subscription was last notified, if this owner is its home. */
  private learn(subscription: Subscription, tries: number): void {
    const { shards } = this
    const { tenant, id } = subscription
    if (!shards || !this.isByDocumentOwner(subscription) || !this.isDocumentOwner(subscription)) return
    const home = shards.ownerOf(this.shardMap.register)
    const others = shards.owners().filter(shard => shards.ownerOf(shard) !== home)
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

  /** Whether one of several owners decides about it, its home. */
  isByDocumentOwner(subscription: Subscription): boolean {
    return this.isDocumentOwnerOf !== undefined && isGuarded(subscription)
  }

  /** Whether this owner is its home. */
  isDocumentOwner({ tenant }: Subscription): boolean {
    return this.isDocumentOwnerOf?.(tenant) ?? true
  }

  /** Whether this owner is its home, and knows its past. */
  isDecidedHere(subscription: Subscription): boolean {
    return this.isDocumentOwner(subscription) && !this.learning.has(subscription.id)
  }

  /** Whether another owner decides about it. */
  isElsewhere(subscription: Subscription): boolean {
    return this.isByDocumentOwner(subscription) && !this.isDocumentOwner(subscription)
  }

  /** Asks whether a notification may be sent, until there is an answer, or nobody is asked any more. */
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

  // [hot] Once per change and subscription of another home that it matches.
  /** Whether the home is known to refuse now. */
  isQuiet({ id }: Subscription, nowMs: number): boolean {
    const untilMs = this.quiet.get(id)
    return untilMs !== undefined && nowMs < untilMs
  }

  /** Tells the home what became of a notification that it has granted. Counters miss what cannot be told. */
  tell(tenant: string, id: string, news: ProgressReport): void {
    this.shards?.ask(this.shardMap.register, { kind: 'news', tenant, id, news }, () => {})
  }

  /**
   * Whether a one-shot or too many failures have switched a subscription off, as far as is known; undefined: its home
   * is asked.
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

  onProgressReport({ tenant, id, news }: ProgressReportRequest, onReply: (reply: ShardReply) => void): void {
    this.book.noteReport(tenant, id, news)
    onReply({ kind: 'done' })
  }
}
