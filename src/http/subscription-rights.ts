// What the rules allow a request about subscriptions (docs/interface/access.md#subscriptions,
// docs/interface/access.md#owners).
//
// A subscription is decided at its creation and at each change, with the rules of the principal that asks, and a change
// with those of the owner as well. For a principal, a subscription that it does not see does not exist. Without
// access control all is allowed.
//
// Not here: the decision about an event (shard/notify/triggers.ts), which documents are seen
// (document-rights.ts).

import { asSeen } from '../domain/access/attribute-set.js'
import type { AllowedGrant } from '../domain/access/grant.js'
import type { OwnedDocument } from '../domain/access/principal.js'
import { attributesUnder, grantOfWatcher, type WatchedPart } from '../domain/access/watching.js'
import type { Entity } from '../domain/entities/entity.js'
import type { Refusal } from '../domain/refusal.js'
import type { Subscription } from '../domain/subscriptions/subscription.js'
import type { DeliveryReport } from '../messages/messages.js'
import type { Permit } from './access-guard.js'

/** The refusal of a subscription by the rules of the principal that asks; undefined: they allow it. */
export function refuseSubscription(permit: Permit | undefined, wanted: WatchedPart): Refusal | undefined {
  if (!permit) return undefined
  const { tenant, servicePath } = wanted
  const grant = permit.asker.grant('subscribe', tenant, [servicePath])
  return counted(permit, grantOfWatcher(grant, 'subscribe', wanted))
}

/** The refusal of a changed subscription by the rules of its owner; undefined: they allow it. */
export function refuseOfOwner(permit: Permit | undefined, changed: WatchedPart & OwnedDocument): Refusal | undefined {
  if (!permit) return undefined
  const grant = permit.asker.grantOfOwner(changed, 'subscribe', changed.tenant)
  return counted(permit, grantOfWatcher(grant, 'subscribe', changed))
}

function counted(permit: Permit, result: ReturnType<typeof grantOfWatcher>): Refusal | undefined {
  if (result.ok) return undefined
  permit.onForbidden()
  return result.refusal
}

/** An entity as the subscription may show it; undefined: it is not there for its owner. */
export function shownBy(
  permit: Permit | undefined,
  subscription: Subscription,
  entity: Entity,
  path: string,
): Entity | undefined {
  if (!permit) return entity
  const set = attributesUnder(grantNow(permit, subscription), entity, path)
  return set && asSeen(set, entity)
}

/** The report without entities that are not there for the owner of the subscription. */
export function reportShownBy(permit: Permit, subscription: Subscription, report: DeliveryReport): DeliveryReport {
  const grant = grantNow(permit, subscription)
  const isShown = (one: { readonly id: string; readonly type: string; readonly path: string }): boolean =>
    attributesUnder(grant, one, one.path) !== undefined
  return {
    ...report,
    deliveries: report.deliveries.filter(isShown),
    deadLetters: report.deadLetters.filter(isShown),
  }
}

function grantNow({ asker }: Permit, subscription: Subscription): AllowedGrant | undefined {
  const grant = grantOfWatcher(
    asker.grantOfOwner(subscription, 'subscribe', subscription.tenant),
    'subscribe',
    subscription,
  )
  return grant.ok ? grant.value : undefined
}
