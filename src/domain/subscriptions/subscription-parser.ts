// Parses the bodies of POST and PATCH on subscriptions (docs/interface/subscriptions.md#fields).
//
// One function parses both into blocks, which a POST requires and a PATCH replaces as a whole. The refusal names the
// first mistake, in the order of docs/interface/errors.md#subscriptions: the fields of the top level as listed there,
// each from the outside inwards. Unknown and read-only fields are ignored.
//
// Not here: the parts shared with registrations (payload-fields.ts), transports (transport-parser.ts), checks of
// headers and ids (subscription.ts), the JSON of an answer (subscription-json.ts).

import type { Payload } from '../entities/entity.js'
import { isArray, isInteger, isObject, type Json, type JsonObject } from '../json.js'
import { subscriptionTextLengthMax } from '../limits.js'
import { parseGeoQuery } from '../places/geo-query.js'
import { lookingAt, parseQuery, type Query } from '../queries/query-parser.js'
import { accepted, allOf, type Refusal, type Result, refusals, refused } from '../refusal.js'
import {
  type ExpiryField,
  optional,
  parseDescription,
  parseExpiry,
  parseNames,
  parseSubjectEntities,
  topLevel,
} from './payload-fields.js'
import {
  type AlterationType,
  type AttrsFormat,
  type Condition,
  type Expression,
  isAlterationType,
  type NotificationSettings,
  type SubjectEntity,
  type Subscription,
  type SubscriptionStatus,
} from './subscription.js'
import { parseTransport, unmask } from './transport-parser.js'

/** The members of a new subscription that are not in its body. */
export type SubscriptionHead = Pick<Subscription, 'id' | 'tenant' | 'servicePath'>

/**
 * Parses a POST body to a subscription (docs/interface/subscriptions.md#create), or returns a refusal for the first
 * mistake (docs/interface/errors.md#subscriptions).
 */
export function parseSubscription(payload: Payload, head: SubscriptionHead): Result<Subscription> {
  const blocks = parseBlocks(payload, true)
  if (!blocks.ok) return blocks
  const { description = '', expiry, status = 'active', throttlingSeconds = 0 } = blocks.value
  const { entities, condition = noCondition } = blocks.value.subject as SubjectBlock
  const { onlyChangedAttrs = false, covered = false, ...settings } = blocks.value.notification as NotificationBlock
  return accepted({
    ...head,
    description,
    status,
    statusRevision: 1,
    expiresMs: expiry?.ms,
    throttlingSeconds,
    entities,
    condition,
    notification: { ...settings, onlyChangedAttrs, covered },
  })
}

/**
 * The first mistake in the body of a PATCH (docs/interface/errors.md#subscriptions), for any subscription; undefined:
 * there is none.
 */
export function checkPatch(payload: Payload): Refusal | undefined {
  const blocks = parseBlocks(payload, false)
  return blocks.ok ? undefined : blocks.refusal
}

/** The subject that a PATCH gives, which has passed `checkPatch`; undefined: the subscription keeps its own. */
export function subjectOfPatch(payload: Payload): Pick<Subscription, 'entities' | 'condition'> | undefined {
  const blocks = parseBlocks(payload, false)
  if (!blocks.ok || !blocks.value.subject) return undefined
  const { entities, condition = noCondition } = blocks.value.subject
  return { entities, condition }
}

/**
 * The subscription after a PATCH (docs/interface/subscriptions.md#change), or a refusal for the first mistake in the
 * body (docs/interface/errors.md#subscriptions). The path is always that of the request, even when it names none.
 */
export function patchSubscription(existing: Subscription, payload: Payload, servicePath: string): Result<Subscription> {
  const blocks = parseBlocks(payload, false)
  if (!blocks.ok) return blocks
  const { description, subject, expiry, status, throttlingSeconds } = blocks.value
  const notification = replaceNotification(existing, blocks.value.notification)
  if (!notification.ok) return notification
  return accepted({
    ...existing,
    servicePath,
    description: description ?? existing.description,
    status: status ?? existing.status,
    statusRevision: existing.statusRevision + (status === undefined ? 0 : 1),
    expiresMs: expiry ? expiry.ms : existing.expiresMs,
    throttlingSeconds: throttlingSeconds ?? existing.throttlingSeconds,
    ...(subject && replaceSubject(existing, subject)),
    notification: notification.value,
  })
}

/**
 * The flag of metadata changes is part of the condition: a condition without it has the default. It is kept only if the
 * PATCH has no condition at all (docs/interface/subscriptions.md#change; a test of the reference shows the first half,
 * its table the second).
 */
function replaceSubject(existing: Subscription, { entities, condition }: SubjectBlock): Partial<Subscription> {
  return {
    entities,
    condition: condition ?? { ...noCondition, notifyOnMetadataChange: existing.condition.notifyOnMetadataChange },
  }
}

function replaceNotification(
  { notification: before }: Subscription,
  block: NotificationBlock | undefined,
): Result<NotificationSettings> {
  if (!block) return accepted(before)
  const { onlyChangedAttrs = before.onlyChangedAttrs, covered = before.covered } = block
  const transport = unmask(block.transport, before.transport)
  if (!transport.ok) return transport
  return accepted({ ...block, transport: transport.value, onlyChangedAttrs, covered })
}

/** The members of a body; undefined: not given. */
interface Blocks {
  readonly description: string | undefined
  readonly subject: SubjectBlock | undefined
  readonly notification: NotificationBlock | undefined
  readonly expiry: ExpiryField | undefined
  readonly status: SubscriptionStatus | undefined
  readonly throttlingSeconds: number | undefined
}

interface SubjectBlock {
  readonly entities: readonly SubjectEntity[]
  readonly condition: Condition | undefined
}

interface NotificationBlock extends Omit<NotificationSettings, 'onlyChangedAttrs' | 'covered'> {
  readonly onlyChangedAttrs: boolean | undefined
  readonly covered: boolean | undefined
}

function parseBlocks(payload: Payload, isComplete: boolean): Result<Blocks> {
  const top = topLevel(payload, refusals.notJson)
  if (!top.ok) return top
  const json = top.value
  const { subject, notification } = json
  return allOf<Blocks>({
    description: () =>
      optional(json.description, text => parseDescription(text, refusals.fieldNotString('description'))),
    subject: () =>
      isComplete && subject === undefined ? refused(refusals.noSubject) : optional(subject, parseSubject),
    notification: () =>
      isComplete && notification === undefined
        ? refused(refusals.noNotification)
        : optional(notification, one => parseNotification(one, payload.deep)),
    expiry: () => optional(json.expires, text => parseExpiry(text, refusals.expires)),
    status: () => optional(json.status, parseStatus),
    throttlingSeconds: () => optional(json.throttling, parseThrottling),
  })
}

const statuses: ReadonlySet<string> = new Set<SubscriptionStatus>(['active', 'inactive', 'oneshot'])

function parseStatus(json: Json): Result<SubscriptionStatus> {
  if (typeof json !== 'string') return refused(refusals.fieldNotString('status'))
  return statuses.has(json) ? accepted(json as SubscriptionStatus) : refused(refusals.status)
}

const parseThrottling = (json: Json): Result<number> =>
  isInteger(json) ? accepted(Math.max(json, 0)) : refused(refusals.fieldNotInteger('throttling'))

// Subject (docs/interface/errors.md#subscriptions)

function parseSubject(json: Json): Result<SubjectBlock> {
  if (!isObject(json)) return refused(refusals.fieldNotObject('subject'))
  return allOf<SubjectBlock>({
    entities: () => parseEntities(json.entities),
    condition: () => optional(json.condition, parseCondition),
  })
}

function parseEntities(json: Json | undefined): Result<readonly SubjectEntity[]> {
  if (json === undefined) return refused(refusals.noSubjectEntities)
  if (isArray(json) && json.length === 0) return refused(refusals.fieldEmpty('subject entities'))
  return parseSubjectEntities(json)
}

// Condition (docs/interface/errors.md#subscriptions)

const noExpression: Expression = { source: {}, q: undefined, mq: undefined, geo: undefined }

const noCondition: Condition = {
  attrs: [],
  expression: noExpression,
  alterationTypes: [],
  notifyOnMetadataChange: true,
}

function parseCondition(json: Json): Result<Condition> {
  if (!isObject(json)) return refused(refusals.fieldNotObject('condition'))
  if (Object.keys(json).length === 0) return refused(refusals.fieldEmpty('condition'))
  const { notifyOnMetadataChange = true } = json
  return allOf<Condition>({
    attrs: () => parseNames(json, 'attrs'),
    expression: () => parseExpression(json.expression),
    alterationTypes: () => parseAlterationTypes(json),
    notifyOnMetadataChange: () => parseFlag('notifyOnMetadataChange', notifyOnMetadataChange),
  })
}

function parseAlterationTypes(condition: JsonObject): Result<readonly AlterationType[]> {
  const types = parseNames(condition, 'alterationTypes')
  if (!types.ok) return types
  const unknown = types.value.find(name => !isAlterationType(name))
  if (unknown !== undefined) return refused(refusals.alterationType(unknown))
  return accepted(types.value as readonly AlterationType[])
}

const parseFlag = (field: string, json: Json): Result<boolean> =>
  typeof json === 'boolean' ? accepted(json) : refused(refusals.fieldNotBoolean(field))

const expressionFields = ['q', 'mq', 'geometry', 'coords', 'georel'] as const

/** The member `expression` of a condition. */
export function parseExpression(json: Json | undefined): Result<Expression> {
  if (json === undefined) return accepted(noExpression)
  if (!isObject(json)) return refused(refusals.fieldNotObject('expression'))
  if (Object.keys(json).length === 0) return refused(refusals.fieldEmpty('expression'))
  return expressionOf(json)
}

/** Compiles the parts of an expression, or returns a refusal for the first mistake. */
export function expressionOf(json: Readonly<Record<string, Json | undefined>>): Result<Expression> {
  const source: Record<string, string> = {}
  const filters: { q?: Query; mq?: Query } = {}
  for (const name of expressionFields) {
    const text = json[name]
    if (text === undefined) continue
    if (typeof text !== 'string') return refused(refusals.fieldNotString(name))
    if (text === '') return refused(refusals.fieldEmpty(name))
    source[name] = text
    if (name !== 'q' && name !== 'mq') continue
    const filter = parseQuery(text, name)
    if (!filter.ok) return filter
    filters[name] = lookingAt(filter.value, subscriptionTextLengthMax)
  }
  const geo = parseGeoQuery(source, 'payload')
  return geo.ok ? accepted({ source, q: filters.q, mq: filters.mq, geo: geo.value }) : geo
}

// Notification (docs/interface/errors.md#subscriptions)

function parseNotification(json: Json, deep: boolean): Result<NotificationBlock> {
  if (!isObject(json)) return refused(refusals.fieldNotObject('notification'))
  const transport = parseTransport(json, deep)
  if (!transport.ok) return transport
  if (json.attrs !== undefined && json.exceptAttrs !== undefined) return refused(refusals.attrsAndExceptAttrs)
  const attrs = parseNames(json, 'attrs')
  if (!attrs.ok) return attrs
  const exceptAttrs = parseNames(json, 'exceptAttrs')
  if (!exceptAttrs.ok) return exceptAttrs
  const isListEmpty = attrs.value.length === 0 && exceptAttrs.value.length === 0
  if (json.exceptAttrs !== undefined && isListEmpty)
    return refused(refusals.fieldEmpty('http notification has exceptAttrs'))
  const settings = allOf({
    onlyChangedAttrs: () => optional(json.onlyChangedAttrs, one => parseFlag('onlyChangedAttrs', one)),
    covered: () =>
      json.covered === true && isListEmpty
        ? refused(refusals.coveredWithoutList)
        : optional(json.covered, one => parseFlag('covered', one)),
    metadata: () => parseNames(json, 'metadata'),
    attrsFormat: () => parseFormat(json.attrsFormat),
    maxFailsLimit: () => optional(json.maxFailsLimit, parseFailsLimit),
    propagateDeletes: () => optional(json.propagateDeletes, one => parseFlag('propagateDeletes', one)),
  })
  if (!settings.ok) return settings
  const { propagateDeletes, ...others } = settings.value
  return accepted({
    transport: transport.value,
    attrs: attrs.value,
    exceptAttrs: exceptAttrs.value,
    ...others,
    ...(propagateDeletes && { propagateDeletes: true }),
  })
}

const formats: ReadonlySet<string> = new Set<AttrsFormat>([
  'normalized',
  'simplifiedNormalized',
  'keyValues',
  'simplifiedKeyValues',
  'values',
  'legacy',
])

function parseFormat(json: Json | undefined): Result<AttrsFormat> {
  if (json === undefined) return accepted('normalized')
  if (typeof json !== 'string') return refused(refusals.fieldNotString('attrsFormat'))
  return formats.has(json) ? accepted(json as AttrsFormat) : refused(refusals.attrsFormat)
}

function parseFailsLimit(json: Json): Result<number> {
  if (!isInteger(json)) return refused(refusals.fieldNotInteger('maxFailsLimit'))
  return json > 0 ? accepted(json) : refused(refusals.maxFailsLimit)
}
