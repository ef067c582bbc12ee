// The lines of subscriptions and registrations (README "Moving in and out"): read and written.
//
//   {"subscription":{...},"tenant":"city","servicePath":"/#","progress":{"timesSent":3,...},"spent":true}
//   {"registration":{...},"tenant":"city","servicePath":"/"}
//
// Inside stands what GET shows, so that anybody can write it; of a subscription its secrets as well (domain/subscriptions/secrets.ts), and numbers in full precision. What
// became of its notifications stands in `progress`, exactly; without that it is taken from what GET shows. `spent`: a one-shot that has
// fired, or too many failures, have switched it off. It is read as the body of a POST would be, with its id.
//
// The revision of its status (subscription.ts) is not kept: it counts from 1 again, and what was spent is spent.

import { isObject, type Json, type JsonObject } from '../domain/json.js'
import { renderRegistration } from '../domain/providers/registration.js'
import { parseRegistration } from '../domain/providers/registration-parser.js'
import { accepted, type Result, refused } from '../domain/refusal.js'
import {
  type CustomBody,
  checkSubscriptionId,
  noProgress,
  type Subscription,
  type SubscriptionProgress,
} from '../domain/subscriptions/subscription.js'
import { renderSubscription } from '../domain/subscriptions/subscription-json.js'
import { parseSubscription } from '../domain/subscriptions/subscription-parser.js'
import { badLine, checkKeys, readPath, readTenant, readTime, time } from './line-fields.js'
import type { MovedRegistration, MovedSubscription } from './moved.js'

// Writing

export function writeSubscription({ subscription, progress }: MovedSubscription): string {
  const { tenant, servicePath, statusRevision } = subscription
  const told = progressJson(progress)
  return JSON.stringify({
    subscription: subscriptionJson(subscription),
    tenant,
    servicePath,
    progress: Object.keys(told).length === 0 ? undefined : told,
    spent: progress.spentRevision === statusRevision ? true : undefined,
  })
}

/** A subscription as GET shows it, its secrets and all digits of its numbers included, without what became of it. */
export function subscriptionJson(subscription: Subscription): JsonObject {
  // Its end is no status of its own: with this one it has not come.
  const shown = JSON.parse(renderSubscription(subscription, noProgress, Number.NEGATIVE_INFINITY))
  const { transport } = subscription.notification
  const settings = shown.notification[transport.kind]
  if ('login' in transport && transport.login) settings.passwd = transport.login.passwd
  if (transport.kind === 'httpCustom')
    for (const field of ['qs', 'headers'] as const)
      if (transport[field].length > 0) settings[field] = Object.fromEntries(transport[field])
  if ('body' in transport && transport.body) Object.assign(settings, bodyJson(transport.body))
  return shown
}

/** What GET rounds. */
function bodyJson(body: CustomBody): Record<string, unknown> {
  if (body.kind === 'json') return { json: body.template }
  if (body.kind !== 'ngsi') return {}
  const { id, type, attributes } = body.patch
  const members: (readonly [string, unknown])[] = [...attributes]
  if (type !== undefined) members.unshift(['type', type])
  if (id !== undefined) members.unshift(['id', id])
  return { ngsi: Object.fromEntries(members) }
}

function progressJson(progress: SubscriptionProgress): Record<string, string | number> {
  const { timesSent, failsCounter, lastFailureReason, lastSuccessCode } = progress
  const times = Object.entries({
    lastNotification: progress.lastNotificationMs,
    lastSuccess: progress.lastSuccessMs,
    lastFailure: progress.lastFailureMs,
  })
  return {
    ...(timesSent > 0 && { timesSent }),
    ...(failsCounter > 0 && { failsCounter }),
    ...Object.fromEntries(times.flatMap(([name, ms]) => (ms === undefined ? [] : [[name, time(ms)]]))),
    ...(lastSuccessCode !== undefined && { lastSuccessCode }),
    ...(lastFailureReason !== '' && { lastFailureReason }),
  }
}

export function writeRegistration({ registration }: MovedRegistration): string {
  const { tenant, servicePath } = registration
  return JSON.stringify({ registration: JSON.parse(renderRegistration(registration)), tenant, servicePath })
}

// Reading

export function readSubscription(json: JsonObject, isDeep: boolean): Result<MovedSubscription> {
  const unknown = checkKeys(json, ['subscription', 'tenant', 'servicePath', 'progress', 'spent'])
  if (unknown) return refused(unknown)
  const { subscription: body, spent = false } = json
  if (!isObject(body)) return badLine('subscription is not an object')
  if (typeof spent !== 'boolean') return badLine('spent is not true or false')
  const head = readHead(json, body, true)
  if (!head.ok) return head
  const payload = { value: withPlainStatus(body), duplicates: [], deep: isDeep }
  const subscription = parseSubscription(payload, head.value)
  if (!subscription.ok) return subscription
  const { notification = {} } = body
  const progress = readProgress(json.progress ?? notification)
  if (!progress.ok) return progress
  return accepted({
    kind: 'subscription',
    subscription: subscription.value,
    progress: { ...progress.value, spentRevision: spent ? subscription.value.statusRevision : 0 },
  })
}

/** What GET may show as a status that nobody can set: neither needs to be said. */
function withPlainStatus(body: JsonObject): JsonObject {
  if (body.status !== 'expired' && body.status !== 'failed') return body
  const { status: _, ...rest } = body
  return rest
}

export function readRegistration(json: JsonObject, isDeep: boolean): Result<MovedRegistration> {
  const unknown = checkKeys(json, ['registration', 'tenant', 'servicePath'])
  if (unknown) return refused(unknown)
  const { registration: body } = json
  if (!isObject(body)) return badLine('registration is not an object')
  const head = readHead(json, body, false)
  if (!head.ok) return head
  const registration = parseRegistration({ value: body, duplicates: [], deep: isDeep }, head.value)
  return registration.ok ? accepted({ kind: 'registration', registration: registration.value }) : registration
}

function readHead(json: JsonObject, { id }: JsonObject, mayBeWildcard: boolean) {
  if (typeof id !== 'string') return badLine('it has no id')
  const refusal = checkSubscriptionId(id)
  if (refusal) return refused(refusal)
  const tenant = readTenant(json)
  if (!tenant.ok) return tenant
  const path = readPath(json, mayBeWildcard)
  if (!path.ok) return path
  return accepted({ id: id.toLowerCase(), tenant: tenant.value, servicePath: path.value })
}

function readProgress(json: Json): Result<SubscriptionProgress> {
  if (!isObject(json)) return badLine('progress is not an object')
  const { timesSent = 0, failsCounter = 0, lastFailureReason = '', lastSuccessCode } = json
  if (!isCount(timesSent) || !isCount(failsCounter)) return badLine('timesSent or failsCounter is not a count')
  if (typeof lastFailureReason !== 'string') return badLine('lastFailureReason is not a text')
  if (lastSuccessCode !== undefined && !isCount(lastSuccessCode)) return badLine('lastSuccessCode is not a status')
  const notified = readTime(json.lastNotification, 'lastNotification')
  if (!notified.ok) return notified
  const success = readTime(json.lastSuccess, 'lastSuccess')
  if (!success.ok) return success
  const failure = readTime(json.lastFailure, 'lastFailure')
  if (!failure.ok) return failure
  return accepted({
    timesSent,
    lastNotificationMs: notified.value,
    lastSuccessMs: success.value,
    lastSuccessCode,
    lastFailureMs: failure.value,
    lastFailureReason,
    failsCounter,
    spentRevision: 0,
  })
}

const isCount = (value: Json): value is number => Number.isSafeInteger(value) && (value as number) >= 0
