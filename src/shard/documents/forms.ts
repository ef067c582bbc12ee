// The kinds of documents: what is stored of each, and what is kept beside it.

import { decodeRegistration, encodeRegistration, type Registration } from '../../domain/providers/registration.js'
import { noProgress, type Subscription, type SubscriptionProgress } from '../../domain/subscriptions/subscription.js'
import {
  decodeSubscription,
  encodeSubscription,
  isOfThisVersion,
  SubscriptionReader,
} from '../../domain/subscriptions/subscription-json.js'
import type { Documents, Form } from './documents.js'

/** With what became of its notifications. */
export const subscriptionForm: Form<Subscription, SubscriptionProgress> = {
  kind: 'subscription',
  encode: encodeSubscription,
  decode: decodeSubscription,
  decoder() {
    const reader = new SubscriptionReader()
    return text => reader.read(text)
  },
  canWait: isOfThisVersion,
  noProgress,
}

/** Of what is forwarded nothing is kept. */
export const registrationForm: Form<Registration, undefined> = {
  kind: 'registration',
  encode: encodeRegistration,
  decode: decodeRegistration,
  decoder: () => decodeRegistration,
  noProgress: undefined,
}

export type Subscriptions = Documents<Subscription, SubscriptionProgress>
export type Registrations = Documents<Registration, undefined>
