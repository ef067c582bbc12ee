// Subscriptions and registrations as texts of another process: decoded, and looked at as a whole, since whoever has one trusts it from then on.

import type { Registration } from '../domain/providers/registration.js'
import { decodeRegistration } from '../domain/providers/registration-json.js'
import { compilePattern } from '../domain/queries/pattern.js'
import type { SubjectEntity, Subscription } from '../domain/subscriptions/subscription.js'
import { decodeSubscription } from '../domain/subscriptions/subscription-json.js'
import { Unreadable } from '../domain/unreadable.js'
import { isRegistration, isSubscription } from './shapes.js'

/** The subscription of a text. Fails where it is none of this release's version; an expression that is not valid fails as well. */
export function readSubscription(text: string): Subscription {
  const subscription = decodeSubscription(text)
  if (!isSubscription(subscription) || !subscription.entities.every(isSubject))
    throw new Unreadable('a stored subscription is damaged')
  // It would be compiled when it is first needed, in the midst of a change.
  void subscription.condition.expression.q
  return subscription
}

/** Exactly one of `id` and `idPattern` is there, and one of `type` and `typePattern` at most; patterns can be compiled. */
function isSubject({ id, idPattern, type, typePattern }: SubjectEntity): boolean {
  if ((id === undefined) === (idPattern === undefined) || (type !== undefined && typePattern !== undefined))
    return false
  return [idPattern, typePattern].every(pattern => pattern === undefined || compilePattern(pattern) !== undefined)
}

/** The registration of a text. Fails where it is none of this release's version. */
export function readRegistration(text: string): Registration {
  const registration = decodeRegistration(text)
  if (!isRegistration(registration)) throw new Unreadable('a stored registration is damaged')
  return registration
}
