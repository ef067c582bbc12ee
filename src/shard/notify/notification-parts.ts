// What notifications are made of, for what hands them over (notifications.ts) and for each of them (pending-intent.ts).

import type { ShardMap } from '../../domain/scope.js'
import type { Clock, Logger, Stamps } from '../../ports.js'
import type { GroupCommit } from '../commit/commit.js'
import type { Subscriptions } from '../documents/forms.js'
import type { Claims } from './claims.js'
import type { Deliveries } from './deliveries.js'
import type { Descendants } from './descendants.js'
import type { HandingIn } from './handing-in.js'
import type { Outbox } from './outbox.js'
import type { ProgressBook } from './progress-book.js'
import type { Triggers } from './triggers.js'

export interface NotificationParts {
  readonly commit: GroupCommit
  readonly subscriptions: Subscriptions
  readonly book: ProgressBook
  readonly triggers: Triggers
  readonly claims: Claims
  readonly descendants: Descendants
  /** undefined where rows of progress are always kept. */
  readonly handingIn: HandingIn | undefined
  readonly outbox: Outbox
  /** Images of what waits in memory to be rendered, each counted for every notification of it. */
  readonly atHand: { bytes: number }
  readonly deliveries: Deliveries
  readonly shardMap: ShardMap
  readonly stamps: Pick<Stamps, 'next'>
  /** Whether pending notifications outlive the process (`-notifDelivery atLeastOnce`). */
  readonly isKept: boolean
  readonly clock: Clock
  readonly logger: Pick<Logger, 'warn' | 'error'>
}
