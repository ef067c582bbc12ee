// The form of an export: a file of JSON objects, one per line, with a first and a last one
// (docs/operations/moving.md#the-file).
//
//   {"orrery-export":1,"by":"orrery 0.1.0"}
//   one line for each entity (entity-line.ts), then
//   {"registration":{...},"tenant":"city","servicePath":"/"}
//   {"subscription":{...},"tenant":"city","servicePath":"/#","progress":{"timesSent":3,...},"spent":true}
//   {"orrery-export-end":1,"entities":2,"registrations":0,"subscriptions":1}
//
// A file without its last line was cut. Entities come first, so that they trigger no subscriptions on import.
//
// Documents have the form that GET shows, so that other programs can write them, with their secrets
// (domain/subscriptions/secrets.ts), and numbers in full precision. `progress` has the counters and times of the
// notifications; without it GET's figures are used. `spent`: the subscription is off, because it is a triggered
// one-shot or failed too often. The revision of its status counts from 1 again. A document is read like the body of a
// POST, with its id.

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
import { parseJson } from '../http/body.js'
import { badLine, checkKeys, readEntity, readPath, readTenant, readTime, time, writeEntity } from './entity-line.js'
import type { MovedItem, MovedKind, MovedRegistration, MovedSubscription } from './moved.js'

/** Version of the form. A new one is needed when an older release would misread it. */
const version = 1

/**
 * Bytes of a line. The largest entity has 16 MB, and may have a time for each attribute. Raising it costs as much
 * memory.
 */
export const lineBytesMax = 48 * 1024 * 1024

export const firstLine = (by: string): string => JSON.stringify({ 'orrery-export': version, by })

export type ItemCounts = Readonly<Record<MovedKind, number>>

export const lastLine = ({ entity, registration, subscription }: ItemCounts): string =>
  JSON.stringify({
    'orrery-export-end': version,
    entities: entity,
    registrations: registration,
    subscriptions: subscription,
  })

export function writeItem(item: MovedItem): string {
  switch (item.kind) {
    case 'entity':
      return writeEntity(item)
    case 'subscription':
      return writeSubscription(item)
    case 'registration':
      return writeRegistration(item)
  }
}

/** The fault of a first line; undefined: none. */
export function checkFirstLine(bytes: Uint8Array): string | undefined {
  const json = objectOf(bytes)
  const found = json.ok ? json.value['orrery-export'] : undefined
  if (found === version) return undefined
  return found === undefined
    ? 'is not an export: its first line has no "orrery-export"'
    : `has version ${JSON.stringify(found)}, and this release reads version ${version}`
}

/** The counts of a last line; undefined: it is no last line. */
export function parseLastLine(bytes: Uint8Array): ItemCounts | undefined {
  const json = objectOf(bytes)
  if (!json.ok || json.value['orrery-export-end'] !== version) return undefined
  const { entities, registrations, subscriptions } = json.value
  const counts = [entities, registrations, subscriptions].map(count =>
    Number.isSafeInteger(count) ? Number(count) : 0,
  )
  return { entity: counts[0]!, registration: counts[1]!, subscription: counts[2]! }
}

export function readLine(bytes: Uint8Array, nowMs: number): Result<MovedItem> {
  const payload = parseJson(bytes)
  if (!payload.ok) return payload
  const { value, duplicates, deep } = payload.value
  if (!isObject(value)) return badLine('it is not an object')
  const [twice] = duplicates
  if (twice) return badLine(`${JSON.stringify(twice.at(-1))} stands twice`)
  return readObject(value, deep, nowMs)
}

export function readObject(json: JsonObject, isDeep: boolean, nowMs: number): Result<MovedItem> {
  if ('entity' in json) return readEntity(json, nowMs)
  if ('subscription' in json) return readSubscription(json, isDeep)
  if ('registration' in json) return readRegistration(json, isDeep)
  return badLine('it holds no entity, no subscription and no registration')
}

function objectOf(bytes: Uint8Array): Result<JsonObject> {
  const payload = parseJson(bytes)
  if (!payload.ok) return refused(payload.refusal)
  return isObject(payload.value.value) ? accepted(payload.value.value) : badLine('it is not an object')
}

// Documents, written

function writeSubscription({ subscription, progress }: MovedSubscription): string {
  const { tenant, servicePath, statusRevision } = subscription
  const progressMembers = progressJson(progress)
  return JSON.stringify({
    subscription: subscriptionJson(subscription),
    tenant,
    servicePath,
    progress: Object.keys(progressMembers).length === 0 ? undefined : progressMembers,
    spent: progress.spentRevision === statusRevision ? true : undefined,
  })
}

/** A subscription as GET shows it, with its secrets and all digits of its numbers, without its progress. */
export function subscriptionJson(subscription: Subscription): JsonObject {
  // An expired subscription would be shown with another status. At this time none has expired.
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

function writeRegistration({ registration }: MovedRegistration): string {
  const { tenant, servicePath } = registration
  return JSON.stringify({ registration: JSON.parse(renderRegistration(registration)), tenant, servicePath })
}

// Documents, read

function readSubscription(json: JsonObject, isDeep: boolean): Result<MovedSubscription> {
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

/** Removes a status that GET may show but no client can set: it follows from the rest. */
function withPlainStatus(body: JsonObject): JsonObject {
  if (body.status !== 'expired' && body.status !== 'failed') return body
  const { status: _, ...rest } = body
  return rest
}

function readRegistration(json: JsonObject, isDeep: boolean): Result<MovedRegistration> {
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
