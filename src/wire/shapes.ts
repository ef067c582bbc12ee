// Checks whether JSON of another process has the members of its kind. A request or reply with a wrong member is refused
// as a whole, and reaches neither a shard nor a client. The same holds for the texts of subscriptions and
// registrations.
//
// Unknown members are ignored: a later release may send some.
//
// Not here: packed bytes, whose layout is their check (packed.ts); replies to operators (admin-shapes.ts).

import { decodeRegistration, type Registration } from '../domain/providers/registration.js'
import { compilePattern } from '../domain/queries/pattern.js'
import type { SubjectEntity, Subscription } from '../domain/subscriptions/subscription.js'
import { decodeSubscription } from '../domain/subscriptions/subscription-json.js'
import { Unreadable } from '../domain/unreadable.js'
import type { ShardReply, ShardRequest } from '../messages/messages.js'
import { isAdminReply } from './admin-shapes.js'
import {
  type Check,
  count,
  either,
  flag,
  json,
  list,
  type Members,
  members,
  nothing,
  number,
  optional,
  orNull,
  text,
  texts,
  tuple,
  word,
} from './checks.js'

// Shapes of writes

/** A part of requests in another form. */
const absent: Check = value => value === undefined

const filled =
  (check: Check): Check =>
  value =>
    list(check)(value) && (value as readonly unknown[]).length > 0

const idSelector: Check = value => text(value) || members({ pattern: text })(value)

/** A condition of access control. */
const grant = filled(
  members({ paths: filled(text), types: optional(filled(text)), ids: optional(filled(idSelector)), attributes: texts }),
)

/** What a proof has shown. */
const principalSource = either('proof', {
  key: members({ name: text }),
  token: members({ issuer: text, name: text, claimed: texts, tenants: optional(texts) }),
  certificate: members({ name: text }),
  none: members({ name: text }),
})

const targetWith = (limits: Check): Check =>
  members({ tenant: text, path: text, id: text, type: optional(text), limits })
const target = targetWith(absent)
const limitedTarget = targetWith(filled(grant))
const numbering = members({ next: count, step: count })
const origin = members({
  correlatorRoot: text,
  correlator: optional(text),
  authToken: optional(text),
  isCustomNotification: optional(flag),
  isPatchedNotification: optional(flag),
  isPaced: optional(flag),
  numbering: optional(numbering),
})
const attribute = tuple(text, json, orNull(list(tuple(text, text, json))))
const attributes = list(tuple(text, attribute))

/** Whether the JSON of attributes has the right shape. */
export const areAttributes: Check = attributes

const options = members({ overrideMetadata: flag, forcedUpdate: flag })
const onAttributes = { attributes, options, createAs: optional(text) }

const writes = {
  create: { entity: members({ id: text, type: text, attributes }), upsert: flag, options },
  append: onAttributes,
  appendStrict: onAttributes,
  update: onAttributes,
  replace: onAttributes,
  deleteAttributes: { names: texts },
  updateAttribute: { name: text, attribute, options },
  updateValue: { name: text, value: json, forcedUpdate: flag },
  deleteAttribute: { name: text },
  deleteEntity: {},
  expire: { nowMs: number },
} as const

const written = { stamp: optional(number) }
const writesWith = (target: Check) =>
  Object.fromEntries(
    Object.entries(writes).map(([kind, shape]) => [kind, members({ ...written, target, origin, ...shape })]),
  ) as { readonly [K in keyof typeof writes]: Check }
const writeShapes = writesWith(target)

/** An item of a batch. The batch has the origin of all its items. */
const itemWith = (target: Check): Check =>
  either(
    'kind',
    Object.fromEntries(
      Object.entries(writes).map(([kind, shape]) => [kind, members({ ...written, target, ...shape })]),
    ),
  )

const items = members({ items: list(itemWith(target)) })
const limitedItem = itemWith(limitedTarget)
const eitherItem = itemWith(value => target(value) || limitedTarget(value))
/** At least one of them has limits. */
const limitedItems = members({
  items: value => list(eitherItem)(value) && (value as readonly unknown[]).some(one => limitedItem(one)),
})

/** A batch without items has no origin. */
const hasOrigin = ({ items: all, origin: found }: Members): boolean =>
  (all as readonly unknown[]).length === 0 ? found === undefined : origin(found)

// Shapes of reads and documents

const document = members({ tenant: text, id: text })
const page = { tenant: text, servicePath: optional(text), offset: count, limit: count }
const payload = members({ value: json, duplicates: list(list(value => text(value) || count(value))), deep: flag })
const selection = members({
  selectors: list(
    members({ ids: optional(texts), idPattern: optional(text), types: optional(texts), typePattern: optional(text) }),
  ),
  q: optional(text),
  mq: optional(text),
  geo: optional(members({ georel: optional(text), geometry: optional(text), coords: optional(text) })),
  anyAttribute: optional(texts),
  from: word('url', 'payload'),
})
const position = members({ epoch: count, sequence: count })
const progress = members({
  timesSent: count,
  lastNotificationMs: optional(number),
  lastSuccessMs: optional(number),
  lastSuccessCode: optional(number),
  lastFailureMs: optional(number),
  lastFailureReason: text,
  failsCounter: count,
  spentRevision: count,
})

const deletions = list(members({ tenant: text, stamp: count }))

/** The filter of a stream. `grant`: what its readers may see. */
const filterWith = (grant: Check) =>
  members({
    tenant: text,
    servicePath: text,
    entities: list(
      members({ id: optional(text), idPattern: optional(text), type: optional(text), typePattern: optional(text) }),
    ),
    attrs: texts,
    expression: members({
      q: optional(text),
      mq: optional(text),
      georel: optional(text),
      geometry: optional(text),
      coords: optional(text),
    }),
    alterationTypes: list(word('entityCreate', 'entityChange', 'entityUpdate', 'entityDelete')),
    leaves: flag,
    grant,
  })
const filterSource = filterWith(absent)
const eitherFilter = filterWith(value => absent(value) || grant(value))
const grantedFilter = filterWith(grant)
const streamPosition = members({ ring: text, position: count })
const sentChanges = list(
  members({
    shard: count,
    stamp: count,
    tick: count,
    tenant: text,
    path: text,
    class: word('create', 'change', 'update', 'delete'),
    changed: texts,
    named: texts,
    correlator: text,
    found: list(count),
    left: list(count),
    bytes: count,
  }),
)

/** Whether the JSON of a request has the shape of its kind. */
/** Reads that may have a grant: without one, and with one. Neither passes as the other. */
const reads = {
  find: { tenant: text, paths: texts, id: text, type: optional(text) },
  list: {
    tenant: text,
    paths: texts,
    selection,
    order: list(members({ name: text, descending: flag })),
    offset: count,
    limit: count,
    part: optional(word('keys', 'entities')),
    bytesMax: optional(count),
  },
  types: { tenant: text, paths: texts, type: optional(text) },
} as const

const readsWith = (more: Readonly<Record<string, Check>>) =>
  Object.fromEntries(Object.entries(reads).map(([kind, shape]) => [kind, members({ ...shape, ...more })])) as {
    readonly [K in keyof typeof reads]: Check
  }

/** Lists of documents that may be for one reader only, in the same way. */
const documentLists = (reader: Check) => ({
  listSubscriptions: members({ ...page, reader }),
  listRegistrations: members({ ...page, reader }),
})

const streamWith = (source: Check) =>
  members({
    step: either('what', {
      poll: members({
        holder: text,
        after: optional(streamPosition),
        fromRevision: count,
        revision: count,
        add: list(members({ number: count, source })),
        remove: list(count),
        waitMs: count,
      }),
      replay: members({ source, ring: text, sinceTick: count, after: count, upTo: count }),
    }),
  })

const isGrantedFilter = (one: unknown): boolean => grantedFilter((one as Members).source)

/** At least one of its filters has a grant. */
const grantedStream: Check = value => {
  if (!streamWith(eitherFilter)(value)) return false
  const { step } = value as { readonly step: Members }
  return step.what === 'replay' ? isGrantedFilter(step) : (step.add as readonly unknown[]).some(isGrantedFilter)
}

/** Whether it is a request with a condition of access control. */
export const isGrantedRequest: Check = either('kind', {
  ...writesWith(limitedTarget),
  batch: value => limitedItems(value) && hasOrigin(value as Members),
  ...readsWith({ grant }),
  ...documentLists(principalSource),
  stream: grantedStream,
})

export const isRequest: Check = either('kind', {
  ...writeShapes,
  ...readsWith({ grant: absent }),
  ...documentLists(absent),
  batch: value => items(value) && hasOrigin(value as Members),
  fetch: members({
    tenant: text,
    places: list(members({ created: number, shard: count, path: text, type: text })),
    bytesMax: optional(count),
  }),
  announce: members({ tenant: text, path: text }),
  unused: members({ tenants: texts }),
  createSubscription: members({ subscription: text }),
  changeSubscription: members({ tenant: text, id: text, servicePath: text, payload }),
  removeSubscription: document,
  findSubscription: document,
  progress: members({ tenant: text, ids: texts }),
  createRegistration: members({ registration: text }),
  changeRegistration: members({ tenant: text, id: text, payload }),
  removeRegistration: document,
  findRegistration: document,
  claim: members({ tenant: text, id: text, notification: text }),
  news: members({
    tenant: text,
    id: text,
    news: either('kind', { success: members({ code: optional(number) }), failure: members({ reason: text }) }),
  }),
  handIn: members({
    parts: list(members({ tenant: text, id: text, progress })),
    mark: optional(members({ source: text, number: count })),
  }),
  follow: members({
    epoch: count,
    before: optional(position),
    form: word('changes', 'page'),
    after: count,
    upTo: count,
    rows: text,
    isFirst: optional(flag),
    next: optional(text),
  }),
  deliveries: members({ tenant: text, id: text, limit: count }),
  retryDeliveries: document,
  admin: members({
    order: either('what', {
      metrics: nothing,
      statistics: members({ isReset: flag }),
      cache: members({ isReset: flag }),
      services: members({ isReset: flag }),
      forwarding: members({ registrations: texts }),
      log: members({ change: members({ traces: optional(list(count)) }) }),
    }),
  }),
  tenants: members({
    step: either('what', {
      names: nothing,
      sizes: members({ tenants: texts }),
      creations: members({
        tenant: text,
        needsRoom: flag,
        missing: optional(members({ path: text, entities: list(members({ id: text, type: optional(text) })) })),
      }),
      delete: members({ tenant: text }),
      deletions: nothing,
      purged: members({ deletions }),
    }),
  }),
  stream: streamWith(filterSource),
  backup: members({
    step: either('what', {
      begin: members({ session: text }),
      page: members({ session: text }),
      end: members({
        session: text,
        outcome: members({ succeeded: flag, endedMs: number, durationMs: number, bytes: count }),
      }),
    }),
  }),
} satisfies Readonly<Record<ShardRequest['kind'], Check>>)

// Shapes of replies

const reason = members({ reason: text })
const writeReplies = {
  done: nothing,
  // Every refusal can be read (refusal.ts).
  refused: members({ refusal: members({}) }),
  busy: nothing,
  moved: nothing,
  failed: reason,
  lost: reason,
}
const deliveryRecords = list(
  members({
    atMs: number,
    id: text,
    type: text,
    path: text,
    notificationId: text,
    attempt: count,
    outcome: word('delivered', 'failed', 'dead', 'dropped', 'simulated'),
    code: optional(number),
    reason: text,
    // A later build may send other causes.
    cause: optional(text),
    nextReplayMs: optional(number),
  }),
)

/** Whether the JSON in a reply has the shape of its kind. Packed replies have no JSON. */
export const isReply: Check = either('kind', {
  ...writeReplies,
  listed: members({ entities: list(tuple(text, count)), total: count }),
  large: nothing,
  fetched: members({ lengths: list(orNull(count)) }),
  batch: members({ replies: list(either('kind', writeReplies)) }),
  types: members({ types: list(members({ type: text, count, attributes: list(tuple(text, text)) })) }),
  unused: members({ tenants: texts }),
  subscriptions: members({ subscriptions: list(tuple(text, progress)), total: count }),
  registrations: members({ registrations: texts, total: count }),
  progress: members({ parts: list(progress) }),
  claimed: members({ isGranted: flag, quietUntilMs: optional(number) }),
  deliveries: members({ deliveries: deliveryRecords, deadLetters: deliveryRecords, deadCount: count }),
  retried: members({ count }),
  admin: members({ told: isAdminReply }),
  backup: members({
    told: either('what', {
      begun: members({
        shards: list(count),
        isKeeper: flag,
        stamp: count,
        positions: list(members({ shard: count, epoch: count, sequence: count })),
      }),
      busy: nothing,
      page: members({ rows: count, rowBytes: count, isLast: flag }),
      unknown: nothing,
      ended: nothing,
    }),
  }),
  stream: members({
    told: either('what', {
      changes: members({
        at: streamPosition,
        tick: count,
        lost: flag,
        settled: optional(count),
        refused: list(members({ number: count, steps: optional(number) })),
        changes: sentChanges,
      }),
      unknown: nothing,
      superseded: nothing,
      replayed: members({ position: count, isLast: flag, changes: sentChanges }),
      gap: members({ reason: word('too old', 'restarted', 'owner lost'), sinceMs: number }),
    }),
  }),
  tenants: members({
    told: either('what', {
      names: members({ tenants: texts }),
      sizes: members({
        sizes: list(
          members({
            tenant: text,
            entities: count,
            bytes: count,
            subscriptions: count,
            registrations: count,
            changedMs: optional(number),
            deletion: optional(count),
          }),
        ),
      }),
      creations: members({ count, missing: count }),
      deletions: members({ deletions }),
      purged: members({ tenants: texts }),
    }),
  }),
  followed: members({ position: optional(position) }),
  unreachable: reason,
} satisfies Readonly<Record<Exclude<ShardReply['kind'], 'found' | 'part'>, Check>>)

/** Whether a value is the JSON in a part of a list: the path and type of its entities, and their sort values. */
export const isPartJson: Check = tuple(list(tuple(text, text)), list(list(json)))

// Shapes of stored subscriptions and registrations, after their version

const named = list(tuple(text, text))

/** Whether the decoded text of a subscription has the right shape. */
const isSubscription: Check = members({
  id: text,
  tenant: text,
  servicePath: text,
  description: text,
  status: word('active', 'inactive', 'oneshot'),
  statusRevision: count,
  expiresMs: optional(number),
  throttlingSeconds: number,
  entities: list(
    members({ id: optional(text), idPattern: optional(text), type: optional(text), typePattern: optional(text) }),
  ),
  condition: members({ attrs: texts, alterationTypes: texts, notifyOnMetadataChange: flag }),
  notification: members({
    transport: either('kind', {
      http: members({ url: text, timeoutMs: number }),
      httpCustom: members({ url: text, timeoutMs: number, method: optional(text), qs: named, headers: named }),
      mqtt: members({ url: text, topic: text, qos: number, retain: flag }),
      mqttCustom: members({ url: text, topic: text, qos: number, retain: flag }),
    }),
    attrs: texts,
    exceptAttrs: texts,
    onlyChangedAttrs: flag,
    covered: flag,
    metadata: texts,
    attrsFormat: text,
    maxFailsLimit: optional(number),
  }),
})

/** The same for a registration. */
const isRegistration: Check = members({
  id: text,
  tenant: text,
  servicePath: text,
  description: text,
  expiresMs: optional(number),
  dataProvided: members({
    entities: list(members({ id: optional(text), idPattern: optional(text), type: optional(text) })),
    attrs: texts,
  }),
  provider: members({
    url: text,
    supportedForwardingMode: word('all', 'none', 'query', 'update'),
    legacyForwarding: flag,
  }),
  status: word('active', 'inactive'),
})

/** Reads a subscription from its text. Fails if the version is another one, or an expression is not valid. */
export function readSubscription(text: string): Subscription {
  const subscription = decodeSubscription(text)
  if (!isSubscription(subscription) || !subscription.entities.every(isSubject))
    throw new Unreadable('a stored subscription is damaged')
  // Compiled now, since it would otherwise be compiled during a change.
  void subscription.condition.expression.q
  return subscription
}

/**
 * Whether there is exactly one of `id` and `idPattern`, at most one of `type` and `typePattern`, and all patterns
 * compile.
 */
function isSubject({ id, idPattern, type, typePattern }: SubjectEntity): boolean {
  if ((id === undefined) === (idPattern === undefined) || (type !== undefined && typePattern !== undefined))
    return false
  return [idPattern, typePattern].every(pattern => pattern === undefined || compilePattern(pattern) !== undefined)
}

/** Reads a registration from its text. Fails if the text is not of this release's version. */
export function readRegistration(text: string): Registration {
  const registration = decodeRegistration(text)
  if (!isRegistration(registration)) throw new Unreadable('a stored registration is damaged')
  return registration
}
