// Subscriptions, in their parsed form (docs/interface/subscriptions.md#fields, docs/interface/subscriptions.md#status).
//
// A `Subscription` is what its owner wrote: only POST and PATCH change it. Its counters and times are in a
// `SubscriptionProgress`, of which each process that sends notifications keeps its own part (subscription-status.ts).
// Both are immutable and, except for compiled parts of `Expression`, plain data.
//
// Not here: JSON of clients (subscription-parser.ts), rendering and the stored form (subscription-json.ts), the
// matching of changes, the content of a notification.

import type { PrincipalSource } from '../access/principal.js'
import type { Json } from '../json.js'
import type { GeoQuery, GivenGeoQuery } from '../places/geo-query.js'
import type { Query } from '../queries/query-parser.js'
import { accepted, type Refusal, type Result, refusals, refused } from '../refusal.js'
import { documentIdLength } from '../stamp.js'

/** The status that can be stored (docs/interface/subscriptions.md#status); `expired` is only shown. */
export type SubscriptionStatus = 'active' | 'inactive' | 'oneshot'

/** The part of a watcher by which the matcher finds it: a subscription, or a watch of a stream. */
export interface Watcher {
  readonly id: string
  /** The service path that it watches, see `Subscription`. */
  readonly servicePath: string
  /** An inactive one is never found. */
  readonly status: SubscriptionStatus
  /** Never empty, no duplicates. Any of them must match (docs/interface/entities.md#changes). */
  readonly entities: readonly SubjectEntity[]
  readonly condition: Condition
  readonly notification: Pick<NotificationSettings, 'propagateDeletes'>
}

/** A stored subscription. */
export interface Subscription extends Watcher {
  /** 24 lower-case hexadecimal digits, increasing with creation. */
  readonly id: string
  /** The tenant whose entities are watched; '' is the default tenant. */
  readonly tenant: string
  /**
   * The path of the watched entities: `/a`, or with all below it `/a/#`; `/#` is everywhere
   * (docs/interface/subscriptions.md#service-path-rule: `coversPath`).
   */
  readonly servicePath: string
  /**
   * The principal that has created it, with whose rules it notifies (docs/interface/access.md#owners); undefined: there
   * was no access control.
   */
  readonly owner?: PrincipalSource | undefined
  /** '' when there is none. */
  readonly description: string
  /** The status as its owner last set it. Whether it is still in effect depends on the progress: `storedStatus`. */
  readonly status: SubscriptionStatus
  /** How often `status` was set, creation included: a switch-off is in effect until it is set again. */
  readonly statusRevision: number
  /**
   * The time from which on it is shown as expired and not triggered; undefined: never. It may be in the past from the
   * start.
   */
  readonly expiresMs: number | undefined
  /** Least time between two notifications; 0: none (docs/interface/subscriptions.md#throttling). */
  readonly throttlingSeconds: number
  /** The watched entities; never empty, no duplicates. Any of them must match (docs/interface/entities.md#changes). */
  readonly entities: readonly SubjectEntity[]
  readonly condition: Condition
  readonly notification: NotificationSettings
}

/**
 * Entities by id and type. Exactly one of `id` and `idPattern` is given, and at most one of `type` and `typePattern`;
 * without these two every type matches. A pattern is the text of a valid regular expression within limits. The matcher
 * compiles it, and shares equal ones.
 */
export interface SubjectEntity {
  readonly id?: string | undefined
  readonly idPattern?: string | undefined
  readonly type?: string | undefined
  readonly typePattern?: string | undefined
}

/** Kinds of change, with the names of the interface (docs/interface/subscriptions.md#alteration-types). */
export const alterationTypes = ['entityCreate', 'entityChange', 'entityUpdate', 'entityDelete'] as const

export type AlterationType = (typeof alterationTypes)[number]

/** Whether a word is one of them. */
export const isAlterationType = (word: string): word is AlterationType =>
  (alterationTypes as readonly string[]).includes(word)

/** The condition under which a change of a watched entity triggers (docs/interface/subscriptions.md#subject). */
export interface Condition {
  /**
   * A change must concern one of these attributes (docs/interface/subscriptions.md#attribute-rule). An empty list has
   * every attribute.
   * No duplicates.
   */
  readonly attrs: readonly string[]
  readonly expression: Expression
  /** As given, without duplicates; empty: the default set, see `alterationTypesOf`. */
  readonly alterationTypes: readonly AlterationType[]
  /** Whether a change of only metadata triggers (docs/interface/subscriptions.md#attribute-rule). */
  readonly notifyOnMetadataChange: boolean
  /**
   * Whether the creation of an entity without attributes counts, although no attribute is concerned: for streams, whose
   * readers know all entities.
   */
  readonly takesBareCreations?: true | undefined
}

/** Filters on the entity after the change (docs/interface/subscriptions.md#expressions). All given ones must hold. */
export interface Expression {
  /** The given texts, which are shown and stored. The geographical ones are given together or not at all. */
  readonly source: ExpressionSource
  readonly q: Query | undefined
  readonly mq: Query | undefined
  readonly geo: GeoQuery | undefined
}

export interface ExpressionSource extends GivenGeoQuery {
  readonly q?: string | undefined
  readonly mq?: string | undefined
}

/** The format of entities in notifications (docs/interface/notifications.md#formats). */
export type AttrsFormat =
  | 'normalized'
  | 'simplifiedNormalized'
  | 'keyValues'
  | 'simplifiedKeyValues'
  | 'values'
  | 'legacy'

/** The content and the destination of a notification (docs/interface/subscriptions.md#notification-fields). */
export interface NotificationSettings {
  readonly transport: SubscriptionTransport
  /**
   * Attributes to send, in this order, perhaps with builtin names and `*` (docs/interface/notifications.md#attributes);
   * empty: all user attributes, or see `exceptAttrs`.
   */
  readonly attrs: readonly string[]
  /** Attributes to leave out; empty: `attrs` decides. At most one of the two lists has names. */
  readonly exceptAttrs: readonly string[]
  /**
   * Send only attributes that the triggering request named, and no notification when it named none of them
   * (docs/interface/notifications.md#only-changed-attributes).
   */
  readonly onlyChangedAttrs: boolean
  /** Send null for each name of `attrs` that the entity lacks (docs/interface/notifications.md#missing-attributes). */
  readonly covered: boolean
  /**
   * Metadata to send, perhaps with builtin names and `*` (docs/interface/notifications.md#metadata); empty: all user
   * metadata.
   */
  readonly metadata: readonly string[]
  readonly attrsFormat: AttrsFormat
  /**
   * The allowed number of failures in a row; one more switches it off
   * (docs/interface/subscriptions.md#too-many-failures). At least 1; undefined: there is no limit.
   */
  readonly maxFailsLimit: number | undefined
  /**
   * Notify deletions whatever the alteration types, and mark them, so that a broker that mirrors the entities deletes
   * them, too.
   */
  readonly propagateDeletes?: true | undefined
}

export type SubscriptionTransport = HttpTransport | HttpCustomTransport | MqttTransport | MqttCustomTransport

interface HttpFields {
  /**
   * With scheme and host. It has passed `parseReceiverUrl` unless it contains macros (custom only): then the code that
   * fills them in checks it.
   */
  readonly url: string
  /** The time limit of one notification; 0: the service's default. */
  readonly timeoutMs: number
}

/** A POST of the entity in `attrsFormat`. */
export interface HttpTransport extends HttpFields {
  readonly kind: 'http'
}

/**
 * A request that the subscriber designs. Macros may be in `url`, and in names and values of `qs` and `headers`
 * (docs/interface/notifications.md#custom-notifications).
 */
export interface HttpCustomTransport extends HttpFields {
  readonly kind: 'httpCustom'
  /** undefined: not given, which means POST. */
  readonly method: HttpMethod | undefined
  /** Query string, by name; empty: none. */
  readonly qs: readonly NamedText[]
  /** Additional headers, by name; an empty value removes the header (docs/interface/notifications.md#request). */
  readonly headers: readonly NamedText[]
  readonly body: CustomBody | undefined
}

export const httpMethods = ['GET', 'PUT', 'POST', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS', 'TRACE', 'CONNECT'] as const

export type HttpMethod = (typeof httpMethods)[number]

export type NamedText = readonly [name: string, value: string]

interface MqttFields {
  /** `mqtt://host[:port]`, perhaps with a slash at the end; never a macro. */
  readonly url: string
  /** Not empty, without wildcards. Macros in `mqttCustom` only. */
  readonly topic: string
  readonly qos: 0 | 1 | 2
  readonly retain: boolean
  /** The password is a secret (secrets.ts). */
  readonly login: { readonly user: string; readonly passwd: string } | undefined
}

/** A message of the entity in `attrsFormat`. */
export interface MqttTransport extends MqttFields {
  readonly kind: 'mqtt'
}

export interface MqttCustomTransport extends MqttFields {
  readonly kind: 'mqttCustom'
  readonly body: CustomBody | undefined
}

/**
 * The content that replaces the entity (docs/interface/subscriptions.md#http-receivers,
 * docs/interface/notifications.md#text-and-json-templates). A transport without one sends the content of a regular
 * notification.
 */
export type CustomBody =
  /** Text with macros, never empty; null: no body. */
  | { readonly kind: 'payload'; readonly text: string | null }
  /** An object or an array, macros in its strings. */
  | { readonly kind: 'json'; readonly template: Json }
  | { readonly kind: 'ngsi'; readonly patch: EntityPatch }

/**
 * A template that is applied to the entity (docs/interface/notifications.md#entity-templates). Macros may be in `id`,
 * `type` and the strings of values.
 */
export interface EntityPatch {
  /** undefined: the entity's own. */
  readonly id: string | undefined
  readonly type: string | undefined
  /** In the given order, without duplicates. */
  readonly attributes: readonly (readonly [name: string, attribute: PatchAttribute])[]
}

export interface PatchAttribute {
  readonly type: string
  readonly value: Json
}

/**
 * The outcomes of a subscription's notifications, as one process knows them (docs/interface/subscriptions.md#counters).
 * `mergeProgress` merges the parts of several processes. A PATCH resets none of it.
 */
export interface SubscriptionProgress {
  /** Notifications passed to the sender, failed ones included. */
  readonly timesSent: number
  /** The time of the last one; throttling counts from here. */
  readonly lastNotificationMs: number | undefined
  /** The time of the last answer of a receiver, whatever its status. */
  readonly lastSuccessMs: number | undefined
  /** The status of that answer; undefined for MQTT. */
  readonly lastSuccessCode: number | undefined
  readonly lastFailureMs: number | undefined
  /** The text of the transport; '' when there is none. */
  readonly lastFailureReason: string
  /** Failures since the last success. */
  readonly failsCounter: number
  /**
   * The `statusRevision` that was spent, by a one-shot or by too many failures. While it is the current one, the
   * subscription is inactive.
   */
  readonly spentRevision: number
}

/** The progress of a subscription that was never triggered. */
export const noProgress: SubscriptionProgress = {
  timesSent: 0,
  lastNotificationMs: undefined,
  lastSuccessMs: undefined,
  lastSuccessCode: undefined,
  lastFailureMs: undefined,
  lastFailureReason: '',
  failsCounter: 0,
  spentRevision: 0,
}

const defaultAlterationTypes: readonly AlterationType[] = ['entityCreate', 'entityChange']

/**
 * The alteration types of a condition, the default set when it names none
 * (docs/interface/subscriptions.md#alteration-types).
 */
export const alterationTypesOf = ({ alterationTypes }: Condition): readonly AlterationType[] =>
  alterationTypes.length === 0 ? defaultAlterationTypes : alterationTypes

/**
 * Whether deletions trigger: the condition names them (docs/interface/subscriptions.md#alteration-types), or they are
 * propagated.
 */
export const watchesDeletions = ({ condition, notification }: Watcher): boolean =>
  condition.alterationTypes.includes('entityDelete') || notification.propagateDeletes === true

const everywhere = '/#'

/**
 * The path that a subscription watches, from the header of its POST or PATCH (docs/interface/subscriptions.md#create,
 * docs/interface/subscriptions.md#change).
 */
export function watchedPath(paths: readonly string[]): Result<string> {
  return paths.length > 1 ? refused(refusals.subscriptionPaths) : accepted(paths[0] ?? everywhere)
}

const idSyntax = /^[0-9A-Fa-f]*$/

/**
 * The reason why a text cannot be the id of a subscription; undefined when it can
 * (docs/interface/subscriptions.md#read: only retrieval reports it).
 */
export function checkSubscriptionId(text: string): Refusal | undefined {
  if (text.length !== documentIdLength) return refusals.subscriptionIdLength(documentIdLength)
  return idSyntax.test(text) ? undefined : refusals.subscriptionIdCharacters
}
