// Operations on subscriptions (subscriptions.md §2): one method each, in the words of NGSI.
//
// A subscription belongs to its tenant; its service path says what it watches, and finds it in lists. What became of its notifications is known
// to every owner in part: whoever is shown a subscription is shown all of it.

import { accepted, type Result, refusals, refused } from '../domain/refusal.js'
import type { Subscription } from '../domain/subscriptions/subscription.js'
import type {
  ChangeSubscriptionRequest,
  DeliveryReport,
  KnownSubscription,
  ListSubscriptionsRequest,
} from '../messages/messages.js'
import type { DocumentIds } from './document-ids.js'
import type { OnResult } from './replies.js'
import type { KnownPage, ShardClient } from './shard-client.js'

export class SubscriptionOperations {
  private readonly shards: ShardClient
  private readonly ids: DocumentIds

  constructor(shards: ShardClient, ids: DocumentIds) {
    this.shards = shards
    this.ids = ids
  }

  /** `POST /v2/subscriptions`: gives the id. */
  create(wanted: Omit<Subscription, 'id'>, onResult: OnResult<string>): void {
    const id = this.ids.next()
    const subscription = { ...wanted, id }
    this.shards.changeSubscription({ kind: 'createSubscription', subscription }, result =>
      onResult(result.ok ? accepted(id) : result),
    )
  }

  /** `GET /v2/subscriptions`: a page in order of creation. */
  list(request: Omit<ListSubscriptionsRequest, 'kind'>, onResult: OnResult<KnownPage>): void {
    this.shards.readSubscriptions({ ...request, kind: 'listSubscriptions' }, onResult)
  }

  /** `GET /v2/subscriptions/{id}`. */
  retrieve(tenant: string, id: string, onResult: OnResult<KnownSubscription>): void {
    this.shards.readSubscriptions({ kind: 'findSubscription', tenant, id }, result => {
      if (!result.ok) return onResult(result)
      onResult(onlyOne(result.value))
    })
  }

  /** `PATCH /v2/subscriptions/{id}`. */
  change(request: Omit<ChangeSubscriptionRequest, 'kind'>, onResult: OnResult<undefined>): void {
    this.shards.changeSubscription({ ...request, kind: 'changeSubscription' }, onResult)
  }

  /** `DELETE /v2/subscriptions/{id}`. */
  remove(tenant: string, id: string, onResult: OnResult<undefined>): void {
    this.shards.changeSubscription({ kind: 'removeSubscription', tenant, id }, onResult)
  }

  /** `GET /v2/subscriptions/{id}/deliveries`: the last tries to notify, and dead letters, `limit` of each at most. */
  deliveries(tenant: string, id: string, limit: number, onResult: OnResult<DeliveryReport>): void {
    this.retrieve(tenant, id, result => {
      if (result.ok) this.shards.deliveries({ kind: 'deliveries', tenant, id, limit }, onResult)
      else onResult(result)
    })
  }

  /** `POST /v2/subscriptions/{id}/deliveries/retry`: sends dead letters again; gives how many. */
  retryDeliveries(tenant: string, id: string, onResult: OnResult<number>): void {
    this.retrieve(tenant, id, result => {
      if (result.ok) this.shards.retryDeliveries({ kind: 'retryDeliveries', tenant, id }, onResult)
      else onResult(result)
    })
  }
}

function onlyOne({ subscriptions: [only] }: KnownPage): Result<KnownSubscription> {
  return only ? accepted(only) : refused(refusals.subscriptionNotFound)
}
