// Operations on subscriptions and registrations (docs/interface/subscriptions.md#create,
// docs/interface/registrations.md#registration-operations): one method each, named as in NGSI.
//
// Both belong to their tenant. The service path is the path that a subscription watches, or of the requests that a
// registration is for. Lists also filter by it. Every owner knows a part of the outcomes of a subscription's
// notifications; a client gets the sum.

import type { Registration } from '../domain/providers/registration.js'
import { accepted, refusals, refused } from '../domain/refusal.js'
import { documentIdOf } from '../domain/stamp.js'
import type { Subscription } from '../domain/subscriptions/subscription.js'
import type {
  ChangeRegistrationRequest,
  ChangeSubscriptionRequest,
  DeliveryReport,
  KnownSubscription,
  ListRegistrationsRequest,
  ListSubscriptionsRequest,
} from '../messages/messages.js'
import type { Chance, Stamps } from '../ports.js'
import type { OnResult } from './replies.js'
import type { KnownPage, RegistrationPage, ShardClient } from './shard-client.js'

/** Generates the ids of new documents, in the order of creation. */
export interface DocumentIds {
  next(): string
}

export const documentIds = (stamps: Pick<Stamps, 'next'>, chance: Pick<Chance, 'uuid'>): DocumentIds => ({
  next: () => documentIdOf(stamps.next(), chance.uuid().slice(-12)),
})

export class SubscriptionOperations {
  constructor(
    private readonly shards: ShardClient,
    private readonly ids: DocumentIds,
  ) {}

  /** `POST /v2/subscriptions`: returns the id. */
  create(wanted: Omit<Subscription, 'id'>, onResult: OnResult<string>): void {
    const id = this.ids.next()
    const subscription = { ...wanted, id }
    this.shards.changeDocument({ kind: 'createSubscription', subscription }, result =>
      onResult(result.ok ? accepted(id) : result),
    )
  }

  /** `GET /v2/subscriptions`: a page in order of creation. */
  list(request: Omit<ListSubscriptionsRequest, 'kind'>, onResult: OnResult<KnownPage>): void {
    this.shards.readSubscriptions({ ...request, kind: 'listSubscriptions' }, onResult)
  }

  retrieve(tenant: string, id: string, onResult: OnResult<KnownSubscription>): void {
    this.shards.readSubscriptions({ kind: 'findSubscription', tenant, id }, result => {
      if (!result.ok) return onResult(result)
      const [only] = result.value.subscriptions
      onResult(only ? accepted(only) : refused(refusals.subscriptionNotFound))
    })
  }

  change(request: Omit<ChangeSubscriptionRequest, 'kind'>, onResult: OnResult<undefined>): void {
    this.shards.changeDocument({ ...request, kind: 'changeSubscription' }, onResult)
  }

  remove(tenant: string, id: string, onResult: OnResult<undefined>): void {
    this.shards.changeDocument({ kind: 'removeSubscription', tenant, id }, onResult)
  }

  /** `GET /v2/subscriptions/{id}/deliveries`: the last tries to notify, and dead letters, at most `limit` of each. */
  deliveries(tenant: string, id: string, limit: number, onResult: OnResult<DeliveryReport>): void {
    this.retrieve(tenant, id, result => {
      if (result.ok) this.shards.deliveries({ kind: 'deliveries', tenant, id, limit }, onResult)
      else onResult(result)
    })
  }

  /** `POST /v2/subscriptions/{id}/deliveries/retry`: sends dead letters again, and returns their number. */
  retryDeliveries(tenant: string, id: string, onResult: OnResult<number>): void {
    this.retrieve(tenant, id, result => {
      if (result.ok) this.shards.retryDeliveries({ kind: 'retryDeliveries', tenant, id }, onResult)
      else onResult(result)
    })
  }
}

export class RegistrationOperations {
  constructor(
    private readonly shards: ShardClient,
    private readonly ids: DocumentIds,
  ) {}

  /** `POST /v2/registrations`: returns the id. */
  create(wanted: Omit<Registration, 'id'>, onResult: OnResult<string>): void {
    const id = this.ids.next()
    const registration = { ...wanted, id }
    this.shards.changeDocument({ kind: 'createRegistration', registration }, result =>
      onResult(result.ok ? accepted(id) : result),
    )
  }

  /** `GET /v2/registrations`: a page in order of creation. */
  list(request: Omit<ListRegistrationsRequest, 'kind'>, onResult: OnResult<RegistrationPage>): void {
    this.shards.readRegistrations({ ...request, kind: 'listRegistrations' }, onResult)
  }

  retrieve(tenant: string, id: string, onResult: OnResult<Registration>): void {
    this.shards.readRegistrations({ kind: 'findRegistration', tenant, id }, result => {
      if (!result.ok) return onResult(result)
      const [only] = result.value.registrations
      onResult(only ? accepted(only) : refused(refusals.registrationNotFound))
    })
  }

  change(request: Omit<ChangeRegistrationRequest, 'kind'>, onResult: OnResult<undefined>): void {
    this.shards.changeDocument({ ...request, kind: 'changeRegistration' }, onResult)
  }

  remove(tenant: string, id: string, onResult: OnResult<undefined>): void {
    this.shards.changeDocument({ kind: 'removeRegistration', tenant, id }, onResult)
  }
}
