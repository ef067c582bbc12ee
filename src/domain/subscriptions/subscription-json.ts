// Subscriptions as JSON text: the form for clients (docs/interface/subscriptions.md#read), and the form in the store
// and for other processes.
//
// The form for clients has the key order of docs/interface/subscriptions.md#read, and masks secrets (secrets.ts). The
// stored form has everything of a subscription, including its secrets and the texts of its expression. A decoder trusts
// its text: `encodeSubscription` wrote it, perhaps in an older release, as its version shows.
//
// Not here: JSON of clients (subscription-parser.ts).

import { renderDateTime } from '../date-time.js'
import { type Json, renderJson } from '../json.js'
import { subscriptionTextLengthMax } from '../limits.js'
import { parseGeoQuery } from '../places/geo-query.js'
import { lookingAt, parseQuery } from '../queries/query-parser.js'
import { type Result, refusalText } from '../refusal.js'
import { assertVersion } from '../unreadable.js'
import { mask, maskNamed } from './secrets.js'
import {
  type Condition,
  type CustomBody,
  type EntityPatch,
  type Expression,
  type ExpressionSource,
  type NamedText,
  type NotificationSettings,
  noProgress,
  type Subscription,
  type SubscriptionProgress,
  type SubscriptionTransport,
} from './subscription.js'
import { shownStatus } from './subscription-status.js'

/** A member of an object: its name and its JSON; undefined: left out. */
type Member = readonly [name: string, json: string | undefined]

const object = (members: readonly Member[]): string =>
  `{${members
    .filter(([, json]) => json !== undefined)
    .map(([name, json]) => `${JSON.stringify(name)}:${json}`)
    .join(',')}}`

const text = (value: string): string => JSON.stringify(value)
const optionalText = (value: string | undefined): string | undefined =>
  value === undefined || value === '' ? undefined : JSON.stringify(value)
const positive = (value: number | undefined): string | undefined =>
  value !== undefined && value > 0 ? renderJson(value) : undefined
const names = (list: readonly Json[]): string => JSON.stringify(list)

/**
 * A subscription as `GET` shows it (docs/interface/subscriptions.md#read); `progress` is that of all processes
 * together.
 */
export function renderSubscription(subscription: Subscription, progress: SubscriptionProgress, nowMs: number): string {
  const { id, owner, description, expiresMs, throttlingSeconds } = subscription
  return object([
    ['id', text(id)],
    ['description', optionalText(description)],
    ['expires', expiresMs === undefined ? undefined : text(renderDateTime(expiresMs))],
    ['status', text(shownStatus(subscription, progress, nowMs))],
    ['subject', renderSubject(subscription)],
    ['notification', renderNotification(subscription.notification, progress)],
    ['throttling', positive(throttlingSeconds)],
    // Ours: only shown when there is one.
    ['owner', optionalText(owner?.name)],
  ])
}

function renderSubject({ entities, condition }: Subscription): string {
  const items = entities.map(({ id, idPattern, type, typePattern }) =>
    JSON.stringify({ id, idPattern, type, typePattern }),
  )
  return object([
    ['entities', `[${items.join(',')}]`],
    ['condition', renderCondition(condition)],
  ])
}

function renderCondition({ attrs, expression, alterationTypes, notifyOnMetadataChange }: Condition): string {
  const { q, mq, geometry, coords, georel } = expression.source
  const source = JSON.stringify({ q, mq, geometry, coords, georel })
  return object([
    ['attrs', names(attrs)],
    ['expression', source === '{}' ? undefined : source],
    ['alterationTypes', alterationTypes.length === 0 ? undefined : names(alterationTypes)],
    ['notifyOnMetadataChange', String(notifyOnMetadataChange)],
  ])
}

function renderNotification(settings: NotificationSettings, progress: SubscriptionProgress): string {
  const { transport, attrs, exceptAttrs, metadata, attrsFormat, maxFailsLimit } = settings
  const { lastSuccessMs, lastSuccessCode, lastFailureMs, lastFailureReason } = progress
  // For MQTT neither is shown, even if an earlier HTTP transport has left values
  // (docs/interface/subscriptions.md#counters).
  const isHttp = transport.kind === 'http' || transport.kind === 'httpCustom'
  return object([
    ['timesSent', positive(progress.timesSent)],
    ['lastNotification', renderTime(progress.lastNotificationMs)],
    exceptAttrs.length > 0 ? ['exceptAttrs', names(exceptAttrs)] : ['attrs', names(attrs)],
    ['onlyChangedAttrs', String(settings.onlyChangedAttrs)],
    ['attrsFormat', text(attrsFormat)],
    [transport.kind, renderTransport(transport)],
    ['metadata', metadata.length === 0 ? undefined : names(metadata)],
    ['lastFailure', renderTime(lastFailureMs)],
    ['lastFailureReason', isHttp ? optionalText(lastFailureReason) : undefined],
    ['lastSuccess', renderTime(lastSuccessMs)],
    ['lastSuccessCode', isHttp ? positive(lastSuccessCode) : undefined],
    ['maxFailsLimit', positive(maxFailsLimit)],
    ['failsCounter', positive(progress.failsCounter)],
    ['covered', String(settings.covered)],
    // Ours: only shown when set.
    ['propagateDeletes', settings.propagateDeletes && 'true'],
  ])
}

const secondMs = 1000

/** Times of notifications are shown in whole seconds (docs/interface/subscriptions.md#read). */
function renderTime(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : text(renderDateTime(Math.floor(ms / secondMs) * secondMs))
}

function renderTransport(transport: SubscriptionTransport): string {
  switch (transport.kind) {
    case 'http':
      return object(httpMembers(transport))
    case 'httpCustom':
      return object([
        ...httpMembers(transport),
        ...bodyMembers(transport.body),
        ['method', optionalText(transport.method)],
        ['qs', renderNamedTexts(maskNamed(transport.qs))],
        ['headers', renderNamedTexts(maskNamed(transport.headers))],
      ])
    case 'mqtt':
      return object(mqttMembers(transport))
    case 'mqttCustom':
      return object([...mqttMembers(transport), ...bodyMembers(transport.body)])
  }
}

function httpMembers({ url, timeoutMs }: Extract<SubscriptionTransport, { kind: 'http' | 'httpCustom' }>): Member[] {
  return [
    ['url', text(url)],
    ['timeout', positive(timeoutMs)],
  ]
}

function mqttMembers(transport: Extract<SubscriptionTransport, { kind: 'mqtt' | 'mqttCustom' }>): Member[] {
  const { url, topic, qos, retain, login } = transport
  return [
    ['url', text(url)],
    ['topic', text(topic)],
    ['qos', String(qos)],
    ['retain', String(retain)],
    ['user', login && text(login.user)],
    ['passwd', login && text(mask)],
  ]
}

function bodyMembers(body: CustomBody | undefined): Member[] {
  switch (body?.kind) {
    case undefined:
      return []
    case 'payload':
      return [['payload', JSON.stringify(body.text)]]
    case 'json':
      return [['json', renderJson(body.template)]]
    case 'ngsi':
      return [['ngsi', renderPatch(body.patch)]]
  }
}

function renderPatch({ id, type, attributes }: EntityPatch): string {
  return object([
    ['id', optionalText(id)],
    ['type', optionalText(type)],
    ...attributes.map(
      ([name, attribute]): Member => [
        name,
        object([
          ['type', text(attribute.type)],
          ['value', renderJson(attribute.value)],
        ]),
      ],
    ),
  ])
}

const renderNamedTexts = (named: readonly NamedText[]): string | undefined =>
  named.length === 0 ? undefined : object(named.map(([name, value]): Member => [name, text(value)]))

/**
 * The version of the stored form. A new version is needed when an older text would be misread. Version 1 is still read.
 */
const version = 2

/**
 * The individual part of a subscription. Condition and notification are separate, since many subscriptions differ only
 * in the entities that they watch.
 */
type StoredHead = Omit<Subscription, 'condition' | 'notification'> & { readonly version: number }
type StoredCondition = Omit<Condition, 'expression'> & { readonly expression: ExpressionSource }

/**
 * The text form of a subscription, for the store and other processes: head, condition and notification, one line each.
 * It contains the secrets.
 */
export function encodeSubscription(subscription: Subscription): string {
  const { condition, notification, ...head } = subscription
  const stored: StoredCondition = { ...condition, expression: condition.expression.source }
  return [{ version, ...head }, stored, notification].map(part => JSON.stringify(part)).join('\n')
}

/** Whether a text has the present form, which every release that writes it can read. */
export const isOfThisVersion = (stored: string): boolean => stored.startsWith(`{"version":${version},`)

/** The limit of cached parts, of some 500 bytes each. */
const sharedPartsMax = 10_000

/**
 * Reads many texts that `encodeSubscription` wrote. Equal conditions and notifications become one object. If a hundred
 * thousand devices are watched alike, that saves most of the time and half of the memory.
 */
export class SubscriptionReader {
  private readonly conditions = new Shared((text): Condition => conditionOf(JSON.parse(text)))
  private readonly notifications = new Shared((text): NotificationSettings => JSON.parse(text))

  // [hot] For each subscription at start.
  read(stored: string): Subscription {
    const first = stored.indexOf('\n')
    if (first < 0) return readFirstVersion(stored)
    const second = stored.indexOf('\n', first + 1)
    const head = JSON.parse(stored.slice(0, first)) as StoredHead
    checkVersion('subscription', head.version, version)
    const condition = this.conditions.of(stored.slice(first + 1, second))
    return subscriptionOf(head, condition, this.notifications.of(stored.slice(second + 1)))
  }
}

/** The earlier form: everything in one object. */
function readFirstVersion(stored: string): Subscription {
  const found = JSON.parse(stored) as StoredHead & {
    readonly condition: StoredCondition
    readonly notification: NotificationSettings
  }
  if (found.version !== 1) checkVersion('subscription', found.version, version)
  return subscriptionOf(found, conditionOf(found.condition), found.notification)
}

// Field by field: spreading the parsed object took as long as parsing it.
const subscriptionOf = (head: StoredHead, condition: Condition, notification: NotificationSettings): Subscription => ({
  id: head.id,
  tenant: head.tenant,
  servicePath: head.servicePath,
  description: head.description,
  status: head.status,
  statusRevision: head.statusRevision,
  expiresMs: head.expiresMs,
  throttlingSeconds: head.throttlingSeconds,
  entities: head.entities,
  condition,
  notification,
  ...(head.owner && { owner: head.owner }),
})

/** A cache of parsed texts, bounded in size. */
class Shared<T> {
  private readonly known = new Map<string, T>()

  constructor(private readonly make: (text: string) => T) {}

  of(text: string): T {
    let found = this.known.get(text)
    if (found === undefined) {
      found = this.make(text)
      if (this.known.size >= sharedPartsMax) this.known.clear()
      this.known.set(text, found)
    }
    return found
  }
}

/** Decodes a text that `encodeSubscription` wrote. */
export const decodeSubscription = (stored: string): Subscription => new SubscriptionReader().read(stored)

const conditionOf = ({ attrs, expression, alterationTypes, notifyOnMetadataChange }: StoredCondition): Condition => ({
  attrs,
  expression: isEmpty(expression) ? noExpression : new StoredExpression(expression),
  alterationTypes,
  notifyOnMetadataChange,
})

const noExpression: Expression = { source: {}, q: undefined, mq: undefined, geo: undefined }

function isEmpty(source: ExpressionSource): boolean {
  for (const _ in source) return false
  return true
}

type Compiled = Omit<Expression, 'source'>

/**
 * Compiled at the first access: a filter takes as long as all the rest of a subscription, and many are never tested.
 */
class StoredExpression implements Expression {
  private found: Compiled | undefined

  constructor(readonly source: ExpressionSource) {}

  get q(): Compiled['q'] {
    return this.compiled.q
  }

  get mq(): Compiled['mq'] {
    return this.compiled.mq
  }

  get geo(): Compiled['geo'] {
    return this.compiled.geo
  }

  private get compiled(): Compiled {
    this.found ??= compile(this.source)
    return this.found
  }
}

function compile({ q, mq, geometry, coords, georel }: ExpressionSource): Compiled {
  return {
    q: q === undefined ? undefined : lookingAt(trusted(parseQuery(q, 'q')), subscriptionTextLengthMax),
    mq: mq === undefined ? undefined : lookingAt(trusted(parseQuery(mq, 'mq')), subscriptionTextLengthMax),
    geo: trusted(parseGeoQuery({ geometry, coords, georel }, 'payload')),
  }
}

function trusted<T>(result: Result<T>): T {
  if (result.ok) return result.value
  throw new Error(`a stored expression is not valid: ${refusalText(result.refusal)}`)
}

const checkVersion = (what: string, found: number, read: number): void => assertVersion(`a stored ${what}`, found, read)

/** The version of the stored form of a progress. */
const progressVersion = 1

/** The text form in which one process stores its part of a progress. */
export const encodeProgress = (progress: SubscriptionProgress): string =>
  JSON.stringify({ version: progressVersion, ...progress })

/** Decodes a text that `encodeProgress` wrote. */
export function decodeProgress(stored: string): SubscriptionProgress {
  const { version: found, ...progress } = JSON.parse(stored) as SubscriptionProgress & { readonly version: number }
  checkVersion('progress', found, progressVersion)
  return { ...noProgress, ...progress }
}
