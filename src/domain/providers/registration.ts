// Registrations: which provider has which entities (docs/interface/registrations.md), in their shown and stored form,
// and the requests that they are open to (docs/interface/registrations.md#which-provider-is-asked).
//
// Plain data, immutable; only POST, PATCH and DELETE change it. An expired registration is kept and shown, but its
// provider is not asked. The same holds for a provider that uses the first version of the interface. `status` has no
// effect.
//
// A decoder trusts its text: `encodeRegistration` wrote it, perhaps in an older release, as its version shows.
//
// Not here: JSON of clients (registration-parser.ts), the registrations for a request (provider-index.ts), dividing and
// merging a query or an update (forwarded-query.ts, forwarded-update.ts).

import type { PrincipalSource } from '../access/principal.js'
import { renderDateTime } from '../date-time.js'
import { assertVersion } from '../unreadable.js'
import { type ForwardingOutcome, forwardingInformation } from './forwarding-outcome.js'

/** A stored registration. */
export interface Registration {
  /** Like those of subscriptions: 24 lower-case hexadecimal digits, increasing with creation. */
  readonly id: string
  /** The tenant whose requests are forwarded; '' is the default tenant. */
  readonly tenant: string
  /** The path of the provided entities; never a wildcard. */
  readonly servicePath: string
  /** The principal that has created it (docs/interface/access.md#owners); undefined: there was no access control. */
  readonly owner?: PrincipalSource | undefined
  /** '' when there is none. */
  readonly description: string
  /** The time from which on nothing is forwarded; undefined: never. It may be in the past from the start. */
  readonly expiresMs: number | undefined
  readonly dataProvided: DataProvided
  readonly provider: Provider
  /** Shown, but without effect (docs/interface/registrations.md#registration-fields). */
  readonly status: RegistrationStatus
}

export interface DataProvided {
  /** No element twice; empty: nothing is provided. */
  readonly entities: readonly ProvidedEntity[]
  /** No name twice; empty: all attributes, the whole entity. */
  readonly attrs: readonly string[]
}

/** Entities by id and type. Exactly one of `id` and `idPattern` is given. */
export interface ProvidedEntity {
  readonly id?: string | undefined
  /** Every id: the only possible pattern. */
  readonly idPattern?: '.*' | undefined
  /** undefined: every type. */
  readonly type?: string | undefined
}

export interface Provider {
  /** The base to which `/op/query` and `/op/update` are appended. It has passed `parseReceiverUrl`. */
  readonly url: string
  readonly supportedForwardingMode: ForwardingMode
  /** The provider uses the interface's first version. */
  readonly legacyForwarding: boolean
}

/** The requests that a provider accepts. */
export type ForwardingMode = 'all' | 'none' | 'query' | 'update'

export type RegistrationStatus = 'active' | 'inactive'

/**
 * A registration as `GET` shows it (docs/interface/registrations.md#registration-operations). `outcome`: of the requests
 * that were forwarded because of it; undefined: there were none.
 */
export function renderRegistration(registration: Registration, outcome?: ForwardingOutcome): string {
  const { id, owner, description, expiresMs, dataProvided, provider, status } = registration
  const { url, supportedForwardingMode, legacyForwarding } = provider
  return JSON.stringify({
    id,
    description: description === '' ? undefined : description,
    expires: expiresMs === undefined ? undefined : renderDateTime(expiresMs),
    dataProvided: {
      entities: dataProvided.entities.map(({ id, idPattern, type }) => ({ id, idPattern, type })),
      attrs: dataProvided.attrs,
    },
    provider: { http: { url }, supportedForwardingMode, legacyForwarding },
    status,
    forwardingInformation: outcome && forwardingInformation(outcome),
    // Ours: only shown when there is one.
    owner: owner?.name,
  })
}

/** The version of the stored form. A new version is needed when an older text would be misread. */
const version = 1

/** The text form of a registration, for the store and for other processes. */
export const encodeRegistration = (registration: Registration): string => JSON.stringify({ version, ...registration })

// [hot] For each registration at start. Field by field: spreading the parsed object takes as long as parsing it.
/** Decodes a text that `encodeRegistration` wrote. */
export function decodeRegistration(stored: string): Registration {
  const found = JSON.parse(stored) as Registration & { readonly version: number }
  assertVersion('a stored registration', found.version, version)
  const { id, tenant, servicePath, owner, description, expiresMs, dataProvided, provider, status } = found
  const whole = { id, tenant, servicePath, description, expiresMs, dataProvided, provider, status }
  return owner ? { ...whole, owner } : whole
}

/** The two kinds of requests that are forwarded. */
export type ForwardedKind = 'query' | 'update'

/** Whether a registration accepts requests of a kind now. The caller checks path, entities and attributes. */
export function isOpenTo({ provider, expiresMs }: Registration, kind: ForwardedKind, nowMs: number): boolean {
  const { supportedForwardingMode: mode, legacyForwarding } = provider
  return (mode === 'all' || mode === kind) && !legacyForwarding && (expiresMs === undefined || expiresMs > nowMs)
}

/** The text between a URL without a path and the operation (`-fwdPathless`). */
export type Pathless = 'plain' | 'slash' | 'v2'

const pathlessPrefix = { plain: '', slash: '/', v2: '/v2' } as const satisfies Record<Pathless, string>

const withoutPath = /^(https?:\/\/[^/?#]+)\/?$/

/**
 * The bases to which `/op/query` and `/op/update` are appended: the first one to ask, and perhaps another one. The
 * other base is also below the registered URL, since other parts of that host may belong to another party.
 */
export function operationBases(providerUrl: string, pathless: Pathless): readonly [first: string, other?: string] {
  const origin = withoutPath.exec(providerUrl)?.[1]
  if (origin !== undefined)
    return [origin + pathlessPrefix[pathless], origin + pathlessPrefix[pathless === 'v2' ? 'slash' : 'v2']]
  const base = providerUrl.replace(/\/$/, '')
  return base.endsWith('/v2') || base.includes('?') ? [base] : [base, `${base}/v2`]
}

/** The URL of an operation at one of `operationBases`. */
export const operationUrl = (base: string, kind: ForwardedKind): string => `${base}/op/${kind}`

/** Suffixes that are added to a correlator, one for each hop (docs/interface/requests.md#correlator). */
const suffix = /;\s*(?:cbfwd|cbnotif)=/g

/**
 * A request with this many suffixes is in a loop: it is not forwarded and triggers no notification
 * (docs/interface/registrations.md#forwarded-requests).
 */
const hopsMax = 10

/** A correlator with fewer characters cannot have this many hops. */
const loopedLengthMin = hopsMax * ';cbfwd=1'.length

// [hot] Once per request: nearly all correlators are too short.
/** Whether a correlator shows that its request is in a loop (docs/interface/registrations.md#forwarded-requests). */
export const isLooped = (correlator: string): boolean =>
  correlator.length >= loopedLengthMin && (correlator.match(suffix)?.length ?? 0) >= hopsMax
