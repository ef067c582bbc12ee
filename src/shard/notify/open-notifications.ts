// Opens the parts of an owner that notify, with the content of its store.

import { randomBytes } from 'node:crypto'
import type { GrantOfOwner } from '../../domain/access/watching.js'
import type { ShardMap } from '../../domain/scope.js'
import type { Subscription } from '../../domain/subscriptions/subscription.js'
import type { Clock, Logger, Stamps, Store } from '../../ports.js'
import type { GroupCommit } from '../commit/commit.js'
import type { Subscriptions } from '../documents/forms.js'
import { Deliveries, type DeliveryLimits, deliveryLimitsDefault } from './deliveries.js'
import { Descendants } from './descendants.js'
import type { Letter } from './letter-list.js'
import { Letters } from './letters.js'
import { Notifications } from './notifications.js'
import { Outbox, type OutboxLimits } from './outbox.js'
import { Permits } from './permits.js'
import { ProgressBook } from './progress-book.js'
import { type ReplayLimits, Replays } from './replays.js'
import { ReportFlush } from './report-flush.js'
import { Triggers } from './triggers.js'

export interface NotificationNeeds {
  readonly store: Store
  readonly commit: GroupCommit
  readonly subscriptions: Subscriptions
  readonly shardMap: ShardMap
  readonly clock: Clock
  readonly stamps: Stamps
  readonly logger: Pick<Logger, 'info' | 'warn' | 'error'>
  readonly limits: OutboxLimits
  readonly deliveryLimits?: DeliveryLimits | undefined
  /** Whether this owner is the document owner of subscriptions now; undefined: it is the only one. */
  readonly isDocumentOwner: (() => boolean) | undefined
  /** Whether shards come and go: then this owner has none at first. */
  readonly isOfShards: boolean
  /** Whether pending notifications outlive the process. */
  readonly isKept: boolean
  /** How many notifications may descend from one request; 0: there is no limit. */
  readonly descendantsMax: number
  /** The limits for sending dead letters again automatically; undefined: they are not sent again. */
  readonly replays?: ReplayLimits | undefined
  /** What the rules of its owner let a subscription notify of; undefined: everything. */
  readonly grantOfOwner?: GrantOfOwner | undefined
  /** Receives dead letters that are to be sent again; undefined: they are sent here. */
  readonly onRetry?: ((message: Buffer) => void) | undefined
}

/** The parts that notify, and their records. */
export interface Notifying {
  readonly notifications: Notifications
  readonly deliveries: Deliveries
  readonly letters: Letters
  readonly replays: Replays | undefined
  readonly book: ProgressBook
}

/** Reads the content of the store. If shards come and go, that happens with each shard instead. */
export async function openNotifications(needs: NotificationNeeds): Promise<Notifying> {
  const { store, commit, subscriptions, shardMap, clock, stamps, logger } = needs
  const { limits, isDocumentOwner, isOfShards, isKept, descendantsMax } = needs
  const { deliveryLimits = deliveryLimitsDefault, onRetry = message => notifications.again(message) } = needs
  const book = new ProgressBook(subscriptions, commit, shardMap, clock, logger, !isOfShards)
  const permits = new Permits(subscriptions, book, commit, shardMap, clock, isDocumentOwner)
  const descendants = new Descendants(descendantsMax, root =>
    logger.warn(`more than ${descendantsMax} notifications descend from one request, further ones are dropped`, {
      correlator: root,
    }),
  )
  const triggers = new Triggers(subscriptions, book, permits, descendants, clock, logger, needs.grantOfOwner)
  const reportFlush = isOfShards
    ? new ReportFlush(book, commit, shardMap, clock, randomBytes(6).toString('base64url'))
    : undefined
  const outbox = new Outbox(store, commit, limits, isOfShards ? undefined : stamps.last, clock)
  const letters = new Letters(store, commit, { subscriptions, shardMap, stamps, clock, logger, limits: deliveryLimits })
  const isSwitchedOff = (subscription: Subscription) => permits.isSwitchedOff(subscription)
  const replays =
    needs.replays && isKept
      ? new Replays({ subscriptions, letters, isSwitchedOff, clock, limits: needs.replays })
      : undefined
  const nextReplayMs = (letter: Letter) => replays?.nextMs(letter)
  const deliveries = new Deliveries({ subscriptions, letters, limits: deliveryLimits, onRetry, nextReplayMs })
  const notifications = new Notifications({
    commit,
    subscriptions,
    book,
    triggers,
    permits,
    descendants,
    reportFlush,
    outbox,
    atHand: { bytes: 0 },
    deliveries,
    letters,
    replays,
    grantOfOwner: needs.grantOfOwner,
    isKept,
    shardMap,
    stamps,
    clock,
    logger,
  })
  if (!isOfShards) {
    await book.load(store)
    letters.load()
  }
  return { notifications, deliveries, letters, replays, book }
}
