// Registrations: who provides what (docs/interface/registrations.md), as they are shown and stored, and which requests
// they are open to (docs/interface/registrations.md#which-provider-is-asked).
//
// Plain data, immutable; it changes by POST, PATCH and DELETE only. An expired one is kept and shown, but not asked,
// and so is one whose provider speaks the first version of the interface. What `status` says has no effect.
//
// A decoder trusts its text: `encodeRegistration` wrote it, perhaps in an older release, which the version tells.
//
// Not here: JSON of clients (registration-parser.ts), which request concerns which registration (provider-index.ts),
// how a query or an update is split and put together again (forwarded-query.ts, forwarded-update.ts).

import { renderDateTime } from '../date-time.js'
import { assertVersion } from '../unreadable.js'

/** A registration as it is stored. */
export interface Registration {
  /** As those of subscriptions: 24 lower-case hexadecimal digits, increasing with creation. */
  readonly id: string
  /** Whose requests are forwarded; '' is the default tenant. */
  readonly tenant: string
  /** Where what is provided is looked for; never a wildcard. */
  readonly servicePath: string
  /** '' when there is none. */
  readonly description: string
  /** From when on nothing is forwarded; undefined: never. May lie in the past from the start. */
  readonly expiresMs: number | undefined
  readonly dataProvided: DataProvided
  readonly provider: Provider
  /** Shown, and without effect (docs/interface/registrations.md#registration-fields). */
  readonly status: RegistrationStatus
}

export interface DataProvided {
  /** No element twice; empty: nothing is provided. */
  readonly entities: readonly ProvidedEntity[]
  /** No name twice; empty: all attributes, the whole entity. */
  readonly attrs: readonly string[]
}

/** Entities by id and type. Exactly one of `id` and `idPattern` is there. */
export interface ProvidedEntity {
  readonly id?: string | undefined
  /** Every id: the only pattern there is. */
  readonly idPattern?: '.*' | undefined
  /** undefined: every type. */
  readonly type?: string | undefined
}

export interface Provider {
  /** What `/op/query` and `/op/update` are appended to; has passed `parseReceiverUrl`. */
  readonly url: string
  readonly supportedForwardingMode: ForwardingMode
  /** It speaks the interface's first version. */
  readonly legacyForwarding: boolean
}

/** Which requests a provider takes. */
export type ForwardingMode = 'all' | 'none' | 'query' | 'update'

export type RegistrationStatus = 'active' | 'inactive'

/** A registration as `GET` shows it (docs/interface/registrations.md#registration-operations). */
export function renderRegistration(registration: Registration): string {
  const { id, description, expiresMs, dataProvided, provider, status } = registration
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
  })
}

/** Of the stored form; a new one is needed when an older text would be misread. */
const version = 1

/** The text under which a registration is stored, and sent to other processes. */
export const encodeRegistration = (registration: Registration): string => JSON.stringify({ version, ...registration })

// [hot] For each registration at start. Field by field: spreading what was parsed takes as long as parsing it.
/** The registration of a text that `encodeRegistration` wrote. */
export function decodeRegistration(stored: string): Registration {
  const found = JSON.parse(stored) as Registration & { readonly version: number }
  assertVersion('a stored registration', found.version, version)
  const { id, tenant, servicePath, description, expiresMs, dataProvided, provider, status } = found
  return { id, tenant, servicePath, description, expiresMs, dataProvided, provider, status }
}

/** The two kinds of requests that are forwarded. */
export type ForwardedKind = 'query' | 'update'

/** Whether a registration takes requests of a kind now. Its path, entities and attributes are looked at besides. */
export function isOpenTo({ provider, expiresMs }: Registration, kind: ForwardedKind, nowMs: number): boolean {
  const { supportedForwardingMode: mode, legacyForwarding } = provider
  return (mode === 'all' || mode === kind) && !legacyForwarding && (expiresMs === undefined || expiresMs > nowMs)
}

/** What stands between a URL without a path and the operation (`-fwdPathless`). */
export type Pathless = 'plain' | 'slash' | 'v2'

const pathlessPrefix = { plain: '', slash: '/', v2: '/v2' } as const satisfies Record<Pathless, string>

const withoutPath = /^(https?:\/\/[^/?#]+)\/?$/

/**
 * What `/op/query` and `/op/update` are appended to: where a provider is asked, and where else it may answer. The other
 * place is below the registered URL as well, since another part of that host may belong to somebody else.
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

/** Suffixes that a correlator gets on its way, one for each hop (docs/interface/requests.md#correlator). */
const suffix = /;\s*(?:cbfwd|cbnotif)=/g

/**
 * With so many suffixes a request goes in a circle: it is neither forwarded nor notified of
 * (docs/interface/registrations.md#forwarded-requests).
 */
const hopsMax = 10

/** A correlator with fewer characters has not made so many hops. */
const loopedLengthMin = hopsMax * ';cbfwd=1'.length

// [hot] Once per request: nearly all correlators are too short.
/**
 * Whether a correlator tells that its request goes in a circle (docs/interface/registrations.md#forwarded-requests).
 */
export const isLooped = (correlator: string): boolean =>
  correlator.length >= loopedLengthMin && (correlator.match(suffix)?.length ?? 0) >= hopsMax
