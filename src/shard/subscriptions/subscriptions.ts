// The subscriptions that an owner of shards knows: those of all tenants, in memory and in its store.
//
// Memory says what has been staged; the store follows with the commit that `put` and `remove` name. Whoever tells somebody of what it reads
// here waits for `stagedIn` first. All rows are read at start, and decoded: 100,000 of 600 bytes take about a second, and then 1.2 KB each.
//
// What became of a subscription's notifications is kept beside it, each owner its own part (progress-book.ts).
//
// Not here: who may change what (home.ts), how owners hear of each other's changes (sharing.ts, learning.ts), what a change of an entity
// triggers.

import type { ShardMap } from '../../domain/scope.js'
import { noProgress, type Subscription, type SubscriptionProgress } from '../../domain/subscription.js'
import { decodeSubscription, encodeSubscription } from '../../domain/subscription-json.js'
import type { KnownSubscription } from '../../messages.js'
import type { Store } from '../../ports.js'
import type { GroupCommit } from '../commit.js'
import {
  allSubscriptions,
  decodeSubscriptionRow,
  encodeSubscriptionRow,
  parseSubscriptionKey,
  type SubscriptionKey,
  subscriptionKey,
} from '../layout.js'

const rowsPerRead = 1000

/** Told what subscriptions a tenant has. */
export interface SubscriptionFollower {
  /** There is a new one, or another in the place of the one with its id. */
  add(subscription: Subscription): void
  remove(id: string): void
}

/** A row as it was found at start; without a subscription it tells of a removal. */
export interface LoadedRow extends SubscriptionKey {
  readonly revision: number
  readonly subscription: Subscription | undefined
}

interface Held {
  subscription: Subscription
  progress: SubscriptionProgress
}

/** The subscriptions of one tenant. */
export class TenantSubscriptions {
  private readonly held = new Map<string, Held>()
  /** Ascending, which is the order of creation. */
  private readonly ids: string[] = []
  private readonly followers: readonly SubscriptionFollower[]

  constructor(followers: readonly SubscriptionFollower[]) {
    this.followers = followers
  }

  get size(): number {
    return this.ids.length
  }

  get(id: string): Subscription | undefined {
    return this.held.get(id)?.subscription
  }

  /** In the order of ids. */
  *all(): Iterable<Subscription> {
    for (const id of this.ids) yield this.held.get(id)!.subscription
  }

  /** What this owner knows of a subscription's notifications; nothing has become of one that is not there. */
  progressOf(id: string): SubscriptionProgress {
    return this.held.get(id)?.progress ?? noProgress
  }

  /** Keeps what became of a subscription's notifications, if it is still there. */
  note(id: string, progress: SubscriptionProgress): void {
    const held = this.held.get(id)
    if (held) held.progress = progress
  }

  /** A page in the order of ids, of those that watch exactly the path (undefined: of all), and how many these are. */
  page(
    servicePath: string | undefined,
    offset: number,
    limit: number,
  ): { readonly subscriptions: readonly KnownSubscription[]; readonly total: number } {
    // Looking at 100,000 takes 10 ms: lists by path are rare, and an index for them would have to be kept by every owner.
    const ids =
      servicePath === undefined
        ? this.ids
        : this.ids.filter(id => this.held.get(id)!.subscription.servicePath === servicePath)
    const subscriptions = ids.slice(offset, offset + limit).map(id => ({ ...this.held.get(id)! }))
    return { subscriptions, total: ids.length }
  }

  /** Takes a subscription in, new or changed; true if it is new. */
  set(subscription: Subscription): boolean {
    const { id } = subscription
    const held = this.held.get(id)
    if (held) held.subscription = subscription
    else {
      this.held.set(id, { subscription, progress: noProgress })
      this.ids.splice(placeOf(this.ids, id), 0, id)
    }
    for (const follower of this.followers) follower.add(subscription)
    return !held
  }

  /** Forgets a subscription; true if it was there. */
  delete(id: string): boolean {
    if (!this.held.delete(id)) return false
    this.ids.splice(placeOf(this.ids, id), 1)
    for (const follower of this.followers) follower.remove(id)
    return true
  }
}

/** How many ids are before this one. Nearly always all of them: new ones come last. */
function placeOf(ids: readonly string[], id: string): number {
  let low = 0
  let high = ids.length
  if (high === 0 || ids[high - 1]! < id) return high
  while (low < high) {
    const middle = (low + high) >>> 1
    if (ids[middle]! < id) low = middle + 1
    else high = middle
  }
  return low
}

export class Subscriptions {
  private readonly store: Store
  private readonly commit: GroupCommit
  private readonly shardMap: ShardMap
  private readonly tenants = new Map<string, TenantSubscriptions>()
  private readonly makers: ((tenant: string) => SubscriptionFollower)[] = []
  private count = 0
  /** Since the start; what was there then is not counted. */
  readonly changes = { inserts: 0, updates: 0, removes: 0 }
  /** The commit that carries the latest change: what is read here is durable with it. */
  stagedIn = 0
  /** Told of each subscription that is forgotten. */
  onRemoved: (tenant: string, id: string) => void = () => {}

  constructor(store: Store, commit: GroupCommit, shardMap: ShardMap) {
    this.store = store
    this.commit = commit
    this.shardMap = shardMap
  }

  /** How many there are, of all tenants. */
  get size(): number {
    return this.count
  }

  /** The subscriptions of a tenant; undefined when it has none. */
  of(tenant: string): TenantSubscriptions | undefined {
    return this.tenants.get(tenant)
  }

  /**
   * Has all subscriptions followed from now on. `make` is asked for a tenant's follower when the tenant gets its first one, and again if it
   * gets one after its last has gone. To be called before `load`.
   */
  follow(make: (tenant: string) => SubscriptionFollower): void {
    this.makers.push(make)
  }

  /** Reads what the store has, and tells of each row. To be called once, before anything else is asked. */
  async load(onRow: (row: LoadedRow) => void): Promise<void> {
    const cursor = this.store.cursor(allSubscriptions())
    try {
      let reading = cursor.next(rowsPerRead)
      for (;;) {
        const rows = await reading
        if (rows.length === 0) return
        // Read ahead, while these are decoded: a third less time.
        reading = cursor.next(rowsPerRead)
        // Whoever awaits it is told; if a row cannot be decoded, nobody does.
        reading.catch(() => undefined)
        for (const { key, value } of rows) {
          const { revision, text } = decodeSubscriptionRow(value)
          if (text === '') onRow({ ...parseSubscriptionKey(key), revision, subscription: undefined })
          else onRow(this.recall(decodeSubscription(text), revision))
        }
      }
    } finally {
      await cursor.close()
    }
  }

  // [hot] For each row at start: what the key tells stands in the row as well.
  private recall(subscription: Subscription, revision: number): LoadedRow {
    const { tenant, id } = subscription
    this.hold(subscription)
    return { home: this.shardMap.homeOf(tenant), tenant, id, revision, subscription }
  }

  /** Takes in a subscription, new or changed, with the text it is stored as. */
  put(subscription: Subscription, revision: number, text = encodeSubscription(subscription)): void {
    if (this.hold(subscription)) this.changes.inserts++
    else this.changes.updates++
    const { tenant, id } = subscription
    this.stagedIn = this.commit.write(this.keyOf(tenant, id), encodeSubscriptionRow(revision, text))
  }

  /** Forgets a subscription. With a revision its row stays and tells of that, until `bury`. */
  remove(tenant: string, id: string, revision?: number): void {
    const held = this.tenants.get(tenant)
    if (held?.delete(id)) {
      this.count--
      this.changes.removes++
      this.onRemoved(tenant, id)
      if (held.size === 0) this.tenants.delete(tenant)
    }
    const row = revision === undefined ? undefined : encodeSubscriptionRow(revision, '')
    this.stagedIn = this.commit.write(this.keyOf(tenant, id), row)
  }

  /** Deletes the row of a subscription that was removed. Nobody need wait for that. */
  bury(tenant: string, id: string): void {
    this.commit.write(this.keyOf(tenant, id), undefined)
  }

  /** Those of all tenants. */
  *all(): Iterable<Subscription> {
    for (const held of this.tenants.values()) yield* held.all()
  }

  /** Whether it is a new one. */
  private hold(subscription: Subscription): boolean {
    const { tenant } = subscription
    let held = this.tenants.get(tenant)
    if (!held) {
      held = new TenantSubscriptions(this.makers.map(make => make(tenant)))
      this.tenants.set(tenant, held)
    }
    const isNew = held.set(subscription)
    if (isNew) this.count++
    return isNew
  }

  private keyOf(tenant: string, id: string): Buffer {
    return subscriptionKey({ home: this.shardMap.homeOf(tenant), tenant, id })
  }
}
