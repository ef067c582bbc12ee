// What an owner of shards needs to answer for subscriptions, put together from the rows of its store.
//
// Each row says whose it is: ours, when the home of its tenant is one of our shards, or a copy of what another home has told. A row that tells
// of a removal is of use to its home alone, and only when there are others to be told.

import { type ShardMap, workerOf } from '../../domain/scope.js'
import type { Clock, Stamps } from '../../ports.js'
import type { GroupCommit } from '../commit.js'
import { type HomeLimits, SubscriptionHome } from './home.js'
import type { JournalEntry } from './journal.js'
import { Learning } from './learning.js'
import { Sharing } from './sharing.js'
import type { Subscriptions } from './subscriptions.js'

/** Which of several workers an owner is. */
export interface WorkerPart {
  readonly worker: number
  readonly workers: number
}

export interface HomeParts {
  readonly subscriptions: Subscriptions
  readonly commit: GroupCommit
  readonly shardMap: ShardMap
  readonly clock: Clock
  readonly stamps: Stamps
  readonly limits: HomeLimits
  /** undefined: it is alone. */
  readonly part: WorkerPart | undefined
}

/** The home with all that its store has, and the means to tell others of it, if there are others. */
export interface OpenHome {
  readonly home: SubscriptionHome
  readonly sharing: Sharing | undefined
}

/** Reads the rows. To be called before the store's stamps go on: the last of them is above every revision there is. */
export async function openHome(parts: HomeParts): Promise<OpenHome> {
  const { subscriptions, commit, stamps, limits, part } = parts
  if (part) return openOneOf(parts, part)
  await subscriptions.load(({ tenant, id, subscription }) => {
    if (!subscription) subscriptions.bury(tenant, id)
  })
  return { home: new SubscriptionHome(subscriptions, commit, stamps, limits, undefined), sharing: undefined }
}

async function openOneOf(parts: HomeParts, { worker, workers }: WorkerPart): Promise<OpenHome> {
  const { subscriptions, commit, shardMap, clock, stamps, limits } = parts
  const horizon = stamps.last
  const learning = new Learning(subscriptions, commit, tenant => workerOf(shardMap.homeOf(tenant), workers))
  const own: JournalEntry[] = []
  await subscriptions.load(({ home, revision, tenant, id, subscription }) => {
    const owner = workerOf(home, workers)
    if (owner === worker) return void own.push({ revision, tenant, id, subscription })
    learning.recall(owner, revision)
    if (!subscription) subscriptions.bury(tenant, id)
  })
  const sharing = new Sharing(worker, clock, subscriptions, learning, own, horizon)
  return { home: new SubscriptionHome(subscriptions, commit, stamps, limits, { sharing, learning }), sharing }
}
