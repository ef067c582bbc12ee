// The kinds of documents: their stored form, and the progress that is kept beside them.

import { decodeRegistration, encodeRegistration, type Registration } from '../../domain/providers/registration.js'
import { noProgress, type Subscription, type SubscriptionProgress } from '../../domain/subscriptions/subscription.js'
import {
  decodeSubscription,
  encodeSubscription,
  isOfThisVersion,
  SubscriptionReader,
} from '../../domain/subscriptions/subscription-json.js'
import type { Documents, Form } from './documents.js'

/** Subscriptions, with the progress of their notifications. */
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

/** Registrations. No progress of forwarded requests is kept. */
export const registrationForm: Form<Registration, undefined> = {
  kind: 'registration',
  encode: encodeRegistration,
  decode: decodeRegistration,
  decoder: () => decodeRegistration,
  noProgress: undefined,
}

export type Subscriptions = Documents<Subscription, SubscriptionProgress>
export type Registrations = Documents<Registration, undefined>
