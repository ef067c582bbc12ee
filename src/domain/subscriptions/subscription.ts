// Subscriptions: what they are when everything in them has been read (docs/interface/subscriptions.md#fields,
// docs/interface/subscriptions.md#status).
//
// A `Subscription` is what its owner wrote: it changes by POST and PATCH only. What happens to it while it works is a
// `SubscriptionProgress`, of which each process that notifies keeps its own part (subscription-status.ts). Both are
// immutable and, but for what `Expression` has compiled, plain data.
//
// Not here: JSON of clients (subscription-parser.ts), the way back and the stored form (subscription-json.ts), which
// change touches which subscription, what a notification says.

import type { Json } from '../json.js'
import type { GeoQuery, GivenGeoQuery } from '../places/geo-query.js'
import type { Query } from '../queries/query-parser.js'
import { accepted, type Refusal, type Result, refusals, refused } from '../refusal.js'
import { documentIdLength } from '../stamp.js'

/** What can be stored as status (docs/interface/subscriptions.md#status); `expired` is only shown. */
export type SubscriptionStatus = 'active' | 'inactive' | 'oneshot'

/** A subscription as it is stored. */
export interface Subscription {
  /** 24 lower-case hexadecimal digits, increasing with creation. */
  readonly id: string
  /** Whose entities are watched; '' is the default tenant. */
  readonly tenant: string
  /**
   * Where they are watched: `/a`, or with all below it `/a/#`; `/#` is everywhere
   * (docs/interface/subscriptions.md#service-path-rule: `coversPath`).
   */
  readonly servicePath: string
  /** '' when there is none. */
  readonly description: string
  /** The status as its owner last set it. Whether it still stands depends on the progress: `storedStatus`. */
  readonly status: SubscriptionStatus
  /** How often `status` has been set, creation included: a switch-off holds until it is set again. */
  readonly statusRevision: number
  /** From when on it is shown as expired and fires no more; undefined: never. May lie in the past from the start. */
  readonly expiresMs: number | undefined
  /** Least time between two notifications; 0: none (docs/interface/subscriptions.md#throttling). */
  readonly throttlingSeconds: number
  /**
   * Which entities are watched; never empty, no element twice. Any of them must fit
   * (docs/interface/entities.md#changes).
   */
  readonly entities: readonly SubjectEntity[]
  readonly condition: Condition
  readonly notification: NotificationSettings
}

/**
 * Entities by id and type. Exactly one of `id` and `idPattern` is there, and at most one of `type` and `typePattern`;
 * without those two every type matches.
 * A pattern is the text of a valid regular expression, within limits: whoever matches compiles it, and shares what is
 * alike.
 */
export interface SubjectEntity {
  readonly id?: string | undefined
  readonly idPattern?: string | undefined
  readonly type?: string | undefined
  readonly typePattern?: string | undefined
}

/** Kinds of change, in the words of clients (docs/interface/subscriptions.md#alteration-types). */
const alterationTypes = ['entityCreate', 'entityChange', 'entityUpdate', 'entityDelete'] as const

export type AlterationType = (typeof alterationTypes)[number]

/** Whether a word is one of them. */
export const isAlterationType = (word: string): word is AlterationType =>
  (alterationTypes as readonly string[]).includes(word)

/** When a watched entity's change matters (docs/interface/subscriptions.md#subject). */
export interface Condition {
  /**
   * One of these attributes must be concerned (docs/interface/subscriptions.md#attribute-rule); empty: every attribute
   * will do. No name stands twice.
   */
  readonly attrs: readonly string[]
  readonly expression: Expression
  /** As given, no word twice; empty: the default set, see `alterationTypesOf`. */
  readonly alterationTypes: readonly AlterationType[]
  /** Whether a change of metadata alone matters (docs/interface/subscriptions.md#attribute-rule). */
  readonly notifyOnMetadataChange: boolean
}

/**
 * What the entity must be like after the change (docs/interface/subscriptions.md#expressions): all that is there must
 * hold.
 */
export interface Expression {
  /** The texts that were given: what is shown and stored. The geographical ones are there together or not at all. */
  readonly source: ExpressionSource
  readonly q: Query | undefined
  readonly mq: Query | undefined
  readonly geo: GeoQuery | undefined
}

export interface ExpressionSource extends GivenGeoQuery {
  readonly q?: string | undefined
  readonly mq?: string | undefined
}

/** How entities are written into notifications (docs/interface/notifications.md#formats). */
export type AttrsFormat =
  | 'normalized'
  | 'simplifiedNormalized'
  | 'keyValues'
  | 'simplifiedKeyValues'
  | 'values'
  | 'legacy'

/** What a notification says and where it goes (docs/interface/subscriptions.md#notification-fields). */
export interface NotificationSettings {
  readonly transport: SubscriptionTransport
  /**
   * Attributes to send, in this order, builtin names and `*` among them (docs/interface/notifications.md#attributes);
   * empty: all user attributes, or see `exceptAttrs`.
   */
  readonly attrs: readonly string[]
  /** Attributes to leave out; empty: `attrs` decides. At most one of the two lists has names. */
  readonly exceptAttrs: readonly string[]
  /**
   * Send only what the triggering request named, and nothing when it named none of them
   * (docs/interface/notifications.md#only-changed-attributes).
   */
  readonly onlyChangedAttrs: boolean
  /** Send null for each name of `attrs` that the entity lacks (docs/interface/notifications.md#missing-attributes). */
  readonly covered: boolean
  /**
   * Metadata to send, builtin names and `*` among them (docs/interface/notifications.md#metadata); empty: all user
   * metadata.
   */
  readonly metadata: readonly string[]
  readonly attrsFormat: AttrsFormat
  /**
   * Failures in a row that are allowed; one more switches it off (docs/interface/subscriptions.md#too-many-failures).
   * At least 1; undefined: there is no limit.
   */
  readonly maxFailsLimit: number | undefined
  /**
   * Tell of deletions whatever the alteration types, and mark them, so that a broker that mirrors the entities deletes
   * them, too.
   */
  readonly propagateDeletes?: true | undefined
}

export type SubscriptionTransport = HttpTransport | HttpCustomTransport | MqttTransport | MqttCustomTransport

interface HttpFields {
  /**
   * With scheme and host; has passed `parseReceiverUrl` unless it holds macros (custom only): then whoever fills them
   * in asks.
   */
  readonly url: string
  /** Of one notification in all; 0: the service's default. */
  readonly timeoutMs: number
}

/** A POST of the entity in `attrsFormat`. */
export interface HttpTransport extends HttpFields {
  readonly kind: 'http'
}

/**
 * A request of the subscriber's design. Macros may stand in `url`, and in names and values of `qs` and `headers`
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
 * What is sent in place of the entity (docs/interface/subscriptions.md#http-receivers,
 * docs/interface/notifications.md#text-and-json-templates). A transport without one sends what a regular notification
 * would.
 */
export type CustomBody =
  /** Text with macros, never empty; null: nothing at all. */
  | { readonly kind: 'payload'; readonly text: string | null }
  /** An object or an array, macros in its strings. */
  | { readonly kind: 'json'; readonly template: Json }
  | { readonly kind: 'ngsi'; readonly patch: EntityPatch }

/**
 * What is laid over the entity (docs/interface/notifications.md#entity-templates). Macros may stand in `id`, `type` and
 * the strings of values.
 */
export interface EntityPatch {
  /** undefined: the entity's own. */
  readonly id: string | undefined
  readonly type: string | undefined
  /** In the order given, no name twice. */
  readonly attributes: readonly (readonly [name: string, attribute: PatchAttribute])[]
}

export interface PatchAttribute {
  readonly type: string
  readonly value: Json
}

/**
 * What became of a subscription's notifications, as one process knows it (docs/interface/subscriptions.md#counters).
 * Parts of several processes are put together by `mergeProgress`. Nothing in it is reset by a PATCH.
 */
export interface SubscriptionProgress {
  /** Notifications handed to the sender, failed ones included. */
  readonly timesSent: number
  /** When the last of them was; throttling counts from here. */
  readonly lastNotificationMs: number | undefined
  /** When a receiver last answered, whatever its status. */
  readonly lastSuccessMs: number | undefined
  /** The status of that answer; undefined for MQTT. */
  readonly lastSuccessCode: number | undefined
  readonly lastFailureMs: number | undefined
  /** What the transport said; '' when nothing. */
  readonly lastFailureReason: string
  /** Failures since the last success. */
  readonly failsCounter: number
  /**
   * The `statusRevision` that was used up, by a one-shot or by too many failures: as long as it is the current one, it
   * is inactive.
   */
  readonly spentRevision: number
}

/** Of a subscription that never fired. */
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
 * The alteration types that matter, the default set when none is named
 * (docs/interface/subscriptions.md#alteration-types).
 */
export const alterationTypesOf = ({ alterationTypes }: Condition): readonly AlterationType[] =>
  alterationTypes.length === 0 ? defaultAlterationTypes : alterationTypes

/**
 * Whether deletions matter: the condition asks for them (docs/interface/subscriptions.md#alteration-types), or they are
 * propagated.
 */
export const watchesDeletions = ({ condition, notification }: Subscription): boolean =>
  condition.alterationTypes.includes('entityDelete') || notification.propagateDeletes === true

const everywhere = '/#'

/**
 * The path that a subscription watches, of those in the header of its POST or PATCH
 * (docs/interface/subscriptions.md#create, docs/interface/subscriptions.md#change).
 */
export function watchedPath(paths: readonly string[]): Result<string> {
  return paths.length > 1 ? refused(refusals.subscriptionPaths) : accepted(paths[0] ?? everywhere)
}

const idSyntax = /^[0-9A-Fa-f]*$/

/**
 * Why a text cannot be the id of a subscription; undefined when it can (docs/interface/subscriptions.md#read: only
 * retrieval tells).
 */
export function checkSubscriptionId(text: string): Refusal | undefined {
  if (text.length !== documentIdLength) return refusals.subscriptionIdLength(documentIdLength)
  return idSyntax.test(text) ? undefined : refusals.subscriptionIdCharacters
}
